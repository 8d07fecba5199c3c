//! The byte ranges of a file that were downloaded, and the requests that download others.

use std::ops::Range;

/// Longest gap between two ranges that are downloaded as one.
const MAX_GAP_BYTES: u64 = 16 << 10;
/// Longest range of one request.
const MAX_REQUEST_BYTES: u64 = 4 << 20;

/// Ranges of a file, in its order, none of which touches the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ByteRanges(Vec<Range<u64>>);

impl ByteRanges {
    /// Adds a range and joins it with those that it touches.
    pub(super) fn add(&mut self, part: Range<u64>) {
        if part.is_empty() {
            return;
        }
        let first = self.0.partition_point(|held| held.end < part.start);
        let behind = self.0.partition_point(|held| held.start <= part.end);
        let touched = self.0.get(first..behind).unwrap_or_default();
        let start = touched.first().map_or(part.start, |held| held.start.min(part.start));
        let end = touched.last().map_or(part.end, |held| held.end.max(part.end));
        self.0.splice(first..behind, std::iter::once(start..end));
    }

    /// The ranges of `wanted` that are not among these, in the order of the file.
    pub(super) fn missing(&self, wanted: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut all = Self::default();
        for part in wanted {
            all.add(part.clone());
        }
        let mut missing = Vec::new();
        for part in all.0 {
            let mut from = part.start;
            let behind = self.0.partition_point(|held| held.end <= part.start);
            for held in self.0.iter().skip(behind).take_while(|held| held.start < part.end) {
                if held.start > from {
                    missing.push(from..held.start);
                }
                from = from.max(held.end);
            }
            if from < part.end {
                missing.push(from..part.end);
            }
        }
        missing
    }
}

/// The ranges to request for these parts, which are in the order of the file.
pub(super) fn requests(parts: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for part in parts {
        match joined.last_mut() {
            Some(last) if part.start.saturating_sub(last.end) <= MAX_GAP_BYTES => last.end = last.end.max(part.end),
            _ => joined.push(part.clone()),
        }
    }
    let cut = |part: Range<u64>| {
        let starts = (part.start..part.end).step_by(usize::try_from(MAX_REQUEST_BYTES).unwrap_or(usize::MAX));
        starts.map(move |start| start..part.end.min(start.saturating_add(MAX_REQUEST_BYTES)))
    };
    joined.into_iter().flat_map(cut).collect()
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of parts, some of one")]
mod tests {
    use super::*;

    /// Parts, and what comes of them.
    type Row<'a> = (&'a [Range<u64>], &'a [Range<u64>]);

    fn held(parts: &[Range<u64>]) -> ByteRanges {
        let mut held = ByteRanges::default();
        for part in parts {
            held.add(part.clone());
        }
        held
    }

    #[test]
    fn parts_that_touch_become_one() {
        let rows: [Row<'_>; 5] = [
            (&[0..10, 20..30], &[0..10, 20..30]),
            (&[20..30, 0..10, 10..20], &[0..30]),
            (&[0..10, 5..7], &[0..10]),
            (&[0..10, 20..30, 40..50, 8..41], &[0..50]),
            (&[5..5], &[]),
        ];
        for (added, expected) in rows {
            assert_eq!(held(added).0, expected, "{added:?}");
        }
    }

    #[test]
    fn what_is_missing_is_neither_here_nor_asked_for_twice() {
        let held = held(&[10..20, 30..40]);
        let rows: [Row<'_>; 6] = [
            (&[0..50], &[0..10, 20..30, 40..50]),
            (&[10..20, 32..35], &[]),
            (&[15..35], &[20..30]),
            (&[0..5, 3..8], &[0..8]),
            (&[45..50, 0..10], &[0..10, 45..50]),
            (&[], &[]),
        ];
        for (wanted, expected) in rows {
            assert_eq!(held.missing(wanted), expected, "{wanted:?}");
        }
    }

    #[test]
    fn neighbours_come_together_and_no_request_is_long() {
        assert_eq!(
            requests(&[0..10, 20..30, 1_000_000..1_000_001]),
            [0..30, 1_000_000..1_000_001]
        );
        assert_eq!(
            requests(&[5..MAX_REQUEST_BYTES + 10]),
            [5..MAX_REQUEST_BYTES + 5, MAX_REQUEST_BYTES + 5..MAX_REQUEST_BYTES + 10]
        );
    }
}
