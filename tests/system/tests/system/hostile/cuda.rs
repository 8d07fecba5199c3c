//! The CUDA tracer's file in the hands of a container that spoils it while it is read: its own
//! capture may fail, and nobody else's.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, symlink};

use anyhow::{Result, ensure};
use flopwatch_api::artifact::TIMELINE;
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace};
use flopwatch_system_tests::fetch::reader_token;
use flopwatch_system_tests::parts::Running;
use flopwatch_system_tests::recordings::timeline;
use flopwatch_system_tests::simulated_gpu::{Program, records, told, traced};
use flopwatch_system_tests::trainer::End;

/// Bytes at the begin of the file that say what it is.
const HEADER_BYTES: u64 = 4096;
/// Bytes that are written at once.
const CHUNK_BYTES: u64 = 64 << 10;

fn opened(program: &Program) -> Result<File> {
    Ok(OpenOptions::new().read(true).write(true).open(program.trace())?)
}

/// Writes nonsense over the file from there on.
fn scribble(program: &Program, from: u64) -> Result<()> {
    let file = opened(program)?;
    let mut random = fastrand::Rng::with_seed(44);
    let (mut at, length) = (from, file.metadata()?.len());
    while at < length {
        let mut chunk = vec![0_u8; usize::try_from(CHUNK_BYTES.min(length - at))?];
        random.fill(&mut chunk);
        file.write_all_at(&chunk, at)?;
        at += CHUNK_BYTES;
    }
    Ok(())
}

fn cut(program: &Program) -> Result<()> {
    Ok(opened(program)?.set_len(HEADER_BYTES)?)
}

/// Puts a link to a file that is not the container's in the place of the file.
fn replace(program: &Program) -> Result<()> {
    let trace = program.trace();
    std::fs::rename(&trace, trace.with_extension("old"))?;
    Ok(symlink("/etc/shadow", &trace)?)
}

/// Has a file spoilt in a window, and says how the capture ended.
async fn spoilt(namespace: &TestNamespace, name: &str, spoil: impl FnOnce(&Program) -> Result<()>) -> Result<End> {
    namespace
        .create_pod(namespace.on_kept_node(told(name, "cuda")).await?)
        .await?;
    let mut program = Program::begun(namespace, name).await?;
    namespace.create_session(name, traced(name, 4)).await?;
    program.launched(100).await?;
    spoil(&program)?;
    namespace.end_of(name).await
}

#[tokio::test]
async fn a_container_that_spoils_its_tracers_file_fails_no_capture_but_its_own() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Hostile).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("cuda-spoilt").await?;
    let token = reader_token(&namespace, "reader", "flopwatch-viewer").await?;
    let other = namespace.on_kept_node(told("other", "cuda")).await?;
    namespace.create_pod(other).await?;
    let mut other = Program::begun(&namespace, "other").await?;
    let agent = Running::agent_of(&namespace.client, &other.pod).await?;

    spoilt(&namespace, "nonsense", |program| scribble(program, 0)).await?;
    spoilt(&namespace, "records", |program| scribble(program, HEADER_BYTES)).await?;
    spoilt(&namespace, "cut", cut).await?;
    spoilt(&namespace, "replaced", replace).await?;
    // Now the link is there from the begin of the window.
    namespace.create_session("link", traced("replaced", 2)).await?;
    let end = namespace.end_of("link").await?;
    ensure!(
        !end.succeeded,
        "a file of the node was taken for a container's: {end:?}"
    );

    namespace.create_session("other", traced("other", 5)).await?;
    let recorded = other.launched(1000).await?;
    let end = namespace.end_of("other").await?;
    ensure!(end.succeeded, "{end:?}");
    let capture = namespace.only_capture("other").await?;
    let found = records(&timeline(&cluster, &token, &capture, TIMELINE).await?);
    ensure!(found == recorded, "{found} in the timeline, {recorded} by the program");
    let now = Running::agent_of(&namespace.client, &other.pod).await?;
    ensure!(now.process == agent.process, "the agent ended");
    namespace.delete().await
}
