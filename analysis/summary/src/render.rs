//! A summary as text: for a terminal, and as CSV.

mod csv;

pub(crate) use csv::csv;

use flopwatch_report::page::figure::count;
use flopwatch_report::page::grid::{Grid, GridColumn};
use flopwatch_report::page::text::no_room;
use flopwatch_report::{Layout, Tone};

use crate::{Measure, Summary, TABLES, Table, TableRow};

/// Renders `summary` with at most `top` rows per table.
pub(crate) fn table(summary: &Summary, top: usize, layout: Layout) -> String {
    let mut out = String::new();
    header(&mut out, summary, layout);
    let mut is_cut = false;
    let tables = summary.tables().map(|(name, table)| (title(name), table));
    for (title, table) in tables {
        if table.captured && !table.is_empty() {
            is_cut |= section(&mut out, title, table, top, layout);
        }
    }
    let list = |wanted: bool| {
        let titles = tables
            .iter()
            .filter(|(_, table)| table.captured == wanted && table.is_empty());
        titles.map(|(title, _)| *title).collect::<Vec<&str>>().join(", ")
    };
    let lines = [("No events", list(true)), ("Not captured", list(false))];
    for (what, titles) in lines.into_iter().filter(|(_, titles)| !titles.is_empty()) {
        out.push('\n');
        line(&mut out, &layout.wrapped(&format!("{what}: {titles}"), 2));
    }
    for drop in &summary.drops {
        let reason = format!("{:?}", drop.reason);
        let text = layout.wrapped(&format!("{reason}: {} ({})", drop.count, drop.what), 2);
        line(&mut out, &layout.paint(Tone::Note, &text));
    }
    if summary.redactions > 0 {
        line(
            &mut out,
            &format!("Redacted: {} in names", count(summary.redactions, "secret", "secrets")),
        );
    }
    if is_cut {
        out.push('\n');
        no_room(&mut out, layout);
    }
    out
}

/// A table's heading for people.
fn title(field: &'static str) -> &'static str {
    let table = TABLES.iter().find(|table| table.field == field);
    table.map_or(field, |table| table.title)
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

fn header(out: &mut String, summary: &Summary, layout: Layout) {
    let mut put = |text: &str| line(out, &layout.wrapped(text, 2));
    let source = &summary.source;
    let events = count(summary.total_events, "event", "events");
    let window = duration(precise(summary.window_ns));
    // Not every source tells its version.
    let tool = format!("{} {}", source.tool, source.tool_version);
    put(&format!("{}: {events} in {window}", tool.trim()));
    for gpu in &summary.gpus {
        let share = gpu.busy_ratio_of_window * 100.0;
        let at_work = gpu.busy_ratio_of_events_span * 100.0;
        let span = duration(precise(summary.events_span_ns));
        let busy = duration(precise(gpu.busy_ns));
        let name = format!("GPU {} {}", gpu.device, gpu.name);
        put(&format!(
            "{}: busy {busy}, {share:.1} % of the window, {at_work:.1} % of the {span} that hold events",
            name.trim_end()
        ));
    }
    let launches = summary.launches;
    if launches.unmatched > 0 {
        let all = launches.matched + launches.unmatched;
        put(&format!(
            "Launches found for {} of {all} kernels, graphs, copies and sets",
            launches.matched
        ));
    }
}

/// Whether anything of the table has no room.
fn section(out: &mut String, title: &str, table: &Table, top: usize, layout: Layout) -> bool {
    let format = if table.unit == Measure::Bytes { size } else { duration };
    let heads = ["share", "total", "calls", "avg", "med", "min", "max", "stddev"];
    let column = |head: &str, is_number| GridColumn {
        head: head.to_owned(),
        is_number,
    };
    let columns = heads.into_iter().map(|head| column(head, true));
    let rows = table.rows.iter().take(top).map(|row| {
        let style = row.style.as_ref().map_or(String::new(), |style| format!(" [{style}]"));
        let name = format!("{}{style}", row.name);
        cells(row, format).into_iter().chain([name]).collect()
    });
    let grid = Grid {
        columns: columns.chain([column("name", false)]).collect(),
        rows: rows.collect(),
    };
    out.push('\n');
    line(out, &layout.paint(Tone::Heading, title));
    let is_cut = grid.write(out, layout);
    if let Some(rest) = table.rows.len().checked_sub(top).filter(|rest| *rest > 0) {
        line(out, &format!("... and {rest} more"));
    }
    if table.unknown > 0 {
        line(out, &format!("{} of unknown size", table.unknown));
    }
    is_cut
}

fn cells(row: &TableRow, format: fn(f64) -> String) -> [String; 8] {
    let figures = &row.statistics;
    [
        format!("{:.1} %", row.share_of_table * 100.0),
        format(precise(figures.total)),
        figures.calls.to_string(),
        format(figures.avg),
        format(figures.median),
        format(precise(figures.min)),
        format(precise(figures.max)),
        format(figures.stddev),
    ]
}

/// Control characters must not reach whoever opens a table: a range's name is the program's choice.
fn printable(c: char) -> char {
    if c.is_control() { '\u{fffd}' } else { c }
}

fn duration(ns: f64) -> String {
    scaled(ns, 1000.0, &["ns", "us", "ms", "s"])
}

fn size(bytes: f64) -> String {
    scaled(bytes, 1000.0, &["B", "kB", "MB", "GB", "TB"])
}

fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or("");
    for next in units {
        if value < step {
            break;
        }
        value /= step;
        unit = next;
    }
    let digits = if unit == "ns" || unit == "B" { 0 } else { 2 };
    format!("{value:.digits$} {unit}")
}

fn precise(value: u64) -> f64 {
    flopwatch_model::approximate(u128::from(value))
}
