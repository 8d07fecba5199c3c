//! When GPUs and their streams did nothing, and why.

mod gaps;
mod page;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::launches::not_captured;
use crate::definition::{Analysis, AnalysisError, InputCount};
use crate::input::Inputs;
use crate::measures::enclosing::Threads;
use crate::measures::exclusive_time::ratio;
use crate::measures::gpu::{Gpu, GpuStream};
use crate::measures::interval::Interval;
use crate::measures::launch::{Joined, LaunchCoverage};
use crate::measures::thread_activity::{HostActivity, ThreadActivities};
use crate::measures::work::GpuWork;
use crate::model::{Category, ColumnId, Timeline, index};
use crate::needs::{Needs, Selection};
use crate::not_captured::NotCaptured;
use crate::page::Page;

pub use gaps::{GapHolder, GapPart, IdleGap};

/// Idle time of GPUs and streams, its classes, its causes on the host, and the largest gaps.
#[derive(Debug)]
pub struct Idle;

/// Parameters of [`Idle`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IdleParams {
    /// Gaps of work that was launched in time are the wait of one kernel for another where they are shorter than this, in ns.
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
            kernel_wait_ns: 30_000,
            limit: 50,
            streams: 64,
        }
    }
}

/// Why a gap is there, as HolisticTraceAnalysis tells it, from the work that ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdleClass {
    /// The work was launched only after the work before it had ended: the host was late.
    HostWait,
    /// The work was launched in time and began within the threshold: the price of one kernel after another.
    KernelWait,
    /// The work was launched in time and began later than the threshold: it waited for an event, another stream, another GPU or memory.
    Other,
    /// The call that launched the work was not recorded.
    LaunchNotRecorded,
}

impl IdleClass {
    /// Every class, in published order.
    pub const ALL: [Self; 4] = [Self::HostWait, Self::KernelWait, Self::Other, Self::LaunchNotRecorded];

    /// For people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::HostWait => "host wait",
            Self::KernelWait => "kernel wait",
            Self::Other => "other",
            Self::LaunchNotRecorded => "launch not recorded",
        }
    }
}

/// The result.
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
    /// What has no figures, and why.
    pub not_captured: Vec<NotCaptured>,
}

/// Idle time of a GPU, from the first start to the last end of its work.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct IdleOfGpu {
    /// Which.
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
    /// What the launching threads did during the gaps of host wait; these add up to the time of that class.
    pub host_wait_causes: Vec<IdleCause>,
}

/// Idle time of a stream, from the first start to the last end of its work.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct IdleOfStream {
    /// Which.
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
    /// Which.
    pub class: IdleClass,
    /// How many gaps.
    pub gaps: u64,
    /// Their length in ns.
    pub idle_ns: u64,
    /// `idle_ns` of all idle time; null where there is none.
    pub idle_ratio: Option<f64>,
}

/// What launching threads did while a GPU waited for the host.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct IdleCause {
    /// What.
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
    /// Their length in ns.
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

/// A gap, and where the launches of its GPU are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gap {
    time: Interval,
    class: IdleClass,
    /// Place of the work that ends before it, in the order of all work.
    before: u32,
    /// Place of the work that ends it.
    after: u32,
}

/// The gaps between `works`, places in `all` in the order of starts.
fn gaps(all: &GpuWork, works: &[u32], calls: &[Option<Interval>], kernel_wait_ns: u64) -> Vec<Gap> {
    let work = |at: u32| all.all().get(index(at));
    let mut found = Vec::new();
    let mut last: Option<(u64, u32)> = None;
    for at in works {
        let Some(time) = work(*at).map(|work| work.time) else {
            continue;
        };
        let end = time.end.max(time.start);
        let Some((until, before)) = last else {
            last = Some((end, *at));
            continue;
        };
        if time.start > until {
            let gap = Interval::new(until, time.start);
            let class = match calls.get(index(*at)).copied().flatten() {
                None => IdleClass::LaunchNotRecorded,
                Some(call) if call.start > until => IdleClass::HostWait,
                Some(_) if gap.len() < kernel_wait_ns => IdleClass::KernelWait,
                Some(_) => IdleClass::Other,
            };
            found.push(Gap {
                time: gap,
                class,
                before,
                after: *at,
            });
        }
        if end >= until {
            last = Some((end, *at));
        }
    }
    found
}

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
        let place = BOUNDS.partition_point(|from| *from <= length).saturating_sub(1);
        if let Some(bucket) = buckets.get_mut(place) {
            bucket.gaps += 1;
            bucket.idle_ns += length;
        }
    }
    buckets
}

