//! What belongs to a capture, as nodes' stores and the object store keep it.

use std::collections::BTreeSet;

use flopwatch_api::artifact::Artifact;
use flopwatch_api::capture::SessionReference;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Most artifacts of one capture: as many as the status of a Capture has room for.
pub const MAX_ARTIFACTS: usize = 16;

/// Version of the manifest that this program writes. A manifest of another version is left alone
/// and reported.
pub const MANIFEST_VERSION: u32 = 1;

/// Longest manifest that is read, in bytes. Sixteen artifacts need less than 16 KiB.
pub const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// Names a capture for good: a capture of the same name that was created later has another UID.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaptureId {
    /// Namespace of the Capture.
    pub namespace: String,
    /// Name of the Capture.
    pub name: String,
    /// UID of the Capture.
    pub uid: String,
}

/// The artifacts of a capture, with the capture and session that they belong to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Version of this layout.
    pub version: u32,
    /// Capture that the artifacts are of.
    pub capture: CaptureId,
    /// The session that the capture belongs to; who may `get` it may read the artifacts.
    pub session: SessionReference,
    /// When the artifacts were published.
    pub created: Timestamp,
    /// The artifacts, in the order of their publication.
    pub artifacts: Vec<Artifact>,
    /// Categories of events that the profiler was asked to record, by name: what a timeline that is
    /// made of the raw capture later says of those of which it holds nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub captured: Vec<String>,
}

/// Why a manifest cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The text is not the JSON of a manifest.
    #[error("not a manifest: {0}")]
    Json(#[from] serde_json::Error),
    /// Another version of Flopwatch wrote it.
    #[error("manifest version {found}; this program reads version {MANIFEST_VERSION}")]
    Version {
        /// The version that the manifest states.
        found: u32,
    },
    /// A name that is to become part of a path or URL is not a Kubernetes name.
    #[error("{what} {value:?} is not a lower-case DNS name of at most 253 characters")]
    Name {
        /// What the name is of.
        what: &'static str,
        /// The text that was refused.
        value: String,
    },
    /// Two artifacts share a name.
    #[error("two artifacts are named {0:?}")]
    Duplicate(String),
    /// The manifest would be larger than the largest one that is read.
    #[error("the manifest would be larger than {MAX_MANIFEST_BYTES} bytes")]
    TooLarge,
    /// More artifacts than a Capture's status has room for.
    #[error("{0} artifacts; a capture has at most {MAX_ARTIFACTS}")]
    TooMany(usize),
    /// A digest is not 64 lower-case hexadecimal digits, or a size is negative.
    #[error("artifact {0:?} has a malformed digest or size")]
    Artifact(String),
    /// The manifest is of another capture than the one that it was read for.
    #[error("the manifest of {found} stands in the place of {expected}")]
    Misplaced {
        /// Namespace and name that the manifest states.
        found: String,
        /// Namespace and name of the place.
        expected: String,
    },
}

impl Manifest {
    /// Reads a manifest that was found in the place of `namespace`/`name`.
    pub fn parse(text: &[u8], namespace: &str, name: &str) -> Result<Self, ManifestError> {
        /// The part that every version has.
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let Versioned { version } = serde_json::from_slice(text)?;
        if version != MANIFEST_VERSION {
            return Err(ManifestError::Version { found: version });
        }
        let manifest: Self = serde_json::from_slice(text)?;
        if manifest.capture.namespace != namespace || manifest.capture.name != name {
            return Err(ManifestError::Misplaced {
                found: format!("{}/{}", manifest.capture.namespace, manifest.capture.name),
                expected: format!("{namespace}/{name}"),
            });
        }
        manifest.validate()?;
        Ok(manifest)
    }

    /// Refuses what could not be stored or served.
    pub fn validate(&self) -> Result<(), ManifestError> {
        check_name("namespace", &self.capture.namespace)?;
        check_name("capture", &self.capture.name)?;
        check_name("session", &self.session.name)?;
        if self.artifacts.len() > MAX_ARTIFACTS {
            return Err(ManifestError::TooMany(self.artifacts.len()));
        }
        let mut names = BTreeSet::new();
        for artifact in &self.artifacts {
            check_name("artifact", &artifact.name)?;
            if !names.insert(&artifact.name) {
                return Err(ManifestError::Duplicate(artifact.name.clone()));
            }
            if !is_sha256(&artifact.sha256) || artifact.bytes < 0 {
                return Err(ManifestError::Artifact(artifact.name.clone()));
            }
        }
        Ok(())
    }

    /// The artifact with the name `name`, if the manifest has it.
    pub fn artifact(&self, name: &str) -> Option<&Artifact> {
        self.artifacts.iter().find(|artifact| artifact.name == name)
    }
}

/// Refuses a name that is not one of Kubernetes: it is to become part of a path or URL.
pub fn check_name(what: &'static str, value: &str) -> Result<(), ManifestError> {
    if is_name(value) {
        Ok(())
    } else {
        Err(ManifestError::Name {
            what,
            value: value.chars().take(256).collect(),
        })
    }
}

/// A DNS subdomain as Kubernetes names objects: such a name is safe as a file name and as a URL
/// segment, `.` and `..` are not among them.
fn is_name(value: &str) -> bool {
    let label = |label: &str| {
        let edge = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        edge(label.as_bytes().first())
            && edge(label.as_bytes().last())
            && label
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    value.len() <= 253 && value.split('.').all(label)
}

/// Whether a text is the hexadecimal digits of a SHA-256, in lower case.
pub fn is_sha256(value: &str) -> bool {
    value.len() == 64 && value.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kubernetes_names_become_paths() {
        for good in ["a", "timeline.h5", "summary.json", "raw.nsys-rep", "kube-system", "0"] {
            assert!(is_name(good), "{good}");
        }
        let long = "a".repeat(254);
        for bad in [
            "", ".", "..", "a/b", "../a", "A", "a.", ".a", "a..b", "-a", "a-", "a b", "a\0", "a%2f", "ä", "a_b", &long,
        ] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn a_manifest_of_another_version_says_which() {
        let error = Manifest::parse(br#"{"version": 2, "shape": "unknown"}"#, "team", "train").unwrap_err();
        assert_eq!(error.to_string(), "manifest version 2; this program reads version 1");
    }

    #[test]
    fn a_manifest_in_the_place_of_another_capture_is_refused() {
        let text = br#"{"version":1,"capture":{"namespace":"team","name":"train","uid":"u"},"session":{"name":"s","id":"01234567"},"created":"2026-01-02T03:04:05Z","artifacts":[]}"#;
        Manifest::parse(text, "team", "train").unwrap();
        assert!(matches!(
            Manifest::parse(text, "team", "other").unwrap_err(),
            ManifestError::Misplaced { .. }
        ));
    }
}
