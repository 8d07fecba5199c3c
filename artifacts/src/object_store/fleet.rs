//! Files of the fleet, beside the artifacts of captures: written once by the node of their capture, read by the gateway. They outlive sessions,
//! and no sweep removes them.

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use tokio::time::timeout;

use super::error::{BucketError, LISTING, READING, WRITING};
use super::{Bucket, Inner};

/// Folder of all of them.
const FOLDER: &str = "fleet";

/// A file that the store lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetFile {
    /// Its path, from `fleet/` on.
    pub path: String,
    /// Its length.
    pub bytes: u64,
}

impl Bucket {
    /// Stores a file of the fleet at its path, which begins with `fleet/`. Safe to repeat: the same path has the same bytes.
    pub async fn put_fleet_file(&self, path: &str, content: Bytes) -> Result<(), BucketError> {
        let key = self.inner.fleet_key(path)?;
        let put = self.inner.objects.put(&key, content.into());
        self.inner.within(WRITING, put).await.map(drop)
    }

    /// The files of the fleet in a folder, which begins with `fleet/`, as the store lists them. Ends with the first error.
    pub fn list_fleet_files(&self, folder: &str) -> BoxStream<'static, Result<FleetFile, BucketError>> {
        let folder = match self.inner.fleet_key(folder) {
            Ok(folder) => folder,
            Err(error) => return futures::stream::iter([Err(error)]).boxed(),
        };
        let (inner, limit) = (self.inner.clone(), self.inner.limits.answer);
        let objects = self.inner.objects.list(Some(&folder));
        let files = futures::stream::unfold(Some(objects), move |objects| {
            let inner = inner.clone();
            async move {
                let mut objects = objects?;
                match timeout(limit, objects.next()).await {
                    Ok(None) => None,
                    Ok(Some(Ok(meta))) => Some((Ok(inner.fleet_file(&meta)), Some(objects))),
                    Ok(Some(Err(error))) => Some((Err(BucketError::of(LISTING, &inner.name, &error)), None)),
                    Err(_elapsed) => Some((Err(BucketError::Slow { what: LISTING, limit }), None)),
                }
            }
        });
        files.boxed()
    }

    /// The content of a file of the fleet. One of more than `most` bytes is not read.
    pub async fn get_fleet_file(&self, path: &str, most: u64) -> Result<Bytes, BucketError> {
        let inner = &self.inner;
        let key = inner.fleet_key(path)?;
        let found = inner.within(READING, inner.objects.get(&key)).await?;
        if found.meta.size > most {
            return Err(BucketError::Corrupt {
                key: key.to_string(),
                reason: format!("it has {} bytes, and at most {most} are read", found.meta.size),
            });
        }
        inner.within(READING, found.bytes()).await
    }
}

impl Inner {
    /// Where a file of the fleet lies. What is none has no place: it could be an artifact's.
    fn fleet_key(&self, path: &str) -> Result<Path, BucketError> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        if parts.first() != Some(&FOLDER) {
            return Err(BucketError::Missing(path.to_owned()));
        }
        Ok(parts.into_iter().fold(self.root.clone(), Path::join))
    }

    fn fleet_file(&self, meta: &object_store::ObjectMeta) -> FleetFile {
        let parts = meta.location.prefix_match(&self.root);
        let parts: Vec<String> = parts
            .map(|parts| parts.map(|part| part.as_ref().to_owned()).collect())
            .unwrap_or_default();
        FleetFile {
            path: parts.join("/"),
            bytes: meta.size,
        }
    }
}
