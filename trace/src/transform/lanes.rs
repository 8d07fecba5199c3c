//! Lanes: events of one row that overlap are drawn side by side, none is dropped.
//!
//! Overlap within a stream is real (programmatic dependent launch lets kernels of one stream overlap), and ranges nest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::model::{Category, Events, index};

/// An event of a row, in the order in which lanes are given out.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Placed {
    row: u32,
    start_ns: u64,
    /// The longest first, so that what nests comes to the lane below.
    duration_ns: Reverse<u64>,
    category: Category,
    at: u32,
}

/// Gives each event the lowest lane of its row that is free at its start. Intervals are half-open: an event may start in the
/// lane where another ends at that very time.
pub(super) fn assign(categories: &mut BTreeMap<Category, Events>, rows: usize) {
    let mut all = Vec::with_capacity(categories.values().map(Events::len).sum());
    for (category, events) in categories.iter() {
        let times = events.row.iter().zip(&events.start_ns).zip(&events.duration_ns);
        for (at, ((row, start_ns), duration_ns)) in (0_u32..).zip(times) {
            if index(*row) < rows {
                let duration_ns = Reverse(*duration_ns);
                all.push(Placed {
                    row: *row,
                    start_ns: *start_ns,
                    duration_ns,
                    category: *category,
                    at,
                });
            }
        }
    }
    all.sort_unstable();
    let mut lanes = Lanes::default();
    let mut row = None;
    for placed in all {
        if row != Some(placed.row) {
            row = Some(placed.row);
            lanes = Lanes::default();
        }
        let lane = lanes.take(placed.start_ns, placed.start_ns.saturating_add(placed.duration_ns.0));
        let events = categories.get_mut(&placed.category);
        if let Some(slot) = events.and_then(|events| events.lane.get_mut(index(placed.at))) {
            *slot = lane;
        }
    }
}

/// The lanes of one row. First fit in O(log lanes) per event, so that a file of nothing but overlaps is no attack.
#[derive(Debug, Default)]
struct Lanes {
    busy: BinaryHeap<Reverse<(u64, u32)>>,
    free: BinaryHeap<Reverse<u32>>,
    count: u32,
}

impl Lanes {
    fn take(&mut self, start: u64, end: u64) -> u32 {
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
        lane
    }
}
