//! Where the time went, by the stack of ranges, operators and functions of Python, and what samples
//! of the CPU were taken in: flame graphs, and files of them for other programs.

pub(crate) mod drawn;
mod folded;
pub(crate) mod page;
#[cfg(feature = "export")]
pub(crate) mod pprof;
mod speedscope;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::time::Duration;

use flopwatch_measures::flame::{
    Cut, Flame, FlameCoverage, FlameGrouping, FlameOptions, FlameRow, FlameStacks, FlameTree, FlameWeight, FrameKind,
    Side,
};
use flopwatch_measures::interval::Interval;
use flopwatch_measures::work::GPU_WORK;
use flopwatch_model::{Category, ColumnId, Needs, Timeline, gpu_work_and, index};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError, FileAnalysis};
use crate::group::Group;
use crate::input::Inputs;

/// A flame graph.
#[derive(Debug)]
pub struct FlameGraphAnalysis;

/// The stacks of a flame graph as text.
#[derive(Debug)]
pub struct FlameFolded;

/// The stacks of a flame graph as a profile of pprof.
#[derive(Debug)]
pub struct FlamePprof;

/// The stacks of a flame graph as a profile of speedscope.
#[derive(Debug)]
pub struct FlameSpeedscope;

/// Parameters of [`FlameGraphAnalysis`], of its files, and of differences of two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FlameParams {
    /// Which time the graph is made of.
    pub weight: FlameWeight,
    /// Which frames stacks are made of; those of samples are always the functions that called each
    /// other.
    pub stacks: FlameStacks,
    /// What the outermost frames stand for.
    pub group_by: FlameGrouping,
    /// Frames whose time in a stack, over the whole capture, is less than this, in µs, are summed
    /// into a frame `(shorter frames)`; GPU operations into `(small kernels)`. Samples have no
    /// length: of them nothing is summed by it.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub min_duration_us: f64,
    /// Most frames around each other; what is deeper is summed into a frame `(deeper frames)`.
    #[schemars(range(min = 1, max = 500))]
    pub max_depth: u32,
    /// Whether short GPU operations are summed, too; otherwise each kernel of a stack that is kept
    /// has its frame.
    pub group_small_kernels: bool,
    /// Whether steps, ranges, annotations and operators whose names differ in numbers alone are one
    /// frame, as `Step *`.
    pub merge_numbered: bool,
    /// Only time behind this, in ns since the session's start.
    pub from_ns: Option<u64>,
    /// Only time before this, in ns.
    pub to_ns: Option<u64>,
    /// Most frames; with more the shortest are summed.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub limit: u32,
}

impl Default for FlameParams {
    fn default() -> Self {
        Self {
            weight: FlameWeight::Gpu,
            stacks: FlameStacks::All,
            group_by: FlameGrouping::None,
            min_duration_us: 10.0,
            max_depth: 50,
            group_small_kernels: true,
            merge_numbered: true,
            from_ns: None,
            to_ns: None,
            limit: 20_000,
        }
    }
}

impl FlameParams {
    pub(crate) fn options(&self) -> FlameOptions {
        let window = Interval::new(self.from_ns.unwrap_or(0), self.to_ns.unwrap_or(u64::MAX));
        FlameOptions {
            weight: self.weight,
            stacks: self.stacks,
            group_by: self.group_by,
            merge_numbered: self.merge_numbered,
            window: (self.from_ns.is_some() || self.to_ns.is_some()).then_some(window),
        }
    }

    pub(crate) fn cut(&self) -> Cut {
        let shortest = Duration::try_from_secs_f64(self.min_duration_us / 1e6).unwrap_or_default();
        let min_ns = match self.weight {
            FlameWeight::Gpu | FlameWeight::Cpu => u64::try_from(shortest.as_nanos()).unwrap_or(u64::MAX),
            // A sample has no length.
            FlameWeight::Samples => 0,
        };
        Cut {
            min_ns,
            max_depth: self.max_depth,
            group_small_kernels: self.group_small_kernels,
            limit: index(self.limit),
        }
    }
}

