//! Reports that the installed versions of Nsight Systems record here, of a program with ranges of
//! every kind.
//!
//! `FLOPWATCH_REPORT_ROUNDS` names how many rounds the program makes; each has two ranges. With it
//! the CPU is sampled too: under load the agent of nsys 2022.4 sampled on for half an hour after
//! its program had ended, and a round would wait for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use flopwatch_model::{Category, Events};
use flopwatch_trace::{ReadLimits, nsys_hdf, nsys_report};

use super::corpus::assert_equal;
use crate::nsys;

/// Rounds of the program, where no more were asked for.
const ROUNDS: u64 = 5_000;

/// The program; a printed reason to skip where it cannot be made.
fn program(folder: &Path, versions: &[PathBuf]) -> Option<PathBuf> {
    let headers = versions
        .iter()
        .filter_map(|nsys| Some(nsys.parent()?.join("nvtx/include")))
        .find(|headers| headers.is_dir());
    let Some(headers) = headers else {
        println!(
            "skipped: no Nsight Systems of 2023 or later, which brings the headers of NVTX (cargo xtask setup fetches one)"
        );
        return None;
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/data/ranges.c");
    let program = folder.join("ranges");
    let made = Command::new("cc")
        .arg("-I")
        .arg(headers)
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg("-ldl")
        .status();
    let Ok(made) = made else {
        println!("skipped: no C compiler on this machine");
        return None;
    };
    assert!(made.success());
    Some(program)
}

/// Longest time of a recording in seconds.
const RECORD_TIMEOUT: &str = "300";

/// How often nsys may end over a semaphore that another process of it had not made yet, as it does
/// on a busy machine: docs/decisions/026-nsys-session.md.
const MAX_STUMBLES: usize = 5;

/// A report of a run of `program`. Where the machine does not let it, nsys takes no samples and
/// says so.
fn record(nsys: &Path, program: &Path, rounds: u64, sample: &str, report: &Path) {
    for stumbles in 0..=MAX_STUMBLES {
        let output = Command::new("timeout")
            .arg(RECORD_TIMEOUT)
            .arg(nsys)
            .args(["profile", "--trace=nvtx,osrt", sample, "--cpuctxsw=none", "-o"])
            .arg(report)
            .arg(program)
            .arg(rounds.to_string())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        if output.status.success() && report.is_file() {
            return;
        }
        let said = String::from_utf8_lossy(&output.stderr);
        // The program had not begun: its report is what this is about, and nsys makes it anew.
        assert!(said.contains("sem_open") && stumbles < MAX_STUMBLES, "{said}");
    }
}

#[test]
fn a_report_that_is_recorded_here_gives_the_timeline_that_its_export_gives() {
    let versions = nsys::versions();
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), &versions) else {
        return;
    };
    let asked = std::env::var("FLOPWATCH_REPORT_ROUNDS").ok();
    let sample = if asked.is_some() {
        "--sample=process-tree"
    } else {
        "--sample=none"
    };
    let rounds = asked.map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    for (at, nsys) in versions.iter().enumerate() {
        let report = folder.path().join(format!("{at}.nsys-rep"));
        record(nsys, &program, rounds, sample, &report);
        let limits = ReadLimits::default();
        let begin = Instant::now();
        let capture = nsys_report::read(&report, &limits).unwrap();
        let of_report = begin.elapsed();
        let export = folder.path().join(format!("{at}.h5"));
        let begin = Instant::now();
        nsys::convert(nsys, "hdf", &report, &export);
        let exported = begin.elapsed();
        let begin = Instant::now();
        let expected = nsys_hdf::read(&export, &limits).unwrap();
        let of_export = begin.elapsed();
        let version = &capture.source.tool_version;
        // Every hundredth round has a third range, and one is left open.
        let ranges = capture.events[&Category::NvtxRange].count();
        assert_eq!(ranges, 2 * rounds + rounds.div_ceil(100) + 1, "{version}");
        assert_equal(version, &report, &export);
        assert_eq!(capture.losses, expected.losses, "{version}");
        assert_eq!(capture.captured, expected.captured, "{version}");
        let samples = capture.events.get(&Category::CpuSample).map_or(0, Events::count);
        println!("{version}: {samples} samples of the CPU");
        println!("{version}: read in {of_report:.1?}; exported in {exported:.1?}, read in {of_export:.1?}");
    }
}
