//! Where artifacts are kept: in the node's own store, and in the object store where there is one.

pub(super) mod replication;

use std::time::Duration;

use flopwatch_api::capture::CaptureSpec;
use flopwatch_api::reason::CaptureReason;
use flopwatch_api::session::StorageMode;
use flopwatch_artifacts::object_store::{Bucket, Limits, ObjectStoreError, cluster_name};
use flopwatch_artifacts::{CaptureId, EvictionLimits, StoreError};
use flopwatch_pipeline::failure::{Failure, chain};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use tokio::sync::Notify;
use tokio::time::timeout;
use tracing::{info, warn};

use crate::metrics::Metrics;
use crate::node::Options;
use crate::node::error::{Error, io_error};
use crate::node::fleet_outbox::{self, Fleet};

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
async fn open_bucket(options: &Options, client: &Client) -> Result<Option<(Bucket, String)>, Error> {
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
) -> Result<(Option<Bucket>, Option<Fleet>), Error> {
    let (bucket, cluster) = open_bucket(options, client).await?.unzip();
    let fleet = fleet_outbox::open(options, bucket.clone().zip(cluster), metrics);
    let fleet = fleet.map_err(io_error("the folder of rows of the fleet cannot be used"))?;
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
}
