//! Uploads the artifacts of a capture: the contents first, and the manifest last.

use std::collections::BTreeMap;

use bytes::Bytes;
use flopwatch_api::artifact::Artifact;
use futures::TryStreamExt as _;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{ObjectStoreExt as _, WriteMultipart};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::time::timeout;

use super::blocks::{Blocks, Digester};
use super::error::{ObjectStoreError, READING, REMOVING, WRITING};
use super::{Bucket, Inner, MANIFEST};
use crate::manifest::{MAX_MANIFEST_BYTES, Manifest, ManifestError};

/// Size of one part of an upload; S3 accepts no part below 5 MiB but the last.
const PART_BYTES: usize = 8 << 20;

/// The source of the contents that [`Bucket::publish`] uploads, such as a node's store.
pub trait Contents: Send + Sync {
    /// Opens the content of an artifact, as a stream from the first byte on. An error, also within
    /// the stream, is a sentence for people.
    fn open<'a>(
        &'a self,
        artifact: &'a Artifact,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Result<Bytes, String>>, String>>;
}

/// The manifest as JSON in the bucket: that of the capture, with the digests of blocks.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StoredManifest<'a> {
    #[serde(flatten)]
    manifest: &'a Manifest,
    /// Digests of the blocks of each content, by the content's SHA-256.
    blocks: &'a BTreeMap<String, Blocks>,
}

impl Bucket {
    /// Uploads the artifacts of a capture and then the manifest that names them: readers see
    /// nothing of the capture before the manifest is written. Contents that an earlier attempt
    /// uploaded are not sent again, so that the call can be repeated. Gives the SHA-256 of the
    /// manifest's text, by which readers recognise it: the caller writes it to the capture's
    /// status, which no other node can write.
    pub async fn publish(&self, manifest: &Manifest, contents: &dyn Contents) -> Result<String, ObjectStoreError> {
        let inner = &self.inner;
        manifest.validate()?;
        let _permit = inner.uploads.acquire().await;
        let folder = inner.folder(&manifest.capture);
        let mut blocks = BTreeMap::new();
        for artifact in &manifest.artifacts {
            if !blocks.contains_key(&artifact.sha256) {
                let digests = inner.ensure_uploaded(&folder, artifact, contents).await?;
                blocks.insert(artifact.sha256.clone(), digests);
            }
        }
        let stored_manifest = StoredManifest {
            manifest,
            blocks: &blocks,
        };
        let text = serde_json::to_vec(&stored_manifest).map_err(ManifestError::from)?;
        if u64::try_from(text.len()).map_or(true, |bytes| bytes > MAX_MANIFEST_BYTES) {
            return Err(ManifestError::TooLarge.into());
        }
        let sha256 = hex::encode(Sha256::digest(&text));
        let key = folder.join(MANIFEST);
        inner.within(WRITING, inner.objects.put(&key, text.into())).await?;
        Ok(sha256)
    }
}

impl Inner {
    /// Uploads the content of an artifact unless it is in the bucket, and gives the digests of its
    /// blocks.
    async fn ensure_uploaded(
        &self,
        folder: &Path,
        artifact: &Artifact,
        contents: &dyn Contents,
    ) -> Result<Blocks, ObjectStoreError> {
        let key = folder.clone().join(artifact.sha256.as_str());
        let is_stored = match self.objects.head(&key).await {
            Ok(meta) => i64::try_from(meta.size) == Ok(artifact.bytes),
            // A credential that may only write cannot see what is stored: the content is sent
            // again. One that may not even write fails then.
            Err(object_store::Error::NotFound { .. } | object_store::Error::PermissionDenied { .. }) => false,
            Err(error) => return Err(ObjectStoreError::of(READING, &self.name, &error)),
        };
        let mut source = UploadSource {
            artifact,
            pieces: contents
                .open(artifact)
                .await
                .map_err(|reason| refuse(artifact, reason))?,
            digester: Digester::default(),
        };
        let limit = self.limits.upload;
        let slow = |_elapsed| ObjectStoreError::Slow { what: WRITING, limit };
        if is_stored {
            while timeout(limit, source.next()).await.map_err(slow)??.is_some() {}
            return source.finish();
        }
        if artifact.bytes <= i64::try_from(PART_BYTES).unwrap_or(i64::MAX) {
            let mut whole = Vec::new();
            while let Some(piece) = source.next().await? {
                whole.extend_from_slice(&piece);
            }
            let blocks = source.finish()?;
            timeout(limit, self.within(WRITING, self.objects.put(&key, whole.into())))
                .await
                .map_err(slow)??;
            return Ok(blocks);
        }
        let failed = |error: object_store::Error| ObjectStoreError::of(WRITING, &self.name, &error);
        let upload = self.within(WRITING, self.objects.put_multipart(&key)).await?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        let transferred = timeout(limit, async {
            while let Some(piece) = source.next().await? {
                upload.wait_for_capacity(self.limits.parts).await.map_err(failed)?;
                upload.put(piece);
            }
            source.finish()
        });
        let blocks = match transferred.await.map_err(slow).flatten() {
            Ok(blocks) => blocks,
            Err(error) => {
                // Parts that stay all the same cost space until the bucket's own rule removes them.
                if let Err(left) = self.within(REMOVING, upload.abort()).await {
                    tracing::warn!(%key, error = %left, "the parts of an upload that failed stay in the bucket");
                }
                return Err(error);
            }
        };
        timeout(limit, upload.finish()).await.map_err(slow)?.map_err(failed)?;
        Ok(blocks)
    }

    /// Waits for a request, for `limits.answer` at most; `what` is its kind in the error.
    pub(super) async fn within<T>(
        &self,
        what: &'static str,
        request: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, ObjectStoreError> {
        let limit = self.limits.answer;
        let answer = timeout(limit, request).await;
        answer
            .map_err(|_elapsed| ObjectStoreError::Slow { what, limit })?
            .map_err(|error| ObjectStoreError::of(what, &self.name, &error))
    }
}

/// The content of an artifact that is being uploaded, digested as it is read.
struct UploadSource<'a> {
    artifact: &'a Artifact,
    pieces: BoxStream<'static, Result<Bytes, String>>,
    digester: Digester,
}

impl UploadSource<'_> {
    async fn next(&mut self) -> Result<Option<Bytes>, ObjectStoreError> {
        let piece = self
            .pieces
            .try_next()
            .await
            .map_err(|reason| refuse(self.artifact, reason))?;
        if let Some(piece) = &piece {
            self.digester.update(piece);
        }
        Ok(piece)
    }

    /// The digests of the blocks, if the content that was read is the one in the manifest.
    fn finish(&mut self) -> Result<Blocks, ObjectStoreError> {
        let (bytes, sha256, blocks) = std::mem::take(&mut self.digester).finish();
        if i64::try_from(bytes) != Ok(self.artifact.bytes) || sha256 != self.artifact.sha256 {
            let reason = format!("its {bytes} bytes have the SHA-256 {sha256}, not that of its manifest");
            return Err(refuse(self.artifact, reason));
        }
        Ok(blocks)
    }
}

fn refuse(artifact: &Artifact, reason: String) -> ObjectStoreError {
    ObjectStoreError::Source {
        name: artifact.name.clone(),
        reason,
    }
}
