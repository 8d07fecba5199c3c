//! Sessions that make their own pod: from its first instruction to its last.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::session::ProfilingSession;
use flopwatch_model::Category;
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace};
use flopwatch_system_tests::fetch::{reader_token, token};
use flopwatch_system_tests::pods::{template, workload};
use flopwatch_system_tests::sessions::{capture_condition, condition_of};
use flopwatch_trace::ReadLimits;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};

use super::first_session::{download, succeeded};
use super::refusals::capture_failure;

/// Ranges that the program says it made in all.
fn total(log: &str) -> Result<u64> {
    let line = log
        .lines()
        .find(|line| line.starts_with("total "))
        .context("no total")?;
    let ranges = line.split_whitespace().find_map(|word| word.strip_prefix("ranges="));
    Ok(ranges.context("no count")?.parse()?)
}

#[tokio::test]
async fn a_pod_template_session_sees_the_programs_first_range_and_its_pod_goes_with_it() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("template").await?;
    namespace.allow_pod_templates().await?;
    let arguments = ["--first-range", "the very first", "--seconds", "3", "--fail-code", "3"];
    let spec = json!({
        "target": { "podTemplate": template(&arguments) }, "start": "ContainerStart", "durationSeconds": 60,
        "profiler": { "type": "Nsys" }
    });
    namespace.create_session("whole", spec).await?;
    let name = namespace.own_pod("whole").await?.name_any();
    let capture = succeeded(&namespace, "whole").await?;
    let window = capture.status.as_ref().and_then(|status| status.summary.as_ref());
    let window = window.context("no summary")?.window_nanoseconds;
    ensure!(
        window < 30_000_000_000,
        "the program's end ends the window: {window} ns"
    );

    let code = namespace.exit_code(&name).await?;
    ensure!(code == 3, "the program's own exit code, not {code}");
    let text = total(&namespace.logs(&name).await?)?;
    let file = download(&cluster, &namespace, &capture).await?;
    let timeline = flopwatch_trace::timeline_file::read(file.path(), &ReadLimits::default())?.capture;
    let ranges = timeline.events.get(&Category::NvtxRange).context("no NVTX ranges")?;
    ensure!(
        ranges.count() == text,
        "{} ranges in the timeline, the program made {text}",
        ranges.count()
    );
    let first = (0..ranges.len())
        .min_by_key(|at| ranges.start_ns[*at])
        .context("no range")?;
    let first = ranges.name_of(first);
    ensure!(first == "the very first", "the first range is {first:?}");

    namespace
        .api::<ProfilingSession>()
        .delete("whole", &DeleteParams::default())
        .await?;
    namespace.pod_gone(&name).await?;
    namespace.delete().await
}

#[tokio::test]
async fn a_program_of_a_pod_template_finds_the_signals_as_in_an_unprepared_pod() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("signals").await?;
    namespace.allow_pod_templates().await?;
    let mut plain = workload("plain", false, &[]);
    plain["spec"]["containers"][0]["command"] = json!(["/bin/sh", "-c"]);
    plain["spec"]["containers"][0]["args"] = json!(["grep -E '^Sig(Blk|Ign)' /proc/self/status"]);
    let template = json!({ "metadata": { "labels": { "app": "trainer" } }, "spec": plain["spec"] });
    namespace.create_pod(plain).await?;
    namespace.exit_code("plain").await?;
    let expected = namespace.logs("plain").await?;
    ensure!(expected.lines().count() == 2, "{expected}");
    let spec = json!({ "target": { "podTemplate": template }, "durationSeconds": 20, "profiler": { "type": "Nsys" } });
    namespace.create_session("signals", spec).await?;
    let name = namespace.own_pod("signals").await?.name_any();
    namespace.exit_code(&name).await?;
    let found = namespace.logs(&name).await?;
    ensure!(found == expected, "{found}\nunprepared: {expected}");
    namespace.delete().await
}

#[tokio::test]
async fn the_end_of_a_program_ends_a_window_that_opened_while_it_ran() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("ends").await?;
    namespace.allow_pod_templates().await?;
    let spec = json!({
        "target": { "podTemplate": template(&["--seconds", "20"]) }, "durationSeconds": 120,
        "profiler": { "type": "Nsys" }
    });
    namespace.create_session("ends", spec).await?;
    let capture = succeeded(&namespace, "ends").await?;
    let name = &capture.spec.pod_ref.name;
    let code = namespace.exit_code(name).await?;
    ensure!(code == 0, "{code}");
    let summary = capture.status.and_then(|status| status.summary).context("no summary")?;
    ensure!(summary.window_nanoseconds < 25_000_000_000, "{summary:?}");
    namespace.delete().await
}

