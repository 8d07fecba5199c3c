//! Nsight Systems behind our library: both record the same ranges.

use std::path::PathBuf;
use std::process::Command;

use flopwatch_trace::{ReadLimits, read};

use super::rig::{Rig, ranges};

/// The program of Nsight Systems and its importer; a test without them is skipped and says so.
fn tools() -> Option<(PathBuf, PathBuf)> {
    let named = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let found = named("FLOPWATCH_NSYS").zip(named("FLOPWATCH_NSYS_HOST"));
    if found.is_none() {
        println!("skipped: no Nsight Systems (set FLOPWATCH_NSYS and FLOPWATCH_NSYS_HOST)");
    }
    found.map(|(nsys, host)| (nsys, host.join("QdstrmImporter")))
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}

#[test]
fn nsight_systems_behind_our_library_records_the_same_ranges() {
    let (Some((nsys, importer)), Some(rig)) = (tools(), Rig::any()) else {
        return;
    };
    // The profiler names its library in the environment of what it starts, where ours takes its
    // place. What it preloads would put that name back in every program as long as the list says
    // NVTX.
    let script = "export FLOPWATCH_NVTX_NEXT=\"$NVTX_INJECTION64_PATH\" NVTX_INJECTION64_PATH=\"$OURS\" QUADD_INJECTION_PROXY=; exec \"$@\"";
    let raw = rig.path("raw");
    let mut profile = Command::new(&nsys);
    profile
        .args([
            "profile",
            "--trace",
            "nvtx",
            "--sample",
            "none",
            "--cpuctxsw",
            "none",
            "--output",
        ])
        .arg(&raw)
        .args(["sh", "-c", script, "sh"])
        .arg(rig.path("program"))
        .args(["threads", "4", "5000"])
        .env("OURS", rig.path("libflopwatch-recorder.so"))
        .env("FLOPWATCH_RECORDER_DIR", rig.path("ring"));
    let output = profile.output().unwrap();
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("ranges 40000"),
        "{output:?}"
    );
    let report = rig.path("raw.nsys-rep");
    if !report.exists() {
        run(Command::new(importer)
            .arg("-i")
            .arg(rig.path("raw.qdstrm"))
            .arg("-o")
            .arg(&report));
    }
    let export = rig.path("raw.sqlite");
    run(Command::new(&nsys)
        .args(["export", "--type", "sqlite", "--output"])
        .arg(&export)
        .arg(&report));
    let theirs = read(&export, &ReadLimits::default()).unwrap();
    let ours = rig.capture();
    assert_eq!((ranges(&theirs).len(), ranges(&ours).len()), (40_000, 40_000));
    assert_eq!(ours.losses.list(), []);
    // Both say when: the first range begins and the last one ends at the same moment, but for the
    // profiler's own time in between.
    let start = |capture: &flopwatch_model::Capture| {
        capture.session_start_utc_ns.unwrap() + ranges(capture).start_ns.iter().min().unwrap()
    };
    let apart = start(&theirs).abs_diff(start(&ours));
    println!("the first ranges begin {apart} ns apart");
    assert!(apart < 20_000_000, "{apart} ns");
}
