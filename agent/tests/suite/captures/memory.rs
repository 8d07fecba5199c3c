//! The memory of a target while its window is open.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use super::rig::{Rig, eventually};
use super::sample;
use super::sample_profiler::Sample;

const POD: &str = "kubepods/burstable/pod0a1b2c3d-1111-2222-3333-444455556666";
const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const LIMIT_MIB: u64 = 1024;

/// The container's cgroup.
fn cgroup(rig: &Rig) -> PathBuf {
    rig.machine().join("cgroup").join(POD).join(ID)
}

/// Lets the container hold so much memory from now on.
fn hold(rig: &Rig, mebibytes: u64) {
    // In one write, as the kernel's own files change: a reader finds the one number or the other.
    let file = OpenOptions::new().write(true).open(cgroup(rig).join("memory.current"));
    let text = format!("{:>20}\n", mebibytes << 20);
    file.unwrap().write_all_at(text.as_bytes(), 0).unwrap();
}

/// A node whose container has a limit of 1 GiB and holds so much of it.
fn limited(rig: Rig, mebibytes: u64) -> Rig {
    rig.server.edit("pods", "team", "p", |pod| {
        pod["status"]["containerStatuses"][0]["containerID"] = json!(format!("containerd://{ID}"));
    });
    let own = cgroup(&rig);
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(rig.machine().join("cgroup/cgroup.controllers"), "cpu memory\n").unwrap();
    for folder in own.ancestors().take(4) {
        for (file, text) in [("memory.current", "0\n"), ("memory.max", "max\n"), ("memory.stat", "")] {
            std::fs::write(folder.join(file), text).unwrap();
        }
    }
    std::fs::write(own.join("memory.max"), (LIMIT_MIB << 20).to_string()).unwrap();
    hold(&rig, mebibytes);
    rig
}

#[tokio::test]
async fn a_window_is_ended_and_published_before_its_target_is_out_of_memory() {
    let rig = limited(Rig::new(&json!({})), 100);
    let life = rig.collecting("c", 60).await;
    let begin = Instant::now();
    hold(&rig, LIMIT_MIB - 10);
    let (reason, message) = rig.end_of("c").await;
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    assert_eq!(reason, "OverBudget", "{message}");
    assert!(
        message.contains("10 MiB were left of its limit of 1024 MiB") && message.contains("are published"),
        "{message}"
    );
    assert!(rig.manifest("c").exists());
    life.end().await;
}

#[tokio::test]
async fn a_window_goes_on_whose_target_was_at_its_limit_before() {
    let rig = limited(Rig::new(&json!({})), LIMIT_MIB - 10);
    let life = rig.collecting("c", 2).await;
    rig.ends("c", "Succeeded").await;
    life.end().await;
}

#[tokio::test]
async fn a_window_that_its_profiler_cannot_end_goes_on() {
    let rig = limited(sample::asked(&Sample::default()), 100);
    let life = rig.live().await;
    rig.in_stage("c", "Collecting").await;
    hold(&rig, LIMIT_MIB - 10);
    rig.ends("c", "Succeeded").await;
    life.end().await;
}

#[tokio::test]
async fn the_next_agent_watches_the_memory_of_a_window_that_is_open() {
    let rig = limited(Rig::prepared(None), 100);
    let life = rig.collecting("c", 300).await;
    let life = rig.after(life).await;
    eventually("the window to go on", || {
        (rig.containers.inside().sampled == 2).then_some(())
    })
    .await;
    hold(&rig, LIMIT_MIB - 10);
    eventually("the collection to be ended", || {
        rig.containers.inside().collecting.is_none().then_some(())
    })
    .await;
    life.end().await;
}
