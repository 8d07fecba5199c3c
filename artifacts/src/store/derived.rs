//! Results of analyses: kept beside the (first) capture that they were made of, within bounds, and
//! gone with it.
//!
//! ```text
//! derived/<namespace>/<capture>.json   the results of a capture: of which analysis and timelines, when, and which objects they are
//! ```
//!
//! A result is found by the digests of what it was made of, in their order, and
//! [`Derivation::key`], which names the analysis with its version and its parameters: one that an
//! older version made is never served, and goes like any other.
//!
//! Everything here can be made again, so what cannot be read is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use flopwatch_api::artifact::Artifact;
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use object_store::path::Path;
use object_store::{GetOptions, ObjectStoreExt};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;

use super::{CHUNK_BYTES, Source, SourceFile, Store, StoreError, io_error};
use crate::derivation::Derivation;
use crate::input::Inputs;
use crate::manifest::{CaptureId, MAX_MANIFEST_BYTES, ManifestError, check_name, is_sha256};

/// Version of the layout. Results of another version are made again.
const RECORD_VERSION: u32 = 2;

/// The results of one capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Derived {
    version: u32,
    capture: CaptureId,
    /// Set where the capture is of another node.
    #[serde(default)]
    #[serde(rename = "guest")]
    remote: bool,
    kept: Vec<ResultRecord>,
}

/// The record of one result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultRecord {
    /// [`Derivation::key`].
    key: String,
    /// SHA-256 of each artifact that it was made of, in order.
    of: Vec<String>,
    /// When the result was made.
    made: Timestamp,
    /// Name, size and digest of the result's content.
    artifact: Artifact,
}

impl Derived {
    fn read(text: &[u8], key: &(String, String)) -> Option<Self> {
        let derived: Self = serde_json::from_slice(text).ok()?;
        let whole = |kept: &ResultRecord| {
            let artifact = &kept.artifact;
            is_sha256(&artifact.sha256) && artifact.bytes >= 0
        };
        let fits = derived.version == RECORD_VERSION
            && (&derived.capture.namespace, &derived.capture.name) == (&key.0, &key.1)
            && derived.kept.iter().all(whole);
        fits.then_some(derived)
    }
}

impl ResultRecord {
    /// Identifies the result among those of its capture.
    fn id(&self) -> String {
        format!("{} {}", self.key, self.of.join(" "))
    }

    /// Whether the result of `derivation` on the same captures replaces this one: the first may
    /// have been published anew.
    fn is_replaced_by(&self, derivation: &Derivation, of: &[String]) -> bool {
        self.key == derivation.key() && self.of.get(1..) == of.get(1..)
    }
}

/// A result and whose it is, for the choice of what goes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    key: (String, String),
    id: String,
    made: Timestamp,
    bytes: u64,
}

/// Which results go: those that are too old, and then the oldest until the rest fit into `bytes`.
/// The one at `kept` stays.
fn outlived(
    mut all: Vec<Candidate>,
    oldest: Timestamp,
    bytes: u64,
    kept: Option<(&(String, String), &str)>,
) -> Vec<Candidate> {
    all.sort_by_key(|candidate| candidate.made);
    let mut total: u64 = all.iter().map(|candidate| candidate.bytes).fold(0, u64::saturating_add);
    all.retain(|candidate| {
        let stays = kept.is_some_and(|(key, id)| *key == candidate.key && id == candidate.id);
        let goes = !stays && (candidate.made < oldest || total > bytes);
        if goes {
            total = total.saturating_sub(candidate.bytes);
        }
        goes
    });
    all
}

impl Store {
    /// The result of `derivation` on these inputs, where it was made before and is not too old.
    pub(crate) async fn derived(
        &self,
        derivation: &Derivation,
        inputs: &Inputs,
    ) -> Result<Option<Artifact>, StoreError> {
        let key = derivation.key();
        let (oldest, capture, of) = (self.oldest_result(), inputs.first.capture(), inputs.digests());
        let Some(derived) = self.record(&record_key(capture)).await? else {
            return Ok(None);
        };
        let fits = |kept: &&ResultRecord| kept.key == key && kept.of == of && kept.made >= oldest;
        let found = derived.kept.iter().find(fits).map(|kept| kept.artifact.clone());
        Ok(found.filter(|_| derived.capture == *capture))
    }

