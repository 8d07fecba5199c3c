//! The ranks as people read them.

use flopwatch_report::page::{Bars, Cell, Page, Table, Tile, Unit};

use super::{Rank, RankIteration, RanksResult};
use crate::definition::Analysis;

pub(super) fn of(result: &RanksResult) -> Page {
    let mut page = Page::of(super::Ranks::TITLE, super::Ranks::ABOUT, &result.not_captured);
    let label = |rank: u32| {
        usize::try_from(rank)
            .ok()
            .and_then(|rank| result.ranks.get(rank))
            .map(name)
    };
    let (slowest, straggler) = (result.slowest.as_ref(), result.straggler.as_ref());
    page.tiles([
        Tile::new("Ranks", result.ranks.len()),
        Tile::new("Longest iterations", slowest.and_then(|slowest| label(slowest.rank))),
        Tile::figure(
            "Longer than the median by",
            Unit::Percent,
            slowest.map(|slowest| slowest.behind_percent),
        ),
        Tile::new("Others wait for", straggler.and_then(|straggler| label(straggler.rank))),
        Tile::figure("Its waits", Unit::Ns, straggler.map(|straggler| straggler.wait_ns)),
        Tile::figure(
            "Longest waits of a rank",
            Unit::Ns,
            straggler.map(|straggler| straggler.longest_wait_ns),
        ),
    ]);
    if !result.cautions.is_empty() {
        page.text("Iterations", result.cautions.join(" "));
    }
    if !result.ranks.is_empty() {
        page.bars(times(&result.ranks));
        page.table(ranks(&result.ranks));
    }
    page.table_unless_empty(kernels(result));
    page.table_unless_empty(pace(result));
    page
}

/// A rank for people.
fn name(rank: &Rank) -> String {
    format!("{}: {}", rank.input, rank.gpu)
}

fn times(ranks: &[Rank]) -> impl Into<Bars> {
    Bars::of("What the time of each rank went to", Unit::Ns, ranks, name)
        .series("Compute", |rank| rank.time.compute_ns)
        .series("Exposed communication", |rank| rank.time.exposed_communication_ns)
        .series("Exposed copies", |rank| rank.time.exposed_memory_ns)
        .series("Idle", |rank| rank.time.idle_ns)
        .stacked()
}

fn ranks(ranks: &[Rank]) -> impl Into<Table> {
    Table::of("Ranks", ranks)
        .column("Rank", name)
        .column("Session", |rank| rank.session_id.as_str())
        .column("Iterations", |rank| rank.iterations)
        .figure("Avg iteration", Unit::Ns, |rank| rank.mean_iteration_ns)
        .figure("Max", Unit::Ns, |rank| rank.max_iteration_ns)
        .figure("Own time", Unit::Ns, |rank| rank.mean_own_ns)
        .figure("Compute", Unit::Ns, |rank| rank.time.compute_ns)
        .figure("Exposed communication", Unit::Ns, |rank| {
            rank.time.exposed_communication_ns
        })
        .figure("Exposed copies", Unit::Ns, |rank| rank.time.exposed_memory_ns)
        .figure("Idle", Unit::Ns, |rank| rank.time.idle_ns)
        .figure("Idle share", Unit::Ratio, |rank| rank.idle_ratio)
        .column("Kernels", |rank| rank.kernels)
        .figure("Began after", Unit::Ns, |rank| rank.started_after_ns)
        .at(|rank| rank.place)
}

fn slowest(result: &RanksResult, rank: u32) -> Cell {
    let rank = usize::try_from(rank).ok().and_then(|rank| result.ranks.get(rank));
    rank.map(name).into()
}

fn kernels(result: &RanksResult) -> impl Into<Table> {
    let mut table = Table::of("Kernels", &result.kernels)
        .left_out(result.kernels_left_out)
        .column("Name", |kernel| kernel.name.as_str());
    for (index, rank) in result.ranks.iter().enumerate() {
        table = table.figure(&name(rank), Unit::Ns, |kernel| kernel.total_ns.get(index).copied());
    }
    table
        .column("Slowest", |kernel| slowest(result, kernel.slowest))
        .column("Max over avg", |kernel| kernel.imbalance_ratio)
}

fn pace(result: &RanksResult) -> impl Into<Table> {
    let mut table = Table::of("Iterations that every rank has", &result.pace)
        .left_out(result.pace_left_out)
        .column("Number", |iteration| iteration.number)
        .at(|iteration| iteration.place);
    for (index, rank) in result.ranks.iter().enumerate() {
        let length = |iteration: &RankIteration| iteration.length_ns.get(index).copied();
        table = table.figure(&name(rank), Unit::Ns, length);
    }
    table
        .figure("Spread", Unit::Ns, |iteration| iteration.spread_ns)
        .figure("Spread of starts", Unit::Ns, |iteration| iteration.start_spread_ns)
}
