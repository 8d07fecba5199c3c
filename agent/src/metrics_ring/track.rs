//! Values of a few metrics over one shared axis of time: the newest of them, within a bound.

use std::collections::VecDeque;
use std::time::Duration;

/// Time between two rounds, each of which adds a row at most.
pub(super) const ROUND_INTERVAL: Duration = Duration::from_millis(100);
/// A time is kept as the lower 32 bits of its ns since 1970 by this power of two: to 16 µs,
/// unambiguous for 19 hours.
const TIME_SHIFT: u32 = 14;
/// A time that lies this far before the newest one means that the clock was set back: 10 s.
const SET_BACK: u64 = 10_000_000_000 >> TIME_SHIFT;
/// Rows that a track has room for at first.
const INITIAL_ROWS: usize = 64;

/// Rows of a track that has one each so many rounds.
pub(super) fn rows(length: Duration, rounds: usize) -> usize {
    let all = usize::try_from(length.as_nanos() / ROUND_INTERVAL.as_nanos().max(1)).unwrap_or(usize::MAX);
    (all / rounds.max(1)).saturating_add(1)
}

/// Rows of one time and `width` values each. A row takes 4 bytes and 4 for each value; a value has
/// 24 bits of precision, and none is kept as NaN.
#[derive(Debug)]
pub(crate) struct Track {
    width: usize,
    most: usize,
    newest: u64,
    times: VecDeque<u32>,
    values: VecDeque<f32>,
}

impl Track {
    /// One of `width` values per row that keeps at most `most` rows.
    pub(crate) const fn new(width: usize, most: usize) -> Self {
        Self {
            width,
            most,
            newest: 0,
            times: VecDeque::new(),
            values: VecDeque::new(),
        }
    }

    /// Keeps a row, if it is newer than the newest one; the oldest one goes where there is no room.
    /// Where the clock was set back, nothing older is kept: the times would not be in order.
    pub(crate) fn push(&mut self, utc_ns: u64, row: impl IntoIterator<Item = Option<f64>>) {
        let at = utc_ns >> TIME_SHIFT;
        if !self.times.is_empty() && at <= self.newest && self.newest - at < SET_BACK {
            return;
        }
        if at.abs_diff(self.newest) > u64::from(u32::MAX) || at < self.newest {
            self.times.clear();
            self.values.clear();
        }
        if self.times.len() >= self.most {
            self.drop_oldest();
        }
        self.make_room();
        self.newest = at;
        self.times.push_back(low(at));
        let row = row.into_iter().chain(std::iter::repeat(None)).take(self.width);
        self.values.extend(row.map(|value| value.map_or(f32::NAN, narrow)));
    }

    /// Room for one more row: a quarter more, and never more than for all that are kept.
    fn make_room(&mut self) {
        if self.times.len() == self.times.capacity() {
            let rows = self.times.len();
            let more = (rows / 4).max(INITIAL_ROWS).min(self.most.saturating_sub(rows).max(1));
            self.times.reserve_exact(more);
            self.values.reserve_exact(more * self.width);
        }
    }

    fn drop_oldest(&mut self) {
        self.times.pop_front();
        self.values.drain(..self.width.min(self.values.len()));
    }

    /// Drops what is older than that.
    pub(crate) fn expire(&mut self, oldest_utc_ns: u64) {
        while self.first().is_some_and(|first| first < oldest_utc_ns) {
            self.drop_oldest();
        }
    }

    /// Whether nothing is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Time of the oldest row in ns since 1970.
    pub(crate) fn first(&self) -> Option<u64> {
        self.times.front().map(|low| self.whole(*low))
    }

    /// Time of the newest row in ns since 1970.
    pub(crate) fn last(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.newest << TIME_SHIFT)
    }

    /// Times of all rows in ns since 1970, from the oldest on.
    pub(crate) fn times(&self) -> impl Iterator<Item = u64> {
        self.times.iter().map(|low| self.whole(*low))
    }

    /// The values of one column, with their times; rows without one are left out.
    pub(crate) fn column(&self, column: usize) -> impl Iterator<Item = (u64, f64)> {
        let values = self.values.iter().skip(column).step_by(self.width.max(1));
        let known = self.times().zip(values).filter(|(_, value)| !value.is_nan());
        known.map(|(at, value)| (at, f64::from(*value)))
    }

    /// Bytes of memory that it has taken.
    pub(crate) fn bytes(&self) -> usize {
        let (time, value) = (size_of::<u32>(), size_of::<f32>());
        size_of::<Self>() + self.times.capacity() * time + self.values.capacity() * value
    }

    /// The time whose lower bits are these: it is not after the newest one.
    fn whole(&self, kept: u32) -> u64 {
        let age = low(self.newest).wrapping_sub(kept);
        (self.newest - u64::from(age)) << TIME_SHIFT
    }
}

