//! Which of a program's ranges shows how fast it is.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use flopwatch_api::overhead::OverheadReason;
use flopwatch_overhead::{Binning, MINIMUM_BINS, Sample, bins};

const MILLISECOND: u64 = 1_000_000;
/// Lengths of a bin in ms, of which the shortest is taken that holds a few calls.
const LENGTHS: [u64; 5] = [250, 500, 1_000, 2_000, 5_000];
/// Calls that a bin holds on average, at least, where it is known when they ended: neighbours share
/// a call.
const CALLS_OF_KNOWN_ENDS: [u64; 1] = [3];
/// The same of a counter that is only read: of a bin of 16 calls, one more or less is a sixteenth.
/// A counter that is slower is told by four, less surely; fewer say more of where a bin's edges lie
/// than of the program's pace.
const CALLS: [u64; 2] = [16, 4];
/// How unsteady a name may be beside the steadiest: as a ratio, and by how much more.
const STEADY: (f64, f64) = (1.5, 0.01);

/// A counter, as it was read before a window.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    /// Oldest first.
    pub(crate) samples: Vec<Sample>,
    /// Length of a bin.
    pub(crate) length_ns: NonZeroU64,
}

/// Why nothing shows how fast a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSignal {
    /// No range ended.
    #[error("no NVTX range of the program ended before the window")]
    NoRanges,
    /// Ranges ended too seldom, or not for long enough.
    #[error("no NVTX range of the program ended often enough before the window: 32 times in eight stretches of time")]
    TooFew,
}

impl NoSignal {
    /// What the verdict on a window rests on that this keeps from being watched.
    pub const fn reason(self) -> OverheadReason {
        match self {
            Self::NoRanges => OverheadReason::NoSignal,
            Self::TooFew => OverheadReason::TooSeldom,
        }
    }
}

/// Of ranges by name, the one that shows best how fast the program was: of those that are about as
/// steady as the steadiest, the one that took the longest, which is the outermost where they nest.
pub(crate) fn choose(ranges: BTreeMap<String, Vec<Sample>>) -> Result<(String, Choice), NoSignal> {
    if ranges.values().all(|samples| calls(samples) == 0) {
        return Err(NoSignal::NoRanges);
    }
    let found: Vec<(f64, u64, String, Choice)> = ranges
        .into_iter()
        .filter_map(|(name, samples)| {
            let length_ns = length_for(&samples)?;
            let unsteady = variation(&samples, length_ns)?;
            let busy = busy_ns(&samples);
            Some((unsteady, busy, name, Choice { samples, length_ns }))
        })
        .collect();
    let least = found.iter().map(|(unsteady, ..)| *unsteady).min_by(f64::total_cmp);
    let least = least.ok_or(NoSignal::TooFew)?;
    let allowed = (least * STEADY.0).max(least + STEADY.1);
    let steady = found.into_iter().filter(|(unsteady, ..)| *unsteady <= allowed);
    let best = steady.max_by(|one, other| one.1.cmp(&other.1).then_with(|| other.2.cmp(&one.2)));
    best.map(|(_, _, name, choice)| (name, choice)).ok_or(NoSignal::TooFew)
}

/// The shortest bin that holds a few of a counter's calls on average, where there were eight such
/// bins.
pub(crate) fn length_for(samples: &[Sample]) -> Option<NonZeroU64> {
    let (first, last) = samples.first().zip(samples.last())?;
    let (time_ns, calls) = (last.at_ns.checked_sub(first.at_ns)?, calls(samples));
    // A counter that moves by many at once says something only as often as it moves.
    let neighbours = samples.iter().zip(samples.iter().skip(1));
    let moved = neighbours.filter(|(before, after)| before.count < after.count).count();
    let moved = u128::try_from(moved).ok()?;
    let bins_needed = u64::try_from(MINIMUM_BINS).ok()?;
    let fits = |milliseconds: &u64, enough: u64| {
        let length_ns = milliseconds.saturating_mul(MILLISECOND);
        let expected = u128::from(calls) * u128::from(length_ns);
        // Readings come a little later than they are due.
        let often = 5 * moved * u128::from(length_ns) >= 4 * u128::from(time_ns.max(1));
        often
            && expected >= u128::from(enough) * u128::from(time_ns.max(1))
            && time_ns / length_ns.max(1) >= bins_needed
    };
    let ends_are_known = samples.iter().all(|sample| sample.last_ns.is_some());
    let enough: &[u64] = if ends_are_known { &CALLS_OF_KNOWN_ENDS } else { &CALLS };
    let found = enough
        .iter()
        .find_map(|calls| LENGTHS.into_iter().find(|length| fits(length, *calls)))?;
    NonZeroU64::new(found.saturating_mul(MILLISECOND))
}

