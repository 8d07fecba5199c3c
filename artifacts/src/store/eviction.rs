//! The limits of size and age of a node's artifacts.

use std::collections::{BTreeMap, HashSet};

use crate::manifest::{CaptureId, Manifest};
use jiff::Timestamp;

use super::{Store, StoreError};

/// What a node's artifacts may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictionLimits {
    /// Bytes of all artifacts, forms aside; None: no limit but the disk's.
    pub bytes: Option<u64>,
    /// Published before this, artifacts are too old; None: none are.
    pub oldest: Option<Timestamp>,
}

/// Which captures go: those that are too old, and then the oldest until the rest fit, first those
/// that have replicas elsewhere. What is `busy` stays whatever the limits say.
fn outlived<'a>(
    manifests: &'a [Manifest],
    limits: EvictionLimits,
    copied: &HashSet<CaptureId>,
    busy: &HashSet<CaptureId>,
) -> Vec<&'a CaptureId> {
    // Objects that captures share go with the last of these.
    let mut holders: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
    for artifact in manifests.iter().flat_map(|manifest| &manifest.artifacts) {
        let bytes = u64::try_from(artifact.bytes).unwrap_or_default();
        holders.entry(&artifact.sha256).or_insert((bytes, 0)).1 += 1;
    }
    let mut total = holders
        .values()
        .map(|(bytes, _)| bytes)
        .fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
    let mut order: Vec<&Manifest> = manifests
        .iter()
        .filter(|manifest| !busy.contains(&manifest.capture))
        .collect();
    order.sort_by_key(|manifest| (!copied.contains(&manifest.capture), manifest.created));
    let mut gone = Vec::new();
    let (old, young): (Vec<_>, Vec<_>) = order
        .into_iter()
        .partition(|manifest| limits.oldest.is_some_and(|oldest| manifest.created < oldest));
    let too_old = old.len();
    for (at, manifest) in old.into_iter().chain(young).enumerate() {
        if at >= too_old && limits.bytes.is_none_or(|max_bytes| total <= max_bytes) {
            break;
        }
        for artifact in &manifest.artifacts {
            if let Some((bytes, count)) = holders.get_mut(artifact.sha256.as_str()) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    total = total.saturating_sub(*bytes);
                }
            }
        }
        gone.push(&manifest.capture);
    }
    gone
}

impl Store {
    /// Removes captures until the limits hold, the oldest first, and returns them. `copied` have
    /// replicas elsewhere and go before others; `busy` stay.
    pub async fn evict_captures(
        &self,
        limits: EvictionLimits,
        copied: &HashSet<CaptureId>,
        busy: &HashSet<CaptureId>,
    ) -> Result<Vec<CaptureId>, StoreError> {
        let listing = self.list().await?;
        let mut gone = Vec::new();
        for capture in outlived(&listing.manifests, limits, copied, busy) {
            if self.delete(&capture.namespace, &capture.name).await? {
                gone.push(capture.clone());
            }
        }
        Ok(gone)
    }
}

#[cfg(test)]
mod tests {
    use crate::manifest::MANIFEST_VERSION;
    use flopwatch_api::artifact::{Artifact, Output};

    use super::*;

    fn id(name: &str) -> CaptureId {
        CaptureId {
            namespace: "team".to_owned(),
            name: name.to_owned(),
            uid: name.to_owned(),
        }
    }

    fn manifest(name: &str, second: i64, objects: &[(&str, i64)]) -> Manifest {
        let artifact = |(sha256, bytes): &(&str, i64)| Artifact {
            name: (*sha256).to_owned(),
            type_: Output::Timeline,
            bytes: *bytes,
            sha256: (*sha256).to_owned(),
            media_type: String::new(),
            sensitive: false,
        };
        Manifest {
            version: MANIFEST_VERSION,
            capture: id(name),
            session: flopwatch_api::capture::SessionReference::default(),
            created: Timestamp::from_second(second).unwrap(),
            captured: Vec::new(),
            artifacts: objects.iter().map(artifact).collect(),
        }
    }

    #[test]
    fn the_oldest_go_until_the_rest_fit_and_running_ones_never() {
        let all = [
            manifest("c", 30, &[("c", 10)]),
            manifest("a", 10, &[("a", 10), ("shared", 5)]),
            manifest("b", 20, &[("b", 10), ("shared", 5)]),
        ];
        let set = |names: &[&str]| -> HashSet<CaptureId> { names.iter().map(|name| id(name)).collect() };
        let gone = |bytes: Option<u64>, oldest: Option<i64>, copied: &[&str], busy: &[&str]| -> Vec<String> {
            let oldest = oldest.map(|second| Timestamp::from_second(second).unwrap());
            let gone = outlived(&all, EvictionLimits { bytes, oldest }, &set(copied), &set(busy));
            gone.into_iter().map(|capture| capture.name.clone()).collect()
        };
        assert!(gone(None, None, &[], &[]).is_empty());
        assert!(gone(Some(35), None, &[], &[]).is_empty());
        assert_eq!(gone(Some(34), None, &[], &[]), ["a"]);
        assert_eq!(gone(Some(25), None, &[], &[]), ["a"], "what b shares stays and counts");
        assert_eq!(gone(Some(24), None, &[], &[]), ["a", "b"]);
        assert_eq!(gone(Some(0), None, &[], &[]), ["a", "b", "c"]);
        assert_eq!(gone(Some(0), None, &[], &["a"]), ["b", "c"]);
        assert_eq!(gone(Some(34), None, &["c"], &[]), ["c"], "what has a copy goes first");
        assert_eq!(gone(None, Some(25), &[], &[]), ["a", "b"]);
        assert_eq!(gone(None, Some(25), &["c"], &["b"]), ["a"]);
        assert_eq!(gone(Some(9), Some(15), &[], &[]), ["a", "b", "c"]);
    }
}
