//! What a round took, as people read it: its steps and its slowest tests.

use flopwatch_toolchain::meter::StepFigures;
use flopwatch_toolchain::progress::human;
use std::time::Duration;

/// How many of the slowest tests are shown.
const MAX_SLOWEST: usize = 20;

/// A line per step, under a heading.
pub(crate) fn steps(steps: &[StepFigures]) -> Vec<String> {
    let heading = row("step", "wall", "processors", "memory", "disk");
    let mut lines = vec![heading];
    lines.extend(steps.iter().map(|step| {
        row(
            &step.name,
            &human(step.wall),
            &human(step.processor),
            &gib(i64::try_from(step.memory).unwrap_or(i64::MAX)),
            &gib(step.disk),
        )
    }));
    lines
}

fn row(step: &str, wall: &str, processor: &str, memory: &str, disk: &str) -> String {
    format!("{step:<28} {wall:>14} {processor:>14} {memory:>10} {disk:>10}")
}

/// Bytes in tenths of a GiB.
fn gib(bytes: i64) -> String {
    let tenths = bytes.saturating_mul(10) / (1 << 30);
    let sign = if tenths < 0 { "-" } else { "" };
    format!("{sign}{}.{} GiB", tenths.abs() / 10, tenths.abs() % 10)
}

/// A line per test, the slowest first.
pub(crate) fn slowest(times: &[(String, Duration)]) -> Vec<String> {
    let mut times: Vec<&(String, Duration)> = times.iter().collect();
    times.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let shown = times.into_iter().take(MAX_SLOWEST);
    shown
        .map(|(test, took)| format!("{:>12}  {test}", human(*took)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_a_line_of_its_figures() {
        let figures = StepFigures {
            name: "compile".to_owned(),
            wall: Duration::from_mins(10),
            processor: Duration::from_secs(1100),
            memory: 3 << 30,
            disk: -(5 << 29),
        };
        let lines = steps(&[figures]);
        let words: Vec<&str> = lines[1].split_whitespace().collect();
        assert_eq!(words.join(" "), "compile 10 min 00 s 18 min 20 s 3.0 GiB -2.5 GiB");
        assert_eq!(lines[0].len(), lines[1].len());
    }

    #[test]
    fn the_slowest_tests_come_first_and_no_more_than_twenty() {
        let times: Vec<(String, Duration)> = (0..30).map(|n| (format!("t{n}"), Duration::from_secs(n))).collect();
        let lines = slowest(&times);
        assert_eq!(lines.len(), MAX_SLOWEST);
        assert_eq!(lines[0].trim(), "29.0 s  t29");
    }
}
