//! The lives of buffers, as people read them.

use flopwatch_measures::requester::RequesterName;
use flopwatch_measures::reuse::NO_BENEFIT;
use flopwatch_report::page::figure::number;
use flopwatch_report::page::{Bars, Cell, Page, Series, Table, Unit};

use super::{BufferLife, BufferPool, BuffersResult, LifetimeClass};

/// Pools that have lists of their own; all are in the first table.
const DETAILED: usize = 6;

pub(super) fn page(about: &str, result: &BuffersResult) -> Page {
    let mut page = Page::new("Buffers", about);
    page.not_captured.clone_from(&result.not_captured);
    if let Some(first) = result.pools.first() {
        page.tiles([
            ("Allocations", first.allocations.into(), Unit::None),
            ("Given out, all together", first.allocated_bytes.into(), Unit::Bytes),
            (
                "Allocations per iteration",
                first.allocations_per_iteration.into(),
                Unit::None,
            ),
            ("Never taken back", first.kept_bytes.into(), Unit::Bytes),
            ("Reuse ratio", rounded(first.reuse_ratio), Unit::None),
            ("Reuse saves", first.saved_bytes.into(), Unit::Bytes),
        ]);
        page.text("", reuse_in_words(first));
    }
    if !result.pools.is_empty() {
        page.table(pools(&result.pools));
    }
    for pool in result.pools.iter().take(DETAILED) {
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

fn pools(all: &[BufferPool]) -> Table {
    let mut table = Table::new(
        "Buffers by memory",
        &[
            ("Memory", Unit::None),
            ("Given out by", Unit::None),
            ("Process", Unit::None),
            ("Allocations", Unit::None),
            ("Given out", Unit::Bytes),
            ("Per second", Unit::BytesPerSecond),
            ("Never taken back", Unit::None),
            ("Their bytes", Unit::Bytes),
            ("Unmatched releases", Unit::None),
            ("Unseen releases", Unit::None),
            ("Growths", Unit::None),
            ("Address reuses", Unit::None),
            ("Reuse ratio", Unit::None),
            ("Reuse saves", Unit::Bytes),
        ],
    );
    for pool in all {
        table.push([
            pool.memory.as_str().into(),
            pool.allocator.words().into(),
            Some(pool.process).filter(|process| *process > 0).into(),
            pool.allocations.into(),
            pool.allocated_bytes.into(),
            pool.bytes_per_second.into(),
            pool.kept.into(),
            pool.kept_bytes.into(),
            pool.unmatched_releases.into(),
            pool.unrecorded_releases.into(),
            pool.growths.into(),
            pool.address_reuses.into(),
            rounded(pool.reuse_ratio),
            pool.saved_bytes.into(),
        ]);
    }
    table.without_unknown();
    table
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
        let amount = |value: u64| Some(flopwatch_model::approximate(value.into()));
        page.bars(Bars {
            title: format!(
                "Lifetimes of buffers of {}",
                pool.allocator.pool(&pool.memory, pool.process)
            ),
            unit: Unit::None,
            stacked: false,
            labels: pool.lifetimes.iter().map(class).collect(),
            series: vec![Series {
                name: "buffers".to_owned(),
                values: pool.lifetimes.iter().map(|class| amount(class.buffers)).collect(),
            }],
        });
    }
    let mut sizes = Table::new(
        &format!("Sizes of {}", pool.allocator.pool(&pool.memory, pool.process)),
        &[
            ("Size", Unit::Bytes),
            ("Allocations", Unit::None),
            ("Given out", Unit::Bytes),
            ("Could use a buffer again", Unit::None),
            ("Reuse ratio", Unit::None),
        ],
    );
    sizes.left_out = pool.sizes_left_out;
    for size in &pool.sizes {
        sizes.push([
            size.size_bytes.into(),
            size.allocations.into(),
            size.allocated_bytes.into(),
            size.reuses.into(),
            rounded(Some(size.reuse_ratio)),
        ]);
    }
    page.table(sizes);
    if !pool.requesters.is_empty() {
        page.table(requesters(pool));
    }
    for (title, list) in [
        ("Longest lives", &pool.longest),
        ("Largest that were never taken back", &pool.largest_kept),
    ] {
        if !list.is_empty() {
            page.table(lives(
                &format!("{title}, {}", pool.allocator.pool(&pool.memory, pool.process)),
                list,
            ));
        }
    }
}

fn requesters(pool: &BufferPool) -> Table {
    let mut table = Table::new(
        &format!(
            "Who asked for memory of {}",
            pool.allocator.pool(&pool.memory, pool.process)
        ),
        &RequesterName::columns(&[
            ("Allocations", Unit::None),
            ("Given out", Unit::Bytes),
            ("Mean lifetime", Unit::Ns),
        ]),
    );
    table.left_out = pool.requesters_left_out;
    for one in &pool.requesters {
        let figures = [
            one.allocations.into(),
            one.allocated_bytes.into(),
            one.mean_lifetime_ns.into(),
        ];
        table.push(one.requester.cells(figures));
    }
    table.without_unknown();
    table
}

fn lives(title: &str, list: &[BufferLife]) -> Table {
    let mut table = Table::new(
        title,
        &[
            ("Bytes", Unit::Bytes),
            ("Who asked", Unit::None),
            ("Given out at", Unit::Instant),
            ("Lifetime", Unit::Ns),
        ],
    );
    for one in list {
        let cells = [
            one.bytes.into(),
            one.requester.shown().into(),
            one.given_ns.into(),
            one.lifetime_ns.into(),
        ];
        table.push_at(one.place, cells);
    }
    table.without_unknown();
    table
}
