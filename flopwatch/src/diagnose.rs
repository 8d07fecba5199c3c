//! `diagnose`: the analysis `advice` for people and for pipelines, which read the gravest severity
//! from the exit code.

use flopwatch_analysis::advice::Severity;
use flopwatch_analysis::analyses::advice::AdviceAnalysis;
use flopwatch_analysis::{Analysis, Request};
use flopwatch_pipeline::analysis::Report;
use flopwatch_report::page::figure::count;

use crate::analyze::{self, Judged, report_of};
use crate::arguments::DiagnoseArguments;
use crate::source;

fn fails(gravest: Option<Severity>, on: Option<Severity>) -> bool {
    on.is_some_and(|on| gravest.is_some_and(|gravest| gravest >= on))
}

/// Diagnoses the capture of the command line. `until` ends the work early.
pub async fn run(arguments: DiagnoseArguments, until: impl Future<Output = ()>) -> Result<Judged, analyze::Error> {
    let limit = arguments.limit.map(|limit| format!("limit={limit}"));
    let request = Request::from_words(AdviceAnalysis::NAME, limit.iter().map(String::as_str));
    let request = request.map_err(source::Error::from)?;
    let sources = [arguments.source.source(arguments.file, None)];
    let told = |report: &Report| format!("{} read", count(report.total_events, "event", "events"));
    let (text, report) = report_of(request, &sources, &arguments.print, told, until).await?;
    let gravest = report.verdict.as_deref().and_then(Severity::from_name);
    let fails = fails(gravest, arguments.fail_on);
    Ok(Judged { text, fails })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_fail_where_they_are_as_grave_as_asked() {
        let cases = [
            (None, Some(Severity::Low), false),
            (Some(Severity::High), None, false),
            (Some(Severity::Medium), Some(Severity::High), false),
            (Some(Severity::High), Some(Severity::High), true),
            (Some(Severity::High), Some(Severity::Low), true),
        ];
        for (gravest, on, expected) in cases {
            assert_eq!(fails(gravest, on), expected, "{gravest:?} {on:?}");
        }
    }
}
