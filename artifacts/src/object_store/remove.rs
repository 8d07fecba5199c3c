//! Removes the objects of captures: of one that is deleted, and in a sweep of all that are gone.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use futures::TryStreamExt as _;
use jiff::Timestamp;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt as _};
use tokio::time::timeout;

use super::error::{LISTING, ObjectStoreError, REMOVING};
use super::{Bucket, Inner, MANIFEST};
use crate::manifest::{CaptureId, check_name};

/// Most requests of one removal that are under way at once.
const MAX_CONCURRENT_DELETIONS: usize = 4;
/// Longest list of all objects of the cluster.
const LIST_TIMEOUT: Duration = Duration::from_mins(15);

/// The number and size of the objects that a sweep removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Number of captures whose objects were removed.
    pub captures: u64,
    /// Number of objects that were removed.
    pub objects: u64,
    /// Bytes of the objects that were removed.
    pub bytes: u64,
}

/// The objects of one capture in the bucket.
#[derive(Default)]
struct CaptureObjects {
    objects: Vec<ObjectMeta>,
    youngest: Option<Timestamp>,
}

impl Bucket {
    /// Removes all objects of a capture, the manifest first. The call can be repeated.
    pub async fn remove(&self, capture: &CaptureId) -> Result<(), ObjectStoreError> {
        let inner = &self.inner;
        let folder = inner.folder(capture);
        inner.delete(&folder.clone().join(MANIFEST)).await?;
        let listed = inner.objects.list(Some(&folder)).try_collect::<Vec<_>>();
        let objects = inner.within(LISTING, listed).await?;
        inner.delete_all(objects).await
    }

    /// Removes the objects of captures that are not among the `live` and whose newest object is
    /// older than [`Limits::grace`](super::Limits::grace). Other objects of the bucket stay. The
    /// call can be repeated.
    pub async fn sweep(&self, live: &HashSet<CaptureId>, now: Timestamp) -> Result<Swept, ObjectStoreError> {
        let inner = &self.inner;
        let oldest = now.saturating_sub(inner.limits.grace).unwrap_or(Timestamp::MIN);
        let listing = timeout(LIST_TIMEOUT, inner.unwanted(live)).await;
        let by_capture = listing.map_err(|_elapsed| ObjectStoreError::Slow {
            what: LISTING,
            limit: LIST_TIMEOUT,
        })??;
        let mut swept = Swept::default();
        for (capture, CaptureObjects { mut objects, youngest }) in by_capture {
            if youngest.is_none_or(|youngest| youngest > oldest) {
                continue;
            }
            // The manifest goes first: it makes the others visible.
            objects.sort_by_key(|meta| meta.location.filename() != Some(MANIFEST));
            swept.captures += 1;
            swept.objects += u64::try_from(objects.len()).unwrap_or_default();
            swept.bytes = objects
                .iter()
                .fold(swept.bytes, |sum, meta| sum.saturating_add(meta.size));
            tracing::info!(
                namespace = capture.namespace,
                capture = capture.name,
                "a capture that is gone leaves the store"
            );
            inner.delete_all(objects).await?;
        }
        Ok(swept)
    }
}

impl Inner {
    /// Lists the objects of captures that are not among the `live`, by capture.
    async fn unwanted(
        &self,
        live: &HashSet<CaptureId>,
    ) -> Result<BTreeMap<CaptureId, CaptureObjects>, ObjectStoreError> {
        let mut by_capture: BTreeMap<CaptureId, CaptureObjects> = BTreeMap::new();
        let mut objects = self.objects.list(Some(&self.captures()));
        loop {
            let next = self.within(LISTING, objects.try_next()).await?;
            let Some(meta) = next else { return Ok(by_capture) };
            let Some(capture) = self.owner(&meta.location).filter(|capture| !live.contains(capture)) else {
                continue;
            };
            let changed = Timestamp::from_second(meta.last_modified.timestamp()).ok();
            let entry = by_capture.entry(capture).or_default();
            entry.youngest = entry.youngest.max(changed);
            entry.objects.push(meta);
        }
    }

    /// The capture that an object belongs to; None where its path is not one of this crate.
    fn owner(&self, path: &Path) -> Option<CaptureId> {
        let parts: Vec<_> = path.prefix_match(&self.captures())?.collect();
        let [namespace, name, uid, _] = parts.as_slice() else {
            return None;
        };
        let part = |what: &'static str, part: &str| check_name(what, part).ok().map(|()| part.to_owned());
        Some(CaptureId {
            namespace: part("namespace", namespace.as_ref())?,
            name: part("capture", name.as_ref())?,
            uid: uid.as_ref().to_owned(),
        })
    }

    async fn delete_all(&self, objects: Vec<ObjectMeta>) -> Result<(), ObjectStoreError> {
        futures::stream::iter(objects.into_iter().map(Ok))
            .try_for_each_concurrent(MAX_CONCURRENT_DELETIONS, |meta| async move {
                self.delete(&meta.location).await
            })
            .await
    }

    async fn delete(&self, key: &Path) -> Result<(), ObjectStoreError> {
        match self.within(REMOVING, self.objects.delete(key)).await {
            Ok(()) | Err(ObjectStoreError::Missing(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
