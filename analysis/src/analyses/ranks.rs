//! The ranks of one job side by side: what each GPU's time went to, how long its iterations are,
//! and which rank is behind.

mod page;
mod rank;

use std::collections::BTreeMap;

use flopwatch_measures::collective_columns_and;
use flopwatch_measures::exclusive_time::ExclusiveTime;
use flopwatch_measures::interval::Interval;
use flopwatch_measures::iteration::IterateBy;
use flopwatch_measures::kernel_class::WorkClass;
use flopwatch_measures::work::GPU_WORK;
use flopwatch_model::{Category, ColumnId, Needs, Selection, Timeline, gpu_work_and, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, TimelineLocation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::rank::{RankCapture, RankInputs};
use super::stragglers::WaitedFor;
use crate::cut::cut;
use crate::definition::{Analysis, AnalysisError, InputCount};
use crate::group::Group;
use crate::input::Inputs;

/// Several captures of one job side by side, each GPU a rank.
#[derive(Debug)]
pub struct Ranks;

/// Parameters of [`Ranks`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RanksParams {
    /// How iterations are found.
    pub by: IterateBy,
    /// The NVTX range or annotation that is an iteration; empty to find it.
    #[schemars(length(max = 1024))]
    pub range: String,
    /// Most kernels in the result, those with the longest time over all ranks.
    #[schemars(range(min = 1, max = 10_000))]
    pub kernels: u32,
    /// Most iterations in the result, the earliest.
    #[schemars(range(min = 1, max = 100_000))]
    pub limit: u32,
}

impl Default for RanksParams {
    fn default() -> Self {
        Self {
            by: IterateBy::Auto,
            range: String::new(),
            kernels: 20,
            limit: 200,
        }
    }
}

/// The result of the analysis `ranks`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RanksResult {
    /// The ranks, by input and GPU. Other lists name a rank by its place here.
    pub ranks: Vec<Rank>,
    /// The rank whose iterations are the longest, by the mean; null with fewer than two ranks with
    /// iterations.
    pub slowest: Option<SlowestRank>,
    /// The rank that the others wait for in collectives: the one that waits least, as `stragglers`
    /// tells it. Collectives make all iterations equally long, so that their length shows nothing
    /// of it. Null where no collective is matched between ranks, and where all wait equally long.
    pub straggler: Option<WaitedRank>,
    /// The kernels with the longest time over all ranks.
    pub kernels: Vec<RankKernel>,
    /// Kernels behind those.
    pub kernels_left_out: u64,
    /// Iterations by their number, of those that every rank with iterations has.
    pub pace: Vec<RankIteration>,
    /// Iterations behind those.
    pub pace_left_out: u64,
    /// What may be wrong with the iterations, in sentences.
    pub cautions: Vec<String>,
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
}

/// A GPU of a capture.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Rank {
    /// The capture, counted from 0 in the order in which they were named.
    pub input: u32,
    /// The capture's session.
    pub session_id: String,
    /// The GPU within it, for people.
    pub gpu: String,
    /// How long after the earliest capture this one began, in ns; null unless every capture says
    /// when it began.
    pub started_after_ns: Option<u64>,
    /// What its time went to, from its first work to its last.
    pub time: ExclusiveTime,
    /// Idle time over that window.
    pub idle_ratio: Option<f64>,
    /// Exposed communication over that window.
    pub exposed_communication_ratio: Option<f64>,
    /// Iterations that launched work to it.
    pub iterations: u64,
    /// Mean length of an iteration in ns; null without any.
    pub mean_iteration_ns: Option<f64>,
    /// Shortest iteration in ns.
    pub min_iteration_ns: Option<u64>,
    /// Longest iteration in ns.
    pub max_iteration_ns: Option<u64>,
    /// Mean time of an iteration in ns that is not exposed communication: what the rank itself
    /// takes.
    pub mean_own_ns: Option<f64>,
    /// Kernels that ran.
    pub kernels: u64,
    /// Where its work is in its timeline.
    pub place: Option<TimelineLocation>,
}

/// The rank that takes longest.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SlowestRank {
    /// Its place among the ranks.
    pub rank: u32,
    /// Its mean time in ns.
    pub mean_ns: f64,
    /// How much longer in ns than the median rank.
    pub behind_ns: f64,
    /// The same in percent of the median rank.
    pub behind_percent: f64,
}

/// The rank that the others wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WaitedRank {
    /// Its place among the ranks.
    pub rank: u32,
    /// Sum of its waits for the last rank in ns.
    pub wait_ns: u64,
    /// The same of the rank that waits longest.
    pub longest_wait_ns: u64,
}

/// A kernel on every rank.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RankKernel {
    /// Name of the kernel.
    pub name: String,
    /// What it is for.
    pub class: WorkClass,
    /// Time in ns on each rank, in their order.
    pub total_ns: Vec<u64>,
    /// Launches on each rank.
    pub launches: Vec<u64>,
    /// The rank with the longest time.
    pub slowest: u32,
    /// The longest time over the mean of the ranks; null of no time.
    pub imbalance_ratio: Option<f64>,
}

