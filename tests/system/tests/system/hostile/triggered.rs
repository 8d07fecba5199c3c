//! The gateway's own token in other hands: sessions that look like those of alerts.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::schedule::TARGET_UID_ANNOTATION;
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Group, TestNamespace, client_with, eventually};
use flopwatch_system_tests::fetch::token;
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::sessions::condition_of;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::Value;

use crate::shared::alerts::{POD, Setting};

/// A pod that the schedule does not select.
const BYSTANDER: &str = "bystander";

/// The session that the gateway makes when an alert fires for the pod that the schedule selects.
async fn of_alert(setting: &Setting) -> Result<ProfilingSession> {
    // The gateway's watch may not have seen the schedule yet.
    let name = eventually("the alert to make a session", || async {
        let answer = setting.tell(&setting.token, 1).await?;
        let told: Value = serde_json::from_slice(&answer.body)?;
        Ok(told["alerts"][0]["session"].as_str().map(str::to_owned))
    })
    .await?;
    setting.namespace.finished(&name).await
}

#[tokio::test]
async fn a_session_made_with_the_gateways_token_for_a_pod_that_the_schedule_does_not_select_is_refused() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Hostile, "forged-alert").await? else {
        return Ok(());
    };
    for name in [POD, BYSTANDER] {
        let pod = namespace.on_kept_node(workload(name, true, &[])).await?;
        namespace.launch(pod).await?;
    }
    let setting = Setting::over(namespace, "Metrics").await?;
    let made = of_alert(&setting).await?;
    let namespace = setting.namespace;
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
    let thief = client_with(&token(chart::NAMESPACE, "flopwatch-gateway").await?).await?;
    let stolen: Api<ProfilingSession> = Api::namespaced(thief, &namespace.name);
    stolen.create(&PostParams::default(), &forged).await?;
    namespace
        .ends_without_targets(&name, "Refused", "does not select pod bystander")
        .await?;
    let captures = namespace.captures(&name).await?;
    let profiled = captures.iter().any(|capture| capture.spec.pod_ref.name == BYSTANDER);
    ensure!(!profiled, "{captures:?}");
    namespace.delete().await
}
