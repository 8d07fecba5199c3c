//! Numbers as nsys rounds them.

use flopwatch_model::approximate;

/// `value` to one digit behind the point, the middle between two away from zero: what SQLite's
/// `round(value, 1)` gives, by which nsys rounds averages, medians, deviations and shares.
pub(super) fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// `part` of `whole` in percent, to one digit.
pub(super) fn percent(part: u64, whole: u128) -> f64 {
    tenths(approximate(u128::from(part)) * 100.0 / approximate(whole.max(1)))
}

/// Bytes in megabytes of 10^6, as nsys prints sizes with three digits.
pub(super) fn megabytes(bytes: f64) -> f64 {
    bytes / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_rounded_away_from_zero_and_all_else_to_the_nearest() {
        let cases = [
            (18447.25, 18447.3),
            (1607.35, 1607.4),
            (0.75, 0.8),
            (0.25, 0.3),
            (0.5, 0.5),
            (3.0, 3.0),
            (2.349_999, 2.3),
            (2.350_001, 2.4),
            (1_614_500.038_6, 1_614_500.0),
        ];
        for (value, expected) in cases {
            let rounded = tenths(value);
            assert!((rounded - expected).abs() < 1e-9, "{value}: {rounded}");
        }
    }

    #[test]
    fn shares_of_nothing_are_zero() {
        assert!(percent(0, 0).abs() < 1e-12);
        assert!((percent(1, 3) - 33.3).abs() < 1e-12);
    }
}
