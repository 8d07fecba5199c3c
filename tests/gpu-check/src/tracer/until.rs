//! How long something may go on: every wait of a check ends by it.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// When an item's time is over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Until(Instant);

impl Until {
    /// So long from now on.
    pub(super) fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    /// The earlier one of this and so long from now on.
    pub(super) fn or_after(self, time: Duration) -> Self {
        Self(self.0.min(Instant::now() + time))
    }

    /// What is left; none where it is over.
    pub(super) fn left(self) -> Option<Duration> {
        self.0
            .checked_duration_since(Instant::now())
            .filter(|left| !left.is_zero())
    }

    /// Fails where the time is over.
    pub(super) fn check(self, what: &str) -> Result<()> {
        if self.left().is_none() {
            bail!("{what} took too long");
        }
        Ok(())
    }
}

/// A time in whole microseconds.
pub(super) fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
