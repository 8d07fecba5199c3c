//! An artifact service as an agent runs it, over TLS.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use flopwatch_api::artifact::Output;
use flopwatch_api::capture::SessionReference;
use flopwatch_api::{agent_audience, agent_server_name};
use flopwatch_artifacts::object_store::Bucket;
use flopwatch_artifacts::{
    Access, ArtifactMetrics, ArtifactService, CaptureId, ConversionLimits, Converter, Manifest, Publication,
    SourceFile, Store, StoreOptions,
};
use flopwatch_http::{Reviewer, ReviewerOptions};
use flopwatch_http::{Server, ServerLimits};
use jiff::Timestamp;
use kube::Client;
use prometheus::Registry;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::certificates::{Material, Names, carry_out, decide};

/// Name in the agents' certificates.
pub(super) const AGENT_NAME: &str = "flopwatch-agent.flopwatch.svc";
/// Node of the capture `train-a` and its agent.
pub(super) const NODE: &str = "node";
/// The other node, where there is one.
pub(super) const OTHER_NODE: &str = "other-node";

/// What agents make derived artifacts with, and where they keep copies.
#[derive(Clone)]
pub(super) struct AgentSetup<'a> {
    pub(super) client: Client,
    /// In a folder that it is given.
    pub(super) converter: &'a dyn Fn(PathBuf) -> Arc<dyn Converter>,
    pub(super) limits: ConversionLimits,
    pub(super) bucket: Option<Bucket>,
}

/// One that holds the capture `train-a` of the session `team/train`.
pub(super) struct Agent {
    pub(super) address: SocketAddr,
    pub(super) folder: TempDir,
    pub(super) store: Arc<Store>,
    /// Manifest of the capture that the agent published.
    pub(super) manifest: Manifest,
    pub(super) stop: CancellationToken,
    /// SHA-256 of the manifest in the object store, of what it copied there last.
    stored: Mutex<Option<String>>,
    registry: Registry,
}

impl Agent {
    /// That of [`NODE`], with this timeline.
    pub(super) async fn publishing(timeline: &[u8], setup: AgentSetup<'_>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_certificate(folder.path());
        let registry = Registry::new();
        let (store, metrics) = open_store(folder.path(), &registry).await;
        let manifest = publish(&store, folder.path(), timeline, "train-a", ("train", "0badcafe")).await;
        Self::serve(NODE, folder, store, manifest, (metrics, registry), setup).await
    }

    /// That of [`OTHER_NODE`], which holds nothing, with the certificate of this one.
    pub(super) async fn another(&self, setup: AgentSetup<'_>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for file in ["tls.crt", "tls.key", "ca.crt"] {
            std::fs::copy(self.folder.path().join(file), folder.path().join(file)).unwrap();
        }
        let registry = Registry::new();
        let (store, metrics) = open_store(folder.path(), &registry).await;
        Self::serve(
            OTHER_NODE,
            folder,
            store,
            self.manifest.clone(),
            (metrics, registry),
            setup,
        )
        .await
    }

    async fn serve(
        node: &str,
        folder: TempDir,
        store: Store,
        manifest: Manifest,
        (metrics, registry): (ArtifactMetrics, Registry),
        setup: AgentSetup<'_>,
    ) -> Self {
        let store = Arc::new(store);
        let reviews = ReviewerOptions {
            service_audience: Some(agent_audience(node)),
            ..ReviewerOptions::default()
        };
        let access = Access::Kubernetes(Box::new(Reviewer::new(setup.client, reviews, metrics.reviews())));
        let converter = (setup.converter)(folder.path().join("conversion"));
        let (limits, bucket) = (setup.limits, setup.bucket);
        let service = ArtifactService::converting(Arc::clone(&store), access, metrics, converter, limits, bucket);
        let any = ([127, 0, 0, 1], 0).into();
        let server = Server::bind_tls(&service, any, folder.path(), ServerLimits::default())
            .await
            .unwrap();
        let stop = CancellationToken::new();
        let address = server.local_addr();
        tokio::spawn(server.run(stop.clone()));
        Self {
            address,
            folder,
            store,
            manifest,
            stop,
            stored: Mutex::default(),
            registry,
        }
    }

    /// Publishes another capture, of that session.
    pub(super) async fn publish(&self, timeline: &[u8], capture: &str, session: (&str, &str)) -> Manifest {
        publish(&self.store, self.folder.path(), timeline, capture, session).await
    }

    /// Publishes a capture of that session of which the raw file is kept alone; its artifacts as a
    /// status has them.
    pub(super) async fn publish_raw(&mut self, report: &[u8], capture: &str, session: (&str, &str)) -> Value {
        let report = file(
            self.folder.path(),
            "capture.nsys-rep",
            Output::Raw,
            "application/octet-stream",
            report,
        );
        self.manifest = publish_files(&self.store, &[report], capture, session).await;
        serde_json::to_value(&self.manifest.artifacts).unwrap()
    }

    /// Timelines of other nodes that it took.
    pub(super) fn inputs_taken(&self) -> u64 {
        let text = prometheus::TextEncoder::new()
            .encode_to_string(&self.registry.gather())
            .unwrap();
        let series = "flopwatch_artifact_inputs_total{result=\"taken\"} ";
        let line = text.lines().find_map(|line| line.strip_prefix(series));
        line.unwrap().parse().unwrap()
    }

    /// Closes its port, as if its node were gone.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Copies what it published to the object store.
    pub(super) async fn copy_to(&self, bucket: &Bucket) {
        let sha256 = self.store.copy_to(bucket, &self.manifest).await.unwrap();
        *self.stored.lock().unwrap() = Some(sha256);
    }

    /// What a status says of its copy: the SHA-256 of the manifest there, or that of none.
    pub(super) fn stored(&self) -> String {
        let stored = self.stored.lock().unwrap().clone();
        stored.unwrap_or_else(|| "0".repeat(64))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Makes the certificate of every node's agent.
fn write_certificate(folder: &Path) {
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

async fn open_store(folder: &Path, registry: &Registry) -> (Store, ArtifactMetrics) {
    let metrics = ArtifactMetrics::register(registry).unwrap();
    let options = StoreOptions {
        free_bytes_floor: 0,
        ..StoreOptions::default()
    };
    let store = Store::open(&folder.join("store"), options, metrics.clone()).await;
    (store.unwrap(), metrics)
}

async fn publish(store: &Store, folder: &Path, timeline: &[u8], capture: &str, session: (&str, &str)) -> Manifest {
    let file = |name, output, media_type, content| file(folder, name, output, media_type, content);
    let files = [
        file("timeline.h5", Output::Timeline, "application/x-hdf5", timeline),
        file("summary.json", Output::Summary, "application/json", b"{}"),
        file("capture.nsys-rep", Output::Raw, "application/octet-stream", b"secret"),
    ];
    publish_files(store, &files, capture, session).await
}

fn file(folder: &Path, name: &str, output: Output, media_type: &str, content: &[u8]) -> SourceFile {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    SourceFile {
        name: name.into(),
        output,
        media_type: media_type.into(),
        content: Arc::new(std::fs::File::open(path).unwrap()),
    }
}

async fn publish_files(store: &Store, files: &[SourceFile], capture: &str, (session, id): (&str, &str)) -> Manifest {
    let publication = Publication {
        capture: CaptureId {
            namespace: "team".into(),
            name: capture.into(),
            uid: format!("uid-of-{capture}"),
        },
        session: SessionReference {
            name: session.into(),
            id: id.into(),
        },
        created: Timestamp::UNIX_EPOCH,
        captured: Vec::new(),
    };
    store.publish(publication, files).await.unwrap()
}
