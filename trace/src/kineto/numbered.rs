//! Things that many events name, each with a number.

use std::hash::Hash;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

/// Things that are alike for many events, each with a number in the order in which they were first
/// seen.
#[derive(Debug)]
pub(super) struct Numbered<T> {
    pub(super) list: Vec<T>,
    known: HashMap<T, u32>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            known: HashMap::new(),
        }
    }
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    /// The number of a thing.
    pub(super) fn number(&mut self, thing: T) -> u32 {
        self.take(thing).0
    }

    /// The number of a thing, and whether it is new.
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

    /// The number of a thing that has one.
    pub(super) fn get(&self, thing: &T) -> Option<u32> {
        self.known.get(thing).copied()
    }
}
