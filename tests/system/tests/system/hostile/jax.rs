//! JAX: its dumps as a way to files that the program itself may not read, and a window
//! that would take all of its program's memory.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::artifact::JAX_DUMPS;
use flopwatch_system_tests::cluster::{Group, TestNamespace};
use flopwatch_system_tests::fetch::{ArtifactClient, raw_reader_token};
use flopwatch_system_tests::frameworks::{JAX_PORT, frameworks};
use flopwatch_system_tests::node;
use flopwatch_system_tests::sessions::{spec, with};
use serde_json::json;

/// A program that makes some million events a second.
const CALLS: &str = include_str!("../../../programs/jax_calls.py");

/// What the program may not read, and what it may but is another user's.
const CLOSED: &str = "a-secret-of-root";
const OPEN: &str = "a-file-of-root-for-all";

fn holds(archive: &[u8], text: &str) -> bool {
    archive.windows(text.len()).any(|part| part == text.as_bytes())
}

#[tokio::test]
async fn a_file_that_the_program_may_not_read_is_left_out_of_its_dumps() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Hostile, "jax-dumps").await? else {
        return Ok(());
    };
    namespace.allow_host_folders().await?;
    let mut pod = frameworks("trainer", "jax", 1)?;
    let volume = json!({ "name": "home", "emptyDir": {} });
    let mount = json!({ "name": "home", "mountPath": "/home" });
    let variable = json!({ "name": "XLA_FLAGS", "value": "--xla_dump_to=/home --xla_dump_hlo_as_text" });
    let volumes = pod["spec"]["volumes"].as_array_mut();
    volumes.context("no volumes")?.push(volume);
    let container = &mut pod["spec"]["containers"][0];
    let mounts = container["volumeMounts"].as_array_mut();
    mounts.context("no mounts")?.push(mount);
    container["env"].as_array_mut().context("no variables")?.push(variable);
    namespace.create_kept(pod).await?;
    namespace.says("trainer", "ranges=").await?;
    let program = node::first_process(&namespace.running("trainer").await?)?;
    let home = program.root().join("home");
    for (name, mode) in [(CLOSED, 0o600), (OPEN, 0o644)] {
        let file = home.join(name);
        std::fs::write(&file, format!("content of {name}"))?;
        std::fs::set_permissions(&file, Permissions::from_mode(mode))?;
    }
    let dumps = json!({ "type": "Jax", "jax": { "dumps": true } });
    let more = json!({ "outputs": ["Timeline", "Summary", "Raw"], "profiler": dumps });
    namespace
        .create_session("dumps", with(spec("trainer", 2, "Jax"), more))
        .await?;
    namespace.success_of("dumps").await?;

    let status = namespace.only_capture("dumps").await?.status.context("no status")?;
    let url = status.url.context("no URL")?;
    let token = raw_reader_token(&namespace, "reader").await?;
    let client = ArtifactClient::new(&namespace.client).await?;
    let answer = client.request(&format!("{url}/{JAX_DUMPS}"), Some(&token), &[]).await?;
    ensure!(answer.status == 200, "{}", answer.status);
    let archive = &answer.body;
    ensure!(holds(archive, "HloModule"), "the program's own dumps are not in it");
    for name in [CLOSED, OPEN] {
        ensure!(!holds(archive, &format!("content of {name}")), "{name} is in it");
        let is_listed = holds(archive, &format!("/home/{name}"));
        ensure!(is_listed, "{name} is not listed as left out");
    }
    namespace.delete().await
}

#[tokio::test]
async fn a_window_of_jax_ends_before_it_takes_its_programs_memory() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Hostile, "jax-memory").await? else {
        return Ok(());
    };
    namespace.allow_host_folders().await?;
    let mut pod = frameworks("trainer", "jax", 1)?;
    let container = &mut pod["spec"]["containers"][0];
    container["command"] = json!(["/python/bin/python3", "-c", CALLS]);
    container["args"] = json!([JAX_PORT.to_string()]);
    container["resources"]["limits"]["memory"] = json!("2Gi");
    namespace.create_kept(pod).await?;
    namespace.says("trainer", "ranges=").await?;
    let program = node::first_process(&namespace.running("trainer").await?)?;
    let traced = json!({ "profiler": { "type": "Jax", "jax": { "pythonTracerLevel": 1 } } });
    namespace
        .create_session("calls", with(spec("trainer", 60, "Jax"), traced))
        .await?;
    let end = namespace.end_of("calls").await?;
    ensure!(end.reason == "OverBudget" && end.artifacts > 0, "{end:?}");
    ensure!(end.message.contains("taking the profile together may need"), "{end:?}");
    ensure!(program.is_alive(), "the window took its program's memory");
    namespace.delete().await
}
