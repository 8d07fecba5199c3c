//! The gateway's own token in other hands: sessions that look like those of alerts.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::schedule::{ProfilingSchedule, TARGET_UID_ANNOTATION};
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace, eventually};
use flopwatch_system_tests::fetch::{ArtifactClient, gateway, reader_token, token};
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::sessions::condition_of;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};

/// The pod that the schedule selects, and one that it does not.
const SELECTED: &str = "trainer";
const BYSTANDER: &str = "bystander";

/// The session that the gateway makes when an alert fires for the pod that the schedule selects.
async fn of_alert(namespace: &TestNamespace) -> Result<ProfilingSession> {
    let schedule: ProfilingSchedule = serde_json::from_value(json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSchedule", "metadata": { "name": "on-alert" },
        "spec": {
            "when": { "cron": { "expression": "0 0 1 1 *" } },
            "select": { "podSelector": { "matchLabels": { "app": SELECTED } } },
            "session": { "profiler": { "type": "Metrics" }, "durationSeconds": 1 },
            "triggers": [{ "alert": { "name": "Slow" } }]
        }
    }))?;
    namespace.api().create(&PostParams::default(), &schedule).await?;
    let told_by = reader_token(namespace, "alertmanager", "flopwatch-alerts").await?;
    let client = ArtifactClient::of_gateway(&namespace.client).await?;
    let url = gateway(&namespace.client).await?;
    let root = url.strip_suffix("/api/profiling").context("another address")?;
    let url = format!("{root}/api/alerts");
    let labels = json!({ "alertname": "Slow", "namespace": namespace.name, "pod": SELECTED });
    let alert = json!({
        "status": "firing", "labels": labels, "annotations": {}, "startsAt": "2026-01-01T00:00:00Z",
        "fingerprint": "0badcafe0badcafe"
    });
    let body = json!({ "version": "4", "alerts": [alert] }).to_string();
    let arguments = ["--header", "Content-Type: application/json", "--data", &body];
    // The gateway's watch may not have seen the schedule yet.
    let name = eventually("the alert to make a session", || async {
        let answer = client.request(&url, Some(&told_by), &arguments).await?;
        let told: Value = serde_json::from_slice(&answer.body)?;
        Ok(told["alerts"][0]["session"].as_str().map(str::to_owned))
    })
    .await?;
    namespace.finished(&name).await
}

#[tokio::test]
async fn a_session_made_with_the_gateways_token_for_a_pod_that_the_schedule_does_not_select_is_refused() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Hostile).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("forged-alert").await?;
    for name in [SELECTED, BYSTANDER] {
        let pod = namespace.on_kept_node(workload(name, true, &[])).await?;
        namespace.create_pod(pod).await?;
        namespace.launch_state(name).await?;
    }
    let made = of_alert(&namespace).await?;
    let found = condition_of(&made, "TargetsFound").context("no condition")?;
    ensure!(found.status == "True", "the alert's own session is refused: {found:?}");

    // The same again, of the same name, and of another pod.
    let name = made.name_any();
    let sessions = namespace.api::<ProfilingSession>();
    sessions.delete(&name, &DeleteParams::default()).await?;
    eventually("the alert's session to be gone", || async {
        Ok(sessions.get_opt(&name).await?.is_none().then_some(()))
    })
    .await?;
    let bystander = namespace.running(BYSTANDER).await?;
    let mut forged = made;
    forged.status = None;
    forged.spec.target.pod_name = Some(BYSTANDER.to_owned());
    forged.metadata = ObjectMeta {
        name: forged.metadata.name,
        labels: forged.metadata.labels,
        annotations: forged.metadata.annotations,
        owner_references: forged.metadata.owner_references,
        ..ObjectMeta::default()
    };
    let uid = bystander.uid().context("no UID")?;
    forged.annotations_mut().insert(TARGET_UID_ANNOTATION.to_owned(), uid);
    let thief = cluster
        .client_with(&token(chart::NAMESPACE, "flopwatch-gateway").await?)
        .await?;
    let stolen: Api<ProfilingSession> = Api::namespaced(thief, &namespace.name);
    stolen.create(&PostParams::default(), &forged).await?;
    let ended = namespace.finished(&name).await?;
    let found = condition_of(&ended, "TargetsFound").context("no condition")?;
    ensure!(
        found.reason == "Refused" && found.message.contains("does not select pod bystander"),
        "{found:?}"
    );
    let captures = namespace.captures(&name).await?;
    let profiled = captures.iter().any(|capture| capture.spec.pod_ref.name == BYSTANDER);
    ensure!(!profiled, "{captures:?}");
    namespace.delete().await
}
