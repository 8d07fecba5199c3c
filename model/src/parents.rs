//! Which event runs inside which: ranges of a thread nest, as do operators and functions.

use super::{EventId, EventLinks, Events};

impl Events {
    /// For each event the innermost one of its row that encloses it. Of two with the same times
    /// the later one is inside. Only events that `nests` picks have and are parents: NVTX ranges
    /// of push/pop style nest, those of start/end style need not. Events must be in the order of a
    /// [`Timeline`](super::Timeline).
    pub fn parents(&self, nests: impl Fn(usize) -> bool) -> EventLinks {
        let rows = self.rows_end();
        // Per row the events that have not ended, the innermost last.
        let mut running: Vec<Vec<EventId>> = vec![Vec::new(); rows];
        let mut parents = EventLinks::none(self.len());
        let slots = parents.slots().iter_mut().zip(&self.start_ns);
        for ((event, row), (parent, start)) in EventId::all().zip(&self.row).zip(slots) {
            let Some(running) = running.get_mut(row.index()).filter(|_| nests(event.index())) else {
                continue;
            };
            while running.pop_if(|last| self.end_ns(last.index()) <= *start).is_some() {}
            let end = self.end_ns(event.index());
            let around = running.iter().rev().find(|outer| self.end_ns(outer.index()) >= end);
            if let Some(outer) = around {
                *parent = *outer;
            }
            running.push(event);
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

    fn parents(events: &Events, nests: impl Fn(usize) -> bool) -> Vec<Option<u32>> {
        let parents = events.parents(nests);
        parents.iter().map(|parent| parent.map(EventId::number)).collect()
    }

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
        let expected = [None, Some(0), Some(1), None, Some(0), Some(0), None];
        assert_eq!(parents(&nested, |_| true), expected);
    }

    #[test]
    fn a_range_that_ends_behind_another_is_not_inside_it() {
        let crossing = events(&[(0, 100, 0), (10, 20, 0), (20, 30, 0), (25, 2, 0)]);
        assert_eq!(parents(&crossing, |_| true), [None, Some(0), Some(0), Some(2)]);
    }

    #[test]
    fn ranges_that_do_not_nest_are_left_out() {
        let mixed = events(&[(0, 100, 0), (10, 80, 0), (20, 5, 0)]);
        assert_eq!(parents(&mixed, |at| at != 1), [None, None, Some(0)]);
    }
}
