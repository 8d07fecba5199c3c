//! What a capture measured, as rows.

use std::collections::BTreeMap;

use flopwatch_model::{Category, Events, Figures, RowId, Timeline, figures_by_key, index, whole};
use flopwatch_summary::{Measure, Summary, TABLES, TableRow};

use crate::capture::{CaptureRow, integer};
use crate::name::{OTHER_NAMES, stored};
use crate::row::Row;
use crate::sketch::Sketch;

/// Category of launches that a kernel profiler replayed. They ran alone, so that their time is not
/// to be added to that of other kernels.
pub const PROFILED_KERNEL: &str = "profiled_kernel";

/// Names of a device and category that have a row each: those with the longest totals. The rest is
/// one row, [`OTHER_NAMES`].
pub const MAX_NAMES: usize = 1_000;

/// The rows of a capture: per device and name, of the categories that the summary has tables of.
pub fn rows(timeline: &Timeline, summary: &Summary, capture: &CaptureRow) -> Vec<Row> {
    with_names(timeline, summary, capture, MAX_NAMES)
}

fn with_names(timeline: &Timeline, summary: &Summary, capture: &CaptureRow, max: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    let tables = TABLES.iter().filter(|table| table.unit == Measure::Duration);
    for category in tables.flat_map(|table| table.categories) {
        if let Some(events) = timeline.capture.events.get(category) {
            of_category(timeline, *category, events, capture, max, &mut rows);
        }
    }
    let profiled = &summary.profiled_kernels.rows;
    rows.extend(profiled.iter().map(|row| of_figures(row, capture)));
    rows
}

/// What a row says of its capture.
fn of_capture(capture: &CaptureRow, category: &str, name: &str) -> Row {
    let (name, name_hash) = stored(name);
    Row {
        capture_uid: capture.capture_uid.clone(),
        namespace: capture.namespace.clone(),
        image: capture.image.clone(),
        image_digest: capture.image_digest.clone(),
        version: capture.version.clone(),
        node: capture.node.clone(),
        gpu_model: capture.gpu_model.clone(),
        workload: capture.workload.clone(),
        window_start: capture.window_start,
        window_ns: capture.window_ns,
        probability_per_billion: capture.probability_per_billion,
        category: category.to_owned(),
        name: name.into_owned(),
        name_hash,
        ..Row::default()
    }
}

/// A row of a table whose durations are not at hand.
fn of_figures(row: &TableRow, capture: &CaptureRow) -> Row {
    let figures = &row.statistics;
    Row {
        calls: integer(figures.calls),
        total_ns: integer(figures.total),
        min_ns: integer(figures.min),
        max_ns: integer(figures.max),
        median_ns: integer(whole(figures.median.floor())),
        ..of_capture(capture, PROFILED_KERNEL, &row.name)
    }
}

fn of_category(
    timeline: &Timeline,
    category: Category,
    events: &Events,
    capture: &CaptureRow,
    max: usize,
    rows: &mut Vec<Row>,
) {
    let device_of = |row: RowId| timeline.row(row).and_then(|row| row.device);
    // One device after the other: memory is that of the names, not of the names on every device.
    let mut devices: BTreeMap<Option<u32>, Vec<usize>> = BTreeMap::new();
    for (at, row) in events.row.iter().enumerate() {
        devices.entry(device_of(*row)).or_default().push(at);
    }
    for (device, events_of) in devices {
        let known = timeline.capture.devices.iter().find(|known| Some(known.id) == device);
        let model = known.map(|known| known.name.clone()).filter(|name| !name.is_empty());
        for measured in MeasuredName::of(events, &events_of, max) {
            let figures = measured.figures;
            let mut row = of_capture(capture, category.name(), measured.name);
            row.device = device.map(i64::from);
            row.gpu_model = model.clone().or(row.gpu_model);
            row.calls = integer(figures.count);
            row.total_ns = i64::try_from(figures.total).unwrap_or(i64::MAX);
            row.min_ns = integer(figures.min);
            row.max_ns = integer(figures.max);
            row.median_ns = integer(figures.whole_median());
            row.sketch = Some(measured.sketch);
            rows.push(row);
        }
    }
}

