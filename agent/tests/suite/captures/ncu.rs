//! Captures of Nsight Compute: the program that it starts, the report that it leaves, and what
//! becomes of both.

use std::collections::BTreeMap;

use serde_json::json;

use super::doubles::Program;
use super::rig::{Rig, eventually};

/// A node whose pod's program waits for its profiler to be let start it.
fn rig(options: &str, leaves: BTreeMap<&'static str, Vec<u8>>) -> Rig {
    let rig = Rig::new(&json!({"flopwatch.dev/prepared": "main", "flopwatch.dev/ncu-options": options}));
    rig.containers.inside().launched = Some(Program {
        leaves,
        ..Program::default()
    });
    rig
}

/// Asks for a capture of the pod that its session made.
fn ask(rig: &Rig, seconds: u32, outputs: &[&str]) {
    let mut capture = Rig::capture("c", seconds);
    capture["spec"]["profiler"] = json!({"type": "Ncu"});
    capture["spec"]["endsWithProgram"] = json!(true);
    capture["spec"]["outputs"] = json!(outputs);
    rig.server.put(&capture);
}

/// What the launcher was told.
fn told(rig: &Rig) -> Vec<&'static str> {
    rig.containers.inside().launched.as_ref().unwrap().told.clone()
}

/// A report of NVIDIA's own samples; none where there are no samples on this machine.
fn report() -> Option<Vec<u8>> {
    let Some(folder) = std::env::var_os("FLOPWATCH_NCU_SAMPLES").filter(|folder| !folder.is_empty()) else {
        println!("skipped: FLOPWATCH_NCU_SAMPLES names no samples of Nsight Compute (cargo xtask setup fetches them)");
        return None;
    };
    let mut folders = vec![std::path::PathBuf::from(folder)];
    let mut reports = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "ncu-rep") {
                reports.push(path);
            }
        }
    }
    let least = reports.iter().min_by_key(|path| std::fs::metadata(path).unwrap().len());
    Some(std::fs::read(least.unwrap()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_runs_from_the_windows_start_and_its_report_is_published() {
    let Some(report) = report() else { return };
    let bytes = report.len();
    let rig = rig(
        "{}",
        BTreeMap::from([("capture.ncu-rep", report), ("ncu.log", Vec::new())]),
    );
    let life = rig.live().await;
    ask(&rig, 60, &["Timeline", "Summary", "Raw"]);
    eventually("the program to begin", || {
        (rig.containers.inside().launched.as_ref()?.told == ["begin"]).then_some(())
    })
    .await;
    rig.containers.inside().launched.as_mut().unwrap().ended = true;
    assert_eq!(rig.end_of("c").await.0, "Succeeded");
    assert_eq!(told(&rig), ["begin", "let go"]);
    let capture = rig.server.get("captures", "team", "c").unwrap();
    let artifacts = capture["status"]["artifacts"].as_array().unwrap();
    let raw = artifacts.iter().find(|artifact| artifact["type"] == "Raw").unwrap();
    assert_eq!(
        (&raw["name"], &raw["bytes"]),
        (&json!("capture.ncu-rep"), &json!(bytes))
    );
    assert_eq!(raw["sensitive"], true);
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_windows_end_ends_the_program_and_no_report_has_the_profilers_reason() {
    let log =
        "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters\n";
    let rig = rig("{}", BTreeMap::from([("ncu.log", log.into())]));
    let life = rig.live().await;
    ask(&rig, 1, &["Timeline"]);
    let message = rig.ends("c", "CountersRestricted").await;
    assert!(message.contains("NVreg_RestrictProfilingToAdminUsers"), "{message}");
    assert_eq!(told(&rig), ["begin", "end", "let go", "refuse", "end", "let go"]);
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nccl_ends_the_capture_of_a_program_whose_kernels_are_all_replayed() {
    let every = rig("{}", BTreeMap::new());
    every.containers.inside().launched.as_mut().unwrap().nccl = true;
    let life = every.live().await;
    ask(&every, 60, &["Timeline"]);
    let message = every.ends("c", "ProfilerUnavailable").await;
    assert!(message.contains("NCCL") && message.contains("kernelRegex"), "{message}");
    assert_eq!(told(&every), ["begin", "refuse", "end", "let go"]);
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_is_taken_up_by_the_next_agent() {
    let log = "==WARNING== No kernels were profiled.\n";
    let rig = rig("{}", BTreeMap::from([("ncu.log", log.into())]));
    let life = rig.live().await;
    ask(&rig, 60, &["Timeline"]);
    rig.in_stage("c", "Collecting").await;
    life.end().await;
    assert!(
        !rig.containers.inside().launched.as_ref().unwrap().ended,
        "it goes on meanwhile"
    );
    let next = rig.live().await;
    rig.containers.inside().launched.as_mut().unwrap().ended = true;
    rig.ends("c", "RequiredEventsMissing").await;
    next.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_runs_already_is_refused_with_the_remedy() {
    let rig = Rig::prepared(None);
    let life = rig.live().await;
    ask(&rig, 1, &["Timeline"]);
    let message = rig.ends("c", "NotPrepared").await;
    assert!(message.contains("spec.target.replicaOf"), "{message}");
    life.end().await;
}
