//! What the tests of the service share: a store with captures, a service that listens, a client of bare sockets, and an
//! API server that answers reviews.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flopwatch_api::artifact::Output;
use flopwatch_api::capture::SessionReference;
use flopwatch_artifacts::{
    Access, ArtifactMetrics, ArtifactService, CaptureId, Publication, Reviewer, ReviewerOptions, Server, ServerLimits,
    SourceFile, Store, StoreOptions,
};
use jiff::Timestamp;
use prometheus::{Registry, TextEncoder};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// A store with the capture `train` of the session `session` in the namespace `team`.
pub(crate) struct Captures {
    pub(crate) root: TempDir,
    pub(crate) store: Arc<Store>,
    pub(crate) registry: Registry,
    pub(crate) metrics: ArtifactMetrics,
}

/// Content of the capture's timeline.
pub(crate) const TIMELINE: &str = "0123456789abcdefghijklmnopqrstuvwxyz";

impl Captures {
    pub(crate) async fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let registry = Registry::new();
        let metrics = ArtifactMetrics::register(&registry).unwrap();
        let options = StoreOptions {
            free_bytes_floor: 0,
            ..StoreOptions::default()
        };
        let store = Store::open(&root.path().join("store"), options, metrics.clone())
            .await
            .unwrap();
        let captures = Self {
            root,
            store: Arc::new(store),
            registry,
            metrics,
        };
        let files = [
            captures.file(
                "timeline.h5",
                Output::Timeline,
                "application/x-hdf5",
                TIMELINE.as_bytes(),
            ),
            captures.file("summary.json", Output::Summary, "application/json", b"{}"),
            captures.file("raw.nsys-rep", Output::Raw, "application/octet-stream", b"secret"),
        ];
        captures.publish("train", &files).await;
        captures
    }

    pub(crate) fn file(&self, name: &str, output: Output, media_type: &str, content: &[u8]) -> SourceFile {
        let path = self.root.path().join(name);
        std::fs::write(&path, content).unwrap();
        SourceFile {
            name: name.into(),
            output,
            media_type: media_type.into(),
            content: Arc::new(std::fs::File::open(path).unwrap()),
        }
    }

    pub(crate) async fn publish(&self, capture: &str, files: &[SourceFile]) {
        let publication = Publication {
            capture: CaptureId {
                namespace: "team".into(),
                name: capture.into(),
                uid: "uid".into(),
            },
            session: SessionReference {
                name: "session".into(),
                id: "01234567".into(),
            },
            created: Timestamp::UNIX_EPOCH,
        };
        self.store.publish(publication, files).await.unwrap();
    }

    /// The file of an artifact's object.
    pub(crate) async fn object(&self, name: &str) -> PathBuf {
        let manifest = self.store.get("team", "train").await.unwrap().unwrap();
        let sha256 = &manifest.artifact(name).unwrap().sha256;
        self.root.path().join("store/objects").join(sha256)
    }

    pub(crate) fn service(&self, access: Access) -> ArtifactService {
        ArtifactService::new(Arc::clone(&self.store), access, self.metrics.clone())
    }

    pub(crate) fn reviewed(&self, api: &Api, options: ReviewerOptions) -> ArtifactService {
        self.service(Access::Kubernetes(Reviewer::new(
            api.client(),
            options,
            self.metrics.reviews(),
        )))
    }

    /// Value of a series without labels, or with them as they are rendered.
    pub(crate) fn metric(&self, series: &str) -> u64 {
        let text = TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or("0").parse().unwrap()
    }
}

/// A service that listens, until it is dropped.
pub(crate) struct Listening {
    pub(crate) address: SocketAddr,
    pub(crate) shutdown: CancellationToken,
}

impl Listening {
    pub(crate) fn plain(service: &ArtifactService) -> Self {
        Self::plain_within(service, ServerLimits::default())
    }

    pub(crate) fn plain_within(service: &ArtifactService, limits: ServerLimits) -> Self {
        Self::run(Server::bind_plain_loopback(service, ([127, 0, 0, 1], 0).into(), limits).unwrap())
    }

    pub(crate) fn run(server: Server) -> Self {
        let shutdown = CancellationToken::new();
        let address = server.local_addr();
        let stop = shutdown.clone();
        tokio::spawn(async move { server.run(stop).await.unwrap() });
        Self { address, shutdown }
    }

    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask("GET", path, headers).await
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request.push_str("Host: localhost\r\n");
        }
        for (name, value) in headers {
            request.extend([name, ": ", value, "\r\n"]);
        }
        request.push_str("\r\n");
        self.send(request.as_bytes()).await
    }

    /// Sends bytes as they are and reads to the end.
    pub(crate) async fn send(&self, request: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        exchange(&mut stream, request).await
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

pub(crate) async fn exchange(stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin), request: &[u8]) -> Answer {
    // The server may have closed before everything was sent; its answer says why.
    drop(stream.write_all(request).await);
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut bytes)).await;
    drop(read.expect("an answer within 20 s"));
    Answer::parse(bytes)
}

