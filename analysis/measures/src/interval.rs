//! Half-open intervals of time in integer nanoseconds, and the algebra of sets of them.
//!
//! Every length that an analysis reports (busy, idle, overlap, exposed time) is the length of a set
//! that comes of these operations, so that parts add up to their whole exactly:
//! `|A ∪ B| = |A| + |B| − |A ∩ B|` and `|A − B| = |A| − |A ∩ B|`.

use flopwatch_model::{Events, Timeline};

/// From `start` up to, and without, `end`. Empty where `end` is not behind `start`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    /// First nanosecond.
    pub start: u64,
    /// The nanosecond behind the last.
    pub end: u64,
}

impl Interval {
    /// From `start` to `end`.
    pub const fn new(start: u64, end: u64) -> Self {
        Self { start, end }
    }

    /// The time of the event at `at`.
    pub fn of(events: &Events, at: usize) -> Self {
        Self::new(events.start_ns.get(at).copied().unwrap_or(0), events.end_ns(at))
    }

    /// From the first event that was read to the end of the last; the whole capture without any. A
    /// profiler that waits for a start or keeps the last seconds alone has a window many times as
    /// long.
    pub fn of_events(timeline: &Timeline) -> Self {
        let events = || timeline.capture.events.values();
        // Sorted by start.
        let start = events().filter_map(|events| events.start_ns.first().copied()).min();
        let end = events().filter_map(Events::last_end_ns).max();
        let whole = Self::new(0, timeline.capture.duration_ns);
        start.zip(end).map_or(whole, |(start, end)| Self::new(start, end))
    }

    /// Length in ns.
    pub const fn len(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether it holds no time.
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Whether some of it is in `window`; of one that is empty, whether `window` or its end is
    /// where it is.
    pub fn happens_in(self, window: Self) -> bool {
        if self.is_empty() {
            window.start <= self.start && self.start <= window.end
        } else {
            !self.intersect(window).is_empty()
        }
    }

    /// What both hold.
    #[must_use]
    pub fn intersect(self, other: Self) -> Self {
        Self::new(self.start.max(other.start), self.end.min(other.end))
    }
}

/// A set of points of time: sorted intervals, none empty, none touching the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Intervals(Vec<Interval>);

impl Intervals {
    /// The union of `all`, which may overlap and be in any order. Intervals that touch become one.
    pub fn union_of(all: impl IntoIterator<Item = Interval>) -> Self {
        let mut all: Vec<Interval> = all.into_iter().filter(|interval| !interval.is_empty()).collect();
        if !all.is_sorted_by_key(|interval| interval.start) {
            all.sort_unstable();
        }
        all.dedup_by(|next, last| {
            let joined = next.start <= last.end;
            if joined {
                last.end = last.end.max(next.end);
            }
            joined
        });
        Self(all)
    }

    /// The intervals, sorted.
    pub fn as_slice(&self) -> &[Interval] {
        &self.0
    }

    /// Total length in ns.
    pub fn len_ns(&self) -> u64 {
        self.0.iter().map(|interval| interval.len()).sum()
    }

    /// Whether it holds no time.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// From the first start to the last end; nothing of an empty set.
    pub fn span(&self) -> Option<Interval> {
        Some(Interval::new(self.0.first()?.start, self.0.last()?.end))
    }

    /// What either holds.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::union_of(merged(&self.0, &other.0))
    }

