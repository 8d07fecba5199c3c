//! One event after the other, from its message to a row of its table.
//!
//! What an event is, is told by the number of the message in it and, of calls, by their class: the
//! type that it names was given another meaning by later versions. Messages lie three deep; nothing
//! here goes deeper.

use super::super::chains::{Chain, Frame};
use super::ReportError;
use super::chunks::Chunk;
use super::counters::Counters;
use super::events::{self, Part, Place, Room};
use super::layout::{self, Fields};
use super::unread::Unread;
use crate::wire::{Damage, Message};

/// Columns of a table, at the most.
const WIDEST: usize = 32;

/// What an event with these numbers of messages is.
const OF_DEVICE: u64 = 107;
const CALL: u64 = 108;
const RANGE: u64 = 102;
const SAMPLE: u64 = 104;
const SCHEDULING: u64 = 106;
const PROCESS: u64 = 113;
const USAGE: u64 = 123;
/// Mappings of memory, messages of the profiler, and what it says of itself.
const NO_EVENTS: [u64; 3] = [109, 110, 117];

/// Columns of an event's call that tell what it is.
const CLASS_FIELD: u64 = 6;

/// Writes the events of a chunk to a part.
#[derive(Debug)]
pub(super) struct Decoder<'a> {
    counters: &'a Counters<'a>,
    room: &'a Room<'a>,
    part: &'a mut Part,
    /// The stack of the sample at hand.
    chain: Chain,
}

/// Why an event could not be decoded.
enum Fault {
    Damaged,
    TooMany(ReportError),
}

impl From<Damage> for Fault {
    fn from(_: Damage) -> Self {
        Self::Damaged
    }
}

impl<'a> Decoder<'a> {
    pub(super) fn new(counters: &'a Counters<'a>, room: &'a Room<'a>, part: &'a mut Part) -> Self {
        Self {
            counters,
            room,
            part,
            chain: Chain::default(),
        }
    }

    /// Decodes the events of `chunk`, whose message is at hand.
    pub(super) fn chunk(&mut self, chunk: Chunk, message: Message<'_>) -> Result<(), ReportError> {
        self.entries(message).map_err(|fault| match fault {
            Fault::Damaged => chunk.damaged("holds a damaged event"),
            Fault::TooMany(error) => error,
        })
    }

    fn entries(&mut self, message: Message<'_>) -> Result<(), Fault> {
        for field in message.fields() {
            let (number, value) = field?;
            match (number, value.message()) {
                (1, Some(event)) => {
                    self.part.events += 1;
                    self.event(event)?;
                }
                (2, Some(event)) => {
                    self.part.generic += 1;
                    self.generic(event)?;
                }
                (number, _) => self.part.unread.add(Unread::Entry(number)),
            }
            self.room.count(self.part, false).map_err(Fault::TooMany)?;
        }
        Ok(())
    }

    fn event(&mut self, event: Message<'_>) -> Result<(), Damage> {
        let mut found = None;
        for field in event.fields() {
            let (number, value) = field?;
            if number >= 100
                && let Some(body) = value.message()
            {
                found = Some((number, body));
            }
        }
        match found {
            Some((OF_DEVICE, body)) => self.of_device(body)?,
            Some((CALL, body)) => self.call(body)?,
            Some((RANGE, body)) => self.range(body)?,
            Some((SAMPLE, body)) => self.sample(body)?,
            Some((SCHEDULING, _)) => self.unread(Unread::Table("SCHED_EVENTS")),
            Some((PROCESS, body)) => self.process(body)?,
            Some((USAGE, body)) => self.plain(events::USAGES, &layout::USAGE, body)?,
            Some((number, _)) if NO_EVENTS.contains(&number) => {}
            Some((number, _)) => self.unread(Unread::Body(number)),
            None => self.unread(Unread::Body(0)),
        }
        Ok(())
    }

    fn unread(&mut self, what: Unread) {
        self.part.unread.add(what);
    }

    /// An event of one message.
    fn plain(&mut self, table: Place, fields: &Fields, body: Message<'_>) -> Result<(), Damage> {
        let mut row = [0; WIDEST];
        fields.fill(body, &mut row)?;
        self.part
            .push(table, row.get(..fields.count()).unwrap_or_default(), &[]);
        Ok(())
    }

    /// Work on a device: what all of it has, and a message of its own.
    fn of_device(&mut self, body: Message<'_>) -> Result<(), Damage> {
        let mut row = [0; WIDEST];
        let mut found = None;
        for field in body.fields() {
            let (number, value) = field?;
            if number < 100 {
                layout::ON_DEVICE.set(number, value, &mut row);
            } else if let Some(own) = value.message() {
                found = Some((number, own));
            }
        }
        let (table, fields, own) = match found {
            Some((101, own)) => (events::KERNELS, &layout::KERNEL, own),
            Some((102, own)) => (events::COPIES, &layout::MEMCPY, own),
            Some((103, own)) => (events::SETS, &layout::MEMSET, own),
            Some((105, own)) => (events::SYNCS, &layout::SYNC, own),
            Some((106, own)) => (events::RECORDS, &layout::RECORD, own),
            Some((107, own)) => (events::GRAPHS, &layout::GRAPH, own),
            other => {
                let number = other.map_or(0, |(number, _)| number);
                self.unread(Unread::Work(number));
                return Ok(());
            }
        };
        let (common, behind) = row.split_at_mut(layout::ON_DEVICE.count());
        let count = common.len().saturating_add(fields.count());
        fields.fill(own, behind)?;
        self.part.push(table, row.get(..count).unwrap_or_default(), &[]);
        Ok(())
    }

