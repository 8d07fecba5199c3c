//! The whole output of every workload, held against that of a pod of the same program that nobody
//! profiled.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::soak::both::Counted;
use crate::soak::ground::Ground;
use crate::workload::{Count, counts, silence, was_given_a_child};

/// Longest silence of a workload beyond the longest of the pod that nobody profiled.
const MAX_SILENCE: Duration = Duration::from_secs(5);
/// Least share of that pod's pace.
const MIN_PACE_RATIO: f64 = 0.5;

/// What the output of all workloads says.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Inspection {
    /// Workloads that were read to their end.
    pub workloads: usize,
    /// Longest time in which one of them said nothing, in seconds; they speak ten times a second.
    pub longest_silence_seconds: f64,
    /// Longest silence of the pods that nobody profiled, in seconds.
    pub control_silence_seconds: f64,
    /// Steps per second beside those of the pod of the same program that nobody profiled, in the
    /// same time: the median over the workloads.
    pub median_pace: f64,
    /// Steps per second of the slowest workload, beside those of its program that nobody profiled.
    pub least_pace: f64,
    /// What was wrong.
    pub harmed: Vec<String>,
    /// What stayed behind when all had ended.
    pub orphans: Vec<String>,
    /// The flight recorders beside the workloads' own counts.
    pub counted: Counted,
    /// Flight recorders that have another count.
    pub miscounted: Vec<String>,
}

/// The output of one workload.
#[derive(Clone, Debug)]
pub(super) struct Output {
    ground: Ground,
    name: String,
    counts: Vec<Count>,
    given_a_child: bool,
}

impl Output {
    /// Reads a log.
    pub(super) fn of(ground: Ground, name: &str, log: &str) -> Self {
        Self {
            ground,
            name: name.to_owned(),
            counts: counts(log).into_values().next().unwrap_or_default(),
            given_a_child: was_given_a_child(log),
        }
    }

    fn silence(&self) -> Duration {
        silence(&self.counts)
    }

    fn between(&self, from_ns: u64, to_ns: u64) -> Option<f64> {
        let all = self.counts.iter();
        let mut inside = all.filter(|count| (from_ns..=to_ns).contains(&count.unix_ns));
        let first = inside.next()?;
        let last = inside.next_back()?;
        let seconds = Duration::from_nanos(last.unix_ns.checked_sub(first.unix_ns)?).as_secs_f64();
        let ranges = u32::try_from(last.ranges.checked_sub(first.ranges)?).ok()?;
        (seconds > 1.0).then(|| f64::from(ranges) / seconds)
    }
}

/// Holds outputs against those of the controls, of which each ground has one.
pub(super) fn inspect(outputs: &[Output], controls: &[Output]) -> Inspection {
    let silence = controls.iter().map(Output::silence).max().unwrap_or_default();
    let mut inspection = Inspection {
        workloads: outputs.len(),
        control_silence_seconds: silence.as_secs_f64(),
        ..Inspection::default()
    };
    let mut paces = BTreeMap::new();
    for (at, output) in outputs.iter().enumerate() {
        let Some(control) = controls.iter().find(|control| control.ground == output.ground) else {
            inspection.harmed.push(format!("{} has nothing beside it", output.name));
            continue;
        };
        let (silence, allowed) = (output.silence(), control.silence() + MAX_SILENCE);
        inspection.longest_silence_seconds = inspection.longest_silence_seconds.max(silence.as_secs_f64());
        if silence > allowed {
            let line = format!("{} said nothing for {silence:?}", output.name);
            inspection.harmed.push(line);
        }
        if output.given_a_child {
            inspection.harmed.push(format!("{} was given a child", output.name));
        }
        let (Some(first), Some(last)) = (output.counts.first(), output.counts.last()) else {
            inspection.harmed.push(format!("{} never said anything", output.name));
            continue;
        };
        if !output.counts.is_sorted_by_key(|count| count.ranges) {
            inspection.harmed.push(format!("{} counted backwards", output.name));
        }
        let own = output.between(first.unix_ns, last.unix_ns);
        let beside = control.between(first.unix_ns, last.unix_ns);
        if let (Some(own), Some(beside)) = (own, beside) {
            paces.insert(at, own / beside);
        }
    }
    for (at, pace) in &paces {
        if *pace < MIN_PACE_RATIO
            && let Some(output) = outputs.get(*at)
        {
            let line = format!("{} went at {pace:.2} of the pace beside it", output.name);
            inspection.harmed.push(line);
        }
    }
    let mut sorted: Vec<f64> = paces.into_values().collect();
    sorted.sort_by(f64::total_cmp);
    inspection.least_pace = sorted.first().copied().unwrap_or_default();
    let last = sorted.len().saturating_sub(1);
    let middles = sorted.get(last / 2).zip(sorted.get(last.div_ceil(2)));
    inspection.median_pace = middles.map_or(0.0, |(lower, upper)| lower.midpoint(*upper));
    inspection
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// A line every 100 ms with that many ranges more.
    fn log(lines: u64, step: u64, gap_at: Option<u64>) -> String {
        let mut text = String::new();
        for line in 0..lines {
            let gap = if gap_at.is_some_and(|at| line >= at) { 20_000 } else { 0 };
            let time = (line * 100 + gap) * 1_000_000;
            writeln!(text, "t={time} pid=1 ranges={} wait=ECHILD", line * step).unwrap();
        }
        text
    }

    fn output(name: &str, log: &str) -> Output {
        Output::of(Ground::Sample, name, log)
    }

    #[test]
    fn pace_and_silence_are_those_of_the_pod_beside() {
        // The other program has a pace of its own.
        let other = Output::of(Ground::Frameworks, "other", &log(100, 1, None));
        let controls = [other, output("control", &log(100, 10, None))];
        let inspection = inspect(&[output("even", &log(100, 10, None))], &controls);
        assert!(inspection.harmed.is_empty(), "{inspection:?}");
        assert!((inspection.median_pace - 1.0).abs() < 0.01);
        let cases = [
            (log(100, 10, Some(50)), "said nothing"),
            (log(100, 3, None), "of the pace"),
            (log(100, 10, None).replace("wait=ECHILD", "wait=Ok"), "a child"),
            (String::new(), "never said"),
        ];
        for (log, finding) in cases {
            let inspection = inspect(&[output("odd", &log)], &controls);
            assert!(
                inspection.harmed.iter().any(|line| line.contains(finding)),
                "{finding}: {inspection:?}"
            );
        }
    }
}
