//! A window of the CUDA tracer: ordered in the file that programs share, drained into a file of its
//! own while it runs, and ended.
//!
//! What the programs' library does is in `agent/tracer`. Whoever records runs [`CudaWindow::run`]
//! on a thread of its own, and ends the window by dropping the other end of the channel. The window
//! ends by itself at its deadline, with nobody there. Whoever comes then [goes
//! on](CudaWindow::resume) with what the file holds.

mod begun;
mod live;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use flopwatch_attach::process::{ProcessId, Procfs};
use flopwatch_attach::tracer::{self, Slots, TraceFile, monotonic_ns};
use flopwatch_trace::ReadLimits;
use flopwatch_trace::tracer::{Drain, Failure, why_not};
use flopwatch_tracer_file::process::{Phase, Process, Reason};
use flopwatch_tracer_file::wanted::{GraphLevel, Kinds, MAX_WINDOW_NS, Mode, Wanted};

pub use begun::Begun;
pub use live::LiveTally;

/// Whether the process of a slot still runs, by whoever knows the processes of the file's programs.
pub type IsAlive = Box<dyn FnMut(&Process) -> bool + Send>;
/// Whether programs with a driver may be recorded, by what `cuDriverGetVersion` says.
pub type IsAdmitted = Box<dyn Fn(u32) -> bool + Send>;

/// Is told of each program that does not record, once, as soon as that is seen.
pub type OnRefusal = Box<dyn FnMut(&Refused) + Send>;

/// The longest window.
pub const MAX_WINDOW: Duration = Duration::from_nanos(MAX_WINDOW_NS);
/// How often the file is drained: within that time programs write a small part of it.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);
/// How often it is looked at what the programs do.
const PROCESSES_INTERVAL: Duration = Duration::from_millis(100);
/// Longest time in which a program that is there follows an order: a call of CUPTI takes two
/// seconds at most, and one that nobody wakes looks after a quarter of one.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// Longest wait at a window's end for a process of which nobody here knows whether it is there.
const UNKNOWN_TIMEOUT: Duration = Duration::from_millis(500);
/// Pause between two looks at a window's end.
const END_PAUSE: Duration = Duration::from_millis(2);

/// Why a window was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file that programs share cannot be used.
    #[error(transparent)]
    File(#[from] tracer::Error),
    /// The file of what is drained cannot be made.
    #[error("{}: cannot be made: {source}", path.display())]
    Raw {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file that programs share was damaged while it was drained, or what is drained cannot be
    /// written.
    #[error("the tracer's file {0}")]
    Drain(#[from] Failure),
    /// No program that shares the file is there.
    #[error(
        "no program that runs has the tracer's library in it and has begun CUDA: start it with CUDA_INJECTION64_PATH and \
         FLOPWATCH_CUDA_DIR, and record when it uses CUDA"
    )]
    Nobody,
}

/// What is to be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Kinds of records.
    pub kinds: Kinds,
    /// How graphs are recorded.
    pub graphs: GraphLevel,
    /// When the window begins in all programs, in ns since the Unix epoch; a time that is past is
    /// now.
    pub start_at_utc_ns: u64,
    /// When the window ends at the latest, in ns since the Unix epoch.
    pub deadline_utc_ns: u64,
    /// Whether the programs are there already: nobody else is waited for.
    pub is_late: bool,
}

/// A window that another has begun, who is gone.
#[derive(Debug)]
pub struct Earlier {
    /// The number of its order.
    pub generation: u32,
    /// What the slots held before it.
    pub before: Slots,
    /// What ended earlier is of no interest, in ns since the Unix epoch.
    pub since_utc_ns: u64,
}

/// Why a window ended before it was told to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlyEnd {
    /// As many records are kept as a timeline may have events.
    Full,
    /// No program is there that does not refuse.
    InVain,
    /// A program joined whose driver is not admitted.
    Driver,
}

/// A program that did not record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The process, as its container numbers it.
    pub pid: u32,
    /// Why, and what helps.
    pub why: String,
    /// Whether another tool is in the way, which `why` names where its libraries tell it.
    pub by_other: bool,
}

impl Refused {
    /// By what its slot says.
    fn of(process: &Process) -> Self {
        Self {
            pid: process.pid,
            why: why_not(process).unwrap_or_default(),
            by_other: matches!(process.reason, Reason::Held | Reason::OtherProfiler),
        }
    }
}

/// What a window came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Records that were drained.
    pub records: u64,
    /// Records that the programs wrote, by their own count. More than were drained are lost.
    pub written: u64,
    /// Programs that followed the order.
    pub programs: usize,
    /// Those of them that ended within the window.
    pub ended: usize,
    /// Buffers of these that CUPTI still had: what they held is missing.
    pub held: u64,
    /// What the drivers of the programs say of their versions.
    pub drivers: BTreeSet<u32>,
    /// Those that did not record.
    pub refused: Vec<Refused>,
    /// Set where the window ended before it was told to.
    pub early: Option<EarlyEnd>,
}

