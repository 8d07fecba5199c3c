//! Kineto, whose windows nobody can end: one that would take all of its program's memory,
//! one that would get its pod evicted, and traces that nobody answers for.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::capture::Stage;
use flopwatch_api::preparation::CAPTURE_BYTES_ANNOTATION;
use flopwatch_system_tests::cluster::{Group, TestNamespace};
use flopwatch_system_tests::frameworks::frameworks;
use flopwatch_system_tests::mounts::Unanswered;
use flopwatch_system_tests::node::{self, Process};
use flopwatch_system_tests::sessions::{spec, with};
use flopwatch_system_tests::trainer::{End, Trainer};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::time::sleep;

/// A loop of some 60,000 small layers a second, or of fewer.
const LAYERS: &str = include_str!("../../../programs/layers.py");
/// Pauses of its steps in seconds, with which it goes through some 3,000 a second, and through as
/// many as it can.
const STEADY_STEP_SECONDS: &str = "0.0002";
const TIGHT_STEP_SECONDS: &str = "0";
/// Longer than the kubelet takes to look at a pod's volumes again (a minute), and to evict it then.
const EVICTION_TIMEOUT: Duration = Duration::from_secs(80);
/// Most bytes that the loop may ever have had, of its limit of 6 GiB.
const MAX_BYTES: u64 = 5 << 30;
/// How long a capture may wait for traces that do not come.
const ABANDONED_TRACES_TIMEOUT: Duration = Duration::from_mins(4);

/// The loop in its pod. It ends with this: the pod of a test that fails stays, and would take a
/// processor from all that come next.
struct Loop(Process);

impl std::ops::Deref for Loop {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.0
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.0.signal(Signal::SIGKILL).ok();
    }
}

/// A pod that runs the loop, and the loop once it goes.
async fn layers(
    namespace: &TestNamespace,
    name: &str,
    pause: &str,
    change: impl FnOnce(&mut Value) + Send,
) -> Result<(Pod, Loop)> {
    let mut pod = frameworks(name, "kineto", 1)?;
    let container = &mut pod["spec"]["containers"][0];
    container["command"] = json!(["/python/bin/python3", "-c", LAYERS]);
    container["args"] = json!([pause]);
    change(&mut pod);
    let made = namespace.create_kept(pod).await?;
    namespace.says(name, "ranges=").await?;
    let program = node::first_process(&namespace.running(name).await?)?;
    Ok((made, Loop(program)))
}

fn asked(pod: &str, seconds: u32, options: &Value) -> Value {
    let kineto = json!({ "type": "Kineto", "kineto": options });
    let more = json!({ "require": ["cpu_op"], "profiler": kineto });
    with(spec(pod, seconds, "Kineto"), more)
}

async fn end_of(namespace: &TestNamespace, session: &str, spec: Value) -> Result<End> {
    namespace.create_session(session, spec).await?;
    namespace.end_of(session).await
}

/// The window was as long as it may be, or there was none, and the capture says so with the
/// figures.
fn is_bounded(end: &End) -> Result<()> {
    let shortened = end.succeeded && end.message.contains("of the 60 s that were asked for");
    let reasons = ["OverBudget", "CaptureTooLarge"];
    let refused = reasons.contains(&end.reason.as_str()) && end.message.contains("not even a window of 0.5 s fits");
    ensure!(shortened || refused, "{end:?}");
    ensure!(end.message.contains("events a second"), "{end:?}");
    Ok(())
}

/// The node of a pod is ready.
async fn its_node_is_ready(namespace: &TestNamespace, pod: &str) -> Result<()> {
    let spec = namespace.running(pod).await?.spec.context("no spec")?;
    let name = spec.node_name.context("no node")?;
    let is_ready = namespace.cluster.is_ready(&name).await?;
    ensure!(is_ready, "node {name} is not ready");
    Ok(())
}

