//! From a raw capture to the published files, in sandboxed child processes: import, transform. An export by Nsight Systems is made
//! only where it was asked for.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_api::session::TransformDevice;
use flopwatch_attach::nsys::{HostTools, failed_at_random, parse_version};
use flopwatch_attach::reexec::{End, Output, Reexec, ReexecError};
use flopwatch_attach::sandbox::users::Users;
use flopwatch_attach::sandbox::{self, MemoryBound, Sandboxed, ToolCgroups};
use flopwatch_trace::transform::device::others;
use nix::libc::SIGXFSZ;
use tokio::sync::Semaphore;
use tracing::{debug, warn};

use crate::analysis;
use crate::disassembly;
use crate::disk::{Floor, Short, Space};
use crate::transform::Job;
use crate::workplace::{self, Workplace};

/// Made by the driver's kernel module when it is loaded.
const NVIDIA_DRIVER: &str = "/proc/driver/nvidia/version";
/// The transform's kernels for GPUs, beside this program.
const KERNELS: &str = "libflopwatch_kernels.so";
/// Longest time for the tools to say their version.
const VERSION: Duration = Duration::from_mins(1);
/// Longest removal of what children left.
const CLEAR: Duration = Duration::from_mins(1);

/// Runs of an importer that fails as NVIDIA's does at random, on captures that it imports in its next run
/// (docs/nsight-systems.md).
const IMPORTS: u32 = 2;

/// Threads and processes that a child may have beside those for each processor.
const PROCESSES: u64 = 256;
/// Large blocks in large pages, where the system leaves that to programs, for tools and libraries
/// in C, and for our own code where the program has no allocator of its own; the agent's is jemalloc
/// (docs/performance.md, "Where the time goes").
const MALLOC: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
/// An analysis makes and drops columns as long as the capture over and over: their memory stays with the child, which gives all of
/// it back when it ends.
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
    /// Memory of a child in bytes: the address space of each of its processes, and what its cgroup may
    /// take.
    pub memory_bytes: u64,
    /// Largest file that a child writes, in bytes; what the disk has free above the floor may be less.
    pub file_bytes: u64,
    /// Free disk space that children leave.
    pub floor: Floor,
    /// Longest import, and longest export.
    pub import: Duration,
    /// Longest transform.
    pub transform: Duration,
}

