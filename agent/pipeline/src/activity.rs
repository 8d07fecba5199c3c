//! Signs, independent of the profiler, that a container worked within a window.
//!
//! They tell an idle program from a profiler that missed its work ([`crate::verify`]).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::transform::Samples;

/// The series of the driver's account of the processes' kernels.
const PROCESS_UTILIZATION: &str = "process_sm_utilization";
/// A sample of the driver covers up to this much time before it.
const SAMPLE_DURATION: Duration = Duration::from_secs(1);

/// What was seen beside the collection while its window was open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivityEvidence {
    /// Largest share of one of the driver's samples in which kernels of the container's processes
    /// ran, in percent; none where no CUDA is mapped, or the driver keeps no account of processes.
    pub gpu_percent: Option<u32>,
    /// Processor time of the container's processes in ms; none where it could not be read.
    pub processor_ms: Option<u64>,
    /// Length of the window in ms.
    pub window_ms: u64,
}

impl ActivityEvidence {
    /// Those of a window, from the samples taken in it. `uses_cuda`: the container has mapped
    /// libcuda, without which what its processes did on a GPU was no CUDA. `processor`: the time
    /// that its processes had used at its begin and at its end.
    pub fn of(samples: &Samples, uses_cuda: bool, processor: (Option<Duration>, Option<Duration>)) -> Self {
        let used = processor
            .0
            .zip(processor.1)
            .map(|(begin, end)| end.saturating_sub(begin));
        Self {
            gpu_percent: gpu_percent(samples).filter(|_| uses_cuda),
            processor_ms: used.map(milliseconds),
            window_ms: milliseconds(Duration::from_nanos(samples.window_ns)),
        }
    }

    /// That kernels ran, in words; none where nothing says so.
    pub(crate) fn of_gpu(&self) -> Option<String> {
        let percent = self.gpu_percent.filter(|percent| *percent > 0)?;
        Some(format!(
            "the driver saw kernels of the container's processes for up to {percent} % of a sample"
        ))
    }

    /// That the program ran on the processor for a tenth of the window at least, in words; none
    /// where nothing says so.
    pub(crate) fn of_processor(&self) -> Option<String> {
        let used = self
            .processor_ms
            .filter(|used| used.saturating_mul(10) >= self.window_ms.max(1))?;
        Some(format!(
            "the container's processes took {used} ms of processor time in {} ms",
            self.window_ms
        ))
    }
}

/// The largest of those samples that are of the window alone.
fn gpu_percent(samples: &Samples) -> Option<u32> {
    let from = Duration::from_nanos(samples.window_start_utc_ns).saturating_add(SAMPLE_DURATION);
    let until = Duration::from_nanos(samples.window_start_utc_ns.saturating_add(samples.window_ns));
    let series = samples
        .series
        .iter()
        .filter(|series| series.metric == PROCESS_UTILIZATION);
    let points = series.flat_map(|series| series.t_utc_ns.iter().zip(&series.value));
    let within = points.filter(|(at, _)| (from..=until).contains(&Duration::from_nanos(**at)));
    within.map(|(_, ratio)| percent(*ratio)).max()
}

/// A ratio in percent.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and NaN becomes 0; there is no other conversion from a float"
)]
const fn percent(ratio: f64) -> u32 {
    (ratio * 100.0) as u32
}

/// A length in ms.
pub fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::SampledSeries;

    const SECOND: u64 = 1_000_000_000;

    /// Samples of a window from second 100 to second 105.
    fn samples(metric: &str, points: &[(u64, f64)]) -> Samples {
        let (t_utc_ns, value) = points.iter().map(|(second, value)| (second * SECOND, *value)).unzip();
        Samples {
            window_start_utc_ns: 100 * SECOND,
            window_ns: 5 * SECOND,
            series: vec![SampledSeries {
                source: "nvml".to_owned(),
                device: "GPU-1".to_owned(),
                metric: metric.to_owned(),
                unit: "ratio".to_owned(),
                t_utc_ns,
                value,
            }],
            ..Samples::default()
        }
    }

    #[test]
    fn kernels_of_the_processes_within_the_window_are_a_sign() {
        let percent = |metric, points: &[(u64, f64)], cuda| {
            ActivityEvidence::of(&samples(metric, points), cuda, (None, None)).gpu_percent
        };
        let of_processes = "process_sm_utilization";
        assert_eq!(percent(of_processes, &[(102, 0.25), (103, 0.5)], true), Some(50));
        assert_eq!(percent(of_processes, &[(102, 0.0)], true), Some(0));
        assert_eq!(
            percent(of_processes, &[(100, 0.9), (106, 0.9)], true),
            None,
            "of time before or behind it"
        );
        assert_eq!(percent("utilization", &[(102, 0.9)], true), None, "anybody's");
        assert_eq!(percent(of_processes, &[(102, 0.9)], false), None, "no CUDA is mapped");
    }

    #[test]
    fn what_is_not_known_or_next_to_nothing_is_no_sign() {
        let activity = |gpu_percent, processor_ms| ActivityEvidence {
            gpu_percent,
            processor_ms,
            window_ms: 1000,
        };
        assert!(activity(Some(1), None).of_gpu().unwrap().contains("up to 1 %"));
        assert_eq!(activity(Some(0), None).of_gpu(), None);
        assert_eq!(activity(None, Some(1000)).of_gpu(), None);
        assert!(
            activity(None, Some(100))
                .of_processor()
                .unwrap()
                .contains("100 ms of processor time")
        );
        assert_eq!(activity(None, Some(99)).of_processor(), None);
        assert_eq!(ActivityEvidence::default().of_processor(), None);
    }

    #[test]
    fn processor_time_is_what_was_used_between_begin_and_end() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let used = |begin, end| ActivityEvidence::of(&samples("power", &[]), false, (begin, end)).processor_ms;
        assert_eq!(used(seconds(3), seconds(7)), Some(4000));
        assert_eq!(
            used(seconds(7), seconds(3)),
            Some(0),
            "a process that had used most of it has ended"
        );
        assert_eq!(used(None, seconds(7)), None);
    }
}
