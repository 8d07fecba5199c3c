//! The transform's steps on a device's memory: order, lanes, the finest level of detail, figures
//! per name.
//!
//! The rules are those of `flopwatch_trace::transform::engine`; all of it is integer arithmetic
//! with one right answer. What is small, or sequential by nature (lanes of events that overlap),
//! comes back to the caller, who does it with the processor's own code. In the worst case (nothing
//! but overlaps) that is all of it, which is slow and still right.

use crate::CudaError;
use crate::kernels::{Calls, Indexed, Indices, Kernels};
use crate::memory::Memory;

/// The steps on one device.
#[derive(Debug)]
pub struct Steps<'a, M: Memory> {
    memory: &'a M,
    kernels: &'a Kernels,
}

/// The columns of a table, in any order.
#[derive(Debug, Clone, Copy, Default)]
pub struct TableColumns<'a> {
    /// Starts in ns.
    pub start_ns: &'a [u64],
    /// Lengths in ns.
    pub duration_ns: &'a [u64],
    /// Row of each event.
    pub row: &'a [u32],
    /// Name of each event.
    pub name: &'a [u32],
}

/// A table on the device, sorted by start, length (the longest first) and row, stable.
pub struct Table<M: Memory> {
    count: usize,
    order: Indices<M>,
    start: M::Array<u64>,
    duration: M::Array<u64>,
    row: M::Array<u32>,
    name: M::Array<u32>,
}

/// The columns of a sorted table on the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SortedColumns {
    /// Starts in ns.
    pub start_ns: Vec<u64>,
    /// Lengths in ns.
    pub duration_ns: Vec<u64>,
    /// Row of each event.
    pub row: Vec<u32>,
    /// Name of each event.
    pub name: Vec<u32>,
    /// Where each event was before.
    pub order: Vec<u32>,
}

/// Events that share time with another of their row, sorted by row, start, length (the longest
/// first), and table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OverlappingEvents {
    /// Row of each of them.
    pub row: Vec<u32>,
    /// Starts of the events, in ns.
    pub start_ns: Vec<u64>,
    /// Lengths of the events, in ns.
    pub duration_ns: Vec<u64>,
}

/// A table strip by strip: a strip is a lane of a row, or whatever else its caller numbers its
/// events by.
pub struct StripMajor<'a, M: Memory> {
    steps: &'a Steps<'a, M>,
    count: usize,
    position: Indices<M>,
    start: M::Array<u64>,
    duration: M::Array<u64>,
    strip: M::Array<u32>,
    differing: M::Array<u8>,
}

/// Runs of a strip's events whose starts lie in one bucket, sorted by strip and bucket. All columns
/// have the same length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Runs {
    /// Strip of each event.
    pub strip: Vec<u32>,
    /// Start of the first event.
    pub start_ns: Vec<u64>,
    /// How many events.
    pub count: Vec<u32>,
    /// The longest event, the first one where several are as long: its index in the table.
    pub event: Vec<u32>,
    /// Length of the run, in ns.
    pub duration_ns: Vec<u64>,
    /// Length of the union of the strip's intervals up to the run's last event, from any base,
    /// modulo 2^64. The base of a strip is `covered_ns` of the run before.
    pub covered_ns: Vec<u64>,
    /// The latest end of the strip's events up to then.
    pub until_ns: Vec<u64>,
}

/// Exact figures of the lengths of one name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NameFigures {
    /// The name, by its number: below the `names` of the steps.
    pub name: u32,
    /// How many events.
    pub count: u64,
    /// Sum of the values.
    pub total: u128,
    /// Sum of squares; stops at the largest number.
    pub squares: u128,
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
    /// The middle value, the lower one where there are two.
    pub lower_median: u64,
    /// The middle value, the upper one where there are two.
    pub upper_median: u64,
}

impl<M: Memory> std::fmt::Debug for Table<M> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Table")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

impl<M: Memory> std::fmt::Debug for StripMajor<'_, M> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("StripMajor")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

