//! A table of events, read by every core: each takes a piece of the rows and writes it to its place
//! in the columns.

use std::collections::BTreeMap;
use std::convert::identity;

use rayon::prelude::*;

use super::cpu::{DomainKey, RangeCategoryKey};
use super::keys::{NameNumbers, RowNumbers, RowWords, settle};
use super::names::Text;
use super::tables::{Piece, Table};
use super::{Failure, Reader, RowKey, TIME_BIAS};
use crate::hdf5_io::StringBudget;
use crate::limits::ReadLimits;
use flopwatch_model::{Category, Column, ColumnId, Events, LossReason, NameId, RowId, Values, index};

/// Rows of a table whose columns are made at once.
const MAX_ROWS: usize = 1 << 24;

/// Columns that every table of events has.
const TIMES: [&str; 2] = ["start", "end"];

/// Class of a row that is no event of any category.
pub(super) const NO_CLASS: u8 = u8::MAX;

/// The description of a table by which it is read.
pub(super) struct Plan<'a> {
    /// Its categories: the class of a row is its place among them.
    pub(super) categories: &'a [Category],
    /// The columns of which the categories do not always have one, and which the table fills. Those
    /// that say nothing are left out at the end.
    pub(super) optional: &'a [ColumnId],
    /// The columns of numbers that are read of each row beside the times: a container that reads
    /// row by row takes all at once.
    pub(super) numbers: &'a [&'a str],
    /// The columns of strings that are read of each row.
    pub(super) texts: &'a [&'a str],
    /// What a row of the timeline is that has these words.
    pub(super) row: fn(RowWords) -> RowKey,
    /// Whether an end of 0 says that the event had not ended when the capture did.
    pub(super) open_ends: bool,
    /// What to call the rows that are not shown, by their number.
    pub(super) unsupported: &'a dyn Fn(u32) -> String,
}

/// A column of a category in a piece.
#[derive(Debug)]
pub(super) enum OptionalColumn<'a> {
    U32(&'a mut [u32]),
    U64(&'a mut [u64]),
}

/// Where the events of a piece go; all is zero before.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    /// Number of the piece in the table.
    pub(super) piece: usize,
    start: &'a mut [u64],
    duration: &'a mut [u64],
    /// Numbers of this core's rows.
    pub(super) row: &'a mut [u32],
    /// Numbers of this core's names of the class.
    pub(super) name: &'a mut [u32],
    pub(super) correlation: &'a mut [u32],
    /// Class by row.
    pub(super) class: &'a mut [u8],
    pub(super) own: Vec<OptionalColumn<'a>>,
}

impl Slot<'_> {
    /// How many rows.
    pub(super) fn rows(&self) -> usize {
        self.row.len()
    }
}

/// The state of a worker thread between pieces of a table.
#[derive(Debug)]
pub(super) struct WorkerState {
    core: usize,
    pub(super) rows: RowNumbers,
    /// Numbers of names, by class of events.
    pub(super) names: Vec<NameNumbers>,
    /// For texts that are kept until all is read.
    pub(super) strings: StringBudget,
    pub(super) most_rows: u32,
    pub(super) words: [Vec<u64>; 4],
    pub(super) kinds: Vec<u32>,
    times: [Vec<i64>; 2],
}

impl WorkerState {
    fn new(core: usize, classes: usize, limits: &ReadLimits) -> Self {
        Self {
            core,
            rows: RowNumbers::default(),
            names: (0..classes).map(|_| NameNumbers::default()).collect(),
            strings: StringBudget::new(limits.max_string_bytes),
            most_rows: limits.max_rows,
            words: Default::default(),
            kinds: Vec::new(),
            times: Default::default(),
        }
    }
}

/// More streams and threads than the limit allows.
pub(super) fn too_many_rows(table: &str, limit: u32) -> Failure {
    Failure::TooMany {
        table: table.to_owned(),
        what: "streams and threads",
        limit: u64::from(limit),
    }
}

/// Counts and times of a piece of a table, for the table's own sums.
#[derive(Debug, Default)]
pub(super) struct PieceSummary {
    core: usize,
    /// Whether some row is not of the first class.
    pub(super) mixed: bool,
    backwards: u64,
    /// The last time, and which rows are open.
    last: i64,
    open: Vec<usize>,
    /// Rows that are not shown, by their number.
    pub(super) unsupported: BTreeMap<u32, u64>,
    /// Domains that the rows tell of.
    pub(super) domains: Vec<(DomainKey, Text)>,
    /// Categories of NVTX that the rows tell of.
    pub(super) range_categories: Vec<(RangeCategoryKey, Text)>,
}

