//! The one entry for every format.

use std::io;
use std::path::{Path, PathBuf};

use crate::detect::{Format, detect};
use crate::limits::ReadLimits;
use crate::model::Capture;
use crate::tool::{self, ToolError};
use crate::version::{self, Version};
use crate::{kineto, ncu, nsys_hdf, nsys_report, nsys_sqlite, timeline_file, xplane};

/// Environment variable that names the nsys for reports, where it is not `nsys` on the PATH.
pub const NSYS: &str = "FLOPWATCH_NSYS";

/// Bytes of what nsys says while it exports.
const LONGEST_SAYING: u64 = 64 << 20;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is not there or may not be read.
    #[error("{path}: cannot be read: {source}")]
    Open {
        /// Path of what was to be read, as the caller gave it.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// It is of no format that is known here.
    #[error(
        "{path}: no format that is read: neither an export or report of Nsight Systems, a Chrome trace, an XPlane, a report of Nsight \
         Compute or its CSV, nor a timeline file"
    )]
    Unknown {
        /// Path of what was to be read, as the caller gave it.
        path: PathBuf,
    },
    /// An export of Nsight Systems cannot be read.
    #[error(transparent)]
    Nsys(#[from] nsys_hdf::ReadError),
    /// A timeline file cannot be read.
    #[error(transparent)]
    Timeline(#[from] timeline_file::OpenError),
    /// A Chrome trace cannot be read.
    #[error(transparent)]
    Kineto(#[from] kineto::ReadError),
    /// An XPlane profile cannot be read.
    #[error(transparent)]
    XPlane(#[from] xplane::ReadError),
    /// A report of Nsight Compute, or its CSV, cannot be read.
    #[error(transparent)]
    Ncu(#[from] ncu::ReadError),
    /// A report of Nsight Systems, and no program to open it.
    #[error(
        "{path}: a report of Nsight Systems {report}, which only its nsys can open, and there is none: install it, name it in {NSYS}, \
         or run `nsys export --type hdf` elsewhere"
    )]
    NoNsys {
        /// Path of what was to be read, as the caller gave it.
        path: PathBuf,
        /// Version of what wrote it.
        report: String,
    },
    /// A report that the installed nsys is too old for.
    #[error(
        "{path}: written by Nsight Systems {report}, newer than the installed nsys {tool}, which cannot open it: install {report} or later"
    )]
    NewerThanNsys {
        /// Path of what was to be read, as the caller gave it.
        path: PathBuf,
        /// Version of what wrote it.
        report: Version,
        /// Version of the program.
        tool: Version,
    },
    /// nsys did not open the report.
    #[error("{path}: nsys {tool} cannot export this report of version {report}: {reason}")]
    NsysFailed {
        /// Path of what was to be read, as the caller gave it.
        path: PathBuf,
        /// Version of what wrote it.
        report: String,
        /// Version of the program.
        tool: String,
        /// What it said.
        reason: String,
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

/// A file that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
    /// The session that a timeline file names.
    pub session_id: Option<String>,
    /// What it holds.
    pub capture: Capture,
}

/// Reads the file at `path`, whatever it is.
///
/// HDF5 itself may crash or never return on a damaged file, and reports are opened by other programs: read foreign files in a
/// child process with a deadline.
pub fn open(path: &Path, limits: &ReadLimits) -> Result<Opened, ReadError> {
    let format = detect(path).map_err(|source| ReadError::Open {
        path: path.to_owned(),
        source,
    })?;
    let capture = match format {
        Some(Format::Hdf5) if timeline_file::is_one(path) => {
            let timeline = timeline_file::read(path, limits)?;
            return Ok(Opened {
                session_id: Some(timeline.session_id),
                capture: timeline.capture,
            });
        }
        Some(Format::Hdf5) => nsys_hdf::read(path, limits)?,
        Some(Format::Sqlite) => nsys_sqlite::read(path, limits)?,
        Some(Format::Kineto) => kineto::read(path, limits)?,
        Some(Format::XPlane) => xplane::read(path, limits)?,
        Some(Format::NcuCsv | Format::NcuReport) => ncu::read(path, limits)?,
        Some(Format::NsysReport) => read_report(path, limits)?,
        Some(Format::NsysStream) => return Err(ReadError::Stream { path: path.to_owned() }),
        None => return Err(ReadError::Unknown { path: path.to_owned() }),
    };
    Ok(Opened {
        session_id: None,
        capture,
    })
}

/// What the file at `path` holds, whatever it is; see [`open`].
pub fn read(path: &Path, limits: &ReadLimits) -> Result<Capture, ReadError> {
    Ok(open(path, limits)?.capture)
}

/// Exports a report with the installed nsys, and reads that.
fn read_report(path: &Path, limits: &ReadLimits) -> Result<Capture, ReadError> {
    let path_of = || path.to_owned();
    let report = nsys_report::version(path).map_err(|source| ReadError::Open {
        path: path_of(),
        source,
    })?;
    let Some(nsys) = tool::find(NSYS, "nsys") else {
        let (path, report) = (path_of(), version::text(report));
        return Err(ReadError::NoNsys { path, report });
    };
    if let (Some(report), Some(tool)) = (report, nsys.version)
        && tool.is_older_than(report)
    {
        let path = path_of();
        return Err(ReadError::NewerThanNsys { path, report, tool });
    }
    let failed = |failure: ToolError| ReadError::NsysFailed {
        path: path_of(),
        report: version::text(report),
        tool: version::text(nsys.version),
        reason: failure.to_string(),
    };
    let folder = tempfile::tempdir().map_err(|error| failed(ToolError::Start(error)))?;
    let export = folder.path().join("export.h5");
    // nsys writes beside what it reads.
    let copy = folder.path().join("capture.nsys-rep");
    std::fs::copy(path, &copy).map_err(|error| failed(ToolError::Start(error)))?;
    let arguments = [
        "export".as_ref(),
        "--type=hdf".as_ref(),
        "--force-overwrite=true".as_ref(),
        "--output".as_ref(),
        export.as_os_str(),
        copy.as_os_str(),
    ];
    tool::run(&nsys.program, &arguments, limits.max_query_time, LONGEST_SAYING).map_err(failed)?;
    Ok(nsys_hdf::read(&export, limits)?)
}
