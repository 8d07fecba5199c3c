//! Equal parts of a window of time.

use crate::interval::Interval;

/// A window in equal parts. Where its length is not a multiple of their number, some are a
/// nanosecond longer than others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bins {
    /// The window that is divided.
    pub window: Interval,
    /// Number of parts.
    pub count: usize,
}

impl Bins {
    /// The part that holds `time`; the first or last of a time outside.
    pub fn of(&self, time: u64) -> usize {
        let past = u128::from(time.saturating_sub(self.window.start));
        let count = u128::try_from(self.count).unwrap_or(1);
        let bin = past * count / u128::from(self.window.len().max(1));
        usize::try_from(bin)
            .unwrap_or(usize::MAX)
            .min(self.count.saturating_sub(1))
    }

    /// Start of the part, in ns; the window's end behind the last.
    pub fn start(&self, bin: usize) -> u64 {
        let count = u128::try_from(self.count).unwrap_or(1).max(1);
        let past = (u128::from(self.window.len()) * u128::try_from(bin).unwrap_or(0)).div_ceil(count);
        self.window.start + u64::try_from(past).unwrap_or(0)
    }

    /// Starts of all parts.
    pub fn starts(&self) -> Vec<u64> {
        (0..self.count).map(|bin| self.start(bin)).collect()
    }

    /// When a part is.
    pub fn time(&self, bin: usize) -> Interval {
        Interval::new(self.start(bin), self.start(bin + 1))
    }

    /// The parts that `time` has in common with the window, each with what they have in common.
    pub fn shared(&self, time: Interval) -> impl Iterator<Item = (usize, Interval)> {
        let time = time.intersect(self.window);
        let first = self.of(time.start);
        let last = if time.is_empty() {
            first
        } else {
            self.of(time.end - 1) + 1
        };
        let bins = *self;
        (first..last).map(move |bin| (bin, bins.time(bin).intersect(time)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_are_the_window_and_hold_their_times(
            start in 0_u64..100, length in 1_u64..200, count in 1_usize..20, from in 0_u64..300, took in 0_u64..100,
        ) {
            let bins = Bins { window: Interval::new(start, start + length), count };
            prop_assert_eq!(bins.start(0), start);
            prop_assert_eq!(bins.start(count), start + length);
            for at in start..start + length {
                let time = bins.time(bins.of(at));
                prop_assert!((time.start..time.end).contains(&at));
            }
            let time = Interval::new(from, from + took);
            let shared: u64 = bins.shared(time).map(|(_, part)| part.len()).sum();
            prop_assert_eq!(shared, time.intersect(bins.window).len());
        }
    }
}
