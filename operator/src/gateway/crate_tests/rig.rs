//! What the tests share: a cluster, an agent, and the gateway on loopback.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use flopwatch_artifacts::object_store::Bucket;
use flopwatch_artifacts::{ConversionLimits, Converter};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::super::*;
pub(super) use super::agent::{AGENT_NAME, Agent, AgentSetup, NODE, OTHER_NODE};
pub(super) use super::client::{Answer, Ears, column};
use super::cluster::{AGENTS, Cluster, identity, succeeded};
use super::derived::Sizes;
use crate::serve::server_config;

/// Places for those who listen.
pub(super) const LISTENERS: usize = 2;
/// Places for connections of Socket.IO without a token, of the tests' one address.
pub(super) const VISITORS: usize = 16;

/// Content of the timeline: larger than any buffer on its way.
pub(super) fn timeline_content() -> Vec<u8> {
    (0_u32..1 << 19)
        .flat_map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect()
}

/// A gateway with an agent and an API server, all running.
pub(super) struct Rig {
    pub(super) address: SocketAddr,
    pub(super) cluster: Cluster,
    pub(super) agent: Agent,
    /// Of another node, where there is an object store.
    pub(super) other: Option<Agent>,
    /// Where the API server is.
    pub(super) api_server: SocketAddr,
    pub(super) metrics: Metrics,
    router: Router,
    pub(super) document: Value,
}

impl Rig {
    /// A rig with the session `team/train` (0badcafe) and its capture.
    pub(super) async fn new() -> Self {
        Self::with(&timeline_content(), None).await
    }

    /// A rig whose capture has this timeline; `perfetto` is the time that its form for Perfetto
    /// takes, if it comes to an end.
    pub(super) async fn with(timeline: &[u8], perfetto: Option<Duration>) -> Self {
        let limits = ConversionLimits {
            patience: Duration::from_millis(500),
            waiting: 0,
            ..ConversionLimits::default()
        };
        Self::converting(timeline, |folder| Arc::new(Sizes { folder, perfetto }), limits).await
    }

    /// A rig with an object store that gateway and agents know, and the agent of a second node.
    pub(super) async fn with_store(bucket: Bucket) -> Self {
        let sizes = |folder| -> Arc<dyn Converter> { Arc::new(Sizes { folder, perfetto: None }) };
        Self::build(
            &timeline_content(),
            sizes,
            ConversionLimits::default(),
            Some(bucket),
            true,
        )
        .await
    }

    /// A rig whose capture has this timeline, which its agent converts with what `converter` makes
    /// for its folder.
    pub(super) async fn converting(
        timeline: &[u8],
        converter: impl Fn(PathBuf) -> Arc<dyn Converter>,
        limits: ConversionLimits,
    ) -> Self {
        Self::build(timeline, converter, limits, None, false).await
    }

    /// A rig of two nodes, each with an agent, and no object store.
    pub(super) async fn on_two_nodes(timeline: &[u8], converter: impl Fn(PathBuf) -> Arc<dyn Converter>) -> Self {
        Self::build(timeline, converter, ConversionLimits::default(), None, true).await
    }

    async fn build(
        timeline: &[u8],
        converter: impl Fn(PathBuf) -> Arc<dyn Converter>,
        limits: ConversionLimits,
        bucket: Option<Bucket>,
        two_nodes: bool,
    ) -> Self {
        let sessions = Sessions::new(Metrics::new().unwrap().gateway_notices);
        let cluster = Cluster::new(sessions.clone());
        let api_server = cluster.server.listen().await;
        let setup = AgentSetup {
            client: cluster.server.client("flopwatch"),
            converter: &converter,
            limits,
            bucket: bucket.clone(),
        };
        let agent = Agent::publishing(timeline, setup.clone()).await;
        let other = if two_nodes {
            Some(agent.another(setup).await)
        } else {
            None
        };
        match &other {
            Some(other) => cluster.add_agent(OTHER_NODE, other.address),
            None => cluster.add_agent(NODE, agent.address),
        }
        let authority = agent.folder.path().join("ca.crt");
        let metrics = Metrics::new().unwrap();
        let gateway = gateway(&cluster, sessions, api_server, authority, bucket, &metrics);
        let origins = [HeaderValue::from_static("https://grafana.example")];
        let router = guarded(gateway, &origins, &Metrics::new().unwrap()).unwrap();
        let address = listen(router.clone()).await;
        let rig = Self {
            address,
            api_server,
            metrics,
            router,
            cluster,
            agent,
            other,
            document: serde_json::from_str(&openapi().unwrap()).unwrap(),
        };
        rig.session("team", "train", "0badcafe", 0, "True");
        rig.capture("train-a", &rig.agent_url(), &artifacts());
        rig
    }

