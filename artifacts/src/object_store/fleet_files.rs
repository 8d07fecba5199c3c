//! Files of the fleet, beside the artifacts of captures: written once by the node of their capture,
//! read by the gateway. They outlive sessions, and no sweep removes them.

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use tokio::time::timeout;

use super::error::{LISTING, ObjectStoreError, READING, WRITING};
use super::{Bucket, Inner};

/// Folder of all files of the fleet.
const FLEET_FOLDER: &str = "fleet";

/// A file of the fleet in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetFile {
    /// Path of the file, which begins with `fleet/`.
    pub path: String,
    /// Length of the file, in bytes.
    pub bytes: u64,
}

impl Bucket {
    /// Stores a file of the fleet at its path, which begins with `fleet/`. The call can be
    /// repeated: the same path has the same bytes.
    pub async fn put_fleet_file(&self, path: &str, content: Bytes) -> Result<(), ObjectStoreError> {
        let key = self.inner.fleet_key(path)?;
        let put = self.inner.objects.put(&key, content.into());
        self.inner.within(WRITING, put).await.map(drop)
    }

    /// Lists the files of the fleet in a folder, which begins with `fleet/`, in the order of the
    /// store. The stream ends with the first error.
    pub fn list_fleet_files(&self, folder: &str) -> BoxStream<'static, Result<FleetFile, ObjectStoreError>> {
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
                    Ok(Some(Err(error))) => Some((Err(ObjectStoreError::of(LISTING, &inner.name, &error)), None)),
                    Err(_elapsed) => Some((Err(ObjectStoreError::Slow { what: LISTING, limit }), None)),
                }
            }
        });
        files.boxed()
    }

    /// Reads a file of the fleet. The error is `Corrupt` for a file of more than `max_bytes` bytes,
    /// which is not read.
    pub async fn get_fleet_file(&self, path: &str, max_bytes: u64) -> Result<Bytes, ObjectStoreError> {
        let inner = &self.inner;
        let key = inner.fleet_key(path)?;
        let found = inner.within(READING, inner.objects.get(&key)).await?;
        if found.meta.size > max_bytes {
            return Err(ObjectStoreError::Corrupt {
                key: key.to_string(),
                reason: format!("it has {} bytes, and at most {max_bytes} are read", found.meta.size),
            });
        }
        inner.within(READING, found.bytes()).await
    }
}

impl Inner {
    /// Key of a file of the fleet; the error is `Missing` for another path, which could be that of
    /// an artifact.
    fn fleet_key(&self, path: &str) -> Result<Path, ObjectStoreError> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        if parts.first() != Some(&FLEET_FOLDER) {
            return Err(ObjectStoreError::Missing(path.to_owned()));
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
