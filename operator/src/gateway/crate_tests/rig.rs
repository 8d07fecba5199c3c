//! What the tests share: an API server, an agent's artifact service over TLS, the gateway on loopback, and a client of bare sockets that holds every answer against the document.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use flopwatch_api::artifact::Output;
use flopwatch_api::capture::SessionReference;
use flopwatch_api::{agent_audience, agent_server_name};
use flopwatch_artifacts::{
    Access, ArtifactMetrics, ArtifactService, CaptureId, ConversionLimits, Converter, Manifest, Publication, Server,
    ServerLimits, SourceFile, Store, StoreOptions,
};
use flopwatch_bucket::Bucket;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::watcher::Event;
use prometheus::Registry;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::super::*;
use super::api_server::{self, ApiState, World};
pub(super) use super::client::{Answer, Ears};
use super::forms::Sizes;
use crate::certificates::{Material, Names, carry_out, decide};
use crate::serve::server_config;

/// Name in the agents' certificates.
pub(super) const AGENT_NAME: &str = "flopwatch-agent.flopwatch.svc";

/// Node of the capture `train-a` and its agent.
pub(super) const NODE: &str = "node";
/// The other node, where there is one.
pub(super) const OTHER_NODE: &str = "other-node";
/// Places for those who listen.
pub(super) const LISTENERS: usize = 2;
/// Places for connections of Socket.IO without a token, of the tests' one address.
pub(super) const VISITORS: usize = 16;

/// An artifact service as an agent runs it, with the capture `train-a` of the session `team/train`.
pub(super) struct Agent {
    pub(super) address: SocketAddr,
    pub(super) folder: TempDir,
    pub(super) store: Arc<Store>,
    /// What it published.
    pub(super) manifest: Manifest,
    stop: CancellationToken,
}

impl Agent {
    /// Closes its port, as if its node were gone.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Copies what it published to the object store.
    pub(super) async fn copy_to(&self, bucket: &Bucket) {
        self.store.copy_to(bucket, &self.manifest).await.unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Content of the timeline: larger than any buffer on its way.
pub(super) fn timeline_content() -> Vec<u8> {
    (0_u32..1 << 19)
        .flat_map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect()
}

fn write_leaf(folder: &std::path::Path) {
    let names = Names {
        // The gateway is served over TLS with it, too.
        controller: vec![
            AGENT_NAME.to_owned(),
            agent_server_name(NODE, AGENT_NAME),
            agent_server_name(OTHER_NODE, AGENT_NAME),
            "localhost".to_owned(),
        ],
        ..Names::default()
    };
    let now = Timestamp::now();
    let decision = decide(&Material::default(), &names, now);
    let made = carry_out(&decision, &Material::default(), &names, now).unwrap();
    let leaf = made.controller.unwrap();
    for (file, text) in [
        ("tls.crt", &leaf.certificate),
        ("tls.key", &leaf.key),
        ("ca.crt", &leaf.bundle),
    ] {
        std::fs::write(folder.join(file), text).unwrap();
    }
}

/// One that published the capture; or, where there is a `first`, one of another node with the certificate of that.
async fn agent(
    client: Client,
    timeline: &[u8],
    converter: impl FnOnce(PathBuf) -> Arc<dyn Converter>,
    limits: ConversionLimits,
    bucket: Option<Bucket>,
    first: Option<&Agent>,
) -> Agent {
    let folder = tempfile::tempdir().unwrap();
    match first {
        None => write_leaf(folder.path()),
        Some(first) => {
            for file in ["tls.crt", "tls.key", "ca.crt"] {
                std::fs::copy(first.folder.path().join(file), folder.path().join(file)).unwrap();
            }
        }
    }
    let metrics = ArtifactMetrics::register(&Registry::new()).unwrap();
    let options = StoreOptions {
        free_bytes_floor: 0,
        ..StoreOptions::default()
    };
    let store = Store::open(&folder.path().join("store"), options, metrics.clone())
        .await
        .unwrap();
    let file = |name: &str, output: Output, media_type: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        SourceFile {
            name: name.into(),
            output,
            media_type: media_type.into(),
            content: Arc::new(std::fs::File::open(path).unwrap()),
        }
    };
    let files = [
        file("timeline.h5", Output::Timeline, "application/x-hdf5", timeline),
        file("summary.json", Output::Summary, "application/json", b"{}"),
        file("capture.nsys-rep", Output::Raw, "application/octet-stream", b"secret"),
    ];
    let publication = Publication {
        capture: CaptureId {
            namespace: "team".into(),
            name: "train-a".into(),
            uid: "uid-of-train-a".into(),
        },
        session: SessionReference {
            name: "train".into(),
            id: "0badcafe".into(),
        },
        created: Timestamp::UNIX_EPOCH,
    };
    let manifest = match first {
        None => store.publish(publication, &files).await.unwrap(),
        Some(first) => first.manifest.clone(),
    };
    let store = Arc::new(store);
    let reviews = ReviewerOptions {
        service_audience: Some(agent_audience(first.map_or(NODE, |_first| OTHER_NODE))),
        ..ReviewerOptions::default()
    };
    let access = Access::Kubernetes(Reviewer::new(client, reviews, metrics.reviews()));
    let converter = converter(folder.path().join("conversion"));
    let service = ArtifactService::converting(Arc::clone(&store), access, metrics, converter, limits, bucket);
    let any = ([127, 0, 0, 1], 0).into();
    let server = Server::bind_tls(&service, any, folder.path(), ServerLimits::default())
        .await
        .unwrap();
    let stop = CancellationToken::new();
    let address = server.local_addr();
    tokio::spawn(server.run(stop.clone()));
    Agent {
        address,
        folder,
        store,
        manifest,
        stop,
    }
}

/// Everything, running.
pub(super) struct Rig {
    pub(super) address: SocketAddr,
    pub(super) world: Arc<Mutex<World>>,
    pub(super) agent: Agent,
    /// Of another node, where there is an object store.
    pub(super) other: Option<Agent>,
    /// Where the API server is.
    pub(super) api_server: SocketAddr,
    router: Router,
    pub(super) sessions: Sessions,
    document: Value,
}

impl Rig {
    /// With the session `team/train` (0badcafe) and its capture.
    pub(super) async fn new() -> Self {
        Self::with(&timeline_content(), None).await
    }

