//! Any file that this crate reads, told by its content.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::limits::ReadLimits;
use crate::model::Capture;
use crate::{nsys_hdf, nsys_report, nsys_sqlite, timeline_file};

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// HDF5: our own timeline file, or what `nsys export --type hdf` writes.
    Hdf5,
    /// SQLite: what `nsys export --type sqlite` writes.
    Sqlite,
    /// A report of Nsight Systems (`.nsys-rep`, `.qdrep`), which only Nsight Systems can export.
    NsysReport,
    /// A raw capture of Nsight Systems (`.qdstrm`), of which only Nsight Systems can make a report.
    NsysStream,
}

/// First bytes of each format.
const MAGIC: [(&[u8], Format); 4] = [
    (b"\x89HDF\r\n\x1a\n", Format::Hdf5),
    (b"SQLite format 3\0", Format::Sqlite),
    (nsys_report::MAGIC, Format::NsysReport),
    (nsys_report::STREAM_MAGIC, Format::NsysStream),
];

/// Bytes that tell a format.
const HEAD: u64 = 4096;

impl Format {
    /// Of a file that begins with `head`.
    pub fn of(head: &[u8]) -> Option<Self> {
        let known = MAGIC.into_iter().find(|(magic, _)| head.starts_with(magic));
        known.map(|(_, format)| format)
    }

    /// Of the file at `path`; `None` for one that is of no known format.
    pub fn detect(path: &Path) -> io::Result<Option<Self>> {
        let mut head = Vec::new();
        File::open(path)?.take(HEAD).read_to_end(&mut head)?;
        Ok(Self::of(&head))
    }
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It is not there, or may not be read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its first bytes are those of no format that is read.
    #[error(
        "{path}: no format that is read: neither an export of nsys (HDF5, SQLite) nor a timeline file, nor another profiler's trace"
    )]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// Only Nsight Systems itself reads its reports.
    #[error(
        "{path}: a capture of Nsight Systems that only its own tools read; export it first with `nsys export --type hdf`"
    )]
    Report {
        /// The file.
        path: PathBuf,
    },
    /// An export of nsys is damaged, forged or of an unknown schema.
    #[error(transparent)]
    Nsys(#[from] nsys_hdf::ReadError),
    /// A timeline file is damaged or newer than this version.
    #[error(transparent)]
    Timeline(#[from] timeline_file::OpenError),
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
    /// What it was.
    pub format: Format,
    /// The session that a timeline file names.
    pub session_id: Option<String>,
    /// What it holds.
    pub capture: Capture,
}

/// Reads the file at `path`, whatever it is.
pub fn open(path: &Path, limits: &ReadLimits) -> Result<Opened, OpenError> {
    let format = Format::detect(path).map_err(|source| OpenError::Io {
        path: path.to_owned(),
        source,
    })?;
    let path_of = || path.to_owned();
    let format = format.ok_or_else(|| OpenError::Unknown { path: path_of() })?;
    let mut session_id = None;
    let capture = match format {
        Format::Hdf5 if timeline_file::is_one(path) => {
            let timeline = timeline_file::read(path, limits)?;
            session_id = Some(timeline.session_id);
            timeline.capture
        }
        Format::Hdf5 => nsys_hdf::read(path, limits)?,
        Format::Sqlite => nsys_sqlite::read(path, limits)?,
        Format::NsysReport | Format::NsysStream => return Err(OpenError::Report { path: path_of() }),
    };
    Ok(Opened {
        format,
        session_id,
        capture,
    })
}

/// What the file at `path` holds, whatever it is.
pub fn read(path: &Path, limits: &ReadLimits) -> Result<Capture, OpenError> {
    Ok(open(path, limits)?.capture)
}
