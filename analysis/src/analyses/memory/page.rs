//! Memory over time, as people read it.

use flopwatch_measures::requester::RequesterName;
use flopwatch_report::page::{Cell, Lines, Page, Series, Table, Unit};

use super::{MemoryPool, MemoryResult, MemorySeries};

/// Pools that have a chart and lists of their own; all are in the first table.
const DETAILED: usize = 8;

pub(super) fn page(about: &str, result: &MemoryResult) -> Page {
    let mut page = Page::new("Memory", about);
    page.not_captured.clone_from(&result.not_captured);
    if let Some(first) = result.pools.first() {
        page.tiles([
            ("Peak", first.peak_bytes.into(), Unit::Bytes),
            ("Of", first.memory.as_str().into(), Unit::None),
            ("Reached at", first.peak_ns.into(), Unit::Instant),
            ("Of the device's memory", first.peak_ratio.into(), Unit::Ratio),
            ("Reserved at most", first.peak_reserved_bytes.into(), Unit::Bytes),
            ("Unused at the peak", first.unused_at_peak_bytes.into(), Unit::Bytes),
        ]);
    }
    for note in &result.notes {
        page.text("", note.as_str());
    }
    if !result.pools.is_empty() {
        page.table(pools(&result.pools));
    }
    let highest = result.pools.first().map_or(0, |pool| pool.peak_bytes);
    let detailed = result.pools.iter().take(DETAILED);
    for pool in detailed.filter(|pool| pool.peak_bytes.saturating_mul(SMALL) >= highest) {
        chart(&mut page, pool);
        requesters(&mut page, pool);
        alive(&mut page, pool);
    }
    if !result.series.is_empty() {
        page.table(series(&result.series));
    }
    // What never changes, such as how much memory there is, needs no chart.
    let changing = result.series.iter().filter(|one| one.min < one.max);
    for one in changing.take(DETAILED) {
        sampled(&mut page, one);
    }
    page
}

/// A pool whose peak is smaller than the highest by this factor has no lists of its own.
const SMALL: u64 = 10_000;
/// What is reserved is in the chart where it is at most so many times the peak: otherwise the level would be a line at zero.
const TALLEST: u64 = 4;

fn pools(all: &[MemoryPool]) -> Table {
    let mut table = Table::new(
        "What allocators gave out",
        &[
            ("Memory", Unit::None),
            ("Given out by", Unit::None),
            ("Process", Unit::None),
            ("Peak", Unit::Bytes),
            ("At", Unit::Instant),
            ("Before the capture", Unit::Bytes),
            ("At the end", Unit::Bytes),
            ("Reserved at most", Unit::Bytes),
            ("Most unused", Unit::Bytes),
            ("Allocations", Unit::None),
            ("Releases", Unit::None),
        ],
    );
    for pool in all {
        table.push([
            pool.memory.as_str().into(),
            pool.allocator.words().into(),
            Some(pool.process).filter(|process| *process > 0).into(),
            pool.peak_bytes.into(),
            pool.peak_ns.into(),
            pool.before_bytes.into(),
            pool.end_bytes.into(),
            pool.peak_reserved_bytes.into(),
            pool.most_unused_bytes.into(),
            pool.allocations.into(),
            pool.releases.into(),
        ]);
    }
    table.without_unknown();
    table
}

fn amount(bytes: u64) -> f64 {
    flopwatch_model::approximate(bytes.into())
}

fn chart(page: &mut Page, pool: &MemoryPool) {
    let points = &pool.over_time;
    let mut series = vec![Series {
        name: "given out".to_owned(),
        values: points.iter().map(|point| Some(amount(point.allocated_bytes))).collect(),
    }];
    let fits = |bytes: u64| bytes > 0 && bytes <= pool.peak_bytes.saturating_mul(TALLEST);
    if pool.peak_reserved_bytes.is_some_and(fits) {
        series.push(Series {
            name: "reserved".to_owned(),
            values: points.iter().map(|point| point.reserved_bytes.map(amount)).collect(),
        });
    }
    page.lines(Lines {
        title: format!("Memory of {}", pool.allocator.pool(&pool.memory, pool.process)),
        unit: Unit::Bytes,
        times_ns: points.iter().map(|point| point.t_ns).collect(),
        series,
    });
}

