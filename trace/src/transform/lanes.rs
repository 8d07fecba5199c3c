//! Lanes: events of one row that overlap are drawn side by side, none is dropped.
//!
//! Overlap within a stream is real (programmatic dependent launch lets kernels of one stream overlap), and ranges nest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use super::engine::Columns;
use super::rows::RowMajor;

/// The lanes of each category's events, in the order of `categories`, which is that of equal events too.
pub(super) fn assign(categories: &[(&Columns, &RowMajor)]) -> Vec<Vec<u32>> {
    // Rows are independent of each other, but their events lie scattered over the columns.
    let lanes: Vec<Vec<AtomicU32>> = categories
        .iter()
        .map(|(columns, _)| columns.start_ns.iter().map(|_| AtomicU32::new(0)).collect())
        .collect();
    let mut rows: BTreeMap<u32, Vec<(usize, Range<usize>)>> = BTreeMap::new();
    for (category, (_, by_row)) in categories.iter().enumerate() {
        for (row, range) in by_row.rows() {
            rows.entry(*row).or_default().push((category, range.clone()));
        }
    }
    let rows: Vec<Vec<(usize, Range<usize>)>> = rows.into_values().collect();
    rows.par_iter().for_each(|parts| {
        let parts = parts.iter().filter_map(|(category, range)| {
            let (columns, by_row) = categories.get(*category)?;
            Some((columns, by_row, range.clone(), lanes.get(*category)?))
        });
        let mut parts: Vec<_> = parts
            .map(|(columns, by_row, range, lanes)| (spans(columns, by_row, range).peekable(), lanes))
            .collect();
        let mut free = Lanes::default();
        if let [(spans, lanes)] = &mut parts[..] {
            for span in spans {
                free.place(span, lanes);
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
                && let Some(span) = spans.next()
            {
                free.place(span, lanes);
            }
        }
    });
    let plain = |lanes: Vec<AtomicU32>| lanes.into_iter().map(AtomicU32::into_inner).collect();
    lanes.into_iter().map(plain).collect()
}

/// An event of a row and where it is in its category.
#[derive(Debug, Clone, Copy)]
struct Span {
    at: usize,
    start: u64,
    duration: u64,
}

fn spans<'a>(columns: &'a Columns, by_row: &'a RowMajor, range: Range<usize>) -> impl Iterator<Item = Span> + use<'a> {
    by_row.positions(range).filter_map(|at| {
        let (start, duration) = (*columns.start_ns.get(at)?, *columns.duration_ns.get(at)?);
        Some(Span { at, start, duration })
    })
}

/// The lanes of one row. First fit in O(log lanes) per event, so that a file of nothing but overlaps is no attack.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// When all lanes are free again.
    until: u64,
    /// End of the only event since then, which is in lane 0 and not in `busy`.
    only: Option<u64>,
    busy: BinaryHeap<Reverse<(u64, u32)>>,
    free: BinaryHeap<Reverse<u32>>,
    count: u32,
}

impl Lanes {
    fn place(&mut self, span: Span, lanes: &[AtomicU32]) {
        let lane = self.take(span.start, span.start.saturating_add(span.duration));
        if lane > 0
            && let Some(slot) = lanes.get(span.at)
        {
            slot.store(lane, Ordering::Relaxed);
        }
    }

    /// The lane of the next event of the row, in the order of starts.
    pub(super) fn take(&mut self, start: u64, end: u64) -> u32 {
        if start >= self.until {
            self.busy.clear();
            self.free.clear();
            self.until = end;
            self.only = Some(end);
            self.count = 1;
            return 0;
        }
        self.until = self.until.max(end);
        if let Some(end) = self.only.take() {
            self.busy.push(Reverse((end, 0)));
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
        lane
    }
}
