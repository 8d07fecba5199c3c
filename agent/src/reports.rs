//! `flame`, `timeline`, `hta`, `memory`, `compile`: analyses under the names of an earlier profiling suite, as HTML unless JSON is asked for.

use flopwatch_analysis::Analysis;
use flopwatch_analysis::analyses::flame_graph::FlameGraphAnalysis;

use crate::analyze;
use crate::cli::{AnalyzeArguments, ReportArguments, ResultFormat};

/// A command and its analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// A flame graph.
    Flame,
    /// When CPU and GPU were active.
    Timeline,
    /// What the GPUs did with their time.
    Hta,
    /// Memory over time.
    Memory,
    /// What torch.compile did.
    Compile,
}

impl Report {
    /// The analysis that it is.
    pub const fn analysis(self) -> &'static str {
        match self {
            Self::Flame => FlameGraphAnalysis::NAME,
            Self::Timeline => "profiler-timeline",
            Self::Hta => "profiler-hta",
            Self::Memory => "profiler-memory",
            Self::Compile => "profiler-compile",
        }
    }
}

/// Runs it, and gives what to print. `until` ends the work early.
pub async fn run(
    report: Report,
    arguments: ReportArguments,
    until: impl Future<Output = ()>,
) -> Result<String, analyze::Error> {
    let ReportArguments {
        file,
        with,
        output,
        json,
        force,
        parameters,
        source,
    } = arguments;
    let arguments = AnalyzeArguments {
        name: Some(report.analysis().to_owned()),
        files: std::iter::once(file).chain(with).collect(),
        list: false,
        parameters,
        format: Some(if json { ResultFormat::Json } else { ResultFormat::Html }),
        output,
        force,
        source,
    };
    analyze::run(arguments, until).await
}
