//! What a program wrote down of its steps.

use std::path::Path;

/// The ends of steps, in order: the program's own count.
pub(crate) struct Ends(Vec<u64>);

impl Ends {
    /// As they were written so far.
    pub(crate) fn read(file: &Path) -> Self {
        let written = std::fs::read(file).unwrap();
        let (whole, _) = written.as_chunks();
        Self(whole.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
    }

    /// Steps, and the seconds they took, from the end of the first to that of the last which ended within a time in ns since 1970.
    pub(crate) fn within(&self, (from_ns, until_ns): (u64, u64)) -> (f64, f64) {
        let first = self.0.partition_point(|end| *end < from_ns);
        let after = self.0.partition_point(|end| *end < until_ns);
        let inside = &self.0[first..after];
        let [begin, .., end] = inside else {
            panic!("the program made no steps in that time");
        };
        ((inside.len() - 1) as f64, (end - begin) as f64 / 1e9)
    }
}
