//! Which event runs inside which: ranges of a thread nest, as do operators and functions.

use super::{Events, index};

impl Events {
    /// Stands for an event that no other encloses, in [`Events::parents`].
    pub const NO_PARENT: u32 = u32::MAX;

    /// For each event the innermost one of its row that encloses it, or [`Events::NO_PARENT`]. Of
    /// two with the same times the later one is inside. Only events that `nests` picks have and are
    /// parents: NVTX ranges of push/pop style nest, those of start/end style need not. Events must
    /// be in the order of a [`Timeline`](super::Timeline).
    pub fn parents(&self, nests: impl Fn(usize) -> bool) -> Vec<u32> {
        let rows = self.rows_end();
        // Per row the events that have not ended, the innermost last.
        let mut running: Vec<Vec<u32>> = vec![Vec::new(); rows];
        let mut parents = vec![Self::NO_PARENT; self.len()];
        for ((at, row), (parent, start)) in (0_u32..).zip(&self.row).zip(parents.iter_mut().zip(&self.start_ns)) {
            let Some(running) = running.get_mut(row.index()).filter(|_| nests(index(at))) else {
                continue;
            };
            while running.pop_if(|last| self.end_ns(index(*last)) <= *start).is_some() {}
            let end = self.end_ns(index(at));
            let around = running.iter().rev().find(|outer| self.end_ns(index(**outer)) >= end);
            if let Some(outer) = around {
                *parent = *outer;
            }
            running.push(at);
        }
        parents
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Category, Event, RowId};

    fn events(spans: &[(u64, u64, u32)]) -> Events {
        let mut events = Events::new(Category::NvtxRange);
        for (start_ns, duration_ns, row) in spans.iter().copied() {
            let event = Event {
                start_ns,
                duration_ns,
                row: RowId::new(row),
                ..Event::default()
            };
            events.push(event, &[]);
        }
        events
    }

    const NONE: u32 = Events::NO_PARENT;

    #[test]
    fn the_innermost_range_around_another_is_its_parent() {
        let nested = events(&[
            (0, 100, 0),
            (0, 40, 0),
            (10, 20, 0),
            (10, 5, 1),
            (40, 10, 0),
            (50, 50, 0),
            (100, 5, 0),
        ]);
        assert_eq!(nested.parents(|_| true), [NONE, 0, 1, NONE, 0, 0, NONE]);
    }

    #[test]
    fn a_range_that_ends_behind_another_is_not_inside_it() {
        let crossing = events(&[(0, 100, 0), (10, 20, 0), (20, 30, 0), (25, 2, 0)]);
        assert_eq!(crossing.parents(|_| true), [NONE, 0, 0, 2]);
    }

    #[test]
    fn ranges_that_do_not_nest_are_left_out() {
        let mixed = events(&[(0, 100, 0), (10, 80, 0), (20, 5, 0)]);
        assert_eq!(mixed.parents(|at| at != 1), [NONE, NONE, 0]);
    }
}
