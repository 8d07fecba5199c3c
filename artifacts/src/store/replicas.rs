//! Copies of this store's artifacts in a bucket.

use crate::manifest::Manifest;
use crate::object_store::{Bucket, Contents};
use bytes::Bytes;
use flopwatch_api::artifact::Artifact;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};

use super::{Store, StoreError};

impl Store {
    /// Uploads the artifacts of a capture, which stay here too. Safe to repeat. Gives the SHA-256
    /// of the manifest in the bucket, which differs from the one here.
    pub async fn copy_to(&self, bucket: &Bucket, manifest: &Manifest) -> Result<String, StoreError> {
        Ok(bucket.publish(manifest, self).await?)
    }
}

impl Contents for Store {
    fn open<'a>(
        &'a self,
        artifact: &'a Artifact,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Result<Bytes, String>>, String>> {
        async move {
            let bytes = u64::try_from(artifact.bytes).unwrap_or_default();
            let content = self.read(artifact, 0..bytes).await.map_err(|error| error.to_string())?;
            Ok(content.map_err(|error| error.to_string()).boxed())
        }
        .boxed()
    }
}
