//! The main job: a session on a running pod, from the manifest to the checked result.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::artifact::TIMELINE;
use flopwatch_api::capture::Capture;
use flopwatch_api::session::ProfilingSession;
use flopwatch_model::Category;
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace, eventually, run};
use flopwatch_system_tests::fetch::{ArtifactClient, reader_token};
use flopwatch_system_tests::pods::{differences, workload};
use flopwatch_system_tests::sessions::{capture_condition, condition_of};
use flopwatch_system_tests::workload::bounds;
use flopwatch_trace::ReadLimits;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use tempfile::NamedTempFile;

/// Threads per process and processes of the sample workload; each thread nests its ranges four deep
/// at most.
const THREADS_EACH: u64 = 3;
const PROCESSES: u64 = 2;

#[tokio::test]
async fn a_session_profiles_a_running_pod_and_leaves_it_as_it_was() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("first").await?;
    let (threads, processes) = (THREADS_EACH.to_string(), PROCESSES.to_string());
    let arguments = [
        "--threads",
        &threads,
        "--processes",
        &processes,
        "--range-micros",
        "1000",
    ];
    let pod = namespace.create_pod(workload("trainer", true, &arguments)).await?;
    let annotations = pod.metadata.annotations.unwrap_or_default();
    let prepared = annotations.get("flopwatch.dev/prepared").map(String::as_str);
    ensure!(prepared == Some("main"), "{annotations:?}");
    let state = namespace.launch_state("trainer").await?;
    ensure!(state["grafted"] == json!(true), "the start was not grafted: {state}");
    eventually("the workload to count", || async {
        Ok(namespace.logs("trainer").await?.contains("ranges=").then_some(()))
    })
    .await?;
    let before = Inside::look(&namespace, "trainer").await?;

    namespace
        .create_session(
            "first",
            json!({ "target": { "podName": "trainer" }, "durationSeconds": 3, "profiler": { "type": "Nsys" } }),
        )
        .await?;
    let capture = succeeded(&namespace, "first").await?;
    let (type_, told) = namespace.event("trainer", "ProfilingRequested").await?;
    let session = namespace.api::<ProfilingSession>().get("first").await?;
    let user = session
        .status
        .and_then(|status| status.requested_by)
        .context("no user")?;
    ensure!(
        type_ == "Normal" && told.contains(&user) && told.contains("session first"),
        "{told:?} does not name {user}"
    );
    let timeline = download(&cluster, &namespace, &capture).await?;
    agrees_with_the_workload(&namespace, &timeline).await?;
    before.is_as_it_was(&namespace, "trainer").await?;
    namespace.delete_whole().await
}

/// Waits for the session, and holds its status and its capture's against each other.
pub(crate) async fn succeeded(namespace: &TestNamespace, name: &str) -> Result<Capture> {
    let session = namespace.finished(name).await?;
    let capture = namespace.only_capture(name).await?;
    let succeeded = condition_of(&session, "Succeeded").context("no condition")?;
    ensure!(succeeded.status == "True", "{succeeded:?}\n{:#?}", capture.status);
    for type_ in [
        "Accepted",
        "Attached",
        "Captured",
        "Transformed",
        "Published",
        "Succeeded",
    ] {
        let condition = capture_condition(&capture, type_).with_context(|| format!("no condition {type_}"))?;
        ensure!(condition.status == "True", "{condition:?}");
    }
    let status = session.status.context("no status")?;
    ensure!(
        status.counts.succeeded == 1 && status.counts.failed == 0,
        "{:?}",
        status.counts
    );
    ensure!(status.requested_by.is_some(), "nobody asked for the session");
    ensure!(status.id.as_ref().is_some_and(|id| id.len() == 8), "{:?}", status.id);
    Ok(capture)
}

