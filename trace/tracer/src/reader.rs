//! Drains a file while it is written. Whoever writes to it is not trusted: every number is
//! checked, no loop is longer than the file, and what makes no sense is left out and counted.

use core::fmt;

use crate::bytes::{u32_at, u64_at};
use crate::header::FileKind;
use crate::name::Place;
use crate::process::{Count, Process};
use crate::record::{Record, Shape};
use crate::segment::State;
use crate::slot::{BODY_BYTES, Kind};
use crate::wanted::Wanted;
use crate::{Layout, Moment, header, name, process, segment, slot};

/// Where a file's bytes come from. They may change between two calls.
pub trait Source {
    /// Why bytes cannot be read.
    type Error;

    /// Fills `into` with the bytes from `at` on.
    ///
    /// # Errors
    ///
    /// When they cannot be read, or the file ends before.
    fn read(&mut self, at: usize, into: &mut [u8]) -> Result<(), Self::Error>;
}

/// Why a file is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadError<E> {
    /// Its bytes cannot be read.
    Source(E),
    /// It is no file of a tracer, or not one of this version.
    NotATracerFile,
    /// There are not as many [`Seen`] as segments.
    TooFewSeen,
}

// By hand: the crate is compiled into the library too, which takes no other crate.
impl<E: fmt::Display> fmt::Display for ReadError<E> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(error) => write!(to, "the tracer's file cannot be read: {error}"),
            Self::NotATracerFile => to.write_str("is no file of a CUDA tracer that is read here"),
            Self::TooFewSeen => to.write_str("the reader of the tracer's file has too little memory for its segments"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for ReadError<E> {}

impl<E> From<E> for ReadError<E> {
    fn from(error: E) -> Self {
        Self::Source(error)
    }
}

/// What a reader knows of a segment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    /// The claim that it read last.
    claim: u32,
    /// The claim that it looks for.
    awaited: u32,
    /// Slots of the claim that it has read.
    slots: usize,
    /// Whether more may come.
    is_followed: bool,
}

/// Who wrote a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The slot of the process, below [`process::SLOTS`].
    pub slot: usize,
    /// Which claim of that slot it was.
    pub serial: u32,
    /// The process as its container numbers it.
    pub pid: u32,
    /// The process's clocks when it claimed the segment.
    pub moment: Moment,
}

/// A name, as the file has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name<'a> {
    /// Its bytes, at most [`name::MAX_NAME_BYTES`]; UTF-8 where the program's is.
    pub text: &'a [u8],
    /// Whether it was longer.
    pub is_cut: bool,
}

/// What a call of [`Reader::drain`] came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drained {
    /// Records that were handed out.
    pub records: u64,
    /// Slots that made no sense and were left out.
    pub nonsense: u64,
    /// Reads that were given up, for the segment was taken meanwhile.
    pub overtaken: u64,
}

/// What a process lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Losses {
    /// Records that the process wrote and this reader did not see: it was too slow, or came late.
    pub overwritten: u64,
    /// The process, with what it counted itself.
    pub process: Process,
}

impl Losses {
    /// All records that are known to be lost. Buffers that were thrown away come on top: how many
    /// records they held is not known.
    pub fn records(&self) -> u64 {
        [
            Count::Dropped,
            Count::RecordsTimeless,
            Count::RecordsMalformed,
            Count::RecordsUnplaced,
        ]
        .into_iter()
        .fold(self.overwritten, |sum, count| {
            sum.saturating_add(self.process.count(count))
        })
    }
}

/// Slots that are read at once.
const CHUNK: usize = 128;
const CHUNK_BYTES: usize = CHUNK * slot::BYTES;
const SEGMENT_HEADER_BYTES: usize = 48;

/// Records of a process that were read.
#[derive(Debug, Clone, Copy, Default)]
struct Read {
    serial: u32,
    records: u64,
}

/// Drains a file. `S` is the memory for what it knows of segments, one [`Seen`] each.
#[derive(Debug)]
pub struct Reader<S> {
    layout: Layout,
    is_drained: bool,
    /// The turn that is looked at next.
    turn: u64,
    seen: S,
    read: [Read; process::SLOTS],
}

impl<S: AsMut<[Seen]>> Reader<S> {
    /// A reader from the oldest record on that the file has. A drained file is taken to have as
    /// many segments as `seen`.
    ///
    /// # Errors
    ///
    /// When the file is none of a tracer, or `seen` is shorter than the file has segments.
    pub fn new<F: Source>(file: &mut F, mut seen: S) -> Result<Self, ReadError<F::Error>> {
        let mut begin = [0; header::IDENTITY_BYTES];
        file.read(0, &mut begin)?;
        let kind = FileKind::of(&begin);
        let layout = match kind {
            Some(FileKind::Live { bytes }) => Layout::of(bytes),
            // Whoever knows the file's length knows how many it holds.
            Some(FileKind::Drained { bytes }) => Layout::drained(bytes, seen.as_mut().len()),
            None => None,
        };
        let layout = layout.ok_or(ReadError::NotATracerFile)?;
        if seen.as_mut().len() < layout.segments {
            return Err(ReadError::TooFewSeen);
        }
        Ok(Self {
            layout,
            is_drained: matches!(kind, Some(FileKind::Drained { .. })),
            turn: 0,
            seen,
            read: [Read::default(); process::SLOTS],
        })
    }

