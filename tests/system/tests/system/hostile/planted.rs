//! What the target's own user may put in its capture's place. The user ends the collection from
//! inside, and has the rest of the window to plant something else.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use flopwatch_system_tests::cluster::{Group, TestNamespace, eventually, run};
use flopwatch_system_tests::gate::Gate;
use flopwatch_system_tests::node::{self, Process};
use flopwatch_system_tests::trainer::{End, Trainer};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use nix::sys::signal::Signal;

/// What the agent must never read, nor keep: it lies in the container beside the run folder.
const SECRET: &str = "the-workloads-own-secret";

/// Above what the release under test allows in bytes (128 MiB).
const TOO_LARGE: u64 = 160 << 20;

/// Ends the collection as the container's user does: with the tools in the container, and without
/// the agent.
const STOP: &str = "export TMPDIR=/flopwatch/run/tmp HOME=/flopwatch/run/tmp; \
    /flopwatch/tools/launcher keeper --deadline-seconds 20 -- \
    /flopwatch/tools/target-linux-x64/nsys stop --session=flopwatch >/dev/null 2>&1; test -s $CAPTURE";

/// Starts a session, ends its collection from inside, and runs `plant` there with `$CAPTURE` for
/// the capture's path. Returns how the capture ended, with the trainer.
async fn planted(namespace: &TestNamespace, plant: &str) -> Result<(Trainer, End)> {
    let trainer = Trainer::start(namespace, "trainer").await?;
    let (capture, _) = trainer.open_window(namespace, "struck").await?;
    let uid = capture.uid().context("no UID")?;
    let script = format!("CAPTURE=/flopwatch/run/out/capture-{uid}.qdstrm; {STOP} && ( {plant} )");
    namespace.shell("trainer", &script).await?;
    namespace.stop("struck", "Keep").await?;
    let end = namespace.end_of("struck").await?;
    ensure!(end.uid == uid && end.artifacts == 0, "{end:?}");
    Ok((trainer, end))
}

/// A trainer whose session `struck` has ended its window, and whose importer is held at the gate as
/// it opens the capture; none where the test is skipped.
async fn importer_held(name: &str) -> Result<Option<(TestNamespace, Trainer, Gate, Process)>> {
    let Some(namespace) = TestNamespace::begin(Group::Hostile, name).await? else {
        return Ok(None);
    };
    let trainer = Trainer::start(&namespace, "trainer").await?;
    let mut gate = trainer.gate_before_import(&namespace).await?;
    let importer = gate.reached().await?;
    Ok(Some((namespace, trainer, gate, importer)))
}

/// The capture failed with that reason, and nothing stays.
async fn is_refused(name: &str, plant: &str, reason: &str) -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Hostile, name).await? else {
        return Ok(());
    };
    let (trainer, end) = planted(&namespace, plant).await?;
    ensure!(end.reason == reason, "{end:?}");
    ensure!(!end.message.contains(SECRET), "{end:?}");
    trainer.recovers(&namespace, &end).await?;
    namespace.delete().await
}

#[tokio::test]
async fn a_symlink_in_the_captures_place_is_not_followed() -> Result<()> {
    let plant = format!("echo {SECRET} >/tmp/secret && ln -sf /tmp/secret $CAPTURE");
    is_refused("symlink", &plant, "CollectionFailed").await
}

#[tokio::test]
async fn a_pipe_in_the_captures_place_holds_nobody_up() -> Result<()> {
    is_refused("pipe", "rm $CAPTURE && mkfifo $CAPTURE", "CollectionFailed").await
}