/// Fetches every artifact, checks size and digest against the status, and returns the timeline.
pub(crate) async fn download(cluster: &Cluster, namespace: &TestNamespace, capture: &Capture) -> Result<NamedTempFile> {
    let status = capture.status.as_ref().context("no status")?;
    let url = status.url.as_ref().context("no URL")?;
    let client = ArtifactClient::new(&cluster.client).await?;
    let token = reader_token(namespace, "reader", "flopwatch-viewer").await?;
    let mut timeline = None;
    for artifact in &status.artifacts {
        let name = &artifact.name;
        let answer = client.request(&format!("{url}/{name}"), Some(&token), &[]).await?;
        ensure!(answer.status == 200, "{name}: {}", answer.status);
        ensure!(
            i64::try_from(answer.body.len())? == artifact.bytes,
            "{name}: {} bytes",
            answer.body.len()
        );
        let file = NamedTempFile::new()?;
        std::fs::write(file.path(), &answer.body)?;
        let digest = run("sha256sum", &[file.path().to_str().context("path")?]).await?;
        ensure!(digest.starts_with(&artifact.sha256), "{name}: {digest}");
        if artifact.name == TIMELINE {
            timeline = Some(file);
        }
    }
    timeline.context("no timeline among the artifacts")
}

/// The timeline holds the ranges that the workload counted in the window, and the GPU's samples
/// beside them.
async fn agrees_with_the_workload(namespace: &TestNamespace, file: &NamedTempFile) -> Result<()> {
    let timeline = flopwatch_trace::timeline_file::read(file.path(), &ReadLimits::default())?.capture;
    let ranges = timeline.events.get(&Category::NvtxRange).context("no NVTX ranges")?;
    let session_start = timeline.session_start_utc_ns.context("no absolute time")?;
    let from = ranges.start_ns.iter().min().context("no range")?;
    let ends = (0..ranges.len()).map(|at| ranges.end_ns(at));
    let until = ends.max().context("no range")?;
    let log = namespace.logs("trainer").await?;
    let (least, most) = bounds(&log, session_start + from, session_start + until);
    // A range that lies across an edge is not in the capture: at most one nest of four per thread
    // and edge.
    let slack = 4 * THREADS_EACH * PROCESSES * 2;
    let found = ranges.count();
    ensure!(least > 1000, "too few ranges to mean anything: {least}");
    ensure!(
        least.saturating_sub(slack) <= found && found <= most + slack,
        "{found} ranges, the workload counted {least} to {most}"
    );
    let pids: BTreeSet<_> = timeline.rows.iter().map(|row| row.process).collect();
    ensure!(u64::try_from(pids.len())? == PROCESSES, "ranges of processes {pids:?}");
    let mut sampled = timeline.counters.iter().filter(|series| series.source == "nvml");
    let power = sampled
        .find(|series| series.metric == "power")
        .context("no NVML power")?;
    let inside = power.t_ns.iter().all(|time| *time <= timeline.duration_ns);
    ensure!(power.t_ns.len() > 10 && inside, "NVML samples: {power:?}");
    Ok(())
}

/// Files and processes of a container.
struct Inside {
    files: String,
    processes: String,
}

impl Inside {
    async fn look(namespace: &TestNamespace, pod: &str) -> Result<Self> {
        // The container's own file system and its writable volumes, without the kernel's folders.
        let files = "find / -xdev -type f 2>/dev/null; find /tmp /dev/shm /flopwatch/run -type f 2>/dev/null";
        let processes = "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2>/dev/null; echo; done";
        Ok(Self {
            files: namespace.shell(pod, files).await?,
            processes: namespace.shell(pod, processes).await?,
        })
    }

    /// Same PID 1, no restart, no file and no process more or less.
    async fn is_as_it_was(&self, namespace: &TestNamespace, name: &str) -> Result<()> {
        let pod = namespace.api::<Pod>().get(name).await?;
        let statuses = pod
            .status
            .and_then(|status| status.container_statuses)
            .unwrap_or_default();
        ensure!(
            statuses.iter().all(|one| one.restart_count == 0),
            "the workload restarted"
        );
        let first = namespace.shell(name, "tr '\\0' ' ' < /proc/1/cmdline").await?;
        ensure!(first.contains("flopwatch-sample-workload"), "PID 1 is {first}");
        let after = Self::look(namespace, name).await?;
        // The profiler's session, which preparation put there, keeps books of its own; captures
        // must be gone.
        let books = |file: &str| file.starts_with("/flopwatch/run/tmp/nvidia/nsight_systems/");
        let left = differences(&self.files, &after.files, books);
        ensure!(left.is_empty(), "files before and after differ: {left:#?}");
        let left = differences(&self.processes, &after.processes, |_| false);
        ensure!(left.is_empty(), "processes before and after differ: {left:#?}");
        Ok(())
    }
}
