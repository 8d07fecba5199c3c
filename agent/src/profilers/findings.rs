//! What profilers find of a container for themselves, which no other part of the agent knows.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// At most one value of each type: a profiler keeps what it finds in a type of its own.
#[derive(Clone, Debug, Default)]
pub struct Findings(BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Findings {
    /// Keeps a value, in the place of an earlier one of its type.
    pub fn keep<T: Any + Send + Sync>(&mut self, found: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(found));
    }

    /// The value of a type; none where nobody kept one.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_profiler_finds_its_own_again() {
        let mut found = Findings::default();
        assert_eq!(found.get::<Vec<u16>>(), None);
        found.keep(vec![7_u16]);
        found.keep("/dumps".to_owned());
        let again = found.clone();
        assert_eq!(again.get::<Vec<u16>>(), Some(&vec![7]));
        assert_eq!(again.get::<String>().map(String::as_str), Some("/dumps"));
    }
}