#[tokio::test]
async fn a_capture_that_grows_without_end_is_too_large() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Hostile, "endless").await? else {
        return Ok(());
    };
    let trainer = Trainer::start(&namespace, "trainer").await?;
    let (capture, _) = trainer.open_window(&namespace, "struck").await?;
    let uid = capture.uid().context("no UID")?;
    let file = trainer.path(&format!("/flopwatch/run/out/capture-{uid}.qdstrm"));
    let stop = format!("CAPTURE=/flopwatch/run/out/capture-{uid}.qdstrm; {STOP}");
    namespace.shell("trainer", &stop).await?;
    // It grows as long as it is there, by one writer that nothing of ours ends; as fast as a disk,
    // not as memory.
    let growing = file.clone();
    let writer = tokio::spawn(async move {
        let block = vec![7; 1 << 20];
        for _ in 0..2048 {
            if !growing.exists() || append(&growing, &block).is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    // Where the disk is slow, the session's supervisor sees it and removes it before it has grown
    // that far.
    eventually("the capture to be larger than it may be", || async {
        let is_large = std::fs::metadata(&file).map_or(true, |metadata| metadata.len() > TOO_LARGE);
        Ok(is_large.then_some(()))
    })
    .await?;
    namespace.stop("struck", "Keep").await?;
    let end = namespace.nothing_of("struck", &["CaptureTooLarge"], "").await?;
    writer.await?;
    trainer.recovers(&namespace, &end).await?;
    namespace.delete().await
}

fn append(file: &Path, block: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    std::fs::OpenOptions::new().append(true).open(file)?.write_all(block)
}

#[tokio::test]
async fn a_damaged_capture_fails_its_import_and_not_the_agent() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Hostile, "damaged").await? else {
        return Ok(());
    };
    let damage = "head -c 20000 $CAPTURE >/tmp/part; head -c 100000 /dev/urandom >>/tmp/part; cat /tmp/part >$CAPTURE";
    let (trainer, end) = planted(&namespace, damage).await?;
    let agent = trainer.agent().await?;
    ensure!(end.reason == "ImportFailed", "{end:?}");
    trainer.recovers(&namespace, &end).await?;
    ensure!(agent.process.is_alive(), "the agent fell over a capture");
    namespace.delete().await
}

#[tokio::test]
async fn an_importer_that_hangs_is_stopped_with_its_session() -> Result<()> {
    let Some((namespace, trainer, gate, importer)) = importer_held("hanging").await? else {
        return Ok(());
    };
    namespace.stop("struck", "Discard").await?;
    let end = namespace.nothing_of("struck", &["Discarded"], "").await?;
    importer.ended().await?;
    drop(gate);
    trainer.recovers(&namespace, &end).await?;
    namespace.delete().await
}

#[tokio::test]
async fn an_importer_that_is_killed_fails_its_capture_alone() -> Result<()> {
    let Some((namespace, trainer, gate, importer)) = importer_held("importer").await? else {
        return Ok(());
    };
    importer.signal(Signal::SIGKILL)?;
    drop(gate);
    let end = namespace.fails_with("struck", "ImportFailed", &["signal 9"]).await?;
    trainer.recovers(&namespace, &end).await?;
    namespace.delete().await
}

#[tokio::test]
async fn an_importer_that_eats_memory_fails_its_capture_alone_below_the_agents_own_limit() -> Result<()> {
    let Some((namespace, trainer, gate, importer)) = importer_held("hungry").await? else {
        return Ok(());
    };
    let agent = trainer.agent().await?;
    // What it may have in all, and the agent with it, so that the kernel ends neither of them for
    // memory.
    let (may, container) = (address_space(importer)?, memory_limit(&agent.pod)?);
    ensure!(may < container, "the importer may have {may} bytes of {container}");
    // From here on it may have no more than it has.
    let status = std::fs::read_to_string(format!("/proc/{}/status", importer.pid))?;
    let id = own_user(&status)?.to_string();
    let pid = importer.pid.to_string();
    let lower = ["prlimit", "--pid", &pid, "--as=1"];
    // As its own user: not every root may change others' limits.
    let who = ["--reuid", &id, "--regid", &id, "--clear-groups"];
    run("setpriv", &[&who[..], &lower].concat()).await?;
    drop(gate);
    let end = namespace.nothing_of("struck", &["ImportFailed"], "").await?;
    trainer.recovers(&namespace, &end).await?;
    ensure!(agent.process.is_alive(), "the agent fell over an importer");
    namespace.delete().await
}

