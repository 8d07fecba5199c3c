//! What the sample workload says of itself: how many ranges it had pushed at which time.

use std::collections::BTreeMap;
use std::time::Duration;

/// One line `pid=<pid> t=<unix ns> ranges=<count>` of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Unix time in nanoseconds.
    pub unix_ns: u64,
    /// Ranges that the process had ended by then.
    pub ranges: u64,
}

/// Counts by process, in the order of time.
pub fn counts(log: &str) -> BTreeMap<u64, Vec<Count>> {
    let mut by_process: BTreeMap<u64, Vec<Count>> = BTreeMap::new();
    for line in log.lines() {
        let field = |name: &str| field(line, name);
        if let (Some(pid), Some(unix_ns), Some(ranges)) = (field("pid"), field("t"), field("ranges")) {
            by_process.entry(pid).or_default().push(Count { unix_ns, ranges });
        }
    }
    by_process
}

/// Ranges that all threads of the first process had ended when it ended by itself; none where it
/// did not.
pub fn total(log: &str) -> Option<u64> {
    let line = log.lines().rev().find(|line| line.starts_with("total "))?;
    field(line, "ranges")
}

/// The number `<name>=<number>` of a line.
pub(crate) fn field(line: &str, name: &str) -> Option<u64> {
    line.split_whitespace()
        .find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

/// Bounds on the ranges that all processes together ended between two times: at least what the
/// lines within prove, at most what the lines around allow.
pub fn bounds(log: &str, from_ns: u64, to_ns: u64) -> (u64, u64) {
    let (mut least, mut most) = (0, 0);
    for lines in counts(log).values() {
        let at_or_before = |time: u64| {
            let found = lines.iter().rev().find(|line| line.unix_ns <= time);
            found.map_or(0, |line| line.ranges)
        };
        let at_or_after = |time: u64| {
            let found = lines.iter().find(|line| line.unix_ns >= time);
            found.or(lines.last()).map_or(0, |line| line.ranges)
        };
        least += at_or_before(to_ns).saturating_sub(at_or_after(from_ns));
        most += at_or_after(to_ns).saturating_sub(at_or_before(from_ns));
    }
    (least, most)
}

/// Longest time between two lines of one process.
pub fn longest_silence(log: &str) -> Duration {
    let by_process = counts(log);
    let all = by_process.values().map(|lines| silence(lines));
    all.max().unwrap_or_default()
}

/// Longest time between two of the lines of a process.
pub(crate) fn silence(lines: &[Count]) -> Duration {
    let pairs = lines.iter().zip(lines.iter().skip(1));
    let gaps = pairs.map(|(earlier, later)| later.unix_ns.saturating_sub(earlier.unix_ns));
    Duration::from_nanos(gaps.max().unwrap_or(0))
}

/// Whether a process says that it has a child, of which it started none.
pub(crate) fn was_given_a_child(log: &str) -> bool {
    log.lines()
        .any(|line| line.contains("wait=") && !line.contains("wait=ECHILD"))
}
