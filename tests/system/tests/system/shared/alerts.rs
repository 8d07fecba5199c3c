//! From an alert of a real Prometheus, by a real Alertmanager, to a session of the pod that it is
//! about.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::schedule::{ProfilingSchedule, SCHEDULE_LABEL, TRIGGER_ANNOTATION};
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::alertmanager::Alertmanager;
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Group, TestNamespace, client_with, dry_run, eventually};
use flopwatch_system_tests::fetch::{Answer, ArtifactClient, gateway, reader_token, token};
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::prometheus::Prometheus;
use flopwatch_system_tests::sessions::session;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use tokio::time::sleep;

/// The pod that the schedule selects.
pub(crate) const POD: &str = "trainer";
/// Requests to the gateway, and alerts of each, that are all the same.
const REQUEST_COUNT: usize = 20;
const DUPLICATES_EACH: usize = 50;

/// What tells the gateway, and what it is told of.
pub(crate) struct Setting {
    pub(crate) namespace: TestNamespace,
    pub(crate) client: ArtifactClient,
    pub(crate) url: String,
    pub(crate) token: String,
}

impl Setting {
    /// A pod that runs, and what [`Self::over`] has.
    pub(crate) async fn begin(group: Group, name: &str, profiler: &str) -> Result<Option<Self>> {
        let Some(namespace) = TestNamespace::begin(group, name).await? else {
            return Ok(None);
        };
        namespace.launch(workload(POD, true, &[])).await?;
        Self::over(namespace, profiler).await.map(Some)
    }

    /// A schedule whose slots never come while the test runs, with a trigger, in the namespace of
    /// its pod.
    pub(crate) async fn over(namespace: TestNamespace, profiler: &str) -> Result<Self> {
        let spec = json!({
            "when": { "cron": { "expression": "0 0 1 1 *" } }, "concurrencyPolicy": "Allow",
            "select": { "podSelector": { "matchLabels": { "app": POD } } },
            "session": { "profiler": { "type": profiler }, "durationSeconds": 1 },
            "triggers": [{ "alert": { "name": "Slow" }, "cooldownSeconds": 0, "maximumPerDay": 100 }]
        });
        namespace.create_schedule("on-alert", spec).await?;
        let token = reader_token(&namespace, "alertmanager", "flopwatch-alerts").await?;
        let url = gateway(&namespace.client).await?;
        let root = url.strip_suffix("/api/profiling").context("another address")?;
        Ok(Self {
            client: ArtifactClient::of_gateway(&namespace.client).await?,
            url: format!("{root}/api/alerts"),
            namespace,
            token,
        })
    }

    pub(crate) fn labels(&self, number: usize) -> Value {
        json!({ "alertname": "Slow", "namespace": self.namespace.name, "pod": POD, "number": number.to_string() })
    }

    /// Tells the gateway `count` times at once of the same alert, which has the number 0.
    pub(crate) async fn tell(&self, token: &str, count: usize) -> Result<Answer> {
        let alert = json!({
            "status": "firing", "labels": self.labels(0), "annotations": {}, "startsAt": "2026-01-01T00:00:00Z",
            "fingerprint": "0badcafe0badcafe"
        });
        let body = json!({ "version": "4", "alerts": vec![alert; count] }).to_string();
        let arguments = ["--header", "Content-Type: application/json", "--data", &body];
        self.client.request(&self.url, Some(token), &arguments).await
    }

    pub(crate) async fn sessions(&self) -> Result<Vec<ProfilingSession>> {
        let of_schedule = ListParams::default().labels(&format!("{SCHEDULE_LABEL}=on-alert"));
        Ok(self.namespace.api().list(&of_schedule).await?.items)
    }

