//! From a raw capture to the published files, in sandboxed child processes: import, transform. An
//! export by Nsight Systems is made only where it was asked for.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_api::session::TransformDevice;
use flopwatch_attach::nsys::{HostTools, failed_at_random, parse_version};
use flopwatch_attach::reexec::{End, Output, Reexec, ReexecError};
use flopwatch_attach::sandbox::users::Users;
use flopwatch_attach::sandbox::{MemoryBound, Sandboxed, ToolCgroups};
use flopwatch_trace::transform::device::others;
use nix::libc::SIGXFSZ;
use tokio::sync::Semaphore;
use tracing::{debug, warn};

use crate::ahead::{Ahead, Order};
use crate::analysis;
use crate::child_spec::ChildSpec;
use crate::children::ChildJob;
use crate::disassembly;
use crate::disk::{Floor, Short, Space};
use crate::sandbox_dir::{self, SandboxDir};
use crate::transform::Job;

/// Made by the driver's kernel module when it is loaded.
const NVIDIA_DRIVER: &str = "/proc/driver/nvidia/version";
/// The transform's kernels for GPUs, beside this program.
const KERNELS: &str = "libflopwatch_kernels.so";
/// Longest time for the tools to say their version.
const VERSION_TIMEOUT: Duration = Duration::from_mins(1);
/// Longest removal of what children left.
const REMOVAL_TIMEOUT: Duration = Duration::from_mins(1);

/// Runs of an importer that fails as NVIDIA's does at random, on captures that it imports in its
/// next run (docs/nsight-systems.md).
const MAX_IMPORT_ATTEMPTS: u32 = 2;

/// Threads and processes that a child may have beside those for each processor.
const MAX_PROCESSES: u64 = 256;
/// Large blocks in large pages, where the system leaves that to programs, for tools and libraries
/// in C, and for our own code where the program has no allocator of its own; the agent's is
/// jemalloc (docs/measurements/engine.md).
const MALLOC: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
/// An analysis makes and drops columns as long as the capture over and over: their memory stays
/// with the child, which gives all of it back when it ends.
const KEEPS_MEMORY: (&str, &str) = ("_RJEM_MALLOC_CONF", "dirty_decay_ms:-1");
/// Threads and processes that a child may have for each processor.
const PROCESSES_EACH: u64 = 4;

/// Bounds of the children.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Users and groups that children become.
    pub users: Users,
    /// Whether a child that lacks one of its protections is not run.
    pub whole: bool,
    /// Where each child gets a cgroup of its own; none: children stay in the caller's.
    pub cgroups: Option<ToolCgroups>,
    /// Turns of children: no more live at once than there is memory for.
    pub turns: Arc<Semaphore>,
    /// Memory of a child in bytes: the address space of each of its processes, and what its cgroup
    /// may take.
    pub memory_bytes: u64,
    /// Largest file that a child writes, in bytes; what the disk has free above the floor may be
    /// less.
    pub file_bytes: u64,
    /// Free disk space that children leave.
    pub floor: Floor,
    /// Longest import, and longest export.
    pub import: Duration,
    /// Longest transform.
    pub transform: Duration,
}

impl Default for Limits {
    /// 4 GiB of address space, files of 16 GiB on any disk, 10 minutes each, as the calling user
    /// and in its cgroup, and as many at once as are asked for.
    fn default() -> Self {
        let long = Duration::from_mins(10);
        Self {
            users: Users::caller(),
            whole: false,
            cgroups: None,
            turns: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            memory_bytes: 4 << 30,
            file_bytes: 16 << 30,
            floor: Floor::default(),
            import: long,
            transform: long,
        }
    }
}

