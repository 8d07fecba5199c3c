//! How people read the waits of the host.

use flopwatch_measures::host_call::CallCost;
use flopwatch_report::page::category::label;
use flopwatch_report::page::{Page, Table, Unit};

use super::HostSyncResult;

pub(super) fn page(about: &str, result: &HostSyncResult) -> Page {
    let mut page = Page::new("Waits of the host for GPUs", about);
    page.not_captured.clone_from(&result.not_captured);
    page.tiles([
        ("Waits", result.cost.calls.into(), Unit::None),
        ("Total", result.cost.total_ns.into(), Unit::Ns),
        ("Host held", result.cost.held_ns.into(), Unit::Ns),
        ("GPU idle meanwhile", result.cost.gpu_idle_ns.into(), Unit::Ns),
        ("GPU idle behind waits", result.gpu_idle_after_ns.into(), Unit::Ns),
    ]);
    if result.cost.calls == 0 {
        page.text("", "No call in which the host waits for a GPU was recorded.");
        return page;
    }
    let mut kinds = table("By kind of wait", &[("Wait for", Unit::None)]);
    for row in &result.kinds {
        kinds.push(std::iter::once(row.kind.name().replace('_', " ").into()).chain(row.cost.cells()));
    }
    page.table(kinds);
    let mut holders = table("What holds the waits", &[("In", Unit::None), ("Name", Unit::None)]);
    "The innermost range, operator, annotation or function around a wait on its thread; a wait may be in one of each. The place is the longest wait."
        .clone_into(&mut holders.about);
    holders.left_out = result.holders_left_out;
    for row in &result.holders {
        let cells = [label(row.category).into(), row.name.as_str().into()];
        holders.push_at(row.longest, cells.into_iter().chain(row.cost.cells()));
    }
    page.table(holders);
    page.table(longest(result));
    page.table(rules(result));
    page
}

fn table(title: &str, columns: &[(&str, Unit)]) -> Table {
    let columns: Vec<(&str, Unit)> = columns.iter().copied().chain(CallCost::COLUMNS).collect();
    Table::new(title, &columns)
}

fn longest(result: &HostSyncResult) -> Table {
    let mut table = Table::new(
        "Longest waits",
        &[
            ("Call", Unit::None),
            ("Wait for", Unit::None),
            ("Process", Unit::None),
            ("Thread", Unit::None),
            ("Start", Unit::Instant),
            ("Duration", Unit::Ns),
            ("GPU idle meanwhile", Unit::Ns),
            ("In", Unit::None),
        ],
    );
    table.left_out = result.longest_left_out;
    for call in &result.longest {
        table.push_at(
            call.place(),
            [
                call.name.as_str().into(),
                call.kind.name().replace('_', " ").into(),
                call.process.into(),
                call.thread.into(),
                call.start_ns.into(),
                call.duration_ns.into(),
                call.gpu_idle_ns.into(),
                call.held_by.as_str().into(),
            ],
        );
    }
    table
}

fn rules(result: &HostSyncResult) -> Table {
    let mut table = Table::new(
        "Rules of nsys analyze",
        &[
            ("Rule", Unit::None),
            ("Finds", Unit::None),
            ("Found", Unit::None),
            ("Total", Unit::Ns),
            ("Longest", Unit::Ns),
        ],
    );
    for rule in &result.rules {
        let longest = rule.rows.first();
        let cells = [
            rule.rule.as_str().into(),
            rule.about.as_str().into(),
            rule.count.into(),
            rule.total_ns.into(),
            longest.map(|row| row.duration_ns).into(),
        ];
        match longest {
            Some(row) => table.push_at(row.place(), cells),
            None => table.push(cells),
        }
    }
    table
}