impl<'a, M: Memory> Steps<'a, M> {
    /// Device memory that the steps need for tables of `counts` events, in bytes: what stays for
    /// each table, and what the largest step holds beside it.
    pub fn needed_bytes(counts: &[usize]) -> u64 {
        let of = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let all = counts.iter().copied().map(of).fold(0_u64, u64::saturating_add);
        // A table keeps order, start, length, row and name: 28 bytes per event. Lanes take the
        // tables together: the same columns once more, two orders, two columns of keys, ends,
        // reach, lane, and CUB's scratch (about 12): 92.
        all.saturating_mul(28 + 92).saturating_add(64 << 20)
    }

    /// Steps on `memory`, done by `kernels`.
    pub const fn new(memory: &'a M, kernels: &'a Kernels) -> Self {
        Self { memory, kernels }
    }

    fn calls(&self, count: usize) -> Result<Calls<'a, M>, CudaError> {
        Calls::new(self.kernels, self.memory, count)
    }

    /// Sorts a table.
    pub fn sort(&self, columns: TableColumns<'_>) -> Result<Table<M>, CudaError> {
        let count = columns.start_ns.len();
        let lengths = [columns.duration_ns.len(), columns.row.len(), columns.name.len()];
        if lengths.iter().any(|length| *length != count) {
            return Err(CudaError::Mismatch("columns of a table"));
        }
        let mut calls = self.calls(count)?;
        let mut order = calls.sequence(count)?;
        // From the last criterion to the first: each sort is stable.
        let row = self.memory.upload(columns.row)?;
        order = by(&mut calls, &row, order, Direction::Rising)?;
        let duration = self.memory.upload(columns.duration_ns)?;
        order = by(&mut calls, &duration, order, Direction::Falling)?;
        let start = self.memory.upload(columns.start_ns)?;
        order = by(&mut calls, &start, order, Direction::Rising)?;
        let name = self.memory.upload(columns.name)?;
        Ok(Table {
            count,
            start: calls.gather(&start, &order)?,
            duration: calls.gather(&duration, &order)?,
            row: calls.gather(&row, &order)?,
            name: calls.gather(&name, &order)?,
            order,
        })
    }

    /// The sorted columns.
    pub fn columns(&self, table: &Table<M>) -> Result<SortedColumns, CudaError> {
        let count = table.count;
        Ok(SortedColumns {
            start_ns: self.memory.download(&table.start, count)?,
            duration_ns: self.memory.download(&table.duration, count)?,
            row: self.memory.download(&table.row, count)?,
            name: self.memory.download(&table.name, count)?,
            order: self.memory.download(table.order.array(), count)?,
        })
    }

    /// Lanes of the events of all tables together, one table after the other. An event that shares
    /// time with no other of its row is in lane 0; the others go to `assign`, which gives a lane
    /// for each.
    pub fn lanes(
        &self,
        tables: &[&Table<M>],
        assign: impl FnOnce(&OverlappingEvents) -> Vec<u32>,
    ) -> Result<Vec<u32>, CudaError> {
        let count = tables.iter().map(|table| table.count).sum();
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut lanes = self.memory.zeroed::<u32>(count)?;
        let mut calls = self.calls(count)?;
        let start = self
            .memory
            .concatenate(&tables.iter().map(|table| &table.start).collect::<Vec<_>>())?;
        let duration = self
            .memory
            .concatenate(&tables.iter().map(|table| &table.duration).collect::<Vec<_>>())?;
        let row = self
            .memory
            .concatenate(&tables.iter().map(|table| &table.row).collect::<Vec<_>>())?;
        let mut order = calls.sequence(count)?;
        order = by(&mut calls, &duration, order, Direction::Falling)?;
        order = by(&mut calls, &start, order, Direction::Rising)?;
        order = by(&mut calls, &row, order, Direction::Rising)?;
        let row = calls.gather(&row, &order)?;
        let start = calls.gather(&start, &order)?;
        let duration = calls.gather(&duration, &order)?;
        let ends = calls.ends(&start, &duration)?;
        let reach = calls.reach(&row, &ends)?;
        let flags = calls.overlaps(&row, &start, &reach)?;
        let (rows, positions) = calls.select(&flags)?;
        if !rows.is_empty() {
            let found = rows.len();
            let overlapping = OverlappingEvents {
                row: self.memory.download(&calls.gather(&row, &positions)?, found)?,
                start_ns: self.memory.download(&calls.gather(&start, &positions)?, found)?,
                duration_ns: self.memory.download(&calls.gather(&duration, &positions)?, found)?,
            };
            let assigned = assign(&overlapping);
            if assigned.len() != found {
                return Err(CudaError::Mismatch("lanes and the events that wait for one"));
            }
            let events = calls.at(&order, &positions)?;
            calls.scatter(&assigned, &events, &mut lanes)?;
        }
        self.memory.download(&lanes, count)
    }

    /// The table strip by strip, from the strip of each of its events.
    pub fn by_strip(&'a self, table: &Table<M>, strip: &[u32]) -> Result<StripMajor<'a, M>, CudaError> {
        if strip.len() != table.count {
            return Err(CudaError::Mismatch("strips and the events of a table"));
        }
        let mut calls = self.calls(table.count)?;
        let order = calls.sequence(table.count)?;
        let strip = self.memory.upload(strip)?;
        let position = by(&mut calls, &strip, order, Direction::Rising)?;
        let strip = calls.gather(&strip, &position)?;
        let start = calls.gather(&table.start, &position)?;
        let differing = calls.differing(&strip, &start)?;
        Ok(StripMajor {
            steps: self,
            count: table.count,
            duration: calls.gather(&table.duration, &position)?,
            position,
            start,
            strip,
            differing,
        })
    }

    /// Figures of the lengths of every name that occurs, by name.
    pub fn figures(&self, table: &Table<M>) -> Result<Vec<NameFigures>, CudaError> {
        let count = table.count;
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut calls = self.calls(count)?;
        let mut order = calls.sequence(count)?;
        order = by(&mut calls, &table.duration, order, Direction::Rising)?;
        order = by(&mut calls, &table.name, order, Direction::Rising)?;
        let name = calls.gather(&table.name, &order)?;
        let values = calls.gather(&table.duration, &order)?;
        let heads = calls.heads(&name)?;
        let (first, positions) = calls.select(&heads)?;
        let names = self.memory.download(&calls.gather(&name, &positions)?, first.len())?;
        let spans = spans(&first, count)?;
        let value_at = |column: fn(&Span) -> u32| {
            let rows: Vec<u32> = spans.iter().map(column).collect();
            let rows = calls.positions(&rows, count)?;
            self.memory.download(&calls.gather(&values, &rows)?, spans.len())
        };
        let min = value_at(|span| span.first)?;
        let max = value_at(|span| span.last)?;
        let lower = value_at(|span| span.first + (span.last - span.first) / 2)?;
        let upper = value_at(|span| span.first + (span.last - span.first).div_ceil(2))?;
        let digits = if calls.largest(&values)? >> 32 == 0 { 1 } else { 2 };
        let lasts: Vec<u32> = spans.iter().map(|span| span.last).collect();
        let lasts = calls.positions(&lasts, count)?;
        let mut sums = |digits: u32, square: bool| -> Result<Vec<u128>, CudaError> {
            let mut totals = vec![0_u128; spans.len()];
            for digit in 0..digits {
                let running = calls.digit_sums(&values, digit, square)?;
                let running = self.memory.download(&calls.gather(&running, &lasts)?, spans.len())?;
                let mut before = 0_u64;
                for (total, running) in totals.iter_mut().zip(running) {
                    let part = u128::from(running.wrapping_sub(before));
                    // A digit's sum may have more bits than are left above its place.
                    let placed = part.saturating_mul(1_u128 << (32 * digit));
                    *total = total.saturating_add(placed);
                    before = running;
                }
            }
            Ok(totals)
        };
        let total = sums(digits, false)?;
        let squares = sums(2 * digits, true)?;
        let mut figures = Vec::with_capacity(names.len());
        for (at, (name, span)) in names.into_iter().zip(&spans).enumerate() {
            let value = |values: &[u64]| values.get(at).copied().unwrap_or_default();
            let wide = |values: &[u128]| values.get(at).copied().unwrap_or_default();
            figures.push(NameFigures {
                name,
                count: u64::from(span.last - span.first) + 1,
                total: wide(&total),
                squares: wide(&squares),
                min: value(&min),
                max: value(&max),
                lower_median: value(&lower),
                upper_median: value(&upper),
            });
        }
        Ok(figures)
    }
}

