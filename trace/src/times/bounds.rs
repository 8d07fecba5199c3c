//! Where the events of a capture may lie.

use std::ops::{Range, RangeInclusive};

use rayon::prelude::*;

use super::ByCategory;
use flopwatch_model::{Events, Loss};

pub(super) const NS_PER_SECOND: u64 = 1_000_000_000;
const NS_PER_MINUTE: u64 = 60 * NS_PER_SECOND;
const NS_PER_HOUR: u64 = 60 * NS_PER_MINUTE;
const NS_PER_DAY: u64 = 24 * NS_PER_HOUR;
const NS_PER_YEAR: u64 = 366 * NS_PER_DAY;

/// When a session ran, and how far beyond it an event may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    first: u64,
    last: u64,
    /// Room of GPU work in ns.
    of_work: u64,
    /// Room of everything else in ns.
    of_others: u64,
}

impl Bounds {
    /// Those of `stated`, as far as at least half of the events begin within them, else those of
    /// the neighbors. `None` where all events lie together, so that none is in doubt.
    pub(super) fn of(events: &ByCategory, stated: Option<Range<u64>>) -> Option<Self> {
        let (begin, end) = span(events)?;
        if let Some(stated) = stated {
            let stated = Self {
                first: stated.start,
                last: stated.end,
                of_work: NS_PER_MINUTE,
                of_others: NS_PER_MINUTE,
            };
            let possible_times = stated.possible_times(NS_PER_MINUTE);
            if possible_times.contains(&begin) && possible_times.contains(&end) {
                return None;
            }
            let inside = |events: &Events| {
                let starts = events.start_ns.par_iter();
                starts.filter(|start| possible_times.contains(*start)).count()
            };
            let all: usize = events.values().map(Events::len).sum();
            let held: usize = events.values().map(inside).sum();
            if held.saturating_mul(2) >= all {
                return Some(stated);
            }
        }
        (end - begin > NS_PER_HOUR).then(|| Self::of_neighbors(events))
    }

    /// The largest group of events of which none begins more than a day behind the one before; of
    /// groups of one size the last.
    fn of_neighbors(events: &ByCategory) -> Self {
        let starts = events.values().flat_map(|events| events.start_ns.iter().copied());
        let mut starts: Vec<u64> = starts.collect();
        starts.par_sort_unstable();
        let groups = starts.chunk_by(|before, behind| behind - before <= NS_PER_DAY);
        let group = groups.max_by_key(|group| group.len()).unwrap_or_default();
        Self {
            first: group.first().copied().unwrap_or(0),
            last: group.last().copied().unwrap_or(u64::MAX),
            of_work: NS_PER_HOUR,
            of_others: NS_PER_DAY,
        }
    }

    fn possible_times(&self, beyond: u64) -> RangeInclusive<u64> {
        self.first.saturating_sub(beyond)..=self.last.saturating_add(beyond)
    }

    /// Why an event cannot have these times; `None` where it can.
    pub(super) fn fault(&self, is_gpu_work: bool, start: u64, length: u64) -> Option<&'static str> {
        let possible_times = self.possible_times(if is_gpu_work { self.of_work } else { self.of_others });
        let Some(end) = start.checked_add(length) else {
            return Some(Loss::TOO_LONG);
        };
        let begins = if is_gpu_work { start } else { end };
        if start > *possible_times.end() || begins < *possible_times.start() {
            Some(Loss::AWAY)
        } else if end > *possible_times.end() || length > NS_PER_YEAR {
            Some(Loss::TOO_LONG)
        } else {
            None
        }
    }
}

/// The first begin and the last end.
fn span(events: &ByCategory) -> Option<(u64, u64)> {
    let first = |events: &Events| events.start_ns.par_iter().copied().min();
    let begin = events.values().filter_map(first).min()?;
    Some((begin, super::last_end(events)?))
}

/// A day around all events.
pub(super) fn around(events: &ByCategory) -> Option<RangeInclusive<u64>> {
    let (begin, end) = span(events)?;
    Some(begin.saturating_sub(NS_PER_DAY)..=end.saturating_add(NS_PER_DAY))
}
