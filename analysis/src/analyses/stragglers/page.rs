//! How people read which rank the others wait for.

use flopwatch_report::page::{Page, Table, Tile, Unit};

use super::{ClockAlignment, StragglersResult};

pub(super) fn page(title: &str, about: &str, result: &StragglersResult) -> Page {
    let mut page = Page::of(title, about, &result.not_captured);
    page.tiles([
        Tile::new("Ranks", result.ranks.len()),
        Tile::new("Rank that others wait for", result.straggler),
        Tile::figure("Waits of all ranks", Unit::Ns, result.wait_ns),
        Tile::new("Matched collectives", result.matched),
        Tile::new("Not on all ranks", result.unmatched),
        Tile::new("Not the same", result.apart),
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

fn ranks(result: &StragglersResult) -> impl Into<Table> {
    Table::of("Ranks, the one that waits least first", &result.ranks)
        .column("Rank", |rank| rank.rank)
        .column("Input", |rank| rank.input)
        .column("Process", |rank| rank.process)
        .column("GPU", |rank| rank.device)
        .column("Collectives", |rank| rank.collectives)
        .figure("Time in them", Unit::Ns, |rank| rank.collective_ns)
        .figure("Waits", Unit::Ns, |rank| rank.wait_ns)
        .figure("Wait share", Unit::Ratio, |rank| rank.wait_ratio)
        .column("Came last", |rank| rank.last)
        .column("Came first", |rank| rank.first)
        .figure("Taken from its clock", Unit::Ns, |rank| rank.clock_offset_ns)
}

fn rows(result: &StragglersResult) -> impl Into<Table> {
    Table::of("By operation and message size", &result.rows)
        .about("The latency of a collective is its shortest kernel of all ranks, which waits least.")
        .column("Operation", |row| row.operation.name())
        .column("Ranks captured", |row| row.captured_ranks)
        .column("Ranks of the group", |row| row.group_ranks)
        .figure("Messages from", Unit::Bytes, |row| row.from_bytes)
        .column("Collectives", |row| row.collectives)
        .figure("Latencies", Unit::Ns, |row| row.latency_ns)
        .figure("Med latency", Unit::Ns, |row| row.median_latency_ns)
        .figure("Med start skew", Unit::Ns, |row| row.median_start_skew_ns)
        .figure("Max start skew", Unit::Ns, |row| row.max_start_skew_ns)
        .figure("Algorithm bandwidth", Unit::BytesPerSecond, |row| {
            row.algorithm_bytes_per_second
        })
        .figure("Bus bandwidth", Unit::BytesPerSecond, |row| row.bus_bytes_per_second)
}

fn worst(result: &StragglersResult) -> impl Into<Table> {
    Table::of("Longest waits", &result.worst)
        .left_out(result.worst_left_out)
        .column("Operation", |call| call.operation.name())
        .column("Group", |call| call.group.as_str())
        .column("Number", |call| call.index)
        .figure("Start skew", Unit::Ns, |call| call.start_skew_ns)
        .figure("End skew", Unit::Ns, |call| call.end_skew_ns)
        .figure("Latency", Unit::Ns, |call| call.latency_ns)
        .column("First", |call| call.first)
        .column("Last", |call| call.last)
        .at(|call| call.place)
}
