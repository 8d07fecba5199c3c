//! Opens a file of any format that is read.

use std::fs::{DirEntry, File};
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::detect::{Format, detect};
use crate::limits::ReadLimits;
#[cfg(feature = "sqlite")]
use crate::nsys_sqlite;
use crate::{hlo, kineto, ncu, pprof, recorder, tracer, xplane};
#[cfg(feature = "hdf5")]
use crate::{nsys_hdf, nsys_report, timeline_file};
use flopwatch_model::{Capture, CheckError};

/// First bytes of tables in Parquet and Arrow.
const TABLES: [&[u8]; 2] = [b"PAR1", b"ARROW1"];

/// How their files' names end.
const TABLE_ENDINGS: [&str; 2] = ["parquet", "arrow"];

/// Files of a folder that are looked at; an export has some hundred tables.
const MAX_ENTRIES: usize = 1000;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is not there or may not be read.
    #[error("{path}: cannot be read: {source}")]
    Open {
        /// Path of what was to be read, as the caller gave it.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The path names a folder.
    #[error("{path}: is a folder: name one of the files in it")]
    Folder {
        /// Path of what was to be read, as the caller gave it.
        path: PathBuf,
    },
    /// The path names a file or a folder of tables that another program exported.
    #[error(
        "{path}: tables in Parquet or Arrow, which are not read: name the report or the timeline that they were exported \
         of; of a report `nsys export --type sqlite` makes a file that is read"
    )]
    Tables {
        /// Path of what was to be read, as the caller gave it.
        path: PathBuf,
    },
    /// The file is of no format that is known here.
    #[error("{path}: no format that is read; these are: {}", Format::ALL.map(Format::about).join(", "))]
    Unknown {
        /// Path of what was to be read, as the caller gave it.
        path: PathBuf,
    },
    /// An export or a report of Nsight Systems cannot be read.
    #[cfg(feature = "hdf5")]
    #[error(transparent)]
    Nsys(#[from] nsys_hdf::ReadError),
    /// A timeline file cannot be read.
    #[cfg(feature = "hdf5")]
    #[error(transparent)]
    Timeline(#[from] timeline_file::OpenError),
    /// A Chrome trace cannot be read.
    #[error(transparent)]
    Kineto(#[from] kineto::ReadError),
    /// An XPlane profile cannot be read.
    #[error(transparent)]
    XPlane(#[from] xplane::ReadError),
    /// A compiled program cannot be read.
    #[error(transparent)]
    Hlo(#[from] hlo::ReadError),
    /// A report of Nsight Compute, or its CSV, cannot be read.
    #[error(transparent)]
    Ncu(#[from] ncu::ReadError),
    /// A profile of samples by stack cannot be read.
    #[error(transparent)]
    Pprof(#[from] pprof::ReadError),
    /// The file of a flight recorder cannot be read.
    #[error(transparent)]
    Recorder(#[from] recorder::ReadError),
    /// The file of a CUDA tracer cannot be read.
    #[error(transparent)]
    Tracer(#[from] tracer::ReadError),
    /// What was read of the file contradicts itself.
    #[error("{path}: is damaged, or was misread: {source}; record or export it anew")]
    Contradiction {
        /// Path of what was to be read, as the caller gave it.
        path: PathBuf,
        /// What contradicts what.
        source: CheckError,
    },
    /// The reader of the file was left out when this program was built.
    #[cfg(not(all(feature = "hdf5", feature = "sqlite")))]
    #[error("{path}: this program was built without the feature {feature} of flopwatch-trace, which reads such files")]
    LeftOut {
        /// Path of what was to be read, as the caller gave it.
        path: PathBuf,
        /// What is missing.
        feature: &'static str,
    },
    /// A raw capture that was not imported.
    #[error(
        "{path}: a raw capture of Nsight Systems: make a report of it with `QdstrmImporter -i {path}` of the nsys that wrote it"
    )]
    Stream {
        /// Path of what was to be read, as the caller gave it.
        path: PathBuf,
    },
}

impl ReadError {
    /// Why the folder at `path` is not read: one of tables says so
    /// (`nsys export --type parquetdir|arrowdir`).
    pub fn of_folder(path: PathBuf) -> Self {
        let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
        let is_named_so = |entry: DirEntry| {
            let name = PathBuf::from(entry.file_name());
            name.extension()
                .is_some_and(|ending| TABLE_ENDINGS.iter().any(|one| ending == *one))
        };
        if entries.take(MAX_ENTRIES).any(is_named_so) {
            Self::Tables { path }
        } else {
            Self::Folder { path }
        }
    }
}

/// A file after [`open`]: its capture, and its session where it is a timeline file.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenedFile {
    /// The session's identifier in a timeline file; `None` for all other formats.
    pub session_id: Option<String>,
    /// The contents of the file.
    pub capture: Capture,
}

/// Reads the file at `path`, whatever it is.
///
/// A raw capture, of which only the profiler's own program makes a report, is refused with what to
/// do: this starts no process. HDF5 itself may crash or never return on a damaged file: read
/// foreign files in a child process with a deadline.
pub fn open(path: &Path, limits: &ReadLimits) -> Result<OpenedFile, ReadError> {
    open_between(path, limits, None)
}

/// The same; of a flight recorder's or a CUDA tracer's file, which hold whatever came before they
/// were taken, what ran in a window in ns since the Unix epoch.
pub fn open_between(path: &Path, limits: &ReadLimits, window: Option<Range<u64>>) -> Result<OpenedFile, ReadError> {
    if path.is_dir() {
        return Err(ReadError::of_folder(path.to_owned()));
    }
    let format = detect(path).map_err(|source| ReadError::Open {
        path: path.to_owned(),
        source,
    })?;
    let capture = match format {
        #[cfg(feature = "hdf5")]
        Some(Format::Hdf5) if timeline_file::is_one(path) => {
            let timeline = timeline_file::read(path, limits)?;
            return Ok(OpenedFile {
                session_id: Some(timeline.session_id),
                capture: timeline.capture,
            });
        }
        #[cfg(feature = "hdf5")]
        Some(Format::Hdf5) => nsys_hdf::read(path, limits)?,
        #[cfg(feature = "sqlite")]
        Some(Format::Sqlite) => nsys_sqlite::read(path, limits)?,
        Some(Format::Kineto) => kineto::read(path, limits)?,
        Some(Format::KinetoArchive) => kineto::read_archive(path, limits)?,
        Some(Format::XPlane) => xplane::read(path, limits)?,
        Some(Format::Hlo) => hlo::read(path, limits)?,
        Some(Format::NcuCsv | Format::NcuReport) => ncu::read(path, limits)?,
        Some(Format::Pprof) => pprof::read(path, limits)?,
        Some(Format::Recorder) => match window {
            Some(window) => recorder::read_between(path, limits, window)?,
            None => recorder::read(path, limits)?,
        },
        Some(Format::Tracer) => match window {
            Some(window) => tracer::read_between(path, limits, window)?,
            None => tracer::read(path, limits)?,
        },
        #[cfg(feature = "hdf5")]
        Some(Format::NsysReport) => nsys_report::read(path, limits)?,
        Some(Format::NsysStream) => return Err(ReadError::Stream { path: path.to_owned() }),
        #[cfg(not(feature = "hdf5"))]
        Some(Format::Hdf5 | Format::NsysReport) => return Err(left_out(path, "hdf5")),
        #[cfg(not(feature = "sqlite"))]
        Some(Format::Sqlite) => return Err(left_out(path, "sqlite")),
        None if is_table(path) => return Err(ReadError::Tables { path: path.to_owned() }),
        None => return Err(ReadError::Unknown { path: path.to_owned() }),
    };
    checked(path, capture)
}

/// The capture that a reader made of the file at `path`. It is held against itself once: figures
/// are made of it without looking.
fn checked(path: &Path, capture: Capture) -> Result<OpenedFile, ReadError> {
    capture.check().map_err(|source| ReadError::Contradiction {
        path: path.to_owned(),
        source,
    })?;
    Ok(OpenedFile {
        session_id: None,
        capture,
    })
}

/// What the file at `path` holds, whatever it is; see [`open`].
pub fn read(path: &Path, limits: &ReadLimits) -> Result<Capture, ReadError> {
    Ok(open(path, limits)?.capture)
}

fn is_table(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(8).read_to_end(&mut begin));
    read.is_ok() && TABLES.iter().any(|magic| begin.starts_with(magic))
}

#[cfg(not(all(feature = "hdf5", feature = "sqlite")))]
fn left_out(path: &Path, feature: &'static str) -> ReadError {
    ReadError::LeftOut {
        path: path.to_owned(),
        feature,
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_model::{Category, Event, Events, RowId};

    use super::*;

    #[test]
    fn a_capture_whose_event_is_on_a_row_that_is_not_there_is_refused_with_its_place() {
        let mut events = Events::new(Category::CudaMemset);
        events.names.push("set".to_owned());
        let event = Event {
            row: RowId::new(3),
            ..Event::default()
        };
        events.push(event, &[]);
        let capture = Capture {
            events: [(Category::CudaMemset, events)].into(),
            ..Capture::default()
        };
        let error = checked(Path::new("trace.json"), capture).unwrap_err();
        assert_eq!(
            error.to_string(),
            "trace.json: is damaged, or was misread: cuda_memset: event 0 refers to a row that is not there \
             (3, of 0 rows); record or export it anew"
        );
    }
}
