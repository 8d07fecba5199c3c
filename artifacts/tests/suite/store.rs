//! The store on real files.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::rig;
use flopwatch_api::artifact::Output;
use flopwatch_artifacts::{
    ArtifactMetrics, CaptureId, EvictionLimits, Manifest, Publication, SourceFile, Store, StoreError, StoreOptions,
    Swept,
};
use jiff::Timestamp;
use prometheus::Registry;
use tempfile::TempDir;

/// SHA-256 of "hello\n".
const HELLO: &str = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";

struct Rig {
    root: TempDir,
    files: TempDir,
}

impl Rig {
    fn new() -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
            files: tempfile::tempdir().unwrap(),
        }
    }

    async fn open(&self) -> Store {
        self.open_with(rig::options()).await.unwrap()
    }

    async fn open_with(&self, options: StoreOptions) -> Result<Store, StoreError> {
        let metrics = ArtifactMetrics::register(&Registry::new()).unwrap();
        Store::open(self.root.path(), options, metrics).await
    }

    /// Publishes a capture of one file.
    async fn publish(&self, store: &Store, capture: &str, name: &str, content: &str) -> Result<Manifest, StoreError> {
        store.publish(publication(capture), &[self.file(name, content)]).await
    }

    fn file(&self, name: &str, content: &str) -> SourceFile {
        let path = self.files.path().join(name);
        fs::write(&path, content).unwrap();
        source(name, path)
    }

    /// Files under the store's root, but for its lock.
    fn stored(&self) -> Vec<String> {
        fn walk(root: &Path, directory: &Path, found: &mut Vec<String>) {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(root, &path, found);
                } else {
                    found.push(path.strip_prefix(root).unwrap().display().to_string());
                }
            }
        }
        let mut found = Vec::new();
        walk(self.root.path(), self.root.path(), &mut found);
        found.retain(|path| path != "lock");
        found.sort();
        found
    }
}

fn source(name: &str, path: PathBuf) -> SourceFile {
    SourceFile {
        name: name.into(),
        output: Output::Timeline,
        media_type: "application/x-hdf5".into(),
        content: Arc::new(fs::File::open(path).unwrap()),
    }
}

fn id(name: &str) -> CaptureId {
    CaptureId {
        namespace: "team".into(),
        name: name.into(),
        uid: format!("uid-{name}"),
    }
}

fn publication(name: &str) -> Publication {
    Publication {
        capture: id(name),
        ..rig::publication(name)
    }
}

#[tokio::test]
async fn a_publication_stands_under_its_content_and_can_be_repeated() {
    let rig = Rig::new();
    let store = rig.open().await;
    assert_eq!(store.get("team", "a").await.unwrap(), None);
    let files = [rig.file("timeline.h5", "hello\n"), rig.file("summary.json", "{}")];
    let manifest = store.publish(publication("a"), &files).await.unwrap();
    assert_eq!(manifest.artifacts[0].sha256, HELLO);
    assert_eq!(manifest.artifacts[0].bytes, 6);
    let stored = rig.stored();
    assert!(stored.contains(&format!("objects/{HELLO}")), "{stored:?}");
    assert_eq!(
        stored.len(),
        3,
        "two objects and the manifest, nothing left over: {stored:?}"
    );

    assert_eq!(store.publish(publication("a"), &files).await.unwrap(), manifest);
    assert_eq!(rig.stored(), stored);
    assert_eq!(store.get("team", "a").await.unwrap(), Some(manifest.clone()));
    assert_eq!(store.list().await.unwrap().manifests, std::slice::from_ref(&manifest));
    drop(store);
    assert_eq!(rig.open().await.get("team", "a").await.unwrap(), Some(manifest));
}

#[tokio::test]
async fn a_deletion_keeps_what_another_capture_shares() {
    let rig = Rig::new();
    let store = rig.open().await;
    let shared = rig.file("shared.txt", "hello\n");
    let files = [shared.clone(), rig.file("own.txt", "own")];
    store.publish(publication("a"), &files).await.unwrap();
    store.publish(publication("b"), &[shared]).await.unwrap();
    assert_eq!(store.usage().await.unwrap().objects, 2);
    assert!(store.delete("team", "a").await.unwrap());
    assert_eq!(
        rig.stored(),
        ["captures/team/b.json".to_owned(), format!("objects/{HELLO}")]
    );
    assert!(!store.delete("team", "a").await.unwrap());
    assert!(store.delete("team", "b").await.unwrap());
    assert!(rig.stored().is_empty());
}