/// How the programs of a window were found at its end.
struct Found {
    programs: usize,
    ended: usize,
    held: u64,
    drivers: BTreeSet<u32>,
}

/// A window that is open.
pub struct CudaWindow {
    file: TraceFile,
    drain: Drain,
    live: LiveTally,
    /// Whether the programs are there already: nobody else is waited for.
    is_late: bool,
    /// The number of its order.
    generation: u32,
    is_alive: IsAlive,
    is_admitted: IsAdmitted,
    /// Slots of processes that were seen to run.
    shown: BTreeSet<usize>,
    refused: BTreeMap<usize, Process>,
    on_refusal: OnRefusal,
}

impl CudaWindow {
    /// Orders the window. What is drained goes to a new file at `raw`, which only the caller may
    /// read.
    ///
    /// # Errors
    ///
    /// When the programs' file cannot be read, the order not written, or the new file not made.
    pub fn begin(mut file: TraceFile, raw: &Path, order: Order, limits: &ReadLimits) -> Result<Self, Error> {
        let drain = Drain::new(file.reader()?, make(raw)?, limits)?;
        file.order(Wanted {
            generation: 0,
            mode: Mode::Window,
            kinds: order.kinds,
            graphs: order.graphs,
            start_at_ns: order.start_at_utc_ns,
            deadline_ns: order.deadline_utc_ns,
        })?;
        let generation = file.generation();
        Ok(Self::of(file, drain, order.is_late, generation))
    }

    /// Goes on with a window that another has begun, from the oldest record of it on that the file
    /// holds. Nothing is ordered: what was wanted goes on until its deadline.
    ///
    /// # Errors
    ///
    /// When the programs' file cannot be read, or the new file not made.
    pub fn resume(file: TraceFile, raw: &Path, earlier: &Earlier, limits: &ReadLimits) -> Result<Self, Error> {
        let before = earlier.before.all().collect();
        let drain = Drain::resume(file.reader()?, make(raw)?, limits, before, earlier.since_utc_ns)?;
        // Whether somebody is there was told to whoever began it.
        Ok(Self::of(file, drain, false, earlier.generation))
    }

    fn of(file: TraceFile, drain: Drain, is_late: bool, generation: u32) -> Self {
        let procfs = Procfs::default();
        Self {
            file,
            drain,
            live: LiveTally::default(),
            is_late,
            generation,
            is_alive: Box::new(move |process: &Process| procfs.is_alive(identity(process))),
            is_admitted: Box::new(|_driver| true),
            shown: BTreeSet::new(),
            refused: BTreeMap::new(),
            on_refusal: Box::new(|_: &Refused| {}),
        }
    }

    /// The same where another than this procfs knows the programs' processes: they number
    /// themselves as their container does.
    #[must_use]
    pub fn seen_by(self, is_alive: IsAlive) -> Self {
        Self { is_alive, ..self }
    }

    /// The same where somebody wants to know at once which programs refuse.
    #[must_use]
    pub fn telling(self, on_refusal: OnRefusal) -> Self {
        Self { on_refusal, ..self }
    }

    /// The same that ends as soon as a program joins it whose driver is not admitted.
    #[must_use]
    pub fn admitting(self, is_admitted: IsAdmitted) -> Self {
        Self { is_admitted, ..self }
    }

    /// Ends the window in all programs, and gives up what they recorded.
    ///
    /// # Errors
    ///
    /// When the order cannot be written.
    pub fn cancel(mut self) -> Result<(), Error> {
        Ok(self.file.end()?)
    }

    /// Drains until the other end of `stop` is gone, or the window ends by itself. Then ends it in
    /// all programs, waits for what they still write, and completes the file.
    ///
    /// # Errors
    ///
    /// When the programs' file was damaged, what is drained cannot be written, or nobody is there.
    pub fn run(mut self, stop: &Receiver<()>) -> Result<Recorded, Error> {
        let drained = self.drain_until(stop);
        let ended = self.end();
        let early = drained?;
        let Found {
            programs,
            ended,
            held,
            drivers,
        } = ended?;
        if self.is_late && programs == 0 {
            return Err(Error::Nobody);
        }
        let (first, last) = (self.generation, self.file.generation());
        let records = self.drain.records();
        let refused = self.refusals();
        // Another may have ended it already, by an order between these.
        let span = last.wrapping_sub(first);
        let took_part = |process: &Process| process.generation.wrapping_sub(first) <= span;
        let written = self.drain.finish(&self.refused, took_part)?;
        Ok(Recorded {
            records,
            written,
            programs,
            ended,
            held,
            drivers,
            refused,
            early,
        })
    }

