//! The comparison as people read it.

use flopwatch_report::page::category::label_of_name;
use flopwatch_report::page::{Bars, Cell, Page, Table, Tile, Unit};

use super::{ComparedUnit, Comparison, TimeDifference};
use crate::definition::Analysis;

/// Most bars and most places of a list.
const MAX_BARS: usize = 15;

pub(super) fn of(comparison: &Comparison) -> Page {
    let mut page = Page::of(super::Compare::TITLE, super::Compare::ABOUT, &comparison.not_captured);
    let time = &comparison.time;
    page.tiles([
        Tile::new("Verdict", comparison.verdict.name().replace('_', " ")),
        Tile::new("Speed-up", comparison.speedup),
        Tile::figure("Before", Unit::Ns, time.before_ns),
        Tile::figure("After", Unit::Ns, time.after_ns),
        Tile::figure("Change", Unit::Percent, time.change_percent),
        Tile::figure("Noise floor", Unit::Percent, time.noise_floor_percent),
        Tile::figure("Comparability", Unit::Ratio, comparison.comparability.score_ratio),
    ]);
    let per = match (comparison.unit, &comparison.iteration_unit) {
        (ComparedUnit::Capture, _) => "Times below are of whole captures".to_owned(),
        (ComparedUnit::Iteration, unit) => {
            format!("Times below are per {}", unit.as_deref().unwrap_or("iteration"))
        }
    };
    let text = format!(
        "{} {per}, after less before: above 0 is slower.",
        comparison.verdict_reason
    );
    page.text("", text);
    page.table(comparability(comparison));
    if !comparison.gpu_time.is_empty() {
        page.bars(gpu_time(comparison));
    }
    if !comparison.kernels.is_empty() {
        page.bars(changes("Kernels that changed most", &comparison.kernels));
        page.table(differences("Kernels", &comparison.kernels, comparison.kernels_left_out));
        page.table(longest_calls(
            "The longest launches of these kernels",
            &comparison.kernels,
        ));
    }
    page.table_unless_empty(copies(comparison));
    if !comparison.ranges.is_empty() {
        page.table(differences(
            "Ranges and operators",
            &comparison.ranges,
            comparison.ranges_left_out,
        ));
        page.table(longest_calls("The longest calls of these ranges", &comparison.ranges));
    }
    page.table_unless_empty(memory(comparison));
    page
}

fn comparability(comparison: &Comparison) -> impl Into<Table> {
    Table::of("Whether they can be compared", &comparison.comparability.factors)
        .about("The score is the product of the factors.")
        .column("What", |factor| factor.name.as_str())
        .figure("Factor", Unit::Ratio, |factor| factor.ratio)
        .column("Found", |factor| factor.about.as_str())
}

fn gpu_time(comparison: &Comparison) -> impl Into<Bars> {
    let parts = comparison.gpu_time.iter().filter(|part| part.part != "window");
    Bars::of("Time of the GPUs", Unit::Ns, parts, |part| part.part.replace('_', " "))
        .series("Before", |part| part.before_ns)
        .series("After", |part| part.after_ns)
}

fn changes(title: &str, rows: &[TimeDifference]) -> impl Into<Bars> {
    let rows = rows.iter().filter(|row| row.difference_ns != 0).take(MAX_BARS);
    Bars::of(title, Unit::Ns, rows, |row| row.name.clone())
        .series("More or fewer calls", |row| row.count_part_ns)
        .series("Longer or shorter calls", |row| row.duration_part_ns)
}

fn differences(title: &str, rows: &[TimeDifference], left_out: u64) -> impl Into<Table> {
    Table::of(title, rows)
        .left_out(left_out)
        .column("Name", |row| row.name.as_str())
        .column("In", |row| serde_name(&row.presence))
        .figure("Difference", Unit::Ns, |row| row.difference_ns)
        .figure("By calls", Unit::Ns, |row| row.count_part_ns)
        .figure("By length", Unit::Ns, |row| row.duration_part_ns)
        .figure("Before", Unit::Ns, |row| row.before_ns)
        .figure("After", Unit::Ns, |row| row.after_ns)
        .column("Calls before", |row| row.before_calls)
        .column("Calls after", |row| row.after_calls)
        .figure("Avg before", Unit::Ns, |row| row.before_mean_ns)
        .figure("Avg after", Unit::Ns, |row| row.after_mean_ns)
        .column("Matched by", |row| serde_name(&row.matched_by))
        .at(|row| row.after_place.or(row.before_place))
}

/// A place in each timeline for the rows that differ most.
fn longest_calls(title: &str, rows: &[TimeDifference]) -> impl Into<Table> {
    let calls = rows.iter().take(MAX_BARS).flat_map(|row| {
        let places = [("before", row.before_place), ("after", row.after_place)];
        let known = places
            .into_iter()
            .filter_map(|(capture, place)| Some((capture, place?)));
        known.map(move |(capture, place)| (row, capture, place))
    });
    Table::of(title, calls)
        .column("Name", |(row, ..)| row.name.as_str())
        .column("Capture", |(_, capture, _)| capture)
        .figure("Start", Unit::Instant, |(.., place)| place.start_ns)
        .figure("Length", Unit::Ns, |(.., place)| {
            place.end_ns.saturating_sub(place.start_ns)
        })
        .at(|(.., place)| place)
}

fn copies(comparison: &Comparison) -> impl Into<Table> {
    Table::of("Copies and memsets", &comparison.copies)
        .column("Direction", |row| label_of_name(&row.category))
        .figure("Difference", Unit::Ns, |row| row.difference_ns)
        .figure("Before", Unit::Ns, |row| row.before_ns)
        .figure("After", Unit::Ns, |row| row.after_ns)
        .figure("More bytes", Unit::Bytes, |row| row.difference_bytes)
        .figure("Bytes before", Unit::Bytes, |row| row.before_bytes)
        .figure("Bytes after", Unit::Bytes, |row| row.after_bytes)
        .column("Calls before", |row| row.before_calls)
        .column("Calls after", |row| row.after_calls)
}

fn memory(comparison: &Comparison) -> impl Into<Table> {
    Table::of("Peak of memory in use", &comparison.memory_diff.rows)
        .column("GPU", |row| row.device.as_str())
        .figure("Peak before", Unit::Bytes, |row| row.before_peak_bytes)
        .figure("Peak after", Unit::Bytes, |row| row.after_peak_bytes)
}

/// The word that stands for a value in JSON.
fn serde_name(value: &impl serde::Serialize) -> Cell {
    let word = serde_json::to_value(value).ok();
    let word = word.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default();
    word.replace('_', " ").into()
}
