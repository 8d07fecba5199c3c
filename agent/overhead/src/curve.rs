//! The course of a counter between its samples.
//!
//! A counter of steps moves by one at a time, and a bin of 1 s may hold three or four steps of 0.3 s: counted at the bins'
//! edges, its rate would jump by a third. The moment of each move is known to within a sample, so the course is a line from
//! move to move, and a bin holds parts of steps. Where the counter moves at every sample that is a line through all samples.

use crate::number::float;
use crate::sample::Sample;

/// A counter of which more than one in so many samples shows no move is slower than its samples.
const STEPWISE: usize = 20;

/// A point of the course; counts and busy time are from the course's first sample.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Knot {
    at_ns: u64,
    count: f64,
    busy_ns: f64,
}

/// A counter without resets and gaps, as lines between knots.
#[derive(Debug)]
pub(crate) struct Curve {
    knots: Vec<Knot>,
}

impl Curve {
    /// The course through `samples`, of which each is later than the one before and none is a reset. `None` where there are not
    /// two knots.
    pub(crate) fn through(samples: &[Sample]) -> Option<Self> {
        let (first, last) = (*samples.first()?, *samples.last()?);
        let knot = |sample: &Sample| Knot {
            at_ns: sample.at_ns,
            count: float(sample.count.saturating_sub(first.count)),
            busy_ns: float(sample.busy_ns.unwrap_or(0).saturating_sub(first.busy_ns.unwrap_or(0))),
        };
        let moves = || samples.iter().zip(samples.iter().skip(1));
        if last.at_ns <= first.at_ns {
            return None;
        }
        // The least move is taken for one step. Before a larger one the counter really stood, before this one it was under way.
        let step = moves()
            .filter_map(|(before, after)| after.count.checked_sub(before.count))
            .filter(|by| *by > 0)
            .min();
        let Some(step) = step else {
            return Self::from_knots(vec![knot(&first), knot(&last)]);
        };
        let last_move = samples
            .get(samples.partition_point(|sample| sample.count < last.count))
            .map_or(last.at_ns, |sample| sample.at_ns);
        // A counter that moves at nearly every sample is faster than the samples, and stands where it does not move.
        let still = moves()
            .filter(|(before, after)| after.at_ns <= last_move && before.count == after.count)
            .count();
        let stepwise = still.saturating_mul(STEPWISE) > samples.len();
        let mut knots: Vec<Knot> = Vec::with_capacity(samples.len());
        if !stepwise {
            knots.push(knot(&first));
        }
        for (before, after) in moves() {
            let by = after.count.saturating_sub(before.count);
            if by == 0 {
                continue;
            }
            if by > step || !stepwise {
                if knots.is_empty() && before.at_ns > first.at_ns {
                    knots.push(knot(&first));
                }
                if knots.last().is_none_or(|known| known.at_ns < before.at_ns) {
                    knots.push(knot(before));
                }
            }
            knots.push(knot(after));
        }
        if last.at_ns > last_move {
            let under_way = if stepwise { float(step) } else { 0.0 };
            Self::extend(&mut knots, last.at_ns, under_way);
        }
        Self::from_knots(knots)
    }

    /// After the last move the step under way goes on at the pace of the last ones until it would have ended; from there the
    /// counter stands still.
    fn extend(knots: &mut Vec<Knot>, until_ns: u64, step: f64) {
        let mut latest = knots.iter().rev();
        let Some(end) = latest.next().copied() else {
            return;
        };
        let pace = latest.next().map(|before| {
            let elapsed = float(end.at_ns.saturating_sub(before.at_ns).max(1));
            (
                (end.count - before.count) / elapsed,
                (end.busy_ns - before.busy_ns) / elapsed,
            )
        });
        let (count_pace, busy_pace) = pace.unwrap_or((0.0, 0.0));
        let left = float(until_ns.saturating_sub(end.at_ns));
        let under_way = if count_pace > 0.0 {
            (step / count_pace).min(left)
        } else {
            0.0
        };
        let ends_ns = end
            .at_ns
            .saturating_add(u64::try_from(crate::number::whole(under_way)).unwrap_or(0));
        let ended = |at_ns| Knot {
            at_ns,
            count: end.count + count_pace * under_way,
            busy_ns: end.busy_ns + busy_pace * under_way,
        };
        if ends_ns > end.at_ns && ends_ns < until_ns {
            knots.push(ended(ends_ns));
        }
        knots.push(ended(until_ns));
    }

