//! Middles and shares.

/// The lower of the two middles of an even number.
pub(super) fn median(values: &mut [u64]) -> Option<u64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}

/// A share; 0 of nothing.
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    flopwatch_model::ratio(part, whole).unwrap_or(0.0)
}
