//! Conversions that the standard library has no trait for.

/// Basis points of the whole.
pub(crate) const BASIS_POINTS_OF_ALL: f64 = 10_000.0;
/// The least rate, as a part of the baseline's median: a bin that stood still has no logarithm.
const STILL: f64 = 1e-3;

/// The nearest float.
#[allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "there is no From for it; rounding to the nearest is what is wanted"
)]
pub(crate) const fn float(value: u64) -> f64 {
    value as f64
}

/// The nearest float.
#[allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "there is no From for it; counts of bins are far below 2^53"
)]
pub(crate) const fn count(value: usize) -> f64 {
    value as f64
}

/// The whole number that a float holds; saturates, and NaN becomes 0.
#[allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "there is no TryFrom for it; the cast saturates"
)]
pub(crate) const fn whole(value: f64) -> i64 {
    value as i64
}

/// The index that a float holds, rounded down; saturates, and NaN becomes 0.
#[allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "there is no TryFrom for it; the cast saturates"
)]
pub(crate) const fn index(value: f64) -> usize {
    value as usize
}

/// The slowdown, in basis points, of rates whose logarithm moved by `shift`; not rounded.
pub(crate) fn slowdown(shift: f64) -> f64 {
    (-shift).exp_m1() * BASIS_POINTS_OF_ALL
}

/// The size of the move of log-rates that a slowdown of this many basis points makes.
pub(crate) fn log_of(basis_points: f64) -> f64 {
    (basis_points / BASIS_POINTS_OF_ALL).ln_1p()
}

/// The logarithm of a rate, with a floor at a thousandth of `usual`, so that a standstill is a
/// slowdown of a thousand times.
pub(crate) fn log_rate(rate: f64, usual: f64) -> f64 {
    rate.max(usual * STILL).ln()
}

/// The median; the mean of the middle two of an even number.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(lower) if even => Some(f64::midpoint(lower, upper)),
        _ => Some(upper),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_or_between_the_middle_two() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [3.0]), Some(3.0));
        assert_eq!(median(&mut [4.0, 1.0]), Some(2.5));
        assert_eq!(median(&mut [5.0, 1.0, 9.0]), Some(5.0));
    }

    #[test]
    fn a_rate_that_falls_to_five_sixths_is_a_slowdown_of_a_fifth() {
        assert!((slowdown((5.0_f64 / 6.0).ln()) - 2000.0).abs() < 1e-9);
        assert!((log_of(2000.0) - 1.2_f64.ln()).abs() < 1e-15);
    }

    #[test]
    fn a_standstill_is_a_slowdown_of_a_thousand_times() {
        let shift = log_rate(0.0, 50.0) - log_rate(50.0, 50.0);
        assert!((slowdown(shift) - 9_990_000.0).abs() < 1e-3);
    }
}
