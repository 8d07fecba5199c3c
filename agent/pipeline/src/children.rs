//! What a program of Flopwatch starts itself as for a child in the sandbox: hidden subcommands, the
//! same in each program.
//!
//! The command lines are made by [`transform::Job::command_line`], [`analysis::Job::command_line`]
//! and [`Steps::clear`](crate::steps::Steps::clear).

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use flopwatch_analysis::{Request, RequestError};
use flopwatch_api::session::TransformDevice;
use flopwatch_model::Category;
use flopwatch_report::Format;

use crate::fleet_rows::{FleetFiles, WriteRows};
use crate::{analysis, transform};

/// What the child does.
#[derive(Debug, Subcommand)]
pub enum ChildCommand {
    /// Remove what is in a folder; runs as the user of the children that wrote it.
    #[command(hide = true)]
    Clear {
        /// Folder to empty.
        folder: PathBuf,
    },
    /// Turn captures into a timeline file and a summary.
    #[command(hide = true)]
    Transform(TransformArguments),
    /// Run an analysis.
    #[command(hide = true)]
    RunAnalysis(RunAnalysisArguments),
}

/// Why a child did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The files could not be made.
    #[error(transparent)]
    Transform(#[from] transform::Error),
    /// The analysis has no result.
    #[error(transparent)]
    Analysis(#[from] analysis::Error),
    /// The parameters of the analysis are no JSON.
    #[error("the parameters are no JSON: {0}")]
    Parameters(#[from] serde_json::Error),
    /// The analysis or its parameters are none.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The folder to empty cannot be read.
    #[error("cannot read {folder}")]
    Clear {
        /// Folder to empty.
        folder: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
}

impl ChildCommand {
    /// Does the child's work. `write_rows` writes rows of the fleet, where this program has such a
    /// writer.
    pub fn run(self, write_rows: Option<WriteRows>) -> Result<(), Error> {
        match self {
            Self::Clear { folder } => clear(&folder),
            Self::Transform(arguments) => {
                transform::run(&arguments.into(), write_rows)?;
                Ok(())
            }
            Self::RunAnalysis(arguments) => Ok(analysis::run(&arguments.job()?)?),
        }
    }
}

/// Arguments of `transform`.
#[derive(Debug, Args)]
pub struct TransformArguments {
    /// File to read, of any format; several become one timeline.
    #[arg(long = "input", value_name = "FILE")]
    pub inputs: Vec<PathBuf>,
    /// Sampled series (JSON).
    #[arg(long, value_name = "FILE")]
    pub samples: Option<PathBuf>,
    /// Identifier of the session.
    #[arg(long, value_name = "ID")]
    pub session_id: Option<String>,
    /// Begin the timeline with the first event or point in the samples' window.
    #[arg(long)]
    pub trim: bool,
    /// A category of the timeline that the profiler was asked to record; may be repeated.
    #[arg(long, value_name = "CATEGORY", value_parser = category)]
    pub captured: Vec<Category>,
    /// What does the heavy steps: Auto, Gpu or Cpu.
    #[arg(long, value_name = "DEVICE", value_parser = device, default_value = "Auto")]
    pub device: TransformDevice,
    /// Compute processes on the GPUs that this process cannot see.
    #[arg(long, value_name = "COUNT", default_value_t)]
    pub others: u32,
    /// Timeline file to write.
    #[arg(long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,
    /// Summary to write.
    #[arg(long, value_name = "FILE")]
    pub summary: PathBuf,
    /// The capture's row of the fleet (JSON).
    #[arg(long, value_name = "FILE", requires = "fleet_rows")]
    pub fleet_capture: Option<PathBuf>,
    /// Rows of the fleet to write.
    #[arg(long, value_name = "FILE", requires = "fleet_capture")]
    pub fleet_rows: Option<PathBuf>,
}

impl From<TransformArguments> for transform::Job {
    fn from(arguments: TransformArguments) -> Self {
        let TransformArguments {
            inputs,
            samples,
            session_id,
            trim,
            captured,
            device,
            others,
            timeline,
            summary,
            fleet_capture,
            fleet_rows,
        } = arguments;
        let fleet = fleet_capture.zip(fleet_rows);
        Self {
            inputs,
            samples,
            session_id,
            trim,
            captured,
            device,
            others,
            timeline,
            summary,
            fleet: fleet.map(|(capture, rows)| FleetFiles { capture, rows }),
        }
    }
}

/// Arguments of `run-analysis`.
#[derive(Debug, Args)]
pub struct RunAnalysisArguments {
    /// The analysis.
    pub name: String,
    /// The captures.
    #[arg(required = true)]
    pub inputs: Vec<PathBuf>,
    /// What each of them is called that has no identifier of a session.
    #[arg(long = "name", value_name = "NAME", allow_hyphen_values = true)]
    pub names: Vec<String>,
    /// Its parameters as JSON.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub parameters: String,
    /// How the result is written.
    #[arg(long, value_name = "FORMAT", value_parser = format, default_value = "json")]
    pub format: Format,
    /// What does the heavy steps: Auto, Gpu or Cpu.
    #[arg(long, value_name = "DEVICE", value_parser = device, default_value = "Auto")]
    pub device: TransformDevice,
    /// Compute processes on the GPUs that this process cannot see.
    #[arg(long, value_name = "COUNT", default_value_t)]
    pub others: u32,
    /// File to write.
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
}

impl RunAnalysisArguments {
    /// What the child is asked to do.
    fn job(self) -> Result<analysis::Job, Error> {
        let parameters = serde_json::from_str(&self.parameters)?;
        Ok(analysis::Job {
            request: Request::parse(&self.name, &parameters)?.written_as(self.format)?,
            inputs: self.inputs,
            names: self.names,
            device: self.device,
            others: self.others,
            output: self.output,
        })
    }
}

fn format(name: &str) -> Result<Format, String> {
    Format::from_name(name).ok_or_else(|| {
        let known = Format::ALL.map(Format::name);
        format!("no such format; there are {}", known.join(", "))
    })
}

fn device(name: &str) -> Result<TransformDevice, String> {
    TransformDevice::from_name(name).ok_or_else(|| "no such device; there are Auto, Gpu, Cpu".to_owned())
}

fn category(name: &str) -> Result<Category, String> {
    Category::from_name(name).ok_or_else(|| {
        let known = Category::ALL.map(Category::name);
        format!("no such category; there are {}", known.join(", "))
    })
}

/// Removes what is in a folder and belongs to this process's user; what does not is left to others.
/// Folders that their maker closed are opened first.
fn clear(folder: &Path) -> Result<(), Error> {
    let unreadable = |source| Error::Clear {
        folder: folder.to_owned(),
        source,
    };
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let removed = if entry.file_type().map_err(unreadable)?.is_dir() {
            drop(std::fs::set_permissions(entry.path(), PermissionsExt::from_mode(0o700)));
            clear(&entry.path()).ok();
            std::fs::remove_dir(entry.path())
        } else {
            std::fs::remove_file(entry.path())
        };
        drop(removed);
    }
    Ok(())
}
