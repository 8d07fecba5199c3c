//! What the tests of the service share: a store with captures, a service that listens, a client of
//! bare sockets, and who may read what.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flopwatch_api::artifact::{Output, artifacts_path};
use flopwatch_api::capture::SessionReference;
use flopwatch_artifacts::{
    Access, ArtifactMetrics, ArtifactService, CaptureId, Publication, SourceFile, Store, StoreOptions,
};
use flopwatch_http::{Reviewer, ReviewerOptions, Server, ServerLimits};
use flopwatch_test_harness::{ApiServer, Identity, Right};
use jiff::Timestamp;
use prometheus::{Registry, TextEncoder};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
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
        let store = open(&root.path().join("store"), options(), &metrics).await;
        let captures = Self {
            root,
            store,
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

    /// The same with the timeline alone in another store, within those bounds.
    pub(crate) async fn within(self, folder: &str, options: StoreOptions) -> Self {
        let store = open(&self.root.path().join(folder), options, &self.metrics).await;
        let captures = Self { store, ..self };
        let content = TIMELINE.as_bytes();
        captures.put("train", "timeline.h5", Output::Timeline, content).await;
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
        self.store.publish(publication(capture), files).await.unwrap();
    }

    /// Publishes a capture of one file.
    pub(crate) async fn put(&self, capture: &str, name: &str, output: Output, content: &[u8]) {
        self.publish(capture, &[self.file(name, output, "", content)]).await;
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

    pub(crate) fn reviewed(&self, api: &ApiServer, options: ReviewerOptions) -> ArtifactService {
        self.service(self.kubernetes(api, options))
    }

    /// Access for those who have rights at the API server.
    pub(crate) fn kubernetes(&self, api: &ApiServer, options: ReviewerOptions) -> Access {
        let reviewer = Reviewer::new(api.client("flopwatch-system"), options, self.metrics.reviews());
        Access::Kubernetes(Box::new(reviewer))
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

/// Bounds that leave no space of the disk free.
pub(crate) fn options() -> StoreOptions {
    StoreOptions {
        free_bytes_floor: 0,
        ..StoreOptions::default()
    }
}

async fn open(folder: &Path, options: StoreOptions, metrics: &ArtifactMetrics) -> Arc<Store> {
    Arc::new(Store::open(folder, options, metrics.clone()).await.unwrap())
}

/// A capture of the session `session` in the namespace `team`.
pub(crate) fn publication(capture: &str) -> Publication {
    Publication {
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
        captured: Vec::new(),
    }
}

/// Where a file of the capture `train` is.
pub(crate) fn path(file: &str) -> String {
    format!("{}/{file}", artifacts_path("team", "train"))
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

    /// As the user of that name.
    pub(crate) async fn get_as(&self, user: &str, path: &str) -> Answer {
        self.get(path, &[("Authorization", &format!("Bearer {user}"))]).await
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

    /// Status and reason of a refusal: `404 NotFound`.
    #[track_caller]
    pub(crate) fn told(&self) -> String {
        format!("{} {}", self.status, self.reason())
    }
}

/// An API server that knows these users, each by a token of their own name, and what they may do.
pub(crate) fn api_server(users: &[&str], rights: &[(&str, Right)]) -> ApiServer {
    let server = ApiServer::new();
    for user in users {
        server.add_token(user, known(user));
    }
    for (user, right) in rights {
        server.allow(user, right.clone());
    }
    server.after(|_server, call| {
        if call.path.ends_with("/subjectaccessreviews") {
            let spec = &call.body["spec"];
            assert_eq!(spec["groups"], json!(["people"]));
            if spec["nonResourceAttributes"].is_object() {
                return;
            }
            let attributes = &spec["resourceAttributes"];
            assert_eq!(
                (&attributes["verb"], &attributes["group"]),
                (&json!("get"), &json!("flopwatch.dev"))
            );
        }
    });
    server
}

/// One with a user of each kind: who may read nothing, the sessions of `team`, one of them, or
/// their raw captures too.
pub(crate) fn readers() -> ApiServer {
    api_server(
        &["stranger", "reader", "limited", "rawreader"],
        &[
            ("reader", sessions()),
            ("limited", sessions().named("session")),
            ("rawreader", sessions()),
            ("rawreader", raw()),
        ],
    )
}

/// A user that the API server knows.
pub(crate) fn known(user: &str) -> Identity {
    Identity::new(user).in_groups(&["people"])
}

/// The right to read the sessions of `team`.
pub(crate) fn sessions() -> Right {
    Right::resource("get", "flopwatch.dev", "profilingsessions").in_namespace("team")
}

/// The right to read their raw captures.
pub(crate) fn raw() -> Right {
    Right::resource("get", "flopwatch.dev", "profilingsessions/raw").in_namespace("team")
}

/// How often it was asked for reviews of a kind.
pub(crate) fn reviews(server: &ApiServer, resource: &str) -> usize {
    let calls = server.calls().into_iter();
    calls
        .filter(|call| call.path.ends_with(&format!("/{resource}")))
        .count()
}