    /// Likewise, with this content of the capture's timeline, and the time that its form for Perfetto takes, if it comes to an end.
    pub(super) async fn with(timeline: &[u8], perfetto: Option<Duration>) -> Self {
        let limits = ConversionLimits {
            patience: Duration::from_millis(500),
            waiting: 0,
            ..ConversionLimits::default()
        };
        Self::converting(timeline, |folder| Arc::new(Sizes { folder, perfetto }), limits).await
    }

    /// Likewise, with an object store that gateway and agents know, and the agent of a second node.
    pub(super) async fn with_store(bucket: Bucket) -> Self {
        let sizes = |folder| -> Arc<dyn Converter> { Arc::new(Sizes { folder, perfetto: None }) };
        Self::build(&timeline_content(), sizes, ConversionLimits::default(), Some(bucket)).await
    }

    /// Likewise, with what makes forms in a folder that it is given.
    pub(super) async fn converting(
        timeline: &[u8],
        converter: impl Fn(PathBuf) -> Arc<dyn Converter>,
        limits: ConversionLimits,
    ) -> Self {
        Self::build(timeline, converter, limits, None).await
    }

    async fn build(
        timeline: &[u8],
        converter: impl Fn(PathBuf) -> Arc<dyn Converter>,
        limits: ConversionLimits,
        bucket: Option<Bucket>,
    ) -> Self {
        let metrics = Metrics::new().unwrap();
        let sessions = Sessions::new(metrics.gateway_notices.clone());
        let rights = [
            "admin get profilingsessions *",
            "admin get profilingsessions/raw *",
            "admin list profilingsessions *",
            "admin create profilingsessions *",
            "admin delete profilingsessions *",
            "admin patch profilingsessions *",
            "admin list pods *",
            "reader get profilingsessions team",
            "reader list profilingsessions team",
            "raw-reader get profilingsessions team",
            "raw-reader get profilingsessions/raw team",
            "gateway get profilingsessions *",
            "gateway get profilingsessions/raw *",
        ];
        let world = Arc::new(Mutex::new(World {
            rights: rights.iter().map(ToString::to_string).collect(),
            ..World::default()
        }));
        let api = api_server::router(ApiState {
            world: Arc::clone(&world),
            sessions: sessions.clone(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api_server = listener.local_addr().unwrap();
        let config = Config::new(format!("http://{api_server}").parse().unwrap());
        tokio::spawn(async move { axum::serve(listener, api).await.unwrap() });
        let client = Client::try_from(config.clone()).unwrap();
        let (first, second) = (client.clone(), client.clone());
        let agent = agent(first, timeline, &converter, limits.clone(), bucket.clone(), None).await;
        let other = match &bucket {
            Some(_) => Some(self::agent(second, timeline, &converter, limits, bucket.clone(), Some(&agent)).await),
            None => None,
        };
        let place = match &other {
            Some(other) => (OTHER_NODE.to_owned(), other.address),
            None => (NODE.to_owned(), agent.address),
        };
        world.lock().unwrap().endpoints.push(place);
        let gateway = Gateway {
            sessions: sessions.clone(),
            reviewer: Reviewer::new(
                client.clone(),
                ReviewerOptions::default(),
                metrics.gateway_access_reviews,
            ),
            api_server: ApiServer::new(config),
            agents: Agents::new(
                client,
                AgentOptions {
                    server_name: AGENT_NAME.to_owned(),
                    authority: agent.folder.path().join("ca.crt"),
                    identity: GatewayIdentity {
                        namespace: "flopwatch".to_owned(),
                        account: "flopwatch-gateway".to_owned(),
                        pod: Some(("gateway-pod".to_owned(), "gateway-pod-uid".to_owned())),
                    },
                    transfers: 8,
                    service: "flopwatch-agent".to_owned(),
                },
            ),
            store: bucket.map(|bucket| ObjectStore::new(bucket, Metrics::new().unwrap().store.reads)),
            cookies: Cookies::new().unwrap(),
            listeners: Places::new(LISTENERS, LISTENERS),
            visitors: Places::new(VISITORS, VISITORS),
            // Sessions have their ids before they are answered, or never get one.
            taken_up: Duration::from_millis(200),
        };
        let origins = [HeaderValue::from_static("https://grafana.example")];
        let router = guarded(gateway, &origins, &Metrics::new().unwrap()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let plain = router.clone().into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, plain).await.unwrap() });
        let rig = Self {
            address,
            api_server,
            router,
            world,
            agent,
            other,
            sessions,
            document: serde_json::from_str(&openapi().unwrap()).unwrap(),
        };
        rig.session("team", "train", "0badcafe", 0, "True");
        rig.capture("train-a", &rig.agent_url(), &artifacts());
        rig
    }

    /// Adds a session of mode nsys whose condition Succeeded is `succeeded`, made `minute` minutes after another.
    pub(super) fn session(&self, namespace: &str, name: &str, id: &str, minute: i32, succeeded: &str) {
        let session = json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession",
            "metadata": {
                "namespace": namespace, "name": name, "uid": format!("uid-{id}"),
                "creationTimestamp": format!("2026-01-01T{:02}:{:02}:00Z", minute / 60, minute % 60),
                "annotations": {"request.flopwatch.dev/solver": "cg", "flopwatch.dev/requested-by": "alice"}
            },
            "spec": {"target": {"podName": "train"}, "profiler": {"type": "Nsys"}},
            "status": {"id": id, "conditions": [api_server::succeeded(succeeded)]}
        });
        let session = serde_json::from_value(session).unwrap();
        self.sessions.session_event(Event::Apply(session));
    }

