//! Operations as people read them: the dashboard of a capture or of a profile that a program wrote itself.

use flopwatch_model::approximate;
use flopwatch_report::page::{Bars, Cell, Lines, Page, Place, Series, Table, Unit};

use super::{Operation, OperationBottleneck, OperationCall, OperationKind, OperationMemory, Operations};

/// Bars that one can read side by side.
const BARS: usize = 15;

/// Where the rows of a capture's tables lead; a profile has no timeline.
const LEADS: &str = " A row leads to the longest call.";

/// A figure of an operation as a value of a bar.
type Figure = fn(&Operation) -> Option<u64>;

pub(super) fn page(of: &Operations) -> Page {
    let about = format!(
        "Of {}: how often they were called, how long they took, and what their time was made of.",
        of.kind.title()
    );
    let mut page = Page::new("Operations", &about);
    page.not_captured.clone_from(&of.not_captured);
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
    let time = if of.kind == OperationKind::Profile {
        "Total time of calls"
    } else {
        "Time inside operations"
    };
    page.tiles([
        ("Operations called", of.calls.into(), Unit::None),
        ("Distinct operations", of.distinct.into(), Unit::None),
        (time, of.self_ns.into(), Unit::Ns),
        ("Average time of a call", of.avg_ns.into(), Unit::Ns),
    ]);
    if let Some(work) = &of.gpu_work {
        page.tiles([
            ("GPU work", work.pieces.into(), Unit::None),
            ("launched inside operations", work.inside.into(), Unit::None),
            ("launched outside of them", work.outside.into(), Unit::None),
            ("of unknown launch", work.without_launch.into(), Unit::None),
        ]);
    }
}

