//! Limits of a reader of which one is not the usual one.

use flopwatch_trace::ReadLimits;

/// The usual limits, but for what `change` sets.
pub(crate) fn limited(change: impl FnOnce(&mut ReadLimits)) -> ReadLimits {
    let mut limits = ReadLimits::default();
    change(&mut limits);
    limits
}
