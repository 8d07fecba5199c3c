//! The comparison as people read it.

use flopwatch_model::approximate;
use flopwatch_report::page::category::label_of_name;
use flopwatch_report::page::{Bars, Cell, Page, Series, Table, Unit};

use super::{ComparedUnit, Comparison, TimeDifference};
use crate::definition::Analysis;

/// Most bars and most places of a list.
const BARS: usize = 15;

pub(super) fn of(comparison: &Comparison) -> Page {
    let mut page = Page::new("Before and after", super::Compare::ABOUT);
    page.not_captured.clone_from(&comparison.not_captured);
    let time = &comparison.time;
    page.tiles([
        (
            "Verdict",
            comparison.verdict.name().replace('_', " ").into(),
            Unit::None,
        ),
        ("Speed-up", comparison.speedup.into(), Unit::None),
        ("Before", time.before_ns.into(), Unit::Ns),
        ("After", time.after_ns.into(), Unit::Ns),
        ("Change", time.change_percent.into(), Unit::Percent),
        ("Noise floor", time.noise_floor_percent.into(), Unit::Percent),
        (
            "Comparability",
            comparison.comparability.score_ratio.into(),
            Unit::Ratio,
        ),
    ]);
    let per = match comparison.unit {
        ComparedUnit::Iteration => "Times below are per iteration",
        ComparedUnit::Capture => "Times below are of whole captures",
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
        page.table(places("The longest launches of these kernels", &comparison.kernels));
    }
    if !comparison.copies.is_empty() {
        page.table(copies(comparison));
    }
    if !comparison.ranges.is_empty() {
        page.table(differences(
            "Ranges and operators",
            &comparison.ranges,
            comparison.ranges_left_out,
        ));
        page.table(places("The longest calls of these ranges", &comparison.ranges));
    }
    if !comparison.memory_diff.rows.is_empty() {
        page.table(memory(comparison));
    }
    page
}

fn comparability(comparison: &Comparison) -> Table {
    let columns = [("What", Unit::None), ("Factor", Unit::Ratio), ("Found", Unit::None)];
    let mut table = Table::new("Whether they can be compared", &columns);
    "The score is the product of the factors.".clone_into(&mut table.about);
    for factor in &comparison.comparability.factors {
        table.push([
            factor.name.as_str().into(),
            factor.ratio.into(),
            factor.about.as_str().into(),
        ]);
    }
    table
}

fn gpu_time(comparison: &Comparison) -> Bars {
    let parts: Vec<_> = comparison
        .gpu_time
        .iter()
        .filter(|part| part.part != "window")
        .collect();
    let exact = |ns: u64| Some(approximate(ns.into()));
    let series = |name: &str, values| Series {
        name: name.to_owned(),
        values,
    };
    Bars {
        title: "Time of the GPUs".to_owned(),
        unit: Unit::Ns,
        stacked: false,
        labels: parts.iter().map(|part| part.part.replace('_', " ")).collect(),
        series: vec![
            series("Before", parts.iter().map(|part| exact(part.before_ns)).collect()),
            series("After", parts.iter().map(|part| exact(part.after_ns)).collect()),
        ],
    }
}

fn signed(ns: i64) -> f64 {
    let size = approximate(ns.unsigned_abs().into());
    if ns < 0 { -size } else { size }
}

fn changes(title: &str, rows: &[TimeDifference]) -> Bars {
    let rows = rows.iter().filter(|row| row.difference_ns != 0).take(BARS);
    let rows: Vec<&TimeDifference> = rows.collect();
    let series = |name: &str, of: fn(&TimeDifference) -> i64| Series {
        name: name.to_owned(),
        values: rows.iter().map(|row| Some(signed(of(row)))).collect(),
    };
    Bars {
        title: title.to_owned(),
        unit: Unit::Ns,
        stacked: false,
        labels: rows.iter().map(|row| row.name.clone()).collect(),
        series: vec![
            series("More or fewer calls", |row| row.count_part_ns),
            series("Longer or shorter calls", |row| row.duration_part_ns),
        ],
    }
}

fn differences(title: &str, rows: &[TimeDifference], left_out: u64) -> Table {
    let columns = [
        ("Name", Unit::None),
        ("In", Unit::None),
        ("Difference", Unit::Ns),
        ("By calls", Unit::Ns),
        ("By length", Unit::Ns),
        ("Before", Unit::Ns),
        ("After", Unit::Ns),
        ("Calls before", Unit::None),
        ("Calls after", Unit::None),
        ("Mean before", Unit::Ns),
        ("Mean after", Unit::Ns),
        ("Matched by", Unit::None),
    ];
    let mut table = Table::new(title, &columns);
    table.left_out = left_out;
    for row in rows {
        let cells: [Cell; 12] = [
            row.name.as_str().into(),
            serde_name(&row.presence),
            row.difference_ns.into(),
            row.count_part_ns.into(),
            row.duration_part_ns.into(),
            row.before_ns.into(),
            row.after_ns.into(),
            row.before_calls.into(),
            row.after_calls.into(),
            row.before_mean_ns.into(),
            row.after_mean_ns.into(),
            serde_name(&row.matched_by),
        ];
        match row.after_place.or(row.before_place) {
            Some(place) => table.push_at(place, cells),
            None => table.push(cells),
        }
    }
    table
}

/// A place in each timeline for the rows that differ most.
fn places(title: &str, rows: &[TimeDifference]) -> Table {
    let mut table = Table::new(
        title,
        &[
            ("Name", Unit::None),
            ("Capture", Unit::None),
            ("Start", Unit::Instant),
            ("Length", Unit::Ns),
        ],
    );
    for row in rows.iter().take(BARS) {
        for (capture, place) in [("before", row.before_place), ("after", row.after_place)] {
            let Some(place) = place else { continue };
            let length = place.end_ns.saturating_sub(place.start_ns);
            let cells: [Cell; 4] = [
                row.name.as_str().into(),
                capture.into(),
                place.start_ns.into(),
                length.into(),
            ];
            table.push_at(place, cells);
        }
    }
    table
}

fn copies(comparison: &Comparison) -> Table {
    let columns = [
        ("Direction", Unit::None),
        ("Difference", Unit::Ns),
        ("Before", Unit::Ns),
        ("After", Unit::Ns),
        ("More bytes", Unit::Bytes),
        ("Bytes before", Unit::Bytes),
        ("Bytes after", Unit::Bytes),
        ("Calls before", Unit::None),
        ("Calls after", Unit::None),
    ];
    let mut table = Table::new("Copies and memsets", &columns);
    for row in &comparison.copies {
        let cells: [Cell; 9] = [
            label_of_name(&row.category).into(),
            row.difference_ns.into(),
            row.before_ns.into(),
            row.after_ns.into(),
            row.difference_bytes.into(),
            row.before_bytes.into(),
            row.after_bytes.into(),
            row.before_calls.into(),
            row.after_calls.into(),
        ];
        table.push(cells);
    }
    table
}

fn memory(comparison: &Comparison) -> Table {
    let columns = [
        ("GPU", Unit::None),
        ("Peak before", Unit::Bytes),
        ("Peak after", Unit::Bytes),
    ];
    let mut table = Table::new("Peak of memory in use", &columns);
    for row in &comparison.memory_diff.rows {
        table.push([
            row.device.as_str().into(),
            row.before_peak_bytes.into(),
            row.after_peak_bytes.into(),
        ]);
    }
    table
}

/// The word that stands for a value in JSON.
fn serde_name(value: &impl serde::Serialize) -> Cell {
    let word = serde_json::to_value(value).ok();
    let word = word.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default();
    word.replace('_', " ").into()
}
