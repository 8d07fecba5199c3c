//! Operations as people read them: the dashboard of a capture or of a profile that a program wrote
//! itself.

use flopwatch_model::{RowId, approximate};
use flopwatch_report::page::{Bars, Lines, Page, Series, Table, Tile, TimelineLocation, Unit};

use super::{Operation, OperationBottleneck, OperationCall, OperationKind, OperationMemory, Operations};

/// Bars that one can read side by side.
const MAX_BARS: usize = 15;

/// Where the rows of a capture's tables lead; a profile has no timeline.
const LEADS: &str = " A row leads to the longest call.";

pub(super) fn page(of: &Operations) -> Page {
    let about = format!(
        "Of {}: how often they were called, how long they took, and what their time was made of.",
        of.kind.title()
    );
    let mut page = Page::of("Operations", &about, &of.not_captured);
    tiles(&mut page, of);
    if of.calls == 0 {
        return page;
    }
    charts(&mut page, of);
    page.table(bottlenecks(&of.bottlenecks));
    let mut calls = timeline(&of.first_calls, of.calls);
    if of.kind == OperationKind::Profile {
        calls.without_unknown();
    }
    page.table(calls);
    page.table(operations(of));
    if of.kind != OperationKind::Profile {
        page.table(names(of));
        kinds(&mut page, of);
    }
    page
}

fn tiles(page: &mut Page, of: &Operations) {
    // Of a profile nobody knows which calls lie inside others.
    let time = match of.kind {
        OperationKind::Profile => "Total time of calls",
        OperationKind::Hlo => "Time inside operations",
        _ => "Host time inside operations",
    };
    page.tiles([
        Tile::new("Operations called", of.calls),
        Tile::new("Distinct operations", of.distinct),
        Tile::figure(time, Unit::Ns, of.self_ns),
        Tile::figure("Avg time of a call", Unit::Ns, of.avg_ns),
    ]);
    if let Some(work) = &of.gpu_work {
        page.tiles([
            Tile::new("GPU work", work.pieces),
            Tile::new("launched inside operations", work.inside),
            Tile::new("launched outside of them", work.outside),
            Tile::new("of unknown launch", work.without_launch),
        ]);
    }
}

fn charts(page: &mut Page, of: &Operations) {
    let shown: Vec<&Operation> = of.operations.iter().take(MAX_BARS).collect();
    let bars = |title: &str, unit| Bars::of(title, unit, shown.iter().copied(), |one| one.operation.clone());
    // A profile does not say what its own time is; on a device it is that of the device.
    let title = match of.kind {
        OperationKind::Profile => "Share of time per operation",
        OperationKind::Hlo => "Share of the device's time per operation",
        _ => "Share of host time per operation",
    };
    let has_gpu_time = shown
        .iter()
        .any(|operation| operation.self_gpu_ns.is_some_and(|ns| ns > 0));
    if of.kind != OperationKind::Profile && has_gpu_time {
        page.bars(
            bars("GPU time of what each operation launched itself", Unit::Ns).series("GPU time", |one| one.self_gpu_ns),
        );
    }
    page.bars(
        bars(title, Unit::Ratio)
            .series("Share of own time", |one| one.self_ratio)
            .stacked(),
    );
    page.bars(bars("Avg time of a call", Unit::Ns).series("Avg time", |one| one.avg_ns));
    page.bars(bars("Calls", Unit::None).series("Calls", |one| one.calls));
    let mut parts = bars("Time by what it was made of", Unit::Ns)
        .series("GPU", |one| one.gpu_ns)
        .series("CPU", |one| one.cpu_ns)
        .series("Transfers", |one| one.transfer_ns)
        .series("Overhead", |one| one.overhead_ns)
        .series("Waiting for the GPU", |one| one.wait_ns)
        .stacked()
        .build();
    parts.series.retain(|series| series.values.iter().any(Option::is_some));
    if !parts.series.is_empty() {
        page.bars(parts);
        page.text(
            "",
            "GPU and transfer time passes beside the host's, often after the call has ended: only CPU, overhead and waiting add up to the time of the calls.",
        );
    }
    if !of.memory.is_empty() {
        page.lines(memory(&of.memory));
    }
}

fn memory(points: &[OperationMemory]) -> Lines {
    let series = |name: &str, value: fn(&OperationMemory) -> u64| Series {
        name: name.to_owned(),
        values: points
            .iter()
            .map(|point| Some(approximate(value(point).into())))
            .collect(),
    };
    Lines {
        title: "Device memory".to_owned(),
        unit: Unit::Bytes,
        times_ns: points.iter().map(|point| point.t_ns).collect(),
        series: vec![
            series("Allocated", |point| point.allocated_bytes),
            series("Peak", |point| point.peak_bytes),
        ],
    }
}

fn location(row: Option<RowId>, start_ns: u64, end_ns: u64) -> Option<TimelineLocation> {
    row.map(|row| TimelineLocation::new(start_ns, end_ns, Some(row)))
}

