//! Scheduling of threads (`--cpuctxsw`): switches of a thread onto a CPU and off it, which become
//! the times that it ran there.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::{Failure, GlobalId, Reader, RowKey, TIME_BIAS};
use flopwatch_model::{Category, Event, Events, LossReason, NameId, Track, count};

const SWITCHES: &str = "SCHED_EVENTS";

/// The tables that are read here.
pub(super) const TABLES: &[&str] = &[SWITCHES];

/// The columns without which the table says nothing of where a thread ran.
const COLUMNS: [&str; 4] = ["start", "cpu", "isSchedIn", "globalTid"];

/// A machine is known to have no more CPUs than this; Linux is built for up to 8,192.
const MAX_CPUS: u32 = 1 << 16;

/// A switch of a thread. The order is that in which they are paired: at one time a thread leaves a
/// CPU before it comes onto one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Switch {
    thread: GlobalId,
    time: i64,
    /// Whether it is onto the CPU, not off it.
    onto: bool,
    cpu: u32,
}

/// A time in which a thread ran on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    thread: GlobalId,
    cpu: u32,
    start: i64,
    end: i64,
}

/// What switches say of when threads ran.
#[derive(Debug, Default, PartialEq, Eq)]
struct Runs {
    all: Vec<Run>,
    /// Runs of threads that had not left their CPU when the capture ended.
    not_ended: u64,
    /// Switches onto a CPU of which nobody knows when the thread left it.
    without_end: u64,
    /// Switches off a CPU of which nobody knows when the thread came onto it.
    without_begin: u64,
}

impl Runs {
    /// Pairs switches, which come in any order. A run that has not ended lasts until the last
    /// switch of all.
    fn of(mut switches: Vec<Switch>) -> Self {
        switches.par_sort_unstable();
        let last = switches.par_iter().map(|switch| switch.time).max().unwrap_or(0);
        let mut found = Self::default();
        let mut running: Option<Switch> = None;
        for switch in switches {
            if let Some(other) = running.take_if(|running| running.thread != switch.thread) {
                found.open(other, last);
            }
            if switch.onto {
                found.without_end += u64::from(running.replace(switch).is_some());
                continue;
            }
            match running.take() {
                Some(begin) if begin.cpu == switch.cpu => found.all.push(Run {
                    thread: switch.thread,
                    cpu: switch.cpu,
                    start: begin.time,
                    end: switch.time,
                }),
                begin => {
                    // A thread leaves the CPU that it is on.
                    found.without_end += u64::from(begin.is_some());
                    found.without_begin += 1;
                }
            }
        }
        if let Some(begin) = running {
            found.open(begin, last);
        }
        found
    }

    fn open(&mut self, begin: Switch, last: i64) {
        self.not_ended += 1;
        self.all.push(Run {
            thread: begin.thread,
            cpu: begin.cpu,
            start: begin.time,
            end: last,
        });
    }
}

