//! Shares.

/// A share; 0 of nothing.
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    flopwatch_model::ratio(part, whole).unwrap_or(0.0)
}