impl PieceSummary {
    /// Adds where the open events are among those of the first class, of which so many come
    /// `before` the piece; gives how many come before the next one.
    fn open_positions(&self, class: &[u8], before: usize, open: &mut Vec<usize>) -> usize {
        let mut positions = self.open.iter().peekable();
        let mut position = before;
        for (at, class) in class.iter().enumerate() {
            let is_open = positions.next_if(|open| **open == at).is_some();
            if *class == 0 {
                open.extend(is_open.then_some(position));
                position += 1;
            }
        }
        position
    }
}

/// Columns of all rows.
#[derive(Debug, Default)]
struct Columns {
    start: Vec<u64>,
    duration: Vec<u64>,
    row: Vec<u32>,
    name: Vec<u32>,
    correlation: Vec<u32>,
    class: Vec<u8>,
    own: Vec<(ColumnId, Values)>,
}

impl Columns {
    /// Zeros, of which the system gives no memory before they are written.
    fn new(category: Category, optional: &[ColumnId], rows: usize) -> Self {
        let own = no_events(category, optional).columns.into_iter().map(|column| {
            let values = match column.values {
                // The transform finds the launches.
                Values::U32(_) if column.id == ColumnId::Launch => Values::U32(vec![ColumnId::NO_LAUNCH; rows]),
                Values::U32(_) => Values::U32(vec![0; rows]),
                Values::U64(_) => Values::U64(vec![0; rows]),
            };
            (column.id, values)
        });
        Self {
            start: vec![0; rows],
            duration: vec![0; rows],
            row: vec![0; rows],
            name: vec![0; rows],
            correlation: vec![0; rows],
            class: vec![0; rows],
            own: own.collect(),
        }
    }

    fn slots(&mut self, first: usize, rows: usize) -> Vec<Slot<'_>> {
        let mut own: Vec<_> = self
            .own
            .iter_mut()
            .map(|(_, values)| -> Box<dyn Iterator<Item = OptionalColumn<'_>>> {
                match values {
                    Values::U32(values) => Box::new(values.chunks_mut(rows).map(OptionalColumn::U32)),
                    Values::U64(values) => Box::new(values.chunks_mut(rows).map(OptionalColumn::U64)),
                }
            })
            .collect();
        let times = self.start.chunks_mut(rows).zip(self.duration.chunks_mut(rows));
        let keys = self.row.chunks_mut(rows).zip(self.name.chunks_mut(rows));
        let others = self.correlation.chunks_mut(rows).zip(self.class.chunks_mut(rows));
        let slots = (first..).zip(times).zip(keys).zip(others);
        slots
            .map(
                |(((piece, (start, duration)), (row, name)), (correlation, class))| Slot {
                    piece,
                    start,
                    duration,
                    row,
                    name,
                    correlation,
                    class,
                    own: own.iter_mut().filter_map(Iterator::next).collect(),
                },
            )
            .collect()
    }
}

/// No events yet, with the columns that a table fills.
fn no_events(category: Category, optional: &[ColumnId]) -> Events {
    let mut events = Events::new(category);
    for id in optional {
        events.add_column(*id);
    }
    events
}

/// Names of NVTX domains and categories, which the table of ranges holds beside its events.
#[derive(Debug, Default)]
pub(super) struct NvtxNames {
    pub(super) domains: Vec<(DomainKey, Text)>,
    pub(super) range_categories: Vec<(RangeCategoryKey, Text)>,
}

