//! Reading objects, and never serving one whose content is not what its name says.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use flopwatch_api::artifact::Artifact;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::{GetOptions, GetRange, GetResult, GetResultPayload, ObjectStoreExt};
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;
use tokio::sync::Semaphore;
use tokio_util::io::ReaderStream;

use super::{CHUNK_BYTES, Store, StoreError, object_path};

/// Objects that may be hashed at once; more would take the node's disk from the workloads.
const CONCURRENT_CHECKS: usize = 2;

/// Objects whose check is remembered.
const REMEMBERED: usize = 8192;

/// Content of an object, in order.
pub(crate) type Content = BoxStream<'static, Result<Bytes, StoreError>>;

/// Objects that this process has hashed, with the store's own tag (file, size and time of change) at that moment.
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
    fn knows(&self, sha256: &str, tag: Option<&str>) -> bool {
        let tags = self.tags.lock().unwrap_or_else(PoisonError::into_inner);
        tag.is_some() && tags.get(sha256).map(String::as_str) == tag
    }

    fn remember(&self, sha256: &str, tag: Option<String>) {
        let mut tags = self.tags.lock().unwrap_or_else(PoisonError::into_inner);
        if tags.len() >= REMEMBERED {
            tags.clear();
        }
        if let Some(tag) = tag {
            tags.insert(sha256.to_owned(), tag);
        }
    }
}

impl Store {
    /// The bytes `range` of an artifact. The whole object is checked against its SHA-256 first, once for each version of
    /// the file that this process meets.
    pub(crate) async fn read(&self, artifact: &Artifact, range: Range<u64>) -> Result<Content, StoreError> {
        let result = self.open_checked(artifact, range).await;
        if let Err(StoreError::Corrupt { sha256, reason }) = &result {
            self.metrics.corrupt.inc();
            tracing::error!(%sha256, %reason, "corrupt object is not served");
        }
        result
    }

    async fn open_checked(&self, artifact: &Artifact, range: Range<u64>) -> Result<Content, StoreError> {
        let sha256 = artifact.sha256.as_str();
        if range.is_empty() {
            self.check(artifact).await?;
            return Ok(futures::stream::empty().boxed());
        }
        // A second round covers an object that was replaced by the same content between check and read.
        for _ in 0..2 {
            let options = GetOptions {
                range: Some(GetRange::Bounded(range.clone())),
                ..GetOptions::default()
            };
            let found = self.open_object(sha256, options).await?;
            if self.verified.knows(sha256, found.meta.e_tag.as_deref()) {
                return content(found).await;
            }
            drop(found);
            self.check(artifact).await?;
        }
        Err(corrupt(sha256, "it changes while it is read".to_owned()))
    }

    /// Hashes the object unless that was done for this version of it.
    async fn check(&self, artifact: &Artifact) -> Result<(), StoreError> {
        let sha256 = artifact.sha256.as_str();
        let _permit = self.verified.checks.acquire().await;
        let found = self.open_object(sha256, GetOptions::default()).await?;
        let tag = found.meta.e_tag.clone();
        // Another request did it while this one waited for its turn.
        if self.verified.knows(sha256, tag.as_deref()) {
            return Ok(());
        }
        if i64::try_from(found.meta.size).ok() != Some(artifact.bytes) {
            return Err(corrupt(
                sha256,
                format!("{} bytes instead of {}", found.meta.size, artifact.bytes),
            ));
        }
        let digest = hash(found).await?;
        if digest != sha256 {
            return Err(corrupt(sha256, format!("its content has the SHA-256 {digest}")));
        }
        self.verified.remember(sha256, tag);
        Ok(())
    }

    async fn open_object(&self, sha256: &str, options: GetOptions) -> Result<GetResult, StoreError> {
        match self.objects.get_opts(&object_path(sha256), options).await {
            Ok(found) => Ok(found),
            Err(object_store::Error::NotFound { .. }) => Err(corrupt(sha256, "it is missing".to_owned())),
            Err(error) => {
                // A file shorter than its manifest says makes the range invalid: the check says so better.
                match self.objects.head(&object_path(sha256)).await {
                    Ok(_) => Err(corrupt(sha256, format!("it cannot be read: {error}"))),
                    Err(_) => Err(error.into()),
                }
            }
        }
    }
}

async fn hash(found: GetResult) -> Result<String, StoreError> {
    match found.payload {
        // Not as a stream: that takes a task for each 8 KiB.
        GetResultPayload::File(mut file, path) => {
            let digest = tokio::task::spawn_blocking(move || {
                let mut sha256 = Sha256::new();
                let mut buffer = vec![0; CHUNK_BYTES];
                loop {
                    let read = file.read(&mut buffer)?;
                    match buffer.get(..read) {
                        Some(chunk) if !chunk.is_empty() => sha256.update(chunk),
                        _ => return Ok::<_, std::io::Error>(sha256.finalize()),
                    }
                }
            })
            .await?;
            digest
                .map(|digest| hex(&digest))
                .map_err(|source| StoreError::Io { path, source })
        }
        GetResultPayload::Stream(stream) => {
            let sha256 = stream
                .try_fold(Sha256::new(), |mut sha256, chunk| async move {
                    sha256.update(&chunk);
                    Ok(sha256)
                })
                .await?;
            Ok(hex(&sha256.finalize()))
        }
    }
}

async fn content(found: GetResult) -> Result<Content, StoreError> {
    let range = found.range;
    match found.payload {
        GetResultPayload::File(mut file, path) => {
            let start = range.start;
            let sought = tokio::task::spawn_blocking(move || file.seek(SeekFrom::Start(start)).map(|_| file)).await?;
            let file = sought.map_err(|source| StoreError::Io {
                path: path.clone(),
                source,
            })?;
            let reader = tokio::fs::File::from_std(file).take(range.end.saturating_sub(start));
            let stream = ReaderStream::with_capacity(reader, CHUNK_BYTES);
            Ok(stream
                .map_err(move |source| StoreError::Io {
                    path: path.clone(),
                    source,
                })
                .boxed())
        }
        GetResultPayload::Stream(stream) => Ok(stream.map_err(StoreError::from).boxed()),
    }
}

fn corrupt(sha256: &str, reason: String) -> StoreError {
    StoreError::Corrupt {
        sha256: sha256.to_owned(),
        reason,
    }
}

/// Lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}
