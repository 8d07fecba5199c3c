//! What an agent does with the file: it orders windows, and drains. Orders and reads are those of
//! the product.

use std::time::{Duration, Instant, SystemTime};

use flopwatch_attach::tracer::{Error, TraceFile};
use flopwatch_trace::tracer::FileBytes;
use flopwatch_tracer_file::name::MAX_NAME_BYTES;
use flopwatch_tracer_file::process::{Count, Phase, Process, SLOTS};
use flopwatch_tracer_file::record::Record;
use flopwatch_tracer_file::wanted::{GraphLevel, Kinds, Mode, Wanted};
use flopwatch_tracer_file::{Losses, Origin, Reader, Seen};

use super::rig::{Program, Rig};

/// How long a process may take to do what it was told.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// The agent of a file.
pub(crate) struct Agent {
    file: TraceFile,
    bytes: FileBytes,
    reader: Reader<Vec<Seen>>,
}

impl Agent {
    pub(crate) fn of(rig: &Rig) -> Self {
        let begin = Instant::now();
        let file = loop {
            match TraceFile::open(&rig.trace()) {
                Ok(file) => break file,
                Err(Error::Open { .. }) if begin.elapsed() <= ANSWER_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) => panic!("{error}"),
            }
        };
        let mut bytes = FileBytes::new(file.reader().unwrap());
        let reader = bytes.reader().unwrap();
        Self { file, bytes, reader }
    }

    /// A program, and the agent of its file.
    pub(crate) fn started(rig: &Rig) -> (Program, Self) {
        (rig.start(), Self::of(rig))
    }

    /// Both, in a rig of their own.
    pub(crate) fn anew() -> (Rig, Program, Self) {
        let rig = Rig::new(1305);
        let (program, agent) = Self::started(&rig);
        (rig, program, agent)
    }

    /// Writes an order, and wakes who waits for one.
    pub(crate) fn order(&mut self, wanted: Wanted) {
        self.file.order(wanted).unwrap();
    }

    /// Wants a window of a minute, and waits until the process of slot 0 records.
    pub(crate) fn begin(&mut self, kinds: Kinds) {
        self.order(window(kinds));
        assert_eq!(self.settle(0), Phase::Recording, "{:?}", self.process(0));
    }

    /// Wants nothing, and waits until the process of slot 0 sleeps.
    pub(crate) fn end(&mut self) {
        self.file.end().unwrap();
        assert_eq!(self.settle(0), Phase::Idle, "{:?}", self.process(0));
    }

    /// Waits until a process has followed the last order, or will follow none, and gives what it
    /// does then.
    pub(crate) fn settle(&mut self, slot: usize) -> Phase {
        let generation = self.file.generation();
        let settled = |process: &Process| {
            let is_done = matches!(process.phase, Phase::Idle | Phase::Recording | Phase::Refused);
            process.phase == Phase::Stuck || (process.generation == generation && is_done)
        };
        self.wait(slot, settled).phase
    }

    /// Waits until a slot says something.
    pub(crate) fn wait(&mut self, slot: usize, is_so: impl Fn(&Process) -> bool) -> Process {
        let begin = Instant::now();
        loop {
            let process = self.reader.process(&mut self.bytes, slot).unwrap();
            match process.filter(&is_so) {
                Some(process) => return process,
                None if begin.elapsed() > ANSWER_TIMEOUT => panic!("slot {slot} says {process:?}"),
                None => std::thread::sleep(Duration::from_micros(200)),
            }
        }
    }

    pub(crate) fn process(&mut self, slot: usize) -> Process {
        self.reader.process(&mut self.bytes, slot).unwrap().unwrap()
    }

    /// The slots that have a process.
    pub(crate) fn processes(&mut self) -> Vec<Process> {
        let all = (0..SLOTS).filter_map(|slot| self.reader.process(&mut self.bytes, slot).unwrap());
        all.collect()
    }

    pub(crate) fn losses(&mut self, slot: usize) -> Losses {
        self.reader.losses(&mut self.bytes, slot).unwrap().unwrap()
    }

    /// Everything that was written since the last time.
    pub(crate) fn drain(&mut self) -> Vec<(Origin, Record)> {
        let mut found = Vec::new();
        let drained = self
            .reader
            .drain(&mut self.bytes, |origin, record| found.push((origin, record)))
            .unwrap();
        assert_eq!(drained.nonsense, 0);
        found
    }

    /// Drains a file that somebody writes rubbish to.
    pub(crate) fn drain_anything(&mut self) {
        let mut count = 0;
        let drained = self.reader.drain(&mut self.bytes, |_, _| count += 1).unwrap();
        assert_eq!(drained.records, count);
        for slot in 0..SLOTS {
            self.reader.losses(&mut self.bytes, slot).unwrap();
        }
    }

    /// What [`drain`](Self::drain) gives, without what says what something is.
    pub(crate) fn events(&mut self) -> Vec<Record> {
        let all = self.drain().into_iter().map(|(_, record)| record);
        all.filter(|record| record.times().is_some()).collect()
    }

    /// The text of a name.
    pub(crate) fn name(&mut self, number: u32) -> String {
        let mut text = Box::new([0; MAX_NAME_BYTES]);
        let found = self.reader.name(&mut self.bytes, number, &mut text).unwrap();
        String::from_utf8(found.unwrap().text.to_vec()).unwrap()
    }
}

/// A window of a minute from now on.
pub(crate) fn window(kinds: Kinds) -> Wanted {
    Wanted {
        generation: 0,
        mode: Mode::Window,
        kinds,
        graphs: GraphLevel::Whole,
        start_at_ns: 0,
        deadline_ns: now_ns() + 60_000_000_000,
    }
}

/// Real time, in ns.
pub(crate) fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_nanos()).unwrap()
}

/// What a process lost in ways that it counts.
pub(crate) fn lost(process: &Process) -> u64 {
    let of = [
        Count::Dropped,
        Count::BuffersDiscarded,
        Count::BuffersOpen,
        Count::RecordsTimeless,
        Count::RecordsMalformed,
        Count::RecordsUnplaced,
        Count::NamesUnplaced,
        Count::NamesUnread,
    ];
    of.into_iter().map(|count| process.count(count)).sum()
}
