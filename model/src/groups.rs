//! A stable sort of many items into few groups, over every core.

use std::ops::Range;

use rayon::prelude::*;

/// Fewer items are counted by one core.
const MIN_PARALLEL_ITEMS: usize = 1 << 16;

/// Items that were counted by their group.
#[derive(Debug)]
pub struct Groups<'a, K, F> {
    items: &'a [K],
    group: F,
    /// Items that a core takes at a time.
    piece: usize,
    /// How many items of a piece are in each group.
    counts: Vec<Vec<usize>>,
}

impl<'a, K: Sync, F: Fn(&K) -> usize + Sync> Groups<'a, K, F> {
    /// Counts the items by `group`, a number below `groups`. Items of a higher one are left out of
    /// everything.
    pub fn count(items: &'a [K], groups: usize, group: F) -> Self {
        // Each piece has a count and a place for each group.
        let piece = items
            .len()
            .div_ceil(rayon::current_num_threads())
            .max(MIN_PARALLEL_ITEMS)
            .max(groups);
        let of_piece = |items: &[K]| {
            let mut counts = vec![0; groups];
            for item in items {
                if let Some(count) = counts.get_mut(group(item)) {
                    *count += 1;
                }
            }
            counts
        };
        let mut counts: Vec<Vec<usize>> = items.par_chunks(piece).map(of_piece).collect();
        if counts.is_empty() {
            counts.push(vec![0; groups]);
        }
        Self {
            items,
            group,
            piece,
            counts,
        }
    }

    /// Where each group lies in what [`Self::scatter`] gives.
    pub fn ranges(&self) -> Vec<Range<usize>> {
        let groups = self.counts.first().map_or(0, Vec::len);
        let mut next = 0;
        let range = |at| {
            let first = next;
            next += self.of_group(at).sum::<usize>();
            first..next
        };
        (0..groups).map(range).collect()
    }

    /// A value of each item, made of its position and itself: group by group, and within a group in
    /// the order of the items.
    pub fn scatter<V: Copy + Default + Send>(&self, value: impl Fn(usize, &K) -> V + Sync) -> Vec<V> {
        let mut values = vec![V::default(); self.counts.iter().flatten().sum()];
        self.scatter_into(&mut values, value);
        values
    }

    /// The same in memory that is there; what has no room is left out.
    pub fn scatter_into<V: Send>(&self, values: &mut [V], value: impl Fn(usize, &K) -> V + Sync) {
        let groups = self.counts.first().map_or(0, Vec::len);
        let mut rest = values;
        let mut slots: Vec<Vec<std::slice::IterMut<'_, V>>> = self.counts.iter().map(|_| Vec::new()).collect();
        for at in 0..groups {
            for (slots, count) in slots.iter_mut().zip(self.of_group(at)) {
                let count = count.min(rest.len());
                slots.push(rest.split_off_mut(..count).unwrap_or_default().iter_mut());
            }
        }
        let pieces = self.items.par_chunks(self.piece).zip(slots);
        pieces.enumerate().for_each(|(piece, (items, mut slots))| {
            for (at, item) in (piece * self.piece..).zip(items) {
                if let Some(slot) = slots.get_mut((self.group)(item)).and_then(Iterator::next) {
                    *slot = value(at, item);
                }
            }
        });
    }

    /// The way back: of values that lie as [`Self::scatter`] gives them, each at its item's
    /// position.
    pub fn gather<V: Copy + Default + Send + Sync>(&self, values: &[V]) -> Vec<V> {
        let mut gathered = vec![V::default(); self.items.len()];
        let mut offsets: Vec<Vec<usize>> = vec![Vec::new(); self.counts.len()];
        let mut next = 0;
        for at in 0..self.counts.first().map_or(0, Vec::len) {
            for (offsets, count) in offsets.iter_mut().zip(self.of_group(at)) {
                offsets.push(next);
                next += count;
            }
        }
        let pieces = gathered
            .par_chunks_mut(self.piece)
            .zip(self.items.par_chunks(self.piece));
        pieces.zip(offsets).for_each(|((gathered, items), mut offsets)| {
            for (slot, item) in gathered.iter_mut().zip(items) {
                let Some(offset) = offsets.get_mut((self.group)(item)) else {
                    continue;
                };
                *slot = values.get(*offset).copied().unwrap_or_default();
                *offset += 1;
            }
        });
        gathered
    }

    /// How many items of each piece are in a group.
    fn of_group(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let counts = self.counts.iter();
        counts.map(move |counts| counts.get(at).copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Remainders by seven of so many numbers, of which the last group has room for none.
    fn check(count: u32) {
        let items: Vec<u32> = (0..count).map(|at| at.wrapping_mul(2_654_435_761) % 7).collect();
        let groups = Groups::count(&items, 6, |item| usize::try_from(*item).unwrap());
        let scattered = groups.scatter(|at, item| (*item, at));
        let mut expected: Vec<(u32, usize)> = items.iter().copied().zip(0..).filter(|(item, _)| *item < 6).collect();
        expected.sort_unstable();
        assert_eq!(scattered, expected);
        for (group, range) in groups.ranges().into_iter().enumerate() {
            assert!(
                scattered[range]
                    .iter()
                    .all(|(item, _)| usize::try_from(*item).unwrap() == group)
            );
        }
        let gathered = groups.gather(&scattered);
        for (at, (item, gathered)) in items.iter().zip(gathered).enumerate() {
            let expected = if *item < 6 { (*item, at) } else { (0, 0) };
            assert_eq!(gathered, expected);
        }
    }

    #[test]
    fn few_items_and_many_are_grouped_in_their_order_and_brought_back() {
        for count in [0, 1, 100, 300_000] {
            check(count);
        }
    }
}
