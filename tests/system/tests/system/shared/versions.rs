//! Pods that another version of Flopwatch prepared, or that have another version of the tools.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use flopwatch_system_tests::cluster::{Group, TestNamespace};
use flopwatch_system_tests::mounts::written;
use flopwatch_system_tests::node;
use flopwatch_system_tests::pods::workload;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

/// A version of Nsight Systems that no agent here carries.
const OTHER_TOOLS: &str = "2021.1.1.66-6c5c5cb";

/// Leaves in the container what a launcher of another version would have written.
async fn write_state(namespace: &TestNamespace, state: &Value) -> Result<()> {
    let command = format!("printf %s '{state}' > /flopwatch/run/state");
    namespace.shell("trainer", &command).await?;
    Ok(())
}

#[tokio::test]
async fn a_pod_prepared_before_launchers_named_their_protocol_is_served_and_one_of_a_later_protocol_says_so()
-> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "protocol").await? else {
        return Ok(());
    };
    let mut state = namespace.graft(workload("trainer", true, &[])).await?;
    let named = state.as_object_mut().context("no object")?.remove("protocol");
    ensure!(named.is_some(), "the launcher names no protocol: {state}");
    write_state(&namespace, &state).await?;
    namespace.profile("older", "trainer", 1, "Nsys").await?;
    namespace.succeeded("older").await?;

    state["protocol"] = json!(99);
    write_state(&namespace, &state).await?;
    namespace.profile("later", "trainer", 1, "Nsys").await?;
    let says = [
        "later protocol",
        "flopwatch.dev/prepared-version",
        "create the pod anew",
    ];
    namespace.fails_with("later", "VersionUnsupported", &says).await?;
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
    let Some(namespace) = TestNamespace::begin(Group::Shared, "newer").await? else {
        return Ok(());
    };
    let copied = namespace.copied(workload("trainer", true, &[])).await?;
    namespace.graft(copied).await?;
    exchange_tools(&namespace.running("trainer").await?)?;
    namespace.profile("tools", "trainer", 1, "Nsys").await?;
    let says = [OTHER_TOOLS, "carries 2", "images.olderTools"];
    namespace.fails_with("tools", "VersionUnsupported", &says).await?;
    namespace.delete().await
}
