//! Removes files that belong to no capture.

use std::collections::{BTreeSet, HashSet};

use crate::manifest::CaptureId;

use super::{Store, StoreError, manifest_path, object_path};

/// What a sweep removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Manifests of captures that are gone.
    pub manifests: u64,
    /// Objects that no manifest refers to.
    pub objects: u64,
    /// Bytes of those objects.
    pub object_bytes: u64,
    /// Copies that were never finished.
    pub temporary: u64,
}

impl Store {
    /// Removes what belongs to none of the `live` captures, objects that nothing refers to, and
    /// unfinished copies. While a live capture has a manifest that this version cannot read, no
    /// object is removed. What cannot be removed stops nothing: it is logged and counted, and left
    /// to the next sweep. Safe to repeat.
    pub async fn sweep(&self, live: &HashSet<CaptureId>) -> Result<Swept, StoreError> {
        let contents = self.contents.write().await;
        let mut swept = Swept {
            temporary: self.remove_temporary().await?,
            ..Swept::default()
        };
        let live_names: BTreeSet<(&str, &str)> = live
            .iter()
            .map(|capture| (capture.namespace.as_str(), capture.name.as_str()))
            .collect();
        let mut listing = self.list().await?;
        let mut dead = Vec::new();
        listing.manifests.retain(|manifest| {
            let keep = live.contains(&manifest.capture);
            if !keep {
                dead.push(manifest_path(&manifest.capture.namespace, &manifest.capture.name));
            }
            keep
        });
        listing.unreadable.retain(|(namespace, name, _)| {
            let keep = live_names.contains(&(namespace.as_str(), name.as_str()));
            if !keep {
                dead.push(manifest_path(namespace, name));
            }
            keep
        });
        for path in dead {
            if self.succeeded(self.remove(&path).await) {
                swept.manifests += 1;
            }
        }
        for (namespace, name, reason) in &listing.unreadable {
            tracing::warn!(%namespace, capture = %name, %reason, "manifest cannot be read; no object is removed");
        }
        let captures = listing.manifests.iter().map(|manifest| &manifest.capture).collect();
        for key in self.derived_of_others(&captures).await? {
            self.succeeded(self.remove_derived(&key).await);
        }
        self.succeeded(self.trim_records(None).await);
        // A manifest that stays keeps its objects: they are asked for anew.
        for (sha256, bytes) in self.unreferenced().await? {
            if self.succeeded(self.remove(&object_path(&sha256)).await) {
                swept.objects += 1;
                swept.object_bytes = swept.object_bytes.saturating_add(bytes);
            }
        }
        drop(contents);
        self.usage().await?;
        Ok(swept)
    }

    /// Removes unfinished copies, and counts them.
    pub(super) async fn remove_temporary(&self) -> Result<u64, StoreError> {
        let disk = self.disk.clone();
        let mut removed = 0;
        for result in tokio::task::spawn_blocking(move || disk.remove_temporary()).await?? {
            let mut was_there = false;
            self.succeeded(result.map(|there| was_there = there));
            removed += u64::from(was_there);
        }
        Ok(removed)
    }