    /// Those that did not record, each with its reason.
    fn refusals(&self) -> Vec<Refused> {
        self.refused.values().map(Refused::of).collect()
    }

    fn drain_until(&mut self, stop: &Receiver<()>) -> Result<Option<EarlyEnd>, Error> {
        let begin = Instant::now();
        let mut looked: Option<Instant> = None;
        let mut tallied = begin;
        loop {
            self.drain.drain()?;
            self.tally(&mut tallied)?;
            if self.drain.is_full() {
                return Ok(Some(EarlyEnd::Full));
            }
            if looked.is_none_or(|looked| looked.elapsed() >= PROCESSES_INTERVAL) {
                looked = Some(Instant::now());
                let processes = self.look()?;
                let mut drivers = processes.iter().filter_map(|(_, process)| driver(process));
                if drivers.any(|driver| !(self.is_admitted)(driver)) {
                    return Ok(Some(EarlyEnd::Driver));
                }
                let is_in_vain = processes.iter().all(|(slot, _)| self.refused.contains_key(slot));
                if self.is_late && is_in_vain && begin.elapsed() >= ANSWER_TIMEOUT {
                    return Ok(Some(EarlyEnd::InVain));
                }
            }
            match stop.recv_timeout(DRAIN_INTERVAL) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }

    /// The processes that have followed the order, with what is noted of each.
    fn look(&mut self) -> Result<Vec<(usize, Process)>, Error> {
        let now = monotonic_ns();
        let mut followed = self.drain.processes()?;
        followed.retain(|(_, process)| process.generation == self.generation);
        for (slot, process) in &mut followed {
            // One that waits for CUPTI cannot say itself that it is stuck.
            process.phase = process.phase_at(now);
            if matches!(process.phase, Phase::Refused | Phase::Stuck) {
                let before = self.refused.insert(*slot, *process);
                if before.is_none_or(|before| before.pid != process.pid) {
                    (self.on_refusal)(&Refused::of(process));
                }
            }
            if !self.shown.contains(slot) && (self.is_alive)(process) {
                self.shown.insert(*slot);
            }
        }
        Ok(followed)
    }

    /// Ends the window in all programs, and drains until they have followed.
    fn end(&mut self) -> Result<Found, Error> {
        let followed = self.look()?;
        self.file.end()?;
        let begin = Instant::now();
        let is_active = |process: &Process| {
            matches!(
                process.phase,
                Phase::Waiting | Phase::Opening | Phase::Recording | Phase::Ending
            )
        };
        loop {
            self.drain.drain()?;
            let orders = [self.generation, self.file.generation()];
            let mut active = self.drain.processes()?;
            active.retain(|(_, process)| orders.contains(&process.generation));
            // A process that runs another program since has a slot for that one.
            let replaced = active.extract_if(.., |(_, process)| process.phase == Phase::Replaced);
            let replaced: Vec<_> = replaced.collect();
            active.retain(|(_, process)| is_active(process));
            let (there, gone): (Vec<_>, Vec<_>) = active.into_iter().partition(|(_, process)| (self.is_alive)(process));
            // Of a process that was never shown here nobody knows whether it has ended.
            let is_unknown = gone.iter().any(|(slot, _)| !self.shown.contains(slot));
            let waits = (!there.is_empty() && begin.elapsed() < ANSWER_TIMEOUT)
                || (is_unknown && begin.elapsed() < UNKNOWN_TIMEOUT);
            if !waits {
                // What was written between the last drain and the last look.
                self.drain.drain()?;
                let held = gone.iter().chain(&replaced).map(|(_, process)| process.held);
                let drivers = followed.iter().filter_map(|(_, process)| driver(process));
                return Ok(Found {
                    programs: followed.len(),
                    ended: gone.len() + replaced.len(),
                    held: held.fold(0, u64::saturating_add),
                    drivers: drivers.collect(),
                });
            }
            std::thread::park_timeout(END_PAUSE);
        }
    }
}

/// A new file at `raw`, which only the caller may read.
fn make(raw: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    options.open(raw).map_err(|source| Error::Raw {
        path: raw.to_owned(),
        source,
    })
}

/// What the driver of a process says of its version; none where it was not asked.
fn driver(process: &Process) -> Option<u32> {
    Some(process.driver_version).filter(|driver| *driver != 0)
}

/// The process of a slot, as procfs would know it.
fn identity(process: &Process) -> ProcessId {
    ProcessId {
        pid: i32::try_from(process.pid).unwrap_or(0),
        start_time: process.started,
    }
}