/// An iteration on every rank.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RankIteration {
    /// Its number, as the ranks have it.
    pub number: u64,
    /// Its length in ns on each rank; null on one without iterations.
    pub length_ns: Vec<Option<u64>>,
    /// The longest less the shortest, in ns.
    pub spread_ns: u64,
    /// The rank with the longest.
    pub slowest: u32,
    /// The latest start less the earliest, in ns, by the clocks of the captures; null unless every
    /// capture says when it began.
    pub start_spread_ns: Option<u64>,
    /// Where it is in the timeline of the slowest rank.
    pub place: TimelineLocation,
}

impl Analysis for Ranks {
    const NAME: &'static str = "ranks";
    const VERSION: u32 = 2;
    const ABOUT: &'static str =
        "The ranks of one job side by side: what each GPU's time went to, its iterations, and which rank is behind.";
    const INPUTS: InputCount = InputCount::Many;
    const TITLE: &'static str = "Ranks";
    const GROUP: Group = Group::Ranks;
    const NEEDS: Needs = Needs {
        // Those of iterations and of collectives.
        categories: Selection::Only(gpu_work_and![
            Category::CudaApi,
            Category::CpuOp,
            Category::NvtxRange,
            Category::Annotation,
            Category::Step,
            Category::Derived,
        ]),
        columns: Selection::Only(collective_columns_and![ColumnId::StepNumber]),
        rows: true,
        names: true,
        ..Needs::NOTHING
    };
    type Params = RanksParams;
    type Output = RanksResult;

    fn run(inputs: &Inputs<'_>, params: &RanksParams) -> Result<RanksResult, AnalysisError> {
        let timelines: Vec<&Timeline> = inputs.all().iter().map(|input| input.timeline).collect();
        Ok(of(&timelines, params))
    }

    fn page(output: &RanksResult) -> Result<Page, AnalysisError> {
        Ok(page::of(output))
    }
}

/// The ranks of `timelines`. Needs [`Ranks::NEEDS`].
pub fn of(timelines: &[&Timeline], params: &RanksParams) -> RanksResult {
    let captures: Vec<RankCapture<'_>> = (0..)
        .zip(timelines)
        .map(|(input, timeline)| RankCapture::of(timeline, input, params))
        .collect();
    let starts: Option<Vec<u64>> = timelines
        .iter()
        .map(|timeline| timeline.capture.session_start_utc_ns)
        .collect();
    let earliest = starts.and_then(|starts| starts.into_iter().min());
    let found: Vec<RankInputs<'_>> = captures.iter().flat_map(|capture| capture.ranks(earliest)).collect();
    let not_captured = missing(timelines, &captures, &found, earliest.is_some());
    let (kernels, kernels_left_out) = kernels(&found, params);
    let (pace, pace_left_out) = pace(&found, params);
    let straggler = waited_for(timelines, &found);
    let ranks: Vec<Rank> = found.into_iter().map(|found| found.rank).collect();
    RanksResult {
        slowest: slowest(ranks.iter().map(|rank| rank.mean_iteration_ns)),
        straggler,
        ranks,
        kernels,
        kernels_left_out,
        pace,
        pace_left_out,
        cautions: cautions(&captures),
        not_captured,
    }
}