    /// Serves the gateway over TLS too, as it is in a cluster, with a certificate that no browser knows.
    pub(super) async fn over_tls(&self) -> SocketAddr {
        let refused = Metrics::new().unwrap().refused_connections;
        self.over_tls_within(Limit::new(64, Duration::from_secs(30), refused))
            .await
    }

    /// The same, for no more connections than that.
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

    /// What controller and agent do with the first session that is made: a capture comes, works, and publishes.
    pub(super) async fn carry_out_the_first(&self) {
        let made = async {
            loop {
                if let Some((_, session)) = self.world.lock().unwrap().made.first().cloned() {
                    return session;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let mut session = tokio::time::timeout(Duration::from_secs(30), made).await.unwrap();
        for condition in ["Capturing", "Succeeded"] {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let mut stands = api_server::succeeded("True");
            stands["type"] = json!(condition);
            session["status"] = json!({"id": "00000000", "conditions": [stands]});
            let applied = serde_json::from_value(session.clone()).unwrap();
            if condition == "Succeeded" {
                let name = session["metadata"]["name"].as_str().unwrap();
                self.capture_of(name, "00000000", "train-a", &finished(&self.agent_url(), &artifacts()));
            }
            self.sessions.session_event(Event::Apply(applied));
        }
    }

    pub(super) fn agent_url(&self) -> String {
        format!("https://{}/v1/anything", self.agent.address)
    }

    /// Adds a finished capture of the session `team/train` whose artifacts are at `url`.
    pub(super) fn capture(&self, name: &str, url: &str, artifacts: &Value) {
        self.capture_of("train", "0badcafe", name, &finished(url, artifacts));
    }

    /// Says of the capture `train-a` what its agent published, at `url` and in the object store at `store_url`.
    pub(super) fn copied(&self, url: Option<&str>, store_url: Option<&str>) {
        let artifacts = serde_json::to_value(&self.agent.manifest.artifacts).unwrap();
        let mut status = finished("", &artifacts);
        (status["url"], status["storeUrl"]) = (json!(url), json!(store_url));
        self.capture_of("train", "0badcafe", "train-a", &status);
    }

    /// Adds a capture of a session in `team`, or changes it.
    pub(super) fn capture_of(&self, session: &str, id: &str, name: &str, status: &Value) {
        self.capture_on(NODE, session, id, name, status);
    }

    /// Likewise, on that node.
    pub(super) fn capture_on(&self, node: &str, session: &str, id: &str, name: &str, status: &Value) {
        let capture = json!({
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
        });
        let capture = serde_json::from_value(capture).unwrap();
        self.sessions.capture_event(Event::Apply(capture));
    }

    pub(super) async fn get(&self, path: &str, token: &str) -> Answer {
        self.ask("GET", path, Some(token), &[], "").await
    }

    pub(super) async fn post(&self, path: &str, token: &str, body: &Value) -> Answer {
        let json = [("Content-Type", "application/json")];
        self.ask("POST", path, Some(token), &json, &body.to_string()).await
    }

    /// Sends a request; the answer must be one that the document has.
    pub(super) async fn ask(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n",
            body.len()
        );
        if let Some(token) = token {
            request.extend(["Authorization: Bearer ", token, "\r\n"]);
        }
        for (name, value) in headers {
            request.extend([name, ": ", value, "\r\n"]);
        }
        request.push_str("\r\n");
        request.push_str(body);
        let answer = self.send(request.as_bytes()).await;
        self.check(method, path, &answer);
        answer
    }

    pub(super) async fn send(&self, request: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut bytes)).await;
        read.expect("an answer within 30 s").unwrap();
        Answer::parse(&bytes)
    }

