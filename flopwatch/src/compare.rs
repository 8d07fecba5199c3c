//! `compare`: the analysis of that name for people and for pipelines, which read its verdict from
//! the exit code.

use flopwatch_analysis::analyses::compare::{Compare, ComparisonVerdict};
use flopwatch_analysis::{Analysis, Request};
use flopwatch_pipeline::analysis::Report;

use crate::analyze::{self, Judged, report_of};
use crate::arguments::{CompareArguments, FailOn};
use crate::source;

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is none, the analysis fails, or the result cannot be printed.
    #[error(transparent)]
    Analyze(#[from] analyze::Error),
    /// The child that compares did not say its verdict.
    #[error("the comparison has no verdict")]
    NoVerdict,
}

fn fails(verdict: &str, on: FailOn) -> bool {
    match on {
        FailOn::Regression => verdict == ComparisonVerdict::RegressionLikely.name(),
        FailOn::AnyChange => verdict != ComparisonVerdict::Neutral.name(),
        FailOn::Never => false,
    }
}

/// Compares the captures of the command line. `until` ends the work early.
pub async fn run(arguments: CompareArguments, until: impl Future<Output = ()>) -> Result<Judged, Error> {
    let threshold = arguments.threshold_percent;
    let threshold = threshold.map(|percent| format!("threshold_percent={percent}"));
    let words = arguments.parameters.iter().chain(&threshold).map(String::as_str);
    let request = Request::from_words(Compare::NAME, words);
    let request = request.map_err(|error| analyze::Error::from(source::Error::from(error)))?;
    let sources = [arguments.before, arguments.after].map(|file| arguments.source.clone().source(file, None));
    let told = |report: &Report| report.verdict.clone().unwrap_or_default();
    let (text, report) = report_of(request, &sources, &arguments.print, told, until).await?;
    let verdict = report.verdict.ok_or(Error::NoVerdict)?;
    let fails = fails(&verdict, arguments.fail_on);
    Ok(Judged { text, fails })
}
