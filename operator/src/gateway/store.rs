//! Reads artifacts from the object store, where the agent of the capture's node cannot give them.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Response};
use flopwatch_api::artifact::Artifact;
use flopwatch_api::capture::Capture;
use flopwatch_artifacts::CaptureId;
use flopwatch_artifacts::object_store::{Bucket, ObjectStoreError, Stored};
use flopwatch_http::answer;
use futures::TryStreamExt as _;
use kube::ResourceExt as _;
use moka::sync::Cache;
use prometheus::IntCounterVec;
use tokio::sync::OwnedSemaphorePermit;

use crate::gateway::problem::Problem;
use crate::lru::lru;

/// Most captures whose manifests are cached.
const MAX_CACHED_MANIFESTS: u64 = 64;

fn id_of(capture: &Capture) -> CaptureId {
    CaptureId {
        namespace: capture.namespace().unwrap_or_default(),
        name: capture.name_any(),
        uid: capture.uid().unwrap_or_default(),
    }
}

/// SHA-256 of the manifest of a capture's replicas, as its status says.
pub(crate) fn stored_sha256(capture: &Capture) -> Option<&str> {
    capture.status.as_ref()?.store_sha256.as_deref()
}

/// Artifacts in the object store, verified against the status of their captures.
#[derive(Debug)]
pub(crate) struct ObjectStore {
    bucket: Bucket,
    /// Manifests by the UID of their capture, each as the capture's status named it. Objects are
    /// named by their content: what a manifest says of them stays true.
    manifests: Cache<String, Stored>,
    reads: IntCounterVec,
}

impl ObjectStore {
    /// Reads from `bucket`, and counts each read by result in `reads`.
    pub(crate) fn new(bucket: Bucket, reads: IntCounterVec) -> Self {
        Self {
            bucket,
            manifests: lru(MAX_CACHED_MANIFESTS).build(),
            reads,
        }
    }

    /// The bucket that is read from.
    pub(crate) const fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// SHA-256 of the manifest of a capture's replicas. The problem is `Store` with `Unverified`
    /// where the capture's status names none: a replica is not trusted without it.
    pub(crate) fn manifest_of<'a>(&self, capture: &'a Capture) -> Result<&'a str, Problem> {
        stored_sha256(capture)
            .ok_or_else(|| Problem::Store(ObjectStoreError::Unverified(self.bucket.url(&id_of(capture)))))
    }

    /// Answers a request for an artifact as an agent does; `permit` is held until the body ends.
    pub(crate) async fn fetch(
        &self,
        capture: &Capture,
        artifact: &Artifact,
        method: &Method,
        asked: &HeaderMap,
        permit: OwnedSemaphorePermit,
    ) -> Result<Response<Body>, Problem> {
        let answered = self.answer(capture, artifact, method, asked, permit).await;
        let result = match &answered {
            Ok(_) | Err(Problem::Range(_)) => "served",
            Err(Problem::Store(ObjectStoreError::Corrupt { .. } | ObjectStoreError::Unverified(_))) => "corrupt",
            Err(_) => "failed",
        };
        self.reads.with_label_values(&[result]).inc();
        answered
    }

    async fn answer(
        &self,
        capture: &Capture,
        artifact: &Artifact,
        method: &Method,
        asked: &HeaderMap,
        permit: OwnedSemaphorePermit,
    ) -> Result<Response<Body>, Problem> {
        let stored = self.find(capture, artifact).await?;
        let head = answer(asked, artifact, &artifact.name).map_err(Problem::Range)?;
        let mut response = Response::new(Body::empty());
        *response.status_mut() = head.status;
        *response.headers_mut() = head.headers;
        let Some(range) = head.range.filter(|_| method != Method::HEAD) else {
            return Ok(response);
        };
        let content = self.bucket.read(&stored, artifact, range).await;
        let content = content
            .inspect_err(|_failed| self.forget(capture))
            .map_err(Problem::Store)?;
        let reads = self.reads.clone();
        let pieces = content.inspect_err(move |error| {
            let result = if matches!(error, ObjectStoreError::Corrupt { .. }) {
                "corrupt"
            } else {
                "failed"
            };
            reads.with_label_values(&[result]).inc();
        });
        let pieces = futures::stream::try_unfold((pieces, permit), async |(mut pieces, permit)| {
            let piece: Option<Bytes> = pieces.try_next().await?;
            Ok::<_, ObjectStoreError>(piece.map(|piece| (piece, (pieces, permit))))
        });
        *response.body_mut() = Body::from_stream(pieces);
        Ok(response)
    }

    /// What the store holds of a capture: the manifest that the capture's status names, and none
    /// that another node wrote in its place. It must hold the artifact that the status names.
    async fn find(&self, capture: &Capture, artifact: &Artifact) -> Result<Stored, Problem> {
        let uid = capture.uid().unwrap_or_default();
        let id = id_of(capture);
        let sha256 = self.manifest_of(capture)?;
        let holds = |stored: &Stored| {
            let found = stored.manifest.artifact(&artifact.name);
            let same = |found: &Artifact| found.sha256 == artifact.sha256 && found.bytes == artifact.bytes;
            stored.sha256 == sha256 && found.is_some_and(same)
        };
        if let Some(stored) = self.manifests.get(&uid).filter(holds) {
            return Ok(stored);
        }
        let stored = self.bucket.find(&id, sha256).await.map_err(Problem::Store)?;
        let stored = stored.ok_or_else(|| Problem::Store(ObjectStoreError::Missing(self.bucket.url(&id))))?;
        if !holds(&stored) {
            let other = ObjectStoreError::Corrupt {
                key: self.bucket.url(&id),
                reason: format!("its manifest has another {} than the capture's status", artifact.name),
            };
            return Err(Problem::Store(other));
        }
        self.manifests.insert(uid, stored.clone());
        Ok(stored)
    }

    fn forget(&self, capture: &Capture) {
        self.manifests.invalidate(&capture.uid().unwrap_or_default());
    }
}
