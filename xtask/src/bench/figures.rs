//! What the runs of a side took.

use anyhow::{Context as _, Result};
use flopwatch_toolchain::command::Run;
use serde_json::Value;
use std::time::Duration;

/// Longest run of a side: some rivals take minutes.
const RUN_TIMEOUT: Duration = Duration::from_mins(40);

/// The fastest run of a side, and the largest peak of memory of its runs.
#[derive(Debug, Clone)]
pub(super) struct Figures {
    pub(super) what: String,
    pub(super) seconds: f64,
    /// Seconds of each run, in their order.
    pub(super) rounds: Vec<f64>,
    /// Processor time of all threads of each run, in their order.
    pub(super) cpu_rounds: Vec<f64>,
    /// Of that the time outside of the kernel.
    pub(super) user_rounds: Vec<f64>,
    pub(super) peak_bytes: u64,
    pub(super) counts: Value,
}

impl Figures {
    /// The least processor time of a run.
    pub(super) fn cpu_seconds(&self) -> f64 {
        spread(&self.cpu_rounds).least
    }

    pub(super) fn count(&self, name: &str) -> f64 {
        self.counts.pointer(name).and_then(Value::as_f64).unwrap_or(f64::NAN)
    }
}

/// Runs a side once.
pub(super) fn measure(what: &str, run: Run) -> Result<Figures> {
    let line = run.deadline(RUN_TIMEOUT).output()?;
    let counts: Value = serde_json::from_str(line.trim()).with_context(|| format!("{what} said {line:?}"))?;
    let time = |name| counts.get(name).and_then(Value::as_f64).context("no time");
    let [seconds, cpu_seconds, user_seconds] = [time("seconds")?, time("cpu_seconds")?, time("user_seconds")?];
    let peak_bytes = counts.get("peak_bytes").and_then(Value::as_u64).context("no memory")?;
    Ok(Figures {
        what: what.to_owned(),
        seconds,
        rounds: vec![seconds],
        cpu_rounds: vec![cpu_seconds],
        user_rounds: vec![user_seconds],
        peak_bytes,
        counts,
    })
}

/// Keeps the fastest of the runs, the times of all, and the largest peak.
pub(super) fn best(best: &mut Option<Figures>, next: Figures) {
    let Some(known) = best.take() else {
        *best = Some(next);
        return;
    };
    let peak_bytes = known.peak_bytes.max(next.peak_bytes);
    let [rounds, cpu_rounds, user_rounds] = [
        (&known.rounds, &next.rounds),
        (&known.cpu_rounds, &next.cpu_rounds),
        (&known.user_rounds, &next.user_rounds),
    ]
    .map(|(known, next)| [known.as_slice(), next.as_slice()].concat());
    let faster = if known.seconds <= next.seconds { known } else { next };
    *best = Some(Figures {
        rounds,
        cpu_rounds,
        user_rounds,
        peak_bytes,
        ..faster
    });
}

/// How far values lie apart.
#[derive(Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) least: f64,
    pub(super) median: f64,
    pub(super) most: f64,
}

/// How many times as much a side took as ours, round by round: of what changed between two rounds,
/// both sides of one had the same.
pub(super) fn ratios(side: &[f64], ours: &[f64]) -> Spread {
    let ratios: Vec<f64> = side.iter().zip(ours).map(|(side, ours)| side / ours).collect();
    spread(&ratios)
}

/// Of no values: NaN.
pub(super) fn spread(values: &[f64]) -> Spread {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    let last = sorted.len().saturating_sub(1);
    Spread {
        least: at(0),
        median: f64::midpoint(at(last / 2), at(last.div_ceil(2))),
        most: at(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seconds: f64, cpu_seconds: f64, peak_bytes: u64) -> Figures {
        Figures {
            what: "ours".to_owned(),
            seconds,
            rounds: vec![seconds],
            cpu_rounds: vec![cpu_seconds],
            user_rounds: vec![cpu_seconds / 2.0],
            peak_bytes,
            counts: Value::Null,
        }
    }

    #[test]
    fn the_fastest_run_counts_and_every_run_is_kept_in_its_order() {
        let mut figures = None;
        for next in [run(2.0, 3.0, 10), run(1.0, 4.0, 30), run(1.5, 2.5, 20)] {
            best(&mut figures, next);
        }
        let figures = figures.unwrap();
        assert_eq!(
            (figures.seconds, figures.cpu_seconds(), figures.peak_bytes),
            (1.0, 2.5, 30)
        );
        assert_eq!(figures.rounds, [2.0, 1.0, 1.5]);
        assert_eq!(figures.cpu_rounds, [3.0, 4.0, 2.5]);
        assert_eq!(figures.user_rounds, [1.5, 2.0, 1.25]);
    }

    #[test]
    fn the_median_lies_in_the_middle_of_an_even_number_of_values() {
        let of = |least, median, most| Spread { least, median, most };
        assert_eq!(spread(&[3.0, 1.0, 2.0]), of(1.0, 2.0, 3.0));
        assert_eq!(spread(&[4.0, 1.0, 2.0, 3.0]), of(1.0, 2.5, 4.0));
        assert!(spread(&[]).median.is_nan());
        assert_eq!(ratios(&[2.0, 9.0, 8.0], &[1.0, 3.0, 2.0]), of(2.0, 3.0, 4.0));
    }
}
