//! When GPUs and their streams did nothing, and why.

mod gaps;
mod page;

use flopwatch_measures::gap::{Gap, GapOptions, KERNEL_WAIT_NS, gaps};
use flopwatch_measures::gpu::{Gpu, GpuStream};
use flopwatch_measures::interval::Interval;
use flopwatch_measures::launch::{LaunchCoverage, LaunchJoin, WorkCalls};
use flopwatch_measures::thread_activity::HostActivity;
use flopwatch_measures::work::GpuWork;
use flopwatch_model::{Category, ColumnId, Needs, Timeline, gpu_work_and, index, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::launches::not_captured;
use crate::cut::cut;
use crate::definition::{Analysis, AnalysisError};
use crate::input::Inputs;

pub use self::gaps::{GapHolder, GapPart, IdleGap};
pub(crate) use self::gaps::{ThreadPiece, causes_of, host_wait_pieces};
pub use flopwatch_measures::gap::IdleClass;

/// Idle time of GPUs and streams, its classes, its causes on the host, and the largest gaps.
#[derive(Debug)]
pub struct Idle;

/// Parameters of [`Idle`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IdleParams {
    /// Gaps of work that was launched in time are the wait of one kernel for another where they are
    /// shorter than this, in ns.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub kernel_wait_ns: u64,
    /// Most gaps in the list of the largest.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u32,
    /// Most streams, those with most gaps.
    #[schemars(range(min = 1, max = 1000))]
    pub streams: u32,
}

impl Default for IdleParams {
    fn default() -> Self {
        Self {
            kernel_wait_ns: KERNEL_WAIT_NS,
            limit: 50,
            streams: 64,
        }
    }
}

/// The result of the analysis `idle`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct IdleTime {
    /// How much of the work has its call, which the classes are made of.
    pub coverage: LaunchCoverage,
    /// The GPUs: gaps in which none of a GPU's streams ran anything.
    pub gpus: Vec<IdleOfGpu>,
    /// The streams, each alone: while one is idle others may run. The one with most gaps first.
    pub streams: Vec<IdleOfStream>,
    /// Streams that were left out.
    pub streams_left_out: u64,
    /// Gaps of all GPUs by length.
    pub histogram: Vec<GapBucket>,
    /// The largest gaps of GPUs.
    pub gaps: Vec<IdleGap>,
    /// Gaps that were left out.
    pub gaps_left_out: u64,
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
}

/// Idle time of a GPU, from the first start to the last end of its work.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct IdleOfGpu {
    /// The GPU that was idle.
    pub gpu: Gpu,
    /// First start in ns since the session's start.
    pub start_ns: u64,
    /// Last end in ns.
    pub end_ns: u64,
    /// Idle time in ns: the sum of `classes`.
    pub idle_ns: u64,
    /// `idle_ns` of the time from start to end; null where that is no time.
    pub idle_ratio: Option<f64>,
    /// The classes, every one of them.
    pub classes: Vec<IdleOfClass>,
    /// What the launching threads did during the gaps of host wait; these add up to the time of
    /// that class.
    pub host_wait_causes: Vec<IdleCause>,
}

/// Idle time of a stream, from the first start to the last end of its work.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct IdleOfStream {
    /// The stream that was idle.
    pub stream: GpuStream,
    /// First start in ns since the session's start.
    pub start_ns: u64,
    /// Last end in ns.
    pub end_ns: u64,
    /// Idle time in ns: the sum of `classes`.
    pub idle_ns: u64,
    /// `idle_ns` of the time from start to end; null where that is no time.
    pub idle_ratio: Option<f64>,
    /// The classes, every one of them.
    pub classes: Vec<IdleOfClass>,
}

/// Gaps of a class.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct IdleOfClass {
    /// What the GPU waited for in these gaps.
    pub class: IdleClass,
    /// How many gaps.
    pub gaps: u64,
    /// Length of the gaps, in ns.
    pub idle_ns: u64,
    /// `idle_ns` of all idle time; null where there is none.
    pub idle_ratio: Option<f64>,
}

/// What launching threads did while a GPU waited for the host.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct IdleCause {
    /// What a launching thread did meanwhile.
    pub activity: HostActivity,
    /// For how long in ns.
    pub idle_ns: u64,
    /// `idle_ns` of the idle time of host wait.
    pub host_wait_ratio: Option<f64>,
}

/// Gaps of about one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GapBucket {
    /// Shortest in ns.
    pub from_ns: u64,
    /// The length in ns that is no longer among them; null of the last bucket.
    pub to_ns: Option<u64>,
    /// How many gaps.
    pub gaps: u64,
    /// Length of the gaps, in ns.
    pub idle_ns: u64,
}

/// Bounds between the buckets of [`GapBucket`] in ns.
const BOUNDS: [u64; 13] = [
    0,
    1000,
    3000,
    10_000,
    30_000,
    100_000,
    300_000,
    1_000_000,
    3_000_000,
    10_000_000,
    30_000_000,
    100_000_000,
    1_000_000_000,
];

