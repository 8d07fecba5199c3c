//! What is refused, and how: a clear condition or API error, and no half-made objects.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace};
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::sessions::{capture_condition, condition_of};
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

/// Reason and message with which the only capture of a session failed.
pub(crate) async fn capture_failure(namespace: &TestNamespace, session: &str) -> Result<(String, String)> {
    let ended = namespace.finished(session).await?;
    let succeeded = condition_of(&ended, "Succeeded").context("no condition")?;
    ensure!(succeeded.status == "False", "{succeeded:?}");
    let capture = namespace.only_capture(session).await?;
    let condition = capture_condition(&capture, "Succeeded").context("no condition")?;
    ensure!(condition.status == "False", "{condition:?}");
    Ok((condition.reason.clone(), condition.message.clone()))
}

#[tokio::test]
async fn an_unprepared_pod_is_refused_for_nsys_and_told_what_to_do() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("unprepared").await?;
    namespace.create_pod(workload("plain", false, &[])).await?;
    namespace.running("plain").await?;
    namespace
        .create_session(
            "nsys",
            json!({ "target": { "podName": "plain", "containerNames": ["main"] }, "durationSeconds": 1, "profiler": { "type": "Nsys" } }),
        )
        .await?;
    let (reason, message) = capture_failure(&namespace, "nsys").await?;
    ensure!(reason == "NotPrepared", "{reason}: {message}");
    ensure!(message.contains("flopwatch.dev/prepare"), "no remedy in: {message}");
    namespace.delete().await
}

#[tokio::test]
async fn an_unprepared_pod_gives_metrics_under_auto_and_says_what_would_give_more() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("auto").await?;
    namespace.create_pod(workload("plain", false, &[])).await?;
    namespace.running("plain").await?;
    namespace
        .create_session(
            "auto",
            json!({ "target": { "podName": "plain", "containerNames": ["main"] }, "durationSeconds": 1 }),
        )
        .await?;
    let ended = namespace.finished("auto").await?;
    let capture = namespace.only_capture("auto").await?;
    let succeeded = condition_of(&ended, "Succeeded").context("no condition")?;
    ensure!(succeeded.status == "True", "{succeeded:?} {:?}", capture.status);
    let status = capture.status.context("no status")?;
    ensure!(
        status.profiler.is_some_and(|profiler| profiler.as_str() == "Metrics"),
        "{:?}",
        status.profiler
    );
    let nsys = status
        .capabilities
        .iter()
        .find(|one| one.profiler.as_str() == "Nsys")
        .context("no capability Nsys")?;
    ensure!(
        !nsys.available && nsys.remedy.contains("flopwatch.dev/prepare"),
        "{nsys:?}"
    );
    namespace.delete().await
}

#[tokio::test]
async fn a_category_that_was_not_prepared_names_the_annotation() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("category").await?;
    namespace.create_pod(workload("trainer", true, &[])).await?;
    namespace.launch_state("trainer").await?;
    namespace
        .create_session(
            "osrt",
            json!({
                "target": { "podName": "trainer" }, "durationSeconds": 1,
                "profiler": { "type": "Nsys", "nsys": { "trace": ["nvtx", "osrt"] } }
            }),
        )
        .await?;
    let (reason, message) = capture_failure(&namespace, "osrt").await?;
    ensure!(
        reason == "CategoryNotPrepared" && message.contains("flopwatch.dev/nsys-trace"),
        "{reason}: {message}"
    );
    namespace.delete().await
}

#[tokio::test]
async fn a_window_without_the_required_events_fails() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("empty").await?;
    namespace.create_pod(workload("trainer", true, &[])).await?;
    namespace.launch_state("trainer").await?;
    namespace
        .create_session(
            "cuda",
            json!({
                "target": { "podName": "trainer" }, "durationSeconds": 1, "require": ["cuda_kernel"], "profiler": { "type": "Nsys" }
            }),
        )
        .await?;
    let (reason, message) = capture_failure(&namespace, "cuda").await?;
    ensure!(
        reason == "RequiredEventsMissing" && message.contains("cuda"),
        "{reason}: {message}"
    );
    namespace.delete().await
}

#[tokio::test]
async fn a_container_that_does_not_exist_is_named_with_those_that_do() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("container").await?;
    namespace.create_pod(workload("plain", false, &[])).await?;
    namespace.running("plain").await?;
    namespace
        .create_session(
            "typo",
            json!({ "target": { "podName": "plain", "containerNames": ["mian"] }, "durationSeconds": 1 }),
        )
        .await?;
    let ended = namespace.finished("typo").await?;
    let text = serde_json::to_string(&ended.status)?;
    ensure!(text.contains("NoSuchContainer") && text.contains("main"), "{text}");
    ensure!(
        namespace.captures("typo").await?.is_empty(),
        "a capture was made all the same"
    );
    namespace.delete().await
}