    /// Stores a copy of `file` as the result of `derivation` on these inputs, and removes the
    /// oldest results beyond the limits.
    pub(crate) async fn keep_derived(
        &self,
        derivation: &Derivation,
        inputs: &Inputs,
        file: &SourceFile,
    ) -> Result<Artifact, StoreError> {
        let bytes = file.bytes()?;
        if bytes > self.options.derived_bytes {
            return Err(StoreError::DerivedTooLarge {
                bytes,
                limit: self.options.derived_bytes,
            });
        }
        self.refuse_below_floor(bytes)?;
        // Shared with publications: no removal comes between the content and what refers to it.
        let contents = self.contents.read().await;
        let changing = self.derived_change.lock().await;
        for input in inputs.iter().filter(|input| input.is_of_this_node()) {
            // It may have been removed, or have been published anew, while the result was made.
            let CaptureId { namespace, name, .. } = input.capture();
            if self.get(namespace, name).await?.as_ref() != Some(&input.manifest) {
                return Err(StoreError::CaptureChanged {
                    namespace: namespace.clone(),
                    name: name.clone(),
                });
            }
        }
        let artifact = Artifact {
            name: file.name.clone(),
            type_: file.output,
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
            sha256: self.copy_in(file, bytes).await?,
            media_type: file.media_type.clone(),
            sensitive: inputs.are_sensitive(),
        };
        let (capture, of) = (inputs.first.capture(), inputs.digests());
        let key = record_key(capture);
        let found = self.record(&key).await?;
        let mut derived = found
            .filter(|derived| derived.capture == *capture)
            .unwrap_or_else(|| Derived {
                version: RECORD_VERSION,
                capture: capture.clone(),
                remote: inputs.are_of_another_node(),
                kept: Vec::new(),
            });
        derived.kept.retain(|kept| !kept.is_replaced_by(derivation, &of));
        let kept = ResultRecord {
            key: derivation.key(),
            of,
            made: Timestamp::now(),
            artifact: artifact.clone(),
        };
        let id = kept.id();
        derived.kept.push(kept);
        self.write_record(&key, &derived).await?;
        drop(changing);
        drop(contents);
        if let Err(error) = self.trim(Some((&key, &id))).await {
            tracing::warn!(%error, "results that outlived their bounds stay until the next sweep");
        }
        Ok(artifact)
    }

    /// Removes a result whose content turned out to be damaged. The call can be repeated.
    pub(crate) async fn forget_derived(&self, derivation: &Derivation, inputs: &Inputs) -> Result<(), StoreError> {
        let contents = self.contents.write().await;
        let changing = self.derived_change.lock().await;
        let (key, of) = (record_key(inputs.first.capture()), inputs.digests());
        if let Some(mut derived) = self.record(&key).await? {
            derived.kept.retain(|kept| !kept.is_replaced_by(derivation, &of));
            self.write_record(&key, &derived).await?;
        }
        drop(changing);
        let removed = self.remove_unreferenced().await;
        drop(contents);
        removed
    }

    /// Writes the content of an artifact, checked against its SHA-256, to a new file.
    pub(crate) async fn copy_out(
        &self,
        artifact: &Artifact,
        source: &Source,
        path: &std::path::Path,
    ) -> Result<(), StoreError> {
        let bytes = u64::try_from(artifact.bytes).unwrap_or_default();
        self.refuse_below_floor(bytes)?;
        let mut content = match source {
            Source::Node => self.read(artifact, 0..bytes).await?,
            Source::ObjectStore(bucket, stored) => {
                let content = bucket.read(stored, artifact, 0..bytes).await?;
                content.map_err(StoreError::from).boxed()
            }
            // Its digest was checked when it was received.
            Source::Received(Some(file)) => return copy(Arc::clone(file), bytes, path).await,
            Source::Received(None) => return Err(StoreError::InputBroken("its content is gone".to_owned())),
        };
        let mut file = tokio::fs::File::create_new(path).await.map_err(io_error(path))?;
        while let Some(chunk) = content.next().await {
            file.write_all(&chunk?).await.map_err(io_error(path))?;
        }
        file.flush().await.map_err(io_error(path))
    }

