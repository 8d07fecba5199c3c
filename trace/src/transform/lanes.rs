//! Lanes: events of one row that overlap are drawn side by side, none is dropped.
//!
//! Overlap within a stream is real (programmatic dependent launch lets kernels of one stream overlap), and ranges nest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

use rayon::prelude::*;

use super::engine::Columns;
use crate::model::RowMajor;

/// What a row has of a category: its events and where their lanes go.
type Part<'a> = (&'a Columns, &'a RowMajor, Range<usize>, &'a mut [u32]);

/// The lanes of each category's events, row by row as the [`RowMajor`] has them. Of equal events those of the earlier category
/// come first.
pub(super) fn assign(categories: &[(&Columns, &RowMajor)]) -> Vec<Vec<u32>> {
    let mut lanes: Vec<Vec<u32>> = categories
        .iter()
        .map(|(columns, _)| vec![0; columns.start_ns.len()])
        .collect();
    // Rows are independent of each other.
    let mut rows: BTreeMap<u32, Vec<Part<'_>>> = BTreeMap::new();
    for ((columns, by_row), lanes) in categories.iter().zip(&mut lanes) {
        let mut rest = &mut lanes[..];
        for (row, range) in by_row.rows() {
            let (lanes, behind) = rest.split_at_mut(range.len().min(rest.len()));
            rest = behind;
            rows.entry(*row)
                .or_default()
                .push((columns, by_row, range.clone(), lanes));
        }
    }
    let rows: Vec<Vec<Part<'_>>> = rows.into_values().collect();
    rows.into_par_iter().for_each(|parts| {
        let mut parts: Vec<_> = parts
            .into_iter()
            .map(|(columns, by_row, range, lanes)| (spans(columns, by_row, range).peekable(), lanes.iter_mut()))
            .collect();
        let mut free = Lanes::default();
        if let [(spans, lanes)] = &mut parts[..] {
            for (span, lane) in spans.zip(lanes) {
                *lane = free.place(span);
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
                *lane = free.place(span);
            }
        }
    });
    lanes
}

/// An event of a row.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: u64,
    duration: u64,
}

fn spans<'a>(columns: &'a Columns, by_row: &'a RowMajor, range: Range<usize>) -> impl Iterator<Item = Span> + use<'a> {
    by_row.positions(range).filter_map(|at| {
        let (start, duration) = (*columns.start_ns.get(at)?, *columns.duration_ns.get(at)?);
        Some(Span { start, duration })
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
    fn place(&mut self, span: Span) -> u32 {
        self.take(span.start, span.start.saturating_add(span.duration))
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