#[tokio::test]
async fn a_program_that_began_without_its_collection_fails_the_capture_and_ends_as_it_would() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("missed").await?;
    namespace.allow_pod_templates().await?;
    let mut pod = template(&["copy", "/no/such/folder", "/tmp"]);
    // A program that loads no libraries: nothing can be put into it, so it starts at once.
    pod["spec"]["containers"][0]["command"] = json!(["/flopwatch/tools/launcher"]);
    let spec = json!({ "target": { "podTemplate": pod }, "start": "ContainerStart", "profiler": { "type": "Nsys" } });
    namespace.create_session("missed", spec).await?;
    let (reason, message) = capture_failure(&namespace, "missed").await?;
    ensure!(
        reason == "StartMissed" && message.contains("began before its collection"),
        "{reason}: {message}"
    );
    let name = namespace.own_pod("missed").await?.name_any();
    let code = namespace.exit_code(&name).await?;
    ensure!(code == 1, "the program's own exit code, not {code}");
    namespace.delete().await
}

#[tokio::test]
async fn a_session_whose_pod_cannot_be_prepared_ends_before_anything_runs() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("unpreparable").await?;
    namespace.allow_pod_templates().await?;
    let mut pod = template(&[]);
    pod["spec"]["containers"][0]
        .as_object_mut()
        .context("no container")?
        .remove("command");
    let spec = json!({ "target": { "podTemplate": pod }, "start": "ContainerStart" });
    namespace.create_session("no-command", spec).await?;
    refused(
        &namespace,
        "no-command",
        "PodNotPrepared",
        "the container has no command",
    )
    .await?;

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
    let ended = namespace.finished(session).await?;
    let found = condition_of(&ended, "TargetsFound").context("no condition")?;
    ensure!(found.reason == reason && found.message.contains(sentence), "{found:?}");
    let pods = namespace.api::<Pod>().list(&ListParams::default()).await?;
    ensure!(pods.items.is_empty(), "a pod is there");
    ensure!(namespace.captures(session).await?.is_empty(), "a capture was made");
    Ok(())
}

#[tokio::test]
async fn a_user_who_may_not_create_pods_gets_none_through_a_session() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("escalation").await?;
    namespace.allow_pod_templates().await?;
    let user = cluster
        .client_with(&reader_token(&namespace, "profiler", "flopwatch-user").await?)
        .await?;
    let sessions: Api<ProfilingSession> = Api::namespaced(user, &namespace.name);
    let session = |name: &str, spec: Value| -> Result<ProfilingSession> {
        Ok(serde_json::from_value(json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession", "metadata": { "name": name }, "spec": spec
        }))?)
    };
    let own = json!({ "target": { "podTemplate": template(&["--seconds", "1"]) }, "start": "ContainerStart" });
    let refusal = sessions
        .create(&PostParams::default(), &session("own-pod", own.clone())?)
        .await
        .expect_err("a pod through a session")
        .to_string();
    ensure!(
        refusal.contains("may not create pods") && refusal.contains("profiler"),
        "{refusal}"
    );
    // What needs no pod is the user's right, and with the right to create pods so is the rest.
    let named = json!({ "target": { "podName": "somebody" }, "startDeadlineSeconds": 1 });
    sessions
        .create(&PostParams::default(), &session("named", named)?)
        .await?;
    reader_token(&namespace, "builder", "edit").await?;
    flopwatch_system_tests::cluster::run(
        "kubectl",
        &[
            "-n",
            &namespace.name,
            "create",
            "rolebinding",
            "builder-profiles",
            "--clusterrole=flopwatch-user",
            &format!("--serviceaccount={}:builder", namespace.name),
        ],
    )
    .await?;
    let builder = cluster.client_with(&token(&namespace.name, "builder").await?).await?;
    Api::<ProfilingSession>::namespaced(builder, &namespace.name)
        .create(&PostParams::default(), &session("own-pod", own)?)
        .await?;
    let capture = succeeded(&namespace, "own-pod").await?;
    ensure!(
        capture_condition(&capture, "Succeeded").is_some_and(|one| one.status == "True"),
        "{capture:?}"
    );
    namespace.delete().await
}

#[tokio::test]
async fn a_namespace_that_did_not_opt_in_gets_no_pod_and_says_which_role_to_bind() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("opt-in").await?;
    let spec = json!({ "target": { "podTemplate": template(&["--seconds", "1"]) }, "profiler": { "type": "Metrics" } });
    let refusal = match namespace.create_session("early", spec.clone()).await {
        Ok(_) => anyhow::bail!("the administrator's session was admitted"),
        Err(error) => format!("{error:#}"),
    };
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