    /// Removes results that are too old or too many.
    async fn trim(&self, kept: Option<(&(String, String), &str)>) -> Result<(), StoreError> {
        let contents = self.contents.write().await;
        self.trim_records(kept).await?;
        self.remove_unreferenced().await?;
        drop(contents);
        self.usage().await.map(drop)
    }

    /// Takes results that are too old or too many out of the records; whoever has `contents` alone
    /// removes their objects.
    pub(super) async fn trim_records(&self, kept: Option<(&(String, String), &str)>) -> Result<(), StoreError> {
        let changing = self.derived_change.lock().await;
        let mut records = self.all_derived().await?;
        let all = records.iter().flat_map(|(key, derived)| {
            derived.kept.iter().map(|kept| Candidate {
                key: key.clone(),
                id: kept.id(),
                made: kept.made,
                bytes: u64::try_from(kept.artifact.bytes).unwrap_or_default(),
            })
        });
        let gone = outlived(all.collect(), self.oldest_result(), self.options.derived_bytes, kept);
        let changed: BTreeSet<_> = gone.iter().map(|candidate| candidate.key.clone()).collect();
        for candidate in gone {
            if let Some(derived) = records.get_mut(&candidate.key) {
                derived.kept.retain(|kept| kept.id() != candidate.id);
            }
        }
        for key in changed {
            if let Some(derived) = records.get(&key) {
                self.write_record(&key, derived).await?;
            }
        }
        drop(changing);
        Ok(())
    }

    /// Captures of other nodes whose results this store keeps.
    pub async fn remote_captures(&self) -> Result<Vec<CaptureId>, StoreError> {
        let records = self.all_derived().await?.into_values();
        Ok(records
            .filter(|derived| derived.remote)
            .map(|derived| derived.capture)
            .collect())
    }

    /// Removes the results of a capture of another node. Safe to repeat.
    pub async fn forget_remote_capture(&self, capture: &CaptureId) -> Result<(), StoreError> {
        let contents = self.contents.write().await;
        let key = record_key(capture);
        if self
            .record(&key)
            .await?
            .is_some_and(|derived| derived.remote && derived.capture == *capture)
        {
            self.remove_derived(&key).await?;
            self.remove_unreferenced().await?;
        }
        drop(contents);
        self.usage().await.map(drop)
    }

    /// Keys of the records of this node's captures that are not among `captures`.
    pub(super) async fn derived_of_others(
        &self,
        captures: &BTreeSet<&CaptureId>,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let mut records = self.all_derived().await?;
        records.retain(|_, derived| !derived.remote && !captures.contains(&derived.capture));
        Ok(records.into_keys().collect())
    }

    /// Removes a capture's record.
    pub(super) async fn remove_derived(&self, key: &(String, String)) -> Result<(), StoreError> {
        self.remove(&record_path(key)).await
    }

    /// SHA-256 of the objects that are the contents of results.
    pub(super) async fn derived_objects(&self) -> Result<BTreeSet<String>, StoreError> {
        let records = self.all_derived().await?;
        let kept = records.into_values().flat_map(|derived| derived.kept);
        Ok(kept.map(|kept| kept.artifact.sha256).collect())
    }

    /// The time before which a result that was made is too old; no result is where the clock stands
    /// at the beginning of time.
    fn oldest_result(&self) -> Timestamp {
        let oldest = Timestamp::now().saturating_sub(self.options.derived_age);
        oldest.unwrap_or(Timestamp::MIN)
    }

    /// Reads the record with this key; None where it is missing or cannot be read.
    async fn record(&self, key: &(String, String)) -> Result<Option<Derived>, StoreError> {
        let found = match self.objects.get_opts(&record_path(key), GetOptions::default()).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if found.meta.size > MAX_MANIFEST_BYTES {
            return Ok(None);
        }
        Ok(Derived::read(&found.bytes().await?, key))
    }

    /// Every record. One that cannot be read is removed: what it named can be made again.
    pub(super) async fn all_derived(&self) -> Result<BTreeMap<(String, String), Derived>, StoreError> {
        let metas: Vec<_> = self.objects.list(Some(&Path::from("derived"))).try_collect().await?;
        let mut records = BTreeMap::new();
        for key in metas.iter().filter_map(|meta| key_of_path(&meta.location)) {
            match self.record(&key).await? {
                Some(derived) => drop(records.insert(key, derived)),
                None => {
                    if let Err(error) = self.remove_derived(&key).await {
                        tracing::warn!(capture = key.1, %error, "a record of results that cannot be read stays for now");
                    }
                }
            }
        }
        Ok(records)
    }

