//! torch.compile under the names and in the units that clients of an earlier PyTorch profiling suite know: `/api/profiler/compile`.
//!
//! It computes nothing of its own: `torch-compile` is said again. A figure that the captures do not hold is null.

use flopwatch_model::{Needs, Timeline, approximate, index};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, Table, Unit};
use schemars::JsonSchema;
use serde::Serialize;

use crate::analyses::torch_compile::{CompileSide, TorchCompile, TorchCompileParams, TorchCompileResult};
use crate::definition::{Analysis, AnalysisError, InputCount, NoParameters};
use crate::group::Group;
use crate::input::Inputs;

/// From this many runs on compilation may not pay off.
const LATE_BREAK_EVEN: f64 = 1000.0;
/// Below this part of the GPU time in compiled code most of the program is not compiled.
const LOW_COVERAGE: f64 = 0.5;
/// Most graph breaks in the list.
const MOST_BREAKS: u32 = 1000;

/// What torch.compile did.
#[derive(Debug)]
pub(crate) struct ProfilerCompile;

/// What torch.compile did and gained.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct CompileReport {
    /// Mean iteration of the eager capture over that of the compiled one: above 1 is faster. Null without an eager capture beside it.
    pub speedup: Option<f64>,
    /// Time that was spent compiling in ms; null where nothing was compiled in the capture.
    pub compile_time_ms: Option<f64>,
    /// The places where the program leaves its compiled graph.
    pub graph_breaks: Vec<CompileReportBreak>,
    /// How many there are; null where no compiled code ran.
    pub total_graph_breaks: Option<u64>,
    /// `ops_before_fusion` over `ops_after_fusion`: above 1 is fused. Null without an eager capture beside it.
    pub fusion_ratio: Option<f64>,
    /// Mean kernels per iteration of the eager capture; null without one.
    pub ops_before_fusion: Option<f64>,
    /// Mean kernels per iteration of the compiled capture; null without iterations or kernels.
    pub ops_after_fusion: Option<f64>,
    /// What to do.
    pub recommendations: Vec<String>,
}

/// A graph break.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CompileReportBreak {
    /// Why, with what was seen and where, as far as the capture says.
    pub reason: String,
    /// What to do.
    pub suggestion: String,
}

impl Analysis for ProfilerCompile {
    const NAME: &'static str = "profiler-compile";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "Speed-up, compile time, graph breaks and fusion of torch.compile, as /api/profiler/compile has it.";
    const GROUP: Group = Group::Operations;
    const INPUTS: InputCount = InputCount::Many;
    const NEEDS: Needs = TorchCompile::NEEDS;
    type Params = NoParameters;
    type Output = CompileReport;

    fn run(inputs: &Inputs<'_>, _params: &NoParameters) -> Result<CompileReport, AnalysisError> {
        let timelines: Vec<&Timeline> = inputs.all().iter().map(|input| input.timeline).collect();
        Ok(report(&timelines))
    }

    fn page(output: &CompileReport) -> Result<Page, AnalysisError> {
        let mut page = Page::new("torch.compile", Self::ABOUT);
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
            ("Speed-up", output.speedup.into(), Unit::None),
            (
                "Compile time",
                output.compile_time_ms.map(|ms| ms * 1e6).into(),
                Unit::Ns,
            ),
            ("Graph breaks", output.total_graph_breaks.into(), Unit::None),
            ("Fusion", output.fusion_ratio.into(), Unit::None),
            ("Kernels before", output.ops_before_fusion.into(), Unit::None),
            ("Kernels after", output.ops_after_fusion.into(), Unit::None),
        ]);
        if !output.graph_breaks.is_empty() {
            let mut table = Table::new("Graph breaks", &[("Reason", Unit::None), ("Suggestion", Unit::None)]);
            for one in &output.graph_breaks {
                table.push([one.reason.as_str().into(), one.suggestion.as_str().into()]);
            }
            page.table(table);
        }
        for recommendation in &output.recommendations {
            page.text("", recommendation.as_str());
        }
        Ok(page)
    }
}

