//! The flight recorder beside the workload's own count, and beside Nsight Systems in the same
//! process.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::preparation::{RECORDER_DIR, RECORDER_FILE};
use flopwatch_trace::recorder;
use serde::Serialize;

use crate::trainer::Trainer;
use crate::workload::{counts, total};

/// The file of a container's flight recorder, held open beyond the container's end.
pub(super) struct Ring(File);

impl Ring {
    /// None where the container has none.
    pub(super) fn of(trainer: &Trainer) -> Option<Self> {
        let path = trainer.path(RECORDER_DIR).join(RECORDER_FILE);
        File::open(path).ok().map(Self)
    }

    /// Ranges that ended since the file was made, whatever of them it still holds.
    fn ranges(&self) -> Result<u64> {
        let path = PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()));
        let names = recorder::counts(&path)?;
        Ok(names.iter().map(|name| name.calls).sum())
    }
}

/// How the recorders' counts compare with what the workloads counted themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// Workloads that said their whole count, and whose recorder has the same.
    pub exact: usize,
    /// Workloads that were killed before they could, and whose recorder has at least what they had
    /// said.
    pub bounded: usize,
    /// Ranges of all of them.
    pub ranges: u64,
    /// Ranges of windows that Nsight Systems and the recorder saw alike.
    pub seen_by_both: u64,
}

impl Counted {
    pub(super) fn add(&mut self, other: Self) {
        self.exact += other.exact;
        self.bounded += other.bounded;
        self.ranges += other.ranges;
        self.seen_by_both += other.seen_by_both;
    }

    /// Holds a recorder against the output of its workload, which has ended or goes on.
    pub(super) fn compare(&mut self, ring: &Ring, log: &str) -> Result<()> {
        let had = total(log);
        let said: u64 = counts(log)
            .values()
            .filter_map(|lines| lines.last())
            .map(|line| line.ranges)
            .sum();
        let kept = ring.ranges()?;
        if let Some(had) = had {
            ensure!(kept == had, "the recorder counted {kept} ranges of {had}");
            self.exact += 1;
        } else {
            ensure!(kept >= said, "the recorder counted {kept} ranges of {said} and more");
            self.bounded += 1;
        }
        self.ranges += kept;
        Ok(())
    }
}

/// Ranges that begin in the inner part of a window, which both of two timelines must hold alike.
///
/// # Errors
/// When they differ.
pub(super) fn alike(window: &[u64], recorded: &[u64]) -> Result<u64> {
    /// Two libraries take the time of a range's begin one after the other, and the profiler's clock
    /// is fitted.
    const APART_NS: u64 = 800_000;
    let gaps: Vec<u64> = window
        .iter()
        .zip(window.iter().skip(1))
        .filter(|(earlier, later)| *later - *earlier > 2 * APART_NS)
        .map(|(earlier, later)| earlier.midpoint(*later))
        .collect();
    // At both ends a range may have begun before one of them looked.
    let inner = gaps.get(2..gaps.len().saturating_sub(2)).unwrap_or_default();
    let (from, to) = inner.first().zip(inner.last()).context("no pause between ranges")?;
    let between = |starts: &[u64]| starts.iter().filter(|start| (from..to).contains(start)).count();
    let (seen, kept) = (between(window), between(recorded));
    ensure!(seen == kept, "Nsight Systems saw {seen} ranges, the recorder {kept}");
    ensure!(seen > 0, "no ranges between {from} and {to}");
    Ok(u64::try_from(seen)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_timelines_are_alike_when_no_range_is_missing_between_their_ends() {
        let window: Vec<u64> = (0..100).map(|at| 1_000_000_000 + at * 2_000_000).collect();
        // Before the window and after it too, each a little later.
        let recorded: Vec<u64> = (0..200).map(|at| 900_010_000 + at * 2_000_000).collect();
        assert_eq!(alike(&window, &recorded).unwrap(), 94);
        let gone = |at: usize| {
            let mut recorded = recorded.clone();
            recorded.remove(at);
            alike(&window, &recorded)
        };
        assert!(gone(100).is_err());
        assert!(gone(10).is_ok(), "before the window");
        assert!(alike(&window, &[]).is_err());
        assert!(alike(&[], &recorded).is_err());
    }
}
