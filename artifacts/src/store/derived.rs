//! Forms that were made of a capture's timeline: kept beside the capture, within bounds, and gone with it.
//!
//! ```text
//! derived/<namespace>/<capture>.json   the forms of a capture: of what they were made, when, and which objects they are
//! ```
//!
//! Everything here can be made again, so what cannot be read is removed.

use std::collections::{BTreeMap, BTreeSet};

use flopwatch_api::artifact::Artifact;
use flopwatch_api::form::Form;
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use object_store::path::Path;
use object_store::{GetOptions, ObjectStoreExt};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;

use super::{Source, SourceFile, Store, StoreError, io_error};
use crate::manifest::{CaptureId, MAX_MANIFEST_BYTES, Manifest, ManifestError, check_name, is_sha256};

/// Version of the layout. Forms of another version are made again.
const VERSION: u32 = 1;

/// The forms of one capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Forms {
    version: u32,
    capture: CaptureId,
    /// Set where the capture is of another node and its artifacts come from the bucket.
    #[serde(default)]
    guest: bool,
    kept: Vec<Kept>,
}

/// A form that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    /// SHA-256 of what it was made of.
    of: String,
    /// When it was made.
    made: Timestamp,
    /// Its content, as that of an artifact.
    artifact: Artifact,
}

impl Forms {
    fn read(text: &[u8], place: &(String, String)) -> Option<Self> {
        let forms: Self = serde_json::from_slice(text).ok()?;
        let whole = |kept: &Kept| {
            let artifact = &kept.artifact;
            Form::from_name(&artifact.name).is_some() && is_sha256(&artifact.sha256) && artifact.bytes >= 0
        };
        let fits = forms.version == VERSION
            && (&forms.capture.namespace, &forms.capture.name) == (&place.0, &place.1)
            && forms.kept.iter().all(whole);
        fits.then_some(forms)
    }
}

/// A form and whose it is, for the choice of what goes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    place: (String, String),
    name: String,
    made: Timestamp,
    bytes: u64,
}

/// Which forms go: those that are too old, and then the oldest until the rest fit into `bytes`. The one at `kept` stays.
fn outlived(
    mut all: Vec<Candidate>,
    oldest: Timestamp,
    bytes: u64,
    kept: Option<(&(String, String), &str)>,
) -> Vec<Candidate> {
    all.sort_by_key(|candidate| candidate.made);
    let mut total: u64 = all.iter().map(|candidate| candidate.bytes).fold(0, u64::saturating_add);
    all.retain(|candidate| {
        let stays = kept.is_some_and(|(place, name)| *place == candidate.place && name == candidate.name);
        let goes = !stays && (candidate.made < oldest || total > bytes);
        if goes {
            total = total.saturating_sub(candidate.bytes);
        }
        goes
    });
    all
}

impl Store {
    /// A form of a capture's artifact that was made before and may still be used.
    pub(crate) async fn form(
        &self,
        manifest: &Manifest,
        of: &Artifact,
        form: Form,
    ) -> Result<Option<Artifact>, StoreError> {
        let oldest = self.oldest_form();
        let Some(forms) = self.forms(&place_of(&manifest.capture)).await? else {
            return Ok(None);
        };
        let fits = |kept: &&Kept| kept.artifact.name == form.name() && kept.of == of.sha256 && kept.made >= oldest;
        let found = forms.kept.iter().find(fits).map(|kept| kept.artifact.clone());
        Ok(found.filter(|_| forms.capture == manifest.capture))
    }

