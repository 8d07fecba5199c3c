//! Reads artifacts from the object store, and returns only blocks whose digest was checked.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use flopwatch_api::artifact::Artifact;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStoreExt as _};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tokio::time::timeout;

use super::blocks::Blocks;
use super::error::{ObjectStoreError, READING};
use super::{Bucket, Inner, MANIFEST};
use crate::manifest::{CaptureId, MAX_MANIFEST_BYTES, Manifest};

/// The content of an object as a stream of pieces, in order; every piece was checked against its
/// digest.
pub type Content = BoxStream<'static, Result<Bytes, ObjectStoreError>>;

/// A capture in the bucket, as described by the manifest whose SHA-256 the capture's status has.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The manifest of the capture.
    pub manifest: Manifest,
    /// SHA-256 of the manifest's text.
    pub sha256: String,
    blocks: Arc<BTreeMap<String, Blocks>>,
}

#[derive(Deserialize)]
struct WithBlocks {
    blocks: BTreeMap<String, Blocks>,
}

impl Bucket {
    /// Reads the manifest of a capture; None before its upload was complete, and after its removal.
    /// `sha256` is the digest of the manifest in the capture's status: every node may write to the
    /// bucket, and only the capture's own node writes that status. A manifest with another digest
    /// is [`ObjectStoreError::Corrupt`].
    pub async fn find(&self, capture: &CaptureId, sha256: &str) -> Result<Option<Stored>, ObjectStoreError> {
        let inner = &self.inner;
        let key = inner.folder(capture).join(MANIFEST);
        let found = match inner.within(READING, inner.objects.get(&key)).await {
            Ok(found) => found,
            Err(ObjectStoreError::Missing(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let corrupt = |reason: String| ObjectStoreError::Corrupt {
            key: key.to_string(),
            reason,
        };
        if found.meta.size > MAX_MANIFEST_BYTES {
            return Err(corrupt(format!(
                "{} bytes are too many for a manifest",
                found.meta.size
            )));
        }
        let text = inner.within(READING, found.bytes()).await?;
        let digest = hex::encode(Sha256::digest(&text));
        if digest != sha256 {
            return Err(corrupt(format!(
                "it has the SHA-256 {digest}, and the capture's status says {sha256}: something else than the capture's node wrote it"
            )));
        }
        let manifest =
            Manifest::parse(&text, &capture.namespace, &capture.name).map_err(|error| corrupt(error.to_string()))?;
        let WithBlocks { blocks } = serde_json::from_slice(&text).map_err(|error| corrupt(error.to_string()))?;
        if manifest.capture != *capture {
            return Err(corrupt(format!(
                "it is of the capture with UID {}",
                manifest.capture.uid
            )));
        }
        Ok(Some(Stored {
            manifest,
            sha256: digest,
            blocks: Arc::new(blocks),
        }))
    }

    /// Whether the bucket has a manifest of the capture, whoever wrote it.
    pub async fn has_manifest(&self, capture: &CaptureId) -> Result<bool, ObjectStoreError> {
        let inner = &self.inner;
        let key = inner.folder(capture).join(MANIFEST);
        match inner.within(READING, inner.objects.head(&key)).await {
            Ok(_there) => Ok(true),
            Err(ObjectStoreError::Missing(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads the bytes `range` of an artifact of `stored`; the range must lie within it. The first
    /// block is checked before this returns. A block that is found damaged later ends the stream
    /// with an error, and the object is remembered as damaged.
    pub async fn read(
        &self,
        stored: &Stored,
        artifact: &Artifact,
        range: Range<u64>,
    ) -> Result<Content, ObjectStoreError> {
        let inner = &self.inner;
        let key = inner.folder(&stored.manifest.capture).join(artifact.sha256.as_str());
        let result = inner.open(&key, stored, artifact, range).await;
        if let Err(error @ ObjectStoreError::Corrupt { .. }) = &result {
            tracing::error!(%error, "an object of the store is not served");
        }
        result
    }
}

impl Inner {
    async fn open(
        self: &Arc<Self>,
        key: &Path,
        stored: &Stored,
        artifact: &Artifact,
        range: Range<u64>,
    ) -> Result<Content, ObjectStoreError> {
        let corrupt = |reason: String| ObjectStoreError::Corrupt {
            key: key.to_string(),
            reason,
        };
        let bytes = u64::try_from(artifact.bytes).unwrap_or_default();
        let blocks = stored.blocks.get(&artifact.sha256);
        let block_bytes = blocks.map_or(1, |blocks| blocks.block_bytes.max(1));
        let digests = blocks.and_then(|blocks| blocks.digests(bytes));
        let digests = digests.ok_or_else(|| corrupt("the manifest has no digests that fit it".to_owned()))?;
        if range.is_empty() || range.end > bytes {
            return Ok(futures::stream::empty().boxed());
        }
        let first = range.start / block_bytes;
        let start = first * block_bytes;
        let end = range.end.div_ceil(block_bytes).saturating_mul(block_bytes).min(bytes);
        let options = GetOptions {
            range: Some(GetRange::Bounded(start..end)),
            ..GetOptions::default()
        };
        let found = match self.within(READING, self.objects.get_opts(key, options)).await {
            Ok(found) => found,
            Err(ObjectStoreError::Missing(_)) => return Err(corrupt("it is missing".to_owned())),
            Err(ObjectStoreError::Unavailable { message, .. }) if message == "InvalidRange" => {
                return Err(corrupt(format!("it is shorter than {bytes} bytes")));
            }
            Err(error) => return Err(error),
        };
        let tag = found.meta.e_tag.clone();
        if self.is_damaged(key, tag.as_deref()) {
            return Err(corrupt("it was found damaged before".to_owned()));
        }
        if found.meta.size != bytes || found.range != (start..end) {
            return Err(corrupt(format!("{} bytes instead of {bytes}", found.meta.size)));
        }
        let mut reader = Reader {
            bucket: Arc::clone(self),
            key: key.clone(),
            tag,
            pieces: found.into_stream(),
            buffer: BytesMut::new(),
            digests: digests
                .into_iter()
                .skip(usize::try_from(first).unwrap_or(usize::MAX))
                .collect::<Vec<_>>()
                .into_iter(),
            block_bytes,
            at: start,
            end,
            whole: (range == (0..bytes)).then(|| (Sha256::new(), artifact.sha256.clone())),
            wanted: range,
        };
        let first = reader.next().await?;
        let rest = futures::stream::try_unfold(reader, |mut reader| async move {
            let block = reader.next().await.inspect_err(|error| {
                tracing::error!(%error, "an object of the store is not served to its end");
            })?;
            Ok(block.map(|block| (block, reader)))
        });
        Ok(futures::stream::iter(first.map(Ok)).chain(rest).boxed())
    }
}

/// An object that is being read, checked block by block.
struct Reader {
    bucket: Arc<Inner>,
    key: Path,
    tag: Option<String>,
    pieces: BoxStream<'static, object_store::Result<Bytes>>,
    buffer: BytesMut,
    digests: std::vec::IntoIter<[u8; 32]>,
    block_bytes: u64,
    /// Offset of the next block.
    at: u64,
    /// Offset behind the last block that is read.
    end: u64,
    /// Digest so far and expected SHA-256, where the whole object is read.
    whole: Option<(Sha256, String)>,
    wanted: Range<u64>,
}

impl Reader {
    /// The next block, cut to the part of it that was requested.
    async fn next(&mut self) -> Result<Option<Bytes>, ObjectStoreError> {
        if self.at >= self.end {
            return Ok(None);
        }
        let length = self.block_bytes.min(self.end - self.at);
        let needed = usize::try_from(length).unwrap_or(usize::MAX);
        let limit = self.bucket.limits.answer;
        while self.buffer.len() < needed {
            let piece = timeout(limit, self.pieces.try_next()).await;
            let piece = piece.map_err(|_elapsed| ObjectStoreError::Slow { what: READING, limit })?;
            match piece.map_err(|error| ObjectStoreError::of(READING, &self.bucket.name, &error))? {
                Some(piece) => self.buffer.extend_from_slice(&piece),
                None => return Err(self.damaged("it ends early".to_owned())),
            }
        }
        let block = self.buffer.split_to(needed).freeze();
        let digest = Sha256::digest(&block);
        if self.digests.next().as_ref().map(<[u8; 32]>::as_slice) != Some(digest.as_slice()) {
            return Err(self.damaged(format!(
                "the block at byte {} has the SHA-256 {}",
                self.at,
                hex::encode(digest)
            )));
        }
        let start = self.at;
        self.at += length;
        if let Some((sha256, _)) = &mut self.whole {
            sha256.update(&block);
        }
        // The last block is held back until the whole is known to be right.
        if self.at >= self.end
            && let Some((sha256, expected)) = self.whole.take()
        {
            let found = hex::encode(sha256.finalize());
            if found != expected {
                return Err(self.damaged(format!("its content has the SHA-256 {found}")));
            }
        }
        let cut = |at: u64| usize::try_from(at.saturating_sub(start).min(length)).unwrap_or(usize::MAX);
        Ok(Some(block.slice(cut(self.wanted.start)..cut(self.wanted.end))))
    }

    fn damaged(&self, reason: String) -> ObjectStoreError {
        self.bucket.record_damaged(&self.key, self.tag.clone());
        ObjectStoreError::Corrupt {
            key: self.key.to_string(),
            reason,
        }
    }
}
