//! Places for those who stay: so many in all, and so many for each of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::gateway::problem::Problem;

/// The places, shared by clones.
#[derive(Clone, Debug)]
pub(crate) struct Places(Arc<Shared>);

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

/// A place; it is given free when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Shared>,
    whose: Arc<str>,
}

impl Places {
    /// `most` places, of which nobody has more than `most_each`.
    pub(crate) fn new(most: usize, most_each: usize) -> Self {
        Self(Arc::new(Shared {
            most,
            most_each,
            taken: Mutex::default(),
        }))
    }

    /// A place for whoever it is, if there is one for them.
    pub(crate) fn take(&self, whose: &Arc<str>) -> Result<Place, Problem> {
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
        Ok(Place {
            places: Arc::clone(&self.0),
            whose: Arc::clone(whose),
        })
    }

    /// Whether it is one of these places, and theirs.
    pub(crate) fn has(&self, place: &Place, whose: &str) -> bool {
        Arc::ptr_eq(&self.0, &place.places) && *place.whose == *whose
    }
}

impl Shared {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
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
        let places = Places::new(3, 2);
        let [alice, bob] = ["alice", "bob"].map(Arc::<str>::from);
        let first = places.take(&alice).unwrap();
        let second = places.take(&alice).unwrap();
        assert!(matches!(places.take(&alice), Err(Problem::BusyCaller)));
        let third = places.take(&bob).unwrap();
        assert!(matches!(places.take(&bob), Err(Problem::Busy)));
        assert!(places.has(&third, "bob") && !places.has(&third, "alice"));
        assert!(!Places::new(3, 2).has(&third, "bob"));
        drop(first);
        let again = places.take(&bob).unwrap();
        assert!(matches!(places.take(&alice), Err(Problem::Busy)));
        drop((second, third, again));
        let taken = places.0.taken();
        assert_eq!((taken.all, taken.each.len()), (0, 0));
    }
}
