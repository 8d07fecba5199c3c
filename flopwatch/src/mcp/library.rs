//! The captures that are open: each was converted once, as `serve` converts it, and its timeline
//! lies in a temporary folder until newer ones take its place.

use std::collections::VecDeque;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flopwatch_analysis::Part;
use flopwatch_api::artifact::TIMELINE;
use flopwatch_http::{OwnFolder, Purpose};
use flopwatch_model::Category;
use flopwatch_summary::Summary;
use flopwatch_trace::Format;
use tempfile::TempDir;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::allowed::AllowedFile;
use crate::arguments::SourceArguments;
use crate::conversion::{self, Conversion};
use crate::source::{self, Source};

/// Most captures that are open.
const MAX_OPEN: usize = 8;

/// Why a capture cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum LibraryError {
    /// The file cannot be looked at, or there is no folder for what is made of it.
    #[error("{name}: {source}")]
    Io {
        /// What clients call the file.
        name: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file cannot be converted.
    #[error(transparent)]
    Conversion(#[from] conversion::Error),
    /// What was made of it cannot be read.
    #[error(transparent)]
    Source(#[from] source::Error),
    /// Somebody wrote to the file meanwhile.
    #[error("{0}: changed while it was read: ask again when nobody writes to it any more")]
    Changed(String),
}

/// Which content a file had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            seconds: metadata.mtime(),
            nanoseconds: metadata.mtime_nsec(),
        }
    }

    /// Of what lies at a path now, if that is no link.
    fn at(path: &Path) -> std::io::Result<Self> {
        Ok(Self::of(&path.symlink_metadata()?))
    }
}

/// A capture that is open.
#[derive(Debug)]
pub(super) struct OpenCapture {
    /// What clients call it.
    pub(super) name: String,
    /// What its file begins as.
    pub(super) format: Option<Format>,
    /// Its tables.
    pub(super) summary: Summary,
    /// What it holds beside its events.
    pub(super) parts: Vec<Part>,
    file: PathBuf,
    stamp: Stamp,
    /// How its timeline is read.
    timeline: Source,
    /// Holds the timeline; removed with the last user of the capture.
    _work: TempDir,
}

impl OpenCapture {
    /// Its timeline, for analyses.
    pub(super) fn source(&self) -> Source {
        self.timeline.clone()
    }

    /// The categories of which it has events.
    pub(super) fn categories(&self) -> Vec<Category> {
        let counts = self.summary.categories.iter();
        let held = counts.filter(|count| count.events.is_some_and(|events| events > 0));
        held.map(|count| count.category).collect()
    }
}

/// The captures that are open, the one that was used last first.
#[derive(Debug)]
pub(super) struct Library {
    reading: SourceArguments,
    folder: OwnFolder,
    open: Mutex<VecDeque<Arc<OpenCapture>>>,
}

impl Library {
    /// Nothing is open yet. Captures are read as `reading` says.
    pub(super) fn new(reading: SourceArguments) -> std::io::Result<Self> {
        let folder = OwnFolder::make(&std::env::temp_dir(), Purpose::Mcp);
        Ok(Self {
            reading,
            folder: folder.map_err(source::unnamed)?,
            open: Mutex::default(),
        })
    }

    /// The capture of a file: the open one where the file has not changed, else converted now.
    /// `until` ends the work early. One file is converted at a time.
    pub(super) async fn open(
        &self,
        file: &AllowedFile,
        until: &CancellationToken,
    ) -> Result<Arc<OpenCapture>, LibraryError> {
        let io = |source| LibraryError::Io {
            name: file.name.clone(),
            source,
        };
        let mut open = self.open.lock().await;
        let stamp = Stamp::at(&file.path).map_err(io)?;
        let known = open
            .iter()
            .position(|known| known.file == file.path && known.stamp == stamp);
        let capture = match known.and_then(|at| open.remove(at)) {
            Some(known) => known,
            None => Arc::new(self.read(file, stamp, until).await?),
        };
        open.retain(|known| known.file != file.path);
        open.push_front(Arc::clone(&capture));
        open.truncate(MAX_OPEN);
        Ok(capture)
    }

    async fn read(
        &self,
        file: &AllowedFile,
        stamp: Stamp,
        until: &CancellationToken,
    ) -> Result<OpenCapture, LibraryError> {
        let io = |source| LibraryError::Io {
            name: file.name.clone(),
            source,
        };
        let work = tempfile::tempdir_in(self.folder.path())
            .map_err(source::unnamed)
            .map_err(io)?;
        let short = file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The pages of analyses call a capture by its session.
        let input = self.reading.clone().source(file.path.clone(), Some(short.clone()));
        let format = flopwatch_trace::detect(&file.path).map_err(io)?;
        let made = Conversion::of(&input, work.path(), until.cancelled()).await?;
        let timeline = if made.is_made {
            work.path().join(TIMELINE)
        } else {
            file.path.clone()
        };
        let timeline = self.reading.clone().source(timeline, Some(short));
        let (summary, parts) = source::contents(&timeline, until.cancelled()).await?;
        // Between the look at the path and the end of the reading it may have become another file,
        // or a link to one that is not allowed.
        if Stamp::at(&file.path).ok() != Some(stamp) {
            return Err(LibraryError::Changed(file.name.clone()));
        }
        Ok(OpenCapture {
            name: file.name.clone(),
            format,
            summary,
            parts,
            file: file.path.clone(),
            stamp,
            timeline,
            _work: work,
        })
    }
}
