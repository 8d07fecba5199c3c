//! What a window costs its target, by a counter of the target's own work: the choice of the
//! counter, the watch over the window, the verdict. The statistics are those of
//! [`flopwatch_overhead`]; here is what they are applied to. No I/O: times are ns since 1970, as
//! samples carry them. Public for the bench that holds it against real programs.

mod choice;
mod period;
mod verdict;

use flopwatch_api::overhead::{CaptureOverhead, OverheadAction, OverheadSignal, OverheadSpec};
use flopwatch_overhead::{
    Abort, AbortRule, Arms, Binning, Budget, Decision, Measure, Sample, Times, bins, decide, stall_milliseconds,
};
use std::num::NonZeroU64;
use std::time::Duration;

pub use choice::NoSignal;
pub(crate) use choice::{Choice, calls, choose, length_for};
pub(crate) use period::hint;
pub(crate) use verdict::unwatched;

/// Longest time between two looks at a window that is watched.
pub const MAX_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Bins before the one that is looked at whose readings are looked at too.
const RECENT_BINS: u64 = 4;

/// When a profiler began to attach and when its window opened, in ns since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    /// The profiler began to attach.
    pub attach_ns: u64,
    /// The window opened.
    pub open_ns: u64,
}

/// Watches how fast a target is, from before the profiler attaches until it is gone.
#[derive(Debug)]
pub struct Watch {
    pub(crate) signal: OverheadSignal,
    spec: OverheadSpec,
    length_ns: NonZeroU64,
    samples: Vec<Sample>,
    times: Times,
    /// Ends the window; none where that was not asked for, or where too little is known of the time
    /// before.
    rule: Option<AbortRule>,
    /// The end of the last bin that the rule has seen.
    seen_ns: u64,
    stopped: Option<Abort>,
}

impl Watch {
    /// Of a window that has opened, by a counter as it was read before.
    pub(crate) fn open(signal: OverheadSignal, choice: Choice, spec: &OverheadSpec, opened: Opened) -> Self {
        let Opened { attach_ns, open_ns } = opened;
        let times = Times {
            attach_ns,
            open_ns,
            close_ns: None,
            detached_ns: None,
        };
        let Choice { samples, length_ns } = choice;
        let found = bins(&samples, binning(length_ns, open_ns));
        let before = Arms::of(&found, length_ns, &times).before;
        let allowed = u32::try_from(spec.during_basis_points).unwrap_or(0);
        let rule = (spec.action == OverheadAction::Stop)
            .then(|| AbortRule::new(&before, Measure::PerSecond, length_ns, allowed))
            .flatten();
        Self {
            signal,
            spec: spec.clone(),
            length_ns,
            samples,
            times,
            rule,
            seen_ns: open_ns,
            stopped: None,
        }
    }

    /// Length of a bin.
    pub(crate) const fn bin_ns(&self) -> u64 {
        self.length_ns.get()
    }

    /// Since when samples are wanted.
    pub(crate) fn since_ns(&self) -> u64 {
        self.samples.last().map_or(0, |sample| sample.at_ns.saturating_add(1))
    }

    /// Takes samples in.
    pub(crate) fn take(&mut self, samples: impl IntoIterator<Item = Sample>) {
        self.samples.extend(samples);
    }

    /// Whether the window is to be ended now, by what was taken in so far.
    pub fn inspect(&mut self) -> Option<Abort> {
        let rule = self.rule.as_mut()?;
        // A bin that begins at the last one's end needs what was read before it, and one that ends
        // in a step needs the pace of those before.
        let before_ns = self
            .seen_ns
            .saturating_sub(self.length_ns.get().saturating_mul(RECENT_BINS));
        let from = self.samples.partition_point(|sample| sample.at_ns < before_ns);
        let recent = self.samples.get(from.saturating_sub(2)..)?;
        for bin in bins(recent, binning(self.length_ns, self.times.open_ns)) {
            if bin.start_ns < self.seen_ns {
                continue;
            }
            self.seen_ns = bin.start_ns.saturating_add(self.length_ns.get());
            if let Some(abort) = rule.push(&bin) {
                self.rule = None;
                self.stopped = Some(abort);
                return Some(abort);
            }
        }
        None
    }