/// What is known of a name.
struct MeasuredName<'a> {
    name: &'a str,
    figures: Figures,
    sketch: Sketch,
}

impl<'a> MeasuredName<'a> {
    /// The names of those events, the longest total first; behind `max` all others in one.
    fn of(events: &'a Events, at: &[usize], max: usize) -> Vec<Self> {
        let duration = |at: &usize| events.duration_ns.get(*at).copied().unwrap_or(0);
        // A name that does not exist is one of the others, and so is one that is called like them.
        let name = |at: &usize| events.name.get(*at).map_or(usize::MAX, |name| name.index());
        let mut totals: Vec<(u128, u64)> = vec![(0, 0); events.names.len()];
        for event in at {
            if let Some((total, calls)) = totals.get_mut(name(event)) {
                *total += u128::from(duration(event));
                *calls += 1;
            }
        }
        let mut kept: Vec<(u128, &str, usize)> = totals
            .iter()
            .zip(&events.names)
            .enumerate()
            .filter(|(_, ((_, calls), name))| *calls > 0 && name.as_str() != OTHER_NAMES)
            .map(|(position, ((total, _), name))| (*total, name.as_str(), position))
            .collect();
        kept.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        kept.truncate(max);
        let others = u32::try_from(kept.len()).unwrap_or(u32::MAX);
        let mut kept_positions = vec![others; events.names.len()];
        for (position, (_, _, name)) in (0_u32..).zip(&kept) {
            if let Some(slot) = kept_positions.get_mut(*name) {
                *slot = position;
            }
        }
        let keys = at
            .iter()
            .map(|event| kept_positions.get(name(event)).copied().unwrap_or(others));
        let keys: Vec<u32> = keys.collect();
        let figures = figures_by_key(others.saturating_add(1), &keys, |event| {
            at.get(event).map_or(0, duration)
        });
        let mut sketches = vec![Sketch::default(); figures.len()];
        for (key, event) in keys.iter().zip(at) {
            if let Some(sketch) = sketches.get_mut(index(*key)) {
                sketch.add(duration(event));
            }
        }
        let names = kept.iter().map(|(_, name, _)| *name).chain([OTHER_NAMES]);
        let measured = names.zip(figures).zip(sketches);
        let measured = measured.map(|((name, figures), sketch)| Self { name, figures, sketch });
        measured.filter(|measured| measured.figures.count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_model::{Event, NameId};

    use super::*;

    #[test]
    fn names_behind_the_most_are_one_row_with_exact_figures() {
        let mut events = Events::new(Category::NvtxRange);
        events.names = ["a", "b", OTHER_NAMES, "c", "d"].map(str::to_owned).to_vec();
        // A name that does not exist is one of the others.
        for (name, duration_ns) in [(0, 50), (0, 70), (1, 100), (2, 9), (3, 7), (4, 1), (4, 2), (9, 8)] {
            let event = Event {
                name: NameId::new(name),
                duration_ns,
                ..Event::default()
            };
            events.push(event, &[]);
        }
        let at: Vec<usize> = (0..events.len()).collect();
        let found = MeasuredName::of(&events, &at, 2);
        let figures: Vec<_> = found
            .iter()
            .map(|measured| {
                (
                    measured.name,
                    measured.figures.count,
                    measured.figures.total,
                    measured.figures.max,
                )
            })
            .collect();
        assert_eq!(
            figures,
            [("a", 2, 120, 70), ("b", 1, 100, 100), (OTHER_NAMES, 5, 27, 9)]
        );
        let others = found.last().unwrap();
        assert_eq!((others.figures.lower_median, others.sketch.count()), (7, 5));
    }
}
