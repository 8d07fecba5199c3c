//! Kernels that are recorded all the time, with a simulated GPU: what was before anybody asked, and
//! windows that take turns with it.

use anyhow::{Result, ensure};
use flopwatch_api::artifact::{PRELUDE, TIMELINE};
use flopwatch_api::capture::Stage;
use flopwatch_api::preparation::PREPARED_FOR_ANNOTATION;
use flopwatch_system_tests::cluster::{Cluster, Group};
use flopwatch_system_tests::fetch::reader_token;
use flopwatch_system_tests::recordings::timeline;
use flopwatch_system_tests::simulated_gpu::{Program, records, told, traced};
use kube::ResourceExt as _;
use serde_json::json;

use super::first_session::succeeded;

#[tokio::test]
async fn kernels_of_the_time_before_anybody_asked_are_shown_and_a_window_takes_turns_with_them() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("recorder-kernels").await?;
    let token = reader_token(&namespace, "reader", "flopwatch-viewer").await?;
    let made = namespace.create_pod(told("trainer", "cuda.recorder-kernels")).await?;
    let words = made.annotations().get(PREPARED_FOR_ANNOTATION).map(String::as_str);
    ensure!(words == Some("main: recorder.cuda.recorder-kernels"), "{words:?}");
    let mut program = Program::begun(&namespace, "trainer").await?;
    // Nobody asks for a session: a kernel is a record, and calls are none.
    let before = program.launched(1000).await?;
    let spec = json!({
        "target": { "podName": "trainer", "containerNames": ["main"] }, "durationSeconds": 60,
        "profiler": { "type": "Recorder" }
    });
    namespace.create_session("recent", spec).await?;
    let capture = succeeded(&namespace, "recent").await?;
    let recent = records(&timeline(&cluster, &token, &capture, TIMELINE).await?);
    ensure!(recent == before, "{recent} in the timeline, {before} by the program");

    namespace.create_session("window", traced("trainer", 5)).await?;
    namespace.in_stage("window", Stage::Collecting).await?;
    let counted = program.recorded("launch 500").await?;
    ensure!(
        counted == 3 * 500,
        "{counted} records of a window, with two calls for each kernel"
    );
    let capture = succeeded(&namespace, "window").await?;
    let window = records(&timeline(&cluster, &token, &capture, TIMELINE).await?);
    ensure!(window == counted, "{window} in the timeline, {counted} by the program");
    let prelude = records(&timeline(&cluster, &token, &capture, PRELUDE).await?);
    ensure!(prelude == before, "{prelude} in the prelude, {before} by the program");

    // The order of before is given again.
    program.launched(10).await?;
    namespace.delete().await
}

#[tokio::test]
async fn kernels_of_a_container_that_failed_are_kept() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("recorder-kernels-end").await?;
    let token = reader_token(&namespace, "reader", "flopwatch-viewer").await?;
    namespace.create_pod(told("trainer", "cuda.recorder-kernels")).await?;
    let mut program = Program::begun(&namespace, "trainer").await?;
    let counted = program.launched(1000).await?;
    let spec = json!({
        "target": { "podName": "trainer", "containerNames": ["main"] }, "durationSeconds": 120,
        "profiler": { "type": "Recorder" }
    });
    // What CUPTI has is complete by then.
    namespace.create_session("before", spec.clone()).await?;
    succeeded(&namespace, "before").await?;
    program.tell("exit 5")?;
    let code = namespace.exit_code("trainer").await?;
    ensure!(code == 5, "{code}");
    let (_, note) = namespace.event("trainer", "RecordingKept").await?;
    ensure!(note.contains("ended with code 5"), "{note}");
    namespace.create_session("after", spec).await?;
    let capture = succeeded(&namespace, "after").await?;
    let kept = records(&timeline(&cluster, &token, &capture, TIMELINE).await?);
    ensure!(kept == counted, "{kept} in the timeline, {counted} by the program");
    namespace.delete().await
}

#[tokio::test]
async fn a_pod_that_asks_for_the_tracer_alone_is_not_recorded_before_a_session() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("recorder-kernels-off").await?;
    namespace.create_pod(told("asks", "cuda.recorder-kernels")).await?;
    namespace.create_pod(told("plain", "cuda")).await?;
    let mut plain = Program::begun(&namespace, "plain").await?;
    let mut asks = Program::begun(&namespace, "asks").await?;
    // The agent has looked at both by then.
    asks.launched(10).await?;
    plain.goes_on_alone().await?;
    namespace.delete().await
}
