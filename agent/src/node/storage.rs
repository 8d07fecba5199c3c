//! Where artifacts are kept: replicas in the object store, and the limits of the node's own disk.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use flopwatch_api::capture::{Capture, CaptureSpec, CaptureStatus};
use flopwatch_api::reason::CaptureReason;
use flopwatch_api::session::StorageMode;
use flopwatch_artifacts::object_store::{Bucket, Limits, ObjectStoreError, cluster_name};
use flopwatch_artifacts::{CaptureId, EvictionLimits, StoreError};
use flopwatch_pipeline::failure::{Failure, chain};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::{info, warn};

use crate::metrics::Metrics;
use crate::node::captures::Captures;
use crate::node::fleet_outbox::{self, Fleet};
use crate::node::sweep::capture_id;
use crate::node::writer::Target;
use crate::node::{Node, Options};
use crate::status::Draft;

/// Time between two looks at what is still to be copied and at the limits.
const POLL_INTERVAL: Duration = Duration::from_mins(1);
/// Captures that are copied at once.
const MAX_CONCURRENT: usize = 2;
/// Longest copy of one capture; the next look goes on with it.
const COPY_TIMEOUT: Duration = Duration::from_mins(30);
/// Longest removal from the object store: what stays is swept later, a capture that is deleted must
/// not wait for it.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(15);

/// What the agent was told of storage.
#[derive(Debug)]
pub struct Storage {
    bucket: Option<Bucket>,
    default: StorageMode,
    patience: Duration,
    bytes: Option<u64>,
    age: Option<Duration>,
    notify: Notify,
}

impl Storage {
    /// With the bucket, and what the flags say.
    pub fn new(bucket: Option<Bucket>, options: &Options) -> Self {
        let age = Duration::from_hours(u64::from(options.artifact_days) * 24);
        Self {
            bucket,
            default: options.store_default,
            patience: Duration::from_secs(options.store_patience_seconds.into()),
            bytes: (options.max_artifact_bytes > 0).then_some(options.max_artifact_bytes),
            age: (!age.is_zero()).then_some(age),
            notify: Notify::new(),
        }
    }

    /// The object store, where there is one.
    pub const fn bucket(&self) -> Option<&Bucket> {
        self.bucket.as_ref()
    }

    /// How long a capture waits for an object store that fails.
    pub const fn patience(&self) -> Duration {
        self.patience
    }

    /// Where a capture's artifacts are to be. A default asks for nothing that the cluster does not
    /// have.
    pub fn mode(&self, spec: &CaptureSpec) -> StorageMode {
        let default = if self.bucket.is_some() {
            self.default
        } else {
            StorageMode::Node
        };
        spec.storage.unwrap_or(default)
    }

    /// Refuses a capture at its start that could not be stored at its end.
    pub fn refuse(&self, spec: &CaptureSpec) -> Result<(), Failure> {
        if self.mode(spec) == StorageMode::Durable && self.bucket.is_none() {
            return Err(self.refusal());
        }
        Ok(())
    }

    /// Why a capture with storage Durable cannot be.
    pub fn refusal(&self) -> Failure {
        let message = "the session asks for storage Durable, and this cluster has no object store: ask its administrator for one \
                       (chart value store.url), or for storage Node";
        Failure::new(CaptureReason::NoObjectStore, message)
    }

    /// There may be something to copy.
    pub fn notify(&self) {
        self.notify.notify_one();
    }

    /// Removes the replicas of a capture, as far as the object store lets it at once.
    pub async fn forget(&self, capture: &CaptureId) {
        let Some(bucket) = &self.bucket else { return };
        match timeout(REMOVAL_TIMEOUT, bucket.remove(capture)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                warn!(capture = capture.name, error = %chain(&error), "replicas of a capture stay until the sweep");
            }
            Err(_) => {
                warn!(capture = capture.name, limit = ?REMOVAL_TIMEOUT, "replicas of a capture stay until the sweep");
            }
        }
    }

    fn limits(&self) -> EvictionLimits {
        EvictionLimits {
            bytes: self.bytes,
            oldest: self.age.and_then(|age| Timestamp::now().checked_sub(age).ok()),
        }
    }
}

