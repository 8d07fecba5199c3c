//! A summary's tables as CSV (RFC 4180), for spreadsheets and scripts: one heading, one line per
//! row.

use flopwatch_model::spreadsheet::inert;

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

/// Renders the tables of `summary` with at most `top` rows each. A table without events has one
/// line whose status says why: `no events` or `not captured`. Events whose value is not known have
/// a line `not said` with their number.
pub(crate) fn csv(summary: &Summary, top: usize) -> String {
    let mut out = String::new();
    record(&mut out, HEADS.map(str::to_owned));
    for (name, table) in summary.tables() {
        let line = |status: &str, row: Option<&TableRow>, calls: String| {
            let figure = |of: fn(&TableRow) -> String| row.map(of).unwrap_or_default();
            [
                name.to_owned(),
                status.to_owned(),
                table.unit.unit().to_owned(),
                figure(|row| inert(row.style.as_deref().unwrap_or_default()).into_owned()),
                figure(|row| inert(&row.name).chars().map(printable).collect()),
                figure(|row| row.share_of_table.to_string()),
                calls,
                figure(|row| row.statistics.total.to_string()),
                figure(|row| row.statistics.avg.to_string()),
                figure(|row| row.statistics.median.to_string()),
                figure(|row| row.statistics.min.to_string()),
                figure(|row| row.statistics.max.to_string()),
                figure(|row| row.statistics.stddev.to_string()),
            ]
        };
        if table.is_empty() {
            let status = if table.captured { "no events" } else { "not captured" };
            record(&mut out, line(status, None, String::new()));
        }
        for row in table.rows.iter().take(top) {
            record(&mut out, line("captured", Some(row), row.statistics.calls.to_string()));
        }
        if table.unknown > 0 {
            record(&mut out, line("not said", None, table.unknown.to_string()));
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

#[cfg(test)]
mod tests {
    use flopwatch_model::{Capture, Category, Event, Events, Timeline};

    use super::*;
    use crate::summarise;

    #[test]
    fn the_name_of_a_range_is_no_formula() {
        let mut ranges = Events::new(Category::NvtxRange);
        ranges.names = vec!["=1+1".to_owned()];
        ranges.push(Event::default(), &[]);
        let timeline = Timeline {
            capture: Capture {
                captured: [Category::NvtxRange].into(),
                events: [(Category::NvtxRange, ranges)].into(),
                ..Capture::default()
            },
            ..Timeline::default()
        };
        let text = csv(&summarise(&timeline), 9);
        assert!(text.contains("\nnvtx,captured,ns,PushPop,'=1+1,"), "{text}");
    }
}
