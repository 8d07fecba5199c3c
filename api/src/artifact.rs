//! What a capture leaves behind.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::profiler::ProfilerType;
pub use crate::profiler::table::names::*;
use crate::schema::KubeSchema;

/// The outputs that a session can ask for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, IntoStaticStr,
)]
pub enum Output {
    /// The timeline file (HDF5).
    Timeline,
    /// The tables of `summary.json`.
    Summary,
    /// The profiler's own report. It holds the environment of every process that the profiler saw, cannot be redacted,
    /// and needs `get` on `profilingsessions/raw` to be read.
    Raw,
}

impl Output {
    /// The name as it stands in manifests.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A file that a capture published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// File name, unique within the capture.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Which output it is.
    #[serde(rename = "type")]
    pub type_: Output,
    /// Size in bytes.
    #[schemars(range(min = 0))]
    pub bytes: i64,
    /// SHA-256 of the content, 64 lower-case hexadecimal digits.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub sha256: String,
    /// Media type, as served in `Content-Type`.
    #[schemars(length(max = 127))]
    pub media_type: String,
    /// Set on artifacts that hold unredacted data of the node (process environments): Raw.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sensitive: bool,
}

/// Name of the timeline file among a capture's artifacts: every analysis reads it.
pub const TIMELINE: &str = "timeline.h5";

/// Name of the timeline file with what the flight recorder and the node's metrics ring held of the time before the window, among a
/// capture's artifacts.
pub const PRELUDE: &str = "prelude.h5";

/// Name of the raw capture of Nsight Systems, of which its tools make the report, among the
/// artifacts of a capture of which they made none.
pub const STREAM: &str = "capture.qdstrm";

/// Media type of the timeline file.
pub const TIMELINE_TYPE: &str = "application/x-hdf5";

/// Media type of reports of profilers.
pub const BINARY_TYPE: &str = "application/octet-stream";

/// Media type of archives.
pub const ARCHIVE_TYPE: &str = "application/x-tar";

/// A file that a profiler writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawFile {
    /// Name among a capture's artifacts.
    pub name: &'static str,
    /// Media type, as served in `Content-Type`.
    pub media_type: &'static str,
    /// Whether a timeline can be made of it.
    pub makes_timeline: bool,
}

/// The raw files of all profilers.
pub fn raw_files() -> impl Iterator<Item = &'static RawFile> {
    ProfilerType::ALL.into_iter().flat_map(ProfilerType::raw_files)
}

/// Names of the raw captures that a timeline can be made of.
pub fn raw_captures() -> impl Iterator<Item = &'static str> {
    raw_files().filter(|file| file.makes_timeline).map(|file| file.name)
}

/// Most reports that one capture has: one for each range of the program that it recorded.
pub const MAX_REPORTS: usize = 8;

/// Name of the report of that number among a capture's artifacts, counted from 1: [`REPORT`], `capture.2.nsys-rep` and so on.
pub fn report_name(number: usize) -> String {
    if number <= 1 {
        REPORT.to_owned()
    } else {
        format!("capture.{number}.nsys-rep")
    }
}

/// Name of the raw capture of that number, counted from 1: [`STREAM`], `capture.2.qdstrm` and so
/// on.
pub fn stream_name(number: usize) -> String {
    if number <= 1 {
        STREAM.to_owned()
    } else {
        format!("capture.{number}.qdstrm")
    }
}

/// Name of the series that were sampled beside a capture, published where its raw capture is and its timeline is not: who makes the timeline
/// later needs both.
pub const SAMPLES: &str = "samples.json";

/// The artifact that a capture's timeline is read from: the timeline file, else the raw capture that one can be made of.
pub fn timeline_source(artifacts: &[Artifact]) -> Option<&Artifact> {
    let timeline = artifacts.iter().find(|artifact| artifact.name == TIMELINE);
    let raw = |name| {
        let mut raw = artifacts.iter().filter(|artifact| artifact.type_ == Output::Raw);
        raw.find(|artifact| artifact.name == name)
    };
    timeline
        .or_else(|| raw_captures().find_map(raw))
        .or_else(|| raw(SAMPLES))
}

/// Path of an analysis of a capture where an agent serves it.
pub fn analysis_path(namespace: &str, capture: &str, analysis: &str) -> String {
    format!("/v1/namespaces/{namespace}/captures/{capture}/analyses/{analysis}")
}

/// Path under which an agent takes timelines of other nodes' captures, and the nonResourceURL that it reviews `put` of.
pub const INPUTS_PATH: &str = "/v1/inputs";

/// Path of the list of a capture's artifacts where an agent serves them; an artifact is at `/NAME` under it.
pub fn artifacts_path(namespace: &str, capture: &str) -> String {
    format!("/v1/namespaces/{namespace}/captures/{capture}/artifacts")
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_false(value: &bool) -> bool {
    !*value
}