/// The object store, where one is named, and the cluster's name in it.
async fn open_bucket(options: &Options, client: &Client) -> Result<Option<(Bucket, String)>, super::Error> {
    if options.store.store_url.is_none() {
        return Ok(None);
    }
    let cluster = cluster_name(client).await?;
    let bucket = options.store.open(&cluster, Limits::default())?;
    if let (Some(_), Some(url)) = (&bucket, &options.store.store_url) {
        info!(%url, default = options.store_default.as_str(), "artifacts are copied to the object store");
    }
    Ok(bucket.map(|bucket| (bucket, cluster)))
}

/// The object store, where one is named, and the way of fleet rows to it.
pub(super) async fn open(
    options: &Options,
    client: &Client,
    metrics: &Metrics,
) -> Result<(Option<Bucket>, Option<Fleet>), super::Error> {
    let (bucket, cluster) = open_bucket(options, client).await?.unzip();
    let fleet = fleet_outbox::open(options, bucket.clone().zip(cluster), metrics);
    let fleet = fleet.map_err(super::io_error("the folder of rows of the fleet cannot be used"))?;
    Ok((bucket, fleet))
}

/// What a failure of the object store means for a capture, and whether trying again may help.
pub(super) fn failure_of(error: &StoreError) -> (Failure, bool) {
    let (reason, passing) = match error {
        StoreError::ObjectStore(error @ (ObjectStoreError::Refused { .. } | ObjectStoreError::NoBucket(_))) => {
            (CaptureReason::ObjectStoreRefused, error.is_transient())
        }
        StoreError::ObjectStore(error) if error.is_transient() => (CaptureReason::ObjectStoreUnavailable, true),
        _ => (CaptureReason::StoreFailed, false),
    };
    (Failure::new(reason, chain(error)), passing)
}

/// What came of a store that does not get ready in time.
pub(super) fn too_slow() -> Failure {
    let message = "the object store did not take the artifacts in time; they stay on the node and are tried again";
    Failure::new(CaptureReason::ObjectStoreUnavailable, message)
}

/// Whether replicas of a capture are still to be made: those of which the status has no digest are
/// read by nobody.
fn is_due(status: &CaptureStatus, mode: StorageMode) -> bool {
    let stored = status.store_url.is_some() && status.store_sha256.is_some();
    mode != StorageMode::Node && !status.artifacts.is_empty() && !stored && status.url.is_some()
}

/// Copies what is to be copied, keeps the limits, and keeps addresses right, until the node is told
/// to stop.
pub(super) async fn keep(node: Arc<Node>, captures: Arc<Captures>) {
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let next = async {
            tokio::select! {
                _ = ticks.tick() => {}
                () = node.storage.notify.notified() => {}
            }
        };
        if node.stop.run_until_cancelled(next).await.is_none() {
            return;
        }
        let ended = captures.ended();
        let work = async {
            readdress(&node, &ended).await;
            evict(&node, &captures, &ended).await;
            copy(&node, &ended).await;
        };
        if node.stop.run_until_cancelled(work).await.is_none() {
            return;
        }
    }
}

/// Says where artifacts are served now: an agent that starts anew has another address.
async fn readdress(node: &Node, ended: &[Arc<Capture>]) {
    for capture in ended {
        let url = node.url_of(capture);
        let elsewhere = capture.status.as_ref().and_then(|status| status.url.as_ref());
        if elsewhere.is_some_and(|known| *known != url) {
            change(node, capture, |draft| draft.serve_at(url.clone())).await;
        }
    }
}

