//! What a program of Flopwatch starts itself as for a child in the sandbox: one hidden subcommand,
//! the same in each program, whose argument is the child's job as JSON.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::{Deserialize, Serialize};

use crate::fleet_rows::WriteRows;
use crate::{analysis, transform};

/// Name of the subcommand.
const JOB: &str = "job";

/// The hidden subcommand.
#[derive(Debug, Subcommand)]
pub enum ChildCommand {
    /// Do a job of the pipeline.
    #[command(name = JOB, hide = true)]
    Job {
        /// The job, as JSON.
        job: String,
    },
}

/// What a child does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ChildJob {
    /// Removes what is in a folder; runs as the user of the children that wrote it.
    Clear {
        /// Folder to empty.
        folder: PathBuf,
    },
    /// Turns captures into a timeline file and a summary.
    Transform(transform::Job),
    /// Runs an analysis.
    Analyze(analysis::Job),
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
    /// The argument is no job.
    #[error("the argument is no job: {0}")]
    Job(#[from] serde_json::Error),
    /// The folder to empty cannot be read.
    #[error("cannot read {folder}")]
    Clear {
        /// Folder to empty.
        folder: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
}

impl ChildCommand {
    /// Does the child's work. `write_rows` writes rows of the fleet, where this program has such a
    /// writer.
    pub fn run(self, write_rows: Option<WriteRows>) -> Result<(), Error> {
        let Self::Job { job } = self;
        match serde_json::from_str::<ChildJob>(&job)? {
            ChildJob::Clear { folder } => clear(&folder),
            ChildJob::Transform(job) => Ok(transform::run(&job, write_rows).map(drop)?),
            ChildJob::Analyze(job) => Ok(analysis::run(&job)?),
        }
    }
}

impl ChildJob {
    /// The command line of `program`, a copy of this program, that does the job in another process.
    /// Fails where the path of a file is no UTF-8.
    pub fn command_line(&self, program: &Path) -> Result<Vec<String>, serde_json::Error> {
        let program = program.to_string_lossy().into_owned();
        Ok(vec![program, JOB.to_owned(), serde_json::to_string(self)?])
    }
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

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use flopwatch_analysis::Request;
    use flopwatch_api::session::TransformDevice;
    use flopwatch_model::Category;
    use flopwatch_report::{Format, Layout};
    use serde_json::json;

    use super::*;
    use crate::fleet_rows::FleetFiles;

    fn transform() -> transform::Job {
        transform::Job {
            inputs: vec!["a b.nsys-rep".into(), "--c".into()],
            samples: Some("samples.json".into()),
            session_id: Some("0badcafe".to_owned()),
            trim: true,
            captured: vec![Category::CudaKernel, Category::NvtxRange],
            device: TransformDevice::Gpu,
            others: 3,
            timeline: Some("timeline.h5".into()),
            summary: "summary.json".into(),
            fleet: Some(FleetFiles {
                capture: "capture.json".into(),
                rows: "fleet.parquet".into(),
            }),
        }
    }

    #[test]
    fn a_child_reads_the_job_that_was_written() {
        let parameters = json!({"limit": 7});
        let request = Request::parse("kernels-per-stream", &json!({})).unwrap();
        let request = request.written_as(Format::Csv).unwrap().laid_out(Layout {
            columns: Some(72),
            colors: true,
        });
        let analysis = |request| analysis::Job {
            request,
            inputs: vec!["timeline.h5".into()],
            names: vec!["-before".to_owned()],
            device: TransformDevice::Cpu,
            others: 1,
            output: "result.csv".into(),
        };
        let limited = Request::parse("cuda_gpu_kern_sum", &parameters).unwrap();
        let folder = "/var/lib/flopwatch".into();
        for job in [
            ChildJob::Clear { folder },
            ChildJob::Transform(transform()),
            ChildJob::Analyze(analysis(request)),
            ChildJob::Analyze(analysis(limited)),
        ] {
            let line = job.command_line(Path::new("/usr/bin/flopwatch")).unwrap();
            let [program, name, written] = line.as_slice() else {
                panic!("{line:?}");
            };
            assert_eq!((program.as_str(), name.as_str()), ("/usr/bin/flopwatch", JOB));
            let read: ChildJob = serde_json::from_str(written).unwrap();
            assert_eq!(format!("{read:?}"), format!("{job:?}"));
        }
    }

    #[test]
    fn a_path_that_no_json_can_hold_is_refused_before_a_child_runs() {
        let job = transform::Job {
            inputs: vec![OsStr::from_bytes(b"\xff.nsys-rep").into()],
            ..transform()
        };
        let error = ChildJob::Transform(job).command_line(Path::new("/bin/flopwatch"));
        assert!(error.unwrap_err().to_string().contains("UTF-8"));
    }

    #[test]
    fn an_argument_that_is_no_job_is_refused() {
        for job in ["", "{}", r#"{"Analyze":{"request":{"analysis":"no-such"}}}"#] {
            let child = ChildCommand::Job { job: job.to_owned() };
            let refused = child.run(None).unwrap_err();
            assert!(refused.to_string().starts_with("the argument is no job: "), "{refused}");
        }
    }
}
