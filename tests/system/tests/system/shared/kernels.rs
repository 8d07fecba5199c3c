//! Kernels that are recorded all the time, with a simulated GPU: what was before anybody asked, and
//! windows that take turns with it.

use anyhow::{Result, ensure};
use flopwatch_api::artifact::{PRELUDE, TIMELINE};
use flopwatch_api::capture::Stage;
use flopwatch_api::preparation::PREPARED_FOR_ANNOTATION;
use flopwatch_system_tests::cluster::{Group, TestNamespace};
use flopwatch_system_tests::sessions::of_main;
use flopwatch_system_tests::simulated_gpu::{Program, told};
use kube::ResourceExt as _;

#[tokio::test]
async fn kernels_of_the_time_before_anybody_asked_are_shown_and_a_window_takes_turns_with_them() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "recorder-kernels").await? else {
        return Ok(());
    };
    let made = namespace.create_pod(told("trainer", "cuda.recorder-kernels")).await?;
    let words = made.annotations().get(PREPARED_FOR_ANNOTATION).map(String::as_str);
    ensure!(words == Some("main: recorder.cuda.recorder-kernels"), "{words:?}");
    let mut program = Program::begun(&namespace, "trainer").await?;
    // Nobody asks for a session: a kernel is a record, and calls are none.
    let before = program.launched(1000).await?;
    namespace.profile_main("recent", "trainer", 60, "Recorder").await?;
    let capture = namespace.succeeded("recent").await?;
    namespace.holds(&capture, TIMELINE, before).await?;

    namespace.profile_main("window", "trainer", 5, "Cuda").await?;
    namespace.in_stage("window", Stage::Collecting).await?;
    let counted = program.recorded("launch 500").await?;
    ensure!(
        counted == 3 * 500,
        "{counted} records of a window, with two calls for each kernel"
    );
    let capture = namespace.succeeded("window").await?;
    namespace.holds(&capture, TIMELINE, counted).await?;
    namespace.holds(&capture, PRELUDE, before).await?;

    // The order of before is given again.
    program.launched(10).await?;
    namespace.delete().await
}

#[tokio::test]
async fn kernels_of_a_container_that_failed_are_kept() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "recorder-kernels-end").await? else {
        return Ok(());
    };
    namespace.create_pod(told("trainer", "cuda.recorder-kernels")).await?;
    let mut program = Program::begun(&namespace, "trainer").await?;
    let counted = program.launched(1000).await?;
    let spec = of_main("trainer", 120, "Recorder");
    // What CUPTI has is complete by then.
    namespace.create_session("before", spec.clone()).await?;
    namespace.succeeded("before").await?;
    program.tell("exit 5")?;
    let code = namespace.exit_code("trainer").await?;
    ensure!(code == 5, "{code}");
    let (_, note) = namespace.event("trainer", "RecordingKept").await?;
    ensure!(note.contains("ended with code 5"), "{note}");
    namespace.create_session("after", spec).await?;
    let capture = namespace.succeeded("after").await?;
    namespace.holds(&capture, TIMELINE, counted).await?;
    namespace.delete().await
}

#[tokio::test]
async fn a_pod_that_asks_for_the_tracer_alone_is_not_recorded_before_a_session() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "recorder-kernels-off").await? else {
        return Ok(());
    };
    namespace.create_pod(told("asks", "cuda.recorder-kernels")).await?;
    namespace.create_pod(told("plain", "cuda")).await?;
    let mut plain = Program::begun(&namespace, "plain").await?;
    let mut asks = Program::begun(&namespace, "asks").await?;
    // The agent has looked at both by then.
    asks.launched(10).await?;
    plain.goes_on_alone().await?;
    namespace.delete().await
}