impl Reader<'_> {
    /// Reads the switches of threads. What cannot be paired is left out and counted.
    pub(super) fn read_scheduling(&mut self) -> Result<(), Failure> {
        let Some(table) = self.table(SWITCHES)?.filter(|table| table.rows() > 0) else {
            return Ok(());
        };
        if !COLUMNS.iter().all(|column| table.has(column)) {
            let what = format!("table {SWITCHES}");
            self.capture
                .losses
                .add(LossReason::Unsupported, &what, count(table.rows()));
            return Ok(());
        }
        let mut switches = Vec::new();
        let (mut no_cpu, mut no_thread) = (0_u64, 0_u64);
        for slab in table.slabs() {
            self.count_samples(SWITCHES, slab.len())?;
            let times: Vec<i64> = table.required("start", &slab)?;
            let cpus: Vec<i64> = table.required("cpu", &slab)?;
            let onto: Vec<i64> = table.required("isSchedIn", &slab)?;
            let threads = table.optional_ids("globalTid", &slab)?;
            for ((time, cpu), (onto, thread)) in times.into_iter().zip(cpus).zip(onto.into_iter().zip(threads)) {
                if thread == 0 {
                    no_thread += 1;
                    continue;
                }
                let Some(cpu) = u32::try_from(cpu).ok().filter(|cpu| *cpu < MAX_CPUS) else {
                    no_cpu += 1;
                    continue;
                };
                switches.push(Switch {
                    thread: GlobalId(thread),
                    time,
                    onto: onto != 0,
                    cpu,
                });
            }
        }
        let runs = Runs::of(switches);
        for (reason, what, lost) in [
            (LossReason::Skipped, "of no thread", no_thread),
            (LossReason::Skipped, "numbers that no CPU has", no_cpu),
            (LossReason::Skipped, "onto a CPU, and never off it", runs.without_end),
            (LossReason::Skipped, "off a CPU, and never onto it", runs.without_begin),
            (LossReason::Truncated, "not ended", runs.not_ended),
        ] {
            self.capture.losses.add(reason, &format!("{SWITCHES}: {what}"), lost);
        }
        // Where nothing of the table could be used, nothing is known.
        if runs.all.is_empty() {
            return Ok(());
        }
        self.captured(&table, [Category::CpuRunning]);
        let cpus: BTreeSet<u32> = runs.all.iter().map(|run| run.cpu).collect();
        let mut events = Events::new(Category::CpuRunning);
        events.names = cpus.iter().map(|cpu| format!("CPU {cpu}")).collect();
        let names: BTreeMap<u32, NameId> = cpus.into_iter().zip(NameId::all()).collect();
        events.reserve(runs.all.len());
        for run in runs.all {
            let key = RowKey::Thread {
                track: Track::CpuRunning,
                thread: run.thread,
            };
            let event = Event {
                start_ns: run.start.cast_unsigned() ^ TIME_BIAS,
                duration_ns: run.end.abs_diff(run.start),
                row: self.row(&table, key)?,
                name: names.get(&run.cpu).copied().unwrap_or_default(),
                correlation: 0,
            };
            events.push(event, &[run.cpu.into()]);
        }
        self.capture.events.insert(Category::CpuRunning, events);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switches(list: &[(u64, i64, bool, u32)]) -> Vec<Switch> {
        let switch = |(thread, time, onto, cpu): &(u64, i64, bool, u32)| Switch {
            thread: GlobalId(*thread),
            time: *time,
            onto: *onto,
            cpu: *cpu,
        };
        list.iter().map(switch).collect()
    }

    fn times(runs: &Runs) -> Vec<(u64, u32, i64, i64)> {
        let times = |run: &Run| (run.thread.0, run.cpu, run.start, run.end);
        runs.all.iter().map(times).collect()
    }

    #[test]
    fn switches_in_any_order_become_the_times_between_them() {
        let mut list = switches(&[
            (1, 10, true, 4),
            (2, 12, true, 5),
            (1, 20, false, 4),
            (1, 20, true, 6),
            (2, 30, false, 5),
            (1, 25, false, 6),
        ]);
        let expected = [(1, 4, 10, 20), (1, 6, 20, 25), (2, 5, 12, 30)];
        let found = Runs::of(list.clone());
        assert_eq!(times(&found), expected);
        assert_eq!((found.not_ended, found.without_end, found.without_begin), (0, 0, 0));
        list.reverse();
        assert_eq!(Runs::of(list), found);
    }

    #[test]
    fn a_switch_without_its_other_one_is_left_out_and_counted() {
        let list = [
            // Off before anything is known.
            (1, 5, false, 3),
            // Twice onto a CPU: when it left the first one is not known.
            (1, 10, true, 3),
            (1, 20, true, 4),
            (1, 30, false, 4),
            // Off a CPU that it was not on.
            (2, 40, true, 1),
            (2, 50, false, 2),
        ];
        let found = Runs::of(switches(&list));
        assert_eq!(times(&found), [(1, 4, 20, 30)]);
        assert_eq!((found.not_ended, found.without_end, found.without_begin), (0, 2, 2));
    }

    #[test]
    fn who_still_runs_at_the_end_runs_until_the_last_switch() {
        let found = Runs::of(switches(&[
            (1, 10, true, 0),
            (2, 20, true, 1),
            (2, 90, false, 1),
            (3, 90, true, 2),
        ]));
        assert_eq!(times(&found), [(1, 0, 10, 90), (2, 1, 20, 90), (3, 2, 90, 90)]);
        assert_eq!(found.not_ended, 2);
        assert_eq!(Runs::of(Vec::new()), Runs::default());
    }
}