    /// The file's layout.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Whether the file is a drained one, whose windows are over.
    pub const fn is_drained(&self) -> bool {
        self.is_drained
    }

    /// Hands out what was written since the last call, each record once. Records of a process are
    /// in the order of CUPTI's buffers, which is not that of their times.
    ///
    /// # Errors
    ///
    /// When the file's bytes cannot be read. What was handed out until then is not handed out
    /// again.
    pub fn drain<F: Source>(
        &mut self,
        file: &mut F,
        mut each: impl FnMut(Origin, Record),
    ) -> Result<Drained, ReadError<F::Error>> {
        let cursor = word(file, header::CURSOR_AT)?;
        let segments = u64::try_from(self.layout.segments).unwrap_or(u64::MAX).max(1);
        // A cursor that runs backwards is not the library's: nothing is read twice for it.
        let first = self.turn.max(cursor.saturating_sub(segments));
        for turn in first..cursor {
            let at = usize::try_from(turn % segments).unwrap_or(0);
            if let Some(seen) = self.seen.as_mut().get_mut(at) {
                seen.awaited = segment::number_of_turn(turn);
                seen.is_followed = true;
            }
        }
        self.turn = self.turn.max(cursor);
        let mut drained = Drained::default();
        for at in 0..self.layout.segments {
            let Some(seen) = self.seen.as_mut().get_mut(at).filter(|seen| seen.is_followed) else {
                continue;
            };
            let Some(begin) = self.layout.segment(at) else { break };
            let read = &mut self.read;
            follow(file, begin, seen, &mut drained, |origin, record| {
                if let Some(own) = read.get_mut(origin.slot) {
                    if own.serial != origin.serial {
                        *own = Read {
                            serial: origin.serial,
                            records: 0,
                        };
                    }
                    own.records = own.records.saturating_add(1);
                }
                each(origin, record);
            })?;
        }
        Ok(drained)
    }

    /// What the process of a slot lost up to now; `None` for a slot without one. Drain before, or
    /// what is still in the file counts as lost.
    ///
    /// # Errors
    ///
    /// When the file's bytes cannot be read.
    pub fn losses<F: Source>(&self, file: &mut F, slot: usize) -> Result<Option<Losses>, ReadError<F::Error>> {
        let Some(process) = self.process(file, slot)? else {
            return Ok(None);
        };
        let own = self.read.get(slot).filter(|read| read.serial == process.serial);
        let read = own.map_or(0, |read| read.records);
        Ok(Some(Losses {
            overwritten: process.count(Count::Records).saturating_sub(read),
            process,
        }))
    }

    /// The process of a slot; `None` for a slot without one.
    ///
    /// # Errors
    ///
    /// When the file's bytes cannot be read.
    pub fn process<F: Source>(&self, file: &mut F, slot: usize) -> Result<Option<Process>, ReadError<F::Error>> {
        let Some(at) = self.layout.process(slot) else {
            return Ok(None);
        };
        let mut bytes = [0; process::BYTES];
        file.read(at, &mut bytes)?;
        Ok(Process::of_bytes(&bytes))
    }

    /// Processes that found no slot since the file was made: nothing of them is recorded.
    ///
    /// # Errors
    ///
    /// When the file's bytes cannot be read.
    pub fn left_out<F: Source>(&self, file: &mut F) -> Result<u64, ReadError<F::Error>> {
        Ok(word(file, header::PROCESSES_LEFT_OUT_AT)?)
    }

    /// What is wanted of the processes; `None` where that is being written, or makes no sense.
    ///
    /// # Errors
    ///
    /// When the file's bytes cannot be read.
    pub fn wanted<F: Source>(&self, file: &mut F) -> Result<Option<Wanted>, ReadError<F::Error>> {
        let mut bytes = [0; crate::wanted::BYTES];
        file.read(header::WANTED_AT, &mut bytes)?;
        Ok(Wanted::of_bytes(&bytes))
    }

    /// The name of a number; `None` for a number without a text.
    ///
    /// # Errors
    ///
    /// When the file's bytes cannot be read.
    pub fn name<'a, F: Source>(
        &self,
        file: &mut F,
        number: u32,
        into: &'a mut [u8; name::MAX_NAME_BYTES],
    ) -> Result<Option<Name<'a>>, ReadError<F::Error>> {
        let index = number.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        let Some(at) = index.and_then(|index| self.layout.name(index)) else {
            return Ok(None);
        };
        let mut entry = [0; name::BYTES];
        file.read(at, &mut entry)?;
        let place = Place::of_entry(&entry, self.layout.heap_bytes);
        let Some((place, text)) = place.and_then(|place| Some((place, into.get_mut(..place.bytes)?))) else {
            return Ok(None);
        };
        file.read(self.layout.heap_at.saturating_add(place.at), text)?;
        Ok(Some(Name {
            text,
            is_cut: place.is_cut,
        }))
    }
}