    /// Starts a second gateway, whose watches of sessions tell nothing.
    pub(super) async fn another_gateway(&self) -> SocketAddr {
        let metrics = Metrics::new().unwrap();
        let sessions = Sessions::new(metrics.gateway_notices.clone());
        let authority = self.agent.folder.path().join("ca.crt");
        let gateway = gateway(&self.cluster, sessions, self.api_server, authority, None, &metrics);
        listen(guarded(gateway, &[], &metrics).unwrap()).await
    }

    /// Adds a session of mode nsys whose condition Succeeded is `succeeded`, made `minute` minutes
    /// after another.
    pub(super) fn session(&self, namespace: &str, name: &str, id: &str, minute: i32, succeeded: &str) {
        self.cluster.put_session(json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession",
            "metadata": {
                "namespace": namespace, "name": name, "uid": format!("uid-{id}"),
                "creationTimestamp": format!("2026-01-01T{:02}:{:02}:00Z", minute / 60, minute % 60),
                "annotations": {"request.flopwatch.dev/solver": "cg", "flopwatch.dev/requested-by": "alice"}
            },
            "spec": {"target": {"podName": "train"}, "profiler": {"type": "Nsys"}},
            "status": {"id": id, "conditions": [self::succeeded(succeeded)]}
        }));
    }

    /// Serves the gateway over TLS too, as it is in a cluster, with a certificate that no browser
    /// knows.
    pub(super) async fn over_tls(&self) -> SocketAddr {
        let refused = Metrics::new().unwrap().refused_connections;
        self.over_tls_within(Limit::new(64, Duration::from_secs(30), refused))
            .await
    }

    /// Serves the gateway over TLS, to no more connections than `limit` allows.
    pub(super) async fn over_tls_within(&self, limit: Limit) -> SocketAddr {
        let file = |name: &str| ByteString(std::fs::read(self.agent.folder.path().join(name)).unwrap());
        let secret = Secret {
            data: Some(["tls.crt", "tls.key"].map(|name| (name.to_owned(), file(name))).into()),
            ..Secret::default()
        };
        let (config, _) = server_config(&secret).unwrap();
        // The port is free now, and is taken again at once.
        let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let (certificate, current) = watch::channel(Some(Arc::new(config)));
        let (router, readiness) = (self.router.clone(), Readiness::default());
        let (ready, stop) = (readiness.clone(), self.agent.stop.clone());
        tokio::spawn(async move {
            serve(address, router, current, limit, readiness, stop).await.unwrap();
            drop(certificate);
        });
        while !ready.get() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        address
    }

    /// What controller and agent do with the first session that is made: a capture comes, works,
    /// and publishes.
    pub(super) async fn carry_out_the_first(&self) {
        let made = async {
            loop {
                let mut sessions = self.cluster.server.all("profilingsessions").into_iter();
                if let Some(session) = sessions.find(|session| session["status"]["id"] == "00000000") {
                    return session;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let mut session = tokio::time::timeout(Duration::from_secs(30), made).await.unwrap();
        for condition in ["Capturing", "Succeeded"] {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let mut stands = succeeded("True");
            stands["type"] = json!(condition);
            session["status"]["conditions"] = json!([stands]);
            if condition == "Succeeded" {
                let name = session["metadata"]["name"].as_str().unwrap();
                self.capture_of(name, "00000000", "train-a", &finished(&self.agent_url(), &artifacts()));
            }
            self.cluster.put_session(session.clone());
        }
    }

    pub(super) fn agent_url(&self) -> String {
        format!("https://{}/v1/anything", self.agent.address)
    }

    /// Where the second node's agent is.
    pub(super) fn other_url(&self) -> String {
        format!("https://{}/v1/anything", self.other.as_ref().unwrap().address)
    }

    /// Has the second node's agent publish a capture of a session in `team`, and says so in its
    /// status, which is given back.
    pub(super) async fn publish_on_the_other(&self, name: &str, session: &str, id: &str, timeline: &[u8]) -> Value {
        let other = self.other.as_ref().unwrap();
        let manifest = other.publish(timeline, name, (session, id)).await;
        let status = finished(&self.other_url(), &serde_json::to_value(manifest.artifacts).unwrap());
        self.capture_on(OTHER_NODE, session, id, name, &status);
        status
    }

    /// Timelines of other nodes that the agents took.
    pub(super) fn inputs_taken(&self) -> u64 {
        let agents = std::iter::once(&self.agent).chain(&self.other);
        agents.map(Agent::inputs_taken).sum()
    }

    /// Adds a finished capture of the session `team/train` whose artifacts are at `url`.
    pub(super) fn capture(&self, name: &str, url: &str, artifacts: &Value) {
        self.capture_of("train", "0badcafe", name, &finished(url, artifacts));
    }

    /// Says of the capture `train-a` what its agent published, at `url` and in the object store at
    /// `store_url`.
    pub(super) fn copied(&self, url: Option<&str>, store_url: Option<&str>) {
        let artifacts = serde_json::to_value(&self.agent.manifest.artifacts).unwrap();
        let mut status = finished("", &artifacts);
        (status["url"], status["storeUrl"]) = (json!(url), json!(store_url));
        status["storeSha256"] = json!(store_url.map(|_| self.agent.stored()));
        self.capture_of("train", "0badcafe", "train-a", &status);
    }

    /// Adds a capture of a session in `team`, or changes it.
    pub(super) fn capture_of(&self, session: &str, id: &str, name: &str, status: &Value) {
        self.capture_on(NODE, session, id, name, status);
    }

    /// Adds a capture of a session in `team` on that node, or changes it.
    pub(super) fn capture_on(&self, node: &str, session: &str, id: &str, name: &str, status: &Value) {
        self.cluster.put_capture(&json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "Capture",
            "metadata": {
                "namespace": "team", "name": name, "uid": format!("uid-of-{name}"),
                "labels": {"flopwatch.dev/session": session, "flopwatch.dev/session-id": id}
            },
            "spec": {
                "sessionRef": {"name": session, "id": id}, "nodeName": node, "podRef": {"name": "train", "uid": "pod"},
                "containerName": "main", "profiler": {"type": "Nsys"}, "durationSeconds": 10, "startDeadlineSeconds": 60,
                "outputs": ["Timeline", "Summary"]
            },
            "status": status
        }));
    }
}

