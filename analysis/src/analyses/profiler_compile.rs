//! The analysis `profiler-compile`: the figures of the analysis `torch-compile` under the names and
//! in the units of `/api/profiler/compile`, for clients of an earlier PyTorch profiling suite.
//!
//! No figure is computed here but ratios and units of those of `torch-compile`. A figure that the
//! captures do not hold is null.

use flopwatch_model::{Needs, Timeline, approximate, index};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, Table, Tile, Unit};
use schemars::JsonSchema;
use serde::Serialize;

use crate::analyses::torch_compile::{CompileSide, TorchCompile, TorchCompileParams, TorchCompileResult};
use crate::definition::{Analysis, AnalysisError, InputCount, NoParameters};
use crate::group::Group;
use crate::input::Inputs;

/// Number of runs that a compilation needs to pay off, from which on the report recommends to
/// compile less.
const LATE_BREAK_EVEN: f64 = 1000.0;
/// Share of the GPU time in compiled code, 0 to 1, below which the report recommends to compile
/// more.
const LOW_COVERAGE: f64 = 0.5;
/// Maximum number of graph breaks in the list.
const MAX_BREAKS: u32 = 1000;

/// The analysis `profiler-compile`.
#[derive(Debug)]
pub(crate) struct ProfilerCompile;

/// The result of `profiler-compile`: what torch.compile did in the compiled capture, and what it
/// gained over the eager one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct CompileReport {
    /// Mean iteration of the eager capture over that of the compiled one: above 1 is faster. Null
    /// without an eager capture beside it.
    pub speedup: Option<f64>,
    /// Time that was spent compiling in ms; null where nothing was compiled in the capture.
    pub compile_time_ms: Option<f64>,
    /// Graph breaks: where the program leaves its compiled graph.
    pub graph_breaks: Vec<CompileReportBreak>,
    /// Number of graph breaks; null where no compiled code ran.
    pub total_graph_breaks: Option<u64>,
    /// `ops_before_fusion` over `ops_after_fusion`: above 1 is fused. Null without an eager capture
    /// beside it.
    pub fusion_ratio: Option<f64>,
    /// Mean kernels per iteration of the eager capture; null without one.
    pub ops_before_fusion: Option<f64>,
    /// Mean kernels per iteration of the compiled capture; null without iterations or kernels.
    pub ops_after_fusion: Option<f64>,
    /// What the user can do, in sentences; empty where nothing is to be done.
    pub recommendations: Vec<String>,
}

/// A graph break and how to avoid it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CompileReportBreak {
    /// Why the graph ended, what ran there and on which line, as far as the capture holds it.
    pub reason: String,
    /// What the user can do, in sentences; empty where nothing is to be done.
    pub suggestion: String,
}

impl Analysis for ProfilerCompile {
    const NAME: &'static str = "profiler-compile";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "Speed-up, compile time, graph breaks and fusion of torch.compile, as /api/profiler/compile has it.";
    const TITLE: &'static str = "torch.compile for the earlier suite";
    const GROUP: Group = Group::EarlierSuite;
    const INPUTS: InputCount = InputCount::Many;
    const NEEDS: Needs = TorchCompile::NEEDS;
    type Params = NoParameters;
    type Output = CompileReport;

    fn run(inputs: &Inputs<'_>, _params: &NoParameters) -> Result<CompileReport, AnalysisError> {
        let timelines: Vec<&Timeline> = inputs.all().iter().map(|input| input.timeline).collect();
        Ok(report(&timelines))
    }

    fn page(output: &CompileReport) -> Result<Page, AnalysisError> {
        let mut page = Page::new(Self::TITLE, Self::ABOUT);
        if let (None, None, [reason, ..]) = (
            output.total_graph_breaks,
            output.compile_time_ms,
            output.recommendations.as_slice(),
        ) {
            page.not_captured
                .push(NotCaptured::new("torch.compile", reason.as_str()));
            return Ok(page);
        }
        page.tiles([
            Tile::new("Speed-up", output.speedup),
            Tile::figure("Compile time", Unit::Ns, output.compile_time_ms.map(|ms| ms * 1e6)),
            Tile::new("Graph breaks", output.total_graph_breaks),
            Tile::new("Fusion", output.fusion_ratio),
            Tile::new("Kernels before", output.ops_before_fusion),
            Tile::new("Kernels after", output.ops_after_fusion),
        ]);
        page.table_unless_empty(
            Table::of("Graph breaks", &output.graph_breaks)
                .column("Reason", |graph_break| graph_break.reason.as_str())
                .column("Suggestion", |graph_break| graph_break.suggestion.as_str()),
        );
        for recommendation in &output.recommendations {
            page.text("", recommendation.as_str());
        }
        Ok(page)
    }
}

