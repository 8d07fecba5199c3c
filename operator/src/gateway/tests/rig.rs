//! What the tests share: an API server that answers reviews and keeps sessions, an agent's artifact service over TLS, the gateway
//! on loopback, and a client of bare sockets that holds every answer against the document.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use flopwatch_api::artifact::Output;
use flopwatch_api::capture::SessionReference;
use flopwatch_artifacts::{
    Access, ArtifactMetrics, ArtifactService, CaptureId, ConversionLimits, Publication, Server, ServerLimits,
    SourceFile, Store, StoreOptions,
};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use prometheus::Registry;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::super::*;
pub(super) use super::client::{Answer, Ears};
use super::forms::Sizes;
use crate::certificates::{Material, Names, carry_out, decide};
use crate::serve::server_config;

/// Name in the agents' certificates.
pub(super) const AGENT_NAME: &str = "flopwatch-agent.flopwatch.svc";

/// What the API server knows. A token is its user's name; `gateway` is good for agents alone.
#[derive(Default)]
pub(super) struct World {
    /// `user verb resource[/subresource] namespace[/name]`; without a name all of the namespace, `*` every namespace.
    pub(super) rights: BTreeSet<String>,
    /// Sessions that were made, with the user whose token made them.
    pub(super) made: Vec<(String, Value)>,
    /// Sessions that were deleted, likewise.
    pub(super) deleted: Vec<(String, Value)>,
    /// Changes that were made to sessions, likewise.
    pub(super) changed: Vec<(String, Value)>,
    /// Whether reviews fail.
    pub(super) broken: bool,
    /// Whether a controller gives new sessions their ids.
    pub(super) no_controller: bool,
}

impl World {
    fn allows(&self, user: &str, verb: &str, resource: &str, namespace: &str, name: &str) -> bool {
        let right = |place: &str| self.rights.contains(&format!("{user} {verb} {resource} {place}"));
        let named = !name.is_empty() && right(&format!("{namespace}/{name}"));
        right("*") || (!namespace.is_empty() && right(namespace)) || named
    }
}

/// Users whom the API server knows.
const USERS: [&str; 4] = ["admin", "reader", "raw-reader", "stranger"];

struct ApiState {
    world: Arc<Mutex<World>>,
    sessions: Arc<Mutex<Writer<ProfilingSession>>>,
}

type Refusal = (StatusCode, Json<Value>);

fn refusal(status: StatusCode, message: &str) -> Refusal {
    let status_object = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": status.as_u16(),
        "reason": status.canonical_reason().unwrap_or_default(), "metadata": {}
    });
    (status, Json(status_object))
}

async fn token_review(
    State(state): State<Arc<ApiState>>,
    Json(mut review): Json<Value>,
) -> Result<Json<Value>, Refusal> {
    if state.world.lock().unwrap().broken {
        return Err(refusal(StatusCode::INTERNAL_SERVER_ERROR, "broken"));
    }
    let token = review["spec"]["token"].as_str().unwrap().to_owned();
    let for_agents = review["spec"]["audiences"] == json!([flopwatch_api::AGENT_AUDIENCE]);
    let known = if for_agents {
        token == "gateway"
    } else {
        USERS.contains(&token.as_str())
    };
    review["status"] = json!({
        "authenticated": known, "audiences": review["spec"]["audiences"],
        "user": {"username": token, "groups": ["people"]}
    });
    Ok(Json(review))
}

