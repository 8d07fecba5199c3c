//! A capture of any format as the artifacts that a local service publishes of it: its timeline file
//! and its tables. What reads it are sandboxed children, as for `convert`.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use flopwatch_api::artifact::{Output, TIMELINE, TIMELINE_TYPE};
use flopwatch_artifacts::SourceFile;
use flopwatch_pipeline::artifact_file::file_of;
use flopwatch_summary::{Summary, SummaryError};
use flopwatch_trace::Format;

use crate::cut;
use crate::source::{self, Source};

/// Name of the artifact with the tables.
pub(crate) const SUMMARY: &str = "summary.json";

/// Why a capture has no artifacts.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read or converted.
    #[error(transparent)]
    Source(#[from] source::Error),
    /// The tables cannot be written as JSON.
    #[error("the tables cannot be written: {0}")]
    Summary(#[from] SummaryError),
    /// What was made cannot be kept or opened.
    #[error("{path}: {source}")]
    Io {
        /// File that the error is about.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// The artifacts of a capture, opened.
#[derive(Debug)]
pub(crate) struct Conversion {
    /// The timeline and the tables.
    pub(crate) files: Vec<SourceFile>,
    /// Events of the timeline.
    pub(crate) events: u64,
    /// Whether the timeline was made now; otherwise it is the file that was read.
    pub(crate) is_made: bool,
    /// What people are told of a file that was cut.
    pub(crate) warning: Option<String>,
}

impl Conversion {
    /// Reads `source`, with what is made of it in the folder `work`. A timeline file stays as it
    /// is. `until` ends the work early.
    pub(crate) async fn of(source: &Source, work: &Path, until: impl Future<Output = ()>) -> Result<Self, Error> {
        let mut until = std::pin::pin!(until);
        let format = flopwatch_trace::detect(&source.file).map_err(io(&source.file))?;
        // An export of Nsight Systems is HDF5 too: of a timeline alone no transform is told.
        if format == Some(Format::Hdf5) {
            let summary = source::summary(source, &mut until).await?;
            if summary.transformed_on.is_none() {
                return Self::open(source, &source.file, &summary, work, false);
            }
        }
        let timeline = work.join(TIMELINE);
        let summary = source::convert(source, &timeline, false, &mut until).await?;
        Self::open(source, &timeline, &summary, work, true)
    }

    fn open(source: &Source, timeline: &Path, summary: &Summary, work: &Path, is_made: bool) -> Result<Self, Error> {
        let tables = work.join(SUMMARY);
        std::fs::write(&tables, summary.to_json()?).map_err(io(&tables))?;
        let opened = |path: &Path| File::open(path).map_err(io(path));
        let files = vec![
            file_of((TIMELINE, Output::Timeline, TIMELINE_TYPE), opened(timeline)?),
            file_of((SUMMARY, Output::Summary, "application/json"), opened(&tables)?),
        ];
        Ok(Self {
            files,
            events: summary.total_events,
            is_made,
            warning: cut::of_summary(source, summary),
        })
    }
}

fn io(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
    |source| Error::Io {
        path: path.to_owned(),
        source,
    }
}