fn classes(gaps: &[Gap]) -> (u64, Vec<IdleOfClass>) {
    let idle_ns = gaps.iter().map(|gap| gap.time.len()).sum();
    let of = |class| {
        let gaps = gaps.iter().filter(|gap| gap.class == class);
        let of_class: u64 = gaps.clone().map(|gap| gap.time.len()).sum();
        IdleOfClass {
            class,
            gaps: u64::try_from(gaps.count()).unwrap_or(u64::MAX),
            idle_ns: of_class,
            idle_ratio: ratio(of_class, idle_ns),
        }
    };
    (idle_ns, IdleClass::ALL.map(of).to_vec())
}

fn histogram(gaps: &[Gap]) -> Vec<GapBucket> {
    let bounds = BOUNDS
        .iter()
        .copied()
        .zip(BOUNDS.iter().copied().skip(1).map(Some).chain([None]));
    let mut buckets: Vec<GapBucket> = bounds
        .map(|(from_ns, to_ns)| GapBucket {
            from_ns,
            to_ns,
            gaps: 0,
            idle_ns: 0,
        })
        .collect();
    for gap in gaps {
        let length = gap.time.len();
        let bucket_number = BOUNDS.partition_point(|from| *from <= length).saturating_sub(1);
        if let Some(bucket) = buckets.get_mut(bucket_number) {
            bucket.gaps += 1;
            bucket.idle_ns += length;
        }
    }
    buckets
}

fn span(all: &GpuWork, gpu_ops: &[u32]) -> Interval {
    let times = gpu_ops
        .iter()
        .filter_map(|at| all.all().get(index(*at)))
        .map(|work| work.time);
    let start = times.clone().map(|time| time.start).min().unwrap_or(0);
    Interval::new(start, times.map(|time| time.end).max().unwrap_or(0))
}

impl Idle {
    /// Of `timeline`, of which everything that the analysis needs was read.
    pub fn of(timeline: &Timeline, params: &IdleParams) -> IdleTime {
        let all = GpuWork::of(timeline);
        let joined = LaunchJoin::of(timeline, &all);
        let calls = WorkCalls::of(timeline, &all);
        let host = gaps::Host::of(timeline, &all, &calls);
        let options = GapOptions {
            kernel_wait_ns: params.kernel_wait_ns,
            from_ns: None,
        };
        let mut of_gpus: Vec<(Gpu, Gap)> = Vec::new();
        let mut gpus = Vec::new();
        for (gpu, gpu_ops) in all.places_by(|row| Gpu::of_row(timeline, row)) {
            let found = gaps(&all, &gpu_ops, &calls, options);
            let window = span(&all, &gpu_ops);
            let (idle_ns, classes) = classes(&found);
            gpus.push(IdleOfGpu {
                gpu,
                start_ns: window.start,
                end_ns: window.end,
                idle_ns,
                idle_ratio: ratio(idle_ns, window.len()),
                classes,
                host_wait_causes: host.causes(&found),
            });
            of_gpus.extend(found.into_iter().map(|gap| (gpu, gap)));
        }
        let mut streams: Vec<IdleOfStream> = all
            .places_by(|row| GpuStream::of_row(timeline, row))
            .into_iter()
            .map(|(stream, gpu_ops)| {
                let found = gaps(&all, &gpu_ops, &calls, options);
                let window = span(&all, &gpu_ops);
                let (idle_ns, classes) = classes(&found);
                IdleOfStream {
                    stream,
                    start_ns: window.start,
                    end_ns: window.end,
                    idle_ns,
                    idle_ratio: ratio(idle_ns, window.len()),
                    classes,
                }
            })
            .collect();
        let count = |stream: &IdleOfStream| stream.classes.iter().map(|class| class.gaps).sum::<u64>();
        streams.sort_by_key(|stream| (std::cmp::Reverse(count(stream)), stream.stream));
        let streams_left_out = cut(&mut streams, params.streams);
        let list: Vec<Gap> = of_gpus.iter().map(|(_, gap)| *gap).collect();
        of_gpus.sort_by_key(|(gpu, gap)| (std::cmp::Reverse(gap.time.len()), gap.time.start, *gpu));
        let gaps_left_out = cut(&mut of_gpus, params.limit);
        IdleTime {
            coverage: joined.coverage(),
            gpus,
            streams,
            streams_left_out,
            histogram: histogram(&list),
            gaps: host.idle_gaps(&of_gpus),
            gaps_left_out,
            not_captured: not_captured(timeline, "idle time by its classes"),
        }
    }
}

const NEEDED: &[Category] = gpu_work_and![
    Category::CudaApi,
    Category::OsRuntime,
    Category::Overhead,
    Category::CpuOp,
    Category::NvtxRange,
    Category::Annotation,
    Category::Step
];

impl Analysis for Idle {
    const NAME: &'static str = "idle";
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "When GPUs and their streams did nothing, whether the host was late, and what the launching threads did meanwhile.";
    const TITLE: &'static str = "Idle time";
    const GROUP: crate::Group = crate::Group::GpuTime;
    const NEEDS: Needs = Needs::of(NEEDED)
        .columns(&[ColumnId::Launch, ColumnId::RangeStyle])
        .names()
        .rows();
    type Params = IdleParams;
    type Output = IdleTime;

    fn run(inputs: &Inputs<'_>, params: &IdleParams) -> Result<IdleTime, AnalysisError> {
        Ok(Self::of(inputs.first(), params))
    }

    fn page(output: &IdleTime) -> Result<Page, AnalysisError> {
        Ok(page::of(output))
    }
}

#[cfg(test)]
mod tests;
