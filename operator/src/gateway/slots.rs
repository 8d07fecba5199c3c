//! Limits on long-lived connections: a number in all, and a number per user.

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
    pub(crate) fn take(&self, whose: &Arc<str>) -> Result<Slot, Problem> {
        let mut taken = self.0.taken();
        let own = taken.each.get(whose).copied().unwrap_or_default();
        if own >= self.0.most_each {
            return Err(Problem::BusyCaller);
        }
        if taken.all >= self.0.most {
            return Err(Problem::Busy);
        }
        taken.all += 1;
        taken.each.insert(Arc::clone(whose), own + 1);
        drop(taken);
        Ok(Slot {
            slots: Arc::clone(&self.0),
            whose: Arc::clone(whose),
        })
    }

    /// Whether it is one of these slots, and theirs.
    pub(crate) fn has(&self, slot: &Slot, whose: &str) -> bool {
        Arc::ptr_eq(&self.0, &slot.slots) && *slot.whose == *whose
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
        let [alice, bob] = ["alice", "bob"].map(Arc::<str>::from);
        let first = slots.take(&alice).unwrap();
        let second = slots.take(&alice).unwrap();
        assert!(matches!(slots.take(&alice), Err(Problem::BusyCaller)));
        let third = slots.take(&bob).unwrap();
        assert!(matches!(slots.take(&bob), Err(Problem::Busy)));
        assert!(slots.has(&third, "bob") && !slots.has(&third, "alice"));
        assert!(!Slots::new(3, 2).has(&third, "bob"));
        drop(first);
        let again = slots.take(&bob).unwrap();
        assert!(matches!(slots.take(&alice), Err(Problem::Busy)));
        drop((second, third, again));
        let taken = slots.0.taken();
        assert_eq!((taken.all, taken.each.len()), (0, 0));
    }
}
