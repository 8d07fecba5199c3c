//! The course of a counter between its samples.
//!
//! **Ends that are known.** A counter that keeps the time of its last unit's end has a course from
//! end to end, whenever it is read.
//!
//! **A counter that is faster than its samples.** At a reading of 12 steps the thirteenth is under
//! way, and nobody knows how far: a bin between two readings a quarter of a second apart holds 12
//! or 13 steps, which differ by 8 %. Medians of such rates are whole steps too, so an effect of 5 %
//! would be told as one of 0 or of 8 %. So each reading is taken to be some part of a step further,
//! any part with the same chance: what is not known is noise then, and the interval says so.
//!
//! **A counter that is slower than its samples.** A bin of 1 s may hold three or four steps of 0.3
//! s: counted at the bins' edges, its rate would jump by a third. The moment of each move is known
//! to within a sample, and is taken to be any between two of them. The course is a line from move
//! to move, and a bin holds parts of steps.

use crate::number::{float, whole};
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

impl Knot {
    /// What a sample says, at the time when it was read.
    fn read(sample: &Sample, first: &Sample) -> Self {
        Self {
            at_ns: sample.at_ns,
            count: float(sample.count.saturating_sub(first.count)),
            busy_ns: float(sample.busy_ns.unwrap_or(0).saturating_sub(first.busy_ns.unwrap_or(0))),
        }
    }
}

/// A counter without resets and gaps, as lines between knots.
#[derive(Debug)]
pub(crate) struct Curve {
    knots: Vec<Knot>,
}

impl Curve {
    /// The course through `samples`, of which each is later than the one before and none is a
    /// reset. `None` where there are not two knots.
    pub(crate) fn through(samples: &[Sample]) -> Option<Self> {
        let (first, last) = (samples.first()?, samples.last()?);
        if last.at_ns <= first.at_ns {
            return None;
        }
        if samples.iter().all(|sample| sample.last_ns.is_some()) {
            return Self::through_ends(samples);
        }
        if first.count == last.count {
            return Self::from_knots(vec![Knot::read(first, first), Knot::read(last, first)]);
        }
        // A counter that moves at nearly every sample is faster than the samples, and stands where
        // it does not move.
        let still = moves(samples)
            .filter(|(before, after)| after.count < last.count && before.count == after.count)
            .count();
        if still.saturating_mul(STEPWISE) > samples.len() {
            Self::through_moves(samples)
        } else {
            Self::through_readings(samples)
        }
    }

    /// The course through the ends of units.
    fn through_ends(samples: &[Sample]) -> Option<Self> {
        let (first, last) = (samples.first()?, samples.last()?);
        let mut knots: Vec<Knot> = Vec::with_capacity(samples.len());
        // The latest reading at which the last knot's unit was still the last.
        let mut read_ns = first.at_ns;
        for sample in samples {
            let knot = Knot {
                at_ns: sample.last_ns?.min(sample.at_ns),
                ..Knot::read(sample, first)
            };
            match knots.last() {
                Some(before) if knot.count > before.count && knot.at_ns > before.at_ns => {
                    knots.extend(standstill(*before, knot, read_ns));
                    knots.push(knot);
                }
                // A time that is told anew of the same end differs by what its clock was wrong.
                Some(_) => {}
                None => knots.push(knot),
            }
            read_ns = sample.at_ns;
        }
        Self::extend(&mut knots, last.at_ns, 1.0);
        Self::from_knots(knots)
    }

    /// The course through the readings of a counter that is faster than they are.
    fn through_readings(samples: &[Sample]) -> Option<Self> {
        let (first, last) = (samples.first()?, samples.last()?);
        let all = Knot::read(last, first);
        let mut knots: Vec<Knot> = Vec::with_capacity(samples.len());
        let mut stands_at = None;
        for sample in samples {
            let mut knot = Knot::read(sample, first);
            // Where it stood, the unit under way did so too.
            let at_ns = stands_at
                .filter(|(count, _)| *count == sample.count)
                .map_or(sample.at_ns, |(_, at_ns)| at_ns);
            stands_at = Some((sample.count, at_ns));
            let part = any_part(at_ns);
            knot.count += part;
            knot.busy_ns += part * all.busy_ns / all.count.max(1.0);
            knots.push(knot);
        }
        Self::from_knots(knots)
    }