impl Reader<'_> {
    /// Reads a table of events. `fill` writes everything but the times, class included; its note
    /// says what it left out. Gives the domains and categories of NVTX that the table tells of.
    pub(super) fn gather(
        &mut self,
        table: &Table,
        plan: &Plan<'_>,
        fill: impl Fn(&mut WorkerState, &mut Piece<'_, '_>, &mut Slot<'_>) -> Result<PieceSummary, Failure> + Sync,
    ) -> Result<NvtxNames, Failure> {
        let mut nvtx_names = NvtxNames::default();
        let Some(first) = plan.categories.first() else {
            return Ok(nvtx_names);
        };
        for column in TIMES {
            table.must_have(column)?;
        }
        let numbers: Vec<&str> = TIMES.iter().chain(plan.numbers).copied().collect();
        table.expect(&numbers, plan.texts);
        let piece_rows = table.piece_rows();
        let at_once = (MAX_ROWS / piece_rows).max(1).saturating_mul(piece_rows);
        let (mut from, mut last) = (0, 0);
        // Which events of the first category, the only one then, had not ended.
        let mut open: Vec<usize> = Vec::new();
        while from < table.rows() {
            let rows = (table.rows() - from).min(at_once);
            let first_piece = from / piece_rows;
            let mut columns = Columns::new(*first, plan.optional, rows);
            let (limits, classes, open_ends) = (*self.limits, plan.categories.len(), plan.open_ends);
            let (workers, mut summaries) = table.for_each_piece(
                first_piece,
                columns.slots(first_piece, piece_rows),
                |core| WorkerState::new(core, classes, &limits),
                |worker, piece, mut slot| {
                    let mut summary = fill(worker, piece, &mut slot)?;
                    summary.core = worker.core;
                    times(worker, piece, &mut slot, open_ends, &mut summary)?;
                    Ok(summary)
                },
            )?;
            self.settle(table, plan, workers, &summaries, &mut columns, piece_rows)?;
            let mixed = summaries.iter().any(|summary| summary.mixed);
            let mut position = self.capture.events.get(first).map_or(0, Events::len);
            for (summary, class) in summaries.iter_mut().zip(columns.class.chunks(piece_rows)) {
                let backwards = format!("{}: end before start", table.name());
                self.capture
                    .losses
                    .add(LossReason::Skipped, &backwards, summary.backwards);
                for (number, count) in &summary.unsupported {
                    let what = (plan.unsupported)(*number);
                    self.capture.losses.add(LossReason::Unsupported, &what, *count);
                }
                nvtx_names.domains.append(&mut summary.domains);
                nvtx_names.range_categories.append(&mut summary.range_categories);
                last = summary.last.max(last);
                position = summary.open_positions(class, position, &mut open);
            }
            let positions: Vec<Option<Vec<u32>>> = if mixed {
                let classes: Vec<u8> = (0_u8..).take(plan.categories.len()).collect();
                classes
                    .into_par_iter()
                    .map(|class| Some(positions(&columns.class, class)))
                    .collect()
            } else {
                // All are of the first class.
                vec![None]
            };
            for (category, positions) in plan.categories.iter().zip(&positions) {
                let events = no_events(*category, plan.optional);
                self.keep(table, (*category, events), positions.as_deref(), &mut columns)?;
            }
            from += rows;
        }
        self.close(table, *first, &open, last);
        Ok(nvtx_names)
    }

    /// Gives rows and names the numbers that count.
    fn settle(
        &mut self,
        table: &Table,
        plan: &Plan<'_>,
        workers: Vec<WorkerState>,
        summaries: &[PieceSummary],
        columns: &mut Columns,
        piece_rows: usize,
    ) -> Result<(), Failure> {
        let mut rows = Vec::new();
        let mut names: Vec<Vec<_>> = plan.categories.iter().map(|_| Vec::new()).collect();
        for worker in workers {
            rows.push(worker.rows.first_seen);
            for (all, of_core) in names.iter_mut().zip(worker.names) {
                all.push(of_core.first_seen);
            }
        }
        let rows = settle(rows.into_iter(), |words| {
            self.row(table, (plan.row)(words)).map(RowId::number)
        })?;
        let mut settled = Vec::with_capacity(names.len());
        for (category, names) in plan.categories.iter().zip(names) {
            settled.push(settle(names.into_iter(), |key| self.name(table, *category, key))?);
        }
        let keys = columns
            .row
            .par_chunks_mut(piece_rows)
            .zip(columns.name.par_chunks_mut(piece_rows));
        let pieces = keys.zip(columns.class.par_chunks(piece_rows)).zip(summaries);
        pieces.with_min_len(64).for_each(|(((row, name), class), summary)| {
            renumber(row, rows.get(summary.core).map_or(&[], Vec::as_slice));
            let of_class = |class: usize| settled.get(class).and_then(|cores| cores.get(summary.core));
            if summary.mixed {
                for (name, class) in name.iter_mut().zip(class) {
                    let numbers = of_class(usize::from(*class));
                    *name = numbers
                        .and_then(|numbers| numbers.get(index(*name)))
                        .copied()
                        .unwrap_or(*name);
                }
            } else {
                renumber(name, of_class(0).map_or(&[], Vec::as_slice));
            }
        });
        Ok(())
    }

    /// Adds the rows at `positions`, or all, to their category, which has no events yet, or more of
    /// this table.
    fn keep(
        &mut self,
        table: &Table,
        (category, none): (Category, Events),
        positions: Option<&[u32]>,
        columns: &mut Columns,
    ) -> Result<(), Failure> {
        let count = positions.map_or(columns.row.len(), <[u32]>::len);
        if count == 0 {
            return Ok(());
        }
        self.events = self.events.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        if self.events > self.limits.max_events {
            return Err(Failure::TooMany {
                table: table.name().to_owned(),
                what: "events",
                limit: self.limits.max_events,
            });
        }
        let events = self.capture.events.entry(category);
        let events = events.or_insert(none);
        let all = events.row.len().saturating_add(count);
        // A core per column.
        rayon::scope(|scope| {
            scope.spawn(|_| add(&mut events.start_ns, &mut columns.start, positions, identity));
            scope.spawn(|_| add(&mut events.duration_ns, &mut columns.duration, positions, identity));
            scope.spawn(|_| add(&mut events.row, &mut columns.row, positions, RowId::new));
            scope.spawn(|_| add(&mut events.name, &mut columns.name, positions, NameId::new));
            scope.spawn(|_| add(&mut events.correlation, &mut columns.correlation, positions, identity));
            let mut own: Vec<&mut Column> = events.columns.iter_mut().collect();
            for (id, from) in &mut columns.own {
                // A category of several may lack a column that the first one has.
                let Some(at) = own.iter().position(|column| column.id == *id) else {
                    continue;
                };
                let column = own.swap_remove(at);
                scope.spawn(move |_| match (&mut column.values, from) {
                    (Values::U32(into), Values::U32(from)) => add(into, from, positions, identity),
                    (Values::U64(into), Values::U64(from)) => add(into, from, positions, identity),
                    (Values::U32(into), _) => into.resize(all, 0),
                    (Values::U64(into), _) => into.resize(all, 0),
                });
            }
            if events.lane.is_empty() {
                events.lane = vec![0; all];
            } else {
                events.lane.resize(all, 0);
            }
        });
        Ok(())
    }

    /// Gives what had not ended its length up to the table's `last` time, as `nsys stats` counts
    /// it, and counts it.
    fn close(&mut self, table: &Table, category: Category, open: &[usize], last: i64) {
        let count = u64::try_from(open.len()).unwrap_or(u64::MAX);
        let what = format!("{}: not ended", table.name());
        self.capture.losses.add(LossReason::Truncated, &what, count);
        let Some(events) = self.capture.events.get_mut(&category) else {
            return;
        };
        for position in open {
            if let (Some(start), Some(duration)) =
                (events.start_ns.get(*position), events.duration_ns.get_mut(*position))
            {
                let start = (start ^ TIME_BIAS).cast_signed();
                *duration = u64::try_from(last.saturating_sub(start)).unwrap_or(0);
            }
        }
    }
}

