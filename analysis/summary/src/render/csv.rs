//! A summary's tables as CSV (RFC 4180), for spreadsheets and scripts: one heading, one line per row.

use super::printable;
use crate::{Summary, TableRow};

const HEADS: [&str; 13] = [
    "table",
    "status",
    "unit",
    "style",
    "name",
    "share_of_table",
    "calls",
    "total",
    "avg",
    "median",
    "min",
    "max",
    "stddev",
];

/// Renders the tables of `summary` with at most `top` rows each. A table without rows has one line whose status says why:
/// `no events` or `not captured`.
pub(crate) fn csv(summary: &Summary, top: usize) -> String {
    let mut out = String::new();
    record(&mut out, HEADS.map(str::to_owned));
    for (name, table) in summary.tables() {
        let line = |status: &str, row: Option<&TableRow>| {
            let figure = |of: fn(&TableRow) -> String| row.map(of).unwrap_or_default();
            [
                name.to_owned(),
                status.to_owned(),
                table.unit.unit().to_owned(),
                figure(|row| row.style.clone().unwrap_or_default()),
                figure(|row| row.name.chars().map(printable).collect()),
                figure(|row| row.share_of_table.to_string()),
                figure(|row| row.statistics.calls.to_string()),
                figure(|row| row.statistics.total.to_string()),
                figure(|row| row.statistics.avg.to_string()),
                figure(|row| row.statistics.median.to_string()),
                figure(|row| row.statistics.min.to_string()),
                figure(|row| row.statistics.max.to_string()),
                figure(|row| row.statistics.stddev.to_string()),
            ]
        };
        if table.rows.is_empty() {
            let status = if table.captured { "no events" } else { "not captured" };
            record(&mut out, line(status, None));
        }
        for row in table.rows.iter().take(top) {
            record(&mut out, line("captured", Some(row)));
        }
    }
    out
}

fn record<const N: usize>(out: &mut String, fields: [String; N]) {
    let fields = fields.map(|field| {
        if field.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field
        }
    });
    out.push_str(&fields.join(","));
    out.push('\n');
}
