//! Sessions that make their own pod: from its first instruction to its last.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::session::ProfilingSession;
use flopwatch_model::Category;
use flopwatch_system_tests::cluster::{Group, TestNamespace, client_with};
use flopwatch_system_tests::fetch::reader_token;
use flopwatch_system_tests::pods::{shell, template};
use flopwatch_system_tests::sessions::{capture_condition, session, with};
use flopwatch_system_tests::workload::total;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, PostParams};
use serde_json::{Value, json};

use super::first_session::download;

/// The spec of a session with Nsight Systems of a pod that is made of a template.
fn of_template(template: &Value, more: Value) -> Value {
    let own = json!({ "target": { "podTemplate": template }, "profiler": { "type": "Nsys" } });
    with(own, more)
}

#[tokio::test]
async fn a_pod_template_session_sees_the_programs_first_range_and_its_pod_goes_with_it() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "template").await? else {
        return Ok(());
    };
    namespace.allow_pod_templates().await?;
    let arguments = ["--first-range", "the very first", "--seconds", "3", "--fail-code", "3"];
    let more = json!({ "start": "ContainerStart", "durationSeconds": 60 });
    let spec = of_template(&template(&arguments), more);
    namespace.create_session("whole", spec).await?;
    let name = namespace.own_pod("whole").await?.name_any();
    let capture = namespace.succeeded("whole").await?;
    let window = capture.status.as_ref().and_then(|status| status.summary.as_ref());
    let window = window.context("no summary")?.window_nanoseconds;
    ensure!(
        window < 30_000_000_000,
        "the program's end ends the window: {window} ns"
    );

    let code = namespace.exit_code(&name).await?;
    ensure!(code == 3, "the program's own exit code, not {code}");
    let text = total(&namespace.logs(&name).await?).context("no total")?;
    let timeline = download(&namespace, &capture).await?;
    let ranges = timeline.events.get(&Category::NvtxRange).context("no NVTX ranges")?;
    let count = ranges.count();
    ensure!(count == text, "{count} ranges in the timeline, the program made {text}");
    let first = (0..ranges.len()).min_by_key(|at| ranges.start_ns[*at]);
    let first = ranges.name_of(first.context("no range")?);
    ensure!(first == "the very first", "the first range is {first:?}");

    namespace.delete_session("whole").await?;
    namespace.pod_gone(&name).await?;
    namespace.delete().await
}

#[tokio::test]
async fn a_program_of_a_pod_template_finds_the_signals_as_in_an_unprepared_pod() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "signals").await? else {
        return Ok(());
    };
    namespace.allow_pod_templates().await?;
    let plain = shell("plain", false, "grep -E '^Sig(Blk|Ign)' /proc/self/status");
    let template = json!({ "metadata": { "labels": { "app": "trainer" } }, "spec": plain["spec"] });
    namespace.create_pod(plain).await?;
    namespace.exit_code("plain").await?;
    let expected = namespace.logs("plain").await?;
    ensure!(expected.lines().count() == 2, "{expected}");
    let spec = of_template(&template, json!({ "durationSeconds": 20 }));
    namespace.create_session("signals", spec).await?;
    let name = namespace.own_pod("signals").await?.name_any();
    namespace.exit_code(&name).await?;
    let found = namespace.logs(&name).await?;
    ensure!(found == expected, "{found}\nunprepared: {expected}");
    namespace.delete().await
}

#[tokio::test]
async fn the_end_of_a_program_ends_a_window_that_opened_while_it_ran() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "ends").await? else {
        return Ok(());
    };
    namespace.allow_pod_templates().await?;
    let spec = of_template(&template(&["--seconds", "20"]), json!({ "durationSeconds": 120 }));
    namespace.create_session("ends", spec).await?;
    let capture = namespace.succeeded("ends").await?;
    let name = &capture.spec.pod_ref.name;
    let code = namespace.exit_code(name).await?;
    ensure!(code == 0, "{code}");
    let summary = capture.status.and_then(|status| status.summary).context("no summary")?;
    ensure!(summary.window_nanoseconds < 25_000_000_000, "{summary:?}");
    namespace.delete().await
}

#[tokio::test]
async fn a_program_that_began_without_its_collection_fails_the_capture_and_ends_as_it_would() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "missed").await? else {
        return Ok(());
    };
    namespace.allow_pod_templates().await?;
    let mut pod = template(&["copy", "/no/such/folder", "/tmp"]);
    // A program that loads no libraries: nothing can be put into it, so it starts at once.
    pod["spec"]["containers"][0]["command"] = json!(["/flopwatch/tools/launcher"]);
    let spec = of_template(&pod, json!({ "start": "ContainerStart" }));
    namespace.create_session("missed", spec).await?;
    namespace
        .fails_with("missed", "StartMissed", &["began before its collection"])
        .await?;
    let name = namespace.own_pod("missed").await?.name_any();
    let code = namespace.exit_code(&name).await?;
    ensure!(code == 1, "the program's own exit code, not {code}");
    namespace.delete().await
}

