//! How many pods of a stratum are drawn, and how probable that makes each.

use flopwatch_api::schedule::PerRun;

use crate::history::DAY_SECONDS;

/// How many of `pods` pods are drawn in a slot: the share that is asked for, rounded up and within
/// its bounds.
pub(crate) fn quota(per_run: &PerRun, pods: i64) -> i64 {
    let share = pods.saturating_mul(i64::from(per_run.percent)).saturating_add(99) / 100;
    let bounded = share.max(i64::from(per_run.minimum)).min(i64::from(per_run.maximum));
    bounded.clamp(0, pods.max(0))
}

/// How often a pod can have a window, whatever is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Length of a window, in seconds.
    pub(crate) window_seconds: i64,
    /// Time between two slots, in seconds.
    pub(crate) period_seconds: i64,
    /// How long a pod rests after a window, in seconds.
    pub(crate) rest_seconds: i64,
    /// How long a pod may be in windows in a day, in seconds.
    pub(crate) seconds_per_day: Option<i64>,
}

impl Pace {
    /// How probable it is at any time of a period that a pod is in a window, in billionths: `drawn`
    /// of `pods` pods have one window in each period, or in every second one. Where pods rest for
    /// so long that there are not enough to draw, each has a window as soon as it may.
    pub(crate) fn probability_per_billion(self, drawn: i64, pods: i64, halved: bool) -> i32 {
        let period = self.period_seconds.max(1);
        let window = self.window_seconds.clamp(0, period);
        let chosen = |of: i64, among: i64| {
            let window = 1_000_000_000 * i128::from(of.max(0)) * i128::from(window);
            let periods = i128::from(among.max(1)) * i128::from(period) * if halved { 2 } else { 1 };
            (2 * window + periods) / (2 * periods)
        };
        let slots = (self
            .window_seconds
            .saturating_add(self.rest_seconds)
            .saturating_add(period - 1)
            / period)
            .max(1);
        let rested = if self.rest_seconds > 0 {
            chosen(1, slots)
        } else {
            1_000_000_000
        };
        let allowed = self.seconds_per_day.map_or(1_000_000_000, |seconds| {
            let windows = seconds / self.window_seconds.max(1);
            chosen(windows.saturating_mul(period), DAY_SECONDS)
        });
        let probability = chosen(drawn, pods).min(rested).min(allowed);
        i32::try_from(probability.clamp(0, 1_000_000_000)).unwrap_or(1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace {
        window_seconds: 10,
        period_seconds: 900,
        rest_seconds: 0,
        seconds_per_day: None,
    };

    #[test]
    fn the_share_is_rounded_up_and_bounded_by_what_is_asked_for_and_what_there_is() {
        let of = |percent, minimum, maximum, pods| {
            let per_run = PerRun {
                percent,
                minimum,
                maximum,
            };
            quota(&per_run, pods)
        };
        assert_eq!(of(1, 1, 10, 0), 0);
        assert_eq!(of(1, 1, 10, 1), 1);
        assert_eq!(of(1, 0, 10, 101), 2);
        assert_eq!(of(1, 1, 10, 5_000), 10);
        assert_eq!(of(1, 4, 10, 3), 3);
        assert_eq!(of(50, 0, 10, 7), 4);
        assert_eq!(of(1, 20, 10, 50), 10, "the maximum goes before the minimum");
    }

    #[test]
    fn a_probability_is_the_share_of_pods_times_the_share_of_time() {
        assert_eq!(PACE.probability_per_billion(10, 1_000, false), 111_111);
        assert_eq!(PACE.probability_per_billion(10, 1_000, true), 55_556);
        let whole = Pace {
            window_seconds: 1_000,
            ..PACE
        };
        assert_eq!(whole.probability_per_billion(1, 1, false), 1_000_000_000);
        let none = Pace {
            period_seconds: 0,
            ..PACE
        };
        assert_eq!(none.probability_per_billion(1, 0, false), 1_000_000_000);
    }

    #[test]
    fn no_pod_has_windows_more_often_than_it_rests_and_its_day_allow() {
        let rests = Pace {
            rest_seconds: 3_600,
            ..PACE
        };
        // One window in five slots: four are ten seconds short.
        assert_eq!(rests.probability_per_billion(1, 2, false), 2_222_222);
        assert_eq!(rests.probability_per_billion(1, 10, false), 1_111_111);
        let limited = Pace {
            seconds_per_day: Some(35),
            ..PACE
        };
        // Three windows in 96 slots.
        assert_eq!(limited.probability_per_billion(1, 1, false), 347_222);
    }
}
