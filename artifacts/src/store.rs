//! Publishes, reads and removes the artifacts of captures.

mod derived;
mod disk;
mod eviction;
mod integrity;
mod received;
mod replicas;
mod sweep;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flopwatch_api::artifact::{Artifact, Output};
use flopwatch_api::capture::SessionReference;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, WriteMultipart};
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, RwLock};

use crate::manifest::{
    CaptureId, MANIFEST_VERSION, MAX_MANIFEST_BYTES, Manifest, ManifestError, check_name, is_sha256,
};
use crate::metrics::ArtifactMetrics;
use crate::object_store::{Bucket, ObjectStoreError, Stored};

pub use eviction::EvictionLimits;
pub use sweep::Swept;

/// Bytes that are read, hashed and handed on at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// Bytes of one part of an upload; S3 takes no part below 5 MiB.
const PART_BYTES: usize = 8 * 1024 * 1024;

/// Files of a publication that are copied beside each other: most of the time of a small one is the
/// disk's.
const CONCURRENT_COPIES: usize = 4;

/// The limits of a store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Free bytes that a publication must leave on the store's file system.
    pub free_bytes_floor: u64,
    /// Bytes of all results that were made on demand; the oldest go first. Timelines that are
    /// handed over for one may take as much.
    pub derived_bytes: u64,
    /// How long a result is kept.
    pub derived_age: Duration,
}

impl Default for StoreOptions {
    /// Leaves 1 GiB; results take 4 GiB at most and are kept for a day.
    fn default() -> Self {
        Self {
            free_bytes_floor: 1 << 30,
            derived_bytes: 4 << 30,
            derived_age: Duration::from_hours(24),
        }
    }
}

/// The metadata of a publication.
#[derive(Clone, Debug)]
pub struct Publication {
    /// The capture that the files are of.
    pub capture: CaptureId,
    /// The session that the capture belongs to.
    pub session: SessionReference,
    /// When it is published.
    pub created: Timestamp,
    /// As in [`Manifest`].
    pub captured: Vec<String>,
}

/// A file to publish. It is copied.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Name of the artifact, unique within the capture: a lower-case DNS name such as
    /// `timeline.h5`.
    pub name: String,
    /// Which output it is. Raw is published as sensitive.
    pub output: Output,
    /// Media type, served as `Content-Type`.
    pub media_type: String,
    /// The content, opened by the caller, who knows how far its folder can be trusted; it is read
    /// from its beginning.
    pub content: Arc<File>,
}

/// Where the artifacts of a capture are read.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// In this store.
    Node,
    /// In the object store: the capture is of another node.
    ObjectStore(Bucket, Box<Stored>),
    /// The gateway uploaded it: the capture is of another node. None when its content is gone
    /// again.
    Received(Option<Arc<File>>),
}

/// The captures in a store.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Manifests that can be read, by namespace and name.
    pub manifests: Vec<Manifest>,
    /// Manifests that cannot be read: namespace, name and why.
    pub unreadable: Vec<(String, String, String)>,
}

/// Size of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Objects that the store holds.
    pub objects: u64,
    /// Bytes of the objects.
    pub bytes: u64,
}