#[tokio::test]
async fn a_session_whose_pod_cannot_be_prepared_ends_before_anything_runs() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "unpreparable").await? else {
        return Ok(());
    };
    namespace.allow_pod_templates().await?;
    let mut pod = template(&[]);
    let container = pod["spec"]["containers"][0].as_object_mut();
    container.context("no container")?.remove("command");
    let spec = json!({ "target": { "podTemplate": pod }, "start": "ContainerStart" });
    namespace.create_session("no-command", spec).await?;
    let sentence = "the container has no command";
    refused(&namespace, "no-command", "PodNotPrepared", sentence).await?;

    // What the API server refuses, it refuses here too: the namespace is at Pod Security level
    // "restricted".
    let mut pod = template(&[]);
    pod["spec"]["hostNetwork"] = json!(true);
    let spec = json!({ "target": { "podTemplate": pod }, "start": "ContainerStart", "startDeadlineSeconds": 3 });
    namespace.create_session("privileged", spec).await?;
    refused(&namespace, "privileged", "PodRefused", "PodSecurity").await?;
    namespace.delete().await
}

/// The session ended with that reason, and there is no pod.
async fn refused(namespace: &TestNamespace, session: &str, reason: &str, sentence: &str) -> Result<()> {
    namespace.ends_without_targets(session, reason, sentence).await?;
    let pods = namespace.api::<Pod>().list(&ListParams::default()).await?;
    ensure!(pods.items.is_empty(), "a pod is there");
    ensure!(namespace.captures(session).await?.is_empty(), "a capture was made");
    Ok(())
}

#[tokio::test]
async fn a_user_who_may_not_create_pods_gets_none_through_a_session() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "escalation").await? else {
        return Ok(());
    };
    namespace.allow_pod_templates().await?;
    let user = client_with(&reader_token(&namespace, "profiler", "flopwatch-user").await?).await?;
    let sessions: Api<ProfilingSession> = Api::namespaced(user, &namespace.name);
    let own = json!({ "target": { "podTemplate": template(&["--seconds", "1"]) }, "start": "ContainerStart" });
    let own = session(&json!({ "name": "own-pod" }), &own)?;
    let refusal = sessions.create(&PostParams::default(), &own).await;
    let refusal = refusal.expect_err("a pod through a session").to_string();
    ensure!(
        refusal.contains("may not create pods") && refusal.contains("profiler"),
        "{refusal}"
    );
    // What needs no pod is the user's right, and with the right to create pods so is the rest.
    let named = json!({ "target": { "podName": "somebody" }, "startDeadlineSeconds": 1 });
    let named = session(&json!({ "name": "named" }), &named)?;
    sessions.create(&PostParams::default(), &named).await?;
    namespace.bind("builder-profiles", "flopwatch-user", "builder").await?;
    let builder = client_with(&reader_token(&namespace, "builder", "edit").await?).await?;
    let sessions: Api<ProfilingSession> = Api::namespaced(builder, &namespace.name);
    sessions.create(&PostParams::default(), &own).await?;
    let capture = namespace.succeeded("own-pod").await?;
    ensure!(
        capture_condition(&capture, "Succeeded").is_some_and(|one| one.status == "True"),
        "{capture:?}"
    );
    namespace.delete().await
}

#[tokio::test]
async fn a_namespace_that_did_not_opt_in_gets_no_pod_and_says_which_role_to_bind() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "opt-in").await? else {
        return Ok(());
    };
    let spec = json!({ "target": { "podTemplate": template(&["--seconds", "1"]) }, "profiler": { "type": "Metrics" } });
    let refusal = namespace.create_session("early", spec.clone()).await.err();
    let refusal = refusal.context("the administrator's session was admitted")?;
    let refusal = format!("{refusal:#}");
    for part in ["flopwatch-pod-templates", "create rolebinding", &namespace.name] {
        ensure!(refusal.contains(part), "no {part} in: {refusal}");
    }
    namespace.allow_pod_templates().await?;
    namespace.create_session("late", spec).await?;
    let name = namespace.own_pod("late").await?.name_any();
    let pod = namespace.api::<Pod>().get(&name).await?;
    let annotations = pod.metadata.annotations.unwrap_or_default();
    ensure!(
        annotations.contains_key("flopwatch.dev/requested-by"),
        "the pod does not say for whom it was made: {annotations:?}"
    );
    namespace.delete().await
}