/// Why a step did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no folder for the child.
    #[error("{step} cannot be run")]
    Place {
        /// What was to be done.
        step: &'static str,
        /// What is wrong with its folder.
        source: sandbox_dir::Error,
    },
    /// A file or folder of ours cannot be made ready for the child.
    #[error("{step} cannot be run: {source}")]
    Prepare {
        /// What was to be done.
        step: &'static str,
        /// Error of the kernel.
        source: std::io::Error,
    },
    /// The child could not be run.
    #[error("{step} cannot be run")]
    Run {
        /// What was to be done.
        step: &'static str,
        /// What became of the child.
        source: ReexecError,
    },
    /// The disk ran short of free space, before it or while it was at work.
    #[error("{step} was ended: {short}")]
    NoSpace {
        /// What was to be done.
        step: &'static str,
        /// How little is left.
        short: Short,
    },
    /// A file that the step wrote outgrew the free disk space.
    #[error(
        "{step} was ended: a file outgrew the {bytes} bytes that the node's disk has beside what must stay free \
         (--min-free-bytes, --min-free-percent): free some space on the node"
    )]
    Outgrown {
        /// What was to be done.
        step: &'static str,
        /// Bytes that a file could have.
        bytes: u64,
    },
    /// The step ran longer than its limit and was ended.
    #[error("{step} took longer than {limit:?} and was ended")]
    Deadline {
        /// What was to be done.
        step: &'static str,
        /// Time that the step had.
        limit: Duration,
    },
    /// The step's child failed.
    #[error("{step} failed ({how}): {message}")]
    Failed {
        /// What was to be done.
        step: &'static str,
        /// How the child ended.
        how: String,
        /// The last that it said.
        message: String,
        /// Whether it is how NVIDIA's importer fails at random.
        at_random: bool,
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
    /// The tool printed something else than a version.
    #[error("{step} gave no version: {message:?}")]
    NoVersion {
        /// What was to be done.
        step: &'static str,
        /// What was said.
        message: String,
    },
    /// There is no pipe to end the child with.
    #[error("{step} cannot be run: {source}")]
    Pipe {
        /// What was to be done.
        step: &'static str,
        /// Error of the kernel.
        source: std::io::Error,
    },
    /// This process could not hand the step to a thread.
    #[error("{step} ended early: {source}")]
    Thread {
        /// What was to be done.
        step: &'static str,
        /// How the thread ended.
        source: tokio::task::JoinError,
    },
}

impl Error {
    /// Whether the disk was too small for it.
    pub const fn is_want_of_space(&self) -> bool {
        matches!(self, Self::NoSpace { .. } | Self::Outgrown { .. })
    }
}

/// A child of Nsight Systems' tools that makes one file of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolJob {
    /// Makes a report of a raw capture.
    Import {
        /// The raw capture.
        raw: PathBuf,
        /// Path of the report to write.
        report: PathBuf,
    },
    /// Makes an export of a report.
    Export {
        /// Path of the report to export.
        report: PathBuf,
        /// Path of the export to write.
        export: PathBuf,
    },
}

/// Runs the steps of one capture in its folder.
#[derive(Clone, Debug)]
pub struct ChildRunner {
    reexec: Reexec,
    /// Path of this program, for the step that it does itself.
    own: PathBuf,
    tools: Option<HostTools>,
    /// NVIDIA's disassembler, for machine code in reports.
    disassembler: Option<PathBuf>,
    limits: Limits,
}

impl ChildRunner {
    /// `own` is this program; without tools only the transform can be run.
    pub fn new(own: PathBuf, tools: Option<HostTools>, limits: Limits) -> Self {
        Self {
            reexec: Reexec::new(&own),
            own,
            tools,
            disassembler: None,
            limits,
        }
    }

    /// The same with a disassembler, which children run that read machine code.
    #[must_use]
    pub fn with_disassembler(mut self, program: Option<PathBuf>) -> Self {
        self.disassembler = program;
        self
    }