/// Keeps the node's limits.
async fn evict(node: &Node, captures: &Captures, ended: &[Arc<Capture>]) {
    let limits = node.storage.limits();
    if limits == EvictionLimits::default() {
        return;
    }
    let copied = ended.iter().filter(|capture| {
        let status = capture.status.as_ref();
        status.is_some_and(|status| status.store_sha256.is_some())
    });
    let copied: HashSet<CaptureId> = copied.map(|capture| capture_id(capture.as_ref())).collect();
    match node.store.evict_captures(limits, &copied, &captures.busy()).await {
        Ok(gone) => {
            for id in gone {
                info!(
                    namespace = id.namespace,
                    capture = id.name,
                    "artifacts left the node to keep its limits"
                );
                node.metrics.evicted();
                let message = "the node removed the artifacts to keep within its limits of size and age";
                if let Some(capture) = ended.iter().find(|capture| capture_id(capture.as_ref()) == id) {
                    change(node, capture, |draft| draft.evict(message)).await;
                }
            }
        }
        Err(error) => {
            warn!(error = %chain(&error), "the limits of the node's artifacts cannot be kept and are tried again");
        }
    }
}

/// Copies what has no replicas yet and is to have some.
async fn copy(node: &Node, ended: &[Arc<Capture>]) {
    let Some(bucket) = node.storage.bucket() else {
        return;
    };
    let due = ended.iter().filter(|capture| {
        let mode = node.storage.mode(&capture.spec);
        capture.status.as_ref().is_some_and(|status| is_due(status, mode))
    });
    let due: Vec<Arc<Capture>> = due.cloned().collect();
    node.metrics.uploads_due(due.len());
    // Boxed: the compiler cannot tell otherwise that they live long enough.
    let copies: Vec<BoxFuture<'_, ()>> = due
        .iter()
        .map(|capture| copy_one(node, bucket, capture).boxed())
        .collect();
    futures::stream::iter(copies)
        .buffer_unordered(MAX_CONCURRENT)
        .collect::<()>()
        .await;
}

async fn copy_one(node: &Node, bucket: &Bucket, capture: &Capture) {
    let id = capture_id(capture);
    let manifest = match node.store.get(&id.namespace, &id.name).await {
        Ok(Some(manifest)) if manifest.capture == id => manifest,
        // Gone since it was listed.
        Ok(_) => return,
        Err(error) => {
            warn!(capture = id.name, error = %chain(&error), "a capture cannot be copied to the object store");
            return;
        }
    };
    let copied = match timeout(COPY_TIMEOUT, node.store.copy_to(bucket, &manifest)).await {
        Ok(Ok(sha256)) => Ok(sha256),
        Ok(Err(error)) => Err(failure_of(&error).0),
        Err(_) => Err(too_slow()),
    };
    node.metrics.upload(copied.as_ref().err().map(|failure| failure.reason));
    let told = match &copied {
        Ok(sha256) => {
            info!(
                namespace = id.namespace,
                capture = id.name,
                "copied to the object store"
            );
            change(node, capture, |draft| draft.stored(bucket.url(&id), sha256.clone())).await
        }
        Err(failure) => {
            warn!(capture = id.name, reason = %failure.reason, why = failure.message, "the object store did not take a capture");
            change(node, capture, |draft| draft.not_stored(failure)).await
        }
    };
    if !told && copied.is_ok() {
        // Deleted meanwhile: whoever deleted it may have found nothing to remove yet.
        node.storage.forget(&id).await;
    }
}

