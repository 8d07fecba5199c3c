//! The CUDA tracer's file in the hands of a container that spoils or fills it while it is read: its
//! own capture may fail, and nobody else's.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, symlink};

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::artifact::TIMELINE;
use flopwatch_system_tests::cluster::{Group, TestNamespace};
use flopwatch_system_tests::parts::Running;
use flopwatch_system_tests::simulated_gpu::{Program, records, told};
use flopwatch_system_tests::trainer::End;
use flopwatch_tracer_file::header::HEAP_USED_AT;
use flopwatch_tracer_file::process::{BYTES, CLAIM_AT, GENERATION_AT, PHASE_AT, PID_AT, Phase, SLOTS, USED, claim};
use flopwatch_tracer_file::{Layout, NAMES_AT};

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

fn layout(file: &File) -> Result<Layout> {
    let length = usize::try_from(file.metadata()?.len())?;
    Layout::of(length).context("a file of another length")
}

/// Leaves no room for a name: neither in the table nor in the heap.
fn fill_names(program: &Program) -> Result<()> {
    let file = opened(program)?;
    file.write_all_at(&u64::MAX.to_le_bytes(), u64::try_from(HEAP_USED_AT)?)?;
    let table = vec![0xff; layout(&file)?.heap_at - NAMES_AT];
    Ok(file.write_all_at(&table, u64::try_from(NAMES_AT)?)?)
}

/// Has a process that there is not in each slot but the program's, which records for the window.
fn fill_slots(program: &Program) -> Result<()> {
    let wanted = program.wanted()?.context("an order is being written")?;
    let file = opened(program)?;
    for slot in 1..SLOTS {
        let words = [
            (PID_AT, u32::try_from(slot)? + 1_000_000),
            (PHASE_AT, Phase::Recording.bits()),
            (GENERATION_AT, wanted.generation),
        ];
        let mut bytes = [0; BYTES];
        for (place, word) in words {
            bytes[place..][..4].copy_from_slice(&word.to_le_bytes());
        }
        bytes[CLAIM_AT..][..8].copy_from_slice(&claim(1, USED).to_le_bytes());
        let at = layout(&file)?.process(slot).context("fewer slots")?;
        file.write_all_at(&bytes, u64::try_from(at)?)?;
    }
    Ok(())
}

/// A program of a namespace, on the node of the others.
async fn begun(namespace: &TestNamespace, name: &str) -> Result<Program> {
    namespace.create_kept(told(name, "cuda")).await?;
    Program::begun(namespace, name).await
}

/// Has a file spoilt in a window, and says how the capture ended.
async fn spoilt(namespace: &TestNamespace, name: &str, spoil: impl FnOnce(&Program) -> Result<()>) -> Result<End> {
    let mut program = begun(namespace, name).await?;
    namespace.profile_main(name, name, 4, "Cuda").await?;
    program.launched(100).await?;
    spoil(&program)?;
    namespace.end_of(name).await
}

#[tokio::test]
async fn a_container_that_spoils_its_tracers_file_fails_no_capture_but_its_own() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Hostile, "cuda-spoilt").await? else {
        return Ok(());
    };
    let mut other = begun(&namespace, "other").await?;
    let agent = Running::agent_of(&namespace.client, &other.pod).await?;

    spoilt(&namespace, "nonsense", |program| scribble(program, 0)).await?;
    spoilt(&namespace, "records", |program| scribble(program, HEADER_BYTES)).await?;
    spoilt(&namespace, "cut", cut).await?;
    spoilt(&namespace, "replaced", replace).await?;
    // Now the link is there from the begin of the window.
    namespace.profile_main("link", "replaced", 2, "Cuda").await?;
    let end = namespace.end_of("link").await?;
    ensure!(!end.succeeded, "a file of the node was taken for its own: {end:?}");

    namespace.profile_main("other", "other", 5, "Cuda").await?;
    let recorded = other.launched(1000).await?;
    let capture = namespace.succeeded("other").await?;
    namespace.holds(&capture, TIMELINE, recorded).await?;
    let now = Running::agent_of(&namespace.client, &other.pod).await?;
    ensure!(now.process == agent.process, "the agent ended");
    namespace.delete().await
}

#[tokio::test]
async fn a_container_that_fills_slots_and_names_takes_no_record_from_itself_nor_from_others() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Hostile, "cuda-filled").await? else {
        return Ok(());
    };
    let tenant = namespace.cluster.namespace("cuda-tenant").await?;
    let mut hostile = begun(&namespace, "program").await?;
    let mut other = begun(&tenant, "program").await?;
    let agent = Running::agent_of(&namespace.client, &other.pod).await?;
    fill_names(&hostile)?;
    // Both at one time, of one agent.
    for namespace in [&namespace, &tenant] {
        namespace.profile_main("both", "program", 120, "Cuda").await?;
    }
    let counted = [hostile.launched(1000).await?, other.launched(1000).await?];
    fill_slots(&hostile)?;
    for namespace in [&namespace, &tenant] {
        namespace.stop("both", "Keep").await?;
    }
    for ((namespace, counted), is_filled) in [&namespace, &tenant].into_iter().zip(counted).zip([true, false]) {
        let end = namespace.end_of("both").await?;
        ensure!(end.succeeded, "{}: {end:?}", namespace.name);
        let capture = namespace.only_capture("both").await?;
        let recorded = namespace.timeline(&capture, TIMELINE).await?;
        let found = records(&recorded);
        ensure!(found == counted, "{}: {found} of {counted}", namespace.name);
        let losses = recorded.losses.list();
        let told = losses.iter().any(|loss| loss.what.contains("found no place"));
        ensure!(told == is_filled, "{}: {losses:?}", namespace.name);
    }
    let now = Running::agent_of(&namespace.client, &other.pod).await?;
    ensure!(now.process == agent.process, "the agent ended");
    tenant.delete().await?;
    namespace.delete().await
}