    /// Calls of the CUDA API and of the operating system, and what the profiler did itself.
    fn call(&mut self, body: Message<'_>) -> Result<(), Damage> {
        let mut row = [0; WIDEST];
        let mut class = 0;
        for field in body.fields() {
            let (number, value) = field?;
            if number == CLASS_FIELD {
                class = value.number().unwrap_or(0);
            }
            layout::CALL.set(number, value, &mut row);
        }
        let row = row.get(..layout::CALL.count()).unwrap_or_default();
        match class {
            0 | 1 => self.part.push(events::CALLS, row, &[]),
            // Calls, and marks of when recording them began and ended.
            27 | 31 | 32 => self.part.push(events::OS_CALLS, row, &[]),
            // Marks of when recording something else began and ended.
            6..=11 => {}
            3 => self.unread(Unread::Table("PROFILER_OVERHEAD")),
            103 => self.unread(Unread::Table("CUPTI_ACTIVITY_KIND_OVERHEAD")),
            class => self.unread(Unread::Class(class)),
        }
        Ok(())
    }

    /// Ranges of NVTX, marks, and what describes them. Payloads are passed over.
    fn range(&mut self, body: Message<'_>) -> Result<(), Damage> {
        let mut row = [0; WIDEST];
        let mut text = &[][..];
        for field in body.fields() {
            let (number, value) = field?;
            match number {
                7 => text = value.bytes().unwrap_or_default(),
                number => layout::RANGE.set(number, value, &mut row),
            }
        }
        let row = row.get(..layout::RANGE.count()).unwrap_or_default();
        self.part.push(events::RANGES, row, &[text]);
        Ok(())
    }

    /// A sample of the CPU, with the frames 4 of its stack, the innermost first.
    fn sample(&mut self, body: Message<'_>) -> Result<(), Damage> {
        let mut row = [0; 2];
        self.chain.clear();
        for field in body.fields() {
            let (number, value) = field?;
            match (number, value.message()) {
                (4, Some(frame)) => self.chain.push(frame_of(frame)?),
                (number, _) => layout::CPU_SAMPLE.set(number, value, &mut row),
            }
        }
        self.part.push_sample(row, &self.chain);
        Ok(())
    }

    /// A process: its name 6, or else its command 5. Arguments 9 and environments 10 and 13 are
    /// passed over.
    fn process(&mut self, body: Message<'_>) -> Result<(), Damage> {
        let mut row = [0; WIDEST];
        let (mut name, mut command) = (&[][..], &[][..]);
        for field in body.fields() {
            let (number, value) = field?;
            match number {
                6 => name = value.bytes().unwrap_or_default(),
                5 => command = value.bytes().unwrap_or_default(),
                number => layout::PROCESS.set(number, value, &mut row),
            }
        }
        let name = if name.is_empty() { command } else { name };
        // Either may hold a whole command line.
        let end = name.iter().position(u8::is_ascii_whitespace).unwrap_or(name.len());
        let program = name.get(..end).unwrap_or_default();
        if !name.is_empty() {
            let row = row.get(..layout::PROCESS.count()).unwrap_or_default();
            self.part.push(events::PROCESSES, row, &[program]);
        }
        Ok(())
    }

    /// An event of a type 1, at a time 2, with data 3.
    fn generic(&mut self, event: Message<'_>) -> Result<(), Fault> {
        let (mut kind, mut time, mut data) = (0, 0, &[][..]);
        for field in event.fields() {
            let (number, value) = field?;
            match number {
                1 => kind = value.number().unwrap_or(0),
                2 => time = value.number().unwrap_or(0),
                3 => data = value.bytes().unwrap_or_default(),
                _ => {}
            }
        }
        let Some(fields) = self.counters.fields(kind) else {
            self.unread(Unread::Table("GENERIC_EVENTS"));
            return Ok(());
        };
        // Fields do not overlap: there are no more of them than bytes.
        if fields.len() > data.len() {
            self.unread(Unread::Values);
            return Ok(());
        }
        for (metric, field) in (0_u64..).zip(fields) {
            match field.value(data) {
                Some(value) => self.part.push(events::SAMPLES, &[time, kind, metric, value], &[]),
                None => self.unread(Unread::Values),
            }
        }
        Ok(())
    }
}

/// A frame of a stack: its name 1, what it is in 2, and whether the name was not found 6. Its
/// address 8 is passed over.
fn frame_of(message: Message<'_>) -> Result<Frame, Damage> {
    let (mut symbol, mut module, mut unresolved) = (0, 0, 0);
    for field in message.fields() {
        let (number, value) = field?;
        let slot = match number {
            1 => &mut symbol,
            2 => &mut module,
            6 => &mut unresolved,
            _ => continue,
        };
        *slot = value.number().unwrap_or(0);
    }
    Ok(Frame {
        symbol: (unresolved == 0).then_some(symbol),
        module,
    })
}