#[tokio::test]
async fn a_pod_of_another_namespace_is_never_found() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let (mine, other) = (cluster.namespace("mine").await?, cluster.namespace("other").await?);
    other.create_pod(workload("theirs", false, &[])).await?;
    other.running("theirs").await?;
    mine.create_session(
        "reach",
        json!({ "target": { "podName": "theirs" }, "durationSeconds": 1, "startDeadlineSeconds": 2 }),
    )
    .await?;
    let ended = mine.finished("reach").await?;
    let targets = condition_of(&ended, "TargetsFound").context("no condition")?;
    ensure!(
        targets.status == "False" && targets.reason == "NoTargets",
        "{targets:?}"
    );
    ensure!(targets.message.contains("namespace"), "{targets:?}");
    ensure!(
        mine.captures("reach").await?.is_empty() && other.captures("reach").await?.is_empty(),
        "a capture was made"
    );
    mine.delete().await?;
    other.delete().await
}

#[tokio::test]
async fn a_second_session_on_a_container_is_refused_while_the_first_runs() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("busy").await?;
    namespace.create_pod(workload("trainer", true, &[])).await?;
    namespace.launch_state("trainer").await?;
    let spec = json!({ "target": { "podName": "trainer" }, "durationSeconds": 120, "profiler": { "type": "Nsys" } });
    namespace.create_session("one", spec.clone()).await?;
    namespace.attached("one").await?;
    namespace.create_session("two", spec).await?;
    let (reason, message) = capture_failure(&namespace, "two").await?;
    ensure!(reason == "ContainerBusy", "{reason}: {message}");
    namespace.stop("one", "Keep").await?;
    let first = namespace.finished("one").await?;
    ensure!(
        condition_of(&first, "Succeeded").is_some_and(|one| one.status == "True"),
        "the first session suffered: {first:?}"
    );
    namespace.delete().await
}

#[tokio::test]
async fn a_wrong_manifest_is_refused_with_what_to_write_instead() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("wrong").await?;
    let target = json!({ "podName": "any" });
    let cases: [(&str, Value, &str); 5] = [
        (
            "duration 0",
            json!({ "target": target, "durationSeconds": 0 }),
            "greater than or equal to 1",
        ),
        (
            "too long a name of a profiler",
            json!({ "target": target, "profiler": { "type": "Perf" } }),
            "supported values",
        ),
        (
            "a category that does not exist",
            json!({ "target": target, "require": ["gpu"] }),
            "supported values",
        ),
        ("no target", json!({ "target": {} }), "exactly one of podName"),
        (
            "an empty selector",
            json!({ "target": { "podSelector": {} } }),
            "would select every pod",
        ),
    ];
    for (name, spec, sentence) in cases {
        let refusal = create_untyped(&namespace, spec).await.expect_err(name).to_string();
        ensure!(refusal.contains(sentence), "{name}: {refusal}");
    }
    ensure!(
        namespace
            .api::<ProfilingSession>()
            .list(&ListParams::default())
            .await?
            .items
            .is_empty(),
        "a session was made"
    );
    namespace.delete().await
}

/// Sends what a user may write, which the types cannot hold.
async fn create_untyped(namespace: &TestNamespace, spec: Value) -> Result<String> {
    let file = tempfile::NamedTempFile::new()?;
    let manifest = json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession", "metadata": { "name": "wrong" }, "spec": spec
    });
    std::fs::write(file.path(), manifest.to_string())?;
    let path = file.path().to_str().context("path")?;
    flopwatch_system_tests::cluster::run("kubectl", &["-n", &namespace.name, "create", "-f", path]).await
}

#[tokio::test]
async fn a_session_cannot_be_changed_but_it_can_be_stopped() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("fixed").await?;
    namespace.create_pod(workload("trainer", true, &[])).await?;
    namespace.launch_state("trainer").await?;
    namespace
        .create_session(
            "fixed",
            json!({ "target": { "podName": "trainer" }, "durationSeconds": 120, "profiler": { "type": "Nsys" } }),
        )
        .await?;
    let sessions = namespace.api::<ProfilingSession>();
    let change = |body: Value| {
        let sessions = sessions.clone();
        async move {
            sessions
                .patch("fixed", &PatchParams::default(), &Patch::Merge(body))
                .await
        }
    };
    let refusal = change(json!({ "spec": { "durationSeconds": 60 } }))
        .await
        .expect_err("changed")
        .to_string();
    ensure!(refusal.contains("fixed once it is created"), "{refusal}");
    let refusal = change(json!({ "metadata": { "annotations": { "flopwatch.dev/requested-by": "somebody else" } } }))
        .await
        .map(|session| {
            session
                .metadata
                .annotations
                .unwrap_or_default()
                .get("flopwatch.dev/requested-by")
                .cloned()
        });
    ensure!(
        !matches!(refusal, Ok(Some(ref name)) if name == "somebody else"),
        "requested-by was forged"
    );
    namespace.attached("fixed").await?;
    change(json!({ "spec": { "stop": "Keep" } })).await?;
    let ended = namespace.finished("fixed").await?;
    let succeeded = condition_of(&ended, "Succeeded").context("no condition")?;
    ensure!(
        succeeded.status == "True",
        "a kept session holds what was recorded: {succeeded:?}"
    );
    namespace.delete().await
}