/// The works of each group, in the order of starts, as places in `all`.
fn grouped<K: Ord>(all: &GpuWork, key: impl Fn(u32) -> Option<K>) -> BTreeMap<K, Vec<u32>> {
    let mut groups: BTreeMap<K, Vec<u32>> = BTreeMap::new();
    for (at, work) in (0_u32..).zip(all.all()) {
        if let Some(key) = key(work.row) {
            groups.entry(key).or_default().push(at);
        }
    }
    groups
}

fn span(all: &GpuWork, works: &[u32]) -> Interval {
    let times = works
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
        let joined = Joined::of(timeline, &all);
        let calls = gaps::calls(timeline, &all);
        let threads = Threads::of(timeline);
        let host = gaps::Host {
            timeline,
            all: &all,
            calls: &calls,
            threads: &threads,
            activities: ThreadActivities::of(timeline, &threads),
        };
        let call_times: Vec<Option<Interval>> = calls.iter().map(|call| call.map(|(_, time)| time)).collect();
        let mut of_gpus: Vec<(Gpu, Gap)> = Vec::new();
        let mut gpus = Vec::new();
        for (gpu, works) in grouped(&all, |row| Gpu::of_row(timeline, row)) {
            let found = gaps(&all, &works, &call_times, params.kernel_wait_ns);
            let window = span(&all, &works);
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
        let mut streams: Vec<IdleOfStream> = grouped(&all, |row| GpuStream::of_row(timeline, row))
            .into_iter()
            .map(|(stream, works)| {
                let found = gaps(&all, &works, &call_times, params.kernel_wait_ns);
                let window = span(&all, &works);
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
        let streams_left_out = streams.len().saturating_sub(index(params.streams));
        streams.truncate(index(params.streams));
        let list: Vec<Gap> = of_gpus.iter().map(|(_, gap)| *gap).collect();
        of_gpus.sort_by_key(|(gpu, gap)| (std::cmp::Reverse(gap.time.len()), gap.time.start, *gpu));
        let gaps_left_out = of_gpus.len().saturating_sub(index(params.limit));
        of_gpus.truncate(index(params.limit));
        IdleTime {
            coverage: joined.coverage(),
            gpus,
            streams,
            streams_left_out: u64::try_from(streams_left_out).unwrap_or(u64::MAX),
            histogram: histogram(&list),
            gaps: host.told(&of_gpus),
            gaps_left_out: u64::try_from(gaps_left_out).unwrap_or(u64::MAX),
            not_captured: not_captured(timeline, "idle time by its classes"),
        }
    }
}

const NEEDED: &[Category] = &[
    Category::CudaKernel,
    Category::CudaMemcpyH2d,
    Category::CudaMemcpyD2h,
    Category::CudaMemcpyD2d,
    Category::CudaMemcpyP2p,
    Category::CudaMemcpyOther,
    Category::CudaMemset,
    Category::CudaApi,
    Category::OsRuntime,
    Category::Overhead,
    Category::CpuOp,
    Category::NvtxRange,
    Category::Annotation,
    Category::Step,
];

impl Analysis for Idle {
    const NAME: &'static str = "idle";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "When GPUs and their streams did nothing, whether the host was late, and what the launching threads did meanwhile.";
    const GROUP: crate::Group = crate::Group::GpuTime;
    const INPUTS: InputCount = InputCount::One;
    const NEEDS: Needs = Needs {
        categories: Selection::Only(NEEDED),
        columns: Selection::Only(&[ColumnId::Launch, ColumnId::RangeStyle]),
        names: true,
        rows: true,
        ..Needs::NOTHING
    };
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
