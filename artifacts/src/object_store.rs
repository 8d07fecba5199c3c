//! Artifacts in an object store that outlives nodes: S3, or a server that speaks like it.
//!
//! ```text
//! <prefix>/<cluster>/captures/<namespace>/<capture>/<uid>/<sha256>        content of an artifact, named by its SHA-256
//! <prefix>/<cluster>/captures/<namespace>/<capture>/<uid>/manifest.json   what belongs to the capture; written last
//! <prefix>/<cluster>/fleet/...                                            rows of the fleet; docs/fleet.md
//! ```
//!
//! Every capture has objects of its own, so that a capture can be removed without regard to others.
//! The cluster's part of the path separates clusters that share a bucket.
//!
//! Nodes' agents [publish](Bucket::publish) and [remove](Bucket::remove), the gateway
//! [reads](Bucket::read), the controller [sweeps](Bucket::sweep). What is read is checked block by
//! block before it is handed on.
//!
//! All nodes may share one credential, so that root on any of them can write every object. The
//! chain of digests therefore begins outside of the bucket: the capture's status, which its own
//! node's agent alone can write, has the SHA-256 of the manifest, and the manifest has those of the
//! blocks. Content of another writer is [refused](Bucket::find).

mod blocks;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(feature = "cluster")]
mod credentials;
mod error;
mod fleet_files;
#[cfg(feature = "cluster")]
mod location;
mod read;
mod remove;
mod upload;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use object_store::ObjectStore;
use object_store::path::Path;
use tokio::sync::Semaphore;

use crate::manifest::CaptureId;

#[cfg(feature = "cluster")]
pub use cluster::{ClusterError, cluster_name};
pub use error::ObjectStoreError;
pub use fleet_files::FleetFile;
#[cfg(feature = "cluster")]
pub use location::{Location, LocationError, StoreArguments};
pub use read::{Content, Stored};
pub use remove::Swept;
pub use upload::Contents;

/// Name of the object that is written last.
const MANIFEST: &str = "manifest.json";

/// Most objects that are remembered as damaged.
const MAX_DAMAGED_REMEMBERED: usize = 1024;

/// Limits on requests to the object store.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Most captures that are uploaded at once.
    pub uploads: usize,
    /// Most parts of one artifact that are under way at once; each takes 8 MiB of memory.
    pub parts: usize,
    /// Longest upload of one artifact.
    pub upload: Duration,
    /// Longest wait for the head of an answer, retries included, and longest pause between two
    /// pieces of a body.
    pub answer: Duration,
    /// Least age of objects that a sweep removes: the capture of younger ones may be newer than the
    /// list of captures.
    pub grace: Duration,
}

impl Default for Limits {
    /// Two captures at once in 4 parts each, 15 min for an artifact, 30 s for an answer, an hour of
    /// grace.
    fn default() -> Self {
        Self {
            uploads: 2,
            parts: 4,
            upload: Duration::from_mins(15),
            answer: Duration::from_secs(30),
            grace: Duration::from_hours(1),
        }
    }
}

/// The part of a bucket that belongs to one cluster; clones share its limits. No connection is kept
/// open: a store that is down at the start is used once it is back.
#[derive(Clone, Debug)]
pub struct Bucket {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    objects: Arc<dyn ObjectStore>,
    /// Name of the bucket, for messages.
    name: String,
    root: Path,
    limits: Limits,
    uploads: Semaphore,
    /// Keys of objects that were found damaged, with the entity tag of that time.
    damaged: Mutex<BTreeMap<String, Option<String>>>,
}

impl Bucket {
    /// The part below the path `root` of the bucket `objects`, whose name in messages is `name`.
    pub fn new(objects: Arc<dyn ObjectStore>, name: &str, root: Path, limits: Limits) -> Self {
        Self {
            inner: Arc::new(Inner {
                objects,
                name: name.to_owned(),
                root,
                uploads: Semaphore::new(limits.uploads),
                limits,
                damaged: Mutex::default(),
            }),
        }
    }

    /// URL of the folder with a capture's artifacts, `s3://BUCKET/.../`, without credentials.
    pub fn url(&self, capture: &CaptureId) -> String {
        format!("s3://{}/{}/", self.inner.name, self.inner.folder(capture))
    }
}

impl Inner {
    fn captures(&self) -> Path {
        self.root.clone().join("captures")
    }

    fn folder(&self, capture: &CaptureId) -> Path {
        self.captures()
            .join(capture.namespace.as_str())
            .join(capture.name.as_str())
            .join(capture.uid.as_str())
    }

    /// Records that an object with this entity tag is damaged.
    fn record_damaged(&self, key: &Path, tag: Option<String>) {
        let mut damaged = self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        if damaged.len() >= MAX_DAMAGED_REMEMBERED {
            damaged.clear();
        }
        damaged.insert(key.to_string(), tag);
    }

    fn is_damaged(&self, key: &Path, tag: Option<&str>) -> bool {
        let damaged = self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        damaged.get(key.as_ref()).is_some_and(|known| known.as_deref() == tag)
    }
}