/// A gateway before that cluster.
fn gateway(
    cluster: &Cluster,
    sessions: Sessions,
    api_server: SocketAddr,
    authority: PathBuf,
    bucket: Option<Bucket>,
    metrics: &Metrics,
) -> Gateway {
    let client = cluster.client_of_gateway();
    let config = Config::new(format!("http://{api_server}").parse().unwrap());
    Gateway::from(GatewayParts {
        sessions,
        reviewer: Reviewer::new(
            client.clone(),
            ReviewerOptions::default(),
            metrics.gateway_access_reviews.clone(),
        ),
        api_server: ApiServer::new(config),
        agents: Agents::new(
            client.clone(),
            AgentOptions {
                server_name: AGENT_NAME.to_owned(),
                authority,
                identity: identity(),
                transfers: 8,
                service: AGENTS.to_owned(),
            },
        ),
        store: bucket.map(|bucket| ObjectStore::new(bucket, Metrics::new().unwrap().store.reads)),
        cookies: Cookies::new().unwrap(),
        listeners: Slots::new(LISTENERS, LISTENERS),
        unauthenticated: Slots::new(VISITORS, VISITORS),
        alerts: AlertDecider::new(client, cluster.schedules.clone(), metrics.alerts.clone()),
        // Sessions have their ids before they are answered, or never get one.
        id_timeout: Duration::from_millis(200),
        run_namespace: Some("team".to_owned()),
    })
}

/// Serves it on loopback.
async fn listen(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let plain = router.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, plain).await.unwrap() });
    address
}

/// The status of a capture that succeeded and whose artifacts are at `url`.
pub(super) fn finished(url: &str, artifacts: &Value) -> Value {
    json!({
        "url": url, "artifacts": artifacts, "progress": {"stage": "Done", "percent": 100, "message": ""},
        "conditions": [succeeded("True")]
    })
}

/// As the status of the agent's capture has them; digests are the agent's to know.
pub(super) fn artifacts() -> Value {
    let artifact = |name: &str, output: &str, sensitive: bool| {
        json!({
            "name": name, "type": output, "bytes": 2, "sha256": "0".repeat(64), "mediaType": "application/octet-stream",
            "sensitive": sensitive
        })
    };
    json!([
        artifact("timeline.h5", "Timeline", false),
        artifact("summary.json", "Summary", false),
        artifact("capture.nsys-rep", "Raw", true)
    ])
}
