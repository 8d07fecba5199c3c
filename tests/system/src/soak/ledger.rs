//! What a run has done so far, one line per cycle, so that it can be taken up where it was cut off.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use flopwatch_api::profiler::ProfilerType;
use serde::{Deserialize, Serialize};

use crate::soak::fault::Fault;

/// Raised with every change of what a seed draws: a run is taken up by the plans that it was begun
/// with, or not at all.
const PLAN_VERSION: u32 = 3;

/// What became of a cycle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Number of the cycle, from 1.
    pub cycle: u64,
    /// The profiler that its session named.
    pub profiler: ProfilerType,
    /// What struck it.
    pub fault: Fault,
    /// Whether a fault of another cycle took a shared part away in the meantime.
    pub struck_by_others: bool,
    /// Reason with which its capture ended; `Gone` when it was deleted.
    pub reason: String,
    /// How the workload was harmed.
    pub harm: Option<String>,
    /// What stayed behind.
    pub orphan: Option<String>,
    /// Why its end is not one that its fault explains.
    pub surprise: Option<String>,
    /// Kernels and calls of its timeline, as many as the program counted; none where the program
    /// counts none, or its window was no whole one.
    pub launches: Option<u64>,
    /// How its timeline differs from the program's own count.
    pub miscount: Option<String>,
    /// Length of the cycle.
    pub seconds: f64,
    /// Whether the workload was started for it.
    pub started: bool,
}

impl Record {
    /// A cycle that began on a workload that ran, and of which nothing is known yet.
    pub const fn of(cycle: u64, profiler: ProfilerType, fault: Fault) -> Self {
        Self {
            cycle,
            profiler,
            fault,
            struck_by_others: false,
            reason: String::new(),
            harm: None,
            orphan: None,
            surprise: None,
            launches: None,
            miscount: None,
            seconds: 0.0,
            started: false,
        }
    }

    /// What was found, each after a colon.
    pub fn findings(&self) -> String {
        let all = [&self.harm, &self.orphan, &self.surprise, &self.miscount];
        let all = all.into_iter().flatten();
        all.fold(String::new(), |text, finding| text + ": " + finding)
    }
}

/// How a run was begun. A ledger of another run is not taken up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    /// None of those that were written before there were versions.
    #[serde(default)]
    version: u32,
    seed: u64,
    workloads: usize,
    /// The only profilers of its sessions.
    #[serde(default)]
    profilers: Vec<ProfilerType>,
}

/// The records of a run, on disk.
#[derive(Debug)]
pub struct Ledger {
    file: File,
    /// The seed that its plans are drawn from.
    pub seed: u64,
    /// Records by cycle.
    pub records: BTreeMap<u64, Record>,
}

impl Ledger {
    /// Begins a run, or takes up the one that `folder` holds.
    ///
    /// # Errors
    /// When the folder cannot be written, or holds none or another run to take up.
    pub fn open(folder: &Path, resume: bool, seed: u64, workloads: usize, profilers: &[ProfilerType]) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path: PathBuf = folder.join("cycles.jsonl");
        if !resume {
            let mut file = File::create(&path)?;
            let head = Head {
                version: PLAN_VERSION,
                seed,
                workloads,
                profilers: profilers.to_vec(),
            };
            writeln!(file, "{}", serde_json::to_string(&head)?)?;
            return Ok(Self {
                file,
                seed,
                records: BTreeMap::new(),
            });
        }
        let lines =
            BufReader::new(File::open(&path).with_context(|| format!("no run to take up: {}", path.display()))?);
        let mut lines = lines.lines();
        let head: Head = serde_json::from_str(&lines.next().context("an empty ledger")??)?;
        ensure!(
            head.version == PLAN_VERSION,
            "the run to take up was begun with other plans (version {}, here {PLAN_VERSION}): begin a new one",
            head.version
        );
        if head.workloads != workloads {
            bail!("the run to take up has {} workloads, not {workloads}", head.workloads);
        }
        if head.profilers != profilers {
            let begun = head.profilers;
            bail!("the run to take up names {begun:?}, not {profilers:?}");
        }
        let mut records = BTreeMap::new();
        for line in lines {
            // The last line may have been cut off with the run.
            if let Ok(record) = serde_json::from_str::<Record>(&line?) {
                records.insert(record.cycle, record);
            }
        }
        let mut file = OpenOptions::new().append(true).open(&path)?;
        writeln!(file)?;
        Ok(Self {
            file,
            seed: head.seed,
            records,
        })
    }

    /// Writes a cycle down.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self, record: Record) -> Result<()> {
        let line = serde_json::to_string(&record)?;
        self.file.write_all(format!("{line}\n").as_bytes())?;
        self.records.insert(record.cycle, record);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(cycle: u64) -> Record {
        Record {
            reason: "Discarded".into(),
            seconds: 1.5,
            ..Record::of(cycle, ProfilerType::Nsys, Fault::Discard)
        }
    }

    #[test]
    fn a_run_that_was_cut_off_is_taken_up() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(folder.path(), false, 42, 3, &[]).unwrap();
        ledger.write(record(0)).unwrap();
        ledger.write(record(2)).unwrap();
        let path = folder.path().join("cycles.jsonl");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}{{\"cycle\":5,\"fau")).unwrap();
        let mut again = Ledger::open(folder.path(), true, 1, 3, &[]).unwrap();
        assert_eq!(again.seed, 42);
        assert_eq!(again.records.keys().copied().collect::<Vec<_>>(), [0, 2]);
        again.write(record(5)).unwrap();
        assert_eq!(Ledger::open(folder.path(), true, 1, 3, &[]).unwrap().records.len(), 3);
        assert!(Ledger::open(folder.path(), true, 1, 4, &[]).is_err());
        assert!(Ledger::open(folder.path(), true, 1, 3, &[ProfilerType::Cuda]).is_err());
    }

    #[test]
    fn a_run_of_other_plans_is_not_taken_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cycles.jsonl");
        std::fs::write(&path, "{\"seed\":42,\"workloads\":3}\n").unwrap();
        let refused = Ledger::open(folder.path(), true, 42, 3, &[]).unwrap_err();
        assert!(refused.to_string().contains("begin a new one"), "{refused}");
        assert_eq!(
            std::fs::read_to_string(&path).unwrap().lines().count(),
            1,
            "nothing is written"
        );
    }
}
