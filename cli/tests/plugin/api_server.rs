//! An API server that keeps objects by their paths, lists and watches them, and refuses what it is told to.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::{SinkExt as _, StreamExt as _};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Message, Role};

/// Where sessions of namespace `team` are.
pub(crate) const SESSIONS: &str = "/apis/flopwatch.dev/v1alpha1/namespaces/team/profilingsessions";
/// Where captures of it are.
pub(crate) const CAPTURES: &str = "/apis/flopwatch.dev/v1alpha1/namespaces/team/captures";

/// What it knows.
#[derive(Default)]
struct World {
    objects: BTreeMap<String, Value>,
    /// Every change: path, kind of event, object.
    log: Vec<(String, &'static str, Value)>,
    /// Collections that the caller may not read.
    forbidden: BTreeSet<String>,
    /// Whether Flopwatch's resources are there.
    without_resources: bool,
    /// Port of this machine that port-forwards lead to.
    forwards_to: Option<u16>,
}

impl World {
    fn put(&mut self, path: &str, mut object: Value) -> Value {
        let event = if self.objects.contains_key(path) {
            "MODIFIED"
        } else {
            "ADDED"
        };
        object["metadata"]["resourceVersion"] = json!((self.log.len() + 1).to_string());
        self.objects.insert(path.to_owned(), object.clone());
        self.log.push((path.to_owned(), event, object.clone()));
        object
    }
}

/// An API server on loopback.
pub(crate) struct ApiServer {
    address: SocketAddr,
    world: Arc<Mutex<World>>,
}

impl ApiServer {
    pub(crate) async fn start() -> Self {
        let world = Arc::new(Mutex::new(World::default()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&world));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, world }
    }

    /// Makes or changes an object.
    pub(crate) fn put(&self, path: &str, object: Value) {
        self.world.lock().unwrap().put(path, object);
    }

    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        self.world.lock().unwrap().objects.get(path).cloned()
    }

    /// The only object under a path, once there is one.
    pub(crate) async fn made(&self, collection: &str) -> (String, Value) {
        for _ in 0..1_000 {
            let found = self
                .world
                .lock()
                .unwrap()
                .objects
                .iter()
                .find(|(path, _)| is_in(path, collection))
                .map(|(path, object)| (path.clone(), object.clone()));
            if let Some(found) = found {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("nothing was made in {collection}");
    }

    pub(crate) fn forbid(&self, collection: &str) {
        self.world.lock().unwrap().forbidden.insert(collection.to_owned());
    }

    /// Lets port-forwards to any pod lead to a port of this machine.
    pub(crate) fn forward_to(&self, port: u16) {
        self.world.lock().unwrap().forwards_to = Some(port);
    }

    /// Takes Flopwatch's resources away.
    pub(crate) fn without_resources(&self) {
        self.world.lock().unwrap().without_resources = true;
    }

    /// A kubeconfig whose user authenticates so, with `team` as its namespace.
    pub(crate) fn kubeconfig(&self, folder: &Path, user: &Value) -> PathBuf {
        let path = folder.join("kubeconfig");
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{}", self.address)}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
            "users": [{"name": "u", "user": user}]
        });
        std::fs::write(&path, text.to_string()).unwrap();
        path
    }
}

fn failure(status: StatusCode, reason: &str, message: &str, (group, name): (&str, &str)) -> Response {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "metadata": {}, "message": message,
        "reason": reason, "details": {"name": name, "group": group}, "code": status.as_u16()
    });
    (status, axum::Json(body)).into_response()
}

/// Whether the object at `path` is of that collection; one without a namespace in its path holds those of all.
fn is_in(path: &str, collection: &str) -> bool {
    let Some((own, _)) = path.rsplit_once('/') else {
        return false;
    };
    let Some((group, kind)) = collection.rsplit_once('/') else {
        return false;
    };
    let everywhere = own.starts_with(&format!("{group}/namespaces/")) && own.ends_with(&format!("/{kind}"));
    own == collection || (everywhere && !collection.contains("/namespaces/"))
}

const KINDS: [&str; 8] = [
    "profilingsessions",
    "captures",
    "pods",
    "nodes",
    "namespaces",
    "configmaps",
    "secrets",
    "mutatingwebhookconfigurations",
];

