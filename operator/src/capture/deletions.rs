//! Since when captures have been seen being deleted.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;

/// Most captures that are remembered; beyond it all begin anew, which only lets them wait longer.
const MAX_REMEMBERED: usize = 100_000;

/// When this process first saw each capture being deleted, by its own clock and own eyes: the API server's clock, which dates
/// the deletion, may be another.
#[derive(Debug, Default)]
pub struct Deletions(HashMap<String, Timestamp>);

impl Deletions {
    /// Notes that the capture of that UID is being deleted now and answers for how long it has been.
    pub fn observe(&mut self, uid: &str, now: Timestamp) -> Duration {
        if let Some(first) = self.0.get(uid) {
            return Duration::try_from(now.duration_since(*first)).unwrap_or_default();
        }
        if self.0.len() >= MAX_REMEMBERED {
            self.0.clear();
        }
        self.0.insert(uid.to_owned(), now);
        Duration::ZERO
    }

    /// Forgets a capture that needs nothing more.
    pub fn forget(&mut self, uid: &str) {
        self.0.remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m6_a_deletion_is_timed_from_when_it_was_first_seen_until_it_is_forgotten() {
        let mut deletions = Deletions::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(deletions.observe("a", at(100)).as_secs(), 0);
        assert_eq!(deletions.observe("a", at(160)).as_secs(), 60);
        assert_eq!(deletions.observe("b", at(160)).as_secs(), 0);
        assert_eq!(deletions.observe("a", at(90)).as_secs(), 0, "a clock that was set back");
        deletions.forget("a");
        assert_eq!(deletions.observe("a", at(200)).as_secs(), 0);
    }
}
