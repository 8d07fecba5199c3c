//! What a run comes to, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use flopwatch_api::profiler::ProfilerType;
use serde::Serialize;

use crate::soak::fault::Fault;
use crate::soak::inspection::Inspection;
use crate::soak::ledger::Record;

/// How often each reason was the end.
type Ends = BTreeMap<String, usize>;

/// The figures of a run.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Repeats the run.
    pub seed: u64,
    /// Workloads at a time.
    pub workloads: usize,
    /// Cycles that were run.
    pub cycles: usize,
    /// Seconds of this part of the run.
    pub seconds: f64,
    /// Prepared containers that were started.
    pub starts: usize,
    /// Cycles whose workload was harmed.
    pub harmed: usize,
    /// Cycles that left something behind.
    pub orphans: usize,
    /// Cycles with an end that its fault does not explain.
    pub surprises: usize,
    /// Windows of the CUDA tracer that hold every launch that the program counted.
    pub cuda_windows: usize,
    /// Kernels and calls of these windows.
    pub cuda_records: u64,
    /// Windows of the CUDA tracer that hold fewer or more.
    pub miscounts: usize,
    /// How often each fault ended with each reason, by profiler.
    pub ends: BTreeMap<ProfilerType, BTreeMap<Fault, Ends>>,
    /// Every harm, orphan, surprise and miscount in a sentence.
    pub findings: Vec<String>,
    /// The workloads' output.
    pub inspection: Inspection,
}

impl Report {
    /// Sums records up.
    pub fn of<'a>(
        seed: u64,
        workloads: usize,
        seconds: f64,
        records: impl Iterator<Item = &'a Record>,
        inspection: Inspection,
    ) -> Self {
        let mut report = Self {
            seed,
            workloads,
            seconds,
            inspection,
            ..Self::default()
        };
        for record in records {
            report.cycles += 1;
            report.starts += usize::from(record.started);
            report.cuda_windows += usize::from(record.launches.is_some());
            report.cuda_records += record.launches.unwrap_or_default();
            let of_profiler = report.ends.entry(record.profiler).or_default();
            let ends = of_profiler.entry(record.fault).or_default();
            *ends.entry(record.reason.clone()).or_default() += 1;
            for (count, what, finding) in [
                (&mut report.harmed, "harm", &record.harm),
                (&mut report.orphans, "orphan", &record.orphan),
                (&mut report.surprises, "surprise", &record.surprise),
                (&mut report.miscounts, "miscount", &record.miscount),
            ] {
                if let Some(finding) = finding {
                    *count += 1;
                    let line = format!(
                        "cycle {} ({}, {:?}): {what}: {finding}",
                        record.cycle,
                        record.profiler.as_str(),
                        record.fault
                    );
                    report.findings.push(line);
                }
            }
        }
        report.harmed += report.inspection.harmed.len();
        report.orphans += report.inspection.orphans.len();
        let inspection = &report.inspection;
        let found = inspection.harmed.iter().chain(&inspection.orphans);
        let found = found.chain(&inspection.miscounted);
        report.findings.extend(found.cloned());
        report
    }

    /// Nobody was harmed, nothing stayed, every end is explained, and every range and every launch
    /// was counted.
    pub const fn is_clean(&self) -> bool {
        let is_counted = self.miscounts == 0 && self.inspection.miscounted.is_empty();
        self.harmed == 0 && self.orphans == 0 && self.surprises == 0 && is_counted
    }

    /// Writes `report.json` and `report.md`.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        std::fs::write(folder.join("report.json"), serde_json::to_vec_pretty(self)?)?;
        std::fs::write(folder.join("report.md"), self.markdown()?)?;
        Ok(())
    }

    fn markdown(&self) -> Result<String> {
        let mut text = String::new();
        writeln!(text, "| | |\n|---|---|")?;
        let inspection = &self.inspection;
        for (name, value) in [
            ("cycles", self.cycles.to_string()),
            ("workloads at a time", self.workloads.to_string()),
            ("seed", self.seed.to_string()),
            ("prepared containers started", self.starts.to_string()),
            ("**workloads harmed**", format!("**{}**", self.harmed)),
            ("**orphans**", format!("**{}**", self.orphans)),
            ("ends without an explanation", self.surprises.to_string()),
            (
                "longest silence of a workload",
                format!("{:.2} s", inspection.longest_silence_seconds),
            ),
            (
                "longest silence of the pod that nobody profiled",
                format!("{:.2} s", inspection.control_silence_seconds),
            ),
            (
                "pace beside the pod that nobody profiled, median",
                format!("{:.3}", inspection.median_pace),
            ),
            (
                "flight recorders with the whole count of a workload that said it, and of killed ones with no less than it had said",
                format!("{}, {}", inspection.counted.exact, inspection.counted.bounded),
            ),
            (
                "flight recorders with another count",
                inspection.miscounted.len().to_string(),
            ),
            ("ranges that they counted", inspection.counted.ranges.to_string()),
            (
                "ranges that Nsight Systems and recorder saw alike",
                inspection.counted.seen_by_both.to_string(),
            ),
            (
                "windows of the CUDA tracer with every launch that the program counted; their kernels and calls",
                format!("{}; {}", self.cuda_windows, self.cuda_records),
            ),
            (
                "windows of the CUDA tracer with another count",
                self.miscounts.to_string(),
            ),
            ("time", format!("{:.0} s", self.seconds)),
        ] {
            writeln!(text, "| {name} | {value} |")?;
        }
        writeln!(text, "\n| profiler | fault | cycles | ends |\n|---|---|---|---|")?;
        for (profiler, faults) in &self.ends {
            let mut all = Ends::new();
            for (reason, count) in faults.values().flatten() {
                *all.entry(reason.clone()).or_default() += count;
            }
            let (count, ended) = told(&all);
            writeln!(text, "| **{}** | all | {count} | {ended} |", profiler.as_str())?;
            for (fault, ends) in faults {
                let (count, ended) = told(ends);
                writeln!(text, "| | {fault:?} | {count} | {ended} |")?;
            }
        }
        for finding in &self.findings {
            writeln!(text, "\n- {finding}")?;
        }
        Ok(text)
    }
}

