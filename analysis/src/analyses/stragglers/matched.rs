//! The collectives that several ranks ran together.

use std::collections::BTreeMap;

use flopwatch_measures::collective::{Collective, CollectiveOperation, Collectives};
use flopwatch_measures::gpu::Gpu;
use flopwatch_measures::rank_match::{RankCollective, offsets, shift};
use flopwatch_model::{Category, Timeline, index, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::TimelineLocation;

use super::{ClockAlignment, StragglerCall, StragglerRank};

/// A collective on all ranks of its group that were captured. Times are those of the aligned
/// clocks.
#[derive(Debug, Clone)]
pub(super) struct MatchedCollective {
    pub(super) operation: CollectiveOperation,
    pub(super) message_bytes: Option<u64>,
    pub(super) group_ranks: Option<u32>,
    pub(super) index: usize,
    group: String,
    /// Rank, start and end.
    pub(super) ranks: Vec<(usize, i64, i64)>,
    /// Where each rank ran it.
    locations: Vec<TimelineLocation>,
}

impl MatchedCollective {
    fn starts(&self) -> impl Iterator<Item = i64> {
        self.ranks.iter().map(|(_, start, _)| *start)
    }

    fn ends(&self) -> impl Iterator<Item = i64> {
        self.ranks.iter().map(|(_, _, end)| *end)
    }

    pub(super) fn last_start(&self) -> i64 {
        self.starts().max().unwrap_or(0)
    }

    pub(super) fn first(&self) -> usize {
        let first = self.ranks.iter().min_by_key(|(rank, start, _)| (*start, *rank));
        first.map_or(0, |(rank, ..)| *rank)
    }

    pub(super) fn last(&self) -> usize {
        let last = self.ranks.iter().max_by_key(|(rank, start, _)| (*start, *rank));
        last.map_or(0, |(rank, ..)| *rank)
    }

    pub(super) fn latency(&self) -> u64 {
        let lengths = self.ranks.iter().map(|(_, start, end)| end.abs_diff(*start));
        lengths.min().unwrap_or(0)
    }

    pub(super) fn start_skew(&self) -> u64 {
        self.last_start().abs_diff(self.starts().min().unwrap_or(0))
    }

    pub(super) fn end_skew(&self) -> u64 {
        let last = self.ends().max().unwrap_or(0);
        last.abs_diff(self.ends().min().unwrap_or(0))
    }

    /// Whether there is a time at which all ranks ran it, as there is for every collective that
    /// synchronises.
    fn overlaps(&self) -> bool {
        self.ends().min().is_some_and(|end| self.last_start() <= end)
    }
}

/// A rank and its collectives by group.
struct Rank {
    input: usize,
    process: u32,
    device: Option<u32>,
    gpu: Option<Gpu>,
    groups: BTreeMap<String, Vec<RankCollective>>,
}

/// What was matched of all ranks.
#[derive(Default)]
pub(super) struct RankMatches {
    ranks: Vec<StragglerRank>,
    /// The GPU of each rank.
    gpus: Vec<Option<Gpu>>,
    pub(super) matched: Vec<MatchedCollective>,
    pub(super) unmatched: u64,
    pub(super) apart: u64,
    pub(super) not_synchronising: u64,
    pub(super) clocks: ClockAlignment,
    pub(super) not_captured: Vec<NotCaptured>,
}

impl RankMatches {
    pub(super) fn of(timelines: &[&Timeline]) -> Self {
        let found: Vec<Collectives> = timelines.iter().map(|timeline| Collectives::of(timeline)).collect();
        let mut matching = Self::default();
        let ranks = ranks(timelines, &found);
        let left_out = |one: &&Collective| !one.operation.synchronises();
        let all = found.iter().flat_map(|found| &found.all);
        matching.not_synchronising = u64::try_from(all.filter(left_out).count()).unwrap_or(u64::MAX);
        matching.ranks = (0_u32..)
            .zip(&ranks)
            .map(|(number, rank)| StragglerRank {
                rank: number,
                input: u32::try_from(rank.input).unwrap_or(u32::MAX),
                process: rank.process,
                device: rank.device,
                ..StragglerRank::default()
            })
            .collect();
        matching.gpus = ranks.iter().map(|rank| rank.gpu).collect();
        let comparable = is_comparable(timelines);
        let mut names: Vec<&String> = ranks.iter().flat_map(|rank| rank.groups.keys()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            matching.group(&ranks, &found, name, comparable);
        }
        if timelines.len() > 1 {
            matching.align(timelines.len());
        }
        let before = matching.matched.len();
        matching.matched.retain(MatchedCollective::overlaps);
        let apart = before - matching.matched.len();
        matching.apart += u64::try_from(apart).unwrap_or(u64::MAX);
        matching.not_captured = not_captured(timelines, &matching);
        matching
    }

    /// The ranks by their numbers, with their waits.
    pub(super) fn ranks(&self) -> Vec<StragglerRank> {
        let mut ranks = self.ranks.clone();
        for one in &self.matched {
            for (rank, start, end) in &one.ranks {
                if let Some(row) = ranks.get_mut(*rank) {
                    row.collectives += 1;
                    row.collective_ns += end.abs_diff(*start);
                    row.wait_ns += one.last_start().abs_diff(*start);
                    row.last += u64::from(*rank == one.last());
                    row.first += u64::from(*rank == one.first());
                }
            }
        }
        for rank in &mut ranks {
            rank.wait_ratio = ratio(rank.wait_ns, rank.collective_ns);
        }
        ranks
    }

    /// The GPU of the rank of that number; `None` where the source does not say it.
    pub(super) fn gpu(&self, rank: u32) -> Option<Gpu> {
        self.gpus.get(index(rank)).copied().flatten()
    }

    /// Matches the collectives of one group.
    fn group(&mut self, ranks: &[Rank], found: &[Collectives], name: &str, comparable: bool) {
        let members: Vec<(usize, &Rank, &Vec<RankCollective>)> = ranks
            .iter()
            .enumerate()
            .filter_map(|(number, rank)| Some((number, rank, rank.groups.get(name)?)))
            .collect();
        let Some((_, _, reference)) = members.first() else {
            return;
        };
        let longest = members.iter().map(|(.., list)| list.len()).max().unwrap_or(0);
        if members.len() < 2 {
            self.unmatched += u64::try_from(longest).unwrap_or(u64::MAX);
            return;
        }
        let shifts: Vec<isize> = members
            .iter()
            .map(|(.., list)| shift(reference, list, comparable))
            .collect();
        let before = (self.matched.len(), self.apart);
        for (index, first) in reference.iter().enumerate() {
            let on_all = members.iter().zip(&shifts).map(|((number, rank, list), shift)| {
                let one = list.get(index.checked_add_signed(*shift)?)?;
                Some((*number, *rank, *one))
            });
            let Some(on_all) = on_all.collect::<Option<Vec<_>>>() else {
                continue;
            };
            if on_all
                .iter()
                .any(|(.., one)| one.message_bytes != first.message_bytes || one.operation != first.operation)
            {
                self.apart += 1;
                continue;
            }
            let of =
                |rank: &Rank, one: &RankCollective| found.get(rank.input).and_then(|found| found.all.get(one.position));
            let locations = on_all.iter().filter_map(|(_, rank, one)| {
                let collective = of(rank, one)?;
                Some(
                    TimelineLocation::new(collective.time.start, collective.time.end, Some(collective.row))
                        .of_input(u32::try_from(rank.input).unwrap_or(u32::MAX)),
                )
            });
            let of_first = on_all.first().and_then(|(_, rank, one)| of(rank, one));
            self.matched.push(MatchedCollective {
                operation: first.operation,
                message_bytes: first.message_bytes,
                group_ranks: of_first.and_then(|one| one.ranks),
                index,
                group: name.split('\n').next().unwrap_or_default().to_owned(),
                ranks: on_all
                    .iter()
                    .map(|(number, _, one)| (*number, one.start, one.end))
                    .collect(),
                locations: locations.collect(),
            });
        }
        let matched = self.matched.len() - before.0 + usize::try_from(self.apart - before.1).unwrap_or(0);
        self.unmatched += u64::try_from(longest.saturating_sub(matched)).unwrap_or(u64::MAX);
    }

    /// Moves the clock of each input so that the collectives of most ranks end together.
    fn align(&mut self, inputs: usize) {
        let input_of = |rank: usize| {
            let rank = self.ranks.get(rank);
            rank.and_then(|rank| usize::try_from(rank.input).ok()).unwrap_or(0)
        };
        let max = self.matched.iter().map(|one| one.ranks.len()).max().unwrap_or(0);
        let largest = self.matched.iter().filter(|one| one.ranks.len() == max);
        let ends: Vec<Vec<(usize, i64)>> = largest
            .map(|one| one.ranks.iter().map(|(rank, _, end)| (input_of(*rank), *end)).collect())
            .collect();
        let offsets = offsets(inputs, &ends);
        let by_rank: Vec<i64> = (0..self.ranks.len())
            .map(|rank| offsets.get(input_of(rank)).copied().unwrap_or(0))
            .collect();
        for one in &mut self.matched {
            for (rank, start, end) in &mut one.ranks {
                let offset = by_rank.get(*rank).copied().unwrap_or(0);
                *start -= offset;
                *end -= offset;
            }
        }
        for (rank, offset) in self.ranks.iter_mut().zip(by_rank) {
            rank.clock_offset_ns = offset;
        }
        self.clocks = ClockAlignment::ByEnds;
    }

    /// A matched collective as the result has it.
    pub(super) fn call(one: &MatchedCollective) -> StragglerCall {
        let number = |rank: usize| u32::try_from(rank).unwrap_or(u32::MAX);
        let first = one.first();
        let at = one.ranks.iter().position(|(rank, ..)| *rank == first).unwrap_or(0);
        let location = one.locations.get(at).copied();
        StragglerCall {
            operation: one.operation,
            group: one.group.clone(),
            index: u64::try_from(one.index).unwrap_or(u64::MAX),
            start_skew_ns: one.start_skew(),
            end_skew_ns: one.end_skew(),
            latency_ns: one.latency(),
            first: number(first),
            last: number(one.last()),
            place: location.unwrap_or(TimelineLocation::new(0, 0, None)),
        }
    }
}

/// Whether the clocks of all captures count from a known moment.
fn is_comparable(timelines: &[&Timeline]) -> bool {
    let starts = timelines.iter().map(|timeline| timeline.capture.session_start_utc_ns);
    timelines.len() == 1 || starts.clone().all(|start| start.is_some())
}

/// The ranks of all inputs: a rank is a device of a process. Times count from the earliest start of
/// a capture where all are known.
fn ranks(timelines: &[&Timeline], found: &[Collectives]) -> Vec<Rank> {
    let starts = timelines.iter().map(|timeline| timeline.capture.session_start_utc_ns);
    let comparable = is_comparable(timelines);
    let earliest = starts.clone().flatten().min().unwrap_or(0);
    let mut ranks: BTreeMap<_, Rank> = BTreeMap::new();
    for (input, ((timeline, found), start)) in timelines.iter().zip(found).zip(starts).enumerate() {
        let behind = start.filter(|_| comparable).map_or(0, |start| start - earliest);
        let clock = |t_ns: u64| i64::try_from(t_ns.saturating_add(behind)).unwrap_or(i64::MAX);
        for (position, one) in found
            .all
            .iter()
            .enumerate()
            .filter(|(_, one)| one.operation.synchronises())
        {
            let Some(row) = timeline.row(one.row) else {
                continue;
            };
            let key = (input, row.capture, row.machine, row.process, row.device);
            let rank = ranks.entry(key).or_insert_with(|| Rank {
                input,
                process: row.process,
                device: row.device,
                gpu: Gpu::of_row(timeline, one.row),
                groups: BTreeMap::new(),
            });
            let group = found.groups.get(one.group).filter(|_| one.group > 0);
            // Of an unknown group the operation stands for it: kernels of one operation run in the
            // order of their calls on all ranks.
            let name = group.map_or_else(
                || format!("\n{}", one.operation.name()),
                |group| format!("{}\n{}", group.name, group.ranks),
            );
            rank.groups.entry(name).or_default().push(RankCollective {
                start: clock(one.time.start),
                end: clock(one.time.end),
                operation: one.operation,
                message_bytes: one.message_bytes,
                position,
            });
        }
    }
    ranks.into_values().collect()
}

fn not_captured(timelines: &[&Timeline], matching: &RankMatches) -> Vec<NotCaptured> {
    let missing = timelines.iter().find_map(|timeline| {
        NotCaptured::unless_any(&timeline.capture, &[Category::CudaKernel], "collectives of a rank")
    });
    let few = (matching.ranks.len() < 2).then(|| {
        NotCaptured::new(
            "waits of ranks for each other",
            "fewer than two ranks with collectives that synchronise were captured; name the captures of several ranks, or capture a process of several devices",
        )
    });
    let matched = u64::try_from(matching.matched.len()).unwrap_or(u64::MAX);
    let different = (matching.apart > matched).then(|| {
        NotCaptured::new(
            "waits in most collectives",
            format!(
                "{} collectives of the same place in their group do not overlap between ranks, or differ in size: the captures are not of the same run, not of the same time, or lack events",
                matching.apart
            ),
        )
    });
    missing.into_iter().chain(few).chain(different).collect()
}
