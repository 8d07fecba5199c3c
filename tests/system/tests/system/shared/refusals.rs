//! What is refused, and how: a clear condition or API error, and no half-made objects.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::REQUESTED_BY_ANNOTATION;
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::cluster::{Group, TestNamespace};
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::sessions::{spec, with};
use kube::ResourceExt as _;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

#[tokio::test]
async fn an_unprepared_pod_is_refused_for_nsys_and_told_what_to_do() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "unprepared").await? else {
        return Ok(());
    };
    namespace.run(workload("plain", false, &[])).await?;
    namespace.profile_main("nsys", "plain", 1, "Nsys").await?;
    namespace
        .fails_with("nsys", "NotPrepared", &["flopwatch.dev/prepare"])
        .await?;
    namespace.delete().await
}

#[tokio::test]
async fn an_unprepared_pod_gives_metrics_under_auto_and_says_what_would_give_more() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "auto").await? else {
        return Ok(());
    };
    namespace.run(workload("plain", false, &[])).await?;
    let target = json!({ "podName": "plain", "containerNames": ["main"] });
    let auto = json!({ "target": target, "durationSeconds": 1 });
    namespace.create_session("auto", auto).await?;
    let status = namespace.succeeded("auto").await?.status.context("no status")?;
    let profiler = status.profiler;
    ensure!(profiler.is_some_and(|one| one.as_str() == "Metrics"), "{profiler:?}");
    let mut capabilities = status.capabilities.iter();
    let nsys = capabilities.find(|one| one.profiler.as_str() == "Nsys");
    let nsys = nsys.context("no capability Nsys")?;
    ensure!(
        !nsys.available && nsys.remedy.contains("flopwatch.dev/prepare"),
        "{nsys:?}"
    );
    namespace.delete().await
}

#[tokio::test]
async fn a_category_that_was_not_prepared_names_the_annotation() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "category").await? else {
        return Ok(());
    };
    namespace.launch(workload("trainer", true, &[])).await?;
    let traced = json!({ "type": "Nsys", "nsys": { "trace": ["nvtx", "osrt"] } });
    let asked = with(spec("trainer", 1, "Nsys"), json!({ "profiler": traced }));
    namespace.create_session("osrt", asked).await?;
    namespace
        .fails_with("osrt", "CategoryNotPrepared", &["flopwatch.dev/nsys-trace"])
        .await?;
    namespace.delete().await
}

#[tokio::test]
async fn a_window_without_the_required_events_fails() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "empty").await? else {
        return Ok(());
    };
    namespace.launch(workload("trainer", true, &[])).await?;
    let asked = with(spec("trainer", 1, "Nsys"), json!({ "require": ["cuda_kernel"] }));
    namespace.create_session("cuda", asked).await?;
    namespace.fails_with("cuda", "RequiredEventsMissing", &["cuda"]).await?;
    namespace.delete().await
}

#[tokio::test]
async fn a_container_that_does_not_exist_is_named_with_those_that_do() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "container").await? else {
        return Ok(());
    };
    namespace.run(workload("plain", false, &[])).await?;
    let target = json!({ "podName": "plain", "containerNames": ["mian"] });
    let typo = json!({ "target": target, "durationSeconds": 1 });
    namespace.create_session("typo", typo).await?;
    let ended = namespace.finished("typo").await?;
    let text = serde_json::to_string(&ended.status)?;
    ensure!(text.contains("NoSuchContainer") && text.contains("main"), "{text}");
    let captures = namespace.captures("typo").await?;
    ensure!(captures.is_empty(), "a capture was made all the same");
    namespace.delete().await
}

#[tokio::test]
async fn a_pod_of_another_namespace_is_never_found() -> Result<()> {
    let Some(mine) = TestNamespace::begin(Group::Shared, "mine").await? else {
        return Ok(());
    };
    let other = mine.cluster.namespace("other").await?;
    other.run(workload("theirs", false, &[])).await?;
    let reach = json!({ "target": { "podName": "theirs" }, "durationSeconds": 1, "startDeadlineSeconds": 2 });
    mine.create_session("reach", reach).await?;
    let targets = mine.ends_without_targets("reach", "NoTargets", "namespace").await?;
    ensure!(targets.status == "False", "{targets:?}");
    ensure!(
        mine.captures("reach").await?.is_empty() && other.captures("reach").await?.is_empty(),
        "a capture was made"
    );
    mine.delete().await?;
    other.delete().await
}

#[tokio::test]
async fn a_second_session_on_a_container_is_refused_while_the_first_runs() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "busy").await? else {
        return Ok(());
    };
    namespace.launch(workload("trainer", true, &[])).await?;
    let spec = spec("trainer", 120, "Nsys");
    namespace.create_session("one", spec.clone()).await?;
    namespace.attached("one").await?;
    namespace.create_session("two", spec).await?;
    namespace.fails_with("two", "ContainerBusy", &[]).await?;
    namespace.stop("one", "Keep").await?;
    let first = namespace.succeeded("one").await;
    first.context("the first session suffered")?;
    namespace.delete().await
}

#[tokio::test]
async fn a_wrong_manifest_is_refused_with_what_to_write_instead() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "wrong").await? else {
        return Ok(());
    };
    let target = json!({ "podName": "any" });
    let zero = json!({ "durationSeconds": 0 });
    let perf = json!({ "profiler": { "type": "Perf" } });
    let gpu = json!({ "require": ["gpu"] });
    let all = json!({ "target": { "podSelector": {} } });
    let cases = [
        ("duration 0", zero, "greater than or equal to 1"),
        ("too long a name of a profiler", perf, "supported values"),
        ("a category that does not exist", gpu, "supported values"),
        ("no target", json!({ "target": {} }), "exactly one of podName"),
        ("an empty selector", all, "would select every pod"),
    ];
    for (name, members, sentence) in cases {
        let manifest = json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession", "metadata": { "name": "wrong" },
            "spec": with(json!({ "target": target }), members)
        });
        let refusal = namespace.create_untyped(&manifest).await.expect_err(name).to_string();
        ensure!(refusal.contains(sentence), "{name}: {refusal}");
    }
    let sessions = namespace.api::<ProfilingSession>();
    let made = sessions.list(&ListParams::default()).await?.items;
    ensure!(made.is_empty(), "a session was made");
    namespace.delete().await
}

#[tokio::test]
async fn a_session_cannot_be_changed_but_it_can_be_stopped() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "fixed").await? else {
        return Ok(());
    };
    namespace.launch(workload("trainer", true, &[])).await?;
    namespace.profile("fixed", "trainer", 120, "Nsys").await?;
    let sessions = namespace.api::<ProfilingSession>();
    let parameters = PatchParams::default();
    let change = async |body: Value| sessions.patch("fixed", &parameters, &Patch::Merge(body)).await;
    let refusal = change(json!({ "spec": { "durationSeconds": 60 } })).await;
    let refusal = refusal.expect_err("changed").to_string();
    ensure!(refusal.contains("fixed once it is created"), "{refusal}");
    let forged = json!({ "metadata": { "annotations": { REQUESTED_BY_ANNOTATION: "somebody else" } } });
    if let Ok(changed) = change(forged).await {
        let by = changed.annotations().get(REQUESTED_BY_ANNOTATION);
        ensure!(by.is_none_or(|by| by != "somebody else"), "requested-by was forged");
    }
    namespace.attached("fixed").await?;
    change(json!({ "spec": { "stop": "Keep" } })).await?;
    let kept = namespace.succeeded("fixed").await;
    kept.context("a kept session holds what was recorded")?;
    namespace.delete().await
}
