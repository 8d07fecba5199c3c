//! Rates per bin of equal length, from samples of a cumulative counter.

use std::num::NonZeroU64;

use crate::curve::Curve;
use crate::number::float;
use crate::sample::Sample;

/// Bins between two samples after which the course in between is not known.
const GAP_BINS: u64 = 2;
const NANOSECONDS: f64 = 1e9;

/// Where bins lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binning {
    /// Length of a bin, in ns. It should hold a few steps of the target and at least one sample.
    pub length_ns: NonZeroU64,
    /// A moment at which a bin begins, in ns; best the opening of the window, which then loses no
    /// bin.
    pub origin_ns: u64,
}

impl Binning {
    /// Bins of one second of which one begins at `origin_ns`.
    pub fn seconds(origin_ns: u64) -> Self {
        const SECOND: NonZeroU64 = NonZeroU64::new(1_000_000_000).unwrap();
        Self {
            length_ns: SECOND,
            origin_ns,
        }
    }

    /// The first beginning of a bin at or after a moment.
    fn first_from(self, at_ns: u64) -> Option<u64> {
        let length = self.length_ns.get();
        let phase = self.origin_ns.checked_rem(length)?;
        let past = at_ns.checked_sub(phase).map_or(0, |since| since.div_ceil(length));
        past.checked_mul(length)?.checked_add(phase)
    }
}

/// The rate of the target's work over one bin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// When it begins, in ns.
    pub start_ns: u64,
    /// Units of work per second; 0 where the counter was read and stood still.
    pub rate: f64,
    /// Units of work per second of busy time, which load does not change; `None` where samples have
    /// no busy time, or the bin holds none.
    pub busy_rate: Option<f64>,
}

/// Which rate of bins is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Units per second of time: throughput.
    #[default]
    PerSecond,
    /// Units per second of busy time: the pace of the work itself, for targets that wait for
    /// requests. It does not see harm done between units.
    PerBusySecond,
}

impl Measure {
    /// The rate of a bin, where it has this one.
    pub fn of(self, bin: &Bin) -> Option<f64> {
        match self {
            Self::PerSecond => Some(bin.rate),
            Self::PerBusySecond => bin.busy_rate,
        }
    }
}

/// The bins of which both edges lie within known parts of the counter's course, in order.
///
/// A bin without a sample is absent, never zero. So are bins that touch a gap of more than two
/// bins, or a reset of the counter. Samples that are no later than the one before are left out.
pub fn bins(samples: &[Sample], binning: Binning) -> Vec<Bin> {
    let mut kept: Vec<Sample> = Vec::with_capacity(samples.len());
    for sample in samples {
        if kept.last().is_none_or(|last| last.at_ns < sample.at_ns) {
            kept.push(*sample);
        }
    }
    let gap_ns = binning.length_ns.get().saturating_mul(GAP_BINS);
    let parts = kept.chunk_by(|before, after| {
        !after.is_reset_after(before)
            && after.busy_ns.is_some() == before.busy_ns.is_some()
            && after.last_ns.is_some() == before.last_ns.is_some()
            && after.at_ns.saturating_sub(before.at_ns) <= gap_ns
    });
    let mut found: Vec<Bin> = Vec::new();
    for part in parts {
        if let Some(curve) = Curve::through(part) {
            add(&mut found, part, &curve, binning);
        }
    }
    found
}

