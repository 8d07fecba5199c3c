//! From a capture as read to a timeline as published: canonical order, lanes, launches joined to GPU work.
//!
//! The outcome depends on the events alone, not on the order in which the source held them.

mod lanes;
mod launches;

use std::cmp::Reverse;

use crate::model::{Capture, Events, Row, Timeline, index};

/// What the caller decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransformOptions {
    /// The session's identifier, kept in the file.
    pub session_id: String,
}

/// Sorts events by start, names and rows by themselves, assigns lanes and joins launches.
pub fn transform(mut capture: Capture, options: TransformOptions) -> Timeline {
    capture.events.retain(|_, events| !events.is_empty());
    capture.captured.extend(capture.events.keys().copied());
    let rows = sort_rows(&mut capture.rows);
    for (category, events) in &mut capture.events {
        for row in &mut events.row {
            *row = rows.get(index(*row)).copied().unwrap_or(*row);
        }
        // The columns that only some sources give come last, in their published order.
        let own = category.columns().len();
        if let Some(optional) = events.columns.get_mut(own..) {
            optional.sort_by_key(|column| column.id);
        }
        sort_names(events);
        sort_events(events);
    }
    capture
        .counters
        .sort_by(|a, b| (&a.source, &a.device, &a.metric).cmp(&(&b.source, &b.device, &b.metric)));
    capture.devices.sort_by_key(|device| device.id);
    let ends = capture
        .events
        .values()
        .flat_map(|events| (0..events.len()).map(|at| events.end_ns(at)));
    capture.duration_ns = ends.max().unwrap_or(0).max(capture.duration_ns);
    lanes::assign(&mut capture.events, capture.rows.len());
    launches::join(&mut capture);
    Timeline {
        session_id: options.session_id,
        capture,
    }
}

/// Sorts rows and merges equal ones; gives the new index of each old one.
fn sort_rows(rows: &mut Vec<Row>) -> Vec<u32> {
    let old = std::mem::take(rows);
    rows.clone_from(&old);
    rows.sort();
    rows.dedup();
    old.iter().map(|row| position(rows, row)).collect()
}

/// Sorts names, drops those that no event uses, merges equal ones.
fn sort_names(events: &mut Events) {
    let mut used = vec![false; events.names.len()];
    for name in &events.name {
        if let Some(used) = used.get_mut(index(*name)) {
            *used = true;
        }
    }
    let old = std::mem::take(&mut events.names);
    let mut names: Vec<String> = old
        .iter()
        .zip(&used)
        .filter(|(_, used)| **used)
        .map(|(name, _)| name.clone())
        .collect();
    names.sort();
    names.dedup();
    let new: Vec<u32> = old.iter().map(|name| position(&names, name)).collect();
    for name in &mut events.name {
        *name = new.get(index(*name)).copied().unwrap_or(*name);
    }
    events.names = names;
}

/// Where `item` stands in `sorted`; for one that is not there, where it would.
fn position<T: Ord>(sorted: &[T], item: &T) -> u32 {
    let at = sorted.binary_search(item).unwrap_or_else(|at| at);
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Sorts by start, the longest first where starts are equal, then by every other column so that no order is left to chance.
fn sort_events(events: &mut Events) {
    let count = u32::try_from(events.len()).unwrap_or(u32::MAX);
    let mut order: Vec<u32> = (0..count).collect();
    let key = |at: u32| {
        let at = index(at);
        (
            events.start_ns.get(at).copied(),
            Reverse(events.duration_ns.get(at).copied()),
            events.row.get(at).copied(),
            events.name.get(at).copied(),
            events.correlation.get(at).copied(),
        )
    };
    order.sort_unstable_by(|a, b| {
        let own = || {
            let columns = events.columns.iter();
            columns
                .map(|column| column.values.get(index(*a)).cmp(&column.values.get(index(*b))))
                .find(|o| o.is_ne())
        };
        key(*a)
            .cmp(&key(*b))
            .then_with(|| own().unwrap_or(std::cmp::Ordering::Equal))
    });
    events.permute(&order);
}
