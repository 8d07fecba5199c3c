//! Lanes: events of one row that overlap are drawn side by side, none is dropped.
//!
//! Overlap within a stream is real (programmatic dependent launch lets kernels of one stream
//! overlap), and ranges nest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rayon::prelude::*;

use super::spans::{Span, Spans};

/// Puts each category's events into their lanes. Of equal events those of the earlier category come
/// first.
pub(super) fn assign(categories: &mut [Spans]) {
    // Rows are independent of each other.
    let mut rows: BTreeMap<u32, Vec<_>> = BTreeMap::new();
    for spans in categories {
        for (row, spans, lanes) in spans.each_row() {
            rows.entry(row).or_default().push((spans, lanes));
        }
    }
    let rows: Vec<Vec<_>> = rows.into_values().collect();
    rows.into_par_iter().for_each(|parts| {
        let mut parts: Vec<_> = parts
            .into_iter()
            .map(|(spans, lanes)| (spans.peekable(), lanes.iter_mut()))
            .collect();
        let mut free = Lanes::default();
        if let [(spans, lanes)] = &mut parts[..] {
            for (span, lane) in spans.zip(lanes) {
                *lane = free.assign(span);
            }
            return;
        }
        // The first of the earliest: parts come in the order of their categories.
        while let Some((_, at)) = parts
            .iter_mut()
            .enumerate()
            .filter_map(|(at, (spans, _))| spans.peek().map(|span| ((span.start, Reverse(span.duration)), at)))
            .min()
        {
            if let Some((spans, lanes)) = parts.get_mut(at)
                && let (Some(span), Some(lane)) = (spans.next(), lanes.next())
            {
                *lane = free.assign(span);
            }
        }
    });
}

/// Lanes that are looked through one after the other, which is quickest where few events overlap.
const LINEAR_LANES: usize = 8;

/// The lanes of one row. First fit, and O(log lanes) per event beyond the first lanes, so that a
/// file of nothing but overlaps is no attack.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// When each of the first lanes is free again.
    first: [u64; LINEAR_LANES],
    /// Ends and numbers of those beyond them, counted from there.
    busy: BinaryHeap<Reverse<(u64, u32)>>,
    free: BinaryHeap<Reverse<u32>>,
    /// How many there are beyond them.
    count: u32,
}

impl Lanes {
    fn assign(&mut self, span: Span) -> u32 {
        self.take(span.start, span.end())
    }

    /// The lane of the next event of the row, in the order of starts.
    pub(super) fn take(&mut self, start: u64, end: u64) -> u32 {
        for (lane, until) in (0_u32..).zip(&mut self.first) {
            if *until <= start {
                *until = end;
                return lane;
            }
        }
        while let Some(Reverse((until, lane))) = self.busy.peek().copied() {
            if until > start {
                break;
            }
            self.busy.pop();
            self.free.push(Reverse(lane));
        }
        let lane = self.free.pop().map_or(self.count, |Reverse(lane)| lane);
        self.count = self.count.max(lane.saturating_add(1));
        self.busy.push(Reverse((end, lane)));
        lane.saturating_add(u32::try_from(LINEAR_LANES).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_takes_the_lowest_lane_that_is_free() {
        for longest in [1, 20, 200, 5000] {
            let mut lanes = Lanes::default();
            let mut until: Vec<u64> = Vec::new();
            let mut max = 0;
            for at in 0_u64..5000 {
                let (start, mixed) = (at * 10 / 3, at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32);
                let end = start + mixed % longest;
                let expected = until.iter().position(|until| *until <= start).unwrap_or(until.len());
                until.resize(until.len().max(expected + 1), 0);
                until[expected] = end;
                assert_eq!(usize::try_from(lanes.take(start, end)).unwrap(), expected, "event {at}");
                max = max.max(expected);
            }
            assert!(longest < 200 || max > 2 * LINEAR_LANES, "{max}");
        }
    }
}
