//! A summary as a page.

use flopwatch_report::NotCaptured;
use flopwatch_report::page::{self, Bars, Page, Series, Unit};
use flopwatch_summary::{Measure, Summary, TABLES, Table};

use crate::definition::Analysis;

/// Rows per table; JSON and CSV have all.
const MOST_ROWS: usize = 1000;

pub(super) fn page(summary: &Summary) -> Page {
    let mut page = Page::new("Summary", <super::SummaryAnalysis as Analysis>::ABOUT);
    page.tiles([
        ("Window", summary.window_ns.into(), Unit::Ns),
        ("First event to last", summary.events_span_ns.into(), Unit::Ns),
        ("Events", summary.total_events.into(), Unit::None),
        ("GPU work with its launch", summary.launches.matched.into(), Unit::None),
        ("GPU work without", summary.launches.unmatched.into(), Unit::None),
    ]);
    if !summary.gpus.is_empty() {
        page.table(gpus(summary));
        page.bars(busy(summary));
    }
    let (mut empty, mut missing) = (Vec::new(), Vec::new());
    for (field, table) in summary.tables() {
        let definition = TABLES.iter().find(|table| table.field == field);
        let title = definition.map_or(field, |definition| definition.title);
        if !table.captured {
            missing.push(title);
        } else if table.is_empty() {
            empty.push(title);
        } else {
            page.table(rows(title, table));
        }
    }
    if !missing.is_empty() {
        let reason = "the profiler did not record such events, which says nothing about whether they happened";
        page.not_captured.push(NotCaptured::new(missing.join(", "), reason));
    }
    if !empty.is_empty() {
        page.text("Captured, and nothing happened", empty.join(", "));
    }
    if let Some(overhead) = &summary.overhead {
        page.text(
            "Cost to the program",
            format!("{}: {}", overhead.verdict, overhead.message),
        );
    }
    if let Some(time) = &summary.processor_time {
        let known = [
            ("the profiler's own processes", time.profiler_ms),
            ("import and transform", time.processing_ms),
        ];
        let known = known
            .into_iter()
            .filter_map(|(whose, ms)| Some(format!("{whose}: {} ms", ms?)));
        page.text("Processor time", known.collect::<Vec<_>>().join("; "));
    }
    if let Some(on) = &summary.transformed_on {
        page.text("Transformed on", format!("{:?}: {}", on.device, on.reason));
    }
    page
}

fn gpus(summary: &Summary) -> page::Table {
    let columns = [
        ("GPU", Unit::None),
        ("Product", Unit::None),
        ("Busy", Unit::Ns),
        ("Of the window", Unit::Ratio),
        ("Of first event to last", Unit::Ratio),
    ];
    let mut table = page::Table::new("GPUs", &columns);
    for gpu in &summary.gpus {
        table.push([
            gpu.device.into(),
            gpu.name.as_str().into(),
            gpu.busy_ns.into(),
            gpu.busy_ratio_of_window.into(),
            gpu.busy_ratio_of_events_span.into(),
        ]);
    }
    table
}

fn busy(summary: &Summary) -> Bars {
    let gpus = &summary.gpus;
    let shares = gpus.iter().map(|gpu| Some(gpu.busy_ratio_of_window));
    Bars {
        title: "Busy share of the window".to_owned(),
        unit: Unit::Ratio,
        stacked: false,
        labels: gpus.iter().map(|gpu| format!("GPU {}", gpu.device)).collect(),
        series: vec![Series {
            name: "busy".to_owned(),
            values: shares.collect(),
        }],
    }
}

fn rows(title: &str, table: &Table) -> page::Table {
    let unit = match table.unit {
        Measure::Duration => Unit::Ns,
        Measure::Bytes => Unit::Bytes,
    };
    let has_style = table.rows.iter().any(|row| row.style.is_some());
    let mut columns = vec![("Name", Unit::None)];
    if has_style {
        columns.push(("Style", Unit::None));
    }
    columns.extend([
        ("Share", Unit::Ratio),
        ("Total", unit),
        ("Calls", Unit::None),
        ("Mean", unit),
        ("Median", unit),
        ("Least", unit),
        ("Most", unit),
        ("Deviation", unit),
    ]);
    let mut shown = page::Table::new(title, &columns);
    if table.unknown > 0 {
        shown.about = format!("{} more of unknown size.", table.unknown);
    }
    for row in table.rows.iter().take(MOST_ROWS) {
        let figures = &row.statistics;
        let style = row.style.as_deref().map(page::Cell::from);
        let name = std::iter::once(row.name.as_str().into());
        let style = has_style.then(|| style.unwrap_or_default());
        let rest = [
            row.share_of_table.into(),
            figures.total.into(),
            figures.calls.into(),
            figures.avg.into(),
            figures.median.into(),
            figures.min.into(),
            figures.max.into(),
            figures.stddev.into(),
        ];
        shown.push(name.chain(style).chain(rest));
    }
    let left_out = table.rows.len().saturating_sub(MOST_ROWS);
    shown.left_out = u64::try_from(left_out).unwrap_or(u64::MAX);
    shown
}
