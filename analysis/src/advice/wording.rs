//! Figures in sentences.

use crate::model::approximate;

/// A length of time with three digits: `4.49 ms`.
pub(super) fn time(ns: u64) -> String {
    let value = approximate(ns.into());
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (value / 1e3, "us"),
        1_000_000..1_000_000_000 => (value / 1e6, "ms"),
        _ => (value / 1e9, "s"),
    };
    format!("{} {unit}", digits(value))
}

/// A number of bytes: `95.8 MB`.
pub(super) fn bytes(bytes: u64) -> String {
    let value = approximate(bytes.into());
    let (value, unit) = match bytes {
        0..1_000 => return format!("{bytes} B"),
        1_000..1_000_000 => (value / 1e3, "kB"),
        1_000_000..1_000_000_000 => (value / 1e6, "MB"),
        _ => (value / 1e9, "GB"),
    };
    format!("{} {unit}", digits(value))
}

/// A share of a whole: `12.3 %`.
pub(super) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0 %".to_owned();
    }
    format!("{:.1} %", 100.0 * approximate(part.into()) / approximate(whole.into()))
}

/// `1 copy`, `2 copies`.
pub(super) fn count(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// As many letters of a kernel's name as a sentence bears.
pub(super) fn short(name: &str) -> String {
    const MOST: usize = 60;
    let name = crate::kernel_name::short(name);
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or(name)),
        None => name.to_owned(),
    }
}

fn digits(value: f64) -> String {
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        for (ns, text) in [
            (999, "999 ns"),
            (4_490_000, "4.49 ms"),
            (58_700_000, "58.7 ms"),
            (1_234_000_000, "1.23 s"),
        ] {
            assert_eq!(time(ns), text);
        }
        assert_eq!(bytes(95_800_000), "95.8 MB");
        assert_eq!((share(1, 8), share(1, 0)), ("12.5 %".to_owned(), "0 %".to_owned()));
        assert_eq!(count(1, "copy", "copies"), "1 copy");
    }
}
