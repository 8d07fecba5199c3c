//! Pods that another version of Flopwatch prepared, or that have another version of the tools.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace};
use flopwatch_system_tests::mounts::written;
use flopwatch_system_tests::node;
use flopwatch_system_tests::pods::{copied_into, workload};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::first_session::succeeded;
use super::refusals::capture_failure;

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
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
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

/// Puts a tool of another version in the place of a container's: what an earlier admission would
/// have filled its volume with.
fn exchange_tools(pod: &Pod) -> Result<()> {
    let script = format!(
        "#!/bin/sh\ncase \"$1\" in\n--version) echo NVIDIA Nsight Systems version {OTHER_TOOLS};;\n*) exec \"$0-own\" \"$@\";;\nesac\n"
    );
    written(node::first_process(pod)?, Path::new("/flopwatch/tools"), |tools| {
        let nsys = tools.join("target-linux-x64/nsys");
        std::fs::rename(&nsys, nsys.with_file_name("nsys-own"))?;
        std::fs::write(&nsys, script)?;
        Ok(std::fs::set_permissions(&nsys, Permissions::from_mode(0o755))?)
    })
}

#[tokio::test]
async fn tools_of_a_version_that_the_agent_does_not_carry_are_refused_with_both_versions() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("newer").await?;
    let copied = copied_into(&cluster.client, workload("trainer", true, &[])).await?;
    namespace.create_pod(copied).await?;
    let state = namespace.launch_state("trainer").await?;
    ensure!(state["grafted"] == json!(true), "the start was not grafted: {state}");
    exchange_tools(&namespace.running("trainer").await?)?;
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
