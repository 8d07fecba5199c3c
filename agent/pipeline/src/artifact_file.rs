//! Files as artifacts: the name, the output and the media type with which a file is published.

use std::fs::File;
use std::sync::Arc;

use flopwatch_api::artifact::{
    BINARY_TYPE, MAX_REPORTS, Output, PRELUDE, SAMPLES, TIMELINE, TIMELINE_TYPE, raw_files, report_name, stream_name,
};
use flopwatch_artifacts::SourceFile;

/// What is served of a folder beside the profilers' raw files: name, output and media type.
const BESIDE_RAW_FILES: [(&str, Output, &str); 4] = [
    (SAMPLES, Output::Raw, "application/json"),
    ("summary.json", Output::Summary, "application/json"),
    (TIMELINE, Output::Timeline, TIMELINE_TYPE),
    (PRELUDE, Output::Timeline, TIMELINE_TYPE),
];

/// What is served of a folder: name, output and media type. Nsight Systems' further reports are
/// named after the first.
pub fn served<'a>() -> impl Iterator<Item = (&'a str, Output, &'static str)> {
    let raw = raw_files().map(|file| (file.name, Output::Raw, file.media_type));
    raw.chain(BESIDE_RAW_FILES)
}

/// The artifact that a file name stands for: name, output and media type.
pub fn artifact_of(name: &str) -> Option<(&str, Output, &'static str)> {
    let is_report = (1..=MAX_REPORTS).any(|number| report_name(number) == name || stream_name(number) == name);
    let report = is_report.then_some((name, Output::Raw, BINARY_TYPE));
    report.or_else(|| served().find(|(served, ..)| *served == name))
}

/// A file to publish under the name that it has.
pub fn source_file(name: &str, content: File) -> Option<SourceFile> {
    artifact_of(name).map(|artifact| file_of(artifact, content))
}

/// A file to publish as that artifact.
pub fn file_of((name, output, media_type): (&str, Output, &str), content: File) -> SourceFile {
    SourceFile {
        name: name.to_owned(),
        output,
        media_type: media_type.to_owned(),
        content: Arc::new(content),
    }
}