/// What may be wrong with the iterations of any capture, each sentence once.
fn cautions(captures: &[RankCapture<'_>]) -> Vec<String> {
    let mut cautions: Vec<String> = Vec::new();
    for caution in captures.iter().flat_map(RankCapture::cautions) {
        if !cautions.contains(caution) {
            cautions.push(caution.clone());
        }
    }
    cautions
}

fn missing(
    timelines: &[&Timeline],
    captures: &[RankCapture<'_>],
    found: &[RankInputs<'_>],
    aligned: bool,
) -> Vec<NotCaptured> {
    let mut missing = Vec::new();
    for (input, timeline) in timelines.iter().enumerate() {
        let what = format!("the GPUs of capture {input}");
        let none = || {
            let has = found.iter().any(|found| usize::try_from(found.rank.input) == Ok(input));
            (!has).then(|| {
                NotCaptured::new(
                    &what,
                    "no work of a GPU was recorded; check that the capture's window holds some",
                )
            })
        };
        missing.extend(NotCaptured::unless_any(&timeline.capture, GPU_WORK, &what).or_else(none));
    }
    missing.extend(captures.iter().filter_map(RankCapture::not_found));
    if timelines.len() > 1 && !aligned {
        let reason = "a capture does not say when it began, so that starts on different ranks cannot be compared";
        missing.push(NotCaptured::new("times across captures", reason));
    }
    missing
}

/// The rank that the others wait for in collectives.
fn waited_for(timelines: &[&Timeline], found: &[RankInputs<'_>]) -> Option<WaitedRank> {
    let waited = WaitedFor::of(timelines)?;
    let (rank, _) = (0_u32..)
        .zip(found)
        .find(|(_, found)| (found.rank.input, found.gpu) == (waited.input, waited.gpu))?;
    Some(WaitedRank {
        rank,
        wait_ns: waited.wait_ns,
        longest_wait_ns: waited.longest_wait_ns,
    })
}

/// The rank with the longest time, and how far it is behind the median one; of ranks without a time
/// nothing is known.
fn slowest(times: impl Iterator<Item = Option<f64>>) -> Option<SlowestRank> {
    let known = (0_u32..).zip(times).filter_map(|(rank, time)| Some((rank, time?)));
    let mut known: Vec<(u32, f64)> = known.collect();
    known.sort_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
    let (rank, mean_ns) = *known.last().filter(|_| known.len() > 1)?;
    let middle = |at: usize| known.get(at).map(|(_, time)| *time);
    let median = f64::midpoint(middle((known.len() - 1) / 2)?, middle(known.len() / 2)?);
    (median > 0.0).then(|| SlowestRank {
        rank,
        mean_ns,
        behind_ns: mean_ns - median,
        behind_percent: (mean_ns - median) / median * 100.0,
    })
}

fn kernels(found: &[RankInputs<'_>], params: &RanksParams) -> (Vec<RankKernel>, u64) {
    // Of each name the time of all ranks, and of each rank its time and launches.
    type Times = (u128, Vec<(u64, u64)>);
    let mut names: BTreeMap<&str, Times> = BTreeMap::new();
    for (position, rank) in found.iter().enumerate() {
        for (name, tally) in &rank.kernels {
            let (total, each) = names.entry(name).or_insert_with(|| (0, vec![(0, 0); found.len()]));
            *total = total.saturating_add(tally.total_ns);
            if let Some(slot) = each.get_mut(position) {
                *slot = (u64::try_from(tally.total_ns).unwrap_or(u64::MAX), tally.count);
            }
        }
    }
    let mut list: Vec<_> = names.into_iter().collect();
    list.sort_by(|a, b| b.1.0.cmp(&a.1.0).then(a.0.cmp(b.0)));
    let left_out = cut(&mut list, params.kernels);
    let rows = list.into_iter().map(|(name, (total, each))| {
        let longest = (0_u32..)
            .zip(&each)
            .max_by_key(|(rank, (time, _))| (*time, std::cmp::Reverse(*rank)));
        let (slowest, longest) = longest.map_or((0, 0), |(rank, (time, _))| (rank, *time));
        let count = u64::try_from(each.len()).unwrap_or(u64::MAX);
        let total = u64::try_from(total).unwrap_or(u64::MAX);
        RankKernel {
            name: name.to_owned(),
            class: WorkClass::of(Category::CudaKernel, name).unwrap_or(WorkClass::Compute),
            total_ns: each.iter().map(|(time, _)| *time).collect(),
            launches: each.iter().map(|(_, launches)| *launches).collect(),
            slowest,
            imbalance_ratio: ratio(longest.saturating_mul(count), total),
        }
    });
    (rows.collect(), left_out)
}

/// The iterations that every rank with iterations has, by number.
fn pace(found: &[RankInputs<'_>], params: &RanksParams) -> (Vec<RankIteration>, u64) {
    let with: Vec<&RankInputs<'_>> = found.iter().filter(|found| !found.iterations.is_empty()).collect();
    let Some(first) = with.first().filter(|_| with.len() > 1) else {
        return (Vec::new(), 0);
    };
    let everywhere = first
        .iterations
        .keys()
        .filter(|number| with.iter().all(|rank| rank.iterations.contains_key(number)));
    let mut pace = Vec::new();
    let mut left_out = 0;
    for number in everywhere {
        if pace.len() >= usize::try_from(params.limit).unwrap_or(usize::MAX) {
            left_out += 1;
            continue;
        }
        let times = found.iter().map(|rank| rank.iterations.get(number).copied());
        let known = || {
            (0_u32..)
                .zip(found)
                .filter_map(|(position, rank)| Some((position, rank, *rank.iterations.get(number)?)))
        };
        let lengths = || known().map(|(_, _, time)| time.len());
        let longest = known().max_by_key(|(position, _, time)| (time.len(), std::cmp::Reverse(*position)));
        let Some((slowest, rank, time)) = longest else { continue };
        // A start on the clock of the earliest capture.
        let starts = known().map(|(_, rank, time)| Some(rank.rank.started_after_ns? + time.start));
        let starts: Option<Vec<u64>> = starts.collect();
        pace.push(RankIteration {
            number: *number,
            length_ns: times.map(|time| time.map(Interval::len)).collect(),
            spread_ns: time.len() - lengths().min().unwrap_or(0),
            slowest,
            start_spread_ns: starts.and_then(|starts| Some(starts.iter().max()? - starts.iter().min()?)),
            place: TimelineLocation::new(time.start, time.end, None).of_input(rank.rank.input),
        });
    }
    (pace, left_out)
}

#[cfg(test)]
mod tests;
