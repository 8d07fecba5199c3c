//! Removes the objects of captures, and lists the captures that a sweep has to look at.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use futures::TryStreamExt as _;
use jiff::Timestamp;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt as _};
use tokio::time::timeout;

use super::error::{BucketError, LISTING, REMOVING};
use super::{Bucket, Inner, MANIFEST};
use crate::manifest::{CaptureId, check_name};

/// Requests of one removal that are under way at once.
const AT_ONCE: usize = 4;
/// Longest look through all objects of the cluster.
const LOOK: Duration = Duration::from_mins(15);

/// What a sweep removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Captures that are gone.
    pub captures: u64,
    /// Objects that were removed.
    pub objects: u64,
    /// Bytes of those.
    pub bytes: u64,
}

/// What the bucket holds under one capture's name.
#[derive(Default)]
struct Held {
    objects: Vec<ObjectMeta>,
    youngest: Option<Timestamp>,
}

impl Bucket {
    /// Removes everything of a capture, the manifest first. Safe to repeat.
    pub async fn remove(&self, capture: &CaptureId) -> Result<(), BucketError> {
        let inner = &self.inner;
        let folder = inner.folder(capture);
        inner.delete(&folder.clone().join(MANIFEST)).await?;
        let listed = inner.objects.list(Some(&folder)).try_collect::<Vec<_>>();
        let objects = inner.within(LISTING, listed).await?;
        inner.delete_all(objects).await
    }

    /// Removes captures that are not among the `live` and have not changed within the grace. Whatever else is in the bucket
    /// stays. Safe to repeat.
    pub async fn sweep(&self, live: &HashSet<CaptureId>, now: Timestamp) -> Result<Swept, BucketError> {
        let inner = &self.inner;
        let oldest = now.saturating_sub(inner.limits.grace).unwrap_or(Timestamp::MIN);
        let look = timeout(LOOK, inner.unwanted(live)).await;
        let held = look.map_err(|_elapsed| BucketError::Slow {
            what: LISTING,
            limit: LOOK,
        })??;
        let mut swept = Swept::default();
        for (capture, Held { mut objects, youngest }) in held {
            if youngest.is_none_or(|youngest| youngest > oldest) {
                continue;
            }
            // First what makes the others visible.
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
    /// What there is of captures that are not among the `live`.
    async fn unwanted(&self, live: &HashSet<CaptureId>) -> Result<BTreeMap<CaptureId, Held>, BucketError> {
        let mut held: BTreeMap<CaptureId, Held> = BTreeMap::new();
        let mut objects = self.objects.list(Some(&self.captures()));
        loop {
            let next = self.within(LISTING, objects.try_next()).await?;
            let Some(meta) = next else { return Ok(held) };
            let Some(capture) = self.owner(&meta.location).filter(|capture| !live.contains(capture)) else {
                continue;
            };
            let changed = Timestamp::from_second(meta.last_modified.timestamp()).ok();
            let entry = held.entry(capture).or_default();
            entry.youngest = entry.youngest.max(changed);
            entry.objects.push(meta);
        }
    }

    /// The capture that an object belongs to; None for what is not laid out as this crate does.
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

    async fn delete_all(&self, objects: Vec<ObjectMeta>) -> Result<(), BucketError> {
        futures::stream::iter(objects.into_iter().map(Ok))
            .try_for_each_concurrent(AT_ONCE, |meta| async move { self.delete(&meta.location).await })
            .await
    }

    async fn delete(&self, key: &Path) -> Result<(), BucketError> {
        match self.within(REMOVING, self.objects.delete(key)).await {
            Ok(()) | Err(BucketError::Missing(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
