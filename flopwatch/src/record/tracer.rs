//! The CUDA tracer around the command, or in programs that run already: a library of ours that
//! CUDA loads, without any tool of NVIDIA's beside libcupti. The flight recorder keeps the ranges
//! of the same programs.

mod libraries;
mod outcome;

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use flopwatch_api::artifact::{CUDA_TRACE, RING};
use flopwatch_api::profiler::{CudaGraphTrace, TraceCategory};
use flopwatch_attach::tracer::{self, TraceFile};
use flopwatch_nvml::utc_ns;
use flopwatch_pipeline::cuda_window::{self, CudaWindow, Order, Recorded, Refused};
use flopwatch_pipeline::transform::Samples;
use flopwatch_trace::{ReadLimits, recorder};
use flopwatch_tracer_file::wanted::{GraphLevel, Kinds, TICK_NS};
use nix::fcntl::OFlag;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::{JoinError, JoinHandle, spawn_blocking};

use self::libraries::Libraries;
use super::command::{Running, Sampled, Started, Window, wait, watch};
use super::kept::Kept;
use super::session::Captured;
use super::{Error as RecordError, Options};
use crate::progress::Progress;

/// Where nobody ends the window, programs end it so long after its time.
const DEADLINE_GRACE: Duration = Duration::from_secs(2);
/// Refusals of programs that wait to be told; of more the end of the window tells.
const MAX_UNTOLD: usize = 16;
/// Bytes of the file that the command's programs share.
const FILE_BYTES: usize = flopwatch_tracer_file::DEFAULT_BYTES;

/// Why the tracer recorded nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An option asks for what the tracer does not do.
    #[error("{option} is for Nsight Systems: {instead}")]
    Unfit {
        /// The option, as the command line and manifests have it.
        option: String,
        /// What to do.
        instead: &'static str,
    },
    /// The window could not be recorded.
    #[error(transparent)]
    Window(#[from] cuda_window::Error),
    /// The file that programs share cannot be used.
    #[error(transparent)]
    File(#[from] tracer::Error),
    /// The thread that drains was lost.
    #[error("the thread that drains the tracer's file was lost: {0}")]
    Thread(#[source] JoinError),
    /// The flight recorder's file cannot be kept.
    #[error("{}: {source}", path.display())]
    Ring {
        /// Path of the file.
        path: PathBuf,
        /// Why it cannot be kept.
        source: recorder::Failure,
    },
    /// No program recorded, and each says why; the text has them.
    #[error("nothing was recorded: {0}")]
    Refused(String),
    /// Nothing began CUDA.
    #[error(
        "nothing was recorded: no program of the command began CUDA within the window (the driver loads the tracer when a \
         program calls cuInit); a longer --duration waits for one"
    )]
    NoCuda,
    /// Programs ended before CUPTI handed out what they did.
    #[error(
        "nothing was recorded: {0} programs ended before CUPTI handed out what they did, which it does each {tick} ms and for work \
         alone that has ended; have the program wait for its work (cudaDeviceSynchronize) and run on for a moment",
        tick = TICK_NS / 1_000_000
    )]
    TooShort(usize),
}

/// What the tracer is told beside what every profiler is.
#[derive(Clone, Debug, Default)]
pub struct TracerOptions {
    /// Folder of the libcupti for programs that have loaded none; none: where NVIDIA's installers
    /// put it.
    pub cupti: Option<PathBuf>,
    /// The tracer's file of programs that run already; none: the command is started.
    pub attach: Option<PathBuf>,
    /// The flight recorder's file of these programs.
    pub ring: Option<PathBuf>,
}

/// What came of a window.
pub(super) struct Traced {
    pub(super) captured: Captured,
    pub(super) command: Running,
    pub(super) samples: Samples,
    pub(super) notes: Vec<String>,
}