    /// Listens to `team/train`.
    pub(super) async fn listen(&self, heard: &str) -> Ears {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let mut request =
            "GET /api/profiling/session/0badcafe/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                           Authorization: Bearer reader\r\n"
                .to_owned();
        if !heard.is_empty() {
            request.extend(["Last-Event-ID: ", heard, "\r\n"]);
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        Ears::new(stream)
    }

    /// Holds an answer against the document.
    fn check(&self, method: &str, path: &str, answer: &Answer) {
        let path = path.split('?').next().unwrap();
        let segments: Vec<&str> = path.split('/').collect();
        let paths = self.document["paths"].as_object().unwrap();
        let operation = paths.iter().find_map(|(template, operations)| {
            let parts: Vec<&str> = template.split('/').collect();
            let fits = parts.len() == segments.len()
                && parts
                    .iter()
                    .zip(&segments)
                    .all(|(part, segment)| part == segment || part.starts_with('{'));
            fits.then(|| &operations[method.to_ascii_lowercase()])
                .filter(|operation| operation.is_object())
        });
        let Some(operation) = operation else {
            assert!(matches!(answer.status, 200 | 404 | 405), "{method} {path}: {answer:?}");
            return;
        };
        let documented = &operation["responses"][answer.status.to_string()];
        assert!(
            documented.is_object(),
            "{method} {path} answers {}, undocumented: {answer:?}",
            answer.status
        );
        if answer.status >= 400 && method != "HEAD" && answer.status != 416 {
            assert_eq!(answer.header("content-type"), "application/problem+json", "{answer:?}");
            assert_eq!(answer.json()["status"], answer.status);
        }
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
}

/// The status of a capture that succeeded and whose artifacts are at `url`.
pub(super) fn finished(url: &str, artifacts: &Value) -> Value {
    json!({
        "url": url, "artifacts": artifacts, "progress": {"stage": "Done", "percent": 100, "message": ""},
        "conditions": [api_server::succeeded("True")]
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
