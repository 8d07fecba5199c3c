//! Reads objects, and serves only those whose content matches the digest in their name.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use flopwatch_api::artifact::Artifact;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::{GetOptions, GetResultPayload};
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;
use tokio::sync::Semaphore;
use tokio_util::io::ReaderStream;

use super::{CHUNK_BYTES, Store, StoreError, io_error, object_path};

/// Objects that may be hashed at once; more would take the node's disk from the workloads.
const CONCURRENT_CHECKS: usize = 2;

/// Most objects whose check is remembered.
const MAX_VERIFIED_REMEMBERED: usize = 8192;

/// Content of an object, in order.
pub(crate) type Content = BoxStream<'static, Result<Bytes, StoreError>>;

/// Objects that this process has hashed, with the store's own tag (file, size and time of change)
/// at that moment.
#[derive(Debug)]
pub(super) struct Verified {
    tags: Mutex<HashMap<String, String>>,
    checks: Semaphore,
}

impl Default for Verified {
    fn default() -> Self {
        Self {
            tags: Mutex::default(),
            checks: Semaphore::new(CONCURRENT_CHECKS),
        }
    }
}

impl Verified {
    fn is_verified(&self, sha256: &str, tag: Option<&str>) -> bool {
        let tags = self.tags.lock().unwrap_or_else(PoisonError::into_inner);
        tag.is_some() && tags.get(sha256).map(String::as_str) == tag
    }

    fn record_tag(&self, sha256: &str, tag: Option<String>) {
        let mut tags = self.tags.lock().unwrap_or_else(PoisonError::into_inner);
        if tags.len() >= MAX_VERIFIED_REMEMBERED {
            tags.clear();
        }
        if let Some(tag) = tag {
            tags.insert(sha256.to_owned(), tag);
        }
    }
}

impl Store {
    /// The bytes `range` of an artifact. The whole object is checked against its SHA-256 first,
    /// once for each version of the file that this process meets.
    pub(crate) async fn read(&self, artifact: &Artifact, range: Range<u64>) -> Result<Content, StoreError> {
        let result = self.open_checked(artifact, range).await;
        if let Err(StoreError::Corrupt { sha256, reason }) = &result {
            self.metrics.corrupt.inc();
            tracing::error!(%sha256, %reason, "corrupt object is not served");
        }
        result
    }

    /// What is checked is the file that is read: one that is replaced meanwhile, by the same
    /// content, disturbs neither.
    async fn open_checked(&self, artifact: &Artifact, range: Range<u64>) -> Result<Content, StoreError> {
        let object = self.open_object(&artifact.sha256).await?;
        let object = self.check(artifact, object).await?;
        if range.is_empty() {
            return Ok(futures::stream::empty().boxed());
        }
        object.content(range).await
    }

    /// Hashes the object unless that was done for this version of it.
    async fn check(&self, artifact: &Artifact, object: Object) -> Result<Object, StoreError> {
        let sha256 = artifact.sha256.as_str();
        if i64::try_from(object.bytes).ok() != Some(artifact.bytes) {
            return Err(corrupt(
                sha256,
                format!("{} bytes instead of {}", object.bytes, artifact.bytes),
            ));
        }
        if self.verified.is_verified(sha256, object.tag.as_deref()) {
            return Ok(object);
        }
        let _permit = self.verified.checks.acquire().await;
        // Another request may have checked the object while this one waited for its permit.
        if self.verified.is_verified(sha256, object.tag.as_deref()) {
            return Ok(object);
        }
        let (object, digest) = object.hash().await?;
        if digest != sha256 {
            return Err(corrupt(sha256, format!("its content has the SHA-256 {digest}")));
        }
        self.verified.record_tag(sha256, object.tag.clone());
        Ok(object)
    }

    async fn open_object(&self, sha256: &str) -> Result<Object, StoreError> {
        let path = object_path(sha256);
        let found = match self.objects.get_opts(&path, GetOptions::default()).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Err(corrupt(sha256, "it is missing".to_owned())),
            Err(error) => return Err(error.into()),
        };
        match found.payload {
            GetResultPayload::File(file, path) => Ok(Object {
                file,
                path,
                tag: found.meta.e_tag,
                bytes: found.meta.size,
            }),
            GetResultPayload::Stream(_) => Err(StoreError::Io {
                path: path.as_ref().into(),
                source: std::io::ErrorKind::Unsupported.into(),
            }),
        }
    }
}

/// The open file of an object, with its path, entity tag and size.
struct Object {
    file: File,
    path: PathBuf,
    tag: Option<String>,
    bytes: u64,
}

impl Object {
    /// The object and the SHA-256 of all that it holds.
    async fn hash(self) -> Result<(Self, String), StoreError> {
        let Self { mut file, path, .. } = self;
        // Not as a stream: that takes a task for each 8 KiB.
        let hashed = tokio::task::spawn_blocking(move || {
            let mut sha256 = Sha256::new();
            let mut buffer = vec![0; CHUNK_BYTES];
            loop {
                let read = file.read(&mut buffer)?;
                match buffer.get(..read) {
                    Some(chunk) if !chunk.is_empty() => sha256.update(chunk),
                    _ => return Ok::<_, std::io::Error>((file, hex::encode(sha256.finalize()))),
                }
            }
        });
        let (file, digest) = hashed.await?.map_err(io_error(&path))?;
        Ok((Self { file, path, ..self }, digest))
    }

    async fn content(self, range: Range<u64>) -> Result<Content, StoreError> {
        let Self { mut file, path, .. } = self;
        let start = range.start;
        let sought = tokio::task::spawn_blocking(move || file.seek(SeekFrom::Start(start)).map(|_| file)).await?;
        let file = tokio::fs::File::from_std(sought.map_err(io_error(&path))?);
        let reader = file.take(range.end.saturating_sub(start));
        let stream = ReaderStream::with_capacity(reader, CHUNK_BYTES);
        Ok(stream
            .map_err(move |source| StoreError::Io {
                path: path.clone(),
                source,
            })
            .boxed())
    }
}

fn corrupt(sha256: &str, reason: String) -> StoreError {
    StoreError::Corrupt {
        sha256: sha256.to_owned(),
        reason,
    }
}