/// Fails where the options ask for what the tracer does not do.
pub(super) fn check(options: &Options) -> Result<(), Error> {
    let unfit = |option: &str, instead| Error::Unfit {
        option: option.to_owned(),
        instead,
    };
    let nsys = options.manifest.spec.profiler.nsys.as_ref();
    if nsys.is_some_and(|asked| asked.capture_range.is_some()) {
        let instead = "the CUDA tracer records a window; give its length by --duration";
        return Err(unfit("--capture-range (captureRange)", instead));
    }
    if nsys.is_some_and(|asked| asked.gpu_metrics.is_some()) {
        let instead = "the CUDA tracer samples no counters of the hardware; leave it out";
        return Err(unfit("--gpu-metrics (gpuMetrics)", instead));
    }
    for traced in options.manifest.trace() {
        if !matches!(traced, TraceCategory::Cuda | TraceCategory::Nvtx) {
            let instead = "the CUDA tracer records cuda and nvtx; require and list no other";
            return Err(unfit(&format!("the trace of {}", traced.as_str()), instead));
        }
    }
    Ok(())
}

/// Records a window of the command, or of programs that run already, with its files in `spool`.
pub(super) async fn collect(
    options: &Options,
    asked: &TracerOptions,
    program: &Path,
    spool: &Path,
    window: Window,
    progress: &mut Progress,
) -> Result<Traced, RecordError> {
    let files = Files {
        drained: spool.join(CUDA_TRACE),
        ring: spool.join(RING),
    };
    let seen = if let Some(file) = asked.attach.as_deref() {
        of_file(options, (file, asked.ring.as_deref()), &files, window, progress).await?
    } else {
        of_command(options, (program, asked), &files, window, progress).await?
    };
    let recorded = &seen.recorded;
    outcome::judge(recorded, seen.has_ring)?;
    Ok(Traced {
        notes: outcome::notes(recorded),
        captured: Captured::Traced {
            drained: files.drained,
            ring: seen.has_ring.then_some(files.ring),
            uses_cuda: recorded.programs > 0,
        },
        command: seen.command,
        samples: seen.samples,
    })
}

/// Where a recording is kept.
struct Files {
    drained: PathBuf,
    ring: PathBuf,
}

/// What a window left.
struct Seen {
    recorded: Recorded,
    command: Running,
    samples: Samples,
    has_ring: bool,
}

/// Records the command from its begin on.
async fn of_command(
    options: &Options,
    (program, asked): (&Path, &TracerOptions),
    files: &Files,
    window: Window,
    progress: &mut Progress,
) -> Result<Seen, RecordError> {
    let kept = Kept::make(".flopwatch-cuda-")?;
    let libraries = Libraries::install(kept.path())?;
    let file = TraceFile::make(&libraries.trace(), FILE_BYTES).map_err(Error::File)?;
    let started = Started {
        program,
        environment: libraries.environment(asked, &options.manifest.trace()),
        kept,
    };
    let mut recording = Recording::begin(file, &files.drained, order(options, window, false))?;
    let (over, said) = (&mut recording.thread, &mut recording.refusals);
    let (watched, early) = watch(options, started, window, progress, over, said).await?;
    progress.stage("ending the window");
    let recorded = recording.end(early).await;
    let ring = libraries::ring_in(watched.folder());
    let has_ring = ring.is_file();
    let kept = if has_ring {
        keep_ring(&ring, &files.ring)
    } else {
        Ok(())
    };
    // First what is no longer needed goes.
    let (command, samples) = watched.finish();
    kept?;
    Ok(Seen {
        recorded: recorded?,
        command,
        samples,
        has_ring,
    })
}

