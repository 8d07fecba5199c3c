//! The disk is full: the agent's before a capture and in the middle of one, the target's in the
//! window.

use std::path::Path;

use anyhow::{Context as _, Result};
use flopwatch_system_tests::cluster::{Group, TestNamespace, eventually};
use flopwatch_system_tests::mounts::SmallDisk;
use flopwatch_system_tests::node::{self, Process};
use flopwatch_system_tests::parts::SPOOL;
use flopwatch_system_tests::pods::sample;
use flopwatch_system_tests::trainer::Trainer;
use kube::ResourceExt as _;
use serde_json::json;

use super::release::{Place, recovers, shared_by, trainer_and_agent};

/// Above what the release under test leaves free (256 MiB).
const DISK_MEBIBYTES: u32 = 400;

/// An agent has a disk of that many mebibytes while `strike` goes on, after which its capture ends
/// for want of space and says this; with its own disk again it goes on.
async fn ends_for_want_of_space(
    name: &str,
    mebibytes: u32,
    says: &str,
    strike: impl AsyncFnOnce(&TestNamespace, &Trainer, &SmallDisk) -> Result<()>,
) -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Faults, name).await? else {
        return Ok(());
    };
    let (trainer, alone) = trainer_and_agent(&namespace, Place::Other).await?;
    let agent = trainer.agent().await?;
    let disk = SmallDisk::over(agent.process, Path::new(SPOOL), mebibytes)?;
    strike(&namespace, &trainer, &disk).await?;
    let end = namespace.nothing_of("struck", &["DiskSpace"], says).await?;
    trainer.nothing_stays_of(&end.uid).await?;
    drop(disk);
    recovers(namespace, &trainer, &end, alone).await
}

#[tokio::test]
async fn an_agent_without_disk_space_refuses_before_the_window() -> Result<()> {
    ends_for_want_of_space("disk-before", 16, "min-free", async |namespace, trainer, _| {
        trainer.profile(namespace, "struck", 2).await
    })
    .await
}

#[tokio::test]
async fn an_agent_whose_disk_fills_up_in_the_import_says_so() -> Result<()> {
    ends_for_want_of_space("disk-import", DISK_MEBIBYTES, "", async |namespace, trainer, disk| {
        let mut gate = trainer.gate_before_import(namespace).await?;
        gate.reached().await?;
        disk.fill(0)
    })
    .await
}

#[tokio::test]
async fn a_target_whose_disk_fills_up_in_the_window_is_left_alone() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Faults, "disk-target").await? else {
        return Ok(());
    };
    let shared = shared_by(&namespace, Place::Kept).await?;
    // An init container holds the pod until its run volume is a small disk of its own.
    let mut pod = sample("trainer");
    let main = &pod["spec"]["containers"][0];
    pod["spec"]["initContainers"] = json!([{
        "name": "hold", "image": main["image"], "imagePullPolicy": main["imagePullPolicy"],
        "securityContext": main["securityContext"],
        "command": ["/bin/sh", "-c", "until [ -e /gate/open ]; do sleep 0.1; done"],
        "volumeMounts": [{ "name": "gate", "mountPath": "/gate" }]
    }]);
    pod["spec"]["volumes"] = json!([{ "name": "gate", "emptyDir": {} }]);
    let pod = namespace.create_kept(pod).await?;
    let hold = eventually("the init container to hold the pod", || async {
        Ok(node::of_pod(&pod)?
            .into_iter()
            .find(|process| process.words().join(" ").contains("/gate/open") && process.inner_pid() == Some(1)))
    })
    .await?;
    let disk = run_volume(hold, &pod.uid().context("no UID")?)?;
    std::fs::write(hold.root().join("gate/open"), "")?;
    let trainer = Trainer::started(&namespace, "trainer").await?;

    trainer.open_window(&namespace, "struck").await?;
    disk.fill(0)?;
    eventually("the supervisor to end the collection", || async {
        Ok((!trainer.path("/flopwatch/run/collecting").exists()).then_some(()))
    })
    .await?;
    namespace.stop("struck", "Keep").await?;
    let end = namespace.nothing_of("struck", &["DiskSpace"], "").await?;
    std::fs::remove_file(trainer.path("/flopwatch/run/ballast"))?;
    // Nsight Systems may end itself over a stop that it cannot write; the workload goes on either
    // way.
    trainer.goes_on_with_or_without_its_session(&namespace, &end).await?;
    // The kubelet removes the folder, which it cannot while something is mounted there.
    drop((disk, shared));
    namespace.delete().await
}

/// Mounts a small disk over a pod's run volume where the runtime will look for it.
fn run_volume(within: Process, pod: &str) -> Result<SmallDisk> {
    // The file system that a container's volume comes from, as the node sees it, stands in the
    // container's mount table.
    let table = std::fs::read_to_string(format!("/proc/{}/mountinfo", within.pid))?;
    let gate = table
        .lines()
        .filter_map(|line| Some((line.split(' ').nth(3)?, line.split(' ').nth(4)?)))
        .find(|(_, at)| *at == "/gate")
        .context("the init container has no volume")?;
    let volumes = Path::new(gate.0).parent().context("a volume in no folder")?;
    let runtime = within.parent().context("a container without a runtime")?;
    // The table names it from the root of its file system, which may be mounted elsewhere on the
    // node.
    let on_node = std::fs::read_to_string(format!("/proc/{}/mountinfo", runtime.pid))?;
    let folder = on_node
        .lines()
        .filter_map(|line| Some((line.split(' ').nth(3)?, line.split(' ').nth(4)?)))
        .filter_map(|(root, at)| Some(Path::new(at).join(volumes.strip_prefix(root).ok()?)))
        .map(|folder| folder.join("flopwatch-run-0"))
        .find(|folder| {
            let seen = runtime.root().join(folder.strip_prefix("/").unwrap_or(folder));
            folder.to_string_lossy().contains(pod) && seen.is_dir()
        })
        .context("the run volume is not where volumes are")?;
    SmallDisk::over(runtime, &folder, DISK_MEBIBYTES)
}