    /// The window has closed, at a time in ns since 1970.
    pub const fn close(&mut self, at_ns: u64) {
        self.times.close_ns = Some(at_ns);
    }

    /// The profiler is gone since a time in ns since 1970.
    pub const fn detached(&mut self, at_ns: u64) {
        self.times.detached_ns = Some(at_ns);
    }

    /// Until when it is to go on with samples, in ns since 1970.
    pub fn until_ns(&self) -> u64 {
        const SECOND: u64 = 1_000_000_000;
        let after = u64::try_from(self.spec.after_seconds)
            .unwrap_or(0)
            .saturating_mul(SECOND);
        self.times.detached_ns.map_or(0, |gone| gone.saturating_add(after))
    }

    /// The verdict. What ended the window stands, whatever the rest of it shows.
    pub fn judge(&self) -> CaptureOverhead {
        let judged = self.judged();
        match self.stopped {
            Some(abort) => verdict::stopped(judged, abort),
            None => judged,
        }
    }

    fn judged(&self) -> CaptureOverhead {
        let found = bins(&self.samples, binning(self.length_ns, self.times.open_ns));
        let arms = Arms::of(&found, self.length_ns, &self.times);
        let budget = Budget {
            during_basis_points: u32::try_from(self.spec.during_basis_points).unwrap_or(0),
            ..Budget::default()
        };
        let decision: Decision = decide(&arms, Measure::PerSecond, &budget);
        let stall = stall_milliseconds(&self.samples, &self.times);
        verdict::of_window(self, &arms, &decision, stall)
    }
}

