//! `compare`: the analysis of that name for people and for pipelines, which read its verdict from
//! the exit code.

use std::process::ExitCode;

use flopwatch_analysis::Analysis;
use flopwatch_analysis::Request;
use flopwatch_analysis::analyses::compare::Compare;
use flopwatch_analysis::analyses::compare::ComparisonVerdict;

use crate::analyze;
use crate::arguments::{CompareArguments, FailOn};
use crate::cut;
use crate::source;

/// Exit code where what `--fail-on` names was found.
const EXIT_CODE_FOUND: u8 = 3;

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is none, or the analysis fails.
    #[error(transparent)]
    Source(#[from] source::Error),
    /// The result cannot be printed.
    #[error(transparent)]
    Print(#[from] analyze::Error),
    /// The child that compares did not say its verdict.
    #[error("the comparison has no verdict")]
    NoVerdict,
}

/// A comparison that was made.
#[derive(Debug)]
pub struct Compared {
    /// What to print.
    pub text: String,
    verdict: String,
    fail_on: FailOn,
}

impl Compared {
    /// What the verdict means to a pipeline.
    pub fn exit_code(&self) -> ExitCode {
        if fails(&self.verdict, self.fail_on) {
            ExitCode::from(EXIT_CODE_FOUND)
        } else {
            ExitCode::SUCCESS
        }
    }
}

fn fails(verdict: &str, on: FailOn) -> bool {
    match on {
        FailOn::Regression => verdict == ComparisonVerdict::RegressionLikely.name(),
        FailOn::AnyChange => verdict != ComparisonVerdict::Neutral.name(),
        FailOn::Never => false,
    }
}

/// Compares the captures of the command line. `until` ends the work early.
pub async fn run(arguments: CompareArguments, until: impl Future<Output = ()>) -> Result<Compared, Error> {
    let CompareArguments {
        before,
        after,
        threshold_percent,
        fail_on,
        parameters,
        print,
        source,
    } = arguments;
    let threshold = threshold_percent.map(|percent| format!("threshold_percent={percent}"));
    let words = parameters.iter().chain(&threshold).map(String::as_str);
    let request = Request::from_words(Compare::NAME, words).and_then(|request| {
        let format = analyze::format(&print, request.definition());
        Ok(request.written_as(format)?.laid_out(print.layout()))
    });
    let request = request.map_err(source::Error::from)?;
    let sources = [before, after].map(|file| source.clone().source(file, None));
    let (text, report) = if let Some(output) = print.output {
        let report = source::analyze_to(&sources, &request, &output, print.force, until).await?;
        let verdict = report.verdict.clone().unwrap_or_default();
        (format!("{}: {verdict}\n", output.display()), report)
    } else {
        let (result, report) = source::analyze(&sources, &request, until).await?;
        (analyze::read(result, Compare::NAME)?, report)
    };
    cut::tell(cut::of_report(&sources, &report));
    Ok(Compared {
        text,
        verdict: report.verdict.ok_or(Error::NoVerdict)?,
        fail_on,
    })
}