fn report(timelines: &[&Timeline]) -> CompileReport {
    let params = TorchCompileParams {
        limit: MOST_BREAKS,
        ..TorchCompileParams::default()
    };
    let found = TorchCompileResult::of(timelines, &params);
    let Some(side) = found.input.and_then(|input| found.captures.get(index(input))) else {
        let reason = found.not_captured.first();
        return CompileReport {
            recommendations: reason.map(|missing| missing.reason.clone()).into_iter().collect(),
            ..CompileReport::default()
        };
    };
    let eager = found.captures.iter().find(|side| !side.is_compiled);
    let before = eager.and_then(|side| side.kernels_per_iteration);
    let after = side.kernels_per_iteration;
    CompileReport {
        speedup: side.speedup,
        compile_time_ms: (found.compile_ns > 0).then(|| approximate(found.compile_ns.into()) / 1e6),
        graph_breaks: found.graph_breaks.iter().map(told).collect(),
        total_graph_breaks: (!found.regions.is_empty()).then_some(side.graph_breaks),
        fusion_ratio: before.zip(after).map(|(before, after)| before / after),
        ops_before_fusion: before,
        ops_after_fusion: after,
        recommendations: recommendations(&found, side),
    }
}

fn told(one: &flopwatch_measures::compiled::GraphBreak) -> CompileReportBreak {
    let mut reason = one.reason.label().to_owned();
    if !one.seen.is_empty() {
        reason = format!("{reason}: {}", one.seen);
    }
    if let Some(location) = &one.location {
        reason = format!("{reason}, before {location}");
    }
    CompileReportBreak {
        reason,
        suggestion: one.suggestion.clone(),
    }
}

fn recommendations(found: &TorchCompileResult, side: &CompileSide) -> Vec<String> {
    let mut told = Vec::new();
    if side.graph_breaks > 0 {
        told.push(format!(
            "Remove {} graph breaks, each of which ends a graph and what can be fused in it; torch.compile(fullgraph=True) fails at the first one and names it.",
            side.graph_breaks
        ));
    }
    if side.recompiles > 0 {
        told.push(format!(
            "{} times code was compiled again: mark dimensions that change (torch._dynamo.mark_dynamic, dynamic=True) or pad them; TORCH_LOGS=recompiles names the guard.",
            side.recompiles
        ));
    }
    if let Some(runs) = found.break_even_runs.filter(|runs| *runs > LATE_BREAK_EVEN) {
        told.push(format!(
            "Compilation took as long as {runs:.0} runs of what it compiled: compile only what runs often, keep the cache between runs (TORCHINDUCTOR_CACHE_DIR), or use a \
             cheaper mode."
        ));
    }
    if let Some(covered) = side.coverage_ratio.filter(|covered| *covered < LOW_COVERAGE) {
        told.push(format!(
            "Compiled code launches {:.1} % of the GPU time: compile the functions that launch the rest.",
            covered * 100.0
        ));
    }
    if let Some(speedup) = side.speedup.filter(|speedup| *speedup < 1.0) {
        told.push(format!(
            "The compiled program is slower than the eager one ({speedup:.2}x): see graph breaks, or do not compile it."
        ));
    }
    told
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::{Category, Track};

    use super::*;

    #[test]
    fn the_names_are_those_of_the_contract() {
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
        let found = serde_json::to_value(report(&[&trace.build()])).unwrap();
        let suggestion = flopwatch_measures::compiled::BreakReason::ScalarRead.suggestion();
        let expected = serde_json::json!({
            "speedup": null, "compile_time_ms": 5.0, "total_graph_breaks": 1, "fusion_ratio": null, "ops_before_fusion": null, "ops_after_fusion": null,
            "graph_breaks": [{"reason": "Python reads a value of a tensor: aten::item", "suggestion": suggestion}],
        });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&found[name], value, "{name}");
        }
        // 5 ms are 5,000 runs of 1 µs.
        assert_eq!(found["recommendations"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn an_eager_capture_alone_has_no_figures() {
        let found = report(&[&Timeline::default()]);
        assert_eq!((found.compile_time_ms, found.total_graph_breaks), (None, None));
        assert_eq!(found.recommendations.len(), 1);
        let page = ProfilerCompile::page(&found).unwrap();
        assert_eq!((page.not_captured.len(), page.blocks.len()), (1, 0));
    }
}
