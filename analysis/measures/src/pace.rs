//! How long an iteration takes once the program has warmed up.

use flopwatch_model::Timeline;
use flopwatch_report::NotCaptured;

use crate::interval::Interval;
use crate::iteration::{self, Iteration, IterationOptions};
use crate::work::GpuWork;

/// Iterations of the loop that has most, without the first one and without those in which code was
/// compiled or loaded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pace {
    /// How many there are.
    pub iterations: u64,
    /// Iterations that were left out: the first, and those in which code was compiled or loaded.
    pub left_out: u64,
    /// Mean length in ns; `None` without any.
    pub mean_ns: Option<u64>,
    /// When they are.
    pub times: Vec<Interval>,
    /// What the iterations were found from, for people.
    pub found_by: String,
    /// What may be wrong with them, in sentences.
    pub cautions: Vec<String>,
    /// Why there are none.
    pub not_found: Option<NotCaptured>,
}

impl Pace {
    /// Of `timeline`, without the iterations that `is_cold` picks. Needs what [`iteration::of`]
    /// needs.
    pub fn of(timeline: &Timeline, work: &GpuWork, is_cold: impl Fn(Interval) -> bool) -> Self {
        let found = iteration::of_work(timeline, work, &IterationOptions::default());
        let all: &[Iteration] = found.loops().max_by_key(|list| list.len()).unwrap_or(&[]);
        let warm = all.iter().skip(1).map(|iteration| iteration.time);
        let times: Vec<Interval> = warm.filter(|time| !is_cold(*time)).collect();
        let lengths: Vec<u64> = times.iter().map(|time| time.len()).collect();
        let count = u64::try_from(lengths.len()).unwrap_or(u64::MAX);
        let total = lengths.iter().copied().fold(0, u64::saturating_add);
        let not_found = lengths.is_empty().then(|| {
            let reason = match (&found.not_found, all) {
                (Some(missing), _) => missing.reason.as_str(),
                (None, [_]) => "the capture holds one iteration, and the first one does not count; capture more of them",
                (None, _) => {
                    "code was compiled or loaded in every iteration but the first; capture more of them, after a warm-up"
                }
            };
            NotCaptured::new("the length of an iteration", reason)
        });
        Self {
            iterations: count,
            left_out: u64::try_from(all.len()).unwrap_or(u64::MAX) - count,
            mean_ns: total.checked_div(count),
            times,
            found_by: found.name,
            cautions: found.cautions,
            not_found,
        }
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::Track;

    use super::*;

    #[test]
    fn the_first_iteration_and_cold_ones_do_not_count() {
        let mut trace = Trace::new();
        let steps = trace.thread(1, 1, Track::Annotation);
        for (number, start, end) in [(0, 0, 1000), (1, 1000, 1100), (2, 1100, 2000), (3, 2000, 2200)] {
            trace.step(steps, number, start, end);
        }
        let timeline = trace.build();
        let pace = Pace::of(&timeline, &GpuWork::of(&timeline), |time| time.start == 1100);
        assert_eq!((pace.iterations, pace.left_out), (2, 2));
        assert_eq!(pace.mean_ns, Some(150));
        let cold = Pace::of(&timeline, &GpuWork::of(&timeline), |_| true)
            .not_found
            .unwrap();
        assert!(cold.reason.starts_with("code was compiled"), "{}", cold.reason);
        let none = Pace::of(&Timeline::default(), &GpuWork::default(), |_| false);
        assert!(none.mean_ns.is_none() && none.not_found.is_some());
    }

    #[test]
    fn a_capture_of_one_iteration_says_so() {
        let mut trace = Trace::new();
        let steps = trace.thread(1, 1, Track::Annotation);
        trace.step(steps, 0, 0, 1000);
        let timeline = trace.build();
        let pace = Pace::of(&timeline, &GpuWork::of(&timeline), |_| false);
        let reason = pace.not_found.unwrap().reason;
        assert!(reason.starts_with("the capture holds one iteration"), "{reason}");
    }
}
