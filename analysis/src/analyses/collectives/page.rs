//! How people read the collectives of a capture.

use flopwatch_report::page::{Bars, Page, Table, TableBuilder, Tile, Unit};

use super::{CollectiveCall, CollectivesResult};

pub(super) fn page(title: &str, about: &str, result: &CollectivesResult) -> Page {
    let mut page = Page::of(title, about, &result.not_captured);
    page.tiles([
        Tile::new("Collectives", result.collectives),
        Tile::figure("Communication", Unit::Ns, result.communication_ns),
        Tile::figure("Exposed", Unit::Ns, result.exposed_ns),
        Tile::figure("Hidden by computation", Unit::Ratio, result.hidden_ratio),
        Tile::new("With a message size", result.sized_collectives),
    ]);
    if result.collectives == 0 {
        page.text("", "No kernel of NCCL or another library of collectives ran.");
        return page;
    }
    page.table(rows(result));
    page.bars(bars(result));
    page.table(devices(result));
    page.table(outliers(result));
    page.table(longest(result));
    page
}

fn rows(result: &CollectivesResult) -> impl Into<Table> {
    Table::of("By operation and message size", &result.rows)
        .about(
            "A kernel's time holds its wait for other ranks, so that bandwidths are lower bounds. \
             Bandwidth is total bytes by total time.",
        )
        .column("Operation", |row| row.operation.name())
        .column("Ranks", |row| row.ranks)
        .figure("Messages from", Unit::Bytes, |row| row.from_bytes)
        .column("Collectives", |row| row.collectives)
        .figure("Bytes", Unit::Bytes, |row| row.total_bytes)
        .figure("Total", Unit::Ns, |row| row.total_ns)
        .figure("Min", Unit::Ns, |row| row.min_ns)
        .figure("Med", Unit::Ns, |row| row.median_ns)
        .figure("Max", Unit::Ns, |row| row.max_ns)
        .figure("Algorithm bandwidth", Unit::BytesPerSecond, |row| {
            row.algorithm_bytes_per_second
        })
        .figure("Bus bandwidth", Unit::BytesPerSecond, |row| row.bus_bytes_per_second)
        .figure("Best bus bandwidth", Unit::BytesPerSecond, |row| {
            row.best_bus_bytes_per_second
        })
        .figure("Hidden", Unit::Ratio, |row| row.hidden_ratio)
}

fn bars(result: &CollectivesResult) -> impl Into<Bars> {
    Bars::of("Communication per device", Unit::Ns, &result.devices, |device| {
        format!("GPU {}", device.device)
    })
    .series("exposed", |device| device.exposed_ns)
    .series("hidden by computation", |device| device.hidden_ns)
    .stacked()
}

fn devices(result: &CollectivesResult) -> impl Into<Table> {
    Table::of("By device", &result.devices)
        .column("GPU", |device| device.device)
        .column("Collectives", |device| device.collectives)
        .figure("Communication", Unit::Ns, |device| device.communication_ns)
        .figure("Exposed", Unit::Ns, |device| device.exposed_ns)
        .figure("Hidden", Unit::Ns, |device| device.hidden_ns)
        .figure("Hidden share", Unit::Ratio, |device| device.hidden_ratio)
}

fn outliers(result: &CollectivesResult) -> impl Into<Table> {
    let table = Table::of("Much longer than their like", &result.outliers).left_out(result.outliers_left_out);
    of_calls(table, |outlier| &outlier.call)
        .figure("Med of its like", Unit::Ns, |outlier| outlier.median_ns)
        .figure("Lost", Unit::Ns, |outlier| outlier.lost_ns)
}

fn longest(result: &CollectivesResult) -> Table {
    let table = Table::of("Longest", &result.longest).left_out(result.longest_left_out);
    of_calls(table, |call| call).build()
}

/// Adds the columns of each row's call, where the row is.
fn of_calls<'a, T: Copy>(table: TableBuilder<T>, call: impl Fn(T) -> &'a CollectiveCall) -> TableBuilder<T> {
    table
        .column("Operation", |row| call(row).operation.name())
        .column("Group", |row| call(row).group.as_str())
        .column("GPU", |row| call(row).device)
        .figure("Start", Unit::Instant, |row| call(row).start_ns)
        .figure("Duration", Unit::Ns, |row| call(row).duration_ns)
        .figure("Message", Unit::Bytes, |row| call(row).message_bytes)
        .figure("Bus bandwidth", Unit::BytesPerSecond, |row| {
            call(row).bus_bytes_per_second
        })
        .figure("Hidden", Unit::Ns, |row| call(row).hidden_ns)
        .at(|row| call(row).location())
}