    fn from_knots(knots: Vec<Knot>) -> Option<Self> {
        (knots.len() >= 2).then_some(Self { knots })
    }

    /// From when to when it is known, in ns.
    pub(crate) fn span(&self) -> Option<(u64, u64)> {
        Some((self.knots.first()?.at_ns, self.knots.last()?.at_ns))
    }

    /// Units of work and busy ns at a moment, from the first sample on. `None` outside of the span.
    pub(crate) fn at(&self, at_ns: u64) -> Option<(f64, f64)> {
        let next = self.knots.partition_point(|knot| knot.at_ns <= at_ns);
        let before = self.knots.get(next.checked_sub(1)?)?;
        let Some(after) = self.knots.get(next) else {
            return (before.at_ns == at_ns).then_some((before.count, before.busy_ns));
        };
        let part = float(at_ns.saturating_sub(before.at_ns)) / float(after.at_ns.saturating_sub(before.at_ns).max(1));
        Some((
            before.count + (after.count - before.count) * part,
            before.busy_ns + (after.busy_ns - before.busy_ns) * part,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(of: &[(u64, u64)]) -> Vec<Sample> {
        of.iter()
            .map(|&(at_ns, count)| Sample {
                at_ns,
                count,
                busy_ns: None,
            })
            .collect()
    }

    fn counts(curve: &Curve, at: &[u64]) -> Vec<Option<f64>> {
        at.iter()
            .map(|&at_ns| curve.at(at_ns).map(|(count, _)| count))
            .collect()
    }

    #[test]
    fn a_counter_that_moves_at_every_sample_is_a_line_through_all_of_them() {
        let curve = Curve::through(&samples(&[(0, 10), (10, 30), (20, 40)])).unwrap();
        assert_eq!(
            counts(&curve, &[0, 5, 10, 15, 20, 21]),
            [Some(0.0), Some(10.0), Some(20.0), Some(25.0), Some(30.0), None]
        );
    }

    #[test]
    fn a_step_longer_than_the_spacing_of_samples_is_spread_over_its_time() {
        let seen = [(0, 0), (10, 0), (20, 1), (30, 1), (40, 2), (50, 2), (60, 3)];
        let curve = Curve::through(&samples(&seen)).unwrap();
        assert_eq!(
            counts(&curve, &[10, 20, 30, 50, 60]),
            [None, Some(1.0), Some(1.5), Some(2.5), Some(3.0)]
        );
    }

    #[test]
    fn a_fast_counter_that_stands_still_for_a_while_does_so_in_its_course() {
        let curve = Curve::through(&samples(&[(0, 0), (10, 50), (20, 50), (30, 50), (40, 100), (50, 149)])).unwrap();
        assert_eq!(
            counts(&curve, &[10, 20, 30, 35]),
            [Some(50.0), Some(50.0), Some(50.0), Some(75.0)]
        );
    }

    #[test]
    fn the_step_under_way_goes_on_at_the_last_pace_and_then_the_counter_stands() {
        let curve = Curve::through(&samples(&[(0, 0), (10, 1), (20, 1), (30, 2), (40, 2), (90, 2)])).unwrap();
        assert_eq!(
            counts(&curve, &[30, 40, 50, 70, 90]),
            [Some(2.0), Some(2.5), Some(3.0), Some(3.0), Some(3.0)]
        );
    }

    #[test]
    fn a_counter_that_never_moves_is_a_flat_line() {
        let curve = Curve::through(&samples(&[(0, 7), (10, 7), (20, 7)])).unwrap();
        assert_eq!(counts(&curve, &[0, 15, 20]), [Some(0.0); 3]);
        assert!(Curve::through(&samples(&[(0, 7)])).is_none());
    }
}
