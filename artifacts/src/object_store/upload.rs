//! Uploads artifacts: contents first, the manifest last.

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
use super::error::{BucketError, READING, REMOVING, WRITING};
use super::{Bucket, Inner, MANIFEST};
use crate::manifest::{MAX_MANIFEST_BYTES, Manifest, ManifestError};

/// Bytes of one part; S3 takes no part below 5 MiB but the last.
const PART_BYTES: usize = 8 << 20;

/// Where the contents of artifacts come from.
pub trait Contents: Send + Sync {
    /// The content of an artifact from its first byte; fails with what to tell people.
    fn open<'a>(
        &'a self,
        artifact: &'a Artifact,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Result<Bytes, String>>, String>>;
}

/// The manifest as it stands in the bucket.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    #[serde(flatten)]
    manifest: &'a Manifest,
    /// By SHA-256 of the content.
    blocks: &'a BTreeMap<String, Blocks>,
}

impl Bucket {
    /// Uploads the artifacts of a capture and then the manifest that names them: until it stands
    /// nobody sees anything of it. What an earlier try has brought there already is not sent again.
    /// Safe to repeat. Gives the SHA-256 of the manifest's text, by which readers know it: it
    /// belongs into the capture's status, which no other node can write.
    pub async fn publish(&self, manifest: &Manifest, contents: &dyn Contents) -> Result<String, BucketError> {
        let inner = &self.inner;
        manifest.validate()?;
        let _turn = inner.uploads.acquire().await;
        let folder = inner.folder(&manifest.capture);
        let mut blocks = BTreeMap::new();
        for artifact in &manifest.artifacts {
            if !blocks.contains_key(&artifact.sha256) {
                let digests = inner.bring(&folder, artifact, contents).await?;
                blocks.insert(artifact.sha256.clone(), digests);
            }
        }
        let written = Written {
            manifest,
            blocks: &blocks,
        };
        let text = serde_json::to_vec(&written).map_err(ManifestError::from)?;
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
    /// Sees to it that the content of an artifact is in the bucket, and returns the digests of its blocks.
    async fn bring(&self, folder: &Path, artifact: &Artifact, contents: &dyn Contents) -> Result<Blocks, BucketError> {
        let key = folder.clone().join(artifact.sha256.as_str());
        let there = match self.objects.head(&key).await {
            Ok(meta) => i64::try_from(meta.size) == Ok(artifact.bytes),
            // A credential that may only write is not told what is there: it is sent again. One
            // that may not even write hears so then.
            Err(object_store::Error::NotFound { .. } | object_store::Error::PermissionDenied { .. }) => false,
            Err(error) => return Err(BucketError::of(READING, &self.name, &error)),
        };
        let mut source = Source {
            artifact,
            pieces: contents
                .open(artifact)
                .await
                .map_err(|reason| refuse(artifact, reason))?,
            digester: Digester::default(),
        };
        let limit = self.limits.upload;
        let slow = |_elapsed| BucketError::Slow { what: WRITING, limit };
        if there {
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
        let failed = |error: object_store::Error| BucketError::of(WRITING, &self.name, &error);
        let upload = self.within(WRITING, self.objects.put_multipart(&key)).await?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        let poured = timeout(limit, async {
            while let Some(piece) = source.next().await? {
                upload.wait_for_capacity(self.limits.parts).await.map_err(failed)?;
                upload.put(piece);
            }
            source.finish()
        });
        let blocks = match poured.await.map_err(slow).flatten() {
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

    /// One request, with its deadline.
    pub(super) async fn within<T>(
        &self,
        what: &'static str,
        request: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, BucketError> {
        let limit = self.limits.answer;
        let answer = timeout(limit, request).await;
        answer
            .map_err(|_elapsed| BucketError::Slow { what, limit })?
            .map_err(|error| BucketError::of(what, &self.name, &error))
    }
}

/// The content of an artifact on its way out, digested as it passes.
struct Source<'a> {
    artifact: &'a Artifact,
    pieces: BoxStream<'static, Result<Bytes, String>>,
    digester: Digester,
}

impl Source<'_> {
    async fn next(&mut self) -> Result<Option<Bytes>, BucketError> {
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

    /// The digests of the blocks, when what passed is what the manifest says.
    fn finish(&mut self) -> Result<Blocks, BucketError> {
        let (bytes, sha256, blocks) = std::mem::take(&mut self.digester).finish();
        if i64::try_from(bytes) != Ok(self.artifact.bytes) || sha256 != self.artifact.sha256 {
            let reason = format!("its {bytes} bytes have the SHA-256 {sha256}, not that of its manifest");
            return Err(refuse(self.artifact, reason));
        }
        Ok(blocks)
    }
}

fn refuse(artifact: &Artifact, reason: String) -> BucketError {
    BucketError::Source {
        name: artifact.name.clone(),
        reason,
    }
}
