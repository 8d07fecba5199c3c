//! From a capture as read to a timeline as published: canonical order, lanes, levels of detail,
//! launches joined to GPU work.
//!
//! The outcome depends on the events, and on the order in which the source held those of one time
//! and row; not on the order of any others, and not on the engine that did the heavy steps
//! ([`engine`] says what these are).

#[cfg(feature = "cuda")]
pub mod choice;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "cuda")]
pub mod device;
pub mod engine;
mod figures;
mod lanes;
mod launches;
pub mod lod;
mod names;
pub mod order;
mod spans;
pub mod strips;

pub use cpu::Cpu;

use rayon::prelude::*;

use crate::times::last_end;
use engine::{CategoryOutput, Columns, Engine, Input};
use flopwatch_model::{Capture, Category, Events, NameId, RowId, Timeline, Values};
use spans::Spans;

/// What the caller decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransformOptions {
    /// The session's identifier, kept in the file.
    pub session_id: String,
}

/// Sorts events by start, names and rows by themselves, assigns lanes, makes levels of detail and
/// joins launches, on the processor.
pub fn transform(capture: Capture, options: TransformOptions) -> Timeline {
    transform_with(&Cpu, capture, options)
}

/// The same with the heavy steps on `engine`.
pub fn transform_with(engine: &dyn Engine, mut capture: Capture, options: TransformOptions) -> Timeline {
    capture.events.retain(|_, events| !events.is_empty());
    capture.captured.extend(capture.events.keys().copied());
    capture.sort_call_stacks();
    let rows = names::sort_rows(&mut capture.rows);
    let mut events: Vec<(Category, Events)> = std::mem::take(&mut capture.events).into_iter().collect();
    events
        .par_iter_mut()
        .for_each(|(category, events)| number(*category, events, &rows));
    let input = Input {
        categories: events
            .iter_mut()
            .map(|(category, events)| (*category, take(events)))
            .collect(),
        rows: u32::try_from(capture.rows.len()).unwrap_or(u32::MAX),
    };
    let mut output = engine.run(input);
    let mut timeline = Timeline {
        session_id: options.session_id,
        ..Timeline::default()
    };
    let sorted: Vec<_> = events
        .into_iter()
        .map(|(category, events)| {
            (
                category,
                events,
                output.categories.remove(&category).unwrap_or_default(),
            )
        })
        .collect();
    let placed: Vec<_> = sorted
        .into_par_iter()
        .map(|(category, mut events, sorted)| {
            let sorted = put_back(&mut events, sorted);
            (category, events, sorted)
        })
        .collect();
    for (category, events, CategoryOutput { lod, figures, .. }) in placed {
        timeline.lod.insert(category, lod);
        timeline.figures.insert(category, figures);
        capture.events.insert(category, events);
    }
    capture
        .counters
        .sort_by(|a, b| (&a.source, &a.device, &a.metric).cmp(&(&b.source, &b.device, &b.metric)));
    capture.devices.sort_by_key(|device| device.id);
    capture.allocations.par_sort_by_key(|allocation| allocation.t_ns);
    capture.programs.sort_unstable();
    capture.duration_ns = last_end(&capture.events).unwrap_or(0).max(capture.duration_ns);
    launches::join(&mut capture);
    timeline.capture = capture;
    timeline
}

/// Levels of detail and figures of events that are in order already, as those of a file.
#[cfg(feature = "hdf5")]
pub(crate) fn derive(events: &Events, rows: u32) -> (flopwatch_model::Lod, Vec<flopwatch_model::Figures>) {
    let columns = Columns {
        start_ns: events.start_ns.clone(),
        duration_ns: events.duration_ns.clone(),
        row: RowId::numbers(&events.row).to_vec(),
        name: NameId::numbers(&events.name).to_vec(),
        names: u32::try_from(events.names.len()).unwrap_or(u32::MAX),
    };
    let mut spans = Spans::new(&columns, rows, Vec::new());
    spans.set_lanes(&columns.row, &events.lane);
    (lod::lod(&spans), figures::by_name(&columns))
}

/// Rows and names in their published numbering, columns in their published order.
fn number(category: Category, events: &mut Events, rows: &[RowId]) {
    if !rows.iter().copied().eq(RowId::all().take(rows.len())) {
        let renumber = |row: &mut RowId| *row = rows.get(row.index()).copied().unwrap_or(*row);
        events
            .row
            .par_iter_mut()
            .with_min_len(order::MIN_PIECE_EVENTS)
            .for_each(renumber);
    }
    // The columns that only some sources give come last, in their published order.
    let own = category.columns().len();
    if let Some(optional) = events.columns.get_mut(own..) {
        optional.sort_by_key(|column| column.id);
    }
    names::sort_names(events);
    for column in &mut events.columns {
        names::sort_texts(column);
    }
}

/// The columns that the engine needs leave the events meanwhile.
fn take(events: &mut Events) -> Columns {
    events.lane = Vec::new();
    Columns {
        start_ns: std::mem::take(&mut events.start_ns),
        duration_ns: std::mem::take(&mut events.duration_ns),
        row: RowId::into_numbers(std::mem::take(&mut events.row)),
        name: NameId::into_numbers(std::mem::take(&mut events.name)),
        names: u32::try_from(events.names.len()).unwrap_or(u32::MAX),
    }
}

/// Takes the sorted columns back and brings the others into the same order.
fn put_back(events: &mut Events, mut sorted: CategoryOutput) -> CategoryOutput {
    let Columns {
        start_ns,
        duration_ns,
        row,
        name,
        ..
    } = std::mem::take(&mut sorted.columns);
    events.start_ns = start_ns;
    events.duration_ns = duration_ns;
    events.row = RowId::from_numbers(row);
    events.name = NameId::from_numbers(name);
    events.lane = std::mem::take(&mut sorted.lane);
    if let Some(order) = sorted.order.take() {
        order::gather(&mut events.correlation, &order);
        for column in &mut events.columns {
            match &mut column.values {
                Values::U32(values) => order::gather(values, &order),
                Values::U64(values) => order::gather(values, &order),
            }
        }
    }
    sorted
}