    /// The course through the moves of a counter that is slower than its readings.
    fn through_moves(samples: &[Sample]) -> Option<Self> {
        let (first, last) = (samples.first()?, samples.last()?);
        // The least move is taken for one step. Before a larger one the counter really stood,
        // before this one it was under way.
        let step = moves(samples)
            .filter_map(|(before, after)| after.count.checked_sub(before.count))
            .filter(|by| *by > 0)
            .min()?;
        let mut knots: Vec<Knot> = Vec::with_capacity(samples.len());
        for (before, after) in moves(samples) {
            let by = after.count.saturating_sub(before.count);
            if by == 0 {
                continue;
            }
            if by > step {
                if knots.is_empty() && before.at_ns > first.at_ns {
                    knots.push(Knot::read(first, first));
                }
                if knots.last().is_none_or(|known| known.at_ns < before.at_ns) {
                    knots.push(Knot::read(before, first));
                }
            }
            let between = float(after.at_ns.saturating_sub(before.at_ns)) * any_part(after.at_ns);
            let since = u64::try_from(whole(between)).unwrap_or(0);
            knots.push(Knot {
                at_ns: after.at_ns.saturating_sub(since),
                ..Knot::read(after, first)
            });
        }
        Self::extend(&mut knots, last.at_ns, float(step));
        Self::from_knots(knots)
    }

    /// After the last move the step under way goes on at the pace of the last ones until it would
    /// have ended; from there the counter stands still.
    fn extend(knots: &mut Vec<Knot>, until_ns: u64, step: f64) {
        let mut latest = knots.iter().rev();
        let Some(end) = latest.next().copied().filter(|end| end.at_ns < until_ns) else {
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
        let ends_ns = end.at_ns.saturating_add(u64::try_from(whole(under_way)).unwrap_or(0));
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

/// A sample and the next.
fn moves(samples: &[Sample]) -> impl Iterator<Item = (&Sample, &Sample)> {
    samples.iter().zip(samples.iter().skip(1))
}

/// A point between two ends at which it was read that no more than the unit under way can have been
/// done, where a line between them says more.
fn standstill(from: Knot, to: Knot, read_ns: u64) -> Option<Knot> {
    let (units, elapsed) = (to.count - from.count, float(to.at_ns.saturating_sub(from.at_ns)));
    let read = float(read_ns.saturating_sub(from.at_ns));
    let is_between = read_ns > from.at_ns && read_ns < to.at_ns;
    (is_between && units * read > elapsed).then(|| Knot {
        at_ns: read_ns,
        count: from.count + 1.0,
        busy_ns: from.busy_ns + (to.busy_ns - from.busy_ns) / units,
    })
}

/// A number from 0 to 1 which is always the same for a time, and any for any time (the mixing of
/// SplitMix64).
fn any_part(at_ns: u64) -> f64 {
    let mixed = at_ns.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    float((mixed ^ (mixed >> 31)) >> 11) / float(1 << 53)
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
                last_ns: None,
            })
            .collect()
    }

    fn counts(curve: &Curve, at: &[u64]) -> Vec<Option<f64>> {
        at.iter()
            .map(|&at_ns| curve.at(at_ns).map(|(count, _)| count))
            .collect()
    }

    /// Counts at those moments, each within the unit under way.
    fn about(curve: &Curve, at: &[u64], expected: &[f64], within: f64) {
        for (at_ns, expected) in at.iter().zip(expected) {
            let (count, _) = curve.at(*at_ns).unwrap();
            assert!((count - expected).abs() <= within, "{at_ns}: {count} and {expected}");
        }
    }

    #[test]
    fn a_counter_that_moves_at_every_sample_is_a_line_through_all_of_them_to_within_the_unit_under_way() {
        let curve = Curve::through(&samples(&[(0, 10), (10, 30), (20, 40)])).unwrap();
        about(&curve, &[0, 5, 10, 15, 20], &[0.5, 10.5, 20.5, 25.5, 30.5], 0.5);
        assert_eq!(curve.at(21), None);
    }

