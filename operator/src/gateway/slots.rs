//! Limits on what is open at once: a number in all, and a number per owner, such as a user.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::gateway::problem::Problem;

/// A counted set of slots; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Slots(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    max: usize,
    max_per_owner: usize,
    counts: Mutex<SlotCounts>,
}

#[derive(Debug, Default)]
struct SlotCounts {
    all: usize,
    each: HashMap<Arc<str>, usize>,
}

/// Why no slot was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// All slots are taken.
    All,
    /// The owner holds as many slots as one owner may.
    Own,
}

impl From<Full> for Problem {
    /// The problem of a client that gets no slot to listen.
    fn from(full: Full) -> Self {
        match full {
            Full::All => Self::Busy,
            Full::Own => Self::BusyCaller,
        }
    }
}

/// The name that slots are counted under: the user's own, or for a service account that of its
/// namespace, since whoever may create one account there can create any number.
fn owner_of(owner: &str) -> &str {
    let account = owner.starts_with("system:serviceaccount:");
    let of_account = owner.rsplit_once(':').filter(|_| account);
    of_account.map_or(owner, |(namespace, _name)| namespace)
}

/// One slot, which is freed when it is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Shared>,
    owner: Arc<str>,
}

impl Slots {
    /// A set of `max` slots, of which no owner holds more than `max_per_owner`.
    pub(crate) fn new(max: usize, max_per_owner: usize) -> Self {
        Self(Arc::new(Shared {
            max,
            max_per_owner,
            counts: Mutex::default(),
        }))
    }

    /// Takes a slot for `owner`, without waiting.
    pub(crate) fn take(&self, owner: &str) -> Result<Slot, Full> {
        let owner: Arc<str> = owner_of(owner).into();
        let mut counts = self.0.counts();
        let own = counts.each.get(&owner).copied().unwrap_or_default();
        if own >= self.0.max_per_owner {
            return Err(Full::Own);
        }
        if counts.all >= self.0.max {
            return Err(Full::All);
        }
        counts.all += 1;
        counts.each.insert(Arc::clone(&owner), own + 1);
        drop(counts);
        Ok(Slot {
            slots: Arc::clone(&self.0),
            owner,
        })
    }

    /// Whether `slot` is one of this set and is held by `owner`.
    pub(crate) fn has(&self, slot: &Slot, owner: &str) -> bool {
        Arc::ptr_eq(&self.0, &slot.slots) && *slot.owner == *owner_of(owner)
    }
}

impl Shared {
    fn counts(&self) -> MutexGuard<'_, SlotCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut counts = self.slots.counts();
        counts.all = counts.all.saturating_sub(1);
        if let Some(own) = counts.each.get_mut(&self.owner) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                counts.each.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_the_places_of_all_and_all_no_more_than_there_are() {
        let slots = Slots::new(3, 2);
        let first = slots.take("alice").unwrap();
        let second = slots.take("alice").unwrap();
        assert_eq!(slots.take("alice").err(), Some(Full::Own));
        let third = slots.take("bob").unwrap();
        assert_eq!(slots.take("bob").err(), Some(Full::All));
        assert!(slots.has(&third, "bob") && !slots.has(&third, "alice"));
        assert!(!Slots::new(3, 2).has(&third, "bob"));
        drop(first);
        let again = slots.take("bob").unwrap();
        assert_eq!(slots.take("alice").err(), Some(Full::All));
        drop((second, third, again));
        let counts = slots.0.counts();
        assert_eq!((counts.all, counts.each.len()), (0, 0));
    }

    #[test]
    fn service_accounts_of_one_namespace_take_the_places_of_one_user() {
        let slots = Slots::new(9, 1);
        let first = slots.take("system:serviceaccount:team:a").unwrap();
        assert_eq!(slots.take("system:serviceaccount:team:b").err(), Some(Full::Own));
        assert!(slots.has(&first, "system:serviceaccount:team:b"));
        let others = [
            "system:serviceaccount:team-b:a",
            "system:serviceaccount:other:a",
            "oidc:team:a",
            "oidc:team:b",
            "fe80::1",
            "fe80::2",
        ];
        let held: Vec<Slot> = others.into_iter().map(|owner| slots.take(owner).unwrap()).collect();
        assert_eq!(held.len(), others.len());
    }
}