fn word<F: Source>(file: &mut F, at: usize) -> Result<u64, F::Error> {
    let mut bytes = [0; 8];
    file.read(at, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Reads what is new in a segment.
fn follow<F: Source>(
    file: &mut F,
    begin: usize,
    seen: &mut Seen,
    drained: &mut Drained,
    mut each: impl FnMut(Origin, Record),
) -> Result<(), F::Error> {
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    file.read(begin, &mut bytes)?;
    let claim = u64_at(&bytes, segment::CLAIM_AT).unwrap_or(0);
    let (number, state) = segment::of_claim(claim);
    // The state of before: what is written until it is closed is there when it says so.
    let is_over = match state {
        Some(State::Open) => false,
        Some(State::Closed) => true,
        Some(State::Taken) | None => return Ok(()),
    };
    if number != seen.claim {
        (seen.claim, seen.slots) = (number, 0);
    }
    let Some(origin) = origin(&bytes) else {
        drained.nonsense = drained.nonsense.saturating_add(1);
        seen.is_followed = false;
        return Ok(());
    };
    while seen.slots < segment::SLOTS {
        let count = CHUNK.min(segment::SLOTS - seen.slots);
        let at = begin + segment::SLOTS_AT + seen.slots * slot::BYTES;
        let mut chunk = [0; CHUNK_BYTES];
        let Some(part) = chunk.get_mut(..count * slot::BYTES) else {
            break;
        };
        file.read(at, part)?;
        let whole = whole_slots(part, number);
        if !is_over && whole > 0 {
            // A slot's tag may have come while its body was read: what was whole then is read anew.
            file.read(at, part)?;
        }
        if word(file, begin + segment::CLAIM_AT)? >> 32 != u64::from(number) {
            drained.overtaken = drained.overtaken.saturating_add(1);
            // Whoever took it is read by the next call.
            return Ok(());
        }
        let used = decode(part, whole, |record| match record {
            Some(record) => {
                drained.records = drained.records.saturating_add(1);
                each(origin, record);
            }
            None => drained.nonsense = drained.nonsense.saturating_add(1),
        });
        seen.slots += used;
        if whole < count || used == 0 {
            break;
        }
    }
    // One that another claim is awaited of is not over with this one.
    let has_come = seen.claim.wrapping_sub(seen.awaited) < u32::MAX / 2;
    seen.is_followed = !(has_come && (is_over || seen.slots >= segment::SLOTS));
    Ok(())
}

/// Who writes a segment; `None` where that makes no sense.
fn origin(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> Option<Origin> {
    let slot = usize::try_from(u32_at(bytes, segment::PROCESS_AT)?).ok()?;
    (slot < process::SLOTS).then_some(Origin {
        slot,
        serial: u32_at(bytes, segment::SERIAL_AT)?,
        pid: u32_at(bytes, segment::PID_AT)?,
        moment: Moment {
            cupti_ns: u64_at(bytes, segment::CUPTI_NS_AT)?,
            monotonic_ns: u64_at(bytes, segment::MONOTONIC_NS_AT)?,
            realtime_ns: u64_at(bytes, segment::REALTIME_NS_AT)?,
        },
    })
}

/// How many slots from the first on have the tag of a claim.
fn whole_slots(chunk: &[u8], claim: u32) -> usize {
    chunk
        .chunks_exact(slot::BYTES)
        .take_while(|bytes| u32_at(bytes, slot::TAG_AT + 4) == Some(claim))
        .count()
}

/// Hands out the records of the first slots, `None` for one that makes no sense, and gives how many
/// slots that were. A shape waits for its kernel.
fn decode(chunk: &[u8], whole: usize, mut each: impl FnMut(Option<Record>)) -> usize {
    let (mut used, mut shape) = (0, None);
    for (at, bytes) in chunk.chunks_exact(slot::BYTES).take(whole).enumerate() {
        let kind = u64_at(bytes, slot::TAG_AT).and_then(|tag| slot::of_tag(tag).1);
        let body = bytes.first_chunk::<BODY_BYTES>();
        let (Some(kind), Some(body)) = (kind, body) else {
            (used, shape) = (at + 1, None);
            each(None);
            continue;
        };
        if kind == Kind::Shape {
            if shape.replace(Shape::of_slot(body)).is_some() {
                used = at;
                each(None);
            }
            continue;
        }
        used = at + 1;
        each(Record::of_slot(kind, body, shape.take()));
    }
    used
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