    #[test]
    fn the_unit_under_way_is_any_part_of_one_and_the_same_for_a_reading() {
        let parts: Vec<f64> = (0..1000)
            .map(|turn| any_part(1_790_000_000_000_000_000 + turn * 250_000_000))
            .collect();
        let mean = parts.iter().sum::<f64>() / 1000.0;
        let tenths: Vec<usize> = (0..10)
            .map(|tenth| {
                parts
                    .iter()
                    .filter(|part| crate::number::index(**part * 10.0) == tenth)
                    .count()
            })
            .collect();
        assert!((mean - 0.5).abs() < 0.03, "{mean}");
        assert!(tenths.iter().all(|count| (60..140).contains(count)), "{tenths:?}");
        assert_eq!(any_part(77).to_bits(), any_part(77).to_bits());
    }

    #[test]
    fn a_step_longer_than_the_spacing_of_samples_is_spread_over_its_time() {
        let seen = [(0, 0), (10, 0), (20, 1), (30, 1), (40, 2), (50, 2), (60, 3)];
        let curve = Curve::through(&samples(&seen)).unwrap();
        // Each move is known to within 10, half a step.
        about(&curve, &[20, 30, 50, 60], &[1.25, 1.75, 2.75, 3.25], 0.25 + 1e-9);
    }

    #[test]
    fn a_fast_counter_that_stands_still_for_a_while_does_so_in_its_course() {
        let seen: Vec<(u64, u64)> = (0..60)
            .map(|turn| (turn * 10, if turn <= 20 { turn * 50 } else { (turn - 2) * 50 }))
            .map(|(at, count)| (at, if (210..=220).contains(&at) { 1000 } else { count }))
            .collect();
        let curve = Curve::through(&samples(&seen)).unwrap();
        let [stands, later] = [200, 220].map(|at| curve.at(at).unwrap().0);
        assert!((1000.0..=1001.0).contains(&stands) && (later - stands).abs() < 1e-9);
        about(&curve, &[190, 225], &[950.5, 1025.5], 0.5);
    }

    #[test]
    fn the_step_under_way_goes_on_at_the_last_pace_and_then_the_counter_stands() {
        let curve = Curve::through(&samples(&[(0, 0), (10, 1), (20, 1), (30, 2), (40, 2), (90, 2)])).unwrap();
        about(&curve, &[70, 90], &[3.0, 3.0], 1e-9);
    }

    /// Readings each 250 ms of units that end at those times in ms.
    fn readings(ends: &[u64], until_ms: u64) -> Vec<Sample> {
        let read = |at_ns: u64| {
            let ended = ends.partition_point(|end| *end <= at_ns);
            Sample {
                at_ns,
                count: u64::try_from(ended).unwrap(),
                busy_ns: None,
                last_ns: ended.checked_sub(1).map(|place| ends[place]),
            }
        };
        (ends[0]..=until_ms).step_by(250).map(read).collect()
    }

    #[test]
    fn ends_that_are_known_make_a_course_that_readings_have_no_part_in() {
        let ends: Vec<u64> = (0..40).map(|step| 100 + step * 310).collect();
        let curve = Curve::through(&readings(&ends, 12_000)).unwrap();
        for at in (100..11_850).step_by(70) {
            let (count, _) = curve.at(at).unwrap();
            let truth = float(at - 100) / 310.0;
            assert!((count - truth).abs() < 1e-9, "{at}: {count} and {truth}");
        }
    }

    #[test]
    fn a_standstill_between_known_ends_is_where_it_was_read() {
        // Ten units of 50 ms, two seconds of nothing, ten more.
        let ends: Vec<u64> = (0..10)
            .map(|step| step * 50)
            .chain((0..10).map(|step| 2510 + step * 50))
            .collect();
        let curve = Curve::through(&readings(&ends, 3000)).unwrap();
        assert_eq!(counts(&curve, &[250, 450, 2500]), [Some(5.0), Some(9.0), Some(10.0)]);
        about(&curve, &[2710, 2960], &[14.0, 19.0], 1e-9);
    }

    #[test]
    fn a_counter_that_never_moves_is_a_flat_line() {
        let curve = Curve::through(&samples(&[(0, 7), (10, 7), (20, 7)])).unwrap();
        assert_eq!(counts(&curve, &[0, 15, 20]), [Some(0.0); 3]);
        assert!(Curve::through(&samples(&[(0, 7)])).is_none());
    }
}