    /// Keeps a copy of `file` as the form of a capture's artifact, and lets go of others where the bounds ask for it. `guest`:
    /// the capture is of another node.
    pub(crate) async fn keep_form(
        &self,
        manifest: &Manifest,
        of: &Artifact,
        form: Form,
        file: &SourceFile,
        guest: bool,
    ) -> Result<Artifact, StoreError> {
        let bytes = file.bytes()?;
        if bytes > self.options.form_bytes {
            return Err(StoreError::FormTooLarge {
                bytes,
                limit: self.options.form_bytes,
            });
        }
        self.refuse_below_floor(bytes)?;
        // Shared with publications: no removal comes between the content and what refers to it.
        let contents = self.contents.read().await;
        let changing = self.forms_change.lock().await;
        let capture = &manifest.capture;
        // It may have been removed, or have been published anew, while the form was made.
        let now = self.get(&capture.namespace, &capture.name).await?;
        if !guest && now.as_ref() != Some(manifest) {
            return Err(StoreError::CaptureChanged {
                namespace: capture.namespace.clone(),
                name: capture.name.clone(),
            });
        }
        let artifact = Artifact {
            name: form.name().to_owned(),
            type_: of.type_,
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
            sha256: self.copy_in(file, bytes).await?,
            media_type: form.media_type().to_owned(),
            sensitive: of.sensitive,
        };
        let place = place_of(capture);
        let found = self.forms(&place).await?;
        let mut forms = found
            .filter(|forms| forms.capture == *capture)
            .unwrap_or_else(|| Forms {
                version: VERSION,
                capture: capture.clone(),
                guest,
                kept: Vec::new(),
            });
        forms.kept.retain(|kept| kept.artifact.name != form.name());
        forms.kept.push(Kept {
            of: of.sha256.clone(),
            made: Timestamp::now(),
            artifact: artifact.clone(),
        });
        self.write_forms(&place, &forms).await?;
        drop(changing);
        drop(contents);
        let kept = self.let_go(Some((&place, form.name()))).await;
        if let Err(error) = kept {
            tracing::warn!(%error, "forms that outlived their bounds stay until the next sweep");
        }
        Ok(artifact)
    }

    /// Forgets a form whose content turned out to be damaged. Safe to repeat.
    pub(crate) async fn forget_form(&self, manifest: &Manifest, form: Form) -> Result<(), StoreError> {
        let contents = self.contents.write().await;
        let changing = self.forms_change.lock().await;
        let place = place_of(&manifest.capture);
        if let Some(mut forms) = self.forms(&place).await? {
            forms.kept.retain(|kept| kept.artifact.name != form.name());
            self.write_forms(&place, &forms).await?;
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
            Source::Bucket(bucket, stored) => {
                let content = bucket.read(stored, artifact, 0..bytes).await?;
                content.map_err(StoreError::from).boxed()
            }
        };
        let mut file = tokio::fs::File::create_new(path).await.map_err(io_error(path))?;
        while let Some(chunk) = content.next().await {
            file.write_all(&chunk?).await.map_err(io_error(path))?;
        }
        file.flush().await.map_err(io_error(path))
    }

    /// Removes forms that are too old or too many.
    async fn let_go(&self, kept: Option<(&(String, String), &str)>) -> Result<(), StoreError> {
        let contents = self.contents.write().await;
        self.let_go_of(kept).await?;
        self.remove_unreferenced().await?;
        drop(contents);
        self.usage().await.map(drop)
    }

    /// Takes forms that are too old or too many out of the records; whoever has `contents` alone removes their objects.
    pub(super) async fn let_go_of(&self, kept: Option<(&(String, String), &str)>) -> Result<(), StoreError> {
        let changing = self.forms_change.lock().await;
        let mut records = self.all_forms().await?;
        let all = records.iter().flat_map(|(place, forms)| {
            forms.kept.iter().map(|kept| Candidate {
                place: place.clone(),
                name: kept.artifact.name.clone(),
                made: kept.made,
                bytes: u64::try_from(kept.artifact.bytes).unwrap_or_default(),
            })
        });
        let gone = outlived(all.collect(), self.oldest_form(), self.options.form_bytes, kept);
        let changed: BTreeSet<_> = gone.iter().map(|candidate| candidate.place.clone()).collect();
        for candidate in gone {
            if let Some(forms) = records.get_mut(&candidate.place) {
                forms.kept.retain(|kept| kept.artifact.name != candidate.name);
            }
        }
        for place in changed {
            if let Some(forms) = records.get(&place) {
                self.write_forms(&place, forms).await?;
            }
        }
        drop(changing);
        Ok(())
    }

    /// Captures of other nodes of which forms are kept here.
    pub async fn guests(&self) -> Result<Vec<CaptureId>, StoreError> {
        let records = self.all_forms().await?.into_values();
        Ok(records.filter(|forms| forms.guest).map(|forms| forms.capture).collect())
    }

    /// Lets go of the forms of a capture of another node. Safe to repeat.
    pub async fn forget_guest(&self, capture: &CaptureId) -> Result<(), StoreError> {
        let contents = self.contents.write().await;
        let place = place_of(capture);
        if self
            .forms(&place)
            .await?
            .is_some_and(|forms| forms.guest && forms.capture == *capture)
        {
            self.remove_forms(&place).await?;
            self.remove_unreferenced().await?;
        }
        drop(contents);
        self.usage().await.map(drop)
    }

