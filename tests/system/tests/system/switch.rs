//! The switch that stops all new captures, and an image of tools that cannot be had. Both hold for
//! the whole cluster, so they are a group of their own. The test of the switch makes no pod once it
//! has its own, and that of the image no session: they run beside each other.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::preparation::{PROFILER_VOLUME, TOOLS_INIT_CONTAINER};
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace, eventually, kubectl};
use flopwatch_system_tests::pods::workload;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tokio::sync::Mutex;

/// Held by the test whose pod needs the tools until it has them, and by the one that takes their
/// image away.
static TOOLS: Mutex<()> = Mutex::const_new(());
/// The Deployment that prepares pods.
const ADMISSION: &str = "flopwatch-admission";
/// Its flag of the tools' image.
const TOOLS_IMAGE: &str = "--tools-image=";

/// Switches as an administrator would, with `kubectl edit`.
async fn suspend(cluster: &Cluster, suspended: bool) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), chart::NAMESPACE);
    let data = Patch::Merge(json!({ "data": { "capturesSuspended": suspended.to_string() } }));
    maps.patch("flopwatch-controller", &PatchParams::default(), &data)
        .await?;
    Ok(())
}

#[tokio::test]
async fn the_switch_stops_new_captures_and_lets_those_that_run_end() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Switch).await? else {
        return Ok(());
    };
    let tools = TOOLS.lock().await;
    let namespace = cluster.namespace("switch").await?;
    namespace.graft(workload("trainer", true, &[])).await?;
    drop(tools);
    let outcome = switched(&cluster, &namespace).await;
    // Whatever happened: who comes next finds it off.
    suspend(&cluster, false).await?;
    outcome?;
    namespace.delete().await
}

async fn switched(cluster: &Cluster, namespace: &TestNamespace) -> Result<()> {
    namespace.profile("running", "trainer", 300, "Nsys").await?;
    namespace.attached("running").await?;
    suspend(cluster, true).await?;
    // The controller sees the switch a moment later; this one, which has nothing to profile, tells
    // when.
    namespace.profile("nothing", "absent", 1, "Nsys").await?;
    namespace.targets_found("nothing", "CapturesSuspended").await?;

    namespace.stop("running", "Keep").await?;
    let ended = namespace.succeeded("running").await;
    ended.context("a capture that ran was harmed")?;

    namespace.profile("resumes", "trainer", 1, "Nsys").await?;
    namespace.targets_found("resumes", "CapturesSuspended").await?;
    ensure!(namespace.captures("resumes").await?.is_empty(), "a capture was made");
    suspend(cluster, false).await?;
    namespace.succeeded("resumes").await.map(drop)
}

/// Gives admission another image of the tools, waits until it runs with it, and returns the one of
/// before.
async fn name_tools(cluster: &Cluster, image: &str) -> Result<String> {
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), chart::NAMESPACE);
    let found = serde_json::to_value(deployments.get(ADMISSION).await?)?;
    let container = &found["spec"]["template"]["spec"]["containers"][0];
    let mut arguments: Vec<String> = serde_json::from_value(container["args"].clone())?;
    let flag = arguments.iter_mut().find(|argument| argument.starts_with(TOOLS_IMAGE));
    let flag = flag.context("admission has no image of tools")?;
    let before = flag.strip_prefix(TOOLS_IMAGE).unwrap_or_default().to_owned();
    *flag = format!("{TOOLS_IMAGE}{image}");
    let container = json!({ "name": container["name"], "args": arguments });
    let changed = json!({ "spec": { "template": { "spec": { "containers": [container] } } } });
    deployments
        .patch(ADMISSION, &PatchParams::default(), &Patch::Strategic(changed))
        .await?;
    let deployment = format!("deployment/{ADMISSION}");
    kubectl(chart::NAMESPACE, &["rollout", "status", &deployment, "--timeout=2m"]).await?;
    Ok(before)
}

/// The image that the pod's tools are copied out of, or that is mounted.
fn tools_image(pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let mut containers = spec.init_containers.iter().flatten();
    let mut volumes = spec.volumes.iter().flatten();
    let copied = containers.find(|container| container.name == TOOLS_INIT_CONTAINER);
    let mounted = || {
        let mounted = volumes.find(|volume| volume.name == PROFILER_VOLUME);
        mounted?.image.clone()?.reference
    };
    copied.and_then(|tools| tools.image.clone()).or_else(mounted)
}

/// Waits until pods are prepared with that image: the admission of before may still answer for a
/// moment.
async fn prepared_with(namespace: &TestNamespace, image: &str) -> Result<()> {
    eventually("pods to be prepared with the other image", || async {
        let pod = namespace.admitted(workload("asks", true, &[])).await?;
        Ok((tools_image(&pod).as_deref() == Some(image)).then_some(()))
    })
    .await
}

#[tokio::test]
async fn a_tools_image_that_cannot_be_had_is_told_on_the_pod_with_what_to_do() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Switch).await? else {
        return Ok(());
    };
    // Where both tests begin at once, the other has its pod first.
    let namespace = cluster.namespace("no-tools").await?;
    let tools = TOOLS.lock().await;
    let absent = "localhost/flopwatch/no-such-tools:dev";
    let before = name_tools(&cluster, absent).await?;
    let outcome = told(&namespace, absent).await;
    // Whatever happened: who comes next is prepared with tools that are there.
    name_tools(&cluster, &before).await?;
    prepared_with(&namespace, &before).await?;
    drop(tools);
    outcome?;
    namespace.delete().await
}

async fn told(namespace: &TestNamespace, absent: &str) -> Result<()> {
    prepared_with(namespace, absent).await?;
    let copied = namespace.copied(workload("copied", true, &[])).await?;
    for pod in [workload("waits", true, &[]), copied] {
        namespace.create_pod(pod).await?;
    }
    for name in ["waits", "copied"] {
        let (_, note) = namespace.event(name, "ToolsImageUnavailable").await?;
        ensure!(
            note.contains(absent) && note.contains("correct images.tools of Flopwatch"),
            "{note}"
        );
    }
    Ok(())
}
