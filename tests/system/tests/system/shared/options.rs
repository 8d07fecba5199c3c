//! What is fixed with a container's start, by the annotations of its pod.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::capture::TraceOutcome;
use flopwatch_api::profiler::TraceCategory;
use flopwatch_system_tests::cluster::{Group, TestNamespace};
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::sessions::{spec, with};
use serde_json::json;

#[tokio::test]
async fn the_annotations_of_a_pod_decide_what_is_traced_and_each_category_says_what_came_of_it() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "options").await? else {
        return Ok(());
    };
    let mut pod = workload("trainer", true, &[]);
    pod["metadata"]["annotations"] = json!({ "flopwatch.dev/nsys-trace": "cuda, nvtx, osrt, cublas" });
    // Only copies leave out what is not needed.
    namespace.launch(namespace.copied(pod).await?).await?;
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
    let traced = json!({ "type": "Nsys", "nsys": { "trace": ["nvtx", "osrt"] } });
    let more = json!({ "require": ["nvtx_range", "os_runtime"], "profiler": traced });
    let asked = with(spec("trainer", 2, "Nsys"), more);
    namespace.create_session("options", asked).await?;
    let capture = namespace.succeeded("options").await?;
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
