//! How long the target stood still while the profiler started and stopped.

use crate::arms::Times;
use crate::number::median;
use crate::number::{float, index, whole};
use crate::sample::Sample;

const MILLISECOND: u64 = 1_000_000;

/// A time in which the counter was read and did not move, in ns.
#[derive(Clone, Copy, Debug)]
struct Pause {
    from: u64,
    until: u64,
}

impl Pause {
    fn length(self) -> u64 {
        self.until.saturating_sub(self.from)
    }
}

/// Milliseconds within the ramps in which the counter stood still for longer than its own steps
/// explain.
///
/// A counter of steps stands still within each of them. Its usual pause is that which nine of ten
/// pauses before attaching do not exceed; a pause counts where it is more than twice as long and
/// one spacing of samples longer, less the usual one.
pub fn stall_milliseconds(samples: &[Sample], times: &Times) -> u64 {
    let pauses: Vec<Pause> = samples
        .chunk_by(|before, after| before.count == after.count)
        .filter_map(|still| {
            Some(Pause {
                from: still.first()?.at_ns,
                until: still.last()?.at_ns,
            })
        })
        .collect();
    let usual = usual(&pauses, times.attach_ns);
    let least = usual.saturating_mul(2).saturating_add(spacing(samples));
    let stalled: u64 = pauses
        .iter()
        .filter(|pause| pause.length() > least)
        .map(|pause| {
            let in_ramps: u64 = times
                .ramps()
                .map(|(from, until)| pause.until.min(until).saturating_sub(pause.from.max(from)))
                .sum();
            in_ramps.min(pause.length().saturating_sub(usual))
        })
        .sum();
    stalled.checked_div(MILLISECOND).unwrap_or(0)
}

/// The pause that nine of ten before attaching do not exceed, in ns.
fn usual(pauses: &[Pause], attach_ns: u64) -> u64 {
    let mut lengths: Vec<u64> = pauses
        .iter()
        .filter(|pause| pause.until <= attach_ns)
        .map(|pause| pause.length())
        .collect();
    lengths.sort_unstable();
    let at = index(crate::number::count(lengths.len().saturating_sub(1)) * 0.9);
    lengths.get(at).copied().unwrap_or(0)
}

fn spacing(samples: &[Sample]) -> u64 {
    let mut gaps: Vec<f64> = samples
        .iter()
        .zip(samples.iter().skip(1))
        .map(|(before, after)| float(after.at_ns.saturating_sub(before.at_ns)))
        .collect();
    median(&mut gaps).map_or(0, |gap| u64::try_from(whole(gap)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = MILLISECOND;

    /// Samples each 20 ms of a target whose steps take `step_ms`, and which stands still in the
    /// given times.
    fn samples(step_ms: u64, stalls_ms: &[(u64, u64)]) -> Vec<Sample> {
        (0..1000)
            .map(|tick| {
                let at_ms = tick * 20;
                let stalled: u64 = stalls_ms
                    .iter()
                    .map(|&(from, until)| at_ms.min(until).saturating_sub(from))
                    .sum();
                Sample {
                    at_ns: at_ms * MS,
                    count: (at_ms - stalled) / step_ms,
                    busy_ns: None,
                    last_ns: None,
                }
            })
            .collect()
    }

    const TIMES: Times = Times {
        attach_ns: 5000 * MS,
        open_ns: 7000 * MS,
        close_ns: Some(12_000 * MS),
        detached_ns: Some(14_000 * MS),
    };

    #[test]
    fn standing_still_in_both_ramps_adds_up_to_within_samples() {
        let stalls = [(5500, 5700), (12_100, 12_900)];
        for step_ms in [1, 100, 300] {
            let stalled = stall_milliseconds(&samples(step_ms, &stalls), &TIMES);
            // A short stall within one step of three tenths is not told from a slow step.
            let expected = if step_ms == 300 { 800 } else { 1000 };
            assert!(stalled.abs_diff(expected) <= 60, "{step_ms}: {stalled}");
        }
    }

    #[test]
    fn steps_of_the_usual_length_are_no_stall() {
        for step_ms in [1, 15, 50, 300, 900] {
            assert_eq!(stall_milliseconds(&samples(step_ms, &[]), &TIMES), 0, "{step_ms}");
        }
    }

    #[test]
    fn standing_still_outside_of_ramps_does_not_count() {
        let stalled = samples(1, &[(2000, 3000), (8000, 11_000), (15_000, 16_000)]);
        assert_eq!(stall_milliseconds(&stalled, &TIMES), 0);
        assert_eq!(stall_milliseconds(&[], &TIMES), 0);
    }

    #[test]
    fn a_profiler_that_does_not_let_go_stalls_until_the_last_sample() {
        let times = Times {
            detached_ns: None,
            ..TIMES
        };
        let stalled = stall_milliseconds(&samples(1, &[(12_000, 30_000)]), &times);
        assert!(stalled.abs_diff(7980) <= 20, "{stalled}");
    }
}
