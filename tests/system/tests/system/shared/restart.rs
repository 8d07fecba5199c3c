//! A capture belongs to the container that it was attached to, and to no later one; a later one is
//! grafted whatever became of the profiler in the one before.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace, eventually};
use flopwatch_system_tests::node::{self, Process};
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::sessions::capture_condition;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// Within this time a start that nobody strikes is grafted, in milliseconds.
const MAX_GRAFT_MS: u64 = 10_000;
/// The latest moment of a kill after the end of the life before, in milliseconds: the kubelet takes
/// a second or two of it.
const MAX_STRIKE_MS: u64 = 4000;

/// Waits until the pod's container runs again.
async fn restarted(namespace: &TestNamespace, name: &str) -> Result<()> {
    eventually("the container to run again", || async {
        let pod = namespace.api::<Pod>().get(name).await?;
        let container = pod
            .status
            .and_then(|status| status.container_statuses)
            .and_then(|all| all.into_iter().next());
        Ok(container
            .filter(|one| one.restart_count > 0 && one.state.as_ref().is_some_and(|state| state.running.is_some())))
    })
    .await
    .map(drop)
}

#[tokio::test]
async fn a_container_that_restarts_within_the_window_ends_its_capture_with_that_reason() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("restart").await?;
    let mut pod = workload("trainer", true, &[]);
    pod["spec"]["restartPolicy"] = json!("Always");
    namespace.create_pod(pod).await?;
    namespace.launch_state("trainer").await?;
    namespace
        .create_session(
            "pinned",
            json!({ "target": { "podName": "trainer" }, "durationSeconds": 300, "profiler": { "type": "Nsys" } }),
        )
        .await?;
    namespace.attached("pinned").await?;
    let pinned = namespace
        .only_capture("pinned")
        .await?
        .status
        .and_then(|status| status.container_id);
    let pinned = pinned.context("the capture names no container")?;
    namespace.shell("trainer", "kill -TERM 1").await?;
    namespace.finished("pinned").await?;
    let capture = namespace.only_capture("pinned").await?;
    let failed = capture_condition(&capture, "Succeeded").context("no condition")?;
    ensure!(
        failed.status == "False" && failed.reason == "ContainerRestarted" && failed.message.contains("of 300 s"),
        "{failed:?}"
    );
    ensure!(
        capture.status.and_then(|status| status.container_id).as_ref() == Some(&pinned),
        "the capture went on to another container"
    );
    restarted(&namespace, "trainer").await?;
    namespace.delete().await
}

#[tokio::test]
async fn a_container_that_restarts_after_its_profiler_was_killed_is_grafted_again_over_the_same_shared_memory()
-> Result<()> {
    let Some(cluster) = Cluster::connect_first(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("healing").await?;
    let mut pod = workload("trainer", true, &[]);
    pod["spec"]["restartPolicy"] = json!("Always");
    namespace.create_pod(namespace.on_kept_node(pod).await?).await?;
    let first = namespace.launch_state("trainer").await?;
    ensure!(first["grafted"] == json!(true), "{first}");
    // A start whose session did not live for 30 s is followed by a plain one.
    let pod = namespace.running("trainer").await?;
    let marker = node::first_process(&pod)?.root().join("flopwatch/run/marker");
    eventually("the start to be marked as survived", || async {
        let marker = std::fs::read_to_string(&marker)?;
        Ok(marker.contains("survived=true").then_some(()))
    })
    .await?;
    for process in node::sessions_of(&pod)?
        .into_iter()
        .filter(|process| process.runs("nsys"))
    {
        // One that has ended with the one before it is as good.
        process.signal(Signal::SIGKILL).ok();
    }
    namespace.shell("trainer", "kill -TERM 1").await?;
    restarted(&namespace, "trainer").await?;
    let second: Value = eventually("the launcher of the second life to decide", || async {
        let state = namespace.launch_state("trainer").await?;
        Ok((state["unix_ms"] != first["unix_ms"]).then_some(state))
    })
    .await?;
    ensure!(second["grafted"] == json!(true), "{second}");
    let names = namespace.shell("trainer", "ls /dev/shm").await?;
    let agents = names
        .lines()
        .filter(|name| name.starts_with("quadd-agent-instance-"))
        .count();
    ensure!(agents == 1, "{names}");
    namespace.delete().await
}

/// The profiler's processes in a pod, whichever life of its container they belong to.
fn profilers(pod: &str) -> Result<Vec<Process>> {
    let beside = node::in_cgroup("/flopwatch/")?.into_iter();
    Ok(beside
        .filter(|process| {
            let program = std::fs::read_link(format!("/proc/{}/exe", process.pid)).unwrap_or_default();
            program
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("nsys"))
        })
        .filter(|process| {
            // The run volume lies below a folder of the pod's UID.
            std::fs::read_to_string(format!("/proc/{}/mountinfo", process.pid)).is_ok_and(|table| table.contains(pod))
        })
        .collect())
}

