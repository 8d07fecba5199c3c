//! From a raw capture to the published files, in three sandboxed child processes: import, export, transform.

use std::path::{Path, PathBuf};
use std::time::Duration;

use flopwatch_api::session::TransformDevice;
use flopwatch_attach::nsys::{HostTools, parse_version};
use flopwatch_attach::reexec::{End, Output, Reexec, ReexecError};
use flopwatch_attach::sandbox::{self, MemoryBound, Sandboxed};
use tracing::{debug, warn};

use crate::transform::Job;

/// Made by the driver's kernel module when it is loaded.
const NVIDIA_DRIVER: &str = "/proc/driver/nvidia/version";
/// Longest time for the tools to say their version.
const VERSION: Duration = Duration::from_mins(1);
/// Longest removal of what children left.
const CLEAR: Duration = Duration::from_mins(1);

/// Bounds of the children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// User and group that a child becomes when this process is root.
    pub user: u32,
    /// Address space of a child in bytes.
    pub memory_bytes: u64,
    /// Largest file that a child writes, in bytes.
    pub file_bytes: u64,
    /// Longest import.
    pub import: Duration,
    /// Longest export.
    pub export: Duration,
    /// Longest transform.
    pub transform: Duration,
}

impl Default for Limits {
    /// 4 GiB of address space, files of 16 GiB, 10 minutes each, as the calling user.
    fn default() -> Self {
        let long = Duration::from_mins(10);
        Self {
            user: nix::unistd::geteuid().as_raw(),
            memory_bytes: 4 << 30,
            file_bytes: 16 << 30,
            import: long,
            export: long,
            transform: long,
        }
    }
}

/// Why a step did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The child could not be run.
    #[error("{step} cannot be run")]
    Run {
        /// What was to be done.
        step: &'static str,
        /// Why.
        source: ReexecError,
    },
    /// It took too long.
    #[error("{step} took longer than {limit:?} and was ended")]
    Deadline {
        /// What was to be done.
        step: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// It failed.
    #[error("{step} failed ({how}): {said}")]
    Failed {
        /// What was to be done.
        step: &'static str,
        /// How the child ended.
        how: String,
        /// The last that it said.
        said: String,
    },
    /// The caller ended it before its end.
    #[error("{step} was interrupted")]
    Interrupted {
        /// What was to be done.
        step: &'static str,
    },
    /// No Nsight Systems is there.
    #[error(
        "{step} cannot be run: there is no Nsight Systems beside this agent; the tools image of the chart brings it"
    )]
    NoTools {
        /// What was to be done.
        step: &'static str,
    },
    /// It said something else than a version.
    #[error("{step} gave no version: {said:?}")]
    NoVersion {
        /// What was to be done.
        step: &'static str,
        /// What was said.
        said: String,
    },
    /// There is no pipe to end the child with.
    #[error("{step} cannot be run: {source}")]
    Pipe {
        /// What was to be done.
        step: &'static str,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// This process could not hand the step to a thread.
    #[error("{step} ended early: {source}")]
    Thread {
        /// What was to be done.
        step: &'static str,
        /// Why.
        source: tokio::task::JoinError,
    },
}

/// Runs the steps of one capture in its folder.
#[derive(Clone, Debug)]
pub struct Steps {
    reexec: Reexec,
    /// Path of this program, for the step that it does itself.
    own: PathBuf,
    tools: Option<HostTools>,
    limits: Limits,
}

impl Steps {
    /// `own` is this program; without tools only the transform can be run.
    pub fn new(own: PathBuf, tools: Option<HostTools>, limits: Limits) -> Self {
        Self {
            reexec: Reexec::new(&own),
            own,
            tools,
            limits,
        }
    }

    /// The bounds.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The same with other tools.
    #[must_use]
    pub fn with_tools(&self, tools: HostTools) -> Self {
        Self {
            tools: Some(tools),
            ..self.clone()
        }
    }

    /// The version that the tools say they are of.
    pub async fn version(&self) -> Result<String, Error> {
        let step = "asking Nsight Systems for its version";
        let tools = self.tools.as_ref().ok_or(Error::NoTools { step })?;
        let line = vec![tools.nsys.to_string_lossy().into_owned(), "--version".to_owned()];
        let made = std::env::temp_dir().join("version");
        let output = self
            .run(
                step,
                line,
                MemoryBound::AddressSpace,
                &made,
                VERSION,
                std::future::pending(),
            )
            .await?;
        let said = String::from_utf8_lossy(&output.stdout);
        parse_version(&said).map(str::to_owned).ok_or_else(|| Error::NoVersion {
            step,
            said: output.last_words(),
        })
    }