/// The result. Its `name`, `value` and `children` are what d3-flame-graph draws.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FlameGraph {
    /// `all`.
    pub name: String,
    /// All time in ns: of GPUs the lengths of all GPU operations, added up; of the CPU the time of
    /// each thread inside any frame, added up. With `weight` `samples` all figures of time count
    /// samples: here how many there are.
    pub value: u64,
    /// Which time it is.
    pub weight: FlameWeight,
    /// Frames in the result, without the outermost.
    pub frames: u64,
    /// Frames of stacks that were summed: no time is lost by it.
    pub frames_summed: u64,
    /// Frames whose time in a stack is less than this, in ns, were summed.
    pub summed_below_ns: u64,
    /// GPU operations; 0 of the CPU's time.
    pub gpu_ops: u64,
    /// GPU operations whose launch was not captured: they are in the frame `(launch not captured)`.
    pub gpu_ops_without_launch: u64,
    /// Time of the work without a launch, in ns.
    pub without_launch_ns: u64,
    /// NVTX ranges of start/end style: they do not nest, and are no frames.
    pub start_end_ranges: u64,
    /// The outermost frames, the longest first.
    pub children: Vec<FlameFrame>,
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    #[serde(skip)]
    #[schemars(skip)]
    flame: Flame,
}

/// A frame: equal stacks are merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FlameFrame {
    /// Name of the frame.
    pub name: String,
    /// The kind of the frame.
    pub kind: FrameKind,
    /// Its time in ns, with that of the frames inside it.
    pub value: u64,
    /// Its time in ns without that of the frames inside it.
    pub self_ns: u64,
    /// GPU operations in it; of the CPU's time how often it ran; of samples how many there are.
    pub count: u64,
    /// The frames inside it, the longest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub children: Vec<Self>,
}

/// What flame graphs read.
pub(crate) const NEEDS: Needs = Needs::of(gpu_work_and![
    Category::DeviceOp,
    Category::CudaApi,
    Category::Step,
    Category::NvtxRange,
    Category::Annotation,
    Category::PythonFunction,
    Category::CpuOp,
    Category::CpuSample,
])
.columns(&[
    ColumnId::Launch,
    ColumnId::RangeStyle,
    ColumnId::PythonId,
    ColumnId::CallStack,
])
.call_stacks()
.names()
.rows();

/// What `timeline` lacks for a flame graph.
pub(crate) fn missing(timeline: &Timeline, params: &FlameParams) -> Vec<NotCaptured> {
    let capture = &timeline.capture;
    let unless = |categories: &[Category], what| NotCaptured::unless_any(capture, categories, what);
    let stacks = params.stacks.categories(params.weight);
    let missing = match params.weight {
        FlameWeight::Cpu => [unless(stacks, "time of the CPU"), None, None],
        FlameWeight::Samples => [unless(stacks, "samples of the CPU"), None, None],
        FlameWeight::Gpu => {
            // Where operations are on no stream, as on TPUs, no call launches them.
            let has_streams = GPU_WORK.iter().any(|category| capture.captured.contains(category));
            let unless_of_streams =
                |categories: &[Category], what| has_streams.then(|| unless(categories, what)).flatten();
            [
                unless(gpu_work_and![Category::DeviceOp], "time of GPUs"),
                unless_of_streams(stacks, "stacks of GPU operations"),
                unless_of_streams(&[Category::CudaApi], "the calls that launched GPU operations"),
            ]
        }
    };
    missing.into_iter().flatten().collect()
}

/// The flame graph of a capture, and what went into it.
pub(crate) fn flame_of(timeline: &Timeline, params: &FlameParams) -> (Flame, FlameCoverage) {
    let mut tree = FlameTree::default();
    let coverage = tree.add(timeline, &params.options(), Side::Before);
    (tree.cut(&params.cut()), coverage)
}

impl FlameGraphAnalysis {
    /// Of `timeline`.
    pub fn of(timeline: &Timeline, params: &FlameParams) -> FlameGraph {
        let (flame, coverage) = flame_of(timeline, params);
        let count = |row: &FlameRow| match params.weight {
            FlameWeight::Gpu | FlameWeight::Samples => Side::Before.of(row.total_count),
            FlameWeight::Cpu => Side::Before.of(row.count),
        };
        let shown = |row: &FlameRow, children: Vec<FlameFrame>| FlameFrame {
            name: flame.frame(row).map(|frame| frame.name.clone()).unwrap_or_default(),
            kind: flame.frame(row).map_or(FrameKind::Rest, |frame| frame.kind),
            value: Side::Before.of(row.total_ns),
            self_ns: Side::Before.of(row.own_ns),
            count: count(row),
            children,
        };
        let children = nested(&flame, shown);
        FlameGraph {
            name: "all".to_owned(),
            value: Side::Before.of(flame.total_ns()),
            weight: params.weight,
            frames: u64::try_from(flame.rows.len().saturating_sub(1)).unwrap_or(u64::MAX),
            frames_summed: flame.summed,
            summed_below_ns: flame.shortest_ns,
            gpu_ops: coverage.gpu_ops,
            gpu_ops_without_launch: coverage.unlaunched_ops,
            without_launch_ns: coverage.unlaunched_ns,
            start_end_ranges: coverage.start_end_ranges,
            children,
            not_captured: missing(timeline, params),
            flame,
        }
    }
}

