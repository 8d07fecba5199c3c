//! The engine of an NVIDIA GPU. Sorting, scanning and selecting happen there; what is sequential by nature, and what is small by
//! then, happens here with the same code as in [`super::Cpu`].

use std::collections::BTreeMap;

use flopwatch_cuda::{
    CudaError, Kernels, Memory, NameFigures, Overlapping, Runs, Steps, StripMajor, Table, TableColumns,
};
use rayon::prelude::*;

use super::engine::{Columns, Input, Output, Sorted};
use super::lanes::Lanes;
use super::lod::{self, Cover, Entry};
use super::strips::Strips;
use crate::model::{Category, Figures, Lod, index};

/// Does all four steps on `memory` with `kernels`: what [`super::Cpu`] gives, byte for byte, or the reason why not.
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
    let mut lanes = steps.lanes(&all, lanes)?.into_iter();
    let mut categories: BTreeMap<Category, Sorted> = BTreeMap::new();
    for (category, names, table) in &tables {
        let figures = figures(*names, &steps.figures(table)?);
        let sorted = steps.columns(table)?;
        let lane: Vec<u32> = lanes.by_ref().take(sorted.order.len()).collect();
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
        let sorted = Sorted {
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

/// Lanes of the events that overlap others of their row. Those that do not are left out: where none of a row runs, the count
/// starts afresh anyhow.
fn lanes(overlapping: &Overlapping) -> Vec<u32> {
    let rows: Vec<&[u32]> = overlapping.row.chunk_by(|a, b| a == b).collect();
    let mut spans = Vec::with_capacity(rows.len());
    let mut from = 0;
    for row in rows {
        spans.push(from..from + row.len());
        from += row.len();
    }
    let of_rows: Vec<Vec<u32>> = spans
        .into_par_iter()
        .map(|span| {
            let starts = overlapping.start_ns.get(span.clone()).unwrap_or_default();
            let durations = overlapping.duration_ns.get(span).unwrap_or_default();
            let mut lanes = Lanes::default();
            let times = starts.iter().zip(durations);
            times
                .map(|(start, duration)| lanes.take(*start, start.saturating_add(*duration)))
                .collect()
        })
        .collect();
    of_rows.concat()
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
    let entries = entries(&by_strip.runs(*finest)?, *finest);
    // Every strip holds events, so each has entries.
    let of_strips = entries
        .into_par_iter()
        .zip(strips.all())
        .map(|(entries, strip)| lod::pyramid(*strip, entries, &shifts));
    Ok(lod::together(&shifts, of_strips.collect()))
}

/// The entries of the finest level, strip by strip.
fn entries(runs: &Runs, shift: u8) -> Vec<Vec<Entry>> {
    let mut strips: Vec<Vec<Entry>> = Vec::new();
    // What the running sum of covered time was before the strip, and at the run before.
    let (mut base, mut latest) = (0_u64, 0_u64);
    let mut last = None;
    for (at, strip) in runs.strip.iter().enumerate() {
        let value = |values: &[u64]| values.get(at).copied().unwrap_or_default();
        let number = |values: &[u32]| values.get(at).copied().unwrap_or_default();
        if last.replace(*strip) != Some(*strip) {
            base = latest;
            strips.push(Vec::new());
        }
        latest = value(&runs.covered_ns);
        let Some(entries) = strips.last_mut() else { continue };
        let before = entries.last().map_or_else(Cover::default, |entry| entry.after);
        let after = Cover {
            covered: latest.wrapping_sub(base),
            until: value(&runs.until_ns),
        };
        entries.push(Entry {
            bucket: value(&runs.start_ns) >> shift,
            event: number(&runs.event),
            duration_ns: value(&runs.duration_ns),
            count: number(&runs.count),
            before,
            after,
        });
    }
    strips
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
