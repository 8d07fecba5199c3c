//! Remembers for a moment what the Kubernetes API said.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::review::Question;

/// What an answer is remembered under: a hash, so that no token is kept.
pub(crate) type Key = [u8; 32];

/// Answers with a lifetime, so many at most.
#[derive(Debug)]
pub(crate) struct Memory<V> {
    kept: Mutex<HashMap<Key, (V, Instant)>>,
    lifetime: Duration,
    capacity: usize,
}

impl<V: Clone> Memory<V> {
    pub(crate) fn new(lifetime: Duration, capacity: usize) -> Self {
        Self {
            kept: Mutex::default(),
            lifetime,
            capacity,
        }
    }

    pub(crate) fn get(&self, key: &Key, now: Instant) -> Option<V> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (value, until) = kept.get(key)?;
        (now < *until).then(|| value.clone())
    }

    pub(crate) fn put(&self, key: Key, value: V, now: Instant) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= self.capacity {
            kept.retain(|_, (_, until)| now < *until);
        }
        // Full of live ones: the next request asks again, which is slower and still right.
        if kept.len() < self.capacity {
            kept.insert(key, (value, now + self.lifetime));
        }
    }
}

/// Of a question about the bearer of a token. Fields are preceded by their lengths, so that no two
/// questions have the same text.
pub(crate) fn key(token: &str, question: &Question<'_>) -> Key {
    let mut sha256 = Sha256::new();
    let mut add = |field: &str| {
        sha256.update(u64::try_from(field.len()).unwrap_or(u64::MAX).to_le_bytes());
        sha256.update(field);
    };
    add(token);
    match question {
        Question::Who => add("who"),
        Question::Path(verb, path) => ["path", verb, path].into_iter().for_each(add),
        Question::Alerts(namespace) => ["alerts", namespace].into_iter().for_each(add),
        Question::Session(grant) => [
            "session",
            grant.namespace,
            grant.session.unwrap_or_default(),
            grant.resource(),
            grant.verb.as_str(),
        ]
        .into_iter()
        .for_each(add),
    }
    sha256.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grant::{Grant, Verb};

    const SESSION: Grant<'_> = Grant {
        verb: Verb::Get,
        namespace: "team",
        session: Some("train"),
        raw: false,
    };

    fn of(token: &str) -> Key {
        key(token, &Question::Session(&SESSION))
    }

    #[test]
    fn an_answer_ends_with_its_lifetime() {
        let memory = Memory::new(Duration::from_secs(10), 4);
        let now = Instant::now();
        memory.put(of("token"), 7, now);
        assert_eq!(memory.get(&of("token"), now + Duration::from_secs(9)), Some(7));
        assert_eq!(memory.get(&of("token"), now + Duration::from_secs(10)), None);
    }

    #[test]
    fn an_answer_is_for_one_token_and_one_question() {
        let list = Verb::List;
        let others = [
            key(
                "tokent",
                &Question::Session(&Grant {
                    namespace: "eam",
                    ..SESSION
                }),
            ),
            of("other"),
            key("token", &Question::Session(&Grant { raw: true, ..SESSION })),
            key("token", &Question::Session(&Grant { verb: list, ..SESSION })),
            key(
                "token",
                &Question::Session(&Grant {
                    session: None,
                    ..SESSION
                }),
            ),
            key("token", &Question::Who),
            key("token", &Question::Alerts("team")),
            key("token", &Question::Path("get", "/metrics")),
            key("token", &Question::Path("get", "/metric")),
            key("token", &Question::Path("put", "/metrics")),
        ];
        for (at, other) in others.iter().enumerate() {
            assert_ne!(*other, of("token"), "{at}");
        }
        assert_ne!(others[7], others[8]);
        assert_ne!(others[7], others[9]);
        assert_ne!(others[6], key("token", &Question::Alerts("")));
    }

    #[test]
    fn a_full_memory_stays_within_its_capacity() {
        let memory = Memory::new(Duration::from_secs(10), 2);
        let now = Instant::now();
        for token in ["a", "b", "c"] {
            memory.put(of(token), (), now);
        }
        assert_eq!(memory.get(&of("c"), now), None);
        let later = now + Duration::from_secs(11);
        memory.put(of("c"), (), later);
        assert_eq!(memory.get(&of("c"), later), Some(()));
    }
}