    /// Logs and counts a removal that failed.
    fn succeeded(&self, removal: Result<(), StoreError>) -> bool {
        let Err(error) = removal else { return true };
        tracing::warn!(%error, "what belongs to no capture cannot be removed; the next sweep tries again");
        self.metrics.sweep_failures.inc();
        false
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::sync::Arc;

    use async_trait::async_trait;
    use flopwatch_api::artifact::Output;
    use flopwatch_api::capture::SessionReference;
    use futures::StreamExt as _;
    use futures::stream::BoxStream;
    use jiff::Timestamp;
    use object_store::path::Path;
    use object_store::{
        CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt as _,
        PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    };
    use prometheus::Registry;

    use super::*;
    use crate::metrics::ArtifactMetrics;
    use crate::store::{Publication, SourceFile, StoreOptions};

    /// An object store in which what `stays` names cannot be removed, and what `fails` names cannot
    /// be read.
    #[derive(Debug)]
    struct Stubborn {
        inner: Arc<dyn ObjectStore>,
        stays: Vec<Path>,
        fails: Vec<Path>,
    }

    fn stubborn(path: &Path) -> object_store::Error {
        object_store::Error::PermissionDenied {
            path: path.to_string(),
            source: "it is stubborn".into(),
        }
    }

    impl fmt::Display for Stubborn {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "stubborn {}", self.inner)
        }
    }

    #[async_trait]
    impl ObjectStore for Stubborn {
        async fn put_opts(&self, to: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
            self.inner.put_opts(to, payload, options).await
        }

        async fn put_multipart_opts(
            &self,
            to: &Path,
            options: PutMultipartOptions,
        ) -> Result<Box<dyn MultipartUpload>> {
            self.inner.put_multipart_opts(to, options).await
        }

        async fn get_opts(&self, from: &Path, options: GetOptions) -> Result<GetResult> {
            if self.fails.contains(from) {
                return Err(stubborn(from));
            }
            self.inner.get_opts(from, options).await
        }

        fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
            let (inner, stays) = (Arc::clone(&self.inner), self.stays.clone());
            let delete = move |path: Result<Path>| {
                let (inner, stays) = (Arc::clone(&inner), stays.clone());
                async move {
                    let path = path?;
                    if stays.contains(&path) {
                        return Err(stubborn(&path));
                    }
                    inner.delete(&path).await.map(|()| path)
                }
            };
            paths.then(delete).boxed()
        }

        fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
            self.inner.list(prefix)
        }

        async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
            self.inner.list_with_delimiter(prefix).await
        }

        async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
            self.inner.copy_opts(from, to, options).await
        }
    }

    async fn publish(store: &Store, folder: &std::path::Path, name: &str) -> String {
        let path = folder.join(format!("{name}.txt"));
        std::fs::write(&path, name).unwrap();
        let publication = Publication {
            capture: CaptureId {
                namespace: "team".to_owned(),
                name: name.to_owned(),
                uid: format!("uid-{name}"),
            },
            session: SessionReference {
                name: "session".to_owned(),
                id: "01234567".to_owned(),
            },
            created: Timestamp::UNIX_EPOCH,
            captured: Vec::new(),
        };
        let file = SourceFile {
            name: "summary.json".to_owned(),
            output: Output::Summary,
            media_type: "application/json".to_owned(),
            content: Arc::new(std::fs::File::open(path).unwrap()),
        };
        let manifest = store.publish(publication, &[file]).await.unwrap();
        manifest.artifacts[0].sha256.clone()
    }

    async fn open(root: &std::path::Path) -> (Store, ArtifactMetrics) {
        let options = StoreOptions {
            free_bytes_floor: 0,
            ..StoreOptions::default()
        };
        let metrics = ArtifactMetrics::register(&Registry::new()).unwrap();
        (Store::open(root, options, metrics.clone()).await.unwrap(), metrics)
    }

    #[tokio::test]
    async fn a_manifest_that_the_disk_does_not_give_hides_no_other_and_nothing_it_may_hold_goes() {
        let (root, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (mut store, _) = open(root.path()).await;
        for name in ["a", "b", "c"] {
            publish(&store, files.path(), name).await;
        }
        store.objects = Arc::new(Stubborn {
            inner: Arc::clone(&store.objects),
            stays: Vec::new(),
            fails: vec![manifest_path("team", "b")],
        });
        let listing = store.list().await.unwrap();
        let names: Vec<_> = listing
            .manifests
            .iter()
            .map(|manifest| manifest.capture.name.as_str())
            .collect();
        assert_eq!(names, ["a", "c"]);
        let [(namespace, name, reason)] = listing.unreadable.as_slice() else {
            panic!("{listing:?}");
        };
        assert_eq!((namespace.as_str(), name.as_str()), ("team", "b"));
        assert!(reason.contains("it is stubborn"), "{reason}");

        let live = |name: &str| CaptureId {
            namespace: "team".to_owned(),
            name: name.to_owned(),
            uid: format!("uid-{name}"),
        };
        let swept = store.sweep(&HashSet::from([live("a"), live("b")])).await.unwrap();
        assert_eq!((swept.manifests, swept.objects), (1, 0));
        assert_eq!(store.stored().await.unwrap().len(), 3);
    }

    #[tokio::test]
    async fn what_cannot_be_removed_is_counted_and_stops_nothing() {
        let (root, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (mut store, metrics) = open(root.path()).await;
        let mut objects = Vec::new();
        // The first of all, one in the middle whose object stays, and the last.
        for name in ["a", "b", "c"] {
            objects.push(publish(&store, files.path(), name).await);
        }
        let good = Arc::clone(&store.objects);
        store.objects = Arc::new(Stubborn {
            inner: Arc::clone(&good),
            stays: vec![manifest_path("team", "a"), object_path(&objects[1])],
            fails: Vec::new(),
        });

        let swept = store.sweep(&HashSet::new()).await.unwrap();
        assert_eq!((swept.manifests, swept.objects), (2, 1));
        assert_eq!(metrics.sweep_failures.get(), 2);
        let listing = store.list().await.unwrap();
        let left: Vec<_> = listing
            .manifests
            .iter()
            .map(|manifest| &manifest.capture.name)
            .collect();
        assert_eq!(left, ["a"]);
        let left: Vec<String> = store.stored().await.unwrap().into_keys().collect();
        let mut expected = objects[..2].to_vec();
        expected.sort();
        assert_eq!(left, expected, "what a manifest that stays refers to stays too");

        store.objects = good;
        let swept = store.sweep(&HashSet::new()).await.unwrap();
        assert_eq!((swept.manifests, swept.objects), (1, 2));
        assert_eq!(metrics.sweep_failures.get(), 2);
    }
}