    /// Makes a report of a raw capture. When `until` resolves first, the child is killed and reaped before this returns; so it is
    /// for every step.
    pub async fn import(&self, raw: &Path, report: &Path, until: impl Future<Output = ()>) -> Result<(), Error> {
        let step = "the import";
        let tools = self.tools.as_ref().ok_or(Error::NoTools { step })?;
        let line = tools.import(raw, report);
        let memory = MemoryBound::AddressSpace;
        self.run(step, line, memory, report, self.limits.import, until)
            .await
            .map(drop)
    }

    /// Makes an export of a report.
    pub async fn export(&self, report: &Path, export: &Path, until: impl Future<Output = ()>) -> Result<(), Error> {
        let step = "the export";
        let tools = self.tools.as_ref().ok_or(Error::NoTools { step })?;
        let line = tools.export_hdf(report, export);
        let memory = MemoryBound::AddressSpace;
        self.run(step, line, memory, export, self.limits.export, until)
            .await
            .map(drop)
    }

    /// Makes the published files.
    pub async fn transform(&self, job: &Job, until: impl Future<Output = ()>) -> Result<(), Error> {
        let line = job.command_line(&self.own);
        // Only where it may matter: the bound on the address space is the stricter one.
        let memory = if job.device != TransformDevice::Cpu && Path::new(NVIDIA_DRIVER).exists() {
            MemoryBound::Data
        } else {
            MemoryBound::AddressSpace
        };
        let limit = self.limits.transform;
        let made = job.timeline.as_ref().unwrap_or(&job.summary);
        self.run("the transform", line, memory, made, limit, until)
            .await
            .map(drop)
    }

    /// Removes what children left in a folder, as their user; the folder itself stays.
    pub async fn clear(&self, folder: &Path) -> Result<(), Error> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let line = vec![text(&self.own), "clear".to_owned(), text(folder)];
        let memory = MemoryBound::AddressSpace;
        let never = std::future::pending();
        self.run("the clean-up", line, memory, &folder.join("."), CLEAR, never)
            .await
            .map(drop)
    }

    /// The child works in the folder of what it makes.
    async fn run(
        &self,
        step: &'static str,
        command: Vec<String>,
        memory: MemoryBound,
        made: &Path,
        limit: Duration,
        until: impl Future<Output = ()>,
    ) -> Result<Output, Error> {
        let directory = made.parent().unwrap_or(Path::new("/")).to_owned();
        let mut environment = match &self.tools {
            Some(tools) => tools.environment(&directory),
            None => Vec::new(),
        };
        // A report of Nsight Compute is opened by its own program, which the child has to find.
        for name in ["PATH", flopwatch_trace::ncu::NCU] {
            environment.extend(std::env::var(name).ok().map(|value| (name.to_owned(), value)));
        }
        let sandboxed = Sandboxed {
            command,
            environment,
            directory,
            user: self.limits.user,
            memory_bytes: self.limits.memory_bytes,
            memory,
            file_bytes: self.limits.file_bytes,
            // One processor for the whole time, and as much again for a tool with threads.
            cpu_seconds: limit.as_secs().saturating_mul(2),
            deadline: limit,
        };
        let reexec = self.reexec.clone();
        // The child's thread watches the reading end: it ends the child when the writing end is gone, be it below or because
        // whoever waits here was dropped.
        let (cancelled, cancel) = std::io::pipe().map_err(|source| Error::Pipe { step, source })?;
        let cancelled = std::os::fd::OwnedFd::from(cancelled);
        let mut cancel = Some(cancel);
        let mut ran = tokio::task::spawn_blocking(move || sandbox::run_until(&reexec, &sandboxed, &cancelled));
        let mut until = std::pin::pin!(until);
        let ran = loop {
            tokio::select! {
                ran = &mut ran => break ran,
                () = &mut until, if cancel.is_some() => drop(cancel.take()),
            }
        };
        let output = ran
            .map_err(|source| Error::Thread { step, source })?
            .map_err(|source| Error::Run { step, source })?;
        for missing in &output.missing {
            debug!(step, missing, "a protection could not be applied");
        }
        judge(step, &output, limit)?;
        Ok(output)
    }
}

fn judge(step: &'static str, output: &Output, limit: Duration) -> Result<(), Error> {
    let how = match output.end {
        End::Exited(0) => return Ok(()),
        End::TimedOut => return Err(Error::Deadline { step, limit }),
        End::Cancelled => return Err(Error::Interrupted { step }),
        End::Exited(code) => format!("exit code {code}"),
        End::Signaled(signal) => format!("signal {signal}"),
        End::Detached => "it ran away".to_owned(),
    };
    warn!(step, how, said = output.last_words(), "a step failed");
    Err(Error::Failed {
        step,
        how,
        said: output.last_words(),
    })
}