impl<M: Memory> StripMajor<'_, M> {
    /// How many events differ from the one before in their strip in so many low bits of the start,
    /// by the number of bits (0 to 64); the first event of each strip counts as 64.
    pub fn differing(&self) -> Result<Vec<u32>, CudaError> {
        if self.count == 0 {
            return Ok(vec![0; 65]);
        }
        let mut bins = self.steps.calls(self.count)?.histogram(&self.differing)?;
        bins.truncate(65);
        Ok(bins)
    }

    /// The runs of events in buckets of `1 << shift` ns.
    pub fn runs(&self, shift: u8) -> Result<Runs, CudaError> {
        if self.count == 0 {
            return Ok(Runs::default());
        }
        let memory = self.steps.memory;
        let mut calls = self.steps.calls(self.count)?;
        let flags = calls.above(&self.differing, shift)?;
        let (first, best) = calls.best(&flags, &self.duration)?;
        let found = first.len();
        let ends = calls.ends(&self.start, &self.duration)?;
        let reach = calls.reach(&self.strip, &ends)?;
        let covered = calls.covered(&self.strip, &self.start, &ends, &reach)?;
        let covered = calls.sum(&covered)?;
        let spans = spans(&first, self.count)?;
        let lasts: Vec<u32> = spans.iter().map(|span| span.last).collect();
        let lasts = calls.positions(&lasts, self.count)?;
        let firsts = calls.positions(&first, self.count)?;
        Ok(Runs {
            strip: memory.download(&calls.gather(&self.strip, &firsts)?, found)?,
            start_ns: memory.download(&calls.gather(&self.start, &firsts)?, found)?,
            count: spans
                .iter()
                .map(|span| (span.last - span.first).saturating_add(1))
                .collect(),
            event: memory.download(calls.at(&self.position, &best)?.array(), found)?,
            duration_ns: memory.download(&calls.gather(&self.duration, &best)?, found)?,
            covered_ns: memory.download(&calls.gather(&covered, &lasts)?, found)?,
            until_ns: memory.download(&calls.gather(&reach, &lasts)?, found)?,
        })
    }
}

