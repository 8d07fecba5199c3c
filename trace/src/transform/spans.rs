//! A category's events row by row, so that what goes through a row reads no other row's.

use std::ops::Range;

use super::engine::Columns;
use flopwatch_model::{Groups, index};

/// An event of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// Index of the event in the columns of its category.
    pub(super) at: u32,
    pub(super) start: u64,
    pub(super) duration: u64,
}

impl Span {
    pub(super) const fn end(self) -> u64 {
        self.start.saturating_add(self.duration)
    }

    fn of([at, start, start_upper, duration, duration_upper]: &Words) -> Self {
        Self {
            at: *at,
            start: whole(*start, *start_upper),
            duration: whole(*duration, *duration_upper),
        }
    }
}

/// A span in memory: its position, and the halves of its start and its length. Words of four bytes
/// fit into memory that had another use.
type Words = [u32; 5];

/// A row, and where its events are.
type Row = (u32, Range<usize>);

/// The words of each span, and one for its lane.
const SPAN_WORDS: usize = 6;

/// The events of sorted columns, row by row, and their lanes.
pub(super) struct Spans {
    /// The rows that hold events, each with where its events are.
    rows: Vec<Row>,
    count: usize,
    /// The events, and behind them their lanes.
    memory: Vec<u32>,
}

impl Spans {
    /// Of `columns`, whose rows are below `rows`; what lanes they are in is to be said yet.
    /// `memory` is what sorting them used.
    pub(super) fn new(columns: &Columns, rows: u32, mut memory: Vec<u32>) -> Self {
        let count = columns.start_ns.len();
        if memory.is_empty() {
            // Comes as zeros, without being written to.
            memory = vec![0; count.saturating_mul(SPAN_WORDS)];
        }
        memory.resize(count.saturating_mul(SPAN_WORDS), 0);
        memory.shrink_to_fit();
        let groups = by_row(&columns.row, rows);
        let ranges = (0_u32..).zip(groups.ranges());
        let mut spans = Self {
            rows: ranges.filter(|(_, range)| !range.is_empty()).collect(),
            count,
            memory,
        };
        let time = |column: &[u64], at: usize| halves(column.get(at).copied().unwrap_or_default());
        let words = |at: usize, _: &u32| {
            let [start, start_upper] = time(&columns.start_ns, at);
            let [duration, duration_upper] = time(&columns.duration_ns, at);
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            [at, start, start_upper, duration, duration_upper]
        };
        groups.scatter_into(spans.split().1, words);
        spans
    }

    /// Puts them into the lanes `lane`, which are in the order of the columns, whose rows are
    /// `row`.
    pub(super) fn set_lanes(&mut self, row: &[u32], lane: &[u32]) {
        let end = self.end();
        let of = |at: usize, _: &u32| lane.get(at).copied().unwrap_or_default();
        by_row(row, end).scatter_into(self.split().2, of);
    }

    /// Their lanes in the order of the columns, whose rows are `row`.
    pub(super) fn lanes_in_order(&self, row: &[u32]) -> Vec<u32> {
        by_row(row, self.end()).gather(self.memory.get(self.lanes_at()..).unwrap_or_default())
    }

    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// The rows that hold events, each with where its events are.
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The events of a range that [`Self::rows`] gave.
    pub(super) fn of(&self, range: &Range<usize>) -> impl Iterator<Item = Span> + '_ {
        let events = self.memory.as_chunks().0;
        events.get(range.clone()).unwrap_or_default().iter().map(Span::of)
    }

    /// Lanes of the events of a range that [`Self::rows`] gave.
    pub(super) fn lanes(&self, range: &Range<usize>) -> &[u32] {
        let lanes = self.memory.get(self.lanes_at()..).unwrap_or_default();
        lanes.get(range.clone()).unwrap_or_default()
    }

    /// Row by row the events, and where their lanes go.
    pub(super) fn each_row(&mut self) -> impl Iterator<Item = (u32, impl Iterator<Item = Span> + Send, &mut [u32])> {
        let (rows, mut events, mut lanes) = self.split();
        rows.iter().map(move |(row, range)| {
            let events = events.split_off_mut(..range.len()).unwrap_or_default();
            let lanes = lanes.split_off_mut(..range.len()).unwrap_or_default();
            (*row, events.iter().map(Span::of), lanes)
        })
    }

    fn split(&mut self) -> (&[Row], &mut [Words], &mut [u32]) {
        let at = self.lanes_at().min(self.memory.len());
        let (events, lanes) = self.memory.split_at_mut(at);
        (&self.rows, events.as_chunks_mut().0, lanes)
    }

    const fn lanes_at(&self) -> usize {
        self.count.saturating_mul(SPAN_WORDS - 1)
    }

    /// All rows are below it.
    fn end(&self) -> u32 {
        self.rows.last().map_or(0, |(row, _)| row.saturating_add(1))
    }
}

fn by_row(row: &[u32], rows: u32) -> Groups<'_, u32, impl Fn(&u32) -> usize + Sync> {
    Groups::count(row, index(rows), |row| index(*row))
}

/// The lower and the upper half.
pub(super) fn halves(value: u64) -> [u32; 2] {
    [value & u64::from(u32::MAX), value >> 32].map(|half| u32::try_from(half).unwrap_or(u32::MAX))
}

/// The other way.
pub(super) fn whole(lower: u32, upper: u32) -> u64 {
    u64::from(lower) | u64::from(upper) << 32
}
