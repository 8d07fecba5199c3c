//! The events: chunks that are inflated and decoded on every core, and put together in their order.

use std::sync::atomic::{AtomicU64, Ordering};

use super::super::chains::{Chain, Chains};
use super::ReportError;
use super::chunks::{Buffers, Chunk};
use super::container::{Container, Extent};
use super::counters::Counters;
use super::event::Decoder;
use super::layout::{self, Layout};
use super::rows::Rows;
use super::segments::SegmentedTable;
use super::session::Session;
use super::unread::UnreadCounts;
use crate::cores;
use crate::limits::ReadLimits;

/// Chunks for each core that are decoded before what was made of them is put together: many,
/// because cores wait for each other at the end.
const CHUNKS_AT_ONCE: usize = 32;

/// Rows between two looks at how many there are in all.
const ROWS_BETWEEN: u64 = 1 << 10;

/// A table of events, as its index in [`LAYOUTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TableId(usize);

pub(super) const KERNELS: TableId = TableId(0);
pub(super) const GRAPHS: TableId = TableId(1);
pub(super) const COPIES: TableId = TableId(2);
pub(super) const SETS: TableId = TableId(3);
pub(super) const SYNCS: TableId = TableId(4);
pub(super) const RECORDS: TableId = TableId(5);
pub(super) const CALLS: TableId = TableId(6);
pub(super) const OS_CALLS: TableId = TableId(7);
pub(super) const RANGES: TableId = TableId(8);
pub(super) const SAMPLES: TableId = TableId(9);
pub(super) const USAGES: TableId = TableId(10);
pub(super) const PROCESSES: TableId = TableId(11);
const CPU_SAMPLES: TableId = TableId(12);
pub(super) const SWITCHES: TableId = TableId(13);
pub(super) const CUDNN_CALLS: TableId = TableId(14);
pub(super) const CUBLAS_CALLS: TableId = TableId(15);

static LAYOUTS: [&Layout; 16] = [
    &layout::KERNELS,
    &layout::GRAPHS,
    &layout::COPIES,
    &layout::SETS,
    &layout::SYNCS,
    &layout::RECORDS,
    &layout::CALLS,
    &layout::OS_CALLS,
    &layout::RANGES,
    &layout::SAMPLES,
    &layout::USAGES,
    &layout::PROCESSES,
    &layout::CPU_SAMPLES,
    &layout::SWITCHES,
    &layout::CUDNN_CALLS,
    &layout::CUBLAS_CALLS,
];

/// What was made of a chunk.
#[derive(Debug)]
pub(super) struct Part {
    tables: Vec<Rows>,
    /// Stacks of the samples of the CPU.
    chains: Chains,
    /// Events of both kinds that were met.
    pub(super) events: u64,
    pub(super) generic: u64,
    pub(super) unread: UnreadCounts,
    /// Rows that are not yet counted among all.
    uncounted: u64,
}

impl Part {
    pub(super) fn new() -> Self {
        Self {
            tables: LAYOUTS.into_iter().map(Rows::new).collect(),
            chains: Chains::default(),
            events: 0,
            generic: 0,
            unread: UnreadCounts::default(),
            uncounted: 0,
        }
    }

    /// Adds a row to a table.
    pub(super) fn push(&mut self, table: TableId, numbers: &[u64], texts: &[&[u8]]) {
        if let Some(rows) = self.tables.get_mut(table.0) {
            rows.push(numbers, texts);
            self.uncounted += 1;
        }
    }

    /// Adds a sample of the CPU: when, on which thread, and its stack, which counts as a row for
    /// each stack in it that is new.
    pub(super) fn push_sample(&mut self, numbers: [u64; 2], chain: &Chain) {
        let known = self.chains.len();
        let stack = self.chains.number(chain);
        self.uncounted += self.chains.len().saturating_sub(known);
        let [time, thread] = numbers;
        self.push(CPU_SAMPLES, &[time, thread, stack.into()], &[]);
    }
}

/// What was made of all chunks.
#[derive(Debug)]
pub(super) struct DecodedEvents {
    tables: Vec<SegmentedTable>,
    /// Stacks of the samples of the CPU.
    pub(super) chains: Chains,
    /// Events of both kinds that were met.
    pub(super) count: u64,
    pub(super) generic: u64,
    pub(super) unread: UnreadCounts,
}

