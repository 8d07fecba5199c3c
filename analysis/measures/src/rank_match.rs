//! Which collective of one rank is which of another, and how their clocks differ.

use flopwatch_model::middles;

use crate::collective::CollectiveOperation;

/// A collective as one rank ran it, on a clock that all ranks may or may not share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankCollective {
    /// Start in ns.
    pub start: i64,
    /// End in ns.
    pub end: i64,
    /// What the ranks do.
    pub operation: CollectiveOperation,
    /// The message's bytes, where the source says them.
    pub message_bytes: Option<u64>,
    /// Index of the collective in the list that it was taken of.
    pub position: usize,
}

impl RankCollective {
    fn is_like(&self, other: &Self) -> bool {
        self.operation == other.operation && self.message_bytes == other.message_bytes
    }
}

/// How many collectives one capture may begin behind another.
const MAX_SHIFT: usize = 32;

/// Fewest pairs by which a shift is judged.
const MIN_PAIRS: usize = 3;

/// By how many collectives `other` begins later in the sequence of its group than `reference` does:
/// the collective at `i` of `reference` is that at `i + shift` of `other`. Captures of ranks rarely
/// begin with the same collective.
///
/// Ends tell: of a collective that synchronises they differ by the clocks' offset alone. The shift
/// is that with the fewest pairs of different operations or sizes, and of these the one whose ends
/// differ most evenly, or least where the clocks are `comparable`. No shift wins unless another is
/// clearly better.
pub fn shift(reference: &[RankCollective], other: &[RankCollective], comparable: bool) -> isize {
    let shortest = reference.len().min(other.len());
    if shortest < MIN_PAIRS {
        return 0;
    }
    let farthest = |list: &[RankCollective]| {
        let farthest = MAX_SHIFT.min(list.len().saturating_sub(MIN_PAIRS));
        isize::try_from(farthest).unwrap_or(0)
    };
    let shifts = -farthest(reference)..=farthest(other);
    let judged = shifts.filter(|shift| pairs(reference, other, *shift).count() * 2 >= shortest);
    let scores = judged.map(|shift| (score(reference, other, shift, comparable), shift));
    let best = scores.min_by_key(|(score, shift)| (*score, shift.unsigned_abs()));
    let (unlike, spread) = score(reference, other, 0, comparable);
    match best {
        Some(((best_unlike, best_spread), shift)) if best_unlike < unlike || best_spread.saturating_mul(2) < spread => {
            shift
        }
        _ => 0,
    }
}

/// The share of pairs that are not alike in thousandths, and how far apart their ends lie, in ns.
fn score(reference: &[RankCollective], other: &[RankCollective], shift: isize, comparable: bool) -> (usize, u64) {
    let pairs = || pairs(reference, other, shift);
    let count = pairs().count().max(1);
    let unlike = pairs().filter(|(one, other)| !one.is_like(other)).count();
    let mut apart: Vec<i64> = pairs().map(|(one, other)| other.end - one.end).collect();
    let middle = if comparable { 0 } else { median(&mut apart).unwrap_or(0) };
    let mut spread: Vec<u64> = apart.iter().map(|apart| apart.abs_diff(middle)).collect();
    (unlike * 1000 / count, upper_quartile(&mut spread).unwrap_or(0))
}

/// What is at the same place of both lists when `other` is shifted.
pub fn pairs<'a>(
    reference: &'a [RankCollective],
    other: &'a [RankCollective],
    shift: isize,
) -> impl Iterator<Item = (&'a RankCollective, &'a RankCollective)> {
    let (of_reference, of_other) = if shift < 0 {
        (shift.unsigned_abs(), 0)
    } else {
        (0, shift.unsigned_abs())
    };
    reference.iter().skip(of_reference).zip(other.iter().skip(of_other))
}

/// A value that three quarters of `values` are not above, which are reordered; `None` of none.
fn upper_quartile(values: &mut [u64]) -> Option<u64> {
    let position = values.len() * 3 / 4;
    (position < values.len()).then(|| *values.select_nth_unstable(position).1)
}

