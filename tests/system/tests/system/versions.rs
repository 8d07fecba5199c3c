//! Pods that another version of Flopwatch prepared, or that have another version of the tools.

use anyhow::{Context as _, Result, ensure};
use flopwatch_system_tests::cluster::{Cluster, TestNamespace};
use flopwatch_system_tests::pods::workload;
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::first_session::succeeded;
use super::refusals::capture_failure;

/// A namespace of `admission.excludedNamespaces` of the release under test: what an earlier admission wrote stays as it is.
const OLDER: &str = "flopwatch-older";
/// A version of Nsight Systems that no agent here carries.
const OTHER_TOOLS: &str = "2021.1.1.66-6c5c5cb";

async fn profile(namespace: &TestNamespace, session: &str) -> Result<()> {
    let spec = json!({ "target": { "podName": "trainer" }, "durationSeconds": 1, "profiler": { "type": "Nsys" } });
    namespace.create_session(session, spec).await?;
    Ok(())
}

/// Leaves in the container what a launcher of another version would have written.
async fn write_state(namespace: &TestNamespace, state: &Value) -> Result<()> {
    let command = format!("printf %s '{state}' > /flopwatch/run/state");
    namespace.shell("trainer", &command).await?;
    Ok(())
}

#[tokio::test]
async fn a_pod_prepared_before_launchers_named_their_protocol_is_served_and_one_of_a_later_protocol_says_so()
-> Result<()> {
    let Some(cluster) = Cluster::connect().await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("protocol").await?;
    namespace.create_pod(workload("trainer", true, &[])).await?;
    let mut state = namespace.launch_state("trainer").await?;
    ensure!(state["grafted"] == json!(true), "the start was not grafted: {state}");
    let named = state.as_object_mut().context("no object")?.remove("protocol");
    ensure!(named.is_some(), "the launcher names no protocol: {state}");
    write_state(&namespace, &state).await?;
    profile(&namespace, "older").await?;
    succeeded(&namespace, "older").await?;

    state["protocol"] = json!(99);
    write_state(&namespace, &state).await?;
    profile(&namespace, "later").await?;
    let (reason, message) = capture_failure(&namespace, "later").await?;
    ensure!(
        reason == "VersionUnsupported"
            && message.contains("later protocol")
            && message.contains("flopwatch.dev/prepared-version")
            && message.contains("create the pod anew"),
        "{reason}: {message}"
    );
    namespace.delete().await
}

/// The workload as an earlier admission prepared it: with that version's mark, and with tools of another version.
async fn prepared_earlier(namespace: &TestNamespace) -> Result<Value> {
    let asked: Pod = serde_json::from_value(workload("trainer", true, &[]))?;
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let mut pod = serde_json::to_value(namespace.api::<Pod>().create(&dry, &asked).await?)?;
    let mut annotations = pod["metadata"]["annotations"].take();
    annotations["flopwatch.dev/prepared-version"] = json!("0.0.1");
    let tools = pod["spec"]["initContainers"]
        .as_array_mut()
        .context("the pod was not prepared")?;
    let last = tools.last().context("no init container")?.clone();
    let script = format!(
        "#!/bin/sh\\ncase \"$1\" in\\n--version) echo NVIDIA Nsight Systems version {OTHER_TOOLS};;\\n*) exec \"$0-own\" \"$@\";;\\nesac\\n"
    );
    let command =
        format!("cd /tools/target-linux-x64 && mv nsys nsys-own && printf '{script}' > nsys && chmod 755 nsys");
    tools.push(json!({
        "name": "other-version", "image": "localhost/flopwatch/workload:dev", "imagePullPolicy": "Never",
        "command": ["/bin/sh", "-c", command], "resources": last["resources"], "securityContext": last["securityContext"],
        "volumeMounts": [{ "name": "flopwatch-tools", "mountPath": "/tools" }]
    }));
    Ok(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "trainer", "labels": pod["metadata"]["labels"], "annotations": annotations },
        "spec": pod["spec"]
    }))
}

#[tokio::test]
async fn tools_of_a_version_that_the_agent_does_not_carry_are_refused_with_both_versions() -> Result<()> {
    let Some(cluster) = Cluster::connect().await? else {
        return Ok(());
    };
    let seen = cluster.namespace("newer").await?;
    let manifest = prepared_earlier(&seen).await?;
    seen.delete().await?;
    let namespace = cluster.namespace_called(OLDER).await?;
    namespace.create_pod(manifest).await?;
    let state = namespace.launch_state("trainer").await?;
    ensure!(
        state["grafted"] == json!(true),
        "a pod of an earlier admission starts as it did: {state}"
    );
    profile(&namespace, "tools").await?;
    let (reason, message) = capture_failure(&namespace, "tools").await?;
    ensure!(
        reason == "VersionUnsupported"
            && message.contains(OTHER_TOOLS)
            && message.contains("carries 2")
            && message.contains("images.olderTools"),
        "{reason}: {message}"
    );
    namespace.delete().await
}