#[tokio::test]
async fn a_crash_at_any_point_leaves_nothing_after_the_sweep() {
    let rig = Rig::new();
    let store = rig.open().await;
    rig.publish(&store, "live", "keep.txt", "hello\n").await.unwrap();
    rig.publish(&store, "gone", "drop.txt", "gone").await.unwrap();
    drop(store);
    let mut keep = rig.stored();
    keep.retain(|path| path.contains("live") || path.contains(HELLO));
    // While a copy is under way; between object and manifest; while object or manifest are renamed
    // into their place.
    fs::create_dir_all(rig.root.path().join("incoming")).unwrap();
    fs::write(rig.root.path().join("incoming/0#1"), "half").unwrap();
    fs::write(rig.root.path().join("incoming/7"), "whole").unwrap();
    fs::write(rig.root.path().join(format!("objects/{}", "a".repeat(64))), "orphan").unwrap();
    fs::write(rig.root.path().join(format!("objects/{}#2", "b".repeat(64))), "half").unwrap();
    fs::write(rig.root.path().join("captures/team/next.json#1"), "{").unwrap();

    // Opening clears what was under way. The manifests all still stand.
    let store = rig.open().await;
    let mut left = rig.stored();
    left.retain(|path| path.contains('#') || path.contains("incoming"));
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(store.list().await.unwrap().manifests.len(), 2);
    fs::write(rig.root.path().join("incoming/8"), "left by a cancelled task").unwrap();
    let live = HashSet::from([id("live")]);
    let swept = store.sweep(&live).await.unwrap();
    assert_eq!(
        swept,
        Swept {
            manifests: 1,
            objects: 2,
            object_bytes: 10,
            temporary: 1
        }
    );
    assert_eq!(rig.stored(), keep);
    assert_eq!(store.sweep(&live).await.unwrap(), Swept::default());
}

#[tokio::test]
async fn a_capture_of_the_same_name_and_another_uid_is_another_capture() {
    let rig = Rig::new();
    let store = rig.open().await;
    rig.publish(&store, "a", "f", "hello\n").await.unwrap();
    let again = CaptureId {
        uid: "another".into(),
        ..id("a")
    };
    assert_eq!(store.sweep(&HashSet::from([again])).await.unwrap().manifests, 1);
    assert!(rig.stored().is_empty());
}

