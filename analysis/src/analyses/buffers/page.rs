//! The lives of buffers, as people read them.

use flopwatch_measures::requester::RequesterName;
use flopwatch_measures::reuse::NO_BENEFIT;
use flopwatch_report::page::figure::number;
use flopwatch_report::page::{Bars, Cell, Page, Table, Tile, Unit};

use super::{BufferLife, BufferPool, BuffersResult, LifetimeClass};

/// Pools that have lists of their own; all are in the first table.
const MAX_DETAILED_POOLS: usize = 6;

pub(super) fn page(title: &str, about: &str, result: &BuffersResult) -> Page {
    let mut page = Page::of(title, about, &result.not_captured);
    if let Some(first) = result.pools.first() {
        page.tiles([
            Tile::new("Allocations", first.allocations),
            Tile::figure("Given out, all together", Unit::Bytes, first.allocated_bytes),
            Tile::new("Allocations per iteration", first.allocations_per_iteration),
            Tile::figure("Never taken back", Unit::Bytes, first.kept_bytes),
            Tile::new("Reuse ratio", rounded(first.reuse_ratio)),
            Tile::figure("Reuse saves", Unit::Bytes, first.saved_bytes),
        ]);
        page.text("", reuse_in_words(first));
    }
    page.table_unless_empty(pools(&result.pools));
    for pool in result.pools.iter().take(MAX_DETAILED_POOLS) {
        details(&mut page, pool);
    }
    page
}

/// Two digits behind the point, as such ratios are told.
fn rounded(ratio: Option<f64>) -> Cell {
    ratio.map(|ratio| format!("{ratio:.2}x")).into()
}

fn reuse_in_words(pool: &BufferPool) -> String {
    let Some(ratio) = pool.reuse_ratio else {
        return format!(
            "{}: nothing was given out.",
            pool.allocator.pool(&pool.memory, pool.process)
        );
    };
    let benefit = if ratio < NO_BENEFIT {
        "keeping buffers is of no benefit"
    } else {
        "an allocator that keeps buffers asks for each of them once"
    };
    format!(
        "{}: {} allocations, of which {} could use a buffer again that had been taken back: {ratio:.2} allocations for each buffer that is needed; {benefit}.",
        pool.allocator.pool(&pool.memory, pool.process),
        pool.allocations,
        pool.reuses
    )
}

fn pools(all: &[BufferPool]) -> impl Into<Table> {
    Table::of("Buffers by memory", all)
        .column("Memory", |pool| pool.memory.as_str())
        .column("Given out by", |pool| pool.allocator.words())
        .column("Process", |pool| Some(pool.process).filter(|process| *process > 0))
        .column("Allocations", |pool| pool.allocations)
        .figure("Given out", Unit::Bytes, |pool| pool.allocated_bytes)
        .figure("Per second", Unit::BytesPerSecond, |pool| pool.bytes_per_second)
        .column("Never taken back", |pool| pool.kept)
        .figure("Their bytes", Unit::Bytes, |pool| pool.kept_bytes)
        .column("Unmatched releases", |pool| pool.unmatched_releases)
        .column("Unseen releases", |pool| pool.unrecorded_releases)
        .column("Growths", |pool| pool.growths)
        .column("Address reuses", |pool| pool.address_reuses)
        .column("Reuse ratio", |pool| rounded(pool.reuse_ratio))
        .figure("Reuse saves", Unit::Bytes, |pool| pool.saved_bytes)
        .without_unknown()
}

fn class(of: &LifetimeClass) -> String {
    let shown = |ns: u64| number(flopwatch_model::approximate(ns.into()), Unit::Ns);
    match of.to_ns {
        Some(to) if of.from_ns == 0 => format!("below {}", shown(to)),
        Some(to) => format!("{} to {}", shown(of.from_ns), shown(to)),
        None => format!("{} and longer", shown(of.from_ns)),
    }
}

fn details(page: &mut Page, pool: &BufferPool) {
    if pool.lifetimes.iter().any(|class| class.buffers > 0) {
        let title = format!(
            "Lifetimes of buffers of {}",
            pool.allocator.pool(&pool.memory, pool.process)
        );
        page.bars(Bars::of(&title, Unit::None, &pool.lifetimes, class).series("buffers", |class| class.buffers));
    }
    page.table(
        Table::of(
            &format!("Sizes of {}", pool.allocator.pool(&pool.memory, pool.process)),
            &pool.sizes,
        )
        .left_out(pool.sizes_left_out)
        .figure("Size", Unit::Bytes, |size| size.size_bytes)
        .column("Allocations", |size| size.allocations)
        .figure("Given out", Unit::Bytes, |size| size.allocated_bytes)
        .column("Could use a buffer again", |size| size.reuses)
        .column("Reuse ratio", |size| rounded(Some(size.reuse_ratio))),
    );
    page.table_unless_empty(requesters(pool));
    for (title, list) in [
        ("Longest lives", &pool.longest),
        ("Largest that were never taken back", &pool.largest_kept),
    ] {
        page.table_unless_empty(lives(
            &format!("{title}, {}", pool.allocator.pool(&pool.memory, pool.process)),
            list,
        ));
    }
}

fn requesters(pool: &BufferPool) -> impl Into<Table> {
    let title = format!(
        "Who asked for memory of {}",
        pool.allocator.pool(&pool.memory, pool.process)
    );
    let table = Table::of(&title, &pool.requesters).left_out(pool.requesters_left_out);
    RequesterName::columns(table, |one| &one.requester)
        .column("Allocations", |one| one.allocations)
        .figure("Given out", Unit::Bytes, |one| one.allocated_bytes)
        .figure("Avg lifetime", Unit::Ns, |one| one.mean_lifetime_ns)
        .without_unknown()
}

fn lives(title: &str, list: &[BufferLife]) -> impl Into<Table> {
    Table::of(title, list)
        .figure("Bytes", Unit::Bytes, |one| one.bytes)
        .column("Who asked", |one| one.requester.shown())
        .figure("Given out at", Unit::Instant, |one| one.given_ns)
        .figure("Lifetime", Unit::Ns, |one| one.lifetime_ns)
        .at(|one| one.place)
        .without_unknown()
}
