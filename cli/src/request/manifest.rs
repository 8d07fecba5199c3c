//! Manifests of what is profiled: of a pod to make, or of a whole session.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use flopwatch_api::session::{PodTemplate, PodTemplateMetadata, ProfilingSession};
use serde::Deserialize;

use crate::error::Error;

/// Longest manifest, in bytes.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// What of a manifest is a template: a Pod's, or that of whatever makes pods.
#[derive(Debug, Deserialize)]
struct PodManifest {
    kind: Option<String>,
    #[serde(default)]
    metadata: ManifestMetadata,
    spec: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
struct ManifestMetadata {
    name: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// Of which kind a manifest is.
#[derive(Debug, Deserialize)]
struct Kind {
    kind: Option<String>,
}

/// A pod to make, and what to call the session after it.
#[derive(Debug)]
pub struct Template {
    pub(super) name: Option<String>,
    pub(super) template: PodTemplate,
}

impl Template {
    /// Reads the manifest of a Pod, in YAML or JSON; of its metadata the labels and annotations are
    /// kept.
    pub fn read(path: &Path) -> Result<Self, Error> {
        of_file(path, Self::parse)
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let manifest: PodManifest = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        if let Some(kind) = manifest
            .kind
            .filter(|kind| !matches!(kind.as_str(), "Pod" | "PodTemplate"))
        {
            return Err(format!("a {kind} is no pod: give the manifest of a Pod"));
        }
        let ManifestMetadata {
            name,
            labels,
            annotations,
        } = manifest.metadata;
        let metadata = Some(PodTemplateMetadata { labels, annotations });
        Ok(Self {
            name,
            template: PodTemplate {
                metadata,
                spec: manifest.spec,
            },
        })
    }
}

/// What a manifest is of.
#[derive(Debug)]
pub enum Manifest {
    /// A pod that a session makes.
    Pod(Template),
    /// A session as it is.
    Session(Box<ProfilingSession>),
}

impl Manifest {
    /// Reads a manifest in YAML or JSON.
    pub fn read(path: &Path) -> Result<Self, Error> {
        of_file(path, Self::of_text)
    }

    /// The manifest of a text.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::of_text(text).map_err(|reason| Error::Usage(format!("the manifest: {reason}")))
    }

    fn of_text(text: &str) -> Result<Self, String> {
        let Kind { kind } = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        if kind.as_deref() == Some("ProfilingSession") {
            let session = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
            return Ok(Self::Session(Box::new(session)));
        }
        Template::parse(text).map(Self::Pod)
    }
}

fn of_file<T>(path: &Path, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<T, Error> {
    let wrong = |reason: String| Error::Usage(format!("{}: {reason}", path.display()));
    let mut text = String::new();
    let read = if path == Path::new("-") {
        io::stdin().take(MAX_MANIFEST_BYTES).read_to_string(&mut text)
    } else {
        let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
        file.take(MAX_MANIFEST_BYTES).read_to_string(&mut text)
    };
    read.map_err(|error| wrong(error.to_string()))?;
    parse(&text).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_of_a_pod_or_of_a_session() {
        let pod = Manifest::parse("kind: Pod\nmetadata: {name: bench}\nspec: {containers: []}\n");
        assert!(matches!(pod, Ok(Manifest::Pod(Template { name: Some(name), .. })) if name == "bench"));
        let text = "kind: ProfilingSession\nmetadata: {name: mine}\nspec: {target: {podName: trainer}}\n";
        let Ok(Manifest::Session(session)) = Manifest::parse(text) else {
            panic!("no session");
        };
        assert_eq!(session.spec.target.pod_name.as_deref(), Some("trainer"));
        for wrong in ["kind: Job\nspec: {}\n", "kind: ProfilingSession\nspec: {}\n", "["] {
            assert!(Manifest::parse(wrong).is_err(), "{wrong}");
        }
    }
}