/// Records programs that run already, by the file that they share and that of their ranges.
async fn of_file(
    options: &Options,
    (file, ring): (&Path, Option<&Path>),
    files: &Files,
    window: Window,
    progress: &mut Progress,
) -> Result<Seen, RecordError> {
    progress.stage("ordering the window");
    let file = TraceFile::open(file).map_err(Error::File)?;
    let sampled = Sampled::begin(options, Arc::new(|_: u32| true));
    let mut recording = Recording::begin(file, &files.drained, order(options, window, true))?;
    let (over, said) = (&mut recording.thread, &mut recording.refusals);
    let early = wait(window, progress, over, said).await?;
    let length = sampled.elapsed();
    progress.stage("ending the window");
    let recorded = recording.end(early).await?;
    if let Some(from) = ring {
        keep_ring(from, &files.ring)?;
    }
    Ok(Seen {
        recorded,
        command: Running::Foreign,
        samples: sampled.finish(length),
        has_ring: ring.is_some(),
    })
}

/// What is ordered of the programs.
fn order(options: &Options, window: Window, is_late: bool) -> Order {
    let nsys = options.manifest.spec.profiler.nsys.as_ref();
    let graphs = match nsys.and_then(|asked| asked.cuda_graph_trace) {
        Some(CudaGraphTrace::Node) => GraphLevel::Nodes,
        Some(CudaGraphTrace::Graph) | None => GraphLevel::Whole,
    };
    let longest = window.length.saturating_add(DEADLINE_GRACE);
    let length = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
    Order {
        kinds: Kinds::ALL,
        graphs,
        start_at_utc_ns: 0,
        deadline_utc_ns: utc_ns().saturating_add(length),
        is_late,
    }
}

/// What the thread that drains comes to.
type Ended = Result<Recorded, cuda_window::Error>;

/// A window that a thread drains until `stop` is gone.
struct Recording {
    stop: SyncSender<()>,
    thread: JoinHandle<Ended>,
    /// That a program refuses, as soon as it does.
    refusals: Receiver<String>,
}

impl Recording {
    /// Orders a window.
    fn begin(file: TraceFile, drained: &Path, order: Order) -> Result<Self, Error> {
        let opened = CudaWindow::begin(file, drained, order, &ReadLimits::default())?;
        let (told, refusals) = channel(MAX_UNTOLD);
        let opened = opened.telling(Box::new(move |refused: &Refused| {
            told.try_send(outcome::refusal(refused)).ok();
        }));
        let (stop, stopped) = sync_channel(1);
        Ok(Self {
            stop,
            thread: spawn_blocking(move || opened.run(&stopped)),
            refusals,
        })
    }

    /// Ends the window, and gives what the thread came to, which may have ended early.
    async fn end(self, early: Option<Result<Ended, JoinError>>) -> Result<Recorded, Error> {
        drop(self.stop);
        let ended = match early {
            Some(ended) => ended,
            None => self.thread.await,
        };
        Ok(ended.map_err(Error::Thread)??)
    }
}

/// Keeps the flight recorder's file as it is now: its programs write on.
fn keep_ring(from: &Path, to: &Path) -> Result<(), Error> {
    let ring = |source| Error::Ring {
        path: from.to_owned(),
        source,
    };
    // Not through a link, and not waiting for the other end of a pipe.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(from);
    let file = file.and_then(|file| {
        if file.metadata()?.is_file() {
            return Ok(file);
        }
        let what = "is no file; name the file of the flight recorder";
        Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, what))
    });
    let file = file.map_err(|error| ring(recorder::Failure::Open(error)))?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut copy = options.open(to).map_err(|error| ring(recorder::Failure::Copy(error)))?;
    recorder::snapshot(&file, &mut copy, &ReadLimits::default())
        .map(drop)
        .map_err(ring)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn what_is_no_file_of_a_flight_recorder_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        mkfifo(&at("pipe"), Mode::S_IRWXU).unwrap();
        std::fs::write(at("text"), "somebody else's").unwrap();
        symlink(at("text"), at("link")).unwrap();
        for (name, expected) in [
            ("pipe", "is no file"),
            (".", "is no file"),
            ("link", ""),
            ("text", ""),
            ("missing", "No such file"),
        ] {
            let refusal = keep_ring(&at(name), &at("kept")).unwrap_err().to_string();
            assert!(refusal.contains(expected), "{name}: {refusal}");
        }
    }
}
