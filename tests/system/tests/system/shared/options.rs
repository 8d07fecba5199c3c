//! What is fixed with a container's start, by the annotations of its pod.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::capture::TraceOutcome;
use flopwatch_api::profiler::TraceCategory;
use flopwatch_system_tests::cluster::{Cluster, Group};
use flopwatch_system_tests::pods::{copied_into, workload};
use serde_json::json;

use super::first_session::succeeded;

#[tokio::test]
async fn the_annotations_of_a_pod_decide_what_is_traced_and_each_category_says_what_came_of_it() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("options").await?;
    let mut pod = workload("trainer", true, &[]);
    pod["metadata"]["annotations"] = json!({ "flopwatch.dev/nsys-trace": "cuda, nvtx, osrt, cublas" });
    // Only copies leave out what is not needed.
    namespace.create_pod(copied_into(&cluster.client, pod).await?).await?;
    namespace.launch_state("trainer").await?;
    let files = namespace
        .shell("trainer", "ls /flopwatch/tools/target-linux-x64")
        .await?;
    for (file, comes) in [
        ("nsys", true),
        ("libcupti.so.11.8", true),
        ("libToolsInjectionCuBLAS64_11.so", true),
        ("libToolsInjectionCuDNN64_8.so", false),
        ("libnvperf_host.so", false),
        ("reports", false),
    ] {
        ensure!(files.lines().any(|name| name == file) == comes, "{file}: {files}");
    }
    let bytes = namespace.shell("trainer", "du -sk /flopwatch/tools").await?;
    let kibibytes: u64 = bytes.split_whitespace().next().context("no size")?.parse()?;
    ensure!(kibibytes < 80 << 10, "{bytes}");
    namespace
        .create_session(
            "options",
            json!({
                "target": { "podName": "trainer" }, "durationSeconds": 2, "require": ["nvtx_range", "os_runtime"],
                "profiler": { "type": "Nsys", "nsys": { "trace": ["nvtx", "osrt"] } }
            }),
        )
        .await?;
    let capture = succeeded(&namespace, "options").await?;
    let summary = capture.status.and_then(|status| status.summary).context("no summary")?;
    let outcomes: Vec<_> = summary.traced.iter().map(|one| (one.category, one.outcome)).collect();
    // No GPU is here, and the program calls no cuBLAS.
    for expected in [
        (TraceCategory::Cuda, TraceOutcome::Empty),
        (TraceCategory::Nvtx, TraceOutcome::Captured),
        (TraceCategory::Osrt, TraceOutcome::Captured),
        (TraceCategory::Cublas, TraceOutcome::Empty),
    ] {
        ensure!(outcomes.contains(&expected), "{expected:?} is not in {outcomes:?}");
    }
    ensure!(outcomes.len() == 4, "{outcomes:?}");
    namespace.delete().await
}
