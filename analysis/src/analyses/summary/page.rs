//! A summary as a page.

use flopwatch_report::NotCaptured;
use flopwatch_report::page::{self, Bars, Page, Tile, Unit};
use flopwatch_summary::{Measure, Summary, TABLES, Table};

use super::SummaryAnalysis;
use crate::definition::Analysis;

/// Rows per table; JSON and CSV have all.
const MAX_ROWS: usize = 1000;

pub(super) fn page(summary: &Summary) -> Page {
    let mut page = Page::new(SummaryAnalysis::TITLE, SummaryAnalysis::ABOUT);
    page.tiles([
        Tile::figure("Window", Unit::Ns, summary.window_ns),
        Tile::figure("First event to last", Unit::Ns, summary.events_span_ns),
        Tile::new("Events", summary.total_events),
        Tile::new("GPU work with its launch", summary.launches.matched),
        Tile::new("GPU work without", summary.launches.unmatched),
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
    page::Table::of("GPUs", &summary.gpus)
        .column("GPU", |gpu| gpu.device)
        .column("Product", |gpu| gpu.name.as_str())
        .figure("Busy", Unit::Ns, |gpu| gpu.busy_ns)
        .figure("Of the window", Unit::Ratio, |gpu| gpu.busy_ratio_of_window)
        .figure("Of first event to last", Unit::Ratio, |gpu| {
            gpu.busy_ratio_of_events_span
        })
        .build()
}

fn busy(summary: &Summary) -> impl Into<Bars> {
    Bars::of("Busy share of the window", Unit::Ratio, &summary.gpus, |gpu| {
        format!("GPU {}", gpu.device)
    })
    .series("busy", |gpu| gpu.busy_ratio_of_window)
}

fn rows(title: &str, table: &Table) -> page::Table {
    let unit = match table.unit {
        Measure::Duration => Unit::Ns,
        Measure::Bytes => Unit::Bytes,
    };
    let about = match table.unknown {
        0 => String::new(),
        unknown => format!("{unknown} more of unknown size."),
    };
    let left_out = table.rows.len().saturating_sub(MAX_ROWS);
    let mut shown = page::Table::of(title, table.rows.iter().take(MAX_ROWS))
        .about(about)
        .left_out(u64::try_from(left_out).unwrap_or(u64::MAX))
        .column("Name", |row| row.name.as_str());
    if table.rows.iter().any(|row| row.style.is_some()) {
        shown = shown.column("Style", |row| row.style.as_deref());
    }
    shown
        .figure("Share", Unit::Ratio, |row| row.share_of_table)
        .figure("Total", unit, |row| row.statistics.total)
        .column("Calls", |row| row.statistics.calls)
        .figure("Avg", unit, |row| row.statistics.avg)
        .figure("Med", unit, |row| row.statistics.median)
        .figure("Min", unit, |row| row.statistics.min)
        .figure("Max", unit, |row| row.statistics.max)
        .figure("StdDev", unit, |row| row.statistics.stddev)
        .build()
}