fn add(found: &mut Vec<Bin>, samples: &[Sample], curve: &Curve, binning: Binning) {
    let length_ns = binning.length_ns.get();
    let Some((from, until)) = curve.span() else { return };
    let has_busy = samples.first().is_some_and(|sample| sample.busy_ns.is_some());
    let mut next = binning.first_from(from);
    while let Some((start_ns, end_ns)) = next.and_then(|start| Some((start, start.checked_add(length_ns)?))) {
        if end_ns > until {
            return;
        }
        next = Some(end_ns);
        let is_read = samples
            .get(samples.partition_point(|sample| sample.at_ns <= start_ns))
            .is_some_and(|sample| sample.at_ns <= end_ns);
        let (true, Some(begin), Some(end)) = (is_read, curve.at(start_ns), curve.at(end_ns)) else {
            continue;
        };
        let (count, busy_ns) = (end.0 - begin.0, end.1 - begin.1);
        found.push(Bin {
            start_ns,
            rate: count / (float(length_ns) / NANOSECONDS),
            busy_rate: (has_busy && count > 0.0 && busy_ns > 0.0).then(|| count / (busy_ns / NANOSECONDS)),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(at_ms: u64, count: u64) -> Sample {
        Sample {
            at_ns: at_ms * MS,
            count,
            busy_ns: None,
            last_ns: None,
        }
    }

    fn rates(samples: &[Sample], length_ms: u64) -> Vec<(u64, i64)> {
        let binning = Binning {
            length_ns: NonZeroU64::new(length_ms * MS).unwrap(),
            origin_ns: 0,
        };
        bins(samples, binning)
            .iter()
            .map(|bin| (bin.start_ns / MS, crate::number::whole(bin.rate.round())))
            .collect()
    }

    /// Bins of a counter of 1,000 units a second, of which an edge is known to within a unit, begin
    /// at these ms.
    fn steady(samples: &[Sample], length_ms: u64, starts: &[u64]) {
        let found = rates(samples, length_ms);
        let unit = i64::try_from(1000 / length_ms).unwrap();
        assert!(found.iter().all(|(_, rate)| (rate - 1000).abs() <= unit), "{found:?}");
        let found: Vec<u64> = found.iter().map(|(start, _)| *start).collect();
        assert_eq!(found, starts);
    }

    #[test]
    fn irregular_samples_of_a_steady_counter_give_steady_rates() {
        let samples: Vec<Sample> = [0, 130, 700, 1100, 1990, 2500, 3000].map(|ms| at(ms, ms)).to_vec();
        steady(&samples, 1000, &[0, 1000, 2000]);
        steady(&samples, 500, &[0, 500, 1000, 1500, 2000, 2500]);
    }

    #[test]
    fn a_bin_begins_at_the_origin() {
        let samples: Vec<Sample> = (0..40).map(|tick| at(tick * 100, tick * 100)).collect();
        let starts: Vec<u64> = bins(&samples, Binning::seconds(7_300 * MS))
            .iter()
            .map(|bin| bin.start_ns / MS)
            .collect();
        assert_eq!(starts, [300, 1300, 2300]);
    }

    #[test]
    fn a_bin_without_samples_is_absent_and_one_that_stood_still_is_zero() {
        let gap: Vec<Sample> = [0, 500, 1000, 5000, 5500, 6000, 6500, 7000]
            .map(|ms| at(ms, ms))
            .to_vec();
        steady(&gap, 1000, &[0, 5000, 6000]);
        let sparse: Vec<Sample> = (0..4).map(|second| at(second * 1000, second * 9)).collect();
        let found = rates(&sparse, 500);
        assert_eq!(found.iter().map(|bin| bin.0).collect::<Vec<_>>(), [500, 1500, 2500]);
        // An edge lies in the middle of nine units, and each is known to within one.
        assert!(found.iter().all(|bin| (7..=11).contains(&bin.1)), "{found:?}");
        let still: Vec<Sample> = (0..9).map(|tick| at(tick * 500, 500 * tick.min(4))).collect();
        let found = rates(&still, 1000);
        assert_eq!(found[2..], [(2000, 0), (3000, 0)]);
        assert!(found[..2].iter().all(|(_, rate)| (rate - 1000).abs() <= 1), "{found:?}");
    }

    #[test]
    fn a_reset_of_the_counter_loses_the_bins_around_it_alone() {
        let counts = [1000, 1500, 2000, 2500, 3000, 10, 510, 1010, 1510, 2010];
        let samples: Vec<Sample> = (0..).zip(counts).map(|(tick, count)| at(tick * 500, count)).collect();
        steady(&samples, 1000, &[0, 1000, 3000]);
    }

    #[test]
    fn samples_out_of_order_are_left_out() {
        let samples = [at(0, 0), at(500, 500), at(400, 9999), at(500, 7), at(1000, 1000)];
        steady(&samples, 1000, &[0]);
        assert_eq!(rates(&[], 1000), []);
    }

    #[test]
    fn steps_longer_than_a_third_of_a_bin_give_a_steady_rate() {
        let samples: Vec<Sample> = (0..200).map(|tick| at(tick * 50, tick * 50 / 300)).collect();
        let rates = bins(&samples, Binning::seconds(0));
        assert_eq!(rates.len(), 8);
        // Each edge is known to within the 50 ms between samples, a sixth of a step.
        for bin in &rates {
            assert!((bin.rate - 1.0 / 0.3).abs() < 2.0 / 6.0, "{bin:?}");
        }
        let mean = rates.iter().map(|bin| bin.rate).sum::<f64>() / 8.0;
        assert!((mean - 1.0 / 0.3).abs() < 2.0 / 6.0 / 8.0, "{mean}");
    }

    #[test]
    fn the_rate_per_busy_second_is_that_of_the_work_and_not_of_the_load() {
        let samples: Vec<Sample> = (0..=40_u64)
            .map(|tick| {
                let count = tick.min(20) * 10 + tick.saturating_sub(20) * 5;
                Sample {
                    at_ns: tick * 100 * MS,
                    count,
                    busy_ns: Some(count * 4 * MS),
                    last_ns: None,
                }
            })
            .collect();
        let found = bins(&samples, Binning::seconds(0));
        let pairs: Vec<(f64, f64)> = found.iter().map(|bin| (bin.rate, bin.busy_rate.unwrap())).collect();
        for (pair, rate) in pairs.iter().zip([100.0, 100.0, 50.0, 50.0]) {
            // What a unit at an edge does to the rate, it does to the busy time.
            assert!(
                (pair.0 - rate).abs() < 1.0 && (pair.1 - 250.0).abs() < 1e-6,
                "{pairs:?}"
            );
        }
    }
}
