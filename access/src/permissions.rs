//! Remembers for a moment who may read what.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::review::Grant;

/// Permissions that were given, under a hash of token and grant. Refusals are never remembered: a right that was just
/// granted works at once.
#[derive(Debug)]
pub(crate) struct Permissions {
    until: Mutex<HashMap<[u8; 32], Instant>>,
    lifetime: Duration,
    capacity: usize,
}

impl Permissions {
    pub(crate) fn new(lifetime: Duration, capacity: usize) -> Self {
        Self {
            until: Mutex::default(),
            lifetime,
            capacity,
        }
    }

    pub(crate) fn holds(&self, token: &str, grant: &Grant<'_>, now: Instant) -> bool {
        let until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.get(&key(token, grant)).is_some_and(|until| now < *until)
    }

    pub(crate) fn remember(&self, token: &str, grant: &Grant<'_>, now: Instant) {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        if until.len() >= self.capacity {
            until.retain(|_, until| now < *until);
        }
        // Full of live ones: the next request asks again, which is slower and still right.
        if until.len() < self.capacity {
            until.insert(key(token, grant), now + self.lifetime);
        }
    }
}

/// Fields are preceded by their lengths, so that no two grants have the same text.
fn key(token: &str, grant: &Grant<'_>) -> [u8; 32] {
    let mut sha256 = Sha256::new();
    for field in [
        token,
        grant.namespace,
        grant.session.unwrap_or_default(),
        grant.resource(),
        grant.verb.as_str(),
    ] {
        sha256.update(u64::try_from(field.len()).unwrap_or(u64::MAX).to_le_bytes());
        sha256.update(field);
    }
    sha256.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::Verb;

    const SESSION: Grant<'_> = Grant {
        verb: Verb::Get,
        namespace: "team",
        session: Some("train"),
        raw: false,
    };

    #[test]
    fn a_permission_ends_with_its_lifetime() {
        let permissions = Permissions::new(Duration::from_secs(10), 4);
        let now = Instant::now();
        permissions.remember("token", &SESSION, now);
        assert!(permissions.holds("token", &SESSION, now + Duration::from_secs(9)));
        assert!(!permissions.holds("token", &SESSION, now + Duration::from_secs(10)));
    }

    #[test]
    fn a_permission_is_for_one_token_and_one_grant() {
        let permissions = Permissions::new(Duration::from_secs(10), 4);
        let now = Instant::now();
        permissions.remember("token", &SESSION, now);
        assert!(!permissions.holds(
            "tokent",
            &Grant {
                namespace: "eam",
                ..SESSION
            },
            now
        ));
        assert!(!permissions.holds("other", &SESSION, now));
        assert!(!permissions.holds("token", &Grant { raw: true, ..SESSION }, now));
        let list = Verb::List;
        assert!(!permissions.holds("token", &Grant { verb: list, ..SESSION }, now));
        assert!(!permissions.holds(
            "token",
            &Grant {
                session: None,
                ..SESSION
            },
            now
        ));
    }

    #[test]
    fn a_full_memory_stays_within_its_capacity() {
        let permissions = Permissions::new(Duration::from_secs(10), 2);
        let now = Instant::now();
        for token in ["a", "b", "c"] {
            permissions.remember(token, &SESSION, now);
        }
        assert!(!permissions.holds("c", &SESSION, now));
        let later = now + Duration::from_secs(11);
        permissions.remember("c", &SESSION, later);
        assert!(permissions.holds("c", &SESSION, later));
    }
}