/// How many there are, and each with its count.
fn told(ends: &Ends) -> (usize, String) {
    let each: Vec<String> = ends.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    (ends.values().sum(), each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_harmed_workload_is_told_in_figures_and_in_a_sentence() {
        let record = Record {
            reason: "AgentRestarted".into(),
            harm: Some("PID 1 ended".into()),
            started: true,
            ..Record::of(3, ProfilerType::Kineto, Fault::AgentKilled)
        };
        let clean = Record {
            reason: "Succeeded".into(),
            ..Record::of(4, ProfilerType::Kineto, Fault::None)
        };
        let report = Report::of(1, 2, 9.0, [&record, &clean].into_iter(), Inspection::default());
        assert_eq!(
            (report.cycles, report.harmed, report.orphans, report.starts),
            (2, 1, 0, 1)
        );
        assert!(!report.is_clean());
        let text = report.markdown().unwrap();
        assert!(text.contains("| **workloads harmed** | **1** |"), "{text}");
        assert!(
            text.contains("cycle 3 (Kineto, AgentKilled): harm: PID 1 ended"),
            "{text}"
        );
        let rows = "| **Kineto** | all | 2 | AgentRestarted 1, Succeeded 1 |\n| | None | 1 | Succeeded 1 |\n\
                    | | AgentKilled | 1 | AgentRestarted 1 |\n";
        assert!(text.contains(rows), "{text}");
    }

    #[test]
    fn a_window_with_another_count_than_the_programs_is_no_clean_run() {
        let counted = Record {
            reason: "Succeeded".into(),
            launches: Some(600),
            ..Record::of(1, ProfilerType::Cuda, Fault::None)
        };
        let of = |records: &[Record]| Report::of(1, 2, 9.0, records.iter(), Inspection::default());
        let clean = of(std::slice::from_ref(&counted));
        assert!(clean.is_clean());
        assert!(clean.markdown().unwrap().contains("kernels and calls | 1; 600 |"));
        let missing = Record {
            launches: None,
            miscount: Some("the timeline holds 599 kernels and calls, the program counted 600".into()),
            ..counted.clone()
        };
        let report = of(&[counted, missing]);
        assert_eq!((report.miscounts, report.cuda_windows, report.harmed), (1, 1, 0));
        assert!(!report.is_clean());
        assert!(report.findings[0].contains("holds 599"), "{report:?}");
    }
}