#[tokio::test]
async fn a_window_of_a_minute_leaves_a_tight_loop_and_its_node_their_memory() -> Result<()> {
    let Some(namespace) = TestNamespace::begin_first(Group::Hostile, "kineto-memory").await? else {
        return Ok(());
    };
    namespace.allow_host_folders().await?;
    // One after the other: a loop takes a processor for as long as it is there.
    let (_, limited) = layers(&namespace, "limited", TIGHT_STEP_SECONDS, |_| {}).await?;
    let end = end_of(&namespace, "limited", asked("limited", 60, &json!({}))).await?;
    is_bounded(&end)?;
    ensure!(limited.is_alive(), "the window took its program's memory: {end:?}");
    let peak = limited.peak_bytes()?;
    ensure!(peak < MAX_BYTES, "{peak} of 6 GiB; {end:?}");
    drop(limited);

    let (_, unlimited) = layers(&namespace, "unlimited", TIGHT_STEP_SECONDS, |pod| {
        let resources = &mut pod["spec"]["containers"][0]["resources"];
        *resources = json!({ "requests": resources["requests"] });
    })
    .await?;
    let options = json!({ "stacks": true, "shapes": true });
    let end = end_of(&namespace, "unlimited", asked("unlimited", 60, &options)).await?;
    is_bounded(&end)?;
    ensure!(unlimited.is_alive(), "the program ended: {end:?}");
    its_node_is_ready(&namespace, "unlimited").await?;
    drop(unlimited);

    // Memory is what it comes to the end of.
    let (_, steady) = layers(&namespace, "steady", STEADY_STEP_SECONDS, |pod| {
        pod["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("1Gi");
    })
    .await?;
    let end = end_of(&namespace, "steady", asked("steady", 60, &json!({}))).await?;
    ensure!(end.succeeded, "{end:?}");
    is_bounded(&end)?;
    ensure!(end.message.contains("its limit of 1024 MiB"), "{end:?}");
    ensure!(steady.is_alive(), "the window took its program's memory");
    namespace.delete().await
}

#[tokio::test]
async fn traces_that_nobody_answers_for_fail_their_capture_and_keep_no_other() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Hostile, "kineto-hangs").await? else {
        return Ok(());
    };
    namespace.allow_host_folders().await?;
    let (_, hostile) = layers(&namespace, "hostile", STEADY_STEP_SECONDS, |_| {}).await?;
    let other = Trainer::start_frameworks(&namespace, "other").await?;

    let unanswered = Unanswered::over(*hostile, Path::new("/tmp"))?;
    namespace
        .create_session("before", asked("hostile", 2, &json!({})))
        .await?;
    namespace
        .fails_with("before", "AttachFailed", &["of the kind fuse"])
        .await?;
    drop(unanswered);

    namespace
        .create_session("within", asked("hostile", 4, &json!({})))
        .await?;
    namespace.in_stage("within", Stage::Collecting).await?;
    let unanswered = Unanswered::over(*hostile, Path::new("/tmp"))?;
    let begin = Instant::now();
    // As many as the node has turns for, but for that one.
    other.succeeds(&namespace, "beside", "Kineto").await?;
    namespace
        .fails_with("within", "CollectionFailed", &["of the kind fuse"])
        .await?;
    ensure!(begin.elapsed() < ABANDONED_TRACES_TIMEOUT, "{:?}", begin.elapsed());
    drop(unanswered);
    ensure!(hostile.is_alive(), "the program ended");
    namespace.delete().await
}

#[tokio::test]
async fn two_windows_with_stacks_get_no_pod_evicted_that_has_little_storage() -> Result<()> {
    let Some(namespace) = TestNamespace::begin_first(Group::Hostile, "kineto-storage").await? else {
        return Ok(());
    };
    namespace.allow_host_folders().await?;
    let (made, small) = layers(&namespace, "small", STEADY_STEP_SECONDS, |pod| {
        pod["spec"]["containers"][0]["resources"]["limits"]["ephemeral-storage"] = json!("300Mi");
    })
    .await?;
    let room = made.annotations().get(CAPTURE_BYTES_ANNOTATION);
    ensure!(room == Some(&(150 << 20).to_string()), "{room:?}");
    for session in ["first", "second"] {
        let end = end_of(&namespace, session, asked("small", 60, &json!({ "stacks": true }))).await?;
        is_bounded(&end)?;
        ensure!(end.message.contains("ephemeral-storage limit"), "{end:?}");
    }
    sleep(EVICTION_TIMEOUT).await;
    let pod = namespace.running("small").await?;
    let status = pod.status.context("a pod without a status")?;
    ensure!(
        status.phase.as_deref() == Some("Running") && small.is_alive(),
        "the pod did not outlive its captures: {status:?}"
    );
    namespace.delete().await
}

#[tokio::test]
async fn traces_in_memory_leave_their_program_its_memory() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Hostile, "kineto-in-memory").await? else {
        return Ok(());
    };
    namespace.allow_host_folders().await?;
    let (_, small) = layers(&namespace, "small", STEADY_STEP_SECONDS, |pod| {
        let volumes = pod["spec"]["volumes"].as_array_mut().into_iter().flatten();
        for volume in volumes.filter(|volume| volume["name"] == "tmp") {
            volume["emptyDir"] = json!({ "medium": "Memory" });
        }
        pod["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("1Gi");
    })
    .await?;
    for session in ["first", "second"] {
        let end = end_of(&namespace, session, asked("small", 60, &json!({ "stacks": true }))).await?;
        is_bounded(&end)?;
        ensure!(end.message.contains("each and the traces take"), "{end:?}");
        ensure!(small.is_alive(), "{session} took its program's memory: {end:?}");
    }
    namespace.delete().await
}
