//! From any file that is read to a timeline file, in one call.

use std::path::{Path, PathBuf};

use flopwatch_summary::Summary;

use crate::limits::ReadLimits;
use crate::open::{ReadError, open};
use crate::timeline_file::{self, WriteError};
use crate::transform::{TransformOptions, transform};

/// Session of a timeline whose source names none.
pub const LOCAL_SESSION: &str = "local";

/// What the caller decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConvertOptions {
    /// The session's identifier; by default that of the source, else [`LOCAL_SESSION`].
    pub session_id: Option<String>,
    /// Bounds on what the source may need.
    pub limits: ReadLimits,
    /// Whether a file at the output is replaced.
    pub overwrite: bool,
}

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The source is read.
    Reading,
    /// Events are sorted and joined.
    Transforming,
    /// The timeline file is written.
    Writing,
}

/// Why there is no timeline file.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The source cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Something is at the output already, and was not to be replaced.
    #[error("{path}: is there already")]
    Exists {
        /// File that was to be written.
        path: PathBuf,
    },
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Makes a timeline file at `output` of the file at `input`, and gives its summary. The output
/// appears whole or not at all, and is not waited for until it is on disk: the input is still
/// there; `progress` is told of each stage as it begins. Foreign files are best read in a child
/// process with a deadline.
pub fn convert(
    input: &Path,
    output: &Path,
    options: &ConvertOptions,
    mut progress: impl FnMut(Stage),
) -> Result<Summary, ConvertError> {
    let refuse = || {
        let there = !options.overwrite && output.symlink_metadata().is_ok();
        let path = || output.to_owned();
        if there {
            Err(ConvertError::Exists { path: path() })
        } else {
            Ok(())
        }
    };
    refuse()?;
    progress(Stage::Reading);
    let opened = open(input, &options.limits)?;
    progress(Stage::Transforming);
    let session_id = options.session_id.clone().or(opened.session_id);
    let session_id = session_id.unwrap_or_else(|| LOCAL_SESSION.to_owned());
    let timeline = transform(opened.capture, TransformOptions { session_id });
    progress(Stage::Writing);
    // The work took a while.
    refuse()?;
    Ok(timeline_file::write_unsynced(&timeline, output)?)
}