/// The lower 32 bits.
fn low(at: u64) -> u32 {
    u32::try_from(at & u64::from(u32::MAX)).unwrap_or_default()
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "24 bits are enough for a sample; there is no other conversion"
)]
const fn narrow(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENTH: u64 = 100_000_000;
    const NOW: u64 = 1_790_000_000_000_000_000;

    fn filled(most: usize, rows: u64) -> Track {
        let mut track = Track::new(2, most);
        for row in 0..rows {
            let even = (row % 2 == 0).then_some(7.0);
            track.push(NOW + row * TENTH, [Some(f64::from(u32::try_from(row).unwrap())), even]);
        }
        track
    }

    #[test]
    fn what_was_put_in_comes_out_in_the_order_of_time() {
        let track = filled(100, 4);
        let found: Vec<_> = track.column(0).collect();
        assert_eq!(
            found.iter().map(|(_, value)| *value).collect::<Vec<_>>(),
            [0.0, 1.0, 2.0, 3.0]
        );
        for ((at, _), row) in found.iter().zip(0..) {
            assert!((NOW + row * TENTH).abs_diff(*at) < 1 << TIME_SHIFT, "to 16 µs");
        }
        assert_eq!(track.column(1).count(), 2, "what was not measured is left out");
    }

    #[test]
    fn the_oldest_rows_go_where_there_is_no_room() {
        let track = filled(10, 25);
        let found: Vec<_> = track.column(0).map(|(_, value)| value).collect();
        assert_eq!(found, (15..25).map(f64::from).collect::<Vec<_>>());
        let bound = size_of::<Track>() + 10 * (4 + 2 * 4);
        assert!(track.bytes() <= bound, "{} of {bound} bytes", track.bytes());
    }

    #[test]
    fn a_track_takes_no_more_room_than_it_may_fill() {
        for rows in [1, 64, 100, 3000, 6000, 9000] {
            let track = filled(6000, rows);
            assert!(
                track.bytes() <= size_of::<Track>() + 6000 * 12,
                "{rows}: {}",
                track.bytes()
            );
        }
        assert!(filled(6000, 10).bytes() < 1000, "a young one is small");
    }

    #[test]
    fn what_is_too_old_expires_by_its_time() {
        let mut track = filled(100, 10);
        track.expire(NOW + 5 * TENTH + 1);
        assert_eq!(
            track.column(0).map(|(_, value)| value).collect::<Vec<_>>(),
            [6.0, 7.0, 8.0, 9.0]
        );
        track.expire(u64::MAX);
        assert!(track.is_empty() && track.first().is_none() && track.last().is_none());
    }

    #[test]
    fn a_value_that_was_not_measured_anew_is_no_second_row() {
        let mut track = filled(100, 3);
        track.push(NOW + 2 * TENTH, [Some(9.0), None]);
        track.push(NOW + TENTH, [Some(9.0), None]);
        assert_eq!(track.times().count(), 3);
    }

    #[test]
    fn a_clock_that_is_set_back_begins_the_track_anew_and_one_set_forward_does_not() {
        let mut track = filled(100, 3);
        track.push(NOW + 3600 * 10 * TENTH, [Some(1.0), None]);
        assert_eq!(track.times().count(), 4);
        track.push(NOW - 600 * 10 * TENTH, [Some(2.0), None]);
        assert_eq!(track.column(0).map(|(_, value)| value).collect::<Vec<_>>(), [2.0]);
    }

    #[test]
    fn a_gap_of_days_leaves_no_wrong_times() {
        let mut track = filled(100, 3);
        let later = NOW + 3 * 86_400 * 1_000_000_000;
        track.push(later, [Some(1.0), None]);
        let found: Vec<_> = track.times().collect();
        assert_eq!(found.len(), 1);
        assert!(later.abs_diff(found[0]) < 1 << TIME_SHIFT);
    }
}
