//! Since when captures have been seen being deleted.

use std::time::Duration;

use jiff::Timestamp;
use moka::sync::Cache;

use crate::lru::lru;

/// Most captures that are remembered. Beyond it the oldest begin anew, and wait longer.
const MAX_CAPTURES_TRACKED: u64 = 100_000;

/// When this process first saw each capture being deleted, by its own clock and own eyes: the API
/// server's clock, which dates the deletion, may be another.
#[derive(Debug)]
pub struct Deletions(Cache<String, Timestamp>);

impl Default for Deletions {
    fn default() -> Self {
        Self(lru(MAX_CAPTURES_TRACKED).build())
    }
}

impl Deletions {
    /// Notes that the capture of that UID is being deleted now and answers for how long it has
    /// been.
    pub fn observe(&self, uid: &str, now: Timestamp) -> Duration {
        let first = self.0.get_with_by_ref(uid, || now);
        // Nothing where the clock was set back.
        Duration::try_from(now.duration_since(first)).unwrap_or_default()
    }

    /// Forgets a capture that needs nothing more.
    pub fn forget(&self, uid: &str) {
        self.0.invalidate(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deletion_is_timed_from_when_it_was_first_seen_until_it_is_forgotten() {
        let deletions = Deletions::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(deletions.observe("a", at(100)).as_secs(), 0);
        assert_eq!(deletions.observe("a", at(160)).as_secs(), 60);
        assert_eq!(deletions.observe("b", at(160)).as_secs(), 0);
        assert_eq!(deletions.observe("a", at(90)).as_secs(), 0, "a clock that was set back");
        deletions.forget("a");
        assert_eq!(deletions.observe("a", at(200)).as_secs(), 0);
    }
}
