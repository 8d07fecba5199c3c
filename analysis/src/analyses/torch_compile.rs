//! torch.compile: what compiling cost, where the graph was left, what was compiled again, and what
//! it gained.

mod page;
mod side;
#[cfg(test)]
mod tests;

use flopwatch_measures::compiled::{CompileId, CompilePhase, GivenUp, GraphBreak, Recompile};
use flopwatch_model::{Category, ColumnId, Needs, Timeline, approximate, gpu_work_and};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, TimelineLocation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError, InputCount};
use crate::group::Group;
use crate::input::Inputs;

/// Diagnosis of torch.compile.
#[derive(Debug)]
pub struct TorchCompile;

/// Parameters of [`TorchCompile`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TorchCompileParams {
    /// What to call the captures, in their order and separated by commas, e.g.
    /// `eager,default,max-autotune`: captures do not say the mode. Empty to number them from 1.
    #[schemars(length(max = 1024))]
    pub labels: String,
    /// Most rows of each list.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u32,
}

impl Default for TorchCompileParams {
    fn default() -> Self {
        Self {
            labels: String::new(),
            limit: 100,
        }
    }
}

/// The result. The lists are of the first capture that holds compiled code; the others are compared
/// with it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct TorchCompileResult {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// The captures side by side.
    pub captures: Vec<CompileSide>,
    /// The capture that the lists are of, by its place among `captures`; null where none holds
    /// compiled code.
    pub input: Option<u32>,
    /// Compile time in ns: the union of the phases of each thread, which nest, summed over threads.
    pub compile_ns: u64,
    /// The same by thread.
    pub threads: Vec<CompileThread>,
    /// The phases, the longest own time first.
    pub phases: Vec<CompilePhase>,
    /// Phases that were left out behind these.
    pub phases_left_out: u64,
    /// Graphs that the backend was asked to compile (`compile_fx_inner`).
    pub graphs: u64,
    /// Graphs of those that it generated code for (`fx_codegen_and_compile`); the others came from
    /// Inductor's cache.
    pub graphs_generated: u64,
    /// Traces that Dynamo began again, as it does at the first graph break of a function
    /// (`compile_attempt_1` and later).
    pub restarts: u64,
    /// Searches for code whose guards hold.
    pub cache_lookups: u64,
    /// Time of the look-ups, in ns.
    pub cache_lookup_ns: u64,
    /// Their mean time in ns; null without any.
    pub mean_cache_lookup_ns: Option<u64>,
    /// Graph breaks: places where the program leaves one graph and goes on in another.
    pub graph_breaks: Vec<GraphBreak>,
    /// Graph breaks that were left out behind these.
    pub graph_breaks_left_out: u64,
    /// Functions that Dynamo began to compile and gave up, and that run uncompiled; PyTorch 2.6 and
    /// later says it.
    pub given_up: Vec<GivenUp>,
    /// Such functions that were left out behind these.
    pub given_up_left_out: u64,
    /// Code that was compiled again.
    pub recompiles: Vec<Recompile>,
    /// Such code that was left out behind these.
    pub recompiles_left_out: u64,
    /// Compiled code by how long it ran.
    pub regions: Vec<CompiledRegion>,
    /// Such code that was left out behind these.
    pub regions_left_out: u64,
    /// Outermost runs in which nothing was compiled.
    pub warm_runs: u64,
    /// Their mean length in ns; null without any.
    pub mean_run_ns: Option<u64>,
    /// Runs after which compiling took as long as what was compiled ran: compile time over mean run
    /// time. Null without such runs or compilation.
    pub break_even_runs: Option<f64>,
}

/// Compile time of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CompileThread {
    /// Process id.
    pub process: u32,
    /// Thread id; null where the source does not say.
    pub thread: Option<u64>,
    /// Time in ns in which it compiled.
    pub compile_ns: u64,
    /// Pieces of time in which it did.
    pub pieces: u64,
    /// The longest of them.
    pub longest: TimelineLocation,
}

/// Compiled code: its runs, without those of other code inside them where it says so.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CompiledRegion {
    /// Which code; null where the version of PyTorch does not say.
    pub code: Option<CompileId>,
    /// Runs.
    pub runs: u64,
    /// Runs inside a run of other code, which go on behind a graph break.
    pub inner_runs: u64,
    /// Time in ns of its runs, with runs inside them and compilation.
    pub total_ns: u64,
    /// Compilation within, in ns.
    pub compile_ns: u64,
    /// GPU operations that it launched itself, without those of runs inside; null where no GPU work
    /// was recorded.
    pub gpu_operations: Option<u64>,
    /// Sum of their lengths in ns.
    pub gpu_ns: Option<u64>,
    /// `gpu_operations` by `runs`.
    pub gpu_operations_per_run: Option<f64>,
    /// The longest run.
    pub longest: TimelineLocation,
}

