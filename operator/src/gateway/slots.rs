//! Limits on what is open at once: a number in all, and a number per user.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::gateway::problem::Problem;

/// The slots, shared by clones.
#[derive(Clone, Debug)]
pub(crate) struct Slots(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    most: usize,
    most_each: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    each: HashMap<Arc<str>, usize>,
}

/// Why there is no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// All are taken.
    All,
    /// All that whoever asks may have are taken, by them.
    Own,
}

impl From<Full> for Problem {
    /// Of places for clients that listen.
    fn from(full: Full) -> Self {
        match full {
            Full::All => Self::Busy,
            Full::Own => Self::BusyCaller,
        }
    }
}

/// Whose places somebody takes: their own, and of a service account those of its namespace. Whoever
/// may make one there can make any number.
fn holder(whose: &str) -> &str {
    let account = whose.starts_with("system:serviceaccount:");
    let of_account = whose.rsplit_once(':').filter(|_| account);
    of_account.map_or(whose, |(namespace, _name)| namespace)
}

/// A slot; it is given free when it is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Shared>,
    whose: Arc<str>,
}

impl Slots {
    /// `most` slots, of which nobody has more than `most_each`.
    pub(crate) fn new(most: usize, most_each: usize) -> Self {
        Self(Arc::new(Shared {
            most,
            most_each,
            taken: Mutex::default(),
        }))
    }

    /// A slot for whoever it is, if there is one for them.
    pub(crate) fn take(&self, whose: &str) -> Result<Slot, Full> {
        let whose: Arc<str> = holder(whose).into();
        let mut taken = self.0.taken();
        let own = taken.each.get(&whose).copied().unwrap_or_default();
        if own >= self.0.most_each {
            return Err(Full::Own);
        }
        if taken.all >= self.0.most {
            return Err(Full::All);
        }
        taken.all += 1;
        taken.each.insert(Arc::clone(&whose), own + 1);
        drop(taken);
        Ok(Slot {
            slots: Arc::clone(&self.0),
            whose,
        })
    }

    /// Whether it is one of these slots, and theirs.
    pub(crate) fn has(&self, slot: &Slot, whose: &str) -> bool {
        Arc::ptr_eq(&self.0, &slot.slots) && *slot.whose == *holder(whose)
    }
}

impl Shared {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken();
        taken.all = taken.all.saturating_sub(1);
        if let Some(own) = taken.each.get_mut(&self.whose) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                taken.each.remove(&self.whose);
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
        let taken = slots.0.taken();
        assert_eq!((taken.all, taken.each.len()), (0, 0));
    }

    #[test]
    fn n9_service_accounts_of_one_namespace_take_the_places_of_one_user() {
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
        let taken: Vec<Slot> = others.into_iter().map(|whose| slots.take(whose).unwrap()).collect();
        assert_eq!(taken.len(), others.len());
    }
}