impl Default for Limits {
    /// 4 GiB of address space, files of 16 GiB on any disk, 10 minutes each, as the calling user and in
    /// its cgroup, and as many at once as are asked for.
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
        source: workplace::Error,
    },
    /// A file or folder of ours cannot be made ready for the child.
    #[error("{step} cannot be run: {source}")]
    Prepare {
        /// What was to be done.
        step: &'static str,
        /// What the kernel said.
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
    /// What it wrote outgrew the free disk space.
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
    /// It took too long.
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
    /// It said something else than a version.
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
        /// What the kernel said.
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
pub enum ToolStep {
    /// Makes a report of a raw capture.
    Import {
        /// The raw capture.
        raw: PathBuf,
        /// The report.
        report: PathBuf,
    },
    /// Makes an export of a report.
    Export {
        /// The report.
        report: PathBuf,
        /// Path of the export to write.
        export: PathBuf,
    },
}

/// Runs the steps of one capture in its folder.
#[derive(Clone, Debug)]
pub struct Steps {
    reexec: Reexec,
    /// Path of this program, for the step that it does itself.
    own: PathBuf,
    tools: Option<HostTools>,
    /// NVIDIA's disassembler, for machine code in reports.
    disassembler: Option<PathBuf>,
    limits: Limits,
}

impl Steps {
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
        let folder = tempfile::tempdir().map_err(|source| Error::Prepare { step, source })?;
        let place = Workplace::make(folder.path().join(workplace::NAME), &self.limits.users)
            .map_err(|source| Error::Place { step, source })?;
        let child = Step::new(step, line, VERSION, Floor::default());
        let output = self.run(child, &place, std::future::pending()).await?;
        let message = String::from_utf8_lossy(&output.stdout);
        parse_version(&message)
            .map(str::to_owned)
            .ok_or_else(|| Error::NoVersion {
                step,
                message: output.last_words(),
            })
    }

    /// Runs one child of the tools. Gives the processor time that it took, none where that is not known; so does every step.
    pub async fn tool(
        &self,
        place: &Workplace,
        step: &ToolStep,
        until: impl Future<Output = ()>,
    ) -> Result<Option<Duration>, Error> {
        match step {
            ToolStep::Import { raw, report } => self.import(place, raw, report, until).await,
            ToolStep::Export { report, export } => self.export(place, report, export, until).await,
        }
    }

    /// Makes a report of a raw capture at a path of `place`. An importer that fails as NVIDIA's does at random is run a
    /// second time, within the time of one. When `until` resolves first, the child is killed and reaped before this returns; so it is for every step.
    pub async fn import(
        &self,
        place: &Workplace,
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
            let mut child = Step::new(step, tools.import(raw, report), left, self.limits.floor);
            child.reads(place, raw)?;
            match self.run(child, place, until.as_mut()).await {
                Err(Error::Failed { at_random: true, .. }) if run < IMPORTS => run += 1,
                Err(Error::Deadline { .. }) => return Err(Error::Deadline { step, limit }),
                ran => return Ok(ran?.processor_time),
            }
        }
    }

    /// Makes an export of a report at a path of `place`.
    pub async fn export(
        &self,
        place: &Workplace,
        report: &Path,
        export: &Path,
        until: impl Future<Output = ()>,
    ) -> Result<Option<Duration>, Error> {
        let step = "the export";
        let tools = self.tools.as_ref().ok_or(Error::NoTools { step })?;
        let mut child = Step::new(
            step,
            tools.export_hdf(report, export),
            self.limits.import,
            self.limits.floor,
        );
        child.reads(place, report)?;
        Ok(self.run(child, place, until).await?.processor_time)
    }

    /// Makes the published files; what the job makes is in `place`.
    pub async fn transform(
        &self,
        place: &Workplace,
        job: &Job,
        until: impl Future<Output = ()>,
    ) -> Result<Option<Duration>, Error> {
        let step = "the transform";
        let mut job = job.clone();
        let gpu = gpu(step, job.device, &mut job.others).await?;
        let mut child = Step::new(
            step,
            job.command_line(&self.own),
            self.limits.transform,
            self.limits.floor,
        );
        child.gpu = gpu;
        let capture = job.fleet.as_ref().map(|fleet| &fleet.capture);
        for file in job.inputs.iter().chain(&job.samples).chain(capture) {
            child.reads(place, file)?;
        }
        Ok(self.run(child, place, until).await?.processor_time)
    }

    /// Makes the result of an analysis; it and its report are in `place`.
    pub async fn analyze(
        &self,
        place: &Workplace,
        job: &analysis::Job,
        until: impl Future<Output = ()>,
    ) -> Result<Option<Duration>, Error> {
        let step = "the analysis";
        let mut job = job.clone();
        let gpu = gpu(step, job.device, &mut job.others).await?;
        let limits = &self.limits;
        let mut child = Step::new(step, job.command_line(&self.own), limits.transform, limits.floor);
        child.gpu = gpu;
        child.keeps_memory = true;
        for file in &job.inputs {
            child.reads(place, file)?;
        }
        Ok(self.run(child, place, until).await?.processor_time)
    }

    /// Removes what children left in their folder, in their name; the folder itself stays.
    pub async fn clear(&self, folder: &Path) -> Result<(), Error> {
        let Some(place) = Workplace::left(folder, &self.limits.users) else {
            return Ok(());
        };
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let line = vec![text(&self.own), "clear".to_owned(), text(folder)];
        // It is what helps on a full disk.
        let child = Step::new("the clean-up", line, CLEAR, Floor::default());
        self.run(child, &place, std::future::pending()).await.map(drop)
    }

    /// The child works in its folder.
    async fn run(&self, child: Step, place: &Workplace, until: impl Future<Output = ()>) -> Result<Output, Error> {
        let Step {
            name: step,
            command,
            gpu,
            keeps_memory,
            mut readable,
            limit,
            floor,
        } = child;
        let directory = place.path().to_owned();
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let mut environment = vec![owned(MALLOC)];
        if keeps_memory {
            environment.push(owned(KEEPS_MEMORY));
        }
        if let Some(tools) = &self.tools {
            environment.extend(tools.environment(&directory));
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
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let processors = u64::try_from(processors).unwrap_or(u64::MAX);
        let space = Space::new(directory.clone(), floor);
        let free = space.above().map_err(|short| Error::NoSpace { step, short })?;
        let file_bytes = self.limits.file_bytes.min(free);
        let sandboxed = Sandboxed {
            command,
            environment,
            directory,
            readable,
            gpu,
            user: place.user(),
            memory_bytes: self.limits.memory_bytes,
            memory: if gpu {
                MemoryBound::Data
            } else {
                MemoryBound::AddressSpace
            },
            cgroups: self.limits.cgroups.clone(),
            file_bytes,
            processes: processors.saturating_mul(PROCESSES_EACH).saturating_add(PROCESSES),
            // One processor for the whole time, and as much again for a tool with threads.
            cpu_seconds: limit.as_secs().saturating_mul(2),
            deadline: limit,
            whole: self.limits.whole,
        };
        let reexec = self.reexec.clone();
        // The child's thread watches the reading end: it ends the child when the writing end is gone, be it below or because
        // whoever waits here was dropped.
        let (cancelled, cancel) = std::io::pipe().map_err(|source| Error::Pipe { step, source })?;
        let cancelled = std::os::fd::OwnedFd::from(cancelled);
        let mut cancel = Some(cancel);
        let mut ran = tokio::task::spawn_blocking(move || {
            let ran = sandbox::run_until(&reexec, &sandboxed, &cancelled);
            // The child is gone only here, whoever waited for it.
            drop(turn);
            ran
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
            .map_err(|source| Error::Run { step, source })?;
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

/// A child to run.
struct Step {
    name: &'static str,
    command: Vec<String>,
    gpu: bool,
    keeps_memory: bool,
    readable: Vec<PathBuf>,
    limit: Duration,
    /// Free disk space that it leaves.
    floor: Floor,
}

impl Step {
    const fn new(name: &'static str, command: Vec<String>, limit: Duration, floor: Floor) -> Self {
        Self {
            name,
            command,
            gpu: false,
            keeps_memory: false,
            readable: Vec::new(),
            limit,
            floor,
        }
    }

    /// Lets the child read a file; what lies in its own folder it can read as it is.
    fn reads(&mut self, place: &Workplace, file: &Path) -> Result<(), Error> {
        if !file.starts_with(place.path()) && !self.readable.iter().any(|shown| shown == file) {
            let step = self.name;
            place.show(file).map_err(|source| Error::Prepare { step, source })?;
            self.readable.push(file.to_owned());
        }
        Ok(())
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