/// The report of the captures `timelines`, of which one is the compiled program and others may be
/// the eager one. Where none holds compiled code, the report has one recommendation, which says so.
fn report(timelines: &[&Timeline]) -> CompileReport {
    let params = TorchCompileParams {
        limit: MAX_BREAKS,
        ..TorchCompileParams::default()
    };
    let result = TorchCompileResult::of(timelines, &params);
    let Some(compiled) = result.input.and_then(|input| result.captures.get(index(input))) else {
        let reason = result.not_captured.first();
        return CompileReport {
            recommendations: reason.map(|missing| missing.reason.clone()).into_iter().collect(),
            ..CompileReport::default()
        };
    };
    let eager = result.captures.iter().find(|side| !side.is_compiled);
    let eager_kernels = eager.and_then(|eager| eager.kernels_per_iteration);
    let compiled_kernels = compiled.kernels_per_iteration;
    CompileReport {
        speedup: compiled.speedup,
        compile_time_ms: (result.compile_ns > 0).then(|| approximate(result.compile_ns.into()) / 1e6),
        graph_breaks: result.graph_breaks.iter().map(report_break).collect(),
        total_graph_breaks: (!result.regions.is_empty()).then_some(compiled.graph_breaks),
        fusion_ratio: eager_kernels
            .zip(compiled_kernels)
            .map(|(eager, compiled)| eager / compiled),
        ops_before_fusion: eager_kernels,
        ops_after_fusion: compiled_kernels,
        recommendations: recommendations(&result, compiled),
    }
}

/// A graph break with its reason, what ran there and its line as one text.
fn report_break(graph_break: &flopwatch_measures::compiled::GraphBreak) -> CompileReportBreak {
    let mut reason = graph_break.reason.label().to_owned();
    if !graph_break.seen.is_empty() {
        reason = format!("{reason}: {}", graph_break.seen);
    }
    if let Some(location) = &graph_break.location {
        reason = format!("{reason}, before {location}");
    }
    CompileReportBreak {
        reason,
        suggestion: graph_break.suggestion.clone(),
    }
}

/// What the user can do, a sentence for each figure that is not as it should be.
fn recommendations(result: &TorchCompileResult, compiled: &CompileSide) -> Vec<String> {
    let mut recommendations = Vec::new();
    if compiled.graph_breaks > 0 {
        recommendations.push(format!(
            "Remove {} graph breaks, each of which ends a graph and what can be fused in it; torch.compile(fullgraph=True) fails at the first one and names it.",
            compiled.graph_breaks
        ));
    }
    if compiled.recompiles > 0 {
        recommendations.push(format!(
            "{} times code was compiled again: mark dimensions that change (torch._dynamo.mark_dynamic, dynamic=True) or pad them; TORCH_LOGS=recompiles names the guard.",
            compiled.recompiles
        ));
    }
    if let Some(runs) = result.break_even_runs.filter(|runs| *runs > LATE_BREAK_EVEN) {
        recommendations.push(format!(
            "Compilation took as long as {runs:.0} runs of what it compiled: compile only what runs often, keep the cache between runs (TORCHINDUCTOR_CACHE_DIR), or use a \
             cheaper mode."
        ));
    }
    if let Some(coverage) = compiled.coverage_ratio.filter(|coverage| *coverage < LOW_COVERAGE) {
        recommendations.push(format!(
            "Compiled code launches {:.1} % of the GPU time: compile the functions that launch the rest.",
            coverage * 100.0
        ));
    }
    if let Some(speedup) = compiled.speedup.filter(|speedup| *speedup < 1.0) {
        recommendations.push(format!(
            "The compiled program is slower than the eager one ({speedup:.2}x): see graph breaks, or do not compile it."
        ));
    }
    recommendations
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::{Category, Track};

    use super::*;

    #[test]
    fn the_fields_have_the_names_and_units_of_the_earlier_suite() {
        let mut trace = Trace::new();
        let ops = trace.thread(1, 1, Track::CpuOp);
        trace.event(
            Category::CpuOp,
            ops,
            "_compile.compile_inner (dynamo_timed)",
            0,
            5_000_000,
        );
        trace.event(Category::CpuOp, ops, "Torch-Compiled Region: 0/0", 6_000_000, 6_001_000);
        trace.event(Category::CpuOp, ops, "CompiledFunction", 6_000_100, 6_000_300);
        trace.event(Category::CpuOp, ops, "aten::item", 6_000_400, 6_000_450);
        trace.event(Category::CpuOp, ops, "Torch-Compiled Region: 1/0", 6_000_500, 6_001_000);
        let document = serde_json::to_value(report(&[&trace.build()])).unwrap();
        let suggestion = flopwatch_measures::compiled::BreakReason::ScalarRead.suggestion();
        let expected = serde_json::json!({
            "speedup": null, "compile_time_ms": 5.0, "total_graph_breaks": 1, "fusion_ratio": null, "ops_before_fusion": null, "ops_after_fusion": null,
            "graph_breaks": [{"reason": "Python reads a value of a tensor: aten::item", "suggestion": suggestion}],
        });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&document[name], value, "{name}");
        }
        // 5 ms are 5,000 runs of 1 µs.
        assert_eq!(document["recommendations"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn an_eager_capture_alone_has_no_figures() {
        let report = report(&[&Timeline::default()]);
        assert_eq!((report.compile_time_ms, report.total_graph_breaks), (None, None));
        assert_eq!(report.recommendations.len(), 1);
        let page = ProfilerCompile::page(&report).unwrap();
        assert_eq!((page.not_captured.len(), page.blocks.len()), (1, 0));
    }
}
