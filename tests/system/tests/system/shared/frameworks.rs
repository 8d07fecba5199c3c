//! Real PyTorch and real JAX in real pods that changed nothing but a label: captured as they run,
//! and left as they were.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::artifact::JAX_DUMPS;
use flopwatch_api::preparation::JAX_DUMPS_ANNOTATION;
use flopwatch_system_tests::cluster::{Group, TestNamespace, eventually};
use flopwatch_system_tests::frameworks::{frameworks, longest_step_micros};
use flopwatch_system_tests::pod_state::PodState;
use flopwatch_system_tests::sessions::{spec, with};
use flopwatch_system_tests::workload::counts;
use kube::ResourceExt as _;
use serde_json::{Value, json};

/// A step takes some milliseconds; a pause of this length would be felt.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Starts the pod and waits until each of its processes takes steps.
async fn started(namespace: &TestNamespace, name: &str, prepare: &str, processes: u16) -> Result<PodState> {
    taking_steps(namespace, frameworks(name, prepare, processes)?, processes).await
}

/// The same of a pod of that many processes.
async fn taking_steps(namespace: &TestNamespace, pod: Value, processes: u16) -> Result<PodState> {
    let name = namespace.create_kept(pod).await?.name_any();
    namespace.running(&name).await?;
    eventually("all processes to take steps", || async {
        let log = namespace.logs(&name).await?;
        let at_work = counts(&log).len();
        ensure!(at_work == usize::from(processes), "{at_work} processes: {log}");
        Ok(Some(()))
    })
    .await?;
    PodState::of(namespace, &name).await
}

/// Captures the pod with a profiler: it must succeed and hold events of a category, and the program
/// keeps its pace meanwhile.
async fn captured(
    namespace: &TestNamespace,
    pod: &str,
    session: &str,
    profiler: &str,
    category: Option<&str>,
) -> Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let from = u64::try_from(now.as_nanos())?;
    let mut spec = spec(pod, 3, profiler);
    if let Some(category) = category {
        spec["require"] = json!([category]);
    }
    namespace.create_session(session, spec).await?;
    namespace.success_of(session).await?;
    let capture = namespace.only_capture(session).await?;
    let summary = capture.status.and_then(|status| status.summary).context("no summary")?;
    let events = |name: &str| {
        let found = summary.categories.iter().find(|one| one.category.as_str() == name);
        found.map_or(0, |one| one.events)
    };
    let recorded = category.map_or(summary.events, events);
    ensure!(recorded > 0 || profiler == "Metrics", "{session}: {summary:?}");
    let longest = longest_step_micros(&namespace.logs(pod).await?, from)?;
    #[expect(clippy::print_stdout, reason = "the figures of this run")]
    {
        println!("{session}: {recorded} events, the longest step took {longest} us");
    }
    ensure!(
        u128::from(longest) < MAX_PAUSE.as_micros(),
        "{session}: a step took {longest} us"
    );
    Ok(())
}

#[tokio::test]
async fn four_profilers_take_turns_on_one_pod_of_pytorch_and_jax() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "frameworks").await? else {
        return Ok(());
    };
    namespace.allow_host_folders().await?;
    let before = started(&namespace, "trainer", "nsys.kineto.jax", 1).await?;
    let turns = [
        ("kineto", "Kineto", Some("cpu_op")),
        ("nsys", "Nsys", Some("os_runtime")),
        ("jax", "Jax", None),
        ("metrics", "Metrics", None),
        ("again", "Kineto", Some("cpu_op")),
    ];
    for (session, profiler, category) in turns {
        captured(&namespace, "trainer", session, profiler, category).await?;
        before.goes_on(&namespace).await.context(session)?;
    }
    namespace.delete().await
}

#[tokio::test]
async fn eight_processes_of_one_pod_are_in_one_capture() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "eight").await? else {
        return Ok(());
    };
    namespace.allow_host_folders().await?;
    let before = started(&namespace, "trainer", "kineto", 8).await?;
    captured(&namespace, "trainer", "all", "Kineto", Some("cpu_op")).await?;
    before.goes_on(&namespace).await?;
    namespace.delete().await
}

#[tokio::test]
async fn what_the_compiler_of_a_prepared_pod_wrote_is_published_with_its_capture() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "dumps").await? else {
        return Ok(());
    };
    namespace.allow_host_folders().await?;
    let mut pod = frameworks("trainer", "jax", 1)?;
    pod["metadata"]["annotations"][JAX_DUMPS_ANNOTATION] = json!("true");
    let before = taking_steps(&namespace, pod, 1).await?;
    let asked = |outputs: &[&str]| {
        let dumps = json!({ "type": "Jax", "jax": { "dumps": true } });
        let more = json!({ "outputs": outputs, "profiler": dumps });
        with(spec("trainer", 2, "Jax"), more)
    };
    let refused = namespace.create_session("without-raw", asked(&["Timeline"])).await;
    let why = format!("{:#}", refused.err().context("dumps are published as Raw")?);
    ensure!(why.contains("add Raw to spec.outputs"), "{why}");

    namespace
        .create_session("dumps", asked(&["Timeline", "Summary", "Raw"]))
        .await?;
    namespace.success_of("dumps").await?;
    let status = namespace.only_capture("dumps").await?.status.context("no status")?;
    let dumps = status.artifacts.iter().find(|artifact| artifact.name == JAX_DUMPS);
    let bytes = dumps.with_context(|| format!("{:?}", status.artifacts))?.bytes;
    // Two small programs, each before and after the optimisation and as StableHLO.
    ensure!(bytes > 8192, "{bytes} bytes");
    before.goes_on(&namespace).await?;
    namespace.delete().await
}
