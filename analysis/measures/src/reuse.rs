//! How often memory could be used again instead of being asked for anew.
//!
//! Of allocations of the same owner and the same size, one reuses where a buffer was taken back
//! before and none has reused that one since. So many buffers as there are allocations less reuses
//! would do: the reuse ratio is allocations for each of them. It is 1 where nothing is taken back
//! before the next is needed, and then keeping buffers is of no benefit.

use std::collections::BTreeMap;

use flopwatch_model::approximate;

use crate::interval::Interval;

/// Below this ratio keeping buffers is of no benefit: what earlier tools call near 1.0x.
pub const NO_BENEFIT: f64 = 1.1;

/// Allocations of one size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReuseOfSize {
    /// Times memory of that size was given out in the window.
    pub allocations: u64,
    /// Of these such that could use a buffer again.
    pub reuses: u64,
    /// When the first of these was, in ns.
    pub first_ns: u64,
    /// Buffers that were taken back and not given out again.
    spare: u64,
}

/// Reuse by owner and size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reuse<K: Ord> {
    window: Interval,
    /// By owner and size.
    pub sizes: BTreeMap<(K, u64), ReuseOfSize>,
    /// Times memory was given out in the window.
    pub allocations: u64,
    /// Of these such that could use a buffer again.
    pub reuses: u64,
    /// Bytes that these would not have asked for.
    pub saved_bytes: u64,
}

impl<K: Ord> Reuse<K> {
    /// Of nothing yet. Buffers are taken back at any time; allocations count in `window`.
    pub fn in_window(window: Interval) -> Self {
        Self {
            window,
            sizes: BTreeMap::new(),
            allocations: 0,
            reuses: 0,
            saved_bytes: 0,
        }
    }

    /// Adds what happened at `t_ns`, in order: bytes below 0 are taken back.
    pub fn add(&mut self, owner: K, bytes: i64, t_ns: u64) {
        let size = self.sizes.entry((owner, bytes.unsigned_abs())).or_default();
        if bytes <= 0 {
            size.spare += 1;
            return;
        }
        let counts = self.window.start <= t_ns && t_ns < self.window.end;
        let has_spare = size.spare > 0;
        size.spare = size.spare.saturating_sub(1);
        if !counts {
            return;
        }
        size.allocations += 1;
        self.allocations += 1;
        if has_spare {
            if size.reuses == 0 {
                size.first_ns = t_ns;
            }
            size.reuses += 1;
            self.reuses += 1;
            self.saved_bytes = self.saved_bytes.saturating_add(bytes.unsigned_abs());
        }
    }

    /// Allocations for each buffer that is needed; `None` without any.
    pub fn ratio(&self) -> Option<f64> {
        let needed = self.allocations.saturating_sub(self.reuses).max(1);
        (self.allocations > 0).then(|| approximate(self.allocations.into()) / approximate(needed.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_was_taken_back_serves_one_allocation_of_its_size() {
        let mut reuse = Reuse::in_window(Interval::new(0, 100));
        for (t, bytes) in [(1, 8), (2, -8), (3, 8), (4, 8), (5, -8), (6, 16), (7, 8), (200, 8)] {
            reuse.add((), bytes, t);
        }
        // Of five allocations the ones at 3 and 7 reuse; that of 16 bytes cannot use one of 8.
        assert_eq!((reuse.allocations, reuse.reuses, reuse.saved_bytes), (5, 2, 16));
        assert_eq!(reuse.ratio(), Some(5.0 / 3.0));
        assert_eq!(reuse.sizes[&((), 8)].first_ns, 3);
        assert_eq!(Reuse::<()>::in_window(Interval::new(0, 1)).ratio(), None);
    }
}