#[tokio::test]
async fn an_importer_sees_neither_the_agents_secrets_nor_anybody_else() -> Result<()> {
    let Some((namespace, trainer, gate, importer)) = importer_held("apart").await? else {
        return Ok(());
    };
    let agent = trainer.agent().await?;
    // Everything is looked at before the gate opens, and judged after it.
    let status = std::fs::read_to_string(format!("/proc/{}/status", importer.pid))?;
    let root = importer.root();
    // `/var/run` is a link to `/run` in many images, which from here would lead to the node's.
    let shown = |process: Process, path: &str| {
        let mut paths = [path, path.trim_start_matches("var/")].into_iter();
        paths.any(|path| process.root().join(path).symlink_metadata().is_ok())
    };
    let secrets = [
        "run/flopwatch-tls/tls.key",
        "var/run/secrets/kubernetes.io/serviceaccount/token",
        "var/lib/flopwatch/artifacts",
        "var/lib/flopwatch/spool",
    ];
    let seen = secrets.map(|path| (path, shown(agent.process, path), shown(importer, path)));
    let pids: Vec<_> = std::fs::read_dir(root.join("proc"))?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .collect();
    let of = |pid: i32, kind: &str| std::fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok();
    let apart = ["pid", "mnt", "net", "ipc", "uts", "cgroup"].map(|kind| (kind, of(importer.pid, kind), of(1, kind)));
    drop(gate);
    for (path, by_agent, by_importer) in seen {
        ensure!(by_agent, "the agent itself has no {path}: nothing is tested");
        // Folders on the way to its own are there, and empty but for it.
        ensure!(path.ends_with("spool") || !by_importer, "the importer sees {path}");
    }
    ensure!(pids.len() <= 3, "the importer sees the processes {pids:?}");
    for (kind, own, first) in apart {
        let is_apart = own.is_some() && own != first;
        ensure!(is_apart, "{kind}: {own:?}, as the node's first process");
    }
    let user = own_user(&status)?;
    ensure!((1_900_000_000..=1_900_000_255).contains(&user), "it is user {user}");
    for line in [
        "CapEff:\t0000000000000000",
        "CapBnd:\t0000000000000000",
        "NoNewPrivs:\t1",
        "Seccomp:\t2",
        "Groups:\t ",
    ] {
        ensure!(status.lines().any(|found| found == line), "{line}: {status}");
    }
    let end = namespace.success_of("struck").await?;
    trainer.recovers(&namespace, &end).await?;
    namespace.delete().await
}

/// The user that a process runs as, by its status; its group has the same number.
fn own_user(status: &str) -> Result<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let user = line.and_then(|line| line.split_whitespace().next());
    Ok(user.context("no user")?.parse()?)
}

/// Most bytes of address space that a process may have.
fn address_space(process: Process) -> Result<u64> {
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", process.pid))?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"));
    let soft = line.and_then(|line| line.split_whitespace().next());
    let soft = soft.context("no such limit")?;
    soft.parse().with_context(|| format!("the limit is {soft}"))
}

/// Memory limit of a pod's first container in bytes.
fn memory_limit(pod: &Pod) -> Result<u64> {
    let container = pod.spec.as_ref().and_then(|spec| spec.containers.first());
    let limits = container.and_then(|one| one.resources.as_ref()?.limits.as_ref());
    let text = &limits.and_then(|limits| limits.get("memory")).context("no limit")?.0;
    for (unit, shift) in [("Gi", 30), ("Mi", 20), ("Ki", 10)] {
        if let Some(number) = text.strip_suffix(unit) {
            return Ok(number.parse::<u64>()? << shift);
        }
    }
    Ok(text.parse()?)
}

#[tokio::test]
async fn a_session_killed_in_the_window_leaves_the_workload_alone() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Hostile, "session").await? else {
        return Ok(());
    };
    let trainer = Trainer::start(&namespace, "trainer").await?;
    trainer.open_window(&namespace, "struck").await?;
    for process in node::sessions_of(&trainer.pod)? {
        if !process.runs("launcher") {
            process.signal(Signal::SIGKILL)?;
        }
    }
    namespace.stop("struck", "Keep").await?;
    let reasons = ["SessionGone", "CollectionFailed"];
    let end = namespace.nothing_of("struck", &reasons, "").await?;
    trainer.outlives_its_session(&namespace, &end).await?;
    namespace.delete().await
}