/// Bins of which one begins with the window.
const fn binning(length_ns: NonZeroU64, open_ns: u64) -> Binning {
    Binning {
        length_ns,
        origin_ns: open_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flopwatch_api::overhead::{OverheadReason, OverheadVerdict, SignalSource};

    const MS: u64 = 1_000_000;
    const NOW: u64 = 1_790_000_000_000 * MS;

    /// Readings each 250 ms of a counter with so many steps per second at each time in ms.
    fn readings(until_ms: u64, rate: impl Fn(u64) -> u64) -> Vec<Sample> {
        let mut thousandths = 0;
        let mut samples = Vec::new();
        for at in 0..=until_ms {
            if at % 250 == 0 {
                samples.push(Sample {
                    at_ns: NOW + at * MS,
                    count: thousandths / 1000,
                    busy_ns: None,
                    last_ns: None,
                });
            }
            // A little unsteady, as programs are.
            thousandths += rate(at) * (if at / 500 % 2 == 0 { 99 } else { 101 }) / 100;
        }
        samples
    }

    fn signal() -> OverheadSignal {
        OverheadSignal {
            source: SignalSource::Recorder,
            name: "step".to_owned(),
        }
    }

    /// A window from second 20.5 to 30.5, whose profiler attached at second 20 and was gone at
    /// second 31.
    fn watched(samples: &[Sample], spec: &OverheadSpec) -> (Watch, Option<u64>) {
        let at = |ms: u64| NOW + ms * MS;
        let before: Vec<_> = samples.iter().copied().filter(|one| one.at_ns <= at(20_000)).collect();
        let length_ns = NonZeroU64::new(250 * MS).unwrap();
        let choice = Choice {
            samples: before,
            length_ns,
        };
        let mut watch = Watch::open(
            signal(),
            choice,
            spec,
            Opened {
                attach_ns: at(20_000),
                open_ns: at(20_500),
            },
        );
        for sample in samples.iter().filter(|one| one.at_ns > at(20_000)) {
            watch.take([*sample]);
            if sample.at_ns <= at(30_500) && watch.inspect().is_some() {
                let ended = sample.at_ns;
                watch.close(ended);
                return (watch, Some((ended - at(20_500)) / MS));
            }
        }
        watch.close(at(30_500));
        watch.detached(at(31_000));
        (watch, None)
    }

    #[test]
    fn a_window_that_costs_nothing_is_within_its_budget() {
        let (watch, ended) = watched(&readings(40_000, |_| 100), &OverheadSpec::default());
        assert_eq!(ended, None);
        let told = watch.judge();
        says(&told, OverheadVerdict::Within, OverheadReason::UpperEndWithin);
        assert!(told.slowdown_basis_points.unwrap().abs() < 100, "{told:?}");
        assert!(told.low.unwrap() <= told.high.unwrap());
        let bins = told.bins.unwrap();
        assert!(bins.before > 60 && bins.during >= 38 && bins.after > 20, "{bins:?}");
    }

    #[test]
    fn a_window_that_slows_its_target_is_ended_within_seconds_and_says_so() {
        let slow = readings(40_000, |at| if at > 20_500 { 80 } else { 100 });
        let (watch, ended) = watched(&slow, &OverheadSpec::default());
        assert!(ended.unwrap() <= 3_500, "{ended:?}");
        let told = watch.judge();
        says(&told, OverheadVerdict::Exceeded, OverheadReason::Stopped);
        assert!(told.message.contains("after"), "{}", told.message);
    }

    #[test]
    fn a_window_that_is_only_to_be_reported_goes_on_and_is_judged() {
        let slow = readings(40_000, |at| if (20_500..31_000).contains(&at) { 80 } else { 100 });
        let spec = OverheadSpec {
            action: OverheadAction::Report,
            ..OverheadSpec::default()
        };
        let (watch, ended) = watched(&slow, &spec);
        assert_eq!(ended, None);
        let told = watch.judge();
        says(&told, OverheadVerdict::Exceeded, OverheadReason::LowerEndAbove);
        let slowdown = told.slowdown_basis_points.unwrap();
        assert!((2_400..2_600).contains(&slowdown), "{slowdown}");
    }

    /// What is told of a window from second 20.5 to a time in ms, by bins of that length.
    fn short(until_ms: u64, bin_ms: u64) -> CaptureOverhead {
        let at = |ms: u64| NOW + ms * MS;
        let (before, later): (Vec<_>, Vec<_>) = readings(40_000, |_| 100)
            .into_iter()
            .partition(|one| one.at_ns <= at(20_000));
        let choice = Choice {
            samples: before,
            length_ns: NonZeroU64::new(bin_ms * MS).unwrap(),
        };
        let opened = Opened {
            attach_ns: at(20_000),
            open_ns: at(20_500),
        };
        let mut watch = Watch::open(signal(), choice, &OverheadSpec::default(), opened);
        watch.take(later);
        watch.close(at(until_ms));
        watch.detached(at(until_ms + 500));
        watch.judge()
    }

    #[track_caller]
    fn says(told: &CaptureOverhead, verdict: OverheadVerdict, reason: OverheadReason) {
        assert_eq!((told.verdict, told.reason), (verdict, reason));
    }

    #[test]
    fn a_window_that_is_shorter_than_a_bin_cannot_be_judged_and_is_not_blind() {
        let told = short(23_500, 5_000);
        says(&told, OverheadVerdict::Inconclusive, OverheadReason::TooFewBins);
        assert_eq!((told.slowdown_basis_points, told.bins.unwrap().during), (None, 0));
        assert!(told.message.contains("too short a time"), "{}", told.message);
    }

    #[test]
    fn a_window_of_three_bins_has_an_interval_that_a_schedule_can_put_together_with_others() {
        let told = short(23_500, 1_000);
        says(&told, OverheadVerdict::Inconclusive, OverheadReason::TooFewBins);
        assert!(told.slowdown_basis_points.unwrap().abs() < 300, "{told:?}");
        assert!(told.low.unwrap() <= told.high.unwrap());
        assert!(told.message.contains("puts several together"), "{}", told.message);
    }

    #[test]
    fn a_load_that_stays_changed_is_not_held_against_the_profiler() {
        let changed = readings(40_000, |at| if at > 25_000 { 70 } else { 100 });
        let spec = OverheadSpec {
            action: OverheadAction::Report,
            ..OverheadSpec::default()
        };
        let told = watched(&changed, &spec).0.judge();
        says(&told, OverheadVerdict::Inconclusive, OverheadReason::LoadChanged);
    }
}
