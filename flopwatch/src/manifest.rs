//! A ProfilingSession manifest without a cluster: what `record -f` reads.
//!
//! It is the manifest that a cluster takes; only `spec.target` may be left out. Unlike the API
//! server, which prunes what it does not know, this reader refuses unknown fields by name.

use std::collections::BTreeMap;
use std::path::Path;

use flopwatch_api::profiler::{CaptureRange, ProfilerType, RangeTrigger, TraceCategory, is_range_name};
use flopwatch_api::session::{MAX_DURATION_SECONDS, ProfilingSessionSpec, TargetSpec};
use flopwatch_api::{GROUP, VERSION};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Why a manifest was refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read the manifest {path}")]
    Read {
        /// Path of the manifest, as the command line has it.
        path: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The manifest is not YAML.
    #[error("the manifest is not YAML: {0}")]
    Yaml(String),
    /// The manifest is not one object.
    #[error("the manifest must be one object with apiVersion, kind and spec")]
    NotAnObject,
    /// The manifest is of another kind of object.
    #[error("{field} is {found}, and this command reads {expected}")]
    WrongKind {
        /// `apiVersion` or `kind`.
        field: &'static str,
        /// What stands there.
        found: String,
        /// Group, version and kind that should be there.
        expected: String,
    },
    /// The manifest has a field that does not exist.
    #[error(
        "unknown field {0}; `kubectl explain profilingsession.spec` and examples/session.yaml show those that exist"
    )]
    UnknownField(String),
    /// A value has the wrong type or is not one of the allowed.
    #[error("{path}: {message}")]
    Value {
        /// Path of the field.
        path: String,
        /// What is wrong with it.
        message: String,
    },
}

/// The fields of Kubernetes' ObjectMeta; the name alone is looked at.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    annotations: Option<BTreeMap<String, String>>,
    creation_timestamp: Option<Value>,
    deletion_grace_period_seconds: Option<i64>,
    deletion_timestamp: Option<Value>,
    finalizers: Option<Vec<String>>,
    generate_name: Option<String>,
    generation: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    managed_fields: Option<Vec<Value>>,
    name: Option<String>,
    namespace: Option<String>,
    owner_references: Option<Vec<Value>>,
    resource_version: Option<String>,
    self_link: Option<String>,
    uid: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default, rename = "apiVersion")]
    _api_version: String,
    #[serde(default, rename = "kind")]
    _kind: String,
    #[serde(default)]
    metadata: Metadata,
    spec: ProfilingSessionSpec,
}

/// What to record, as the manifest says it.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// `metadata.name`, if there is one.
    pub name: Option<String>,
    /// The request; its target is empty where the manifest has none.
    pub spec: ProfilingSessionSpec,
}

impl Default for Manifest {
    /// The request that an empty spec stands for.
    fn default() -> Self {
        Self {
            name: None,
            spec: ProfilingSessionSpec::of(TargetSpec::default()),
        }
    }
}

impl Manifest {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
            path: path.display().to_string(),
            source,
        })?;
        Self::parse(&text)
    }

    /// Reads a text.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let value: Value = serde_saphyr::from_str(text).map_err(|error| Error::Yaml(error.to_string()))?;
        let Value::Object(mut object) = value else {
            return Err(Error::NotAnObject);
        };
        expect(&object, "apiVersion", &format!("{GROUP}/{VERSION}"))?;
        expect(&object, "kind", "ProfilingSession")?;
        // An empty target stands for the one that is left out; nothing here reads it.
        match object.entry("spec").or_insert_with(|| Value::Object(Map::new())) {
            Value::Object(spec) => drop(spec.entry("target").or_insert_with(|| Value::Object(Map::new()))),
            _ => return Err(value_error("spec", "must be an object")),
        }

        let mut unknown = Vec::new();
        let mut track = serde_path_to_error::Track::new();
        let tracked = serde_path_to_error::Deserializer::new(Value::Object(object), &mut track);
        // The path has a `?` for the inside of each optional value, which no manifest shows.
        let parsed = serde_ignored::deserialize(tracked, |path| unknown.push(path.to_string().replace(".?", "")));
        let document: Document = parsed.map_err(|error| Error::Value {
            path: track.path().to_string(),
            message: error.to_string(),
        })?;
        if let Some(field) = unknown.into_iter().next() {
            return Err(Error::UnknownField(field));
        }
        let manifest = Self {
            name: document.metadata.name,
            spec: document.spec,
        };
        manifest.check()?;
        Ok(manifest)
    }

    /// The bounds that the API server's schema sets, and what a recorder on one machine can do.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let spec = &self.spec;
        let interval = spec.metrics.interval_milliseconds;
        let bounds = [
            ("spec.durationSeconds", spec.duration_seconds, 1, MAX_DURATION_SECONDS),
            ("spec.metrics.intervalMilliseconds", interval, 10, 10_000),
        ];
        for (path, value, min, max) in bounds {
            if !(min..=max).contains(&value) {
                return Err(value_error(path, format!("{value} is outside of {min} to {max}")));
            }
        }
        let nsys = spec.profiler.nsys.as_ref();
        if let Some(range) = nsys.and_then(|options| options.capture_range.as_ref()) {
            check_range(range)?;
        }
        if spec.outputs.is_empty() {
            let message = "must list at least one of Timeline, Summary and Raw";
            return Err(value_error("spec.outputs", message));
        }
        match spec.profiler.type_ {
            ProfilerType::Auto | ProfilerType::Nsys => Ok(()),
            other => Err(value_error(
                "spec.profiler.type",
                format!("{} cannot record a local command; use Auto or Nsys", other.as_str()),
            )),
        }
    }

    /// The categories to trace: those that the profiler's options list, those that are required,
    /// else cuda and nvtx.
    pub fn trace(&self) -> Vec<TraceCategory> {
        let spec = &self.spec;
        let options = spec.profiler.nsys.iter();
        let listed = options.clone().flat_map(|options| options.trace.iter().copied());
        let triggers = options
            .clone()
            .filter_map(|options| Some(options.capture_range.as_ref()?.trigger.traced()));
        let required = spec.require.iter().copied().filter_map(TraceCategory::recording);
        let required = required.chain(triggers);
        let mut trace: Vec<_> = listed.chain(required).collect();
        if options.clone().all(|options| options.trace.is_empty()) {
            trace.extend([TraceCategory::Cuda, TraceCategory::Nvtx]);
        }
        trace.sort_unstable();
        trace.dedup();
        trace
    }
}

