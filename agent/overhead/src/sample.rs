//! One reading of a counter of the target's work.

/// A cumulative counter at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it was read, in ns.
    pub at_ns: u64,
    /// Units of work since the counter began: steps, tokens, requests.
    pub count: u64,
    /// Time that those units took, in ns, where the counter keeps it.
    pub busy_ns: Option<u64>,
    /// When the last of those units ended, in ns of the same clock, where the counter keeps it.
    /// Without it no more is known than that it had ended when the counter was read.
    pub last_ns: Option<u64>,
}

impl Sample {
    /// Whether `self` cannot follow `before` in one life of the counter: it, or its busy time, went
    /// back.
    pub(crate) fn is_reset_after(&self, before: &Self) -> bool {
        self.count < before.count || self.busy_ns < before.busy_ns
    }
}