    /// Bounds of the steps.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A copy of the runner that uses these tools.
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
        let folder = tempfile::tempdir().map_err(|source| Error::Prepare { step, source })?;
        let sandbox = SandboxDir::make(folder.path().join(sandbox_dir::NAME), &self.limits.users)
            .map_err(|source| Error::Place { step, source })?;
        let child = ChildSpec::new(step, line, VERSION_TIMEOUT, Floor::default());
        let output = self.run(child, &sandbox, std::future::pending()).await?;
        let message = String::from_utf8_lossy(&output.stdout);
        parse_version(&message)
            .map(str::to_owned)
            .ok_or_else(|| Error::NoVersion {
                step,
                message: output.last_words(),
            })
    }

    /// Runs one child of the tools. Gives the processor time that it took, none where that is not
    /// known; so does every step.
    pub async fn tool(
        &self,
        sandbox: &SandboxDir,
        step: &ToolJob,
        until: impl Future<Output = ()>,
    ) -> Result<Option<Duration>, Error> {
        match step {
            ToolJob::Import { raw, report } => self.import(sandbox, raw, report, until).await,
            ToolJob::Export { report, export } => self.export(sandbox, report, export, until).await,
        }
    }

    /// Makes a report of a raw capture at a path of `sandbox`. An importer that fails as NVIDIA's
    /// does at random is run a second time, within the time of one. When `until` resolves first,
    /// the child is killed and reaped before this returns; so it is for every step.
    pub async fn import(
        &self,
        sandbox: &SandboxDir,
        raw: &Path,
        report: &Path,
        until: impl Future<Output = ()>,
    ) -> Result<Option<Duration>, Error> {
        let step = "the import";
        let tools = self.tools.as_ref().ok_or(Error::NoTools { step })?;
        let limit = self.limits.import;
        let begin = Instant::now();
        let mut until = std::pin::pin!(until);
        let mut run = 1;
        loop {
            let left = limit.saturating_sub(begin.elapsed());
            let mut child = ChildSpec::new(step, tools.import(raw, report), left, self.limits.floor);
            child.reads(sandbox, raw)?;
            match self.run(child, sandbox, until.as_mut()).await {
                Err(Error::Failed { at_random: true, .. }) if run < MAX_IMPORT_ATTEMPTS => run += 1,
                Err(Error::Deadline { .. }) => return Err(Error::Deadline { step, limit }),
                ran => return Ok(ran?.processor_time),
            }
        }
    }

    /// Makes an export of a report at a path of `sandbox`.
    pub async fn export(
        &self,
        sandbox: &SandboxDir,
        report: &Path,
        export: &Path,
        until: impl Future<Output = ()>,
    ) -> Result<Option<Duration>, Error> {
        let step = "the export";
        let tools = self.tools.as_ref().ok_or(Error::NoTools { step })?;
        let mut child = ChildSpec::new(
            step,
            tools.export_hdf(report, export),
            self.limits.import,
            self.limits.floor,
        );
        child.reads(sandbox, report)?;
        Ok(self.run(child, sandbox, until).await?.processor_time)
    }

    /// Makes the published files; what the job makes is in `sandbox`.
    pub async fn transform(
        &self,
        sandbox: &SandboxDir,
        job: &Job,
        until: impl Future<Output = ()>,
    ) -> Result<Option<Duration>, Error> {
        let step = "the transform";
        let mut counted = job.clone();
        let gpu = gpu(step, job.device, &mut counted.others).await?;
        let line = self.line(step, &ChildJob::Transform(counted))?;
        let mut child = ChildSpec::new(step, line, self.limits.transform, self.limits.floor);
        child.gpu = gpu;
        let capture = job.fleet.as_ref().map(|fleet| &fleet.capture);
        for file in job.inputs.iter().chain(&job.samples).chain(capture) {
            child.reads(sandbox, file)?;
        }
        Ok(self.run(child, sandbox, until).await?.processor_time)
    }

    /// Makes the result of an analysis; it and its report are in `sandbox`.
    pub async fn analyze(
        &self,
        sandbox: &SandboxDir,
        job: &analysis::Job,
        until: impl Future<Output = ()>,
    ) -> Result<Option<Duration>, Error> {
        let step = "the analysis";
        let mut counted = job.clone();
        let gpu = gpu(step, job.device, &mut counted.others).await?;
        let line = self.line(step, &ChildJob::Analyze(counted))?;
        let mut child = ChildSpec::new(step, line, self.limits.transform, self.limits.floor);
        child.gpu = gpu;
        child.keeps_memory = true;
        for file in &job.inputs {
            child.reads(sandbox, file)?;
        }
        Ok(self.run(child, sandbox, until).await?.processor_time)
    }

    /// Removes what children left in their folder, in their name; the folder itself stays.
    pub async fn clear(&self, folder: &Path) -> Result<(), Error> {
        let Some(sandbox) = SandboxDir::left(folder, &self.limits.users) else {
            return Ok(());
        };
        let (step, folder) = ("the clean-up", folder.to_owned());
        let line = self.line(step, &ChildJob::Clear { folder })?;
        // It is what helps on a full disk.
        let child = ChildSpec::new(step, line, REMOVAL_TIMEOUT, Floor::default());
        self.run(child, &sandbox, std::future::pending()).await.map(drop)
    }

    /// Makes the sandbox of the folder's next child ready, which is told later what it is.
    pub fn prepare(&self, sandbox: &SandboxDir) {
        sandbox.keep_ahead(self.ahead(sandbox));
    }

    fn ahead(&self, sandbox: &SandboxDir) -> Ahead {
        Ahead::begin(self.reexec.clone(), self.frame(sandbox))
    }

    /// What every child of a folder has, with nothing to run.
    fn frame(&self, sandbox: &SandboxDir) -> Sandboxed {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let processors = u64::try_from(processors).unwrap_or(u64::MAX);
        Sandboxed {
            command: Vec::new(),
            environment: Vec::new(),
            directory: sandbox.path().to_owned(),
            readable: Vec::new(),
            gpu: false,
            user: sandbox.user(),
            memory_bytes: self.limits.memory_bytes,
            memory: MemoryBound::AddressSpace,
            cgroups: self.limits.cgroups.clone(),
            file_bytes: self.limits.file_bytes,
            processes: processors.saturating_mul(PROCESSES_EACH).saturating_add(MAX_PROCESSES),
            cpu_seconds: 0,
            deadline: Duration::ZERO,
            whole: self.limits.whole,
        }
    }

    /// The command line of a child that does a job.
    fn line(&self, step: &'static str, job: &ChildJob) -> Result<Vec<String>, Error> {
        let unwritten = |error: serde_json::Error| Error::Prepare {
            step,
            source: error.into(),
        };
        job.command_line(&self.own).map_err(unwritten)
    }

    /// The child works in its folder.
    async fn run(
        &self,
        child: ChildSpec,
        sandbox: &SandboxDir,
        until: impl Future<Output = ()>,
    ) -> Result<Output, Error> {
        let ChildSpec {
            name: step,
            command,
            gpu,
            keeps_memory,
            mut readable,
            limit,
            floor,
        } = child;
        let directory = sandbox.path();
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let mut environment = vec![owned(MALLOC)];
        if keeps_memory {
            environment.push(owned(KEEPS_MEMORY));
        }
        if let Some(tools) = &self.tools {
            environment.extend(tools.environment(directory));
            readable.extend(tools.folders());
        }
        readable.push(self.own.clone());
        if let Some(program) = &self.disassembler {
            let program = program.clone();
            environment.push((disassembly::VARIABLE.to_owned(), program.to_string_lossy().into_owned()));
            readable.push(program);
        }
        if gpu {
            // Where the transform looks for its kernels, beside the system's folders.
            readable.push(self.own.with_file_name(KERNELS));
        }
        let mut until = std::pin::pin!(until);
        // Those that wait take no memory; what they wait for has its deadline.
        let turn = tokio::select! {
            turn = Arc::clone(&self.limits.turns).acquire_owned() => turn.map_err(|_closed| Error::Interrupted { step })?,
            () = &mut until => return Err(Error::Interrupted { step }),
        };
        let space = Space::new(directory.to_owned(), floor);
        let free = space.above().map_err(|short| Error::NoSpace { step, short })?;
        let file_bytes = self.limits.file_bytes.min(free);
        let sandboxed = Sandboxed {
            command,
            environment,
            readable,
            gpu,
            memory: if gpu {
                MemoryBound::Data
            } else {
                MemoryBound::AddressSpace
            },
            file_bytes,
            // One processor for the whole time, and as much again for a tool with threads.
            cpu_seconds: limit.as_secs().saturating_mul(2),
            deadline: limit,
            ..self.frame(sandbox)
        };
        // The child's thread watches the reading end: it ends the child when the writing end is
        // gone, be it below or because whoever waits here was dropped.
        let (cancelled, cancel) = std::io::pipe().map_err(|source| Error::Pipe { step, source })?;
        let mut cancel = Some(cancel);
        let ahead = sandbox.take_ahead().unwrap_or_else(|| self.ahead(sandbox));
        let mut ran = ahead.order(Order {
            sandboxed,
            cancel: cancelled.into(),
            turn,
        });
        let mut short = None;
        let ran = loop {
            tokio::select! {
                ran = &mut ran => break ran,
                () = &mut until, if cancel.is_some() => drop(cancel.take()),
                found = space.run_short(), if cancel.is_some() => {
                    short = Some(found);
                    drop(cancel.take());
                }
            }
        };
        let output = ran
            .map_err(|source| Error::Thread { step, source })?
            .map_err(|source| Error::Run { step, source })?
            .ok_or(Error::Interrupted { step })?;
        for missing in &output.missing {
            debug!(step, missing, "a protection could not be applied");
        }
        if let (End::Cancelled, Some(short)) = (output.end, short) {
            return Err(Error::NoSpace { step, short });
        }
        // Its limit on files was what the disk had left.
        if output.end == End::Signaled(SIGXFSZ) && file_bytes < self.limits.file_bytes {
            let bytes = file_bytes;
            return Err(Error::Outgrown { step, bytes });
        }
        judge(step, &output, limit)?;
        Ok(output)
    }
}

/// Whether a child that transforms gets the GPUs, and how many others compute on them.
async fn gpu(step: &'static str, device: TransformDevice, known: &mut u32) -> Result<bool, Error> {
    // Only where it may matter: what a child sees of the GPUs is more than others see.
    let gpu = device != TransformDevice::Cpu && Path::new(NVIDIA_DRIVER).exists();
    if !gpu || device != TransformDevice::Auto {
        return Ok(gpu);
    }
    let seen = tokio::task::spawn_blocking(others).await;
    match seen.map_err(|source| Error::Thread { step, source })? {
        Ok(seen) => {
            *known = seen;
            Ok(true)
        }
        // The workload comes first, and nobody can tell whether there is one.
        Err(reason) => {
            debug!(
                reason,
                "who computes on the GPUs is unknown: the transform is done without them"
            );
            Ok(false)
        }
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
    warn!(step, how, last_words = output.last_words(), "a step failed");
    Err(Error::Failed {
        step,
        how,
        message: output.last_words(),
        at_random: failed_at_random(output),
    })
}
