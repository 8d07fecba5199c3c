//! GPU work that ends behind work which began later on its stream.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rayon::prelude::*;

use super::ByCategory;
use flopwatch_model::{Capture, Category, ColumnId, Events, Loss, LossReason, Track, count, index};

/// By how much more than by this in ns an event must end behind a later one: times that are rounded
/// to whole microseconds may, and did not.
const MAX_ROUNDING_NS: u64 = 2_000;

/// The work of a category in the order of its starts.
struct Cursor<'a> {
    category: Category,
    events: &'a Events,
    /// Where the work is, where it is not in that order.
    order: Option<Vec<u32>>,
    next: usize,
}

/// A piece of work.
#[derive(Debug, Clone, Copy)]
struct DeviceWork {
    category: Category,
    at: usize,
    start: u64,
    end: u64,
    /// Of the call that launched it; 0 for none.
    launch: u32,
    /// Whether it is of a graph.
    is_of_graph: bool,
}

impl<'a> Cursor<'a> {
    fn new(category: Category, events: &'a Events) -> Self {
        let order = (!events.start_ns.is_sorted()).then(|| {
            let mut order: Vec<u32> = (0..u32::try_from(events.len()).unwrap_or(u32::MAX)).collect();
            order.par_sort_by_key(|at| {
                let start = events.start_ns.get(index(*at)).copied();
                (start, Reverse(events.duration_ns.get(index(*at)).copied()))
            });
            order
        });
        Self {
            category,
            events,
            order,
            next: 0,
        }
    }

    fn at(&self) -> Option<usize> {
        match &self.order {
            Some(order) => order.get(self.next).map(|at| index(*at)),
            None => (self.next < self.events.len()).then_some(self.next),
        }
    }

    fn start(&self) -> Option<u64> {
        self.events.start_ns.get(self.at()?).copied()
    }

    fn piece(&self, at: usize) -> Option<DeviceWork> {
        let node = self.events.number(ColumnId::GraphNode, at).unwrap_or(0);
        Some(DeviceWork {
            category: self.category,
            at,
            start: *self.events.start_ns.get(at)?,
            end: self.events.end_ns(at),
            launch: *self.events.correlation.get(at)?,
            is_of_graph: node != 0 || self.category == Category::CudaGraph,
        })
    }
}

impl DeviceWork {
    /// Whether both may run at once though one stream has them: branches of a graph, and whatever
    /// one call launched.
    fn may_run_beside(self, other: Self) -> bool {
        self.is_of_graph || other.is_of_graph || (self.launch != 0 && self.launch == other.launch)
    }
}

/// Cuts what runs on, and counts it.
pub(super) fn cut(capture: &mut Capture) {
    // Work of which the source names no stream may be of several.
    let rows = capture.rows.iter();
    let is_stream: Vec<bool> = rows
        .map(|row| row.track == Track::GpuStream && row.stream.is_some())
        .collect();
    for (category, cuts) in found(&capture.events, &is_stream) {
        let what = format!("{}: {}", category.name(), Loss::RUNS_ON);
        capture.losses.add(LossReason::Truncated, &what, count(cuts.len()));
        let Some(events) = capture.events.get_mut(&category) else {
            continue;
        };
        for (at, length) in cuts {
            if let Some(duration) = events.duration_ns.get_mut(at) {
                *duration = length;
            }
        }
    }
}

/// Where the events of each category are that run on, and how long they may be.
fn found(events: &ByCategory, is_stream: &[bool]) -> BTreeMap<Category, Vec<(usize, u64)>> {
    let mut cuts: BTreeMap<Category, Vec<(usize, u64)>> = BTreeMap::new();
    let work = events.iter().filter(|(category, _)| category.is_gpu_work());
    let mut cursors: Vec<Cursor<'_>> = work.map(|(category, events)| Cursor::new(*category, events)).collect();
    // Of each row the work that ends last so far.
    let mut latest: Vec<Option<DeviceWork>> = vec![None; is_stream.len()];
    loop {
        let begun = cursors.iter_mut().filter_map(|cursor| Some((cursor.start()?, cursor)));
        let Some((_, cursor)) = begun.min_by_key(|(start, _)| *start) else {
            return cuts;
        };
        let Some(at) = cursor.at() else { return cuts };
        cursor.next += 1;
        let Some((row, piece)) = cursor.events.row.get(at).zip(cursor.piece(at)) else {
            continue;
        };
        let row = row.index();
        let Some(latest) = latest.get_mut(row).filter(|_| is_stream.get(row) == Some(&true)) else {
            continue;
        };
        let Some(before) = *latest else {
            *latest = Some(piece);
            continue;
        };
        let runs_on = before.start < piece.start && piece.end.saturating_add(MAX_ROUNDING_NS) < before.end;
        if runs_on && !before.may_run_beside(piece) {
            let length = piece.start - before.start;
            cuts.entry(before.category).or_default().push((before.at, length));
            *latest = Some(piece);
        } else if piece.end > before.end {
            *latest = Some(piece);
        }
    }
}