    /// What both hold.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut both = Vec::new();
        while let (Some(a), Some(b)) = (left.peek().copied(), right.peek().copied()) {
            let common = a.intersect(*b);
            if !common.is_empty() {
                both.push(common);
            }
            if a.end <= b.end {
                left.next()
            } else {
                right.next()
            };
        }
        Self(both)
    }

    /// What this holds and `other` does not.
    #[must_use]
    pub fn subtract(&self, other: &Self) -> Self {
        let mut rest = Vec::new();
        let mut others = other.0.iter().peekable();
        for interval in &self.0 {
            let mut start = interval.start;
            while let Some(hole) = others.peek().copied() {
                if hole.start >= interval.end {
                    break;
                }
                if hole.start > start {
                    rest.push(Interval::new(start, hole.start));
                }
                start = start.max(hole.end);
                if hole.end > interval.end {
                    break;
                }
                others.next();
            }
            if start < interval.end {
                rest.push(Interval::new(start, interval.end));
            }
        }
        Self(rest)
    }

    /// What of it lies within `window`.
    #[must_use]
    pub fn clip(&self, window: Interval) -> Self {
        let from = self.0.partition_point(|interval| interval.end <= window.start);
        let within = self
            .0
            .iter()
            .skip(from)
            .take_while(|interval| interval.start < window.end);
        let parts = within.map(|interval| interval.intersect(window));
        Self(parts.filter(|part| !part.is_empty()).collect())
    }

    /// The parts of `window` that it does not hold.
    #[must_use]
    pub fn gaps(&self, window: Interval) -> Self {
        Self::union_of([window]).subtract(self)
    }
}

impl FromIterator<Interval> for Intervals {
    fn from_iter<I: IntoIterator<Item = Interval>>(all: I) -> Self {
        Self::union_of(all)
    }
}

/// Both lists in the order of starts.
fn merged<'a>(a: &'a [Interval], b: &'a [Interval]) -> impl Iterator<Item = Interval> + 'a {
    let (mut a, mut b) = (a.iter().copied().peekable(), b.iter().copied().peekable());
    std::iter::from_fn(move || match (a.peek(), b.peek()) {
        (Some(left), Some(right)) if right < left => b.next(),
        (None, _) => b.next(),
        _ => a.next(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The set as one flag per nanosecond: slow, and hard to get wrong.
    fn flags(set: &Intervals) -> Vec<bool> {
        let mut flags = vec![false; 256];
        for interval in set.as_slice() {
            for at in interval.start..interval.end {
                flags[usize::try_from(at).unwrap()] = true;
            }
        }
        flags
    }

    fn sets() -> impl Strategy<Value = Intervals> {
        let one = (0_u64..150, 0_u64..40).prop_map(|(start, length)| Interval::new(start, start + length));
        vec(one, 0..20).prop_map(Intervals::union_of)
    }

    fn is_canonical(set: &Intervals) -> bool {
        let list = set.as_slice();
        list.iter().all(|interval| !interval.is_empty()) && list.windows(2).all(|two| two[0].end < two[1].start)
    }

    proptest! {
        #[test]
        fn operations_are_those_on_points(a in sets(), b in sets(), start in 0_u64..150, length in 0_u64..60) {
            let (x, y) = (flags(&a), flags(&b));
            let window = Interval::new(start, start + length);
            let inside = |at: usize| (start..start + length).contains(&u64::try_from(at).unwrap());
            let of = |rule: &dyn Fn(usize) -> bool| (0..256).map(rule).collect::<Vec<bool>>();
            for (set, expected) in [
                (a.union(&b), of(&|at| x[at] || y[at])),
                (a.intersect(&b), of(&|at| x[at] && y[at])),
                (a.subtract(&b), of(&|at| x[at] && !y[at])),
                (a.clip(window), of(&|at| x[at] && inside(at))),
                (a.gaps(window), of(&|at| !x[at] && inside(at))),
            ] {
                prop_assert!(is_canonical(&set), "{set:?}");
                prop_assert_eq!(flags(&set), expected);
            }
        }

        #[test]
        fn lengths_add_up(a in sets(), b in sets()) {
            let both = a.intersect(&b).len_ns();
            prop_assert_eq!(a.union(&b).len_ns(), a.len_ns() + b.len_ns() - both);
            prop_assert_eq!(a.subtract(&b).len_ns(), a.len_ns() - both);
        }
    }

    #[test]
    fn intervals_that_touch_become_one() {
        let set = Intervals::union_of([Interval::new(5, 9), Interval::new(0, 5), Interval::new(9, 9)]);
        assert_eq!(set.as_slice(), [Interval::new(0, 9)]);
        assert_eq!(set.span(), Some(Interval::new(0, 9)));
    }
}