/// Why an operation of the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has the store open.
    #[error("{0} is in use by another process: a store has one agent")]
    InUse(PathBuf),
    /// The file system would be left with less than the floor. Nothing was kept.
    #[error(
        "publishing {needed} bytes would leave less than {floor} of {available} free bytes: free some space on the node or lower the floor"
    )]
    NoSpace {
        /// Bytes that were to be written.
        needed: u64,
        /// Bytes that must stay free.
        floor: u64,
        /// Bytes that are free.
        available: u64,
    },
    /// The request or a manifest does not hold together.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The manifest of this capture cannot be read.
    #[error("the manifest of {namespace}/{name} cannot be read: {reason}")]
    Unreadable {
        /// Namespace of the capture.
        namespace: String,
        /// Name of the capture.
        name: String,
        /// What is wrong with its text.
        reason: String,
    },
    /// An object is missing or its content does not match its name.
    #[error("object {sha256} is corrupt: {reason}")]
    Corrupt {
        /// The SHA-256 that the content should have.
        sha256: String,
        /// What was found instead.
        reason: String,
    },
    /// A result is larger than all together may be. It was not kept.
    #[error("a derived artifact of {bytes} bytes is more than the {limit} that all derived artifacts may take")]
    DerivedTooLarge {
        /// Bytes of this one.
        bytes: u64,
        /// Bytes that all derived artifacts may take.
        limit: u64,
    },
    /// The capture was removed, or published anew, while a derived artifact of it was made.
    #[error("the capture {namespace}/{name} was removed or published anew meanwhile")]
    CaptureChanged {
        /// Namespace of the capture.
        namespace: String,
        /// Name of the capture.
        name: String,
    },
    /// A timeline that was to be handed over is larger than what may be here of them.
    #[error("{bytes} bytes do not fit into the {limit} that timelines of other nodes may take")]
    InputTooLarge {
        /// Size of the content, in bytes.
        bytes: u64,
        /// Bytes that all of them may take.
        limit: u64,
    },
    /// What was handed over is not what it was called. It was not kept.
    #[error("what came is not {sha256}: {reason}")]
    InputDiffers {
        /// The SHA-256 that the content should have.
        sha256: String,
        /// What was found instead.
        reason: String,
    },
    /// What was to be handed over did not come to its end.
    #[error("it did not come to its end: {0}")]
    InputBroken(String),
    /// The object store failed.
    #[error(transparent)]
    ObjectStore(#[from] ObjectStoreError),
    /// A file to publish changed its size while it was read.
    #[error("{name} changed while it was published: {expected} bytes became {found}")]
    SourceChanged {
        /// Name of the artifact.
        name: String,
        /// Size of the file when it was opened, in bytes.
        expected: u64,
        /// Bytes that were read.
        found: u64,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder, below the store's root.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The store on the node's disk failed.
    #[error(transparent)]
    Objects(#[from] object_store::Error),
    /// A task of the store was cancelled or panicked.
    #[error("a task of the store ended early: {0}")]
    Task(#[from] tokio::task::JoinError),
}

/// The artifacts of a node's captures.
///
/// Reads run beside everything; removals wait for publications that are under way, so that they see
/// whole captures.
#[derive(Debug)]
pub struct Store {
    objects: Arc<dyn ObjectStore>,
    disk: disk::Disk,
    options: StoreOptions,
    metrics: ArtifactMetrics,
    verified: integrity::Verified,
    next_upload: AtomicU64,
    received: received::Received,
    /// Held shared by publications, exclusively by removals.
    contents: RwLock<()>,
    /// Held by whoever changes a record of results; taken after `contents`.
    derived_change: Mutex<()>,
}

impl Store {
    /// Opens the store under `root`, which is created when absent, takes it for this process, and
    /// removes copies that an earlier process did not finish.
    pub async fn open(root: &FilePath, options: StoreOptions, metrics: ArtifactMetrics) -> Result<Self, StoreError> {
        let root = root.to_path_buf();
        let (disk, objects) = tokio::task::spawn_blocking(move || disk::Disk::open(root)).await??;
        let store = Self {
            objects,
            disk,
            options,
            metrics,
            verified: integrity::Verified::default(),
            next_upload: AtomicU64::new(0),
            received: received::Received::default(),
            contents: RwLock::new(()),
            derived_change: Mutex::new(()),
        };
        store.remove_temporary().await?;
        // Records of older layouts go with this; the sweep removes what they named.
        store.all_derived().await?;
        store.usage().await?;
        Ok(store)
    }

    /// Stores copies of `files` and then the manifest that names them. Until the manifest stands
    /// nobody sees anything of it; a capture that was published before is replaced. Safe to repeat.
    pub async fn publish(&self, publication: Publication, files: &[SourceFile]) -> Result<Manifest, StoreError> {
        let contents = self.contents.read().await;
        let mut manifest = Manifest {
            version: MANIFEST_VERSION,
            capture: publication.capture,
            session: publication.session,
            created: publication.created,
            artifacts: files.iter().map(placeholder).collect(),
            captured: publication.captured,
        };
        // Names first: nothing is copied for a request that cannot be published.
        manifest.validate()?;
        let mut sizes = Vec::with_capacity(files.len());
        for file in files {
            sizes.push(file.bytes()?);
        }
        self.refuse_below_floor(sizes.iter().copied().fold(0, u64::saturating_add))?;
        let pairs = files.iter().zip(&sizes);
        let copies: Vec<_> = pairs.map(|(file, size)| self.copy_in(file, *size)).collect();
        // All of them to their end: one that is dropped half-way is swept much later.
        let hashes: Vec<_> = stream::iter(copies).buffered(CONCURRENT_COPIES).collect().await;
        for ((sha256, size), artifact) in hashes.into_iter().zip(sizes).zip(&mut manifest.artifacts) {
            artifact.sha256 = sha256?;
            artifact.bytes = i64::try_from(size).unwrap_or(i64::MAX);
        }
        let text = serde_json::to_vec(&manifest).map_err(ManifestError::from)?;
        let path = manifest_path(&manifest.capture.namespace, &manifest.capture.name);
        self.objects.put(&path, text.into()).await?;
        drop(contents);
        self.usage().await?;
        Ok(manifest)
    }

    /// The manifest of a capture, or `None` when nothing was published for it.
    pub async fn get(&self, namespace: &str, capture: &str) -> Result<Option<Manifest>, StoreError> {
        check_name("namespace", namespace)?;
        check_name("capture", capture)?;
        let unreadable = |reason: String| StoreError::Unreadable {
            namespace: namespace.to_owned(),
            name: capture.to_owned(),
            reason,
        };
        let found = match self.objects.get(&manifest_path(namespace, capture)).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if found.meta.size > MAX_MANIFEST_BYTES {
            return Err(unreadable(format!(
                "{} bytes are too many for a manifest",
                found.meta.size
            )));
        }
        let text = found.bytes().await?;
        Manifest::parse(&text, namespace, capture)
            .map(Some)
            .map_err(|error| unreadable(error.to_string()))
    }

    /// Everything that is in the store. A manifest that cannot be read does not hide the others.
    pub async fn list(&self) -> Result<Listing, StoreError> {
        let mut listing = Listing::default();
        for (namespace, name) in self.capture_keys().await? {
            match self.get(&namespace, &name).await {
                Ok(Some(manifest)) => listing.manifests.push(manifest),
                // Removed since its place was listed.
                Ok(None) => {}
                Err(StoreError::Unreadable {
                    namespace,
                    name,
                    reason,
                }) => listing.unreadable.push((namespace, name, reason)),
                // Of one entry, as of an unreadable one, nothing follows for the others.
                Err(error) => listing.unreadable.push((namespace, name, error.to_string())),
            }
        }
        Ok(listing)
    }

    /// Removes a capture's manifest, and the objects that no other capture shares. False when there
    /// was none: safe to repeat.
    pub async fn delete(&self, namespace: &str, capture: &str) -> Result<bool, StoreError> {
        check_name("namespace", namespace)?;
        check_name("capture", capture)?;
        let contents = self.contents.write().await;
        match self.get(namespace, capture).await {
            Ok(None) => return Ok(false),
            // What an unreadable one refers to cannot be known; the sweep finds it.
            Ok(Some(_)) | Err(StoreError::Unreadable { .. }) => {}
            Err(error) => return Err(error),
        }
        self.remove(&manifest_path(namespace, capture)).await?;
        self.remove_derived(&(namespace.to_owned(), capture.to_owned())).await?;
        self.remove_unreferenced().await?;
        drop(contents);
        self.usage().await?;
        Ok(true)
    }

    /// Size of the store; the gauges follow.
    pub async fn usage(&self) -> Result<Usage, StoreError> {
        let mut usage = Usage::default();
        for bytes in self.stored().await?.into_values() {
            usage.objects += 1;
            usage.bytes = usage.bytes.saturating_add(bytes);
        }
        self.metrics
            .store_objects
            .set(i64::try_from(usage.objects).unwrap_or(i64::MAX));
        self.metrics
            .store_bytes
            .set(i64::try_from(usage.bytes).unwrap_or(i64::MAX));
        Ok(usage)
    }

    /// Copies one file in and returns its SHA-256. The object appears whole or not at all.
    async fn copy_in(&self, source: &SourceFile, size: u64) -> Result<String, StoreError> {
        let staged = Path::from(format!("incoming/{}", self.next_upload.fetch_add(1, Ordering::Relaxed)));
        let mut upload = WriteMultipart::new_with_chunk_size(self.objects.put_multipart(&staged).await?, PART_BYTES);
        let copied = copy_stream(source, size, &mut upload).await;
        let sha256 = match copied {
            Ok(sha256) => sha256,
            Err(error) => {
                upload.abort().await?;
                return Err(error);
            }
        };
        upload.finish().await?;
        self.objects.rename(&staged, &object_path(&sha256)).await?;
        Ok(sha256)
    }

    fn refuse_below_floor(&self, needed: u64) -> Result<(), StoreError> {
        let available = self.disk.available()?;
        let floor = self.options.free_bytes_floor;
        if available.saturating_sub(needed) < floor {
            return Err(StoreError::NoSpace {
                needed,
                floor,
                available,
            });
        }
        Ok(())
    }

    /// Objects and their sizes.
    async fn stored(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        let metas: Vec<_> = self.objects.list(Some(&Path::from("objects"))).try_collect().await?;
        Ok(metas
            .into_iter()
            .filter_map(|meta| {
                let sha256 = meta.location.filename()?.to_owned();
                is_sha256(&sha256).then_some((sha256, meta.size))
            })
            .collect())
    }

    /// Namespace and name of every capture that has a manifest.
    async fn capture_keys(&self) -> Result<BTreeSet<(String, String)>, StoreError> {
        let metas: Vec<_> = self.objects.list(Some(&Path::from("captures"))).try_collect().await?;
        Ok(metas
            .iter()
            .filter_map(|meta| derived::key_of_path(&meta.location))
            .collect())
    }

    /// Removes objects that nothing refers to. Called by whoever has `contents` alone.
    async fn remove_unreferenced(&self) -> Result<(), StoreError> {
        for sha256 in self.unreferenced().await?.into_keys() {
            self.remove(&object_path(&sha256)).await?;
        }
        Ok(())
    }

    /// Objects that neither a manifest nor a kept result refers to, and their sizes. While a
    /// manifest cannot be read, there are none: what it refers to cannot be known.
    async fn unreferenced(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        let listing = self.list().await?;
        if !listing.unreadable.is_empty() {
            return Ok(BTreeMap::new());
        }
        let mut referred_to = referenced(&listing);
        referred_to.append(&mut self.derived_objects().await?);
        let mut stored = self.stored().await?;
        stored.retain(|sha256, _| !referred_to.contains(sha256));
        Ok(stored)
    }

    async fn remove(&self, path: &Path) -> Result<(), StoreError> {
        match self.objects.delete(path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The artifact of a file that is still to be copied.
fn placeholder(file: &SourceFile) -> Artifact {
    Artifact {
        name: file.name.clone(),
        type_: file.output,
        bytes: 0,
        sha256: "0".repeat(64),
        media_type: file.media_type.clone(),
        sensitive: file.output == Output::Raw,
    }
}

impl SourceFile {
    /// Size of the file now, in bytes.
    fn bytes(&self) -> Result<u64, StoreError> {
        let metadata = self.content.metadata().map_err(io_error(FilePath::new(&self.name)))?;
        Ok(metadata.len())
    }
}

/// Reads the file once: what is hashed is what is written.
async fn copy_stream(source: &SourceFile, size: u64, upload: &mut WriteMultipart) -> Result<String, StoreError> {
    let mut sha256 = Sha256::new();
    let mut found: u64 = 0;
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        // At its place: others may read the same open file.
        let (content, at) = (Arc::clone(&source.content), found);
        let reading = tokio::task::spawn_blocking(move || {
            let read = content.read_at(&mut buffer, at);
            (buffer, read)
        });
        let read;
        (buffer, read) = reading.await?;
        let read = read.map_err(io_error(FilePath::new(&source.name)))?;
        let Some(chunk) = buffer.get(..read).filter(|chunk| !chunk.is_empty()) else {
            break;
        };
        found = found.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
        // A file that still grows would pass the free-space check and fill the disk.
        if found > size {
            break;
        }
        sha256.update(chunk);
        upload.wait_for_capacity(2).await?;
        upload.write(chunk);
    }
    if found != size {
        return Err(StoreError::SourceChanged {
            name: source.name.clone(),
            expected: size,
            found,
        });
    }
    Ok(hex::encode(sha256.finalize()))
}

fn referenced(listing: &Listing) -> BTreeSet<String> {
    listing
        .manifests
        .iter()
        .flat_map(|manifest| &manifest.artifacts)
        .map(|artifact| artifact.sha256.clone())
        .collect()
}

fn manifest_path(namespace: &str, capture: &str) -> Path {
    Path::from(format!("captures/{namespace}/{capture}.json"))
}

fn object_path(sha256: &str) -> Path {
    Path::from(format!("objects/{sha256}"))
}

fn io_error(path: &FilePath) -> impl FnOnce(std::io::Error) -> StoreError + '_ {
    move |source| StoreError::Io {
        path: path.to_path_buf(),
        source,
    }
}
