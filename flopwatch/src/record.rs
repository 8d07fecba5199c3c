//! `record`: profiles a local command, or a program that runs already, without a cluster.
//!
//! The command becomes our own child with its standard streams, its environment (the profiler's
//! entries added) and its signals; it is never killed. When the window ends before the command
//! does, the command runs on.

mod command;
mod dispositions;
mod kept;
mod nsys;
mod publish;
mod results;
mod session;
mod tracer;

use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flopwatch_attach::nsys::HostTools;
use flopwatch_launcher::copy::CopyError;
use flopwatch_nvml::utc_ns;
use flopwatch_pipeline::cuda_window::MAX_WINDOW;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::{products, sandbox_dir};
use flopwatch_summary::Summary;

use crate::manifest::{self, Manifest};
use crate::progress::Progress;
use crate::source::unnamed;
use command::{Window, find_program};

pub use command::Running;
pub use session::{Captured, Error as SessionError, Session};
pub use tracer::{Error as TracerError, TracerOptions};

/// What to record and where to put it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Session manifest that says what to record.
    pub manifest: Manifest,
    /// What records.
    pub profiler: Profiler,
    /// Whether the window lasts until the command ends, and not as long as the manifest says.
    pub until_end: bool,
    /// Folder of the results; it is created.
    pub output: PathBuf,
    /// Whether the files of an earlier recording in that folder are replaced.
    pub force: bool,
    /// The command and its arguments; empty where a program is recorded that runs already.
    pub command: Vec<OsString>,
    /// The NVML library; none: where the loader finds it.
    pub nvml_library: Option<PathBuf>,
    /// Say nothing while recording.
    pub quiet: bool,
}

/// What records.
#[derive(Clone, Debug)]
pub enum Profiler {
    /// Nsight Systems of this machine.
    Nsys(HostTools),
    /// The CUDA tracer.
    Cuda(TracerOptions),
}

impl Profiler {
    /// The tools of Nsight Systems, where it records.
    const fn tools(&self) -> Option<&HostTools> {
        match self {
            Self::Nsys(tools) => Some(tools),
            Self::Cuda(_) => None,
        }
    }
}

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command cannot be run.
    #[error("{command}: {reason}")]
    Command {
        /// Command as it was given.
        command: String,
        /// What keeps it from running.
        reason: String,
    },
    /// The folder of the results holds those of an earlier recording.
    #[error("{}: holds {name} of an earlier recording: --force replaces it, --output names another folder", folder.display())]
    Exists {
        /// Folder of the results.
        folder: PathBuf,
        /// A file in it.
        name: String,
    },
    /// A folder or file of ours cannot be written.
    #[error("{path}: {source}")]
    Io {
        /// File or folder that could not be written.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Signals cannot be received.
    #[error("signals cannot be received: {0}")]
    Signals(std::io::Error),
    /// A library that the command's programs load cannot be written.
    #[error(transparent)]
    Library(#[from] CopyError),
    /// The profiler's session failed.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The CUDA tracer recorded nothing.
    #[error(transparent)]
    Tracer(#[from] TracerError),
    /// What was asked for on the command line is not to be had.
    #[error(transparent)]
    Manifest(#[from] manifest::Error),
    /// The range of the command that was to be recorded did not begin; the text says what was
    /// waited for.
    #[error("{0}")]
    RangeMissed(String),
    /// Importing or transforming failed.
    #[error(transparent)]
    Pipeline(#[from] products::Error),
    /// Importing or transforming failed; the recording is kept, because it was asked for.
    #[error("{source}; what was recorded is kept in {folder}")]
    Kept {
        /// Folder of the results.
        folder: PathBuf,
        /// What could not be done.
        source: products::Error,
    },
    /// There is no folder for the children.
    #[error(transparent)]
    SandboxDir(#[from] sandbox_dir::Error),
}

/// The result of a recording.
#[derive(Debug)]
pub struct Recording {
    /// The session's identifier, as in the files.
    pub session_id: String,
    /// Folder of the results.
    pub folder: PathBuf,
    /// Tables of what was recorded.
    pub summary: Summary,
    /// Set when the window lacks events that were required.
    pub missing: Option<Failure>,
    /// What a person should know of the window beside its events, a sentence each.
    pub notes: Vec<String>,
    /// The command, which may still run.
    pub command: Running,
}

/// Records as the options say.
pub async fn record(options: &Options) -> Result<Recording, Error> {
    // A program that runs already has no file to find.
    let program = match &options.profiler {
        Profiler::Cuda(asked) if asked.attach.is_some() => PathBuf::new(),
        _ => find_program(&options.command)?,
    };
    options.manifest.check()?;
    if let Profiler::Cuda(_) = options.profiler {
        tracer::check(options)?;
    }
    if let Some(name) = results::earlier(&options.output).filter(|_| !options.force) {
        let folder = options.output.clone();
        return Err(Error::Exists { folder, name });
    }
    std::fs::create_dir_all(&options.output).map_err(io(&options.output))?;
    let spool = tempfile::Builder::new()
        .prefix(".flopwatch-record-")
        .tempdir()
        .map_err(unnamed)
        .map_err(io(&std::env::temp_dir()))?;
    let session_id = new_session_id();
    let seconds = u64::try_from(options.manifest.spec.duration_seconds).unwrap_or(1);
    let window = Window {
        length: if options.until_end {
            MAX_WINDOW
        } else {
            Duration::from_secs(seconds)
        },
        until_end: options.until_end,
    };
    let mut progress = Progress::new(options.quiet);
    let (captured, command, samples, notes) = match &options.profiler {
        Profiler::Nsys(tools) => {
            let of = (program.as_path(), session_id.as_str());
            let (captured, command, samples) =
                nsys::collect(options, tools, of, spool.path(), window, &mut progress).await?;
            (captured, command, samples, Vec::new())
        }
        Profiler::Cuda(asked) => {
            let traced = tracer::collect(options, asked, &program, spool.path(), window, &mut progress).await?;
            (traced.captured, traced.command, traced.samples, traced.notes)
        }
    };
    let made = publish::publish(options, &session_id, captured, samples, spool.path(), &mut progress).await;
    progress.clear();
    let (summary, missing) = made?;
    Ok(Recording {
        session_id,
        folder: options.output.clone(),
        summary,
        missing,
        notes,
        command,
    })
}

/// Eight hexadecimal digits.
fn new_session_id() -> String {
    let random = RandomState::new().hash_one(utc_ns());
    format!("{:08x}", random & u64::from(u32::MAX))
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
    |source| Error::Io {
        path: path.to_owned(),
        source,
    }
}