    /// Waits until there are so many sessions.
    pub(crate) async fn made(&self, count: usize) -> Result<Vec<ProfilingSession>> {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let sessions = self.sessions().await?;
            if sessions.len() >= count {
                return Ok(sessions);
            }
            ensure!(Instant::now() < deadline, "{} of {count} sessions", sessions.len());
            sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn a_thousand_duplicates_make_one_session() -> Result<()> {
    let Some(setting) = Setting::begin(Group::Shared, "alert-duplicates", "Metrics").await? else {
        return Ok(());
    };
    let mut made = 0;
    for _ in 0..REQUEST_COUNT {
        let answer = setting.tell(&setting.token, DUPLICATES_EACH).await?;
        ensure!(answer.status == 200, "{answer:?}");
        let told: Value = serde_json::from_slice(&answer.body)?;
        made += told["made"].as_u64().context("no count")?;
    }
    ensure!((made, setting.sessions().await?.len()) == (1, 1), "{made} were made");
    let stranger = reader_token(&setting.namespace, "stranger", "flopwatch-viewer").await?;
    let refused = setting.tell(&stranger, DUPLICATES_EACH).await?;
    ensure!(refused.status == 403, "{refused:?}");
    setting.namespace.delete().await
}

#[tokio::test]
async fn whoever_holds_the_gateways_token_can_make_no_session_of_their_own() -> Result<()> {
    let Some(setting) = Setting::begin(Group::Shared, "alert-forged", "Metrics").await? else {
        return Ok(());
    };
    let gateway = client_with(&token(chart::NAMESPACE, "flopwatch-gateway").await?).await?;
    let sessions: Api<ProfilingSession> = Api::namespaced(gateway, &setting.namespace.name);
    let schedule: ProfilingSchedule = setting.namespace.api().get("on-alert").await?;
    let owner = json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSchedule", "name": "on-alert", "uid": schedule.uid(),
        "controller": true
    });
    let labels = json!({ SCHEDULE_LABEL: "on-alert" });
    let annotations = json!({ TRIGGER_ANNOTATION: "Slow/0badcafe0badcafe" });
    let (none, of_pod) = (json!({}), json!({ "podName": POD }));
    let own_pod = json!({ "podTemplate": { "spec": { "containers": [{ "name": "main", "image": "none" }] } } });
    let (by_schedule, nobody) = (json!([owner]), json!([]));
    let forged = [
        ("as an alert's", &annotations, &labels, &by_schedule, &of_pod, true),
        ("without an alert", &none, &labels, &by_schedule, &of_pod, false),
        ("without a schedule", &annotations, &none, &by_schedule, &of_pod, false),
        ("that nobody owns", &annotations, &labels, &nobody, &of_pod, false),
        (
            "of a pod of its own",
            &annotations,
            &labels,
            &by_schedule,
            &own_pod,
            false,
        ),
    ];
    for (how, annotations, labels, owners, target, is_taken) in forged {
        let metadata =
            json!({ "name": "forged", "annotations": annotations, "labels": labels, "ownerReferences": owners });
        let session = session(&metadata, &json!({ "target": target, "durationSeconds": 1 }))?;
        match sessions.create(&dry_run(), &session).await {
            Ok(_) => ensure!(is_taken, "a session {how} was made"),
            Err(kube::Error::Api(status)) => {
                ensure!(!is_taken && status.code == 403, "{how}: {status:?}");
                ensure!(status.message.contains("alert"), "{how}: {}", status.message);
            }
            Err(error) => return Err(error.into()),
        }
    }
    setting.namespace.delete().await
}

#[tokio::test]
async fn a_rule_of_prometheus_leads_to_a_session() -> Result<()> {
    let Some(setting) = Setting::begin(Group::Shared, "alert-rule", "Metrics").await? else {
        return Ok(());
    };
    let alertmanager = Alertmanager::start(&setting.client, &setting.url, &setting.token).await?;
    let rules = json!({ "groups": [{
        "name": "test", "interval": "1s",
        "rules": [{
            "alert": "Slow", "expr": "vector(1)",
            "labels": { "namespace": setting.namespace.name, "pod": POD }
        }]
    }] });
    let prometheus = Prometheus::alerting(&setting.namespace.client, alertmanager.address(), &rules).await?;
    let sessions = setting.made(1).await;
    let sessions = sessions.with_context(|| alertmanager.log().unwrap_or_default())?;
    let name = sessions.first().context("no session")?.name_any();
    let told = alertmanager.told().await?;
    setting.namespace.finished(&name).await?;
    eventually("it to go on to fire, and to be told again and again", || async {
        Ok((alertmanager.told().await? >= told + 5).then_some(()))
    })
    .await?;
    ensure!(setting.sessions().await?.len() == 1);
    prometheus.eventually("flopwatch_alerts_total{result=\"made\"}").await?;
    setting.namespace.delete().await
}
