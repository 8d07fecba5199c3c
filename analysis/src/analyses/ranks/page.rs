//! The ranks as people read them.

use flopwatch_model::approximate;
use flopwatch_report::page::{Bars, Cell, Page, Place, Series, Table, Unit};

use super::{Rank, RanksResult};
use crate::definition::Analysis;

pub(super) fn of(result: &RanksResult) -> Page {
    let mut page = Page::new("Ranks", super::Ranks::ABOUT);
    page.not_captured.clone_from(&result.not_captured);
    let label = |rank: u32| {
        usize::try_from(rank)
            .ok()
            .and_then(|rank| result.ranks.get(rank))
            .map(name)
    };
    let (slowest, straggler) = (result.slowest.as_ref(), result.straggler.as_ref());
    page.tiles([
        ("Ranks", result.ranks.len().into(), Unit::None),
        (
            "Longest iterations",
            slowest.and_then(|slowest| label(slowest.rank)).into(),
            Unit::None,
        ),
        (
            "Longer than the median by",
            slowest.map(|slowest| slowest.behind_percent).into(),
            Unit::Percent,
        ),
        (
            "Others wait for",
            straggler.and_then(|straggler| label(straggler.rank)).into(),
            Unit::None,
        ),
        (
            "Its waits",
            straggler.map(|straggler| straggler.wait_ns).into(),
            Unit::Ns,
        ),
        (
            "Longest waits of a rank",
            straggler.map(|straggler| straggler.longest_wait_ns).into(),
            Unit::Ns,
        ),
    ]);
    if !result.cautions.is_empty() {
        page.text("Iterations", result.cautions.join(" "));
    }
    if !result.ranks.is_empty() {
        page.bars(times(&result.ranks));
        page.table(ranks(&result.ranks));
    }
    if !result.kernels.is_empty() {
        page.table(kernels(result));
    }
    if !result.pace.is_empty() {
        page.table(pace(result));
    }
    page
}

/// A rank for people.
fn name(rank: &Rank) -> String {
    format!("{}: {}", rank.input, rank.gpu)
}

fn times(ranks: &[Rank]) -> Bars {
    let series = |name: &str, of: fn(&Rank) -> u64| Series {
        name: name.to_owned(),
        values: ranks.iter().map(|rank| Some(approximate(of(rank).into()))).collect(),
    };
    Bars {
        title: "What the time of each rank went to".to_owned(),
        unit: Unit::Ns,
        stacked: true,
        labels: ranks.iter().map(name).collect(),
        series: vec![
            series("Compute", |rank| rank.time.compute_ns),
            series("Exposed communication", |rank| rank.time.exposed_communication_ns),
            series("Exposed copies", |rank| rank.time.exposed_memory_ns),
            series("Idle", |rank| rank.time.idle_ns),
        ],
    }
}

fn ranks(ranks: &[Rank]) -> Table {
    let columns = [
        ("Rank", Unit::None),
        ("Session", Unit::None),
        ("Iterations", Unit::None),
        ("Mean iteration", Unit::Ns),
        ("Longest", Unit::Ns),
        ("Own time", Unit::Ns),
        ("Compute", Unit::Ns),
        ("Exposed communication", Unit::Ns),
        ("Exposed copies", Unit::Ns),
        ("Idle", Unit::Ns),
        ("Idle share", Unit::Ratio),
        ("Kernels", Unit::None),
        ("Began after", Unit::Ns),
    ];
    let mut table = Table::new("Ranks", &columns);
    for rank in ranks {
        let cells: [Cell; 13] = [
            name(rank).into(),
            rank.session_id.as_str().into(),
            rank.iterations.into(),
            rank.mean_iteration_ns.into(),
            rank.max_iteration_ns.into(),
            rank.mean_own_ns.into(),
            rank.time.compute_ns.into(),
            rank.time.exposed_communication_ns.into(),
            rank.time.exposed_memory_ns.into(),
            rank.time.idle_ns.into(),
            rank.idle_ratio.into(),
            rank.kernels.into(),
            rank.started_after_ns.into(),
        ];
        match rank.place {
            Some(place) => table.push_at(place, cells),
            None => table.push(cells),
        }
    }
    table
}

/// A table with a column of times per rank between `first` and `last`.
fn per_rank(title: &str, result: &RanksResult, first: (&str, Unit), last: [(&str, Unit); 2]) -> Table {
    let names: Vec<String> = result.ranks.iter().map(name).collect();
    let between = names.iter().map(|name| (name.as_str(), Unit::Ns));
    let columns: Vec<(&str, Unit)> = std::iter::once(first).chain(between).chain(last).collect();
    Table::new(title, &columns)
}

fn slowest(result: &RanksResult, rank: u32) -> Cell {
    let rank = usize::try_from(rank).ok().and_then(|rank| result.ranks.get(rank));
    rank.map(name).into()
}

fn kernels(result: &RanksResult) -> Table {
    let last = [("Slowest", Unit::None), ("Longest over mean", Unit::None)];
    let mut table = per_rank("Kernels", result, ("Name", Unit::None), last);
    table.left_out = result.kernels_left_out;
    for kernel in &result.kernels {
        let mut cells: Vec<Cell> = vec![kernel.name.as_str().into()];
        cells.extend(kernel.total_ns.iter().map(|time| Cell::from(*time)));
        cells.extend([slowest(result, kernel.slowest), kernel.imbalance_ratio.into()]);
        table.push(cells);
    }
    table
}

fn pace(result: &RanksResult) -> Table {
    let last = [("Spread", Unit::Ns), ("Spread of starts", Unit::Ns)];
    let mut table = per_rank("Iterations that every rank has", result, ("Number", Unit::None), last);
    table.left_out = result.pace_left_out;
    for iteration in &result.pace {
        let mut cells: Vec<Cell> = vec![iteration.number.into()];
        cells.extend(iteration.length_ns.iter().map(|length| Cell::from(*length)));
        cells.extend([iteration.spread_ns.into(), iteration.start_spread_ns.into()]);
        let place: Place = iteration.place;
        table.push_at(place, cells);
    }
    table
}