/// How far a counter moved.
pub(crate) fn calls(samples: &[Sample]) -> u64 {
    let ends = samples.first().zip(samples.last());
    ends.map_or(0, |(first, last)| last.count.saturating_sub(first.count))
}

fn busy_ns(samples: &[Sample]) -> u64 {
    let ends = samples.first().zip(samples.last());
    let busy = ends.and_then(|(first, last)| last.busy_ns?.checked_sub(first.busy_ns?));
    busy.unwrap_or(0)
}

/// Standard deviation of the rates of bins as a share of their mean.
fn variation(samples: &[Sample], length_ns: NonZeroU64) -> Option<f64> {
    let binning = Binning {
        length_ns,
        origin_ns: samples.first()?.at_ns,
    };
    let rates: Vec<f64> = bins(samples, binning).iter().map(|bin| bin.rate).collect();
    if rates.len() < MINIMUM_BINS {
        return None;
    }
    let count = f64::from(u32::try_from(rates.len()).ok()?);
    let mean = rates.iter().sum::<f64>() / count;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / count;
    (mean > 0.0).then(|| variance.sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings each 250 ms for 20 s of ranges that take so many ns each, of which the last had
    /// just ended.
    fn readings(calls_until: impl Fn(u64) -> u64, each_ns: u64) -> Vec<Sample> {
        let of = |turn: u64| Sample {
            at_ns: turn * 250 * MILLISECOND,
            count: calls_until(turn),
            busy_ns: Some(calls_until(turn) * each_ns),
            last_ns: Some(turn * 250 * MILLISECOND),
        };
        (0..=80).map(of).collect()
    }

    #[test]
    fn the_outermost_of_steady_ranges_is_taken_and_one_that_comes_in_bursts_is_not() {
        let ranges = BTreeMap::from([
            ("step".to_owned(), readings(|turn| 10 * turn, 20 * MILLISECOND)),
            ("forward".to_owned(), readings(|turn| 10 * turn, 8 * MILLISECOND)),
            (
                "checkpoint".to_owned(),
                readings(|turn| turn / 20 * 500, 30 * MILLISECOND),
            ),
        ]);
        let (name, choice) = choose(ranges).unwrap();
        assert_eq!(name, "step");
        assert_eq!(choice.length_ns.get(), 250 * MILLISECOND);
    }

    #[test]
    fn bins_are_longer_where_ranges_are_seldom() {
        let length = |samples: &[Sample]| length_for(samples).map(|length| length.get() / MILLISECOND);
        assert_eq!(length(&readings(|turn| turn, 1)), Some(1_000));
        assert_eq!(length(&readings(|turn| turn / 2, 1)), Some(2_000));
        assert_eq!(
            length(&readings(|turn| turn / 8, 1)),
            None,
            "there is no time for eight of them"
        );
        assert_eq!(length(&[]), None);
    }

    #[test]
    fn bins_of_a_counter_that_is_only_read_hold_more_calls_where_there_are_so_many() {
        let length = |calls: u64, turns: u64| {
            let mut read = readings(|turn| calls * turn, 1);
            read.truncate(usize::try_from(turns).unwrap() + 1);
            for sample in &mut read {
                sample.last_ns = None;
            }
            length_for(&read).map(|length| length.get() / MILLISECOND)
        };
        assert_eq!(length(100, 80), Some(250));
        assert_eq!(length(10, 80), Some(500));
        assert_eq!(length(2, 80), Some(2_000));
        assert_eq!(length(2, 40), Some(500), "there is no time for eight of two seconds");
    }

    #[test]
    fn readings_that_come_a_little_late_are_no_reason_for_longer_bins() {
        let mut late = readings(|turn| 10 * turn, 1);
        for (turn, sample) in (0..).zip(&mut late) {
            sample.at_ns = turn * 262 * MILLISECOND;
            sample.last_ns = Some(sample.at_ns);
        }
        assert_eq!(length_for(&late).map(NonZeroU64::get), Some(250 * MILLISECOND));
    }

    #[test]
    fn without_ranges_and_with_too_few_of_them_it_says_which() {
        assert_eq!(choose(BTreeMap::new()), Err(NoSignal::NoRanges));
        let idle = BTreeMap::from([("step".to_owned(), readings(|_| 7, 1))]);
        assert_eq!(choose(idle), Err(NoSignal::NoRanges));
        let seldom = BTreeMap::from([("step".to_owned(), readings(|turn| turn / 10, 1))]);
        assert_eq!(choose(seldom), Err(NoSignal::TooFew));
        assert_eq!(
            [NoSignal::NoRanges, NoSignal::TooFew].map(NoSignal::reason),
            [OverheadReason::NoSignal, OverheadReason::TooSeldom]
        );
    }
}
