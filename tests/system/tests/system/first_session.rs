//! The main job: a session on a running pod, from the manifest to the checked result.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::artifact::Output;
use flopwatch_system_tests::cluster::{Cluster, eventually, run};
use flopwatch_system_tests::fetch::ArtifactClient;
use flopwatch_system_tests::pods::{differences, workload};
use flopwatch_system_tests::sessions::{capture_condition, condition_of};
use flopwatch_system_tests::workload::bounds;
use flopwatch_trace::ReadLimits;
use flopwatch_trace::model::Category;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

/// Files of the container's own root, without the kernel's folders.
const LIST_FILES: &str =
    "find / -xdev -type f 2>/dev/null | sort; find /tmp /dev/shm /flopwatch/run -type f 2>/dev/null | sort";
/// Names of the processes in the container.
const LIST_PROCESSES: &str = "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2>/dev/null; echo; done | sort";

#[tokio::test]
async fn a_session_profiles_a_running_pod_and_leaves_it_as_it_was() -> Result<()> {
    let Some(cluster) = Cluster::connect().await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("first").await?;
    let pod = namespace
        .create_pod(workload(
            "trainer",
            true,
            &["--threads", "3", "--processes", "2", "--range-micros", "1000"],
        ))
        .await?;
    let annotations = pod.metadata.annotations.clone().unwrap_or_default();
    ensure!(
        annotations.get("flopwatch.dev/prepared").map(String::as_str) == Some("main"),
        "{annotations:?}"
    );
    let state = namespace.launch_state("trainer").await?;
    ensure!(state["grafted"] == json!(true), "the start was not grafted: {state}");
    eventually("the workload to count", || async {
        Ok(namespace.logs("trainer").await?.contains("ranges=").then_some(()))
    })
    .await?;
    let files = namespace.shell("trainer", LIST_FILES).await?;
    let processes = namespace.shell("trainer", LIST_PROCESSES).await?;

    namespace
        .create_session(
            "first",
            json!({ "target": { "podName": "trainer" }, "durationSeconds": 3, "profiler": { "type": "Nsys" } }),
        )
        .await?;
    let session = namespace.finished("first").await?;
    let capture = namespace.only_capture("first").await?;
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

    // What was published is what the status says, and the ranges are the workload's own.
    let capture_status = capture.status.clone().context("no status")?;
    let url = capture_status.url.clone().context("no URL")?;
    let client = ArtifactClient::new(&cluster.client).await?;
    let token = super::access::reader_token(&namespace, "reader", "flopwatch-viewer").await?;
    let mut timeline = None;
    for artifact in &capture_status.artifacts {
        let answer = client
            .request(&format!("{url}/{}", artifact.name), Some(&token), &[])
            .await?;
        ensure!(answer.status == 200, "{}: {}", artifact.name, answer.status);
        ensure!(
            i64::try_from(answer.body.len())? == artifact.bytes,
            "{}: {} bytes",
            artifact.name,
            answer.body.len()
        );
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), &answer.body)?;
        let digest = run("sha256sum", &[file.path().to_str().context("path")?]).await?;
        ensure!(digest.starts_with(&artifact.sha256), "{}: {digest}", artifact.name);
        if artifact.type_ == Output::Timeline {
            timeline = Some(answer.body);
        }
    }
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), timeline.context("no timeline among the artifacts")?)?;
    let timeline = flopwatch_trace::timeline_file::read(file.path(), &ReadLimits::default())?.capture;
    let ranges = timeline.events.get(&Category::NvtxRange).context("no NVTX ranges")?;
    let session_start = timeline.session_start_utc_ns.context("no absolute time")?;
    let from = ranges.start_ns.iter().min().context("no range")?;
    let until = (0..ranges.len())
        .map(|at| ranges.end_ns(at))
        .max()
        .context("no range")?;
    // A range that lies across an edge of the window is not in the capture: at most one nest of four per thread and edge.
    let slack = 4 * 3 * 2 * 2;
    let (least, most) = bounds(
        &namespace.logs("trainer").await?,
        session_start + from,
        session_start + until,
    );
    let found = ranges.count();
    ensure!(least > 1000, "too few ranges to mean anything: {least}");
    ensure!(
        least.saturating_sub(slack) <= found && found <= most + slack,
        "{found} ranges, the workload counted {least} to {most}"
    );
    let pids: std::collections::BTreeSet<_> = timeline.rows.iter().map(|row| row.process).collect();
    ensure!(pids.len() == 2, "ranges of two processes, not {pids:?}");

    // The workload never noticed.
    let pod = namespace.api::<Pod>().get("trainer").await?;
    let container = pod
        .status
        .and_then(|status| status.container_statuses)
        .and_then(|mut all| all.pop())
        .context("no status")?;
    ensure!(container.restart_count == 0, "the workload restarted");
    ensure!(
        namespace
            .shell("trainer", "tr '\\0' ' ' < /proc/1/cmdline")
            .await?
            .contains("flopwatch-sample-workload"),
        "PID 1"
    );
    let after = namespace.shell("trainer", LIST_FILES).await?;
    // The profiler's session, which preparation put there, keeps books of its own; captures must be gone.
    let left = differences(&files, &after, |file| {
        file.starts_with("/flopwatch/run/tmp/nvidia/nsight_systems/")
    });
    ensure!(left.is_empty(), "left in the container: {left:#?}");
    let after = namespace.shell("trainer", LIST_PROCESSES).await?;
    let left = differences(&processes, &after, |_| false);
    ensure!(left.is_empty(), "processes before and after differ: {left:#?}");
    namespace.delete().await
}