fn requesters(page: &mut Page, pool: &MemoryPool) {
    if pool.alive_by_requester.is_empty() {
        return;
    }
    let mut table = Table::new(
        &format!(
            "Alive at the peak of {}, by who asked",
            pool.allocator.pool(&pool.memory, pool.process)
        ),
        &RequesterName::columns(&[
            ("Bytes", Unit::Bytes),
            ("Of the peak", Unit::Ratio),
            ("Buffers", Unit::None),
        ]),
    );
    table.left_out = pool.alive_by_requester_left_out;
    for one in &pool.alive_by_requester {
        let figures = [one.bytes.into(), one.peak_ratio.into(), one.buffers.into()];
        table.push(one.requester.cells(figures));
    }
    if let Some(bytes) = pool.from_before_bytes.filter(|bytes| *bytes > 0) {
        let mut cells = vec![
            Cell::from("(before the capture)"),
            Cell::Nothing,
            Cell::Nothing,
            Cell::Nothing,
        ];
        cells.extend([bytes.into(), super::share(bytes, pool.peak_bytes).into(), Cell::Nothing]);
        table.push(cells);
    }
    table.without_unknown();
    page.table(table);
}

fn alive(page: &mut Page, pool: &MemoryPool) {
    if pool.alive.is_empty() {
        return;
    }
    let mut table = Table::new(
        &format!(
            "Largest buffers alive at the peak of {}",
            pool.allocator.pool(&pool.memory, pool.process)
        ),
        &[
            ("Bytes", Unit::Bytes),
            ("Who asked", Unit::None),
            ("Given out at", Unit::Instant),
            ("Lifetime", Unit::Ns),
            ("Taken back", Unit::None),
            ("Address", Unit::None),
        ],
    );
    table.left_out = pool.alive_left_out;
    for one in &pool.alive {
        let cells = [
            one.bytes.into(),
            one.requester.shown().into(),
            one.given_ns.into(),
            one.lifetime_ns.into(),
            one.release.words().into(),
            one.address.as_str().into(),
        ];
        table.push_at(one.place, cells);
    }
    table.without_unknown();
    page.table(table);
}

fn unit(series: &MemorySeries) -> Unit {
    match series.unit.as_str() {
        "bytes" => Unit::Bytes,
        "ratio" => Unit::Ratio,
        _ => Unit::None,
    }
}

fn series(all: &[MemorySeries]) -> Table {
    // Units differ from row to row, so that figures are in words.
    let mut table = Table::new(
        "What was sampled",
        &[
            ("Source", Unit::None),
            ("Device", Unit::None),
            ("Metric", Unit::None),
            ("Samples", Unit::None),
            ("Lowest", Unit::None),
            ("Highest", Unit::None),
            ("At", Unit::Instant),
            ("Last", Unit::None),
        ],
    );
    for one in all {
        let shown = |value: f64| Cell::from(flopwatch_report::page::figure::number(value, unit(one)));
        table.push([
            one.source.as_str().into(),
            one.device.as_str().into(),
            one.metric.as_str().into(),
            one.samples.into(),
            shown(one.min),
            shown(one.max),
            one.max_ns.into(),
            shown(one.last),
        ]);
    }
    table
}

fn sampled(page: &mut Page, one: &MemorySeries) {
    page.lines(Lines {
        title: format!("{} of {} ({})", one.metric.replace('_', " "), one.device, one.source),
        unit: unit(one),
        times_ns: one.over_time.iter().map(|point| point.t_ns).collect(),
        series: vec![Series {
            name: one.metric.clone(),
            values: one.over_time.iter().map(|point| Some(point.value)).collect(),
        }],
    });
}
