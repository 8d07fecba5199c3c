//! Memory over time, as people read it.

use flopwatch_measures::requester::RequesterName;
use flopwatch_report::page::{Cell, Lines, Page, Series, Table, Tile, Unit};

use super::{MemoryPool, MemoryResult, MemorySeries};

/// Pools that have a chart and lists of their own; all are in the first table.
const MAX_DETAILED_POOLS: usize = 8;

pub(super) fn page(title: &str, about: &str, result: &MemoryResult) -> Page {
    let mut page = Page::of(title, about, &result.not_captured);
    if let Some(first) = result.pools.first() {
        page.tiles([
            Tile::figure("Peak", Unit::Bytes, first.peak_bytes),
            Tile::new("Of", first.memory.as_str()),
            Tile::figure("Reached at", Unit::Instant, first.peak_ns),
            Tile::figure("Of the device's memory", Unit::Ratio, first.peak_ratio),
            Tile::figure("Reserved at most", Unit::Bytes, first.peak_reserved_bytes),
            Tile::figure("Unused at the peak", Unit::Bytes, first.unused_at_peak_bytes),
        ]);
    }
    for note in &result.notes {
        page.text("", note.as_str());
    }
    page.table_unless_empty(pools(&result.pools));
    let highest = result.pools.first().map_or(0, |pool| pool.peak_bytes);
    let detailed = result.pools.iter().take(MAX_DETAILED_POOLS);
    for pool in detailed.filter(|pool| pool.peak_bytes.saturating_mul(MAX_PEAK_RATIO) >= highest) {
        chart(&mut page, pool);
        requesters(&mut page, pool);
        alive(&mut page, pool);
    }
    page.table_unless_empty(series(&result.series));
    // What never changes, such as how much memory there is, needs no chart.
    let changing = result.series.iter().filter(|one| one.min < one.max);
    for one in changing.take(MAX_DETAILED_POOLS) {
        sampled(&mut page, one);
    }
    page
}

/// A pool whose peak is smaller than the highest by this factor has no lists of its own.
const MAX_PEAK_RATIO: u64 = 10_000;
/// What is reserved is in the chart where it is at most so many times the peak: otherwise the level
/// would be a line at zero.
const MAX_RESERVED_RATIO: u64 = 4;

fn pools(all: &[MemoryPool]) -> impl Into<Table> {
    Table::of("What allocators gave out", all)
        .column("Memory", |pool| pool.memory.as_str())
        .column("Given out by", |pool| pool.allocator.words())
        .column("Process", |pool| Some(pool.process).filter(|process| *process > 0))
        .figure("Peak", Unit::Bytes, |pool| pool.peak_bytes)
        .figure("At", Unit::Instant, |pool| pool.peak_ns)
        .figure("Before the capture", Unit::Bytes, |pool| pool.before_bytes)
        .figure("At the end", Unit::Bytes, |pool| pool.end_bytes)
        .figure("Reserved at most", Unit::Bytes, |pool| pool.peak_reserved_bytes)
        .figure("Most unused", Unit::Bytes, |pool| pool.most_unused_bytes)
        .column("Allocations", |pool| pool.allocations)
        .column("Releases", |pool| pool.releases)
        .without_unknown()
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
    let fits = |bytes: u64| bytes > 0 && bytes <= pool.peak_bytes.saturating_mul(MAX_RESERVED_RATIO);
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
    let title = format!(
        "Alive at the peak of {}, by who asked",
        pool.allocator.pool(&pool.memory, pool.process)
    );
    let table = Table::of(&title, &pool.alive_by_requester).left_out(pool.alive_by_requester_left_out);
    let mut table = RequesterName::columns(table, |one| &one.requester)
        .figure("Bytes", Unit::Bytes, |one| one.bytes)
        .figure("Of the peak", Unit::Ratio, |one| one.peak_ratio)
        .column("Buffers", |one| one.buffers)
        .build();
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
    page.table(
        Table::of(
            &format!(
                "Largest buffers alive at the peak of {}",
                pool.allocator.pool(&pool.memory, pool.process)
            ),
            &pool.alive,
        )
        .left_out(pool.alive_left_out)
        .figure("Bytes", Unit::Bytes, |one| one.bytes)
        .column("Who asked", |one| one.requester.shown())
        .figure("Given out at", Unit::Instant, |one| one.given_ns)
        .figure("Lifetime", Unit::Ns, |one| one.lifetime_ns)
        .column("Taken back", |one| one.release.words())
        .column("Address", |one| one.address.as_str())
        .at(|one| one.place)
        .without_unknown(),
    );
}

fn unit(series: &MemorySeries) -> Unit {
    match series.unit.as_str() {
        "bytes" => Unit::Bytes,
        "ratio" => Unit::Ratio,
        _ => Unit::None,
    }
}

fn series(all: &[MemorySeries]) -> impl Into<Table> {
    let shown = |one: &MemorySeries, value: f64| flopwatch_report::page::figure::number(value, unit(one));
    // Units differ from row to row, so that figures are in words.
    Table::of("What was sampled", all)
        .column("Source", |one| one.source.as_str())
        .column("Device", |one| one.device.as_str())
        .column("Metric", |one| one.metric.as_str())
        .column("Samples", |one| one.samples)
        .column("Lowest", |one| shown(one, one.min))
        .column("Highest", |one| shown(one, one.max))
        .figure("At", Unit::Instant, |one| one.max_ns)
        .column("Last", |one| shown(one, one.last))
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