#[tokio::test]
async fn a_manifest_of_a_newer_version_keeps_its_objects_while_its_capture_lives() {
    let rig = Rig::new();
    let store = rig.open().await;
    rig.publish(&store, "newer", "f", "hello\n").await.unwrap();
    let path = rig.root.path().join("captures/team/newer.json");
    fs::write(&path, r#"{"version": 2}"#).unwrap();
    let error = store.get("team", "newer").await.unwrap_err();
    assert!(matches!(error, StoreError::Unreadable { .. }), "{error}");
    assert_eq!(store.list().await.unwrap().unreadable.len(), 1);
    let swept = store.sweep(&HashSet::from([id("newer")])).await.unwrap();
    assert_eq!(swept, Swept::default());
    assert_eq!(rig.stored().len(), 2);
    let swept = store.sweep(&HashSet::new()).await.unwrap();
    assert_eq!((swept.manifests, swept.objects), (1, 1));
    assert!(rig.stored().is_empty());
}

#[tokio::test]
async fn a_full_disk_refuses_and_keeps_nothing() {
    let rig = Rig::new();
    let full = StoreOptions {
        free_bytes_floor: u64::MAX,
        ..StoreOptions::default()
    };
    let store = rig.open_with(full).await.unwrap();
    let error = rig.publish(&store, "a", "f", "hello\n").await.unwrap_err();
    let StoreError::NoSpace { needed, floor, .. } = error else {
        panic!("{error}");
    };
    assert_eq!((needed, floor), (6, u64::MAX));
    assert!(rig.stored().is_empty());
}

#[tokio::test]
async fn a_file_that_grows_while_it_is_read_is_refused() {
    let rig = Rig::new();
    let store = rig.open().await;
    // Files of /proc say that they have 0 bytes.
    let growing = source("status", "/proc/self/status".into());
    let error = store
        .publish(publication("a"), &[rig.file("f", "hello\n"), growing])
        .await
        .unwrap_err();
    assert!(
        matches!(error, StoreError::SourceChanged { expected: 0, .. }),
        "{error}"
    );
    assert_eq!(store.get("team", "a").await.unwrap(), None);
    assert_eq!(store.sweep(&HashSet::new()).await.unwrap().objects, 1);
    assert!(rig.stored().is_empty(), "{:?}", rig.stored());
}

#[tokio::test]
async fn names_that_are_no_names_are_refused_before_anything_is_copied() {
    let rig = Rig::new();
    let store = rig.open().await;
    let good = rig.file("f", "hello\n");
    for name in ["../f", "a/b", "", "F", "."] {
        let bad = SourceFile {
            name: name.into(),
            ..good.clone()
        };
        let error = store.publish(publication("a"), &[bad]).await.unwrap_err();
        assert!(matches!(error, StoreError::Manifest(_)), "{name}: {error}");
    }
    let twice = [good.clone(), good.clone()];
    store.publish(publication("a"), &twice).await.unwrap_err();
    let outside = Publication {
        capture: CaptureId {
            namespace: "..".into(),
            ..id("a")
        },
        ..publication("a")
    };
    store.publish(outside, &[good]).await.unwrap_err();
    store.get("..", "a").await.unwrap_err();
    store.delete("team", "../../x").await.unwrap_err();
    assert!(rig.stored().is_empty());
}

#[tokio::test]
async fn a_store_has_one_process() {
    let rig = Rig::new();
    let store = rig.open().await;
    let error = rig.open_with(StoreOptions::default()).await.unwrap_err();
    assert!(matches!(error, StoreError::InUse(_)), "{error}");
    drop(store);
    rig.open().await;
}

#[tokio::test]
async fn publications_beside_each_other_all_stand() {
    let rig = Rig::new();
    let store = rig.open().await;
    let names: Vec<String> = (0..8).map(|n| format!("c{n}")).collect();
    let files: Vec<_> = names
        .iter()
        .map(|name| [rig.file("same", "hello\n"), rig.file(name, name)])
        .collect();
    let publications = names
        .iter()
        .zip(&files)
        .map(|(name, files)| store.publish(publication(name), files));
    for published in futures::future::join_all(publications).await {
        published.unwrap();
    }
    assert_eq!(store.list().await.unwrap().manifests.len(), 8);
    assert_eq!(store.usage().await.unwrap().objects, 9);
    let live = names.iter().map(|name| id(name)).collect();
    assert_eq!(store.sweep(&live).await.unwrap(), Swept::default());
}

#[tokio::test]
async fn the_limits_of_a_node_remove_the_oldest_and_keep_what_is_busy() {
    let rig = Rig::new();
    let store = rig.open().await;
    for (name, second, content) in [("a", 10, "aaaa"), ("b", 20, "bbbb"), ("c", 30, "cccc")] {
        let publication = Publication {
            created: Timestamp::from_second(second).unwrap(),
            ..publication(name)
        };
        let files = [rig.file("timeline.h5", content)];
        store.publish(publication, &files).await.unwrap();
    }
    let (none, busy) = (HashSet::new(), HashSet::from([id("a")]));
    let limits = |bytes: u64| EvictionLimits {
        bytes: Some(bytes),
        oldest: None,
    };
    assert!(store.evict_captures(limits(12), &none, &busy).await.unwrap().is_empty());
    assert_eq!(store.evict_captures(limits(8), &none, &busy).await.unwrap(), [id("b")]);
    assert_eq!(store.usage().await.unwrap().bytes, 8);
    assert_eq!(store.evict_captures(limits(0), &none, &busy).await.unwrap(), [id("c")]);
    assert!(store.get("team", "a").await.unwrap().is_some(), "what is busy stays");
    let old = EvictionLimits {
        bytes: None,
        oldest: Some(Timestamp::from_second(11).unwrap()),
    };
    assert_eq!(store.evict_captures(old, &none, &none).await.unwrap(), [id("a")]);
    assert!(rig.stored().is_empty(), "{:?}", rig.stored());
}