    /// The places of records of this node's captures that are not among `captures`.
    pub(super) async fn forms_of_others(
        &self,
        captures: &BTreeSet<&CaptureId>,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let mut records = self.all_forms().await?;
        records.retain(|_, forms| !forms.guest && !captures.contains(&forms.capture));
        Ok(records.into_keys().collect())
    }

    /// Removes a capture's record.
    pub(super) async fn remove_forms(&self, place: &(String, String)) -> Result<(), StoreError> {
        self.remove(&forms_path(place)).await
    }

    /// The objects that forms are.
    pub(super) async fn objects_of_forms(&self) -> Result<BTreeSet<String>, StoreError> {
        let records = self.all_forms().await?;
        let kept = records.into_values().flat_map(|forms| forms.kept);
        Ok(kept.map(|kept| kept.artifact.sha256).collect())
    }

    /// Made before this, a form is too old. Clocks that stand at the beginning of time make none so.
    fn oldest_form(&self) -> Timestamp {
        let oldest = Timestamp::now().saturating_sub(self.options.form_age);
        oldest.unwrap_or(Timestamp::MIN)
    }

    /// The record at a place; one that cannot be read is none.
    async fn forms(&self, place: &(String, String)) -> Result<Option<Forms>, StoreError> {
        let found = match self.objects.get_opts(&forms_path(place), GetOptions::default()).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if found.meta.size > MAX_MANIFEST_BYTES {
            return Ok(None);
        }
        Ok(Forms::read(&found.bytes().await?, place))
    }

    /// Every record. One that cannot be read is removed: what it named can be made again.
    async fn all_forms(&self) -> Result<BTreeMap<(String, String), Forms>, StoreError> {
        let metas: Vec<_> = self.objects.list(Some(&Path::from("derived"))).try_collect().await?;
        let mut records = BTreeMap::new();
        for place in metas.iter().filter_map(|meta| place_at(&meta.location)) {
            match self.forms(&place).await? {
                Some(forms) => drop(records.insert(place, forms)),
                None => {
                    if let Err(error) = self.remove_forms(&place).await {
                        tracing::warn!(capture = place.1, %error, "a record of forms that cannot be read stays for now");
                    }
                }
            }
        }
        Ok(records)
    }

    async fn write_forms(&self, place: &(String, String), forms: &Forms) -> Result<(), StoreError> {
        if forms.kept.is_empty() {
            return self.remove_forms(place).await;
        }
        let text = serde_json::to_vec(forms).map_err(ManifestError::from)?;
        self.objects.put(&forms_path(place), text.into()).await?;
        Ok(())
    }
}

fn place_of(capture: &CaptureId) -> (String, String) {
    (capture.namespace.clone(), capture.name.clone())
}

fn forms_path((namespace, capture): &(String, String)) -> Path {
    Path::from(format!("derived/{namespace}/{capture}.json"))
}

fn place_at(path: &Path) -> Option<(String, String)> {
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
            place: ("team".to_owned(), "train".to_owned()),
            name: name.to_owned(),
            made: Timestamp::from_second(second).unwrap(),
            bytes,
        }
    }

    #[test]
    fn the_oldest_forms_go_until_the_rest_fit() {
        let all = vec![candidate("b", 20, 4), candidate("a", 10, 4), candidate("c", 30, 4)];
        let place = all[0].place.clone();
        let gone = |oldest: i64, bytes: u64, kept: Option<&str>| -> Vec<String> {
            let oldest = Timestamp::from_second(oldest).unwrap();
            let gone = outlived(all.clone(), oldest, bytes, kept.map(|name| (&place, name)));
            gone.into_iter().map(|candidate| candidate.name).collect()
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
        let place = ("team".to_owned(), "train".to_owned());
        let record = |version: u32, name: &str| {
            let forms = Forms {
                version,
                capture: CaptureId {
                    namespace: "team".to_owned(),
                    name: name.to_owned(),
                    uid: "u".to_owned(),
                },
                guest: false,
                kept: Vec::new(),
            };
            serde_json::to_vec(&forms).unwrap()
        };
        assert!(Forms::read(&record(VERSION, "train"), &place).is_some());
        assert!(Forms::read(&record(VERSION, "other"), &place).is_none());
        assert!(Forms::read(&record(VERSION + 1, "train"), &place).is_none());
        assert!(Forms::read(b"{", &place).is_none());
    }
}
