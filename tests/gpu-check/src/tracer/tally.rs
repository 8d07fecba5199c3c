//! What was recorded, counted.

use std::collections::BTreeSet;

use flopwatch_tracer_file::record::Record;

/// Durations that are kept.
const MAX_DURATIONS: usize = 4096;

/// Records of a window by what they are.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) kernels: u64,
    pub(super) graphs: u64,
    pub(super) copies: u64,
    pub(super) sets: u64,
    pub(super) calls: u64,
    /// Of the first kernels: begin and duration in ns.
    pub(super) runs: Vec<(u64, u64)>,
    /// Numbers of the kernels' names; 0 for one without a name.
    pub(super) names: BTreeSet<u32>,
    /// Slots that made no sense.
    pub(super) nonsense: u64,
}

impl Tally {
    pub(super) fn add(&mut self, record: &Record) {
        match record {
            Record::Kernel(kernel) => {
                self.kernels += 1;
                self.names.insert(kernel.run.name);
                if self.runs.len() < MAX_DURATIONS {
                    let run = kernel.run;
                    self.runs.push((run.start_ns, run.end_ns.saturating_sub(run.start_ns)));
                }
            }
            Record::Graph(_) => self.graphs += 1,
            Record::Copy(_) | Record::Peer(_) => self.copies += 1,
            Record::Set(_) => self.sets += 1,
            Record::Call(_) => self.calls += 1,
            _ => {}
        }
    }

    /// Durations of the kernels in the order in which they ran, in ns.
    pub(super) fn durations(&self) -> Vec<u64> {
        let mut runs = self.runs.clone();
        runs.sort_unstable();
        runs.into_iter().map(|(_, duration)| duration).collect()
    }
}

/// The value that so many of a hundred are not above; 0 for none.
pub(super) fn percentile(values: &[u64], percent: usize) -> u64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    let place = (values.len() * percent).div_ceil(100).saturating_sub(1);
    values.get(place).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use flopwatch_tracer_file::record::{Kernel, KernelRun, MemorySet};

    use super::*;

    #[test]
    fn records_are_counted_by_what_they_are_and_durations_come_in_order() {
        let mut tally = Tally::default();
        for (start_ns, end_ns) in [(50, 80), (10, 15)] {
            let run = KernelRun {
                start_ns,
                end_ns,
                name: 4,
                ..KernelRun::default()
            };
            tally.add(&Record::Kernel(Kernel {
                run,
                ..Kernel::default()
            }));
        }
        tally.add(&Record::Set(MemorySet::default()));
        assert_eq!((tally.kernels, tally.sets, tally.copies), (2, 1, 0));
        assert_eq!(tally.durations(), [5, 30]);
        assert_eq!(tally.names, BTreeSet::from([4]));
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<u64> = (1..=200).rev().collect();
        assert_eq!(
            (
                percentile(&values, 50),
                percentile(&values, 95),
                percentile(&values, 100)
            ),
            (100, 190, 200)
        );
        assert_eq!(percentile(&[], 50), 0);
    }
}