async fn access_review(State(state): State<Arc<ApiState>>, Json(mut review): Json<Value>) -> Json<Value> {
    let spec = &review["spec"];
    let attributes = &spec["resourceAttributes"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut resource = text(&attributes["resource"]);
    if let Some(subresource) = attributes["subresource"].as_str() {
        resource = format!("{resource}/{subresource}");
    }
    let allowed = state.world.lock().unwrap().allows(
        &text(&spec["user"]),
        &text(&attributes["verb"]),
        &resource,
        &text(&attributes["namespace"]),
        &text(&attributes["name"]),
    );
    review["status"] = json!({"allowed": allowed});
    Json(review)
}

fn user_of(headers: &HeaderMap) -> Result<String, Refusal> {
    let value = headers.get("authorization").and_then(|value| value.to_str().ok());
    let user = value
        .and_then(|value| value.strip_prefix("Bearer "))
        .unwrap_or_default();
    if USERS.contains(&user) {
        Ok(user.to_owned())
    } else {
        Err(refusal(StatusCode::UNAUTHORIZED, "Unauthorized"))
    }
}

async fn create(
    State(state): State<Arc<ApiState>>,
    Path(namespace): Path<String>,
    headers: HeaderMap,
    Json(mut session): Json<Value>,
) -> Result<(StatusCode, Json<Value>), Refusal> {
    let user = user_of(&headers)?;
    let mut world = state.world.lock().unwrap();
    if !world.allows(&user, "create", "profilingsessions", &namespace, "") {
        return Err(refusal(StatusCode::FORBIDDEN, "profilingsessions is forbidden"));
    }
    if session["spec"]["durationSeconds"]
        .as_i64()
        .is_some_and(|seconds| seconds > 300)
    {
        return Err(refusal(
            StatusCode::UNPROCESSABLE_ENTITY,
            "spec.durationSeconds: 301 is too long",
        ));
    }
    let count = world.made.len();
    session["metadata"]["namespace"] = json!(namespace);
    session["metadata"]["name"] = json!(format!(
        "{}{count}",
        session["metadata"]["generateName"].as_str().unwrap()
    ));
    session["metadata"]["uid"] = json!(format!("made-{count}"));
    session["metadata"]["creationTimestamp"] = json!("2026-01-02T00:00:00Z");
    world.made.push((user, session.clone()));
    let mut taken_up = session.clone();
    if !world.no_controller {
        taken_up["status"] = json!({"id": format!("{count:08x}")});
    }
    let taken_up = serde_json::from_value(taken_up).unwrap();
    state
        .sessions
        .lock()
        .unwrap()
        .apply_watcher_event(&Event::Apply(taken_up));
    Ok((StatusCode::CREATED, Json(session)))
}

async fn remove(
    State(state): State<Arc<ApiState>>,
    Path((namespace, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Value>, Refusal> {
    let user = user_of(&headers)?;
    let mut world = state.world.lock().unwrap();
    if !world.allows(&user, "delete", "profilingsessions", &namespace, "") {
        return Err(refusal(StatusCode::FORBIDDEN, "profilingsessions is forbidden"));
    }
    let options: Value = serde_json::from_str(&body).unwrap();
    world
        .deleted
        .push((user, json!({"name": name, "uid": options["preconditions"]["uid"]})));
    Ok(Json(
        json!({"kind": "Status", "apiVersion": "v1", "status": "Success", "metadata": {}}),
    ))
}

async fn change(
    State(state): State<Arc<ApiState>>,
    Path((namespace, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Value>, Refusal> {
    let user = user_of(&headers)?;
    let mut world = state.world.lock().unwrap();
    if !world.allows(&user, "patch", "profilingsessions", &namespace, "") {
        return Err(refusal(StatusCode::FORBIDDEN, "profilingsessions is forbidden"));
    }
    assert_eq!(headers["content-type"], "application/merge-patch+json");
    world.changed.push((user, serde_json::from_str(&body).unwrap()));
    Ok(Json(json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession", "metadata": {"name": name},
        "spec": {"target": {"podName": "train"}}
    })))
}

async fn self_review(headers: HeaderMap) -> Result<(StatusCode, Json<Value>), Refusal> {
    let user = user_of(&headers)?;
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {},
        "status": {"userInfo": {"username": user}}
    });
    Ok((StatusCode::CREATED, Json(review)))
}

async fn pods(
    State(state): State<Arc<ApiState>>,
    Path(namespace): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, Refusal> {
    let user = user_of(&headers)?;
    if !state
        .world
        .lock()
        .unwrap()
        .allows(&user, "list", "pods", &namespace, "")
    {
        return Err(refusal(StatusCode::FORBIDDEN, "pods is forbidden"));
    }
    let pod = |name: &str, phase: &str| {
        json!({
            "metadata": {"name": name, "annotations": {"flopwatch.dev/prepared": "main"}},
            "spec": {"nodeName": "node", "containers": [
                {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}, {"name": "logs"}
            ]},
            "status": {"phase": phase}
        })
    };
    let items = [pod("train", "Running"), pod("done", "Succeeded")];
    Ok(Json(
        json!({"apiVersion": "v1", "kind": "PodList", "metadata": {"continue": "more"}, "items": items}),
    ))
}

/// An artifact service as an agent runs it, with the capture `train-a` of the session `team/train`.
pub(super) struct Agent {
    pub(super) address: SocketAddr,
    pub(super) folder: TempDir,
    stop: CancellationToken,
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
        agent: vec![AGENT_NAME.to_owned()],
        ..Names::default()
    };
    let now = Timestamp::now();
    let decision = decide(&Material::default(), &names, now);
    let made = carry_out(&decision, &Material::default(), &names, now).unwrap();
    let leaf = made.agent.unwrap();
    for (file, text) in [
        ("tls.crt", &leaf.certificate),
        ("tls.key", &leaf.key),
        ("ca.crt", &leaf.bundle),
    ] {
        std::fs::write(folder.join(file), text).unwrap();
    }
}

async fn agent(client: Client, timeline: &[u8], perfetto: Option<Duration>) -> Agent {
    let folder = tempfile::tempdir().unwrap();
    write_leaf(folder.path());
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
            path,
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
            uid: "uid".into(),
        },
        session: SessionReference {
            name: "train".into(),
            id: "0badcafe".into(),
        },
        created: Timestamp::UNIX_EPOCH,
    };
    store.publish(publication, &files).await.unwrap();
    let reviews = ReviewerOptions {
        service_audience: Some(flopwatch_api::AGENT_AUDIENCE.to_owned()),
        ..ReviewerOptions::default()
    };
    let access = Access::Kubernetes(Reviewer::new(client, reviews, metrics.reviews()));
    let converter = Arc::new(Sizes {
        folder: folder.path().join("conversion"),
        perfetto,
    });
    let limits = ConversionLimits {
        patience: Duration::from_millis(500),
        waiting: 0,
        ..ConversionLimits::default()
    };
    let service = ArtifactService::converting(Arc::new(store), access, metrics, converter, limits);
    let any = ([127, 0, 0, 1], 0).into();
    let server = Server::bind_tls(&service, any, folder.path(), ServerLimits::default())
        .await
        .unwrap();
    let stop = CancellationToken::new();
    let address = server.local_addr();
    tokio::spawn(server.run(stop.clone()));
    Agent { address, folder, stop }
}

/// Everything, running.
pub(super) struct Rig {
    pub(super) address: SocketAddr,
    pub(super) world: Arc<Mutex<World>>,
    pub(super) agent: Agent,
    router: Router,
    sessions: Arc<Mutex<Writer<ProfilingSession>>>,
    captures: Mutex<Writer<Capture>>,
    news: watch::Sender<()>,
    document: Value,
}

impl Rig {
    /// With the session `team/train` (0badcafe) and its capture.
    pub(super) async fn new() -> Self {
        Self::with(&timeline_content(), None).await
    }

    /// Likewise, with this content of the capture's timeline, and the time that its form for Perfetto takes, if it comes to an end.
    pub(super) async fn with(timeline: &[u8], perfetto: Option<Duration>) -> Self {
        let (sessions, session_writer) = reflector::store();
        let (captures, capture_writer) = reflector::store();
        let session_writer = Arc::new(Mutex::new(session_writer));
        let (news, heard) = watch::channel(());
        let rights = [
            "admin get profilingsessions *",
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
        let state = Arc::new(ApiState {
            world: Arc::clone(&world),
            sessions: Arc::clone(&session_writer),
        });
        let base = "/apis/flopwatch.dev/v1alpha1/namespaces/{namespace}/profilingsessions";
        let api = Router::new()
            .route("/apis/authentication.k8s.io/v1/tokenreviews", post(token_review))
            .route(
                "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                post(access_review),
            )
            .route("/apis/authentication.k8s.io/v1/selfsubjectreviews", post(self_review))
            .route("/api/v1/namespaces/{namespace}/pods", get(pods))
            .route(base, post(create))
            .route(&format!("{base}/{{name}}"), delete(remove).patch(change))
            .with_state(state);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let config = Config::new(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
        tokio::spawn(async move { axum::serve(listener, api).await.unwrap() });
        let client = Client::try_from(config.clone()).unwrap();
        let agent = agent(client.clone(), timeline, perfetto).await;
        let token = agent.folder.path().join("token");
        std::fs::write(&token, "gateway\n").unwrap();
        let gateway = Gateway {
            sessions: Sessions::new(sessions, captures),
            reviewer: Reviewer::new(
                client,
                ReviewerOptions::default(),
                Metrics::new().unwrap().gateway_access_reviews,
            ),
            api_server: ApiServer::new(config),
            agents: Agents::new(AgentOptions {
                server_name: AGENT_NAME.to_owned(),
                authority: agent.folder.path().join("ca.crt"),
                token,
                transfers: 8,
            }),
            cookies: Cookies::new().unwrap(),
            news: heard,
            listeners: Arc::new(Semaphore::new(2)),
            // Sessions have their ids before they are answered, or never get one.
            taken_up: Duration::from_millis(200),
        };
        let origins = [HeaderValue::from_static("https://grafana.example")];
        let router = guarded(gateway, &origins, &Metrics::new().unwrap()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let plain = router.clone();
        tokio::spawn(async move { axum::serve(listener, plain).await.unwrap() });
        let rig = Self {
            address,
            router,
            world,
            agent,
            sessions: session_writer,
            captures: Mutex::new(capture_writer),
            news,
            document: serde_json::from_str(&openapi().unwrap()).unwrap(),
        };
        rig.session("team", "train", "0badcafe", 0, "True");
        let url = format!("https://{}/v1/anything", rig.agent.address);
        rig.capture("train-a", &url, &artifacts());
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
            "status": {"id": id, "conditions": [{
                "type": "Succeeded", "status": succeeded, "reason": "Succeeded", "message": "well",
                "lastTransitionTime": "2026-01-01T00:00:00Z"
            }]}
        });
        let session = serde_json::from_value(session).unwrap();
        self.sessions
            .lock()
            .unwrap()
            .apply_watcher_event(&Event::Apply(session));
        self.news.send_replace(());
    }

    /// Serves the gateway over TLS too, as it is in a cluster, with a certificate that no browser knows.
    pub(super) async fn over_tls(&self) -> SocketAddr {
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
            serve(address, router, current, readiness, stop).await.unwrap();
            drop(certificate);
        });
        while !ready.get() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        address
    }

    /// Adds a finished capture of the session `team/train` whose artifacts are at `url`.
    pub(super) fn capture(&self, name: &str, url: &str, artifacts: &Value) {
        let done = json!({
            "url": url, "artifacts": artifacts, "progress": {"stage": "Done", "percent": 100, "message": ""},
            "conditions": [{
                "type": "Succeeded", "status": "True", "reason": "Succeeded", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"
            }]
        });
        self.capture_of("train", "0badcafe", name, &done);
    }

    /// Adds a capture of a session in `team`, or changes it.
    pub(super) fn capture_of(&self, session: &str, id: &str, name: &str, status: &Value) {
        let capture = json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "Capture",
            "metadata": {
                "namespace": "team", "name": name, "uid": name,
                "labels": {"flopwatch.dev/session": session, "flopwatch.dev/session-id": id}
            },
            "spec": {
                "sessionRef": {"name": session, "id": id}, "nodeName": "node", "podRef": {"name": "train", "uid": "pod"},
                "containerName": "main", "profiler": {"type": "Nsys"}, "durationSeconds": 10, "startDeadlineSeconds": 60,
                "outputs": ["Timeline", "Summary"]
            },
            "status": status
        });
        let capture = serde_json::from_value(capture).unwrap();
        self.captures
            .lock()
            .unwrap()
            .apply_watcher_event(&Event::Apply(capture));
        self.news.send_replace(());
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