/// A capture beside others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct CompileSide {
    /// What it is called.
    pub label: String,
    /// Whether it holds compiled code. A capture that does not is taken for the eager program.
    pub is_compiled: bool,
    /// Compile time in ns.
    pub compile_ns: u64,
    /// Different graph breaks.
    pub graph_breaks: u64,
    /// Code compiled again.
    pub recompiles: u64,
    /// Iterations that count: without the first one and those in which code was compiled.
    pub iterations: u64,
    /// Their mean length in ns; null without any.
    pub mean_iteration_ns: Option<u64>,
    /// Mean iteration of the first eager capture over this one's: above 1 is faster. Null without
    /// one of them.
    pub speedup: Option<f64>,
    /// Iterations after which this capture's compile time is paid back by what each saves against
    /// the eager capture; null where it saves nothing.
    pub iterations_to_pay_back: Option<f64>,
    /// Mean kernels launched in such an iteration; null without iterations or kernels.
    pub kernels_per_iteration: Option<f64>,
    /// Sum of the lengths of GPU work in ns; null where none was recorded.
    pub gpu_ns: Option<u64>,
    /// Sum of the lengths in ns of GPU work launched by compiled code, its backward pass and what
    /// stands between its graphs counted in.
    pub compiled_gpu_ns: Option<u64>,
    /// The same of what graphs launched themselves.
    pub graph_gpu_ns: Option<u64>,
    /// Coverage: `compiled_gpu_ns` of `gpu_ns`.
    pub coverage_ratio: Option<f64>,
    /// `graph_gpu_ns` of `gpu_ns`.
    pub graph_coverage_ratio: Option<f64>,
    /// Kernels of GPU work whose launch was not recorded, so that no code is known to have launched
    /// them.
    pub unmatched: u64,
    /// Time of Triton's kernels (`triton_*`) of the time of all kernels.
    pub triton_ratio: Option<f64>,
    /// Kernels of Triton.
    pub triton_kernels: u64,
    /// Launches of CUDA graphs, by which `reduce-overhead` is known.
    pub graph_launches: u64,
}

const CATEGORIES: &[Category] = gpu_work_and![
    Category::CudaApi,
    Category::NvtxRange,
    Category::CpuOp,
    Category::Annotation,
    Category::Step,
    Category::PythonFunction,
    Category::Derived
];

impl Analysis for TorchCompile {
    const NAME: &'static str = "torch-compile";
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "torch.compile: compile time by phase, graph breaks with reason and remedy, recompiles, coverage; beside an eager capture the speed-up of each mode.";
    const TITLE: &'static str = "torch.compile";
    const GROUP: Group = Group::Compilation;
    const INPUTS: InputCount = InputCount::Many;
    const NEEDS: Needs = Needs::of(CATEGORIES)
        .columns(&[
            ColumnId::Launch,
            ColumnId::StepNumber,
            ColumnId::RangeStyle,
            ColumnId::InputShapes,
            ColumnId::InputTypes,
            ColumnId::PythonId,
            ColumnId::PythonParent,
        ])
        .rows()
        .names();
    type Params = TorchCompileParams;
    type Output = TorchCompileResult;

    fn run(inputs: &Inputs<'_>, params: &TorchCompileParams) -> Result<TorchCompileResult, AnalysisError> {
        let timelines: Vec<&Timeline> = inputs.all().iter().map(|input| input.timeline).collect();
        Ok(TorchCompileResult::of(&timelines, params))
    }

    fn page(output: &TorchCompileResult) -> Result<Page, AnalysisError> {
        Ok(page::of(Self::TITLE, Self::ABOUT, output))
    }
}

impl TorchCompileResult {
    /// Of `timelines`. Needs [`TorchCompile::NEEDS`](Analysis::NEEDS).
    pub fn of(timelines: &[&Timeline], params: &TorchCompileParams) -> Self {
        let labels: Vec<&str> = params.labels.split(',').map(str::trim).collect();
        let sides: Vec<side::Side<'_>> = (0_u32..)
            .zip(timelines)
            .map(|(input, timeline)| side::Side::of(timeline, input))
            .collect();
        let label = |at: usize| {
            let given = labels.get(at).filter(|label| !label.is_empty());
            given.map_or_else(|| format!("capture {}", at + 1), |label| (*label).to_owned())
        };
        let mut captures: Vec<CompileSide> = sides
            .iter()
            .enumerate()
            .map(|(at, side)| side.compared(label(at)))
            .collect();
        let eager = captures.iter().find(|side| !side.is_compiled);
        if let Some(eager_ns) = eager.and_then(|side| side.mean_iteration_ns) {
            for side in captures.iter_mut().filter(|side| side.is_compiled) {
                side.compare_to_eager(eager_ns);
            }
        }
        let mut result = Self {
            captures,
            ..Self::default()
        };
        let chosen = sides.iter().zip(0_u32..).find(|(side, _)| !side.compiled.is_empty());
        if let Some((side, input)) = chosen {
            result.input = Some(input);
            result.detail(side, params.limit);
        }
        result.explain(&sides);
        result
    }
}

impl CompileSide {
    /// Beside an eager capture with iterations of `eager_ns`.
    fn compare_to_eager(&mut self, eager_ns: u64) {
        let Some(mean_ns) = self.mean_iteration_ns.filter(|mean_ns| *mean_ns > 0) else {
            return;
        };
        let ns = |ns: u64| approximate(ns.into());
        self.speedup = Some(ns(eager_ns) / ns(mean_ns));
        self.iterations_to_pay_back =
            (eager_ns > mean_ns && self.compile_ns > 0).then(|| ns(self.compile_ns) / ns(eager_ns - mean_ns));
    }
}
