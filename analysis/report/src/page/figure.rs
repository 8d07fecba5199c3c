//! Numbers as people read them. What is exact is in JSON and CSV.

use flopwatch_model::approximate;

use super::{Cell, Unit};

/// Prefixes of a thousand each.
const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];

/// A value in its unit; empty where it is not known. Text is as it is: it may hold anything.
pub fn shown(cell: &Cell, unit: Unit) -> String {
    match cell {
        Cell::Nothing => String::new(),
        Cell::Flag(true) => "yes".to_owned(),
        Cell::Flag(false) => "no".to_owned(),
        Cell::Integer(value) if unit == Unit::None => value.to_string(),
        Cell::Integer(value) => number(whole(*value), unit),
        Cell::Number(value) => number(*value, unit),
        Cell::Text(text) => text.clone(),
    }
}

/// A number in its unit.
pub fn number(value: f64, unit: Unit) -> String {
    match unit {
        Unit::None => plain(value),
        Unit::Ns => duration(value),
        // A duration's three or four digits would give neighbours the same time.
        Unit::Instant => format!("{:.6} s", value / 1e9),
        Unit::Bytes => scaled(value, "B"),
        Unit::BytesPerSecond => scaled(value, "B/s"),
        Unit::Count => scaled(value, "").trim_end().to_owned(),
        Unit::FlopPerSecond => scaled(value, "FLOP/s"),
        Unit::InstructionsPerSecond => scaled(value, "inst/s"),
        Unit::Ratio => percent(value * 100.0),
        Unit::Percent => percent(value),
    }
}

/// A number of things, by their name for one and that for any other number: `1 copy`, `2 copies`.
pub fn count(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A value as a number, where it is one.
pub(crate) fn value_of(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Integer(value) => Some(whole(*value)),
        Cell::Number(value) => Some(*value),
        Cell::Nothing | Cell::Flag(_) | Cell::Text(_) => None,
    }
}

fn whole(value: i64) -> f64 {
    let size = approximate(u128::from(value.unsigned_abs()));
    if value < 0 { -size } else { size }
}

/// At most four digits behind the point, and none that say nothing.
fn plain(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.001 {
        return format!("{value:.3e}");
    }
    let digits = if value.abs() < 10.0 { 4 } else { 2 };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    let text = if text == "-0" { "0" } else { text };
    text.to_owned()
}

fn percent(value: f64) -> String {
    let digits = if value != 0.0 && value.abs() < 0.1 { 3 } else { 1 };
    format!("{value:.digits$} %")
}

fn duration(ns: f64) -> String {
    let units = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    in_steps(ns, &units.map(|(unit, size)| (unit.to_owned(), size)))
}

fn scaled(value: f64, unit: &str) -> String {
    let mut size = 1.0;
    let steps = PREFIXES.map(|prefix| {
        let step = (format!("{prefix}{unit}"), size);
        size *= 1e3;
        step
    });
    in_steps(value, &steps)
}

/// In the largest unit that leaves at least one; two digits behind the point, but none of whole
/// numbers of the smallest.
fn in_steps(value: f64, units: &[(String, f64)]) -> String {
    // What two digits behind the point would round to a thousand is of the next unit: 999.999 ns is
    // 1.00 µs.
    let fits = |size: f64| value.abs() >= size * 0.999_995;
    let found = units.iter().rev().find(|(_, size)| fits(*size)).or(units.first());
    let (unit, size) = found.map_or(("", 1.0), |(unit, size)| (unit.as_str(), *size));
    let value = value / size;
    let is_smallest = units.first().is_some_and(|(smallest, _)| smallest == unit);
    let digits = if is_smallest && value.fract() == 0.0 { 0 } else { 2 };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_in_the_unit_that_fits() {
        let cases = [
            (Cell::Integer(0), Unit::Ns, "0 ns"),
            (Cell::Integer(999), Unit::Ns, "999 ns"),
            (Cell::Number(999.999), Unit::Ns, "1.00 µs"),
            (Cell::Number(12.5), Unit::Ns, "12.50 ns"),
            (Cell::Integer(-1_500), Unit::Ns, "-1.50 µs"),
            (Cell::Integer(2_500_000), Unit::Ns, "2.50 ms"),
            (Cell::Integer(3_600_000_000_000), Unit::Ns, "3600.00 s"),
            (Cell::Integer(60_391_234_567), Unit::Instant, "60.391235 s"),
            (Cell::Integer(1_000_000), Unit::Bytes, "1.00 MB"),
            (Cell::Number(2.0e12), Unit::BytesPerSecond, "2.00 TB/s"),
            (Cell::Integer(362), Unit::Count, "362"),
            (Cell::Integer(32_715_571_200), Unit::Count, "32.72 G"),
            (Cell::Number(9.89e14), Unit::FlopPerSecond, "989.00 TFLOP/s"),
            (Cell::Number(7.6e10), Unit::InstructionsPerSecond, "76.00 Ginst/s"),
            (Cell::Number(0.125), Unit::Ratio, "12.5 %"),
            (Cell::Number(0.000_12), Unit::Ratio, "0.012 %"),
            (Cell::Number(50.0), Unit::Percent, "50.0 %"),
            (Cell::Integer(1_234_567), Unit::None, "1234567"),
            (Cell::Number(1.5), Unit::None, "1.5"),
            (Cell::Number(0.000_012), Unit::None, "1.200e-5"),
            (Cell::Flag(true), Unit::None, "yes"),
            (Cell::Nothing, Unit::Ns, ""),
        ];
        for (cell, unit, expected) in cases {
            assert_eq!(shown(&cell, unit), expected, "{cell:?}");
        }
    }

    #[test]
    fn one_thing_is_told_in_the_singular_and_none_as_several() {
        let told = [0, 1, 2].map(|events| count(events, "event", "events"));
        assert_eq!(told, ["0 events", "1 event", "2 events"]);
    }
}
