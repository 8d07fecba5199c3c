//! Files as artifacts: the name, the output and the media type with which a file is published.

use std::fs::File;
use std::sync::Arc;

use flopwatch_api::artifact::{
    JAX_DUMPS, MOST_REPORTS, NCU_REPORT, Output, PRELUDE, RING, SAMPLES, TIMELINE, TRACES, XPLANE, report_name,
    stream_name,
};
use flopwatch_artifacts::SourceFile;

/// Media type of reports of profilers.
pub(crate) const REPORT_TYPE: &str = "application/octet-stream";
/// Media type of timeline files.
pub(crate) const TIMELINE_TYPE: &str = "application/x-hdf5";
/// Media type of archives of several raw files.
const ARCHIVE_TYPE: &str = "application/x-tar";
/// Artifacts that a file can be, beside reports of Nsight Systems: name, output and media type.
pub(crate) const ARTIFACTS: [(&str, Output, &str); 9] = [
    (NCU_REPORT, Output::Raw, REPORT_TYPE),
    (XPLANE, Output::Raw, REPORT_TYPE),
    (JAX_DUMPS, Output::Raw, ARCHIVE_TYPE),
    (TRACES, Output::Raw, ARCHIVE_TYPE),
    (RING, Output::Raw, REPORT_TYPE),
    (SAMPLES, Output::Raw, "application/json"),
    ("summary.json", Output::Summary, "application/json"),
    (TIMELINE, Output::Timeline, TIMELINE_TYPE),
    (PRELUDE, Output::Timeline, TIMELINE_TYPE),
];

/// The artifact that a file name stands for: name, output and media type.
pub(crate) fn artifact_of(name: &str) -> Option<(&str, Output, &'static str)> {
    let is_report = (1..=MOST_REPORTS).any(|number| report_name(number) == name || stream_name(number) == name);
    let report = is_report.then_some((name, Output::Raw, REPORT_TYPE));
    report.or_else(|| ARTIFACTS.into_iter().find(|(known, ..)| *known == name))
}

/// A file to publish under the name that it has.
pub fn source_file(name: &str, content: File) -> Option<SourceFile> {
    artifact_of(name).map(|artifact| file_of(artifact, content))
}

/// A file to publish as that artifact.
pub(crate) fn file_of((name, output, media_type): (&str, Output, &str), content: File) -> SourceFile {
    SourceFile {
        name: name.to_owned(),
        output,
        media_type: media_type.to_owned(),
        content: Arc::new(content),
    }
}
