//! From a session's creation to its picture, stage by stage. `cargo xtask bench stages` runs it for
//! more rounds.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::capture::Stage;
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace, eventually_each};
use flopwatch_system_tests::fetch::{ArtifactClient, reader_token};
use flopwatch_system_tests::parts::Running;
use flopwatch_system_tests::pods::{copied_into, workload};
use flopwatch_system_tests::sessions::condition_of;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, LogParams};
use serde_json::json;

/// How many sessions, one after the other.
const ROUNDS: &str = "FLOPWATCH_STAGES_ROUNDS";
/// Seconds of a window.
const WINDOW_SECONDS: u64 = 5;
/// Time between two looks at a session.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// What the viewer asks for at first.
const FIRST: &str = "bytes=0-196607";

/// What is told of each session, in this order.
const STEPS: [&str; 7] = [
    "until the agent has it",
    "until it records",
    "the window",
    "stop and fetch",
    "import and transform",
    "publish, until the session says so",
    "first bytes of the timeline",
];
/// What is told of each pod.
const PODS: [&str; 3] = [
    "an unprepared pod until it is ready",
    "a prepared pod until it is ready",
    "a prepared pod with copied tools until it is ready",
];

#[tokio::test(flavor = "multi_thread")]
async fn every_stage_of_a_session_is_told_in_its_order() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("stages").await?;
    namespace.create_pod(workload("trainer", true, &[])).await?;
    namespace.launch_state("trainer").await?;
    let pod = namespace.running("trainer").await?;
    let agent = Running::agent_of(&cluster.client, &pod).await?.pod;
    let token = reader_token(&namespace, "reader", "flopwatch-viewer").await?;
    let client = ArtifactClient::new(&cluster.client).await?;
    let mut all: Vec<Vec<u64>> = vec![Vec::new(); STEPS.len()];
    for round in 0..rounds()? {
        let name = format!("stages-{round}");
        let spec = json!({
            "target": { "podName": "trainer" }, "durationSeconds": WINDOW_SECONDS, "require": ["nvtx_range"],
            "profiler": { "type": "Nsys" }
        });
        let asked = now_ms()?;
        namespace.create_session(&name, spec).await?;
        let told = ended(&namespace, &name).await?;
        let capture = namespace.only_capture(&name).await?;
        let status = capture.status.as_ref().context("no status")?;
        let url = status.url.as_ref().context("no URL")?;
        let timeline = format!("{url}/timeline.h5");
        let answer = client
            .request(&timeline, Some(&token), &["--header", &format!("Range: {FIRST}")])
            .await?;
        ensure!(answer.status == 206, "{}", answer.status);
        let seen = now_ms()?;
        let stages = stages(&cluster, &agent, &capture.name_any()).await?;
        let at = |stage: Stage| {
            stages
                .get(&stage)
                .copied()
                .with_context(|| format!("no stage {stage:?}: {stages:?}"))
        };
        let times = [
            asked,
            at(Stage::Attaching)?,
            at(Stage::Collecting)?,
            at(Stage::Fetching)?,
            at(Stage::Transforming)?,
            at(Stage::Publishing)?,
            told,
            seen,
        ];
        for ((begin, end), figures) in times.iter().zip(times.iter().skip(1)).zip(&mut all) {
            figures.push(
                end.checked_sub(*begin)
                    .with_context(|| format!("not in order: {times:?}"))?,
            );
        }
    }
    tell(&STEPS, &all);
    namespace.delete().await
}

#[tokio::test]
async fn prepared_pods_and_unprepared_ones_become_ready() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("ready").await?;
    let mut all: Vec<Vec<u64>> = vec![Vec::new(); PODS.len()];
    for round in 0..rounds()? {
        let name = |kind: &str| format!("pod-{round}-{kind}");
        let copied = copied_into(&cluster.client, workload(&name("copied"), true, &[])).await?;
        let kinds = [
            workload(&name("unprepared"), false, &[]),
            workload(&name("prepared"), true, &[]),
            copied,
        ];
        for (pod, figures) in kinds.into_iter().zip(&mut all) {
            let begin = now_ms()?;
            let name = namespace.create_pod(pod).await?.name_any();
            figures.push(ready(&namespace, &name).await?.saturating_sub(begin));
            let pods = namespace.api::<Pod>();
            pods.delete(&name, &DeleteParams::default().grace_period(0)).await?;
            namespace.pod_gone(&name).await?;
        }
    }
    tell(&PODS, &all);
    namespace.delete().await
}

fn rounds() -> Result<usize> {
    Ok(std::env::var(ROUNDS).map_or(Ok(1), |text| text.parse())?)
}

/// When the pod was seen to be ready, in Unix ms.
async fn ready(namespace: &TestNamespace, name: &str) -> Result<u64> {
    eventually_each(POLL_INTERVAL, &format!("pod {name} to be ready"), || async {
        let pod = namespace.api::<Pod>().get(name).await?;
        let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
        let is_ready = |one: &PodCondition| one.type_ == "Ready" && one.status == "True";
        Ok(conditions.iter().any(is_ready).then_some(()))
    })
    .await?;
    now_ms()
}

/// When the session said that it succeeded, in Unix ms.
async fn ended(namespace: &TestNamespace, name: &str) -> Result<u64> {
    let session = eventually_each(POLL_INTERVAL, &format!("session {name} to end"), || async {
        let session = namespace.api::<ProfilingSession>().get(name).await?;
        let is_decided = condition_of(&session, "Succeeded").is_some_and(|one| one.status != "Unknown");
        Ok(is_decided.then_some(session))
    })
    .await?;
    let time = now_ms();
    let succeeded = condition_of(&session, "Succeeded").is_some_and(|one| one.status == "True");
    ensure!(succeeded, "{:#?}", session.status);
    time
}

/// When the agent entered each stage of a capture, in Unix ms, as its log tells.
async fn stages(cluster: &Cluster, agent: &Pod, capture: &str) -> Result<BTreeMap<Stage, u64>> {
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), chart::NAMESPACE);
    let parameters = LogParams {
        since_seconds: Some(60),
        ..LogParams::default()
    };
    let log = pods.logs(&agent.name_any(), &parameters).await?;
    let mut stages = BTreeMap::new();
    for line in log.lines().filter(|line| line.contains(capture)) {
        let stage = line.split_once("stage=\"").and_then(|(_, rest)| rest.split_once('"'));
        let known = |name: &str| serde_json::from_value::<Stage>(json!(name)).ok();
        if let (Some(stage), Some((time, _))) = (stage.and_then(|(name, _)| known(name)), line.split_once(' ')) {
            let time: Timestamp = time.parse()?;
            stages.entry(stage).or_insert(u64::try_from(time.as_millisecond())?);
        }
    }
    Ok(stages)
}

fn now_ms() -> Result<u64> {
    Ok(u64::try_from(
        SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis(),
    )?)
}

/// A table of seconds: least, median and most of each step.
fn tell(steps: &[&str], all: &[Vec<u64>]) {
    #[expect(clippy::print_stdout, reason = "the recipe shows the table")]
    for (what, figures) in steps.iter().zip(all) {
        let mut figures = figures.clone();
        figures.sort_unstable();
        let of = |at: usize| figures.get(at).copied().unwrap_or_default();
        let end = figures.len().saturating_sub(1);
        let [least, median, most] =
            [of(0), of(end / 2), of(end)].map(|took| format!("{}.{:03}", took / 1000, took % 1000));
        println!("stages: {what}: {least} {median} {most}");
    }
}
