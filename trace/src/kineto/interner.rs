//! Interning of values that many events repeat: each distinct value gets a number.

use std::hash::Hash;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

/// Distinct values, numbered from 0 in the order in which they were first seen.
#[derive(Debug)]
pub(super) struct Interner<T> {
    pub(super) list: Vec<T>,
    known: HashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            known: HashMap::new(),
        }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    /// The number of a value, which is new where the value is.
    pub(super) fn number(&mut self, thing: T) -> u32 {
        self.take(thing).0
    }

    /// The number of a value, and whether the value is new.
    pub(super) fn take(&mut self, thing: T) -> (u32, bool) {
        let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        match self.known.entry(thing) {
            Entry::Occupied(known) => (*known.get(), false),
            Entry::Vacant(new) => {
                self.list.push(new.key().clone());
                new.insert(next);
                (next, true)
            }
        }
    }

    /// The number of a value; `None` where the value was not seen.
    pub(super) fn get(&self, thing: &T) -> Option<u32> {
        self.known.get(thing).copied()
    }
}
