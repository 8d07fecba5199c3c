//! Holds the parts of a capture that a child sent against each other: what refers to something refers
//! to what is there. Other libraries take the tables that are made of it without looking.

use flopwatch_model::{Capture, Category, Column, Events, Values, Width, index};
use flopwatch_trace::ReadLimits;

/// What contradicts what, if anything does.
pub(super) fn check(capture: &Capture) -> Result<(), String> {
    let limits = ReadLimits::default();
    let rows = capture.rows.len();
    if rows > index(limits.max_rows) {
        return Err(format!("more than {} rows", limits.max_rows));
    }
    let all: u64 = capture.events.values().map(Events::count).sum();
    if all > limits.max_events {
        return Err(format!("more than {} events", limits.max_events));
    }
    for (category, events) in &capture.events {
        let checked = columns(*category, events).and_then(|()| references(events, rows));
        checked.map_err(|what| format!("{}: {what}", category.name()))?;
    }
    if capture
        .counters
        .iter()
        .any(|series| series.t_ns.len() != series.value.len())
    {
        return Err("a series without a time for each value".to_owned());
    }
    if capture.stacks.as_ref().is_some_and(|stacks| !stacks.is_consistent()) {
        return Err("samples that refer to what is not there".to_owned());
    }
    if !capture.call_stacks.is_consistent() {
        return Err("stacks of calls that refer to what is not there".to_owned());
    }
    Ok(())
}

/// Whether the columns are the category's, and each has a value per event.
fn columns(category: Category, events: &Events) -> Result<(), &'static str> {
    let (own, optional) = (category.columns(), category.optional_columns());
    let ids: Vec<_> = events.columns.iter().map(|column| column.id).collect();
    let (always, more) = ids.split_at_checked(own.len()).ok_or("lacks a column")?;
    let are_known = more.iter().all(|id| optional.contains(id));
    let once = more
        .iter()
        .enumerate()
        .all(|(at, id)| !more.iter().skip(at + 1).any(|other| other == id));
    if always != own || !are_known || !once {
        return Err("columns of another category");
    }
    let count = events.len();
    let lengths = [events.row.len(), events.name.len(), events.correlation.len()];
    let is_whole = |column: &Column| {
        let wide = matches!(column.values, Values::U64(_));
        column.values.len() == count && wide == (column.id.width() == Width::U64)
    };
    if events.duration_ns.len() != count
        || lengths.iter().any(|length| *length != count)
        || !events.columns.iter().all(is_whole)
    {
        return Err("columns of different lengths");
    }
    Ok(())
}

fn references(events: &Events, rows: usize) -> Result<(), &'static str> {
    let names = events.names.len();
    if events.name.iter().any(|name| index(*name) >= names) {
        return Err("an event refers to a name that is not there");
    }
    if events.row.iter().any(|row| index(*row) >= rows) {
        return Err("an event refers to a row that is not there");
    }
    if events.name_details.values().any(|texts| texts.len() != names) {
        return Err("details not one per name");
    }
    let is_there = |column: &Column| match &column.values {
        Values::U32(values) if column.id.is_text() => values.iter().all(|value| index(*value) < column.texts.len()),
        _ => true,
    };
    if !events.columns.iter().all(is_there) {
        return Err("an event refers to a text that is not there");
    }
    Ok(())
}