fn value_error(path: &str, message: impl Into<String>) -> Error {
    Error::Value {
        path: path.to_owned(),
        message: message.into(),
    }
}

fn expect(object: &Map<String, Value>, field: &'static str, expected: &str) -> Result<(), Error> {
    match object.get(field) {
        Some(Value::String(found)) if found == expected => Ok(()),
        found => Err(Error::WrongKind {
            field,
            found: found.map_or_else(|| "missing".to_owned(), ToString::to_string),
            expected: expected.to_owned(),
        }),
    }
}

/// What the API server's schema says of a range, and that a command has no annotation that names
/// it.
fn check_range(range: &CaptureRange) -> Result<(), Error> {
    let path = |field: &str| format!("spec.profiler.nsys.captureRange.{field}");
    if !(1..=8).contains(&range.count) {
        let message = format!("{} is outside of 1 to 8", range.count);
        return Err(value_error(&path("count"), message));
    }
    match (range.trigger, &range.name) {
        (RangeTrigger::Nvtx, None) => Err(value_error(&path("name"), "must name the NVTX range of the command")),
        (RangeTrigger::CudaProfilerApi, Some(_)) => {
            Err(value_error(&path("name"), "is given, so trigger must be Nvtx"))
        }
        (RangeTrigger::Nvtx, Some(name)) if !is_range_name(name) => Err(value_error(
            &path("name"),
            "must be at most 127 printable ASCII characters, without blanks around them",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: flopwatch.dev/v1alpha1\nkind: ProfilingSession\n";

    #[test]
    fn a_manifest_without_a_target_has_the_defaults_of_the_cluster() {
        let manifest = Manifest::parse(&format!("{HEAD}metadata: {{name: demo}}\nspec: {{}}\n")).unwrap();
        assert_eq!(
            manifest,
            Manifest {
                name: Some("demo".to_owned()),
                ..Manifest::default()
            }
        );
        assert_eq!(Manifest::parse(HEAD).unwrap(), Manifest::default());
    }

    #[test]
    fn the_manifest_of_a_cluster_is_read_with_its_target() {
        let metadata = "metadata: {labels: {app: a}, ownerReferences: [], uid: u, creationTimestamp: null}\n";
        let text = format!(
            "{HEAD}{metadata}spec: {{target: {{podName: trainer}}, durationSeconds: 5, require: [nvtx_range]}}\n"
        );
        let manifest = Manifest::parse(&text).unwrap();
        assert_eq!(manifest.spec.target.pod_name.as_deref(), Some("trainer"));
        assert_eq!(manifest.trace(), [TraceCategory::Cuda, TraceCategory::Nvtx]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let rows = [
            ("spec: {duration: 5}", "unknown field spec.duration"),
            (
                "spec: {profiler: {type: Nsys, nsys: {traces: [cuda]}}}",
                "unknown field spec.profiler.nsys.traces",
            ),
            ("metadata: {nam: x}", "unknown field metadata.nam"),
            ("metadata: {labels: {app: 5}}", "metadata.labels.app: invalid type"),
            ("specs: {}", "unknown field specs"),
            (
                "spec: {durationSeconds: 0}",
                "spec.durationSeconds: 0 is outside of 1 to 300",
            ),
            ("spec: {durationSeconds: five}", "spec.durationSeconds: invalid type"),
            (
                "spec: {require: [gpu]}",
                "spec.require[0]: unknown variant `gpu`, expected one of `cuda_kernel`",
            ),
            ("spec: {outputs: []}", "spec.outputs: must list at least one"),
            (
                "spec: {profiler: {type: Ncu}}",
                "spec.profiler.type: Ncu cannot record a local command",
            ),
            (
                "spec: {metrics: {intervalMilliseconds: 1}}",
                "spec.metrics.intervalMilliseconds: 1 is outside",
            ),
            ("spec: 5", "spec: must be an object"),
        ];
        for (body, expected) in rows {
            let error = Manifest::parse(&format!("{HEAD}{body}\n")).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{body}: {error}");
        }
    }

    #[test]
    fn another_kind_of_object_is_refused_by_its_kind() {
        let error = Manifest::parse("apiVersion: v1\nkind: Pod\n").unwrap_err().to_string();
        assert_eq!(
            error,
            "apiVersion is \"v1\", and this command reads flopwatch.dev/v1alpha1"
        );
        let error = Manifest::parse("apiVersion: flopwatch.dev/v1alpha1\n")
            .unwrap_err()
            .to_string();
        assert_eq!(error, "kind is missing, and this command reads ProfilingSession");
        assert!(matches!(Manifest::parse("- 1"), Err(Error::NotAnObject)));
        assert!(matches!(Manifest::parse("a: ["), Err(Error::Yaml(_))));
    }
}