/// First and last position of a run.
struct Span {
    first: u32,
    last: u32,
}

fn spans(starts: &[u32], count: usize) -> Result<Vec<Span>, CudaError> {
    let count = u32::try_from(count).map_err(|_overflow| CudaError::TooMany { count })?;
    let next = starts.iter().skip(1).copied().chain([count]);
    let spans = starts.iter().zip(next);
    Ok(spans
        .map(|(first, next)| Span {
            first: *first,
            last: next.saturating_sub(1).max(*first),
        })
        .collect())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Rising,
    Falling,
}

/// Sorts an order by values, stable. Only as many low bits as the largest value has take part.
fn by<M: Memory, T: Indexed>(
    calls: &mut Calls<'_, M>,
    values: &M::Array<T>,
    order: Indices<M>,
    direction: Direction,
) -> Result<Indices<M>, CudaError> {
    let keys = calls.keys(values, &order, direction == Direction::Falling)?;
    // A falling key is the complement: what its smallest lacks to all ones is the largest value.
    let bits = match direction {
        Direction::Rising => u64::BITS - calls.largest(&keys)?.leading_zeros(),
        Direction::Falling => u64::BITS - calls.smallest(&keys)?.leading_ones(),
    };
    if bits == 0 {
        return Ok(order);
    }
    let (_, order) = calls.sort(&keys, &order, bits)?;
    Ok(order)
}
