//! The engine of an NVIDIA GPU. Sorting, scanning and selecting happen there; what is sequential by
//! nature, and what is small by then, happens here with the same code as in [`super::Cpu`].

use std::collections::BTreeMap;
use std::ops::Range;

use flopwatch_cuda::{
    CudaError, Kernels, Memory, NameFigures, OverlappingEvents, Runs, Steps, StripMajor, Table, TableColumns,
};
use rayon::prelude::*;

use super::engine::{CategoryOutput, Columns, Input, Output};
use super::lanes::Lanes;
use super::lod::{self, Coverage, Entry};
use super::strips::Strips;
use flopwatch_model::{Category, EventId, Figures, Lod, index};

/// Overlapping events of a row that are given lanes one after the other.
const PIECE_EVENTS: usize = 1 << 16;

/// Does all four steps on `memory` with `kernels`: what [`super::Cpu`] gives, byte for byte, or the
/// reason why not.
pub fn run<M: Memory>(memory: &M, kernels: &Kernels, input: &Input) -> Result<Output, CudaError> {
    let steps = Steps::new(memory, kernels);
    let mut tables = Vec::with_capacity(input.categories.len());
    for (category, columns) in &input.categories {
        let table = steps.sort(TableColumns {
            start_ns: &columns.start_ns,
            duration_ns: &columns.duration_ns,
            row: &columns.row,
            name: &columns.name,
        })?;
        tables.push((*category, columns.names, table));
    }
    let all: Vec<&Table<M>> = tables.iter().map(|(_, _, table)| table).collect();
    let mut lanes = steps.lanes(&all, lanes)?;
    let mut categories: BTreeMap<Category, CategoryOutput> = BTreeMap::new();
    for (category, names, table) in &tables {
        let figures = figures(*names, &steps.figures(table)?);
        let sorted = steps.columns(table)?;
        let rest = lanes.split_off(sorted.order.len().min(lanes.len()));
        let lane = std::mem::replace(&mut lanes, rest);
        let strips = Strips::new(&sorted.row, &lane, input.rows);
        let by_strip = steps.by_strip(table, &strips.number(&sorted.row, &lane))?;
        let lod = levels(&by_strip, &strips)?;
        drop(by_strip);
        let in_place = (0_u32..).zip(&sorted.order).all(|(at, before)| at == *before);
        let columns = Columns {
            start_ns: sorted.start_ns,
            duration_ns: sorted.duration_ns,
            row: sorted.row,
            name: sorted.name,
            names: *names,
        };
        let sorted = CategoryOutput {
            columns,
            order: (!in_place).then_some(sorted.order),
            lane,
            lod,
            figures,
        };
        categories.insert(*category, sorted);
    }
    Ok(Output { categories })
}

/// Device memory in bytes that [`run`] needs for `input`.
pub fn needed_bytes(input: &Input) -> u64 {
    let counts: Vec<usize> = input
        .categories
        .values()
        .map(|columns| columns.start_ns.len())
        .collect();
    Steps::<flopwatch_cuda::Gpu>::needed_bytes(&counts)
}

/// Lanes of the events that overlap others of their row. Those that do not are left out: where none
/// of a row runs, the count starts afresh anyhow.
fn lanes(overlapping_events: &OverlappingEvents) -> Vec<u32> {
    let mut rows = Vec::new();
    let mut from = 0;
    for row in overlapping_events.row.chunk_by(|a, b| a == b) {
        rows.push(from..from + row.len());
        from += row.len();
    }
    let pieces = rows
        .into_par_iter()
        .flat_map_iter(|row| pieces(overlapping_events, row));
    let of_pieces: Vec<Vec<u32>> = pieces
        .map(|span| {
            let mut lanes = Lanes::default();
            let (starts, durations) = times(overlapping_events, span);
            let times = starts.iter().zip(durations);
            times
                .map(|(start, duration)| lanes.take(*start, start.saturating_add(*duration)))
                .collect()
        })
        .collect();
    of_pieces.concat()
}

/// The events of a row in pieces of some length, cut where none of the row runs: what comes behind
/// depends on nothing before it.
fn pieces(overlapping_events: &OverlappingEvents, row: Range<usize>) -> Vec<Range<usize>> {
    let (starts, durations) = times(overlapping_events, row.clone());
    let (mut pieces, mut from, mut until) = (Vec::new(), row.start, 0);
    for (at, (start, duration)) in row.clone().zip(starts.iter().zip(durations)) {
        if *start >= until && at - from >= PIECE_EVENTS {
            pieces.push(from..at);
            from = at;
        }
        until = until.max(start.saturating_add(*duration));
    }
    pieces.push(from..row.end);
    pieces
}

fn times(overlapping_events: &OverlappingEvents, span: Range<usize>) -> (&[u64], &[u64]) {
    let starts = overlapping_events.start_ns.get(span.clone()).unwrap_or_default();
    (starts, overlapping_events.duration_ns.get(span).unwrap_or_default())
}

fn levels<M: Memory>(by_strip: &StripMajor<'_, M>, strips: &Strips) -> Result<Lod, CudaError> {
    let mut differing = [0_usize; 65];
    for (count, found) in differing.iter_mut().zip(by_strip.differing()?) {
        *count = index(found);
    }
    let count = differing.iter().sum();
    let shifts = lod::shifts(count, strips.all().len(), &differing);
    let Some(finest) = shifts.first() else {
        return Ok(Lod::default());
    };
    let runs = by_strip.runs(*finest)?;
    // Every strip holds events, so each has runs.
    let mut spans = Vec::with_capacity(strips.all().len());
    let mut from = 0;
    for strip in runs.strip.chunk_by(|a, b| a == b) {
        spans.push(from..from + strip.len());
        from += strip.len();
    }
    let of_strips = spans
        .into_par_iter()
        .zip(strips.all())
        .map(|(span, strip)| lod::pyramid(*strip, entries(&runs, span, *finest), &shifts));
    Ok(lod::merge_strips(&shifts, &of_strips.collect::<Vec<_>>()))
}

/// The entries of the finest level of the strip that has these runs.
fn entries(runs: &Runs, span: Range<usize>, shift: u8) -> Vec<Entry> {
    fn value<T: Copy + Default>(values: &[T], at: usize) -> T {
        values.get(at).copied().unwrap_or_default()
    }
    // What the running sum of covered time was before the strip.
    let base = span
        .start
        .checked_sub(1)
        .map_or(0, |before| value(&runs.covered_ns, before));
    let entries = span.map(|at| Entry {
        bucket: value(&runs.start_ns, at) >> shift,
        event: EventId::new(value(&runs.event, at)),
        duration_ns: value(&runs.duration_ns, at),
        count: value(&runs.count, at),
        after: Coverage {
            covered: value(&runs.covered_ns, at).wrapping_sub(base),
            until: value(&runs.until_ns, at),
        },
    });
    entries.collect()
}

/// One per name below `names`, zeros for a name that does not occur.
fn figures(names: u32, found: &[NameFigures]) -> Vec<Figures> {
    let mut figures = vec![Figures::default(); index(names)];
    for name in found {
        if let Some(slot) = figures.get_mut(index(name.name)) {
            *slot = Figures {
                count: name.count,
                total: name.total,
                squares: name.squares,
                min: name.min,
                max: name.max,
                lower_median: name.lower_median,
                upper_median: name.upper_median,
            };
        }
    }
    figures
}
