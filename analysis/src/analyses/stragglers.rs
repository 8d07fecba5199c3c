//! Which rank the others wait for in collectives, and what the collectives take without the wait.

mod matched;
mod page;

use std::collections::BTreeMap;

use flopwatch_measures::collective::{CollectiveOperation, Collectives as Found, bytes_per_second};
use flopwatch_measures::gpu::Gpu;
use flopwatch_model::{Figures, Needs, Timeline, count};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, TimelineLocation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError, InputCount};
use crate::group::Group;
use crate::input::Inputs;
use matched::{MatchedCollective, RankMatches};

/// Waits of ranks for each other.
#[derive(Debug)]
pub struct Stragglers;

/// Parameters of [`Stragglers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StragglersParams {
    /// Most collectives in the list of those with the longest waits.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u32,
}

impl Default for StragglersParams {
    fn default() -> Self {
        Self { limit: 50 }
    }
}

/// How the times of ranks are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClockAlignment {
    /// All ranks are of one capture, and so of one clock.
    #[default]
    OneClock,
    /// The clock of each capture was moved so that the collectives of most ranks end together, in
    /// the median.
    ByEnds,
}

/// Which rank the others wait for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct StragglersResult {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// How the times of ranks are compared.
    pub clocks: ClockAlignment,
    /// Median distance in ns of the first from the last end of a collective: what the alignment
    /// leaves, and so how exact waits are.
    pub end_skew_median_ns: Option<f64>,
    /// Number of the rank that waits least for the others, and so comes last. Null where no
    /// collective is matched, and where all ranks wait equally long.
    pub straggler: Option<u32>,
    /// Sum of all waits of all ranks in ns: GPU time that was lost.
    pub wait_ns: u64,
    /// Each rank, the one that waits least first.
    pub ranks: Vec<StragglerRank>,
    /// Collectives that all ranks of their group ran, as far as these were captured.
    pub matched: u64,
    /// Collectives that are not in the captures of all ranks of their group.
    pub unmatched: u64,
    /// Matched collectives that do not overlap between ranks, or differ in operation or size, and
    /// are left out: they are not the same.
    pub apart: u64,
    /// Kernels of operations for which ranks need not wait for each other, e.g. broadcast, send and
    /// receive; they are left out.
    pub not_synchronising: u64,
    /// Per operation, ranks and power of two of the message's size; the longest total first.
    pub rows: Vec<StragglerRow>,
    /// The collectives with the longest waits.
    pub worst: Vec<StragglerCall>,
    /// Collectives that were left out behind these.
    pub worst_left_out: u64,
}

/// A rank: a device of a process of a capture.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct StragglerRank {
    /// Its number here: inputs, processes and devices in their order.
    pub rank: u32,
    /// Which input it is of, from 0.
    pub input: u32,
    /// Process id.
    pub process: u32,
    /// Ordinal of the device.
    pub device: Option<u32>,
    /// What was taken from its clock, in ns.
    pub clock_offset_ns: i64,
    /// Matched collectives that it ran.
    pub collectives: u64,
    /// Sum of its kernels' lengths in them in ns.
    pub collective_ns: u64,
    /// Sum of its waits for the last rank in ns.
    pub wait_ns: u64,
    /// `wait_ns` of `collective_ns`.
    pub wait_ratio: Option<f64>,
    /// How often it came last.
    pub last: u64,
    /// How often it came first.
    pub first: u64,
}

/// Collectives of one operation, number of ranks and power of two of the message's size.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StragglerRow {
    /// What the ranks do.
    pub operation: CollectiveOperation,
    /// Ranks that were captured.
    pub captured_ranks: u32,
    /// Ranks of the group; null where the source does not say it.
    pub group_ranks: Option<u32>,
    /// Smallest message of the bin in bytes; null where the source does not say sizes.
    pub from_bytes: Option<u64>,
    /// Collectives.
    pub collectives: u64,
    /// Sum of their latencies in ns: of each the shortest kernel of all ranks, which waits least.
    pub latency_ns: u64,
    /// Median latency in ns.
    pub median_latency_ns: f64,
    /// Median distance of the first from the last start in ns.
    pub median_start_skew_ns: f64,
    /// Longest distance of the first from the last start in ns.
    pub max_start_skew_ns: u64,
    /// Messages by latencies.
    pub algorithm_bytes_per_second: Option<f64>,
    /// The same times the operation's factor, by the group's ranks.
    pub bus_bytes_per_second: Option<f64>,
}

/// One collective on all ranks.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StragglerCall {
    /// What the ranks do.
    pub operation: CollectiveOperation,
    /// Name of the process group; empty where the source does not say it.
    pub group: String,
    /// Its number among the group's in the first rank's capture, from 0.
    pub index: u64,
    /// Distance of the first from the last start in ns.
    pub start_skew_ns: u64,
    /// Distance of the first from the last end in ns.
    pub end_skew_ns: u64,
    /// The shortest kernel of all ranks in ns.
    pub latency_ns: u64,
    /// The rank that came first.
    pub first: u32,
    /// The rank that came last.
    pub last: u32,
    /// Where the rank that came first waits.
    pub place: TimelineLocation,
}

impl Analysis for Stragglers {
    const NAME: &'static str = "stragglers";
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "Which rank the others wait for in collectives, and latency and bandwidth of collectives without the wait. Ranks are inputs, or devices of one.";
    const TITLE: &'static str = "Stragglers";
    const GROUP: Group = Group::Ranks;
    const INPUTS: InputCount = InputCount::Many;
    const NEEDS: Needs = Found::NEEDS;
    type Params = StragglersParams;
    type Output = StragglersResult;

