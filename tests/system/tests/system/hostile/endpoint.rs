//! The endpoint that PyTorch's processes ask at: taken by others, sent to by others, shared by pods
//! of one network; and the disk that the processes write to.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use flopwatch_system_tests::cluster::{Group, TestNamespace};
use flopwatch_system_tests::frameworks::{JAX_PORT, frameworks};
use flopwatch_system_tests::mounts::SmallDisk;
use flopwatch_system_tests::node;
use flopwatch_system_tests::remains::ENDPOINT;
use flopwatch_system_tests::trainer::Trainer;
use serde_json::json;

const KINETO: &str = "Kineto";
/// What a hostile process of the container runs.
const HOSTILE: &str = include_str!("../../../programs/hostile.py");
/// The file at whose sight it ends.
const END_FILE: &str = "/tmp/hostile-enough";
/// Fewest datagrams that the endpoint must have been sent.
const MIN_DATAGRAMS: u64 = 200;
/// Most bytes that the agent may have more afterwards: its converter is a child, and what it keeps
/// of a capture is small.
const MAX_GROWTH_BYTES: u64 = 32 << 20;
/// Mebibytes of a disk that has what the release under test leaves free (256 MiB).
const DISK_MEBIBYTES: u32 = 320;

#[tokio::test]
async fn a_capture_of_pytorch_leaves_a_taken_name_alone_and_outlives_hostile_datagrams_and_a_full_disk() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Hostile, "endpoint").await? else {
        return Ok(());
    };
    let trainer = Trainer::start_frameworks(&namespace, "trainer").await?;
    is_left_to_who_has_it(&namespace, &trainer).await?;
    outlives_hostile_datagrams(&namespace, &trainer).await?;
    says_that_the_disk_is_full(&namespace, &trainer).await?;
    trainer.succeeds(&namespace, "afterwards", KINETO).await?;
    namespace.delete().await
}

async fn is_left_to_who_has_it(namespace: &TestNamespace, trainer: &Trainer) -> Result<()> {
    let daemon = node::bind_beside(trainer.process, ENDPOINT)?;
    namespace.profile("taken", &trainer.name, 1, KINETO).await?;
    let end = namespace.nothing_of("taken", &["OtherProfiler"], "dynolog").await?;
    drop(daemon);
    trainer.has_no_mark_of(namespace, &end).await
}

async fn outlives_hostile_datagrams(namespace: &TestNamespace, trainer: &Trainer) -> Result<()> {
    let agent = trainer.agent().await?.process;
    let before = agent.own_bytes()?;
    let sender = format!("/python/bin/python3 -c '{HOSTILE}' {END_FILE}");
    let (sent, ended) = tokio::join!(namespace.shell(&trainer.name, &sender), async {
        let kineto = json!({ "profiler": { "type": KINETO }, "require": ["cpu_op"] });
        trainer.profile_with(namespace, "hostile", 1, kineto).await?;
        let end = namespace.end_of("hostile").await;
        namespace.shell(&trainer.name, &format!("touch {END_FILE}")).await?;
        end
    });
    let (sent, end) = (sent?, ended?);
    let taken = sent.split_whitespace().find_map(|word| word.strip_prefix("taken="));
    let taken: u64 = taken.context("the sender did not end well")?.parse()?;
    ensure!(taken >= MIN_DATAGRAMS, "the endpoint had {taken} datagrams alone");
    ensure!(end.succeeded && end.artifacts > 0, "{end:?}");
    ensure!(agent.is_alive(), "the agent ended");
    let after = agent.own_bytes()?;
    ensure!(
        after < before + MAX_GROWTH_BYTES,
        "the agent grew from {before} to {after} bytes"
    );
    trainer.has_no_mark_of(namespace, &end).await
}

async fn says_that_the_disk_is_full(namespace: &TestNamespace, trainer: &Trainer) -> Result<()> {
    let small = SmallDisk::over(trainer.process, Path::new("/tmp"), 8)?;
    namespace.profile("small", &trainer.name, 1, KINETO).await?;
    let end = namespace.nothing_of("small", &["DiskSpace"], "TMPDIR").await?;
    trainer.has_no_mark_of(namespace, &end).await?;
    drop(small);

    let roomy = SmallDisk::over(trainer.process, Path::new("/tmp"), DISK_MEBIBYTES)?;
    trainer.open_window_of(namespace, "full", KINETO, 4).await?;
    roomy.fill(0)?;
    let end = namespace.nothing_of("full", &["DiskSpace"], "is full").await?;
    trainer.has_no_mark_of(namespace, &end).await
}

#[tokio::test]
async fn two_pods_of_the_nodes_own_network_are_captured_one_after_the_other_and_side_by_side() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Hostile, "host-network").await? else {
        return Ok(());
    };
    namespace.allow_host_folders().await?;
    for (name, port) in [("one", JAX_PORT + 10), ("two", JAX_PORT + 11)] {
        let mut pod = frameworks(name, "nsys.kineto.jax", 1)?;
        pod["spec"]["hostNetwork"] = json!(true);
        pod["spec"]["containers"][0]["args"] = json!(["1", port.to_string()]);
        namespace.create_kept(pod).await?;
    }
    let mut trainers = Vec::new();
    for name in ["one", "two"] {
        trainers.push(Trainer::started(&namespace, name).await?);
    }
    for trainer in &trainers {
        let alone = format!("alone-{}", trainer.name);
        trainer.succeeds(&namespace, &alone, KINETO).await?;
    }
    let beside = |trainer: &Trainer| format!("beside-{}", trainer.name);
    for trainer in &trainers {
        let name = &trainer.name;
        namespace.profile(&beside(trainer), name, 1, KINETO).await?;
    }
    let mut ends = Vec::new();
    for trainer in &trainers {
        ends.push(namespace.success_of(&beside(trainer)).await?);
    }
    for (trainer, end) in trainers.iter().zip(&ends) {
        trainer.has_no_mark_of(&namespace, end).await?;
    }
    namespace.delete().await
}