/// Gives each its number that counts.
fn renumber(values: &mut [u32], numbers: &[u32]) {
    if (0_u32..).zip(numbers).all(|(own, number)| own == *number) {
        return;
    }
    for value in values {
        *value = numbers.get(index(*value)).copied().unwrap_or(*value);
    }
}

/// Where the rows of a class are.
fn positions(classes: &[u8], class: u8) -> Vec<u32> {
    let classes = (0_u32..).zip(classes);
    classes.filter(|(_, of)| **of == class).map(|(at, _)| at).collect()
}

/// Appends what `make` makes of the values at `positions`, or of all. Values that become others of
/// the same size stay in their memory where nothing is before them.
fn add<T: Copy, U>(into: &mut Vec<U>, from: &mut Vec<T>, positions: Option<&[u32]>, make: impl Fn(T) -> U) {
    match positions {
        Some(positions) => into.extend(
            positions
                .iter()
                .filter_map(|at| from.get(index(*at)).copied().map(&make)),
        ),
        None if into.is_empty() => *into = std::mem::take(from).into_iter().map(make).collect(),
        None => into.extend(std::mem::take(from).into_iter().map(make)),
    }
}

/// Reads the times of a piece. Rows that end before they start become no events.
fn times(
    worker: &mut WorkerState,
    piece: &mut Piece<'_, '_>,
    slot: &mut Slot<'_>,
    open_ends: bool,
    summary: &mut PieceSummary,
) -> Result<(), Failure> {
    let [starts, ends] = &mut worker.times;
    for (column, times) in TIMES.into_iter().zip([&mut *starts, &mut *ends]) {
        times.resize(slot.row.len(), 0);
        piece.read(column, times)?;
    }
    if open_ends {
        for (at, (start, end)) in starts.iter().zip(ends.iter_mut()).enumerate() {
            summary.last = summary.last.max(*start).max(*end);
            if *end == 0 && *start > 0 {
                *end = *start;
                summary.open.push(at);
            }
        }
    }
    let mut backwards = false;
    let slots = slot.start.iter_mut().zip(slot.duration.iter_mut());
    for ((slot, duration), (start, end)) in slots.zip(starts.iter().zip(ends.iter())) {
        *slot = start.cast_unsigned() ^ TIME_BIAS;
        let length = end.wrapping_sub(*start);
        *duration = length.cast_unsigned();
        backwards |= length < 0 || end < start;
    }
    if backwards {
        let rows = slot.class.iter_mut().zip(starts.iter().zip(ends.iter()));
        for (class, (start, end)) in rows {
            let backwards = end.checked_sub(*start).is_none_or(|length| length < 0);
            if backwards && *class != NO_CLASS {
                *class = NO_CLASS;
                summary.mixed = true;
                summary.backwards += 1;
            }
        }
    }
    Ok(())
}