/// Changes the status of a capture that ended. False when it is gone or going.
async fn change(node: &Node, capture: &Capture, edit: impl Fn(&mut Draft)) -> bool {
    let target = Target::new(node.client.clone(), capture);
    let seen = match target.read().await {
        Ok(Some(seen)) if seen.metadata.deletion_timestamp.is_none() => seen,
        Ok(_) => return false,
        Err(error) => {
            warn!(error = %chain(&error), "the status of a capture is changed later");
            return true;
        }
    };
    let before = Draft::new(seen.status.as_ref(), seen.metadata.generation);
    let mut draft = before.clone();
    edit(&mut draft);
    if draft != before
        && let Err(error) = target.apply_over(&seen, draft.status()).await
    {
        warn!(error = %chain(&error), "the status of a capture is changed later");
    }
    true
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use serde_json::json;

    use super::*;
    use crate::cli::{Cli, Command};

    fn storage(flags: &[&str], bucket: bool) -> Storage {
        drop(rustls::crypto::ring::default_provider().install_default());
        let fixed = [
            "flopwatch-agent",
            "run",
            "--node-name=n",
            "--advertise-address=127.0.0.1",
        ];
        let named = bucket.then_some("--store-url=s3://profiles/x");
        let line = fixed.into_iter().chain(named).chain(flags.iter().copied());
        let Command::Run(options) = Cli::parse_from(line).command else {
            unreachable!("it says run");
        };
        let bucket = options.store.open("cluster", Limits::default()).unwrap();
        Storage::new(bucket, &options)
    }

    fn spec(storage: Option<&str>) -> CaptureSpec {
        serde_json::from_value(json!({
            "sessionRef": {"name": "s", "id": "0123abcd"}, "nodeName": "n", "podRef": {"name": "p", "uid": "u"},
            "containerName": "main", "durationSeconds": 5, "startDeadlineSeconds": 60, "outputs": ["Timeline"],
            "storage": storage
        }))
        .unwrap()
    }

    #[test]
    fn a_default_asks_for_nothing_that_the_cluster_lacks_and_a_session_is_refused_what_it_lacks() {
        let durable = ["--store-default=Durable"];
        for (flags, bucket, asked, mode) in [
            (&[][..], true, None, StorageMode::Replicated),
            (&[], false, None, StorageMode::Node),
            (&durable, true, None, StorageMode::Durable),
            (&durable, true, Some("Node"), StorageMode::Node),
            (&[], true, Some("Durable"), StorageMode::Durable),
            (&[], false, Some("Durable"), StorageMode::Durable),
        ] {
            let (storage, spec) = (storage(flags, bucket), spec(asked));
            assert_eq!(storage.mode(&spec), mode, "{flags:?} {bucket} {asked:?}");
            let refused = storage.refuse(&spec).err().map(|failure| failure.reason);
            let lacks = mode == StorageMode::Durable && !bucket;
            assert_eq!(refused, lacks.then_some(CaptureReason::NoObjectStore), "{asked:?}");
        }
    }

    #[test]
    fn what_the_object_store_refuses_and_what_passes_have_reasons_of_their_own() {
        let unavailable = ObjectStoreError::Slow {
            what: "writing",
            limit: Duration::from_secs(1),
        };
        let refused = ObjectStoreError::NoBucket("profiles".to_owned());
        let source = ObjectStoreError::Source {
            name: "timeline.h5".to_owned(),
            reason: "it is gone".to_owned(),
        };
        for (error, reason, passing) in [
            (unavailable, CaptureReason::ObjectStoreUnavailable, true),
            (refused, CaptureReason::ObjectStoreRefused, false),
            (source, CaptureReason::StoreFailed, false),
        ] {
            let (failure, again) = failure_of(&StoreError::from(error));
            assert_eq!((failure.reason, again), (reason, passing), "{failure}");
        }
    }

    #[test]
    fn what_is_on_the_node_and_not_in_the_store_is_due() {
        let artifact = json!([{"name": "a", "type": "Summary", "bytes": 1, "sha256": "0", "mediaType": "x"}]);
        let status = |value: serde_json::Value| -> CaptureStatus { serde_json::from_value(value).unwrap() };
        let here = status(json!({"artifacts": artifact, "url": "https://10.0.0.1:8443/x"}));
        let there = status(json!({
            "artifacts": artifact, "url": "https://10.0.0.1:8443/x", "storeUrl": "s3://b/x", "storeSha256": "0a".repeat(32)
        }));
        let gone = status(json!({"artifacts": artifact, "storeUrl": "s3://b/x", "storeSha256": "0a".repeat(32)}));
        // As an earlier version left it.
        let unverified =
            status(json!({"artifacts": artifact, "url": "https://10.0.0.1:8443/x", "storeUrl": "s3://b/x"}));
        assert!(is_due(&here, StorageMode::Replicated) && is_due(&here, StorageMode::Durable));
        assert!(is_due(&unverified, StorageMode::Replicated));
        assert!(!is_due(&here, StorageMode::Node) && !is_due(&there, StorageMode::Replicated));
        assert!(!is_due(&gone, StorageMode::Replicated) && !is_due(&CaptureStatus::default(), StorageMode::Replicated));
    }
}
