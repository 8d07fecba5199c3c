//! Device memory that was given out while a call ran.

use std::collections::BTreeMap;

use flopwatch_measures::interval::Interval;
use flopwatch_model::{Allocation, Timeline};

use super::OperationMemory;

/// Changes of memory after which the highest level is kept, so that long calls look at few numbers.
const BLOCK_CHANGES: usize = 256;

/// Most points of the memory over time.
const MAX_POINTS: usize = 400;

/// What the allocators of device memory of a process did.
#[derive(Debug, Default)]
struct OfProcess {
    times: Vec<u64>,
    /// Bytes given out before each change; one longer than `times`.
    given: Vec<u64>,
    /// Bytes in use after each change.
    level: Vec<u64>,
    /// The highest level of each block of changes.
    highest: Vec<u64>,
}

/// What the allocators of device memory did.
#[derive(Debug, Default)]
pub(super) struct Memory {
    processes: BTreeMap<u32, OfProcess>,
}

/// Keeps the bytes in use per device: what the source says, and otherwise what was given out less
/// what was taken back since the capture began.
// Not of `measures::pool`, which knows what was given out before the capture and so begins above 0:
// clients know these levels from 0.
#[derive(Debug, Default)]
struct Levels(BTreeMap<(u32, Option<u32>), i128>);

impl Levels {
    /// Bytes in use of all devices after `change`.
    fn after(&mut self, change: &Allocation) -> u64 {
        let level = self.0.entry((change.process, change.device)).or_default();
        *level = match change.allocated {
            Some(allocated) => i128::from(allocated),
            None => *level + i128::from(change.bytes),
        };
        let sum: i128 = self.0.values().map(|level| (*level).max(0)).sum();
        u64::try_from(sum).unwrap_or(u64::MAX)
    }
}

impl Memory {
    pub(super) fn of(timeline: &Timeline) -> Self {
        let mut memory = Self::default();
        let mut levels: BTreeMap<u32, Levels> = BTreeMap::new();
        for change in on_devices(timeline) {
            let process = memory.processes.entry(change.process).or_default();
            if process.given.is_empty() {
                process.given.push(0);
            }
            let before = process.given.last().copied().unwrap_or(0);
            process.times.push(change.t_ns);
            let given = u64::try_from(change.bytes).unwrap_or(0);
            process.given.push(before.saturating_add(given));
            let level = levels.entry(change.process).or_default().after(change);
            process.level.push(level);
        }
        for process in memory.processes.values_mut() {
            let blocks = process.level.chunks(BLOCK_CHANGES);
            process.highest = blocks.map(|block| block.iter().copied().max().unwrap_or(0)).collect();
        }
        memory
    }

    /// Whether any was recorded.
    pub(super) fn is_captured(&self) -> bool {
        !self.processes.is_empty()
    }

    /// Bytes that `process` was given during `time`, by whichever thread, and the most that it had
    /// in use.
    pub(super) fn during(&self, process: u32, time: Interval) -> (u64, u64) {
        let Some(memory) = self.processes.get(&process) else {
            return (0, 0);
        };
        let first = memory.times.partition_point(|t| *t < time.start);
        let last = memory.times.partition_point(|t| *t < time.end);
        let given = |at: usize| memory.given.get(at).copied().unwrap_or(0);
        let before = first.checked_sub(1).and_then(|at| memory.level.get(at)).copied();
        (
            given(last) - given(first),
            before.unwrap_or(0).max(memory.highest(first, last)),
        )
    }
}

impl OfProcess {
    /// The highest level after the changes from `first` up to, and without, `last`.
    fn highest(&self, first: usize, last: usize) -> u64 {
        let max = |levels: Option<&[u64]>| levels.unwrap_or_default().iter().copied().max().unwrap_or(0);
        let (from, to) = (first.div_ceil(BLOCK_CHANGES), last / BLOCK_CHANGES);
        if from >= to {
            return max(self.level.get(first..last));
        }
        let edges = max(self.level.get(first..from * BLOCK_CHANGES)).max(max(self.level.get(to * BLOCK_CHANGES..last)));
        edges.max(max(self.highest.get(from..to)))
    }
}

fn on_devices(timeline: &Timeline) -> impl Iterator<Item = &Allocation> {
    let all = timeline.capture.allocations.iter();
    all.filter(|change| change.device.is_some())
}

/// Device memory of all processes over time: of each part of the capture the highest level.
pub(super) fn over_time(timeline: &Timeline) -> Vec<OperationMemory> {
    let mut levels = Levels::default();
    let levels: Vec<(u64, u64)> = on_devices(timeline)
        .map(|change| (change.t_ns, levels.after(change)))
        .collect();
    let step = levels.len().div_ceil(MAX_POINTS).max(1);
    let mut peak_bytes = 0;
    let point = |part: &[(u64, u64)]| {
        let (t_ns, allocated_bytes) = part.iter().copied().max_by_key(|(_, level)| *level)?;
        peak_bytes = allocated_bytes.max(peak_bytes);
        Some(OperationMemory {
            t_ns,
            allocated_bytes,
            peak_bytes,
        })
    };
    levels.chunks(step).filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn memory_during_a_call_is_that_of_the_changes_in_it(
            changes in vec((0_u64..2000, -50_i64..100), 0..1000), start in 0_u64..2000, length in 0_u64..2000,
        ) {
            let mut trace = Trace::new();
            for (t_ns, bytes) in &changes {
                trace.allocation(1, 0, *t_ns, *bytes, None);
            }
            let timeline = trace.build();
            let (mut level, mut given, mut peak) = (0_i64, 0_u64, 0_u64);
            for change in &timeline.capture.allocations {
                let before = level.max(0).unsigned_abs();
                level += change.bytes;
                if (start..start + length).contains(&change.t_ns) {
                    given += u64::try_from(change.bytes).unwrap_or(0);
                    peak = peak.max(level.max(0).unsigned_abs()).max(before);
                } else if change.t_ns < start {
                    peak = level.max(0).unsigned_abs();
                }
            }
            let memory = Memory::of(&timeline);
            prop_assert_eq!(memory.during(1, Interval::new(start, start + length)), (given, peak));
        }
    }
}