impl DecodedEvents {
    fn new() -> Self {
        Self {
            tables: LAYOUTS
                .into_iter()
                .map(|layout| SegmentedTable::new(layout.name))
                .collect(),
            chains: Chains::default(),
            count: 0,
            generic: 0,
            unread: UnreadCounts::default(),
        }
    }

    fn append(&mut self, mut part: Part) {
        let numbers = self.chains.merge(&part.chains);
        if let Some(samples) = part.tables.get_mut(CPU_SAMPLES.0) {
            samples.renumber(layout::STACK_COLUMN, &numbers);
        }
        for (table, rows) in self.tables.iter_mut().zip(part.tables) {
            if rows.len() > 0 {
                table.push(rows);
            }
        }
        self.count = self.count.saturating_add(part.events);
        self.generic = self.generic.saturating_add(part.generic);
        self.unread.append(part.unread);
    }

    /// The table of that name; none where the report has no rows of it.
    pub(super) fn table(&self, name: &str) -> Option<&SegmentedTable> {
        self.tables.iter().find(|table| table.name() == name)
    }

    /// The tables that have rows: as in a lazy export, there are no others.
    pub(super) fn into_tables(mut self) -> Vec<SegmentedTable> {
        self.tables.retain(|table| table.len() > 0);
        self.tables
    }
}

/// The rows that all worker threads have decoded together, against the limits.
#[derive(Debug)]
pub(super) struct RowBudget<'a> {
    rows: AtomicU64,
    limits: &'a ReadLimits,
}

impl<'a> RowBudget<'a> {
    pub(super) fn new(limits: &'a ReadLimits) -> Self {
        Self {
            rows: AtomicU64::new(0),
            limits,
        }
    }

    /// Counts the rows of `part`, once they are many or `whole` says so.
    pub(super) fn count(&self, part: &mut Part, whole: bool) -> Result<(), ReportError> {
        if part.uncounted < ROWS_BETWEEN && !whole {
            return Ok(());
        }
        let more = std::mem::take(&mut part.uncounted);
        let all = self.rows.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        if all > self.limits.max_events {
            return Err(ReportError::TooMany {
                what: "events",
                limit: self.limits.max_events,
            });
        }
        Ok(())
    }
}

/// Reads all events.
pub(super) fn read(
    container: &Container,
    session: &Session,
    counters: &Counters<'_>,
    limits: &ReadLimits,
) -> Result<DecodedEvents, ReportError> {
    let budget = RowBudget::new(limits);
    let mut all = DecodedEvents::new();
    let mut inflated = 0_u64;
    let Some(mut rest) = session.chunks else {
        return Ok(all);
    };
    let at_once = rayon::current_num_threads().max(1).saturating_mul(CHUNKS_AT_ONCE);
    let decode = |(): &mut (), buffers: &mut Buffers, _: usize, chunk: Chunk| -> Result<Part, ReportError> {
        let mut part = Part::new();
        let message = chunk.message(container, buffers)?;
        Decoder::new(counters, &budget, &mut part).chunk(chunk, message)?;
        budget.count(&mut part, true)?;
        Ok(part)
    };
    while rest.begin < rest.end {
        let chunks = next_chunks(container, &mut rest, at_once, limits)?;
        for chunk in &chunks {
            inflated = inflated.saturating_add(chunk.inflated());
        }
        if inflated > limits.max_text_bytes {
            return Err(ReportError::TooMany {
                what: "bytes of events",
                limit: limits.max_text_bytes,
            });
        }
        let (_, parts) = cores::for_each(chunks, |_| (), Buffers::default, decode)?;
        for part in parts {
            all.append(part);
        }
        let texts: usize = all.tables.iter().map(SegmentedTable::text_bytes).sum();
        if u64::try_from(texts).unwrap_or(u64::MAX) > limits.max_string_bytes {
            return Err(ReportError::TooMany {
                what: "bytes of texts",
                limit: limits.max_string_bytes,
            });
        }
    }
    Ok(all)
}

/// The next chunks of `rest`, which then begins behind them.
fn next_chunks(
    container: &Container,
    rest: &mut Extent,
    max: usize,
    limits: &ReadLimits,
) -> Result<Vec<Chunk>, ReportError> {
    let mut chunks = Vec::with_capacity(max);
    while rest.begin < rest.end && chunks.len() < max {
        let chunk = Chunk::at(container, *rest, limits.max_chunk_bytes)?;
        rest.begin = chunk.end();
        chunks.push(chunk);
    }
    Ok(chunks)
}
