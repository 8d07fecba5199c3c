//! `diagnose`: the analysis `advice` for people and for pipelines, which read the gravest severity
//! from the exit code.

use std::process::ExitCode;

use flopwatch_analysis::advice::Severity;
use flopwatch_analysis::analyses::advice::AdviceAnalysis;
use flopwatch_analysis::{Analysis, Request};
use flopwatch_report::page::figure::count;

use crate::analyze;
use crate::arguments::DiagnoseArguments;
use crate::cut;
use crate::source;

/// Exit code where a finding is as grave as `--fail-on` names.
const EXIT_CODE_FOUND: u8 = 3;

/// A capture that was diagnosed.
#[derive(Debug)]
pub struct Diagnosed {
    /// What to print.
    pub text: String,
    /// The severity of the gravest finding.
    gravest: Option<Severity>,
    fail_on: Option<Severity>,
}

impl Diagnosed {
    /// What the findings mean to a pipeline.
    pub fn exit_code(&self) -> ExitCode {
        if fails(self.gravest, self.fail_on) {
            ExitCode::from(EXIT_CODE_FOUND)
        } else {
            ExitCode::SUCCESS
        }
    }
}

fn fails(gravest: Option<Severity>, on: Option<Severity>) -> bool {
    on.is_some_and(|on| gravest.is_some_and(|gravest| gravest >= on))
}

/// Diagnoses the capture of the command line. `until` ends the work early.
pub async fn run(arguments: DiagnoseArguments, until: impl Future<Output = ()>) -> Result<Diagnosed, analyze::Error> {
    let DiagnoseArguments {
        file,
        fail_on,
        limit,
        print,
        source,
    } = arguments;
    let limit = limit.map(|limit| format!("limit={limit}"));
    let request = Request::from_words(AdviceAnalysis::NAME, limit.iter().map(String::as_str));
    let request = request.and_then(|request| {
        let format = analyze::format(&print, request.definition());
        Ok(request.written_as(format)?.laid_out(print.layout()))
    });
    let request = request.map_err(source::Error::from)?;
    let sources = [source.source(file, None)];
    let (text, report) = if let Some(output) = print.output {
        let report = source::analyze_to(&sources, &request, &output, print.force, until).await?;
        let events = count(report.total_events, "event", "events");
        (format!("{}: {events} read\n", output.display()), report)
    } else {
        let (result, report) = source::analyze(&sources, &request, until).await?;
        (analyze::read(result, AdviceAnalysis::NAME)?, report)
    };
    cut::tell(cut::of_report(&sources, &report));
    Ok(Diagnosed {
        text,
        gravest: report.verdict.as_deref().and_then(Severity::from_name),
        fail_on,
    })
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
