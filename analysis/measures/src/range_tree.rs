//! Which NVTX range is inside which, as `nsys stats` nests them.

use flopwatch_model::{EventId, EventLinks, Events};

/// The tree of the ranges of all threads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeTree {
    parent: EventLinks,
    level: Vec<u32>,
}

impl RangeTree {
    /// The tree of those of `ranges` that `nests` picks; the others have no parent and are none.
    /// Ranges must be in the order of a [`Timeline`](flopwatch_model::Timeline).
    ///
    /// The parent of a range is the shortest range of its row that encloses it. Both ends count: a
    /// range may begin and end with its parent. Of two with the same times the later one is inside;
    /// nsys takes each for the parent of the other and loses both with all that is in them.
    pub fn of(ranges: &Events, nests: impl Fn(usize) -> bool) -> Self {
        let rows = ranges.rows_end();
        let mut open: Vec<OpenRanges> = Vec::new();
        open.resize_with(rows, OpenRanges::default);
        let mut tree = Self {
            parent: EventLinks::none(ranges.len()),
            level: vec![0; ranges.len()],
        };
        for (range, (row, start)) in EventId::all().zip(ranges.row.iter().zip(&ranges.start_ns)) {
            let Some(open) = open.get_mut(row.index()).filter(|_| nests(range.index())) else {
                continue;
            };
            open.drop_ended(*start, ranges);
            let length = |range: EventId| ranges.duration_ns.get(range.index()).copied();
            // Of equally short ones the last, as `max_by_key` gives it.
            let enclosing = open.until(ranges.end_ns(range.index()), ranges);
            let parent = enclosing.max_by_key(|outer| std::cmp::Reverse(length(*outer)));
            if let Some(parent) = parent {
                let level = tree.level(parent.index()).saturating_add(1);
                tree.parent.set(range.index(), parent);
                if let Some(slot) = tree.level.get_mut(range.index()) {
                    *slot = level;
                }
            }
            open.begin(range, *start, ranges);
        }
        tree
    }

    /// The range around the one at `at`; `None` of an outermost one.
    pub fn parent(&self, at: usize) -> Option<EventId> {
        self.parent.get(at)
    }

    /// How many ranges are around the one at `at`.
    pub fn level(&self, at: usize) -> u32 {
        self.level.get(at).copied().unwrap_or(0)
    }

    /// A range and those around it, the outermost first; at most the `max` innermost ones.
    pub fn stack(&self, range: EventId, max: usize) -> Vec<EventId> {
        let up = std::iter::successors(Some(range), |range| self.parent(range.index()));
        let mut stack: Vec<EventId> = up.take(max).collect();
        stack.reverse();
        stack
    }
}

/// The events that `known` picks and that hold no other such event of their row.
pub fn innermost(events: &Events, known: impl Fn(usize) -> bool) -> Vec<usize> {
    let tree = RangeTree::of(events, &known);
    let mut is_inner: Vec<bool> = (0..events.len()).map(&known).collect();
    for at in 0..events.len() {
        if let Some(parent) = tree.parent(at)
            && let Some(parent) = is_inner.get_mut(parent.index())
        {
            *parent = false;
        }
    }
    let inner = is_inner.iter().enumerate().filter(|(_, inner)| **inner);
    inner.map(|(at, _)| at).collect()
}

/// Ranges of a thread that began and may not have ended, in the order of their starts.
#[derive(Debug, Default)]
pub(crate) struct OpenRanges {
    ranges: Vec<EventId>,
    /// How many there were when the ended ones were last taken out of the middle.
    kept: usize,
}

impl OpenRanges {
    /// Adds a range that begins at `began`.
    pub(crate) fn begin(&mut self, range: EventId, began: u64, ranges: &Events) {
        self.drop_ended(began, ranges);
        self.ranges.push(range);
    }

    /// Those that last up to `end` or longer.
    pub(crate) fn until(&self, end: u64, ranges: &Events) -> impl Iterator<Item = EventId> {
        let open = self.ranges.iter().copied();
        open.filter(move |range| ranges.end_ns(range.index()) >= end)
    }

    /// Nested ranges end in the reverse order, so that those that ended are the last ones. Others
    /// stay below until there are twice as many.
    pub(crate) fn drop_ended(&mut self, now: u64, ranges: &Events) {
        let ended = |range: EventId| ranges.end_ns(range.index()) < now;
        while self.ranges.pop_if(|range| ended(*range)).is_some() {}
        if self.ranges.len() > self.kept.saturating_mul(2).saturating_add(16) {
            self.ranges.retain(|range| !ended(*range));
            self.kept = self.ranges.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_model::{Category, Event, RowId};

    use super::*;

    fn parents(tree: &RangeTree) -> Vec<Option<u32>> {
        let parents = (0..tree.level.len()).map(|at| tree.parent(at));
        parents.map(|parent| parent.map(EventId::number)).collect()
    }

    fn stack(tree: &RangeTree, max: usize) -> Vec<u32> {
        EventId::into_numbers(tree.stack(EventId::new(2), max))
    }

    fn ranges(spans: &[(u64, u64, u32)]) -> Events {
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

    #[test]
    fn a_range_is_inside_the_shortest_one_around_it() {
        // The second crosses the first; the third is in both, and the first is the shorter one.
        let tree = RangeTree::of(
            &ranges(&[(0, 10, 0), (1, 29, 0), (2, 1, 0), (12, 1, 0), (2, 1, 1)]),
            |_| true,
        );
        assert_eq!(parents(&tree), [None, None, Some(0), Some(1), None]);
        assert_eq!(
            (tree.level(2), stack(&tree, 10), stack(&tree, 1)),
            (1, vec![0, 2], vec![2])
        );
    }

    #[test]
    fn of_ranges_with_the_same_times_the_later_one_is_inside() {
        let tree = RangeTree::of(&ranges(&[(0, 10, 0), (0, 10, 0), (10, 0, 0), (11, 2, 0)]), |_| true);
        assert_eq!(parents(&tree), [None, Some(0), Some(1), None]);
        assert_eq!(stack(&tree, 10), [0, 1, 2]);
    }

    #[test]
    fn ranges_that_do_not_nest_are_no_parents() {
        let tree = RangeTree::of(&ranges(&[(0, 100, 0), (10, 80, 0), (20, 5, 0)]), |at| at != 1);
        assert_eq!(parents(&tree), [None, None, Some(0)]);
    }
}
