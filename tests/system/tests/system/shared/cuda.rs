//! The CUDA tracer in pods, with a simulated GPU: what label and admission make of a pod, and a
//! session from the order to the kernels.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::artifact::TIMELINE;
use flopwatch_api::preparation::{
    CUDA_INJECTION64_PATH, CUDA_LIBRARY, LAUNCHER_INIT_CONTAINER, PREPARED_FOR_ANNOTATION, UNPREPARED_ANNOTATION,
};
use flopwatch_system_tests::cluster::{Group, TestNamespace, eventually};
use flopwatch_system_tests::pods::prepared_for;
use flopwatch_system_tests::simulated_gpu::{Program, outlived, scripted, told, with_variable};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use nix::sys::signal::Signal;
use serde_json::Value;

/// A program whose sum depends on everything that it does, and the code with which it ends.
const SCRIPT: &str = "printf 'init\\nwork 2000\\nexit 7\\n' | /opt/simulated-gpu/program; echo code $?; exit 3";

fn annotation<'a>(pod: &'a Pod, key: &str) -> &'a str {
    pod.annotations().get(key).map(String::as_str).unwrap_or_default()
}

/// The pod as admission left it, its exit code and its output.
async fn outcome(namespace: &TestNamespace, pod: Value) -> Result<(Pod, i32, String)> {
    let made = namespace.create_pod(pod).await?;
    let name = made.name_any();
    let code = namespace.exit_code(&name).await?;
    Ok((made, code, namespace.logs(&name).await?))
}

#[tokio::test]
async fn a_program_ends_and_prints_as_it_did_in_a_pod_that_is_prepared_for_the_tracer() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "cuda-unchanged").await? else {
        return Ok(());
    };
    let (plain, code, said) = outcome(&namespace, scripted("plain", None, SCRIPT)).await?;
    ensure!(
        code == 3 && said.contains("sum ") && said.ends_with("code 7\n"),
        "{code}: {said}"
    );
    let mounted = scripted("mounted", Some("cuda"), SCRIPT);
    let copied = namespace.copied(scripted("copied", Some("cuda"), SCRIPT)).await?;
    for (pod, is_copied) in [(mounted, false), (copied, true)] {
        let prepared = outcome(&namespace, pod).await?;
        ensure!((prepared.1, &prepared.2) == (code, &said), "{prepared:?}");
        let made = prepared.0;
        let words = annotation(&made, PREPARED_FOR_ANNOTATION);
        ensure!(words == "main: recorder.cuda", "{:?}", made.annotations());
        let (made, plain) = made.spec.zip(plain.spec.as_ref()).context("no spec")?;
        ensure!(made.containers[0].command == plain.containers[0].command);
        ensure!(made.containers[0].args == plain.containers[0].args);
        let init = made.init_containers.unwrap_or_default();
        ensure!(init.iter().all(|one| one.name == LAUNCHER_INIT_CONTAINER), "{init:?}");
        ensure!(init.len() <= 1 && (!is_copied || init.len() == 1), "{init:?}");
    }
    namespace.delete().await
}

#[tokio::test]
async fn a_session_holds_as_many_kernels_as_the_program_counted_mounted_and_copied() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "cuda-session").await? else {
        return Ok(());
    };
    let copied = namespace.copied(told("copied", "cuda")).await?;
    for (name, pod) in [("mounted", told("mounted", "cuda")), ("copied", copied)] {
        namespace.create_pod(pod).await?;
        let mut program = Program::begun(&namespace, name).await?;
        for window in ["first", "second"] {
            let session = format!("{name}-{window}");
            namespace.profile_main(&session, name, 5, "Cuda").await?;
            let recorded = program.launched(1000).await?;
            let capture = namespace.succeeded(&session).await?;
            namespace.holds(&capture, TIMELINE, recorded).await?;
            ensure!(recorded > 1000, "{session}: {recorded} by the program");
            program.goes_on_alone().await?;
        }
    }
    namespace.delete().await
}

