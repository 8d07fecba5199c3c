//! How people read which rank the others wait for.

use flopwatch_report::page::{Page, Table, Unit};

use super::{ClockAlignment, StragglersResult};

pub(super) fn page(about: &str, result: &StragglersResult) -> Page {
    let mut page = Page::new("Stragglers", about);
    page.not_captured.clone_from(&result.not_captured);
    page.tiles([
        ("Ranks", result.ranks.len().into(), Unit::None),
        ("Rank that others wait for", result.straggler.into(), Unit::None),
        ("Waits of all ranks", result.wait_ns.into(), Unit::Ns),
        ("Matched collectives", result.matched.into(), Unit::None),
        ("Not on all ranks", result.unmatched.into(), Unit::None),
        ("Not the same", result.apart.into(), Unit::None),
    ]);
    let clocks = match result.clocks {
        ClockAlignment::OneClock => "All ranks are of one capture and share its clock.",
        ClockAlignment::ByEnds => {
            "Clocks of the captures were moved so that the collectives of most ranks end together, in the median. Waits shorter than the median distance of ends are within its error."
        }
    };
    page.text("Clocks", clocks);
    page.table(ranks(result));
    page.table(rows(result));
    page.table(worst(result));
    page
}

fn ranks(result: &StragglersResult) -> Table {
    let mut table = Table::new(
        "Ranks, the one that waits least first",
        &[
            ("Rank", Unit::None),
            ("Input", Unit::None),
            ("Process", Unit::None),
            ("GPU", Unit::None),
            ("Collectives", Unit::None),
            ("Time in them", Unit::Ns),
            ("Waits", Unit::Ns),
            ("Wait share", Unit::Ratio),
            ("Came last", Unit::None),
            ("Came first", Unit::None),
            ("Taken from its clock", Unit::Ns),
        ],
    );
    for rank in &result.ranks {
        table.push([
            rank.rank.into(),
            rank.input.into(),
            rank.process.into(),
            rank.device.into(),
            rank.collectives.into(),
            rank.collective_ns.into(),
            rank.wait_ns.into(),
            rank.wait_ratio.into(),
            rank.last.into(),
            rank.first.into(),
            rank.clock_offset_ns.into(),
        ]);
    }
    table
}

fn rows(result: &StragglersResult) -> Table {
    let mut table = Table::new(
        "By operation and message size",
        &[
            ("Operation", Unit::None),
            ("Ranks captured", Unit::None),
            ("Ranks of the group", Unit::None),
            ("Messages from", Unit::Bytes),
            ("Collectives", Unit::None),
            ("Latencies", Unit::Ns),
            ("Median latency", Unit::Ns),
            ("Median start skew", Unit::Ns),
            ("Longest start skew", Unit::Ns),
            ("Algorithm bandwidth", Unit::BytesPerSecond),
            ("Bus bandwidth", Unit::BytesPerSecond),
        ],
    );
    "The latency of a collective is its shortest kernel of all ranks, which waits least.".clone_into(&mut table.about);
    for row in &result.rows {
        table.push([
            row.operation.name().into(),
            row.captured_ranks.into(),
            row.group_ranks.into(),
            row.from_bytes.into(),
            row.collectives.into(),
            row.latency_ns.into(),
            row.median_latency_ns.into(),
            row.median_start_skew_ns.into(),
            row.max_start_skew_ns.into(),
            row.algorithm_bytes_per_second.into(),
            row.bus_bytes_per_second.into(),
        ]);
    }
    table
}

fn worst(result: &StragglersResult) -> Table {
    let mut table = Table::new(
        "Longest waits",
        &[
            ("Operation", Unit::None),
            ("Group", Unit::None),
            ("Number", Unit::None),
            ("Start skew", Unit::Ns),
            ("End skew", Unit::Ns),
            ("Latency", Unit::Ns),
            ("First", Unit::None),
            ("Last", Unit::None),
        ],
    );
    table.left_out = result.worst_left_out;
    for call in &result.worst {
        let cells = [
            call.operation.name().into(),
            call.group.as_str().into(),
            call.index.into(),
            call.start_skew_ns.into(),
            call.end_skew_ns.into(),
            call.latency_ns.into(),
            call.first.into(),
            call.last.into(),
        ];
        table.push_at(call.place, cells);
    }
    table
}