/// The rows of `flame` below the first, each made by `of` of itself and those inside it.
pub(crate) fn nested<T>(flame: &Flame, of: impl Fn(&FlameRow, Vec<T>) -> T) -> Vec<T> {
    // From the last row to the first: what was made and is not inside another yet, by its depth.
    let mut made: Vec<Vec<T>> = Vec::new();
    for row in flame.rows.iter().skip(1).rev() {
        let depth = index(row.depth);
        made.resize_with(made.len().max(depth + 2), Vec::new);
        let mut inside = made.get_mut(depth + 1).map(std::mem::take).unwrap_or_default();
        inside.reverse();
        let whole = of(row, inside);
        if let Some(beside) = made.get_mut(depth) {
            beside.push(whole);
        }
    }
    let mut outermost = made.into_iter().nth(1).unwrap_or_default();
    outermost.reverse();
    outermost
}

impl Analysis for FlameGraphAnalysis {
    const NAME: &'static str = "flame-graph";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "Time of GPUs or of the CPU, or samples of it, by the stack of ranges, operators and functions.";
    const TITLE: &'static str = "Flame graph";
    const GROUP: Group = Group::Stacks;
    const NEEDS: Needs = NEEDS;
    type Params = FlameParams;
    type Output = FlameGraph;

    fn run(inputs: &Inputs<'_>, params: &FlameParams) -> Result<FlameGraph, AnalysisError> {
        Ok(Self::of(inputs.first(), params))
    }

    fn page(output: &FlameGraph) -> Result<Page, AnalysisError> {
        Ok(page::of_graph(output, Self::TITLE, Self::ABOUT))
    }
}

impl FileAnalysis for FlameFolded {
    const NAME: &'static str = "flame-folded";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "The flame graph as folded stacks in ns, or in samples, for flamegraph.pl, Perfetto and others.";
    const TITLE: &'static str = "Flame graph as folded stacks";
    const NEEDS: Needs = NEEDS;
    const MEDIA_TYPE: &'static str = "text/plain; charset=utf-8";
    const FILE_NAME: &'static str = "flame.folded";
    const MAY_BE_ABSENT: bool = true;
    type Params = FlameParams;

    fn write(inputs: &Inputs<'_>, params: &FlameParams, out: &mut dyn Write) -> Result<(), AnalysisError> {
        let (flame, _) = flame_of(inputs.first(), params);
        Ok(folded::write(&flame, out)?)
    }
}

impl FileAnalysis for FlameSpeedscope {
    const NAME: &'static str = "flame-speedscope";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "The flame graph as a profile of https://www.speedscope.app.";
    const TITLE: &'static str = "Flame graph for speedscope";
    const NEEDS: Needs = NEEDS;
    const MEDIA_TYPE: &'static str = "application/json";
    const FILE_NAME: &'static str = "flame.speedscope.json";
    type Params = FlameParams;

    fn write(inputs: &Inputs<'_>, params: &FlameParams, out: &mut dyn Write) -> Result<(), AnalysisError> {
        let (flame, _) = flame_of(inputs.first(), params);
        speedscope::write(&flame, &inputs.first().session_id, params.weight, out)
    }
}

impl FileAnalysis for FlamePprof {
    const NAME: &'static str = "flame-pprof";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "The flame graph as a profile of pprof, for `go tool pprof`, Pyroscope and others.";
    const TITLE: &'static str = "Flame graph for pprof";
    const NEEDS: Needs = NEEDS;
    const MEDIA_TYPE: &'static str = "application/vnd.google.protobuf+gzip";
    const FILE_NAME: &'static str = "flame.pb.gz";
    type Params = FlameParams;

    #[cfg(feature = "export")]
    fn write(inputs: &Inputs<'_>, params: &FlameParams, out: &mut dyn Write) -> Result<(), AnalysisError> {
        let (flame, _) = flame_of(inputs.first(), params);
        Ok(pprof::write(&flame, params.weight, pprof::before, out)?)
    }

    #[cfg(not(feature = "export"))]
    fn write(_inputs: &Inputs<'_>, _params: &FlameParams, _out: &mut dyn Write) -> Result<(), AnalysisError> {
        Err(AnalysisError::NotBuilt)
    }
}