    fn run(inputs: &Inputs<'_>, params: &StragglersParams) -> Result<StragglersResult, AnalysisError> {
        let timelines: Vec<&Timeline> = inputs.all().iter().map(|input| input.timeline).collect();
        let matching = RankMatches::of(&timelines);
        Ok(StragglersResult::of(&matching, *params))
    }

    fn page(output: &StragglersResult) -> Result<Page, AnalysisError> {
        Ok(page::page(Self::TITLE, Self::ABOUT, output))
    }
}

impl StragglersResult {
    fn of(matching: &RankMatches, params: StragglersParams) -> Self {
        let mut ranks: Vec<StragglerRank> = matching.ranks();
        let wait_ns = ranks.iter().map(|rank| rank.wait_ns).sum();
        let straggler = straggler(&ranks).map(|rank| rank.rank);
        ranks.sort_by_key(|rank| (rank.collectives == 0, rank.wait_ns, rank.rank));
        let mut skews: Vec<u64> = matching.matched.iter().map(MatchedCollective::end_skew).collect();
        let limit = usize::try_from(params.limit).unwrap_or(usize::MAX);
        let mut worst: Vec<&MatchedCollective> = matching.matched.iter().collect();
        worst.sort_by_key(|one| (std::cmp::Reverse(one.start_skew()), one.index));
        Self {
            not_captured: matching.not_captured.clone(),
            clocks: matching.clocks,
            end_skew_median_ns: Figures::of(&mut skews).median(),
            straggler,
            wait_ns,
            ranks,
            matched: count(matching.matched.len()),
            unmatched: matching.unmatched,
            apart: matching.apart,
            not_synchronising: matching.not_synchronising,
            rows: rows(&matching.matched),
            worst: worst.iter().take(limit).map(|one| RankMatches::call(one)).collect(),
            worst_left_out: count(worst.len().saturating_sub(limit)),
        }
    }
}

/// The rank that the others wait for: of those that ran matched collectives the one that waits
/// least, where another waits longer.
fn straggler(ranks: &[StragglerRank]) -> Option<&StragglerRank> {
    let took_part = || ranks.iter().filter(|rank| rank.collectives > 0);
    let least = took_part().min_by_key(|rank| (rank.wait_ns, rank.rank))?;
    took_part().any(|rank| rank.wait_ns > least.wait_ns).then_some(least)
}

/// The GPU that the others wait for, as other analyses tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WaitedFor {
    /// Which input it is of, from 0.
    pub(super) input: u32,
    /// The GPU.
    pub(super) gpu: Gpu,
    /// Sum of its waits for the last rank in ns.
    pub(super) wait_ns: u64,
    /// Sum of the waits of the rank that waits longest, in ns.
    pub(super) longest_wait_ns: u64,
}

impl WaitedFor {
    /// Of the ranks of `timelines`: the straggler of [`StragglersResult`]. Needs
    /// [`Stragglers::NEEDS`](Analysis::NEEDS).
    pub(super) fn of(timelines: &[&Timeline]) -> Option<Self> {
        let matching = RankMatches::of(timelines);
        let ranks = matching.ranks();
        let straggler = straggler(&ranks)?;
        Some(Self {
            input: straggler.input,
            gpu: matching.gpu(straggler.rank)?,
            wait_ns: straggler.wait_ns,
            longest_wait_ns: ranks.iter().map(|rank| rank.wait_ns).max()?,
        })
    }
}

fn rows(matched: &[MatchedCollective]) -> Vec<StragglerRow> {
    let mut bins: BTreeMap<_, Vec<&MatchedCollective>> = BTreeMap::new();
    for one in matched {
        let from_bytes = one
            .message_bytes
            .map(|bytes| bytes.checked_ilog2().map_or(0, |power| 1 << power));
        let key = (one.operation, one.ranks.len(), one.group_ranks, from_bytes);
        bins.entry(key).or_default().push(one);
    }
    let rows = bins
        .into_iter()
        .map(|((operation, captured, group_ranks, from_bytes), all)| {
            let figures = |of: fn(&MatchedCollective) -> u64| {
                let mut values: Vec<u64> = all.iter().map(|one| of(one)).collect();
                Figures::of(&mut values)
            };
            let latency = figures(MatchedCollective::latency);
            let skew = figures(MatchedCollective::start_skew);
            let latency_ns = u64::try_from(latency.total).unwrap_or(u64::MAX);
            let bytes: Option<u64> = all.iter().map(|one| one.message_bytes).sum();
            let speed = bytes.and_then(|bytes| bytes_per_second(bytes, latency_ns));
            let factor = group_ranks.map(|ranks| operation.bus_factor(ranks));
            StragglerRow {
                operation,
                captured_ranks: u32::try_from(captured).unwrap_or(u32::MAX),
                group_ranks,
                from_bytes,
                collectives: latency.count,
                latency_ns,
                median_latency_ns: latency.median().unwrap_or(0.0),
                median_start_skew_ns: skew.median().unwrap_or(0.0),
                max_start_skew_ns: skew.max,
                algorithm_bytes_per_second: speed,
                bus_bytes_per_second: speed.zip(factor).map(|(speed, factor)| speed * factor),
            }
        });
    let mut rows: Vec<StragglerRow> = rows.collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.latency_ns));
    rows
}

#[cfg(test)]
mod tests;