fn charts(page: &mut Page, of: &Operations) {
    let shown: Vec<&Operation> = of.operations.iter().take(BARS).collect();
    let labels = || {
        shown
            .iter()
            .map(|operation| operation.operation.clone())
            .collect::<Vec<_>>()
    };
    let series = |name: &str, value: &dyn Fn(&Operation) -> Option<f64>| Series {
        name: name.to_owned(),
        values: shown.iter().map(|operation| value(operation)).collect(),
    };
    let mut bars = |title: &str, unit, stacked, series| {
        page.bars(Bars {
            title: title.to_owned(),
            unit,
            stacked,
            labels: labels(),
            series,
        });
    };
    let share = series("Share of own time", &|operation| Some(operation.self_ratio));
    bars("Share of time per operation", Unit::Ratio, true, vec![share]);
    let average = series("Average time", &|operation| Some(operation.avg_ns));
    bars("Average time of a call", Unit::Ns, false, vec![average]);
    let calls = series("Calls", &|operation| Some(approximate(operation.calls.into())));
    bars("Calls", Unit::None, false, vec![calls]);
    let parts: [(&str, Figure); 5] = [
        ("GPU", |operation| operation.gpu_ns),
        ("CPU", |operation| operation.cpu_ns),
        ("Transfers", |operation| operation.transfer_ns),
        ("Overhead", |operation| operation.overhead_ns),
        ("Waiting for the GPU", |operation| operation.wait_ns),
    ];
    let known = parts
        .iter()
        .filter(|(_, part)| shown.iter().any(|operation| part(operation).is_some()));
    let stacked: Vec<Series> = known
        .map(|(name, part)| series(name, &|operation| part(operation).map(|ns| approximate(ns.into()))))
        .collect();
    if !stacked.is_empty() {
        bars("Time by what it was made of", Unit::Ns, true, stacked);
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

fn place(row: Option<u32>, start_ns: u64, end_ns: u64) -> Option<Place> {
    row.map(|row| Place {
        input: 0,
        start_ns,
        end_ns,
        row: Some(row),
    })
}

fn push(table: &mut Table, at: Option<Place>, cells: Vec<Cell>) {
    match at {
        Some(at) => table.push_at(at, cells),
        None => table.push(cells),
    }
}

fn bottlenecks(list: &[OperationBottleneck]) -> Table {
    let columns = [
        ("Operation", Unit::None),
        ("Cost", Unit::Ns),
        ("Share of own time", Unit::Ratio),
        ("Calls", Unit::None),
        ("What stands out", Unit::None),
    ];
    let mut table = Table::new("Bottlenecks", &columns);
    "The cost is the longer of the operation's own time on the host and that of the GPU work that it launched itself."
        .clone_into(&mut table.about);
    if list.iter().any(|bottleneck| bottleneck.longest_row.is_some()) {
        table.about += LEADS;
    }
    for bottleneck in list {
        let at = place(
            bottleneck.longest_row,
            bottleneck.longest_start_ns,
            bottleneck.longest_end_ns,
        );
        let reasons: Vec<&str> = bottleneck.reasons.iter().map(|reason| reason.text.as_str()).collect();
        let cells = vec![
            bottleneck.operation.as_str().into(),
            bottleneck.cost_ns.into(),
            bottleneck.self_ratio.into(),
            bottleneck.calls.into(),
            reasons.join("; ").into(),
        ];
        push(&mut table, at, cells);
    }
    table
}

fn timeline(first: &[OperationCall], all: u64) -> Table {
    let heads = [
        ("Start", Unit::Instant),
        ("Length", Unit::Ns),
        ("Operation", Unit::None),
        ("Name as captured", Unit::None),
        ("GPU", Unit::Ns),
        ("CPU", Unit::Ns),
        ("Transfers", Unit::Ns),
        ("Overhead", Unit::Ns),
    ];
    let mut table = Table::new("Operation timeline", &heads);
    "The first calls.".clone_into(&mut table.about);
    for one in first {
        let cells = vec![
            one.start_ns.into(),
            one.end_ns.saturating_sub(one.start_ns).into(),
            one.operation.as_str().into(),
            one.name.as_str().into(),
            one.gpu_ns.into(),
            one.cpu_ns.into(),
            one.transfer_ns.into(),
            one.overhead_ns.into(),
        ];
        push(&mut table, place(one.row, one.start_ns, one.end_ns), cells);
    }
    table.left_out = all.saturating_sub(u64::try_from(first.len()).unwrap_or(u64::MAX));
    table
}

fn operations(of: &Operations) -> Table {
    let columns = [
        ("Operation", Unit::None),
        ("Calls", Unit::None),
        ("Recursive calls", Unit::None),
        ("Total", Unit::Ns),
        ("Own time", Unit::Ns),
        ("Share of own time", Unit::Ratio),
        ("Average", Unit::Ns),
        ("Median", Unit::Ns),
        ("Min", Unit::Ns),
        ("Max", Unit::Ns),
        ("Standard deviation", Unit::Ns),
        ("GPU", Unit::Ns),
        ("Own GPU", Unit::Ns),
        ("CPU", Unit::Ns),
        ("Transfers", Unit::Ns),
        ("Overhead", Unit::Ns),
        ("Waiting", Unit::Ns),
        ("GPU pieces", Unit::None),
        ("Copies", Unit::None),
        ("Copied", Unit::Bytes),
        ("Memory given out", Unit::Bytes),
        ("Memory peak", Unit::Bytes),
    ];
    let mut table = Table::new("All operations", &columns);
    "The longest own time first.".clone_into(&mut table.about);
    if of.operations.iter().any(|operation| operation.longest_row.is_some()) {
        table.about += LEADS;
    }
    let is_profile = of.kind == OperationKind::Profile;
    if is_profile {
        table.about += " A profile does not say which calls lie inside others, so own time is all of the time.";
    }
    // What no profile records is not zero.
    let recorded = |count: u64| if is_profile { Cell::Nothing } else { count.into() };
    for operation in &of.operations {
        let at = place(
            operation.longest_row,
            operation.longest_start_ns,
            operation.longest_end_ns,
        );
        let cells = vec![
            operation.operation.as_str().into(),
            operation.calls.into(),
            recorded(operation.recursive_calls),
            operation.total_ns.into(),
            operation.self_ns.into(),
            operation.self_ratio.into(),
            operation.avg_ns.into(),
            operation.median_ns.into(),
            operation.min_ns.into(),
            operation.max_ns.into(),
            operation.std_dev_ns.into(),
            operation.gpu_ns.into(),
            operation.self_gpu_ns.into(),
            operation.cpu_ns.into(),
            operation.transfer_ns.into(),
            operation.overhead_ns.into(),
            operation.wait_ns.into(),
            operation.gpu_pieces.into(),
            operation.transfers.into(),
            operation.transferred_bytes.into(),
            operation.allocated_bytes.into(),
            operation.peak_bytes.into(),
        ];
        push(&mut table, at, cells);
    }
    table.left_out = of.operations_left_out;
    if is_profile {
        table.without_unknown();
    }
    table
}

/// The names as captured of the operations that have others than their own.
fn names(of: &Operations) -> Table {
    let columns = [
        ("Operation", Unit::None),
        ("Name as captured", Unit::None),
        ("Calls", Unit::None),
    ];
    let mut table = Table::new("Names as captured", &columns);
    "What tells one call from the next is left out of the names of operations: numbers, addresses, ids."
        .clone_into(&mut table.about);
    for operation in &of.operations {
        table.left_out = table.left_out.saturating_add(operation.names_left_out);
        for name in &operation.names {
            if name.name != operation.operation {
                table.push([
                    operation.operation.as_str().into(),
                    name.name.as_str().into(),
                    name.calls.into(),
                ]);
            }
        }
    }
    table
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