fn bottlenecks(list: &[OperationBottleneck]) -> impl Into<Table> {
    let mut about = "The cost is the longer of the operation's own time on the host and that of the GPU \
                     work that it launched itself."
        .to_owned();
    if list.iter().any(|bottleneck| bottleneck.longest_row.is_some()) {
        about += LEADS;
    }
    Table::of("Bottlenecks", list)
        .about(about)
        .column("Operation", |of| of.operation.as_str())
        .figure("Cost", Unit::Ns, |of| of.cost_ns)
        .figure("Share of own time", Unit::Ratio, |of| of.self_ratio)
        .column("Calls", |of| of.calls)
        .column("What stands out", |of| {
            let reasons: Vec<&str> = of.reasons.iter().map(|reason| reason.text.as_str()).collect();
            reasons.join("; ")
        })
        .at(|of| location(of.longest_row, of.longest_start_ns, of.longest_end_ns))
}

fn timeline(first: &[OperationCall], all: u64) -> Table {
    Table::of("Operation timeline", first)
        .about("The first calls.")
        .left_out(all.saturating_sub(u64::try_from(first.len()).unwrap_or(u64::MAX)))
        .figure("Start", Unit::Instant, |one| one.start_ns)
        .figure("Length", Unit::Ns, |one| one.end_ns.saturating_sub(one.start_ns))
        .column("Operation", |one| one.operation.as_str())
        .column("Name as captured", |one| one.name.as_str())
        .figure("GPU", Unit::Ns, |one| one.gpu_ns)
        .figure("CPU", Unit::Ns, |one| one.cpu_ns)
        .figure("Transfers", Unit::Ns, |one| one.transfer_ns)
        .figure("Overhead", Unit::Ns, |one| one.overhead_ns)
        .at(|one| location(one.row, one.start_ns, one.end_ns))
        .build()
}

fn operations(of: &Operations) -> Table {
    let mut about = "The longest own time first.".to_owned();
    if of.operations.iter().any(|operation| operation.longest_row.is_some()) {
        about += LEADS;
    }
    let is_profile = of.kind == OperationKind::Profile;
    if is_profile {
        about += " A profile does not say which calls lie inside others, so own time is all of the time.";
    }
    let table = Table::of("All operations", &of.operations)
        .about(about)
        .left_out(of.operations_left_out)
        .column("Operation", |one| one.operation.as_str())
        .column("Calls", |one| one.calls)
        // What no profile records is not zero.
        .column("Recursive calls", |one| (!is_profile).then_some(one.recursive_calls))
        .figure("Total", Unit::Ns, |one| one.total_ns)
        .figure("Own time", Unit::Ns, |one| one.self_ns)
        .figure("Share of own time", Unit::Ratio, |one| one.self_ratio)
        .figure("Avg", Unit::Ns, |one| one.avg_ns)
        .figure("Med", Unit::Ns, |one| one.median_ns)
        .figure("Min", Unit::Ns, |one| one.min_ns)
        .figure("Max", Unit::Ns, |one| one.max_ns)
        .figure("StdDev", Unit::Ns, |one| one.std_dev_ns)
        .figure("GPU", Unit::Ns, |one| one.gpu_ns)
        .figure("Own GPU", Unit::Ns, |one| one.self_gpu_ns)
        .figure("CPU", Unit::Ns, |one| one.cpu_ns)
        .figure("Transfers", Unit::Ns, |one| one.transfer_ns)
        .figure("Overhead", Unit::Ns, |one| one.overhead_ns)
        .figure("Waiting", Unit::Ns, |one| one.wait_ns)
        .column("GPU pieces", |one| one.gpu_pieces)
        .column("Copies", |one| one.transfers)
        .figure("Copied", Unit::Bytes, |one| one.transferred_bytes)
        .figure("Memory given out", Unit::Bytes, |one| one.allocated_bytes)
        .figure("Memory peak", Unit::Bytes, |one| one.peak_bytes)
        .at(|one| location(one.longest_row, one.longest_start_ns, one.longest_end_ns));
    if is_profile {
        return table.without_unknown().build();
    }
    table.build()
}

/// The names as captured of the operations that have others than their own.
fn names(of: &Operations) -> impl Into<Table> {
    let left_out = of.operations.iter().map(|operation| operation.names_left_out);
    let names = of.operations.iter().flat_map(|operation| {
        let others = operation.names.iter().filter(|name| name.name != operation.operation);
        others.map(move |name| (operation, name))
    });
    Table::of("Names as captured", names)
        .about(
            "What tells one call from the next is left out of the names of operations: numbers, \
             addresses, ids.",
        )
        .left_out(left_out.fold(0, u64::saturating_add))
        .column("Operation", |(operation, _)| operation.operation.as_str())
        .column("Name as captured", |(_, name)| name.name.as_str())
        .column("Calls", |(_, name)| name.calls)
}

fn kinds(page: &mut Page, of: &Operations) {
    let others = of.kinds.iter().filter(|other| other.kind != of.kind);
    let listed: Vec<String> = others
        .map(|other| format!("{} {}", other.calls, other.kind.title()))
        .collect();
    if !listed.is_empty() {
        let text = format!(
            "The capture also holds {}: choose them with the parameter `kind`.",
            listed.join(", ")
        );
        page.text("Other operations", text);
    }
}
