//! From an alert of a real Prometheus, by a real Alertmanager, to a session of the pod that it is
//! about.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::schedule::{ProfilingSchedule, SCHEDULE_LABEL, TRIGGER_ANNOTATION};
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::alertmanager::Alertmanager;
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace, eventually};
use flopwatch_system_tests::fetch::{ArtifactClient, gateway, reader_token, token};
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::prometheus::Prometheus;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, PostParams};
use serde_json::{Value, json};
use tokio::time::sleep;

const POD: &str = "trainer";
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
    /// A pod that runs, and a schedule whose slots never come while the test runs, with a trigger.
    pub(crate) async fn new(cluster: &Cluster, name: &str, profiler: &str) -> Result<Self> {
        let namespace = cluster.namespace(name).await?;
        namespace.create_pod(workload(POD, true, &[])).await?;
        namespace.launch_state(POD).await?;
        let schedule: ProfilingSchedule = serde_json::from_value(json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSchedule", "metadata": { "name": "on-alert" },
            "spec": {
                "when": { "cron": { "expression": "0 0 1 1 *" } }, "concurrencyPolicy": "Allow",
                "select": { "podSelector": { "matchLabels": { "app": POD } } },
                "session": { "profiler": { "type": profiler }, "durationSeconds": 1 },
                "triggers": [{ "alert": { "name": "Slow" }, "cooldownSeconds": 0, "maximumPerDay": 100 }]
            }
        }))?;
        namespace.api().create(&PostParams::default(), &schedule).await?;
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
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let setting = Setting::new(&cluster, "alert-duplicates", "Metrics").await?;
    let alert = json!({
        "status": "firing", "labels": setting.labels(0), "annotations": {}, "startsAt": "2026-01-01T00:00:00Z",
        "fingerprint": "0badcafe0badcafe"
    });
    let body = json!({ "version": "4", "alerts": vec![alert; DUPLICATES_EACH] }).to_string();
    let (client, token) = (&setting.client, Some(setting.token.as_str()));
    let arguments = ["--header", "Content-Type: application/json", "--data", &body];
    let mut made = 0;
    for _ in 0..REQUEST_COUNT {
        let answer = client.request(&setting.url, token, &arguments).await?;
        ensure!(answer.status == 200, "{answer:?}");
        let told: Value = serde_json::from_slice(&answer.body)?;
        made += told["made"].as_u64().context("no count")?;
    }
    ensure!((made, setting.sessions().await?.len()) == (1, 1), "{made} were made");
    let stranger = reader_token(&setting.namespace, "stranger", "flopwatch-viewer").await?;
    let refused = client.request(&setting.url, Some(&stranger), &arguments).await?;
    ensure!(refused.status == 403, "{refused:?}");
    setting.namespace.delete().await
}

#[tokio::test]
async fn whoever_holds_the_gateways_token_can_make_no_session_of_their_own() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let setting = Setting::new(&cluster, "alert-forged", "Metrics").await?;
    let gateway = cluster
        .client_with(&token(chart::NAMESPACE, "flopwatch-gateway").await?)
        .await?;
    let sessions: Api<ProfilingSession> = Api::namespaced(gateway, &setting.namespace.name);
    let schedule: ProfilingSchedule = setting.namespace.api().get("on-alert").await?;
    let owner = json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSchedule", "name": "on-alert", "uid": schedule.uid(),
        "controller": true
    });
    let labels = json!({ SCHEDULE_LABEL: "on-alert" });
    let annotations = json!({ TRIGGER_ANNOTATION: "Slow/0badcafe0badcafe" });
    let of_pod = json!({ "podName": POD });
    let own_pod = json!({ "podTemplate": { "spec": { "containers": [{ "name": "main", "image": "none" }] } } });
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let forged = [
        ("as an alert's", &annotations, &labels, json!([owner]), &of_pod, true),
        ("without an alert", &json!({}), &labels, json!([owner]), &of_pod, false),
        (
            "without a schedule",
            &annotations,
            &json!({}),
            json!([owner]),
            &of_pod,
            false,
        ),
        ("that nobody owns", &annotations, &labels, json!([]), &of_pod, false),
        (
            "of a pod of its own",
            &annotations,
            &labels,
            json!([owner]),
            &own_pod,
            false,
        ),
    ];
    for (how, annotations, labels, owners, target, is_taken) in forged {
        let session: ProfilingSession = serde_json::from_value(json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession",
            "metadata": { "name": "forged", "annotations": annotations, "labels": labels, "ownerReferences": owners },
            "spec": { "target": target, "durationSeconds": 1 }
        }))?;
        match sessions.create(&dry, &session).await {
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
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let setting = Setting::new(&cluster, "alert-rule", "Metrics").await?;
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
    eventually("the gateway to have counted it", || async {
        let series = prometheus.query("flopwatch_alerts_total{result=\"made\"}").await?;
        Ok((!series.is_empty()).then_some(()))
    })
    .await?;
    setting.namespace.delete().await
}
