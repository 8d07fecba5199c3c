//! What a program wrote down of its steps.

use std::path::Path;

const SECOND: u64 = 1_000_000_000;

/// The ends of steps, in order: the program's own count.
pub(crate) struct Ends(Vec<u64>);

impl Ends {
    /// As they were written so far.
    pub(crate) fn read(file: &Path) -> Self {
        let written = std::fs::read(file).unwrap();
        let (whole, _) = written.as_chunks();
        Self(whole.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
    }

    /// Steps per second in each whole second within a time in ns since 1970, with parts of steps at
    /// its edges.
    pub(crate) fn rates(&self, (from_ns, until_ns): (u64, u64)) -> Vec<f64> {
        let seconds = (until_ns - from_ns) / SECOND;
        let edge = |second: u64| self.at(from_ns + second * SECOND);
        (0..seconds).map(|second| edge(second + 1) - edge(second)).collect()
    }

    /// Steps that had ended at a time, with the part of the one under way.
    fn at(&self, time_ns: u64) -> f64 {
        let ended = self.0.partition_point(|end| *end <= time_ns);
        let [last, next] = [self.0[ended - 1], self.0[ended]];
        ended as f64 + (time_ns - last) as f64 / (next - last) as f64
    }
}
