//! The main job: a session on a running pod, from the manifest to the checked result.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::artifact::TIMELINE;
use flopwatch_api::capture::Capture;
use flopwatch_api::session::ProfilingSession;
use flopwatch_model::{Capture as Recorded, Category};
use flopwatch_system_tests::cluster::{Group, TestNamespace, run};
use flopwatch_system_tests::pods::{differences, restarts, workload};
use flopwatch_system_tests::workload::bounds;
use flopwatch_trace::{ReadLimits, timeline_file};
use k8s_openapi::api::core::v1::Pod;
use tempfile::NamedTempFile;

/// Threads per process and processes of the sample workload; each thread nests its ranges four deep
/// at most.
const THREADS_EACH: u64 = 3;
const PROCESSES: u64 = 2;

#[tokio::test]
async fn a_session_profiles_a_running_pod_and_leaves_it_as_it_was() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "first").await? else {
        return Ok(());
    };
    let arguments = format!("--threads {THREADS_EACH} --processes {PROCESSES} --range-micros 1000");
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let pod = namespace.create_pod(workload("trainer", true, &arguments)).await?;
    let annotations = pod.metadata.annotations.unwrap_or_default();
    let prepared = annotations.get("flopwatch.dev/prepared").map(String::as_str);
    ensure!(prepared == Some("main"), "{annotations:?}");
    namespace.grafted("trainer").await?;
    namespace.says("trainer", "ranges=").await?;
    let before = Inside::look(&namespace, "trainer").await?;

    namespace.profile("first", "trainer", 3, "Nsys").await?;
    let capture = namespace.succeeded("first").await?;
    let (type_, told) = namespace.event("trainer", "ProfilingRequested").await?;
    let session = namespace.api::<ProfilingSession>().get("first").await?;
    let user = session.status.and_then(|status| status.requested_by);
    let user = user.context("no user")?;
    ensure!(
        type_ == "Normal" && told.contains(&user) && told.contains("session first"),
        "{told:?} does not name {user}"
    );
    let timeline = download(&namespace, &capture).await?;
    agrees_with_the_workload(&namespace, &timeline).await?;
    before.is_as_it_was(&namespace, "trainer").await?;
    namespace.delete_whole().await
}

/// Fetches every artifact, checks size and digest against the status, and returns the timeline.
pub(super) async fn download(namespace: &TestNamespace, capture: &Capture) -> Result<Recorded> {
    let status = capture.status.as_ref().context("no status")?;
    let mut timeline = None;
    for artifact in &status.artifacts {
        let name = &artifact.name;
        let bytes = namespace.artifact(capture, name).await?;
        let length = bytes.len();
        ensure!(i64::try_from(length)? == artifact.bytes, "{name}: {length} bytes");
        let file = NamedTempFile::new()?;
        std::fs::write(file.path(), bytes)?;
        let digest = run("sha256sum", &[file.path().to_str().context("path")?]).await?;
        ensure!(digest.starts_with(&artifact.sha256), "{name}: {digest}");
        if artifact.name == TIMELINE {
            timeline = Some(timeline_file::read(file.path(), &ReadLimits::default())?.capture);
        }
    }
    timeline.context("no timeline among the artifacts")
}

/// The timeline holds the ranges that the workload counted in the window, and the GPU's samples
/// beside them.
async fn agrees_with_the_workload(namespace: &TestNamespace, timeline: &Recorded) -> Result<()> {
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
    let power = sampled.find(|series| series.metric == "power");
    let power = power.context("no NVML power")?;
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
        ensure!(restarts(&pod) == 0, "the workload restarted");
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