/// An answer; status 0 when the connection was closed without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    fn parse(bytes: Vec<u8>) -> Self {
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            return Self {
                status: 0,
                headers: Vec::new(),
                body: bytes,
            };
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        Self {
            status,
            headers,
            body: bytes[end + 4..].to_vec(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map_or("", |(_, value)| value)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The `reason` of problem details.
    #[track_caller]
    pub(crate) fn reason(&self) -> String {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        assert_eq!(self.json()["status"], self.status);
        self.json()["reason"].as_str().unwrap().to_owned()
    }
}

/// Audience of tokens for the API server itself.
pub(crate) const API_SERVER: &str = "https://kubernetes.default.svc";

/// A token of a user for that audience, which says so itself as a service account's does.
pub(crate) fn token(user: &str, audience: &str) -> String {
    let claims = json!({"sub": user, "aud": [audience]}).to_string();
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims))
}

/// User and audiences of a token that [`token`] made.
fn claims(token: &str) -> Option<(String, Vec<String>)> {
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&payload).ok()?;
    let audiences = serde_json::from_value(claims["aud"].clone()).ok()?;
    Some((claims["sub"].as_str()?.to_owned(), audiences))
}

/// Answers TokenReview and SubjectAccessReview. A token is its user's name, or what [`token`] makes; users and rights are sets that tests change.
#[derive(Clone)]
pub(crate) struct Api {
    address: SocketAddr,
    pub(crate) world: Arc<Mutex<World>>,
}

#[derive(Default)]
pub(crate) struct World {
    pub(crate) users: BTreeSet<String>,
    /// `user resource[/subresource] namespace[/name]`; without a name: all of the namespace.
    pub(crate) rights: BTreeSet<String>,
    pub(crate) token_reviews: u32,
    pub(crate) access_reviews: u32,
    pub(crate) broken: bool,
    pub(crate) slow: bool,
    /// Audience that tokens are for.
    pub(crate) audience: Option<String>,
}

impl Api {
    pub(crate) async fn new(users: &[&str], rights: &[&str]) -> Self {
        let world = World {
            users: users.iter().map(ToString::to_string).collect(),
            rights: rights.iter().map(ToString::to_string).collect(),
            ..World::default()
        };
        let world = Arc::new(Mutex::new(world));
        let routes = Router::new()
            .route("/apis/authentication.k8s.io/v1/tokenreviews", post(token_review))
            .route(
                "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                post(access_review),
            )
            .with_state(Arc::clone(&world));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { address, world }
    }

    pub(crate) fn client(&self) -> kube::Client {
        let config = kube::Config::new(format!("http://{}", self.address).parse().unwrap());
        kube::Client::try_from(config).unwrap()
    }
}

async fn hold(world: &Mutex<World>) -> Result<(), StatusCode> {
    let (broken, slow) = {
        let world = world.lock().unwrap();
        (world.broken, world.slow)
    };
    if slow {
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
    if broken {
        Err(StatusCode::INTERNAL_SERVER_ERROR)
    } else {
        Ok(())
    }
}

async fn token_review(
    State(world): State<Arc<Mutex<World>>>,
    Json(mut review): Json<Value>,
) -> Result<Json<Value>, StatusCode> {
    hold(&world).await?;
    let mut world = world.lock().unwrap();
    world.token_reviews += 1;
    let token = review["spec"]["token"].as_str().unwrap_or_default().to_owned();
    let asked: Vec<String> = serde_json::from_value(review["spec"]["audiences"].clone()).unwrap_or_default();
    // As the API server does: a review that names no audience is for its own.
    let asked_for = if asked.is_empty() {
        vec![API_SERVER.to_owned()]
    } else {
        asked.clone()
    };
    let opaque = || (token.clone(), world.audience.clone().into_iter().collect());
    let says = claims(&token);
    let is_opaque = says.is_none();
    let (user, good_for): (String, Vec<String>) = says.unwrap_or_else(opaque);
    let audiences: Vec<String> = good_for.into_iter().filter(|one| asked_for.contains(one)).collect();
    let fits = !audiences.is_empty() || (is_opaque && asked.is_empty());
    review["status"] = if world.users.contains(&user) && fits {
        let audiences = if asked.is_empty() { Vec::new() } else { audiences };
        json!({"authenticated": true, "user": {"username": user, "groups": ["people"]}, "audiences": audiences})
    } else {
        json!({"authenticated": false, "error": "unknown token"})
    };
    Ok(Json(review))
}

async fn access_review(
    State(world): State<Arc<Mutex<World>>>,
    Json(mut review): Json<Value>,
) -> Result<Json<Value>, StatusCode> {
    hold(&world).await?;
    let mut world = world.lock().unwrap();
    world.access_reviews += 1;
    let spec = &review["spec"];
    let attributes = &spec["resourceAttributes"];
    assert_eq!(
        (attributes["verb"].as_str(), attributes["group"].as_str()),
        (Some("get"), Some("flopwatch.dev"))
    );
    assert_eq!(spec["groups"], json!(["people"]));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut resource = text(&attributes["resource"]);
    if let Some(subresource) = attributes["subresource"].as_str() {
        resource = format!("{resource}/{subresource}");
    }
    let all = format!("{} {resource} {}", text(&spec["user"]), text(&attributes["namespace"]));
    let one = format!("{all}/{}", text(&attributes["name"]));
    let allowed = world.rights.contains(&all) || world.rights.contains(&one);
    review["status"] = json!({"allowed": allowed});
    Ok(Json(review))
}