/// Kills one of the profiler's processes in a pod at a moment that `number` draws; says which, if
/// there was one in time.
async fn strike(pod: &str, number: u64) -> Result<Option<String>> {
    let drawn = fastrand::Rng::with_seed(number).u64(..);
    let begin = Instant::now();
    let moment = Duration::from_millis(drawn % MAX_STRIKE_MS);
    while begin.elapsed() < Duration::from_millis(MAX_STRIKE_MS * 2) {
        let found = if begin.elapsed() < moment {
            Vec::new()
        } else {
            profilers(pod)?
        };
        let count = u64::try_from(found.len())?;
        let index = (drawn >> 32)
            .checked_rem(count)
            .and_then(|index| usize::try_from(index).ok());
        if let Some(process) = index.and_then(|index| found.get(index)) {
            let words = process.words();
            process.signal(Signal::SIGKILL)?;
            // The program and its verb, without folders; other first arguments are names that it
            // drew.
            let names = words.iter().take(2).filter_map(|word| word.rsplit('/').next());
            let names = names.filter(|name| !name.contains(|letter: char| letter.is_ascii_digit()));
            return Ok(Some(names.collect::<Vec<_>>().join(" ")));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(None)
}

/// Four lives, or as many as `FLOPWATCH_POD_KILLS` says (`cargo xtask soak --pod-kills 100`).
#[tokio::test]
async fn whatever_process_of_the_profiler_is_killed_in_a_pod_its_containers_next_life_is_grafted() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let lives = std::env::var("FLOPWATCH_POD_KILLS").map_or(Ok(4), |text| text.parse::<u64>())?;
    let namespace = cluster.namespace("struck").await?;
    let mut pod = workload("trainer", true, &[]);
    pod["spec"]["restartPolicy"] = json!("Always");
    let pod = namespace.create_pod(namespace.on_kept_node(pod).await?).await?;
    let uid = pod.uid().context("a pod without a UID")?;
    let mut before = namespace.launch_state("trainer").await?;
    ensure!(before["grafted"] == json!(true), "{before}");
    let (mut killed, mut waited) = (BTreeMap::<String, u32>::new(), Vec::new());
    for number in 0..lives {
        // Without its marker a life counts as long enough to be followed by a grafted one.
        namespace
            .shell("trainer", "rm -f /flopwatch/run/marker; kill -TERM 1")
            .await?;
        if number.is_multiple_of(2) {
            let what = strike(&uid, number).await?;
            *killed.entry(what.unwrap_or_else(|| "nothing".into())).or_default() += 1;
        }
        let state: Value = eventually(&format!("the launcher of life {number} to decide"), || async {
            let state = namespace.launch_state("trainer").await?;
            Ok((state["unix_ms"] != before["unix_ms"]).then_some(state))
        })
        .await?;
        if !number.is_multiple_of(2) {
            let took = state["waited_ms"]
                .as_u64()
                .context("the launcher did not say how long it waited")?;
            ensure!(
                state["grafted"] == json!(true) && took < MAX_GRAFT_MS,
                "life {number}: {state}; {killed:?}"
            );
            // What the killed ones left has been removed.
            let names = namespace.shell("trainer", "ls /dev/shm").await?;
            let agents = names.lines().filter(|name| name.starts_with("quadd-agent-instance-"));
            ensure!(agents.count() == 1, "life {number}: {names}; {killed:?}");
            waited.push(took);
        }
        before = state;
    }
    waited.sort_unstable();
    println!(
        "{lives} lives of one container; killed: {killed:?}; the others were grafted after {:?} ms (median), {:?} ms (longest)",
        waited.get(waited.len() / 2),
        waited.last()
    );
    namespace
        .create_session(
            "afterwards",
            json!({ "target": { "podName": "trainer" }, "durationSeconds": 1, "profiler": { "type": "Nsys" } }),
        )
        .await?;
    let end = namespace.end_of("afterwards").await?;
    ensure!(end.succeeded, "{end:?}");
    namespace.delete().await
}
