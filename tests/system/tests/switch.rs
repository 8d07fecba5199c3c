//! The switch that stops all new captures. It holds for the whole cluster, so this has a binary of its own: cargo runs them
//! one after the other.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Cluster, TestNamespace, eventually};
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::sessions::condition_of;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

/// Switches as an administrator would, with `kubectl edit`.
async fn suspend(cluster: &Cluster, suspended: bool) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), chart::NAMESPACE);
    let data = Patch::Merge(json!({ "data": { "capturesSuspended": suspended.to_string() } }));
    maps.patch("flopwatch-controller", &PatchParams::default(), &data)
        .await?;
    Ok(())
}

fn spec(seconds: u32) -> Value {
    json!({ "target": { "podName": "trainer" }, "durationSeconds": seconds, "profiler": { "type": "Nsys" } })
}

async fn waits_for_the_switch(namespace: &TestNamespace, session: &str) -> Result<()> {
    eventually(&format!("session {session} to wait for the switch"), || async {
        let session = namespace.api::<ProfilingSession>().get(session).await?;
        Ok(condition_of(&session, "TargetsFound")
            .is_some_and(|found| found.reason == "CapturesSuspended")
            .then_some(()))
    })
    .await
}

#[tokio::test]
async fn the_switch_stops_new_captures_and_lets_those_that_run_end() -> Result<()> {
    let Some(cluster) = Cluster::connect().await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("switch").await?;
    let outcome = switched(&cluster, &namespace).await;
    // Whatever happened: who comes next finds it off.
    suspend(&cluster, false).await?;
    outcome?;
    namespace.delete().await
}

async fn switched(cluster: &Cluster, namespace: &TestNamespace) -> Result<()> {
    namespace.create_pod(workload("trainer", true, &[])).await?;
    let state = namespace.launch_state("trainer").await?;
    ensure!(state["grafted"] == json!(true), "the start was not grafted: {state}");
    namespace.create_session("running", spec(300)).await?;
    namespace.attached("running").await?;
    suspend(cluster, true).await?;
    let sessions = namespace.api::<ProfilingSession>();
    // The controller sees the switch a moment later; this one, which has nothing to profile, tells when.
    let mut nothing = spec(1);
    nothing["target"] = json!({ "podName": "absent" });
    namespace.create_session("nothing", nothing).await?;
    waits_for_the_switch(namespace, "nothing").await?;

    let stop = Patch::Merge(json!({ "spec": { "stop": "Keep" } }));
    sessions.patch("running", &PatchParams::default(), &stop).await?;
    let ended = namespace.finished("running").await?;
    let succeeded = condition_of(&ended, "Succeeded").context("no condition")?;
    ensure!(
        succeeded.status == "True",
        "a capture that ran was harmed: {succeeded:?}"
    );

    namespace.create_session("resumes", spec(1)).await?;
    waits_for_the_switch(namespace, "resumes").await?;
    ensure!(namespace.captures("resumes").await?.is_empty(), "a capture was made");
    suspend(cluster, false).await?;
    let ended = namespace.finished("resumes").await?;
    let succeeded = condition_of(&ended, "Succeeded").context("no condition")?;
    ensure!(succeeded.status == "True", "{succeeded:?}");
    Ok(())
}