#[tokio::test]
async fn a_program_that_is_killed_in_a_window_leaves_what_it_launched_until_then() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "cuda-killed").await? else {
        return Ok(());
    };
    namespace.create_pod(outlived("killed", "cuda")).await?;
    let mut program = Program::begun(&namespace, "killed").await?;
    namespace.profile_main("killed", "killed", 120, "Cuda").await?;
    let recorded = program.launched(1000).await?;
    program.has_written(recorded).await?;
    program.process.signal(Signal::SIGKILL)?;
    program.process.ended().await?;
    namespace.stop("killed", "Keep").await?;
    let capture = namespace.succeeded("killed").await?;
    namespace.holds(&capture, TIMELINE, recorded).await?;
    namespace.delete().await
}

#[tokio::test]
async fn an_open_window_tells_of_more_and_more_kernels_and_a_closed_one_of_none() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "cuda-live").await? else {
        return Ok(());
    };
    namespace.create_pod(told("told", "cuda")).await?;
    let mut program = Program::begun(&namespace, "told").await?;
    namespace.profile_main("open", "told", 240, "Cuda").await?;
    let mut recorded = program.launched(1000).await?;
    let first = kernels_beyond(&namespace, "open", 1000).await?;
    recorded += program.recorded("launch 2000").await?;
    let second = kernels_beyond(&namespace, "open", 3000).await?;
    ensure!(first < second, "{first}, then {second}");
    namespace.stop("open", "Keep").await?;
    let capture = namespace.succeeded("open").await?;
    let progress = capture.status.as_ref().and_then(|status| status.progress.as_ref());
    ensure!(progress.is_some_and(|progress| progress.live.is_none()), "{progress:?}");
    namespace.holds(&capture, TIMELINE, recorded).await?;
    namespace.delete().await
}

/// Waits until the open window of a session's capture has told of more kernels than that, and gives
/// how many it told of.
async fn kernels_beyond(namespace: &TestNamespace, session: &str, before: i64) -> Result<i64> {
    eventually(&format!("{session} to tell of more than {before} kernels"), || async {
        let capture = namespace.only_capture(session).await?;
        let progress = capture.status.and_then(|status| status.progress);
        let live = progress.and_then(|progress| progress.live).unwrap_or_default();
        let kernels = live.categories.iter().find(|one| one.category == "cuda_kernel");
        let kernels = kernels.map_or(0, |one| one.events);
        Ok((kernels > before && !live.latest_kernels.is_empty()).then_some(kernels))
    })
    .await
}

#[tokio::test]
async fn a_library_that_a_container_has_cuda_load_itself_is_called_first() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "cuda-chained").await? else {
        return Ok(());
    };
    let own = "/opt/simulated-gpu/libnext.so";
    let pod = with_variable(told("chained", "cuda"), CUDA_INJECTION64_PATH, own);
    let pod = with_variable(pod, "FLOPWATCH_FAKE_LOG", "/work/calls");
    namespace.create_pod(pod).await?;
    let program = Program::begun(&namespace, "chained").await?;
    let calls = std::fs::read_to_string(program.path("/work/calls"))?;
    ensure!(calls.starts_with("next "), "{calls}");
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", program.process.pid))?;
    ensure!(maps.contains(own) && maps.contains(CUDA_LIBRARY), "{maps}");
    namespace.delete().await
}

#[tokio::test]
async fn nsight_systems_goes_before_the_tracer_where_a_label_names_both() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "cuda-nsys").await? else {
        return Ok(());
    };
    let made = namespace.create_pod(prepared_for("both", "nsys.cuda")).await?;
    let prepared = annotation(&made, PREPARED_FOR_ANNOTATION);
    let why = annotation(&made, UNPREPARED_ANNOTATION);
    ensure!(
        prepared == "main: nsys.recorder" && why.contains("Nsight Systems has the container"),
        "{prepared}: {why}"
    );
    namespace.grafted("both").await?;
    namespace.profile_main("traced", "both", 2, "Cuda").await?;
    let end = namespace
        .nothing_of("traced", &["NotPrepared", "OtherProfiler"], "flopwatch.dev/prepare")
        .await?;
    ensure!(!end.succeeded && !end.session_succeeded, "{end:?}");
    namespace.profile("recorded", "both", 2, "Nsys").await?;
    namespace.succeeded("recorded").await?;
    namespace.delete().await
}
