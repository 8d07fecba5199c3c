//! How people read the waits of the host.

use flopwatch_measures::host_call::CallCost;
use flopwatch_report::page::category::label;
use flopwatch_report::page::{Page, Table, Tile, Unit};

use super::rules::SyncRuleRow;
use super::{HostSyncResult, SyncCall};

pub(super) fn page(title: &str, about: &str, result: &HostSyncResult) -> Page {
    let mut page = Page::of(title, about, &result.not_captured);
    page.tiles([
        Tile::new("Waits", result.cost.calls),
        Tile::figure("Total", Unit::Ns, result.cost.total_ns),
        Tile::figure("Host held", Unit::Ns, result.cost.held_ns),
        Tile::figure("GPU idle meanwhile", Unit::Ns, result.cost.gpu_idle_ns),
        Tile::figure("GPU idle behind waits", Unit::Ns, result.gpu_idle_after_ns),
    ]);
    if result.cost.calls == 0 {
        page.text("", "No call in which the host waits for a GPU was recorded.");
        return page;
    }
    let kinds = Table::of("By kind of wait", &result.kinds);
    let kinds = kinds.column("Wait for", |row| row.kind.name().replace('_', " "));
    page.table(CallCost::columns(kinds, |row| row.cost));
    let holders = Table::of("What holds the waits", &result.holders)
        .about(
            "The innermost range, operator, annotation or function around a wait on its thread; a wait \
             may be in one of each. The place is the longest wait.",
        )
        .left_out(result.holders_left_out)
        .column("In", |row| label(row.category))
        .column("Name", |row| row.name.as_str())
        .at(|row| row.longest);
    page.table(CallCost::columns(holders, |row| row.cost));
    page.table(longest(result));
    page.table(rules(result));
    page
}

fn longest(result: &HostSyncResult) -> impl Into<Table> {
    Table::of("Longest waits", &result.longest)
        .left_out(result.longest_left_out)
        .column("Call", |call| call.name.as_str())
        .column("Wait for", |call| call.kind.name().replace('_', " "))
        .column("Process", |call| call.process)
        .column("Thread", |call| call.thread)
        .figure("Start", Unit::Instant, |call| call.start_ns)
        .figure("Duration", Unit::Ns, |call| call.duration_ns)
        .figure("GPU idle meanwhile", Unit::Ns, |call| call.gpu_idle_ns)
        .column("In", |call| call.held_by.as_str())
        .at(SyncCall::location)
}

fn rules(result: &HostSyncResult) -> impl Into<Table> {
    Table::of("Rules of nsys analyze", &result.rules)
        .column("Rule", |rule| rule.rule.as_str())
        .column("Finds", |rule| rule.about.as_str())
        .column("Found", |rule| rule.count)
        .figure("Total", Unit::Ns, |rule| rule.total_ns)
        .figure("Max", Unit::Ns, |rule| rule.rows.first().map(|row| row.duration_ns))
        .at(|rule| rule.rows.first().map(SyncRuleRow::location))
}