/// The median of distances in ns, rounded towards 0, which are reordered; `None` of none.
fn median(values: &mut [i64]) -> Option<i64> {
    middles(values).map(|(lower, upper)| lower.midpoint(upper))
}

/// What is to be taken from the clock of each of `clocks` inputs: the median, over `collectives`,
/// of how much later than on average the input's ranks see the end. Each collective is a list of
/// inputs and ends. It is the alignment of nsys-jax (`nsys_jax/analysis.py`), for a clock per input
/// instead of one per device.
pub fn offsets(clocks: usize, collectives: &[Vec<(usize, i64)>]) -> Vec<i64> {
    let mut skews: Vec<Vec<i64>> = vec![Vec::new(); clocks];
    for ends in collectives {
        let Some(mean) = mean_of(ends.iter().map(|(_, end)| *end)) else {
            continue;
        };
        for (clock, skews) in skews.iter_mut().enumerate() {
            let own = ends.iter().filter(|(of, _)| *of == clock).map(|(_, end)| *end);
            skews.extend(mean_of(own).map(|own| own - mean));
        }
    }
    skews.iter_mut().map(|skews| median(skews).unwrap_or(0)).collect()
}

fn mean_of(values: impl Iterator<Item = i64>) -> Option<i64> {
    let (sum, count) = values.fold((0_i128, 0_i128), |(sum, count), value| {
        (sum + i128::from(value), count + 1)
    });
    i64::try_from(sum.checked_div(count)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(ends: &[i64]) -> Vec<RankCollective> {
        let one = |(position, end): (usize, &i64)| RankCollective {
            start: end - 10,
            end: *end,
            operation: CollectiveOperation::AllReduce,
            message_bytes: None,
            position,
        };
        ends.iter().enumerate().map(one).collect()
    }

    const ENDS: [i64; 8] = [100, 150, 400, 410, 700, 1000, 1020, 1500];

    #[test]
    fn a_capture_that_begins_later_is_matched_by_the_ends() {
        // The other clock is 5,000 ns ahead, and its capture began two collectives later.
        let other: Vec<i64> = ENDS.iter().skip(2).map(|end| end + 5000).collect();
        assert_eq!(shift(&list(&ENDS), &list(&other), false), -2);
        assert_eq!(shift(&list(&other), &list(&ENDS), false), 2);
        let same: Vec<i64> = ENDS.iter().map(|end| end + 5003).collect();
        assert_eq!(shift(&list(&ENDS), &list(&same), false), 0);
        let (reference, other) = (list(&ENDS), list(&other));
        let first = pairs(&reference, &other, -2)
            .next()
            .map(|(one, other)| (one.end, other.end));
        assert_eq!(first, Some((400, 5400)));
    }

    #[test]
    fn collectives_of_different_sizes_are_not_the_same() {
        let sized = |sizes: &[u64]| {
            let mut list = list(&[100, 200, 300, 400, 500, 600]);
            for (one, size) in list.iter_mut().zip(sizes) {
                one.message_bytes = Some(*size);
            }
            list
        };
        let (reference, other) = (sized(&[1, 2, 3, 4, 5, 6]), sized(&[2, 3, 4, 5, 6, 7]));
        assert_eq!(shift(&reference, &other, false), -1);
    }

    #[test]
    fn offsets_are_the_median_distance_of_ends_from_their_mean() {
        let ends = |offset: i64| vec![(0, 1000), (1, 1000 + offset)];
        // Clock 1 is 100 ns ahead; one collective ended late there.
        assert_eq!(offsets(2, &[ends(100), ends(100), ends(900)]), [-50, 50]);
        // Of an even number both in the middle count.
        assert_eq!(offsets(2, &[ends(100), ends(300)]), [-100, 100]);
        assert_eq!(offsets(2, &[]), [0, 0]);
    }
}
