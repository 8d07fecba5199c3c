//! A summary as text: for a terminal, and as CSV.

mod csv;

pub(crate) use csv::csv;

use crate::{Measure, Summary, TABLES, Table, TableRow};

/// Longest name that is shown; the middle of a longer one is left out.
const NAME_WIDTH: usize = 72;

/// Renders `summary` with at most `top` rows per table.
pub(crate) fn table(summary: &Summary, top: usize) -> String {
    let mut out = String::new();
    header(&mut out, summary);
    let tables = summary.tables().map(|(name, table)| (title(name), table));
    for (title, table) in tables {
        if table.captured && !table.is_empty() {
            section(&mut out, title, table, top);
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
        line(&mut out, &format!("\n{what}: {titles}"));
    }
    for drop in &summary.drops {
        let reason = format!("{:?}", drop.reason);
        line(&mut out, &format!("{reason}: {} ({})", drop.count, drop.what));
    }
    if summary.redactions > 0 {
        line(&mut out, &format!("Redacted: {} secrets in names", summary.redactions));
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

fn header(out: &mut String, summary: &Summary) {
    let source = &summary.source;
    let events = summary.total_events;
    let window = duration(precise(summary.window_ns));
    // Not every source tells its version.
    let tool = format!("{} {}", source.tool, source.tool_version);
    line(out, &format!("{}: {events} events in {window}", tool.trim()));
    for gpu in &summary.gpus {
        let share = gpu.busy_ratio_of_window * 100.0;
        let at_work = gpu.busy_ratio_of_events_span * 100.0;
        let span = duration(precise(summary.events_span_ns));
        let busy = duration(precise(gpu.busy_ns));
        let name = format!("GPU {} {}", gpu.device, gpu.name);
        line(
            out,
            &format!(
                "{}: busy {busy}, {share:.1} % of the window, {at_work:.1} % of the {span} that hold events",
                name.trim_end()
            ),
        );
    }
    let launches = summary.launches;
    if launches.unmatched > 0 {
        let all = launches.matched + launches.unmatched;
        line(
            out,
            &format!(
                "Launches found for {} of {all} kernels, graphs, copies and sets",
                launches.matched
            ),
        );
    }
}

fn section(out: &mut String, title: &str, table: &Table, top: usize) {
    let format = if table.unit == Measure::Bytes { size } else { duration };
    let heads = ["share", "total", "calls", "avg", "median", "min", "max", "stddev"];
    let rows: Vec<[String; 8]> = table.rows.iter().take(top).map(|row| cells(row, format)).collect();
    let widths: Vec<usize> = (0..heads.len())
        .map(|at| {
            let cells = rows.iter().filter_map(|row| row.get(at)).map(String::len);
            cells.chain(heads.get(at).map(|head| head.len())).max().unwrap_or(0)
        })
        .collect();
    line(out, &format!("\n{title}"));
    let mut put = |cells: &[&str], name: &str| {
        for (cell, width) in cells.iter().zip(&widths) {
            let cell = format!("{cell:>width$}  ");
            out.push_str(&cell);
        }
        line(out, name);
    };
    put(&heads, "name");
    for (row, cells) in table.rows.iter().zip(&rows) {
        let style = row.style.as_ref().map_or(String::new(), |style| format!(" [{style}]"));
        put(
            &cells.each_ref().map(String::as_str),
            &format!("{}{style}", shorten(&row.name)),
        );
    }
    if let Some(rest) = table.rows.len().checked_sub(top).filter(|rest| *rest > 0) {
        line(out, &format!("... and {rest} more"));
    }
    if table.unknown > 0 {
        line(out, &format!("{} of unknown size", table.unknown));
    }
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

/// Control characters must not reach a terminal: a range's name is the program's choice.
fn printable(c: char) -> char {
    if c.is_control() { '\u{fffd}' } else { c }
}

fn shorten(name: &str) -> String {
    let name: Vec<char> = name.chars().map(printable).collect();
    if name.len() <= NAME_WIDTH {
        return name.into_iter().collect();
    }
    let half = (NAME_WIDTH - 1) / 2;
    let head = name.iter().take(half);
    let tail = name.iter().skip(name.len() - half);
    head.chain(['…'].iter()).chain(tail).collect()
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