async fn answer(State(world): State<Arc<Mutex<World>>>, request: Request) -> Response {
    if request.uri().path().ends_with("/portforward") {
        let to = world.lock().unwrap().forwards_to;
        return to.map_or_else(
            || failure(StatusCode::FORBIDDEN, "Forbidden", "no port-forward for ada", ("", "")),
            |to| forward(request, to),
        );
    }
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let body: Bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let group = if path.starts_with("/apis/flopwatch.dev/") {
        "flopwatch.dev"
    } else {
        ""
    };
    let mut world_now = world.lock().unwrap();
    if world_now.without_resources && path.starts_with("/apis/flopwatch.dev/") {
        return (StatusCode::NOT_FOUND, "404 page not found\n").into_response();
    }
    if world_now
        .forbidden
        .iter()
        .any(|forbidden| path == *forbidden || path.starts_with(&format!("{forbidden}/")))
    {
        return failure(
            StatusCode::FORBIDDEN,
            "Forbidden",
            "ada cannot do that here",
            (group, ""),
        );
    }
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    match parts.method {
        Method::POST => {
            let mut object: Value = serde_json::from_slice(&body).unwrap();
            if object["metadata"]["name"].is_null() {
                let prefix = object["metadata"]["generateName"].as_str().unwrap().to_owned();
                object["metadata"]["name"] = json!(format!("{prefix}x7k2p"));
            }
            object["metadata"]["uid"] = json!("uid");
            let at = format!("{path}/{}", object["metadata"]["name"].as_str().unwrap());
            if !query.contains("dryRun=All") {
                object = world_now.put(&at, object);
            }
            (StatusCode::CREATED, axum::Json(object)).into_response()
        }
        Method::PATCH => match world_now.objects.get(&path).cloned() {
            Some(mut object) => {
                let asked: Value = serde_json::from_slice(&body).unwrap();
                object["spec"]["stop"] = asked["spec"]["stop"].clone();
                axum::Json(world_now.put(&path, object)).into_response()
            }
            None => failure(
                StatusCode::NOT_FOUND,
                "NotFound",
                &format!("{name:?} not found"),
                (group, &name),
            ),
        },
        _ if KINDS.contains(&name.as_str()) => {
            let named = query
                .split('&')
                .find_map(|part| part.strip_prefix("fieldSelector=metadata.name%3D"));
            let named = named.map(str::to_owned);
            let wanted = move |candidate: &str| {
                let same = named
                    .as_deref()
                    .is_none_or(|named| candidate.ends_with(&format!("/{named}")));
                is_in(candidate, &path) && same
            };
            if query.contains("watch=true") {
                drop(world_now);
                return watch(world, &query, wanted);
            }
            let items: Vec<&Value> = world_now
                .objects
                .iter()
                .filter(|(path, _)| wanted(path))
                .map(|(_, object)| object)
                .collect();
            let version = world_now.log.len().to_string();
            axum::Json(
                json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": items}),
            )
            .into_response()
        }
        _ => match world_now.objects.get(&path) {
            Some(object) => axum::Json(object).into_response(),
            None => failure(
                StatusCode::NOT_FOUND,
                "NotFound",
                &format!("{name:?} not found"),
                (group, &name),
            ),
        },
    }
}

/// Changes after the version that the caller has, as they come.
fn watch(world: Arc<Mutex<World>>, query: &str, wanted: impl Fn(&str) -> bool + Send + 'static) -> Response {
    let version = query.split('&').find_map(|part| part.strip_prefix("resourceVersion="));
    let after: usize = version.and_then(|version| version.parse().ok()).unwrap_or_default();
    let changes = futures::stream::unfold((world, wanted, after), |(world, wanted, mut at)| async move {
        loop {
            let next = world.lock().unwrap().log.get(at).cloned();
            match next {
                Some((path, event, object)) => {
                    at += 1;
                    if wanted(&path) {
                        let line = format!("{}\n", json!({"type": event, "object": object}));
                        return Some((Ok::<_, Infallible>(line), (world, wanted, at)));
                    }
                }
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    });
    Response::new(Body::from_stream(changes))
}

/// A port-forward of one port: each message begins with the number of its channel, and each channel with the port.
fn forward(mut request: Request, to: u16) -> Response {
    let query = request.uri().query().unwrap_or_default().to_owned();
    let port = query.split('&').find_map(|part| part.strip_prefix("ports=")).unwrap();
    let [low, high] = port.parse::<u16>().unwrap().to_le_bytes();
    let key = request.headers()["sec-websocket-key"].to_str().unwrap().to_owned();
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let stream = TokioIo::new(upgrade.await.unwrap());
        let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
        for channel in 0..2 {
            socket.send(Message::binary(vec![channel, low, high])).await.unwrap();
        }
        let mut pod = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
        let mut piece = vec![0; 16 << 10];
        loop {
            tokio::select! {
                message = socket.next() => match message {
                    Some(Ok(Message::Binary(bytes))) if bytes.first() == Some(&0) => {
                        if pod.write_all(&bytes[1..]).await.is_err() {
                            break;
                        }
                    }
                    Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                    Some(Ok(_)) => {}
                },
                read = pod.read(&mut piece) => match read {
                    Ok(count) if count > 0 => {
                        let mut message = vec![0];
                        message.extend_from_slice(&piece[..count]);
                        if socket.send(Message::binary(message)).await.is_err() {
                            break;
                        }
                    }
                    _ => break,
                },
            }
        }
        drop(socket.close(None).await);
    });
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-accept", derive_accept_key(key.as_bytes()))
        .header("sec-websocket-protocol", "v4.channel.k8s.io")
        .body(Body::empty())
        .unwrap()
}
