//! How people read the collectives of a capture.

use flopwatch_model::approximate;
use flopwatch_report::page::{Bars, Cell, Page, Series, Table, Unit};

use super::{CollectiveCall, CollectivesResult};

pub(super) fn page(about: &str, result: &CollectivesResult) -> Page {
    let mut page = Page::new("Collectives", about);
    page.not_captured.clone_from(&result.not_captured);
    page.tiles([
        ("Collectives", result.collectives.into(), Unit::None),
        ("Communication", result.communication_ns.into(), Unit::Ns),
        ("Exposed", result.exposed_ns.into(), Unit::Ns),
        ("Hidden by computation", result.hidden_ratio.into(), Unit::Ratio),
        ("With a message size", result.sized_collectives.into(), Unit::None),
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

fn rows(result: &CollectivesResult) -> Table {
    let mut table = Table::new(
        "By operation and message size",
        &[
            ("Operation", Unit::None),
            ("Ranks", Unit::None),
            ("Messages from", Unit::Bytes),
            ("Collectives", Unit::None),
            ("Bytes", Unit::Bytes),
            ("Total", Unit::Ns),
            ("Min", Unit::Ns),
            ("Median", Unit::Ns),
            ("Max", Unit::Ns),
            ("Algorithm bandwidth", Unit::BytesPerSecond),
            ("Bus bandwidth", Unit::BytesPerSecond),
            ("Best bus bandwidth", Unit::BytesPerSecond),
            ("Hidden", Unit::Ratio),
        ],
    );
    "A kernel's time holds its wait for other ranks, so that bandwidths are lower bounds. Bandwidth is total bytes by total time."
        .clone_into(&mut table.about);
    for row in &result.rows {
        table.push([
            row.operation.name().into(),
            row.ranks.into(),
            row.from_bytes.into(),
            row.collectives.into(),
            row.total_bytes.into(),
            row.total_ns.into(),
            row.min_ns.into(),
            row.median_ns.into(),
            row.max_ns.into(),
            row.algorithm_bytes_per_second.into(),
            row.bus_bytes_per_second.into(),
            row.best_bus_bytes_per_second.into(),
            row.hidden_ratio.into(),
        ]);
    }
    table
}

fn bars(result: &CollectivesResult) -> Bars {
    let per_device = |of: fn(&super::CollectiveDevice) -> u64| {
        let values = result.devices.iter().map(of);
        values.map(|value| Some(approximate(value.into()))).collect()
    };
    Bars {
        title: "Communication per device".to_owned(),
        unit: Unit::Ns,
        stacked: true,
        labels: result
            .devices
            .iter()
            .map(|device| format!("GPU {}", device.device))
            .collect(),
        series: vec![
            Series {
                name: "exposed".to_owned(),
                values: per_device(|device| device.exposed_ns),
            },
            Series {
                name: "hidden by computation".to_owned(),
                values: per_device(|device| device.hidden_ns),
            },
        ],
    }
}

fn devices(result: &CollectivesResult) -> Table {
    let mut table = Table::new(
        "By device",
        &[
            ("GPU", Unit::None),
            ("Collectives", Unit::None),
            ("Communication", Unit::Ns),
            ("Exposed", Unit::Ns),
            ("Hidden", Unit::Ns),
            ("Hidden share", Unit::Ratio),
        ],
    );
    for device in &result.devices {
        table.push([
            device.device.into(),
            device.collectives.into(),
            device.communication_ns.into(),
            device.exposed_ns.into(),
            device.hidden_ns.into(),
            device.hidden_ratio.into(),
        ]);
    }
    table
}

const CALL: [(&str, Unit); 8] = [
    ("Operation", Unit::None),
    ("Group", Unit::None),
    ("GPU", Unit::None),
    ("Start", Unit::Instant),
    ("Duration", Unit::Ns),
    ("Message", Unit::Bytes),
    ("Bus bandwidth", Unit::BytesPerSecond),
    ("Hidden", Unit::Ns),
];

fn cells(call: &CollectiveCall) -> [Cell; 8] {
    [
        call.operation.name().into(),
        call.group.as_str().into(),
        call.device.into(),
        call.start_ns.into(),
        call.duration_ns.into(),
        call.message_bytes.into(),
        call.bus_bytes_per_second.into(),
        call.hidden_ns.into(),
    ]
}

fn outliers(result: &CollectivesResult) -> Table {
    let mut columns = CALL.to_vec();
    columns.extend([("Median of its like", Unit::Ns), ("Lost", Unit::Ns)]);
    let mut table = Table::new("Much longer than their like", &columns);
    table.left_out = result.outliers_left_out;
    for outlier in &result.outliers {
        let more = [outlier.median_ns.into(), outlier.lost_ns.into()];
        table.push_at(outlier.call.place(), cells(&outlier.call).into_iter().chain(more));
    }
    table
}

fn longest(result: &CollectivesResult) -> Table {
    let mut table = Table::new("Longest", &CALL);
    table.left_out = result.longest_left_out;
    for call in &result.longest {
        table.push_at(call.place(), cells(call));
    }
    table
}
