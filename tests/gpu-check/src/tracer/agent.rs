//! What an agent does with the tracer's file: it orders windows of one program, and counts records
//! as they come. Orders and reads are those of the product; its own window
//! (`flopwatch_pipeline::cuda_window`) keeps records and counts none.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use flopwatch_attach::tracer::{self, TraceFile};
use flopwatch_trace::tracer::FileBytes;
use flopwatch_tracer_file::name::MAX_NAME_BYTES;
use flopwatch_tracer_file::process::{Count, Phase, Process, Reason, SLOTS};
use flopwatch_tracer_file::wanted::{GraphLevel, Kinds, Mode, Wanted};
use flopwatch_tracer_file::{Reader, Seen};

use super::program::Program;
use super::tally::Tally;
use super::until::Until;
use crate::graft::program::pause;

/// How long a process may take to follow an order; CUPTI's first start takes longest.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest window: the library ends it where this program does not.
const WINDOW_NS: u64 = 600_000_000_000;
/// Between two looks at a slot.
const POLL_INTERVAL: Duration = Duration::from_micros(200);

/// The agent of one program.
pub(super) struct Agent {
    file: TraceFile,
    bytes: FileBytes,
    reader: Reader<Vec<Seen>>,
    slot: usize,
}

impl Agent {
    /// Of the file that a program has taken a slot of.
    pub(super) fn of(path: &Path, pid: u32, until: Until) -> Result<Self> {
        let until = until.or_after(ANSWER_TIMEOUT);
        let file = loop {
            match TraceFile::open(path) {
                Ok(file) => break file,
                Err(error @ tracer::Error::Open { .. }) if until.left().is_none() => {
                    return Err(error).context("the program made no file");
                }
                Err(tracer::Error::Open { .. }) => pause(POLL_INTERVAL),
                Err(error) => return Err(error.into()),
            }
        };
        let mut bytes = FileBytes::new(file.reader()?);
        let reader = bytes.reader()?;
        loop {
            for slot in 0..SLOTS {
                let process = reader.process(&mut bytes, slot)?;
                if process.is_some_and(|process| process.pid == pid) {
                    return Ok(Self {
                        file,
                        bytes,
                        reader,
                        slot,
                    });
                }
            }
            until.check("the program's slot")?;
            pause(POLL_INTERVAL);
        }
    }

    /// What the program's slot says.
    pub(super) fn process(&mut self) -> Result<Process> {
        let process = self.reader.process(&mut self.bytes, self.slot)?;
        process.context("the program's slot makes no sense any more")
    }

    fn order(&mut self, kinds: Kinds, graphs: GraphLevel) -> Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        self.file.order(Wanted {
            generation: 0,
            mode: Mode::Window,
            kinds,
            graphs,
            start_at_ns: 0,
            deadline_ns: u64::try_from(now.as_nanos())?.saturating_add(WINDOW_NS),
        })?;
        Ok(())
    }

    /// Waits until the process has followed the last order.
    fn settle(&mut self, until: Until) -> Result<Process> {
        let until = until.or_after(ANSWER_TIMEOUT);
        loop {
            let process = self.process()?;
            let is_settled = matches!(
                process.phase,
                Phase::Idle | Phase::Recording | Phase::Refused | Phase::Stuck
            );
            if is_settled && process.generation == self.file.generation() {
                return Ok(process);
            }
            if until.left().is_none() {
                bail!("the tracer does not follow: {:?}", process.phase);
            }
            pause(POLL_INTERVAL);
        }
    }

    /// Begins a window; what the process says, and how long it took to say it.
    pub(super) fn try_begin(&mut self, kinds: Kinds, graphs: GraphLevel, until: Until) -> Result<(Process, Duration)> {
        let begin = Instant::now();
        self.order(kinds, graphs)?;
        Ok((self.settle(until)?, begin.elapsed()))
    }

    /// Begins a window, which must be recorded; how long that took.
    pub(super) fn begin(&mut self, kinds: Kinds, graphs: GraphLevel, until: Until) -> Result<Duration> {
        let (process, took) = self.try_begin(kinds, graphs, until)?;
        if process.phase != Phase::Recording {
            bail!("the window is not recorded: {}", refusal(&process));
        }
        Ok(took)
    }

    /// Ends a window; how long that took.
    pub(super) fn end(&mut self, until: Until) -> Result<Duration> {
        let begin = Instant::now();
        self.file.end()?;
        let process = self.settle(until)?;
        if process.phase != Phase::Idle {
            bail!("the window does not end well: {}", refusal(&process));
        }
        Ok(begin.elapsed())
    }

    /// Counts what was written since the last time.
    pub(super) fn drain(&mut self, tally: &mut Tally) -> Result<()> {
        let drained = self.reader.drain(&mut self.bytes, |_, record| tally.add(&record))?;
        tally.nonsense += drained.nonsense;
        Ok(())
    }

    /// Has a line done, and drains until it is; its answer.
    pub(super) fn drain_while(
        &mut self,
        program: &mut Program,
        line: &str,
        tally: &mut Tally,
        until: Until,
    ) -> Result<String> {
        program.tell(line)?;
        loop {
            self.drain(tally)?;
            if let Some(answer) = program.said(until)? {
                self.drain(tally)?;
                return Ok(answer);
            }
        }
    }

    /// What was lost up to now, by the process's own account and by this reader's.
    pub(super) fn lost(&mut self) -> Result<Lost> {
        let losses = self.reader.losses(&mut self.bytes, self.slot)?;
        let losses = losses.context("the program's slot makes no sense any more")?;
        let count = |what| losses.process.count(what);
        Ok(Lost {
            overwritten: losses.overwritten,
            dropped: count(Count::Dropped),
            timeless: count(Count::RecordsTimeless),
            others: losses.records().saturating_sub(
                losses
                    .overwritten
                    .saturating_add(count(Count::Dropped))
                    .saturating_add(count(Count::RecordsTimeless)),
            ),
            buffers: count(Count::BuffersDiscarded).saturating_add(count(Count::BuffersOpen)),
        })
    }

    /// The text of a name; none where it has none.
    pub(super) fn name(&mut self, number: u32) -> Result<Option<String>> {
        let mut text = Box::new([0; MAX_NAME_BYTES]);
        let name = self.reader.name(&mut self.bytes, number, &mut text)?;
        Ok(name.map(|name| String::from_utf8_lossy(name.text).into_owned()))
    }
}

/// What was lost of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Lost {
    /// Written, and not read in time.
    pub(super) overwritten: u64,
    /// Dropped by CUPTI.
    pub(super) dropped: u64,
    /// Without their times.
    pub(super) timeless: u64,
    /// For other reasons.
    pub(super) others: u64,
    /// Buffers that were thrown away, or came too late.
    pub(super) buffers: u64,
}

/// Why a process does not record, on one line.
pub(super) fn refusal(process: &Process) -> String {
    let code = match process.result {
        0 => String::new(),
        code => format!(", CUPTI's code {code}"),
    };
    let holder = match process.reason {
        Reason::Held | Reason::OtherProfiler => format!(", by {:?}", process.holder),
        _ => String::new(),
    };
    format!("{:?}{code}{holder}", process.reason)
}
