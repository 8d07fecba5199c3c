//! A capture belongs to the container that it was attached to, and to no later one; a later one is
//! grafted whatever became of the profiler in the one before.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use flopwatch_system_tests::cluster::{Group, TestNamespace, eventually};
use flopwatch_system_tests::node::{self, Process};
use flopwatch_system_tests::pods::{restarting, restarts, workload};
use kube::ResourceExt as _;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// Within this time a start that nobody strikes is grafted, in milliseconds.
const MAX_GRAFT_MS: u64 = 10_000;
/// The latest moment of a kill after the end of the life before, in milliseconds: the kubelet takes
/// a second or two of it.
const MAX_STRIKE_MS: u64 = 4000;
/// Begin of the name of the shared memory of a profiler's session.
const AGENT_INSTANCE: &str = "quadd-agent-instance-";

/// Waits until the pod's container runs again.
async fn restarted(namespace: &TestNamespace, name: &str) -> Result<()> {
    eventually("the container to run again", || async {
        Ok((restarts(&namespace.running(name).await?) > 0).then_some(()))
    })
    .await
}

/// Waits until the launcher of the life after `before` has decided, and gives what it says.
async fn decided_after(namespace: &TestNamespace, before: &Value, life: &str) -> Result<Value> {
    eventually(&format!("the launcher of {life} to decide"), || async {
        let state = namespace.launch_state("trainer").await?;
        Ok((state["unix_ms"] != before["unix_ms"]).then_some(state))
    })
    .await
}

#[tokio::test]
async fn a_container_that_restarts_within_the_window_ends_its_capture_with_that_reason() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "restart").await? else {
        return Ok(());
    };
    namespace.launch(restarting(workload("trainer", true, &[]))).await?;
    namespace.profile("pinned", "trainer", 300, "Nsys").await?;
    namespace.attached("pinned").await?;
    let container = async || {
        let status = namespace.only_capture("pinned").await?.status;
        let id = status.and_then(|status| status.container_id);
        id.context("the capture names no container")
    };
    let pinned = container().await?;
    namespace.shell("trainer", "kill -TERM 1").await?;
    namespace
        .fails_with("pinned", "ContainerRestarted", &["of 300 s"])
        .await?;
    ensure!(container().await? == pinned, "the capture went on to another container");
    restarted(&namespace, "trainer").await?;
    namespace.delete().await
}

#[tokio::test]
async fn a_container_that_restarts_after_its_profiler_was_killed_is_grafted_again_over_the_same_shared_memory()
-> Result<()> {
    let Some(namespace) = TestNamespace::begin_first(Group::Shared, "healing").await? else {
        return Ok(());
    };
    let pod = restarting(workload("trainer", true, &[]));
    namespace.create_kept(pod).await?;
    let first = namespace.grafted("trainer").await?;
    // A start whose session did not live for 30 s is followed by a plain one.
    let pod = namespace.running("trainer").await?;
    let marker = node::first_process(&pod)?.root().join("flopwatch/run/marker");
    eventually("the start to be marked as survived", || async {
        let marker = std::fs::read_to_string(&marker)?;
        Ok(marker.contains("survived=true").then_some(()))
    })
    .await?;
    let beside = node::sessions_of(&pod)?.into_iter();
    for process in beside.filter(|process| process.runs("nsys")) {
        // One that has ended with the one before it is as good.
        process.signal(Signal::SIGKILL).ok();
    }
    namespace.shell("trainer", "kill -TERM 1").await?;
    restarted(&namespace, "trainer").await?;
    let second = decided_after(&namespace, &first, "the second life").await?;
    ensure!(second["grafted"] == json!(true), "{second}");
    let names = namespace.shell("trainer", "ls /dev/shm").await?;
    let agents = names.lines().filter(|name| name.starts_with(AGENT_INSTANCE));
    ensure!(agents.count() == 1, "{names}");
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
    let Some(namespace) = TestNamespace::begin(Group::Shared, "struck").await? else {
        return Ok(());
    };
    let lives = std::env::var("FLOPWATCH_POD_KILLS").map_or(Ok(4), |text| text.parse::<u64>())?;
    let pod = restarting(workload("trainer", true, &[]));
    let pod = namespace.create_kept(pod).await?;
    let uid = pod.uid().context("a pod without a UID")?;
    let mut before = namespace.grafted("trainer").await?;
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
        let state = decided_after(&namespace, &before, &format!("life {number}")).await?;
        if !number.is_multiple_of(2) {
            let took = state["waited_ms"].as_u64();
            let took = took.context("the launcher did not say how long it waited")?;
            ensure!(
                state["grafted"] == json!(true) && took < MAX_GRAFT_MS,
                "life {number}: {state}; {killed:?}"
            );
            // What the killed ones left has been removed.
            let names = namespace.shell("trainer", "ls /dev/shm").await?;
            let agents = names.lines().filter(|name| name.starts_with(AGENT_INSTANCE));
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
    namespace.profile("afterwards", "trainer", 1, "Nsys").await?;
    namespace.success_of("afterwards").await?;
    namespace.delete().await
}