    async fn write_record(&self, key: &(String, String), derived: &Derived) -> Result<(), StoreError> {
        if derived.kept.is_empty() {
            return self.remove_derived(key).await;
        }
        let text = serde_json::to_vec(derived).map_err(ManifestError::from)?;
        self.objects.put(&record_path(key), text.into()).await?;
        Ok(())
    }
}

/// Copies a file from its beginning; others may read the same open file.
async fn copy(file: Arc<File>, bytes: u64, path: &std::path::Path) -> Result<(), StoreError> {
    let to = path.to_path_buf();
    let copied = tokio::task::spawn_blocking(move || {
        let failed = || io_error(&to);
        let mut out = File::create_new(&to).map_err(failed())?;
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut at = 0;
        while at < bytes {
            let read = file.read_at(&mut buffer, at).map_err(failed())?;
            let Some(chunk) = buffer.get(..read).filter(|chunk| !chunk.is_empty()) else {
                break;
            };
            out.write_all(chunk).map_err(failed())?;
            at = at.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
        }
        Ok(())
    });
    copied.await?
}

fn record_key(capture: &CaptureId) -> (String, String) {
    (capture.namespace.clone(), capture.name.clone())
}

fn record_path((namespace, capture): &(String, String)) -> Path {
    Path::from(format!("derived/{namespace}/{capture}.json"))
}

/// Namespace and name of the capture whose record or manifest is there.
pub(super) fn key_of_path(path: &Path) -> Option<(String, String)> {
    let parts: Vec<_> = path.parts().collect();
    let [_, namespace, file] = parts.as_slice() else {
        return None;
    };
    let name = file.as_ref().strip_suffix(".json")?;
    let named = check_name("namespace", namespace.as_ref()).is_ok() && check_name("capture", name).is_ok();
    named.then(|| (namespace.as_ref().to_owned(), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(name: &str, second: i64, bytes: u64) -> Candidate {
        Candidate {
            key: ("team".to_owned(), "train".to_owned()),
            id: name.to_owned(),
            made: Timestamp::from_second(second).unwrap(),
            bytes,
        }
    }

    #[test]
    fn the_oldest_results_go_until_the_rest_fit() {
        let all = vec![candidate("b", 20, 4), candidate("a", 10, 4), candidate("c", 30, 4)];
        let key = all[0].key.clone();
        let gone = |oldest: i64, bytes: u64, kept: Option<&str>| -> Vec<String> {
            let oldest = Timestamp::from_second(oldest).unwrap();
            let gone = outlived(all.clone(), oldest, bytes, kept.map(|name| (&key, name)));
            gone.into_iter().map(|candidate| candidate.id).collect()
        };
        assert!(gone(0, 12, None).is_empty());
        assert_eq!(gone(0, 11, None), ["a"]);
        assert_eq!(gone(0, 4, None), ["a", "b"]);
        assert_eq!(gone(25, 100, None), ["a", "b"]);
        assert_eq!(gone(0, 4, Some("a")), ["b", "c"]);
        assert_eq!(gone(0, 0, None), ["a", "b", "c"]);
    }

    #[test]
    fn a_record_in_another_place_or_of_another_version_is_none() {
        let key = ("team".to_owned(), "train".to_owned());
        let record = |version: u32, name: &str| {
            let derived = Derived {
                version,
                capture: CaptureId {
                    namespace: "team".to_owned(),
                    name: name.to_owned(),
                    uid: "u".to_owned(),
                },
                remote: false,
                kept: Vec::new(),
            };
            serde_json::to_vec(&derived).unwrap()
        };
        assert!(Derived::read(&record(RECORD_VERSION, "train"), &key).is_some());
        assert!(Derived::read(&record(RECORD_VERSION, "other"), &key).is_none());
        assert!(Derived::read(&record(RECORD_VERSION + 1, "train"), &key).is_none());
        assert!(Derived::read(b"{", &key).is_none());
    }
}
