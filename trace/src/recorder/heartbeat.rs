//! The heartbeat: how often and how long the ranges of each name ran, read again and again from a
//! file that programs write to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use flopwatch_ring::header::CURSOR_AT;
use flopwatch_ring::name::{CALLS_AT, HASH_AT, LAST_AT, LENGTH_AT, TICKS_AT};
use flopwatch_ring::segment::{
    self, CLAIM_AT, COUNTER_BYTES, COUNTERS, COUNTERS_AT, LATER_MONOTONIC_AT, LATER_REALTIME_AT, LATER_TICKS_AT,
    SLOTS_AT, State,
};
use flopwatch_ring::{HEADER_BYTES, Layout, name};

use super::clock::{Anchor, Clock};
use super::names::{of_entry, publishable, whole};
use super::{Failure, half, header, word};

/// Most names whose entries are read one by one.
const MAX_SINGLE_READS: usize = 64;
/// Times that a file is read whose programs went on to other segments meanwhile.
const MAX_ATTEMPTS: u32 = 3;

/// Push/pop ranges of one name that have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedRanges {
    /// The name, without its domain, fit to be published.
    pub name: String,
    /// Number of ranges of the name.
    pub calls: u64,
    /// How long they took together in ns.
    pub total_ns: u64,
    /// When the last of them ended, in ns since the Unix epoch; none where the file's clock does
    /// not tell.
    pub last_utc_ns: Option<u64>,
}

/// What is counted of a name, in ticks.
#[derive(Debug, Clone, Copy, Default)]
struct NameTicks {
    calls: u64,
    ticks: u64,
    /// The end of the last range.
    last: u64,
}

/// Which entries of the table of names a reading looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it: half a megabyte of a file of the usual size.
    Whole,
    /// Those of names that are known: another name is heard of with the next whole reading.
    Known,
}

/// What has been read of a file so far.
///
/// The first reading looks at every segment, each later one at the table of names and at the
/// segments that threads hold or have taken since. Numbers never go back: a count that moves from a
/// segment to the table while it is read is missing at most until the next reading.
#[derive(Debug)]
pub struct Heartbeat {
    layout: Layout,
    ticks_are_tsc: bool,
    made: Anchor,
    /// The latest moment on all clocks that a segment told.
    latest: Option<Anchor>,
    /// Segments that threads had looked at: before the last reading, and the one before that.
    cursors: [u64; 2],
    /// Segments that were not left for good.
    held: BTreeSet<usize>,
    /// What is known of each name by its number.
    counted: BTreeMap<u16, NameTicks>,
    names: BTreeMap<u16, String>,
}

impl Heartbeat {
    /// Of a file that is held open; nothing is counted yet.
    pub fn open(file: &File) -> Result<Self, Failure> {
        let mut begin = [0; HEADER_BYTES];
        let read = file.read_exact_at(&mut begin, 0);
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Failure::NotARing("it ends within its header"),
            _ => Failure::Open(error),
        })?;
        let header = header(&begin)?;
        Ok(Self {
            layout: header.layout,
            ticks_are_tsc: header.ticks_are_tsc,
            made: header.made,
            latest: None,
            cursors: [0; 2],
            held: BTreeSet::new(),
            counted: BTreeMap::new(),
            names: BTreeMap::new(),
        })
    }

    /// What has been counted since the file was made, by name.
    pub fn read(&mut self, file: &File, extent: Extent) -> Result<Vec<NamedRanges>, Failure> {
        let known = extent == Extent::Known && self.names.len() <= MAX_SINGLE_READS;
        for _ in 0..MAX_ATTEMPTS {
            let cursor = cursor(file)?;
            let mut sums = if known { self.entries(file)? } else { self.table(file)? };
            self.segments(file, cursor, &mut sums)?;
            for (number, found) in sums {
                let known = self.counted.entry(number).or_default();
                // The time of an end is that of the range that was counted last.
                if found.calls >= known.calls {
                    let ticks = known.ticks.max(found.ticks);
                    *known = NameTicks { ticks, ..found };
                }
            }
            if self::cursor(file)? == cursor {
                break;
            }
        }
        let anchors: Vec<Anchor> = self.latest.into_iter().collect();
        let clock = Clock::new(self.ticks_are_tsc, self.made, &anchors);
        let named = self.counted.iter().filter_map(|(number, counted)| {
            (counted.calls > 0).then_some(NamedRanges {
                name: self.names.get(number)?.clone(),
                calls: counted.calls,
                total_ns: clock.length_ns(counted.ticks),
                last_utc_ns: clock.utc_ns(counted.last),
            })
        });
        Ok(named.collect())
    }

    /// What the table of names has, with the texts that are not known yet.
    fn table(&mut self, file: &File) -> Result<BTreeMap<u16, NameTicks>, Failure> {
        let mut bytes = vec![0; self.layout.names * name::BYTES];
        let length = read_at(file, &mut bytes, self.layout.names_at)?;
        let mut sums = BTreeMap::new();
        let entries = bytes.get(..length).unwrap_or_default().chunks_exact(name::BYTES);
        for (number, entry) in (1..=u16::MAX).zip(entries) {
            // Its text is there once its length is.
            if word(entry, HASH_AT) == 0 || half(entry, LENGTH_AT) == 0 {
                continue;
            }
            sums.insert(number, of_table(entry));
            self.names
                .entry(number)
                .or_insert_with(|| publishable(whole(of_entry(entry).0)).0);
        }
        Ok(sums)
    }

    /// What the table has of the names that are known.
    fn entries(&self, file: &File) -> Result<BTreeMap<u16, NameTicks>, Failure> {
        let mut sums = BTreeMap::new();
        let mut entry = [0; name::BYTES];
        for number in self.names.keys() {
            let offset = usize::from(*number).saturating_sub(1) * name::BYTES;
            if read_at(file, &mut entry, self.layout.names_at.saturating_add(offset))? == entry.len() {
                sums.insert(*number, of_table(&entry));
            }
        }
        Ok(sums)
    }

    /// Adds what segments hold that may hold anything.
    fn segments(&mut self, file: &File, cursor: u64, sums: &mut BTreeMap<u16, NameTicks>) -> Result<(), Failure> {
        let segments = u64::try_from(self.layout.segments).unwrap_or(u64::MAX).max(1);
        // Whoever moved the cursor takes its segment a moment later: those of the last time are
        // looked at once more.
        let [last, before] = self.cursors;
        let from = before.min(last).min(cursor).max(cursor.saturating_sub(segments));
        self.held
            .extend((from..cursor).filter_map(|claim| usize::try_from(claim % segments).ok()));
        self.cursors = [cursor, last];
        let mut bytes = [0; SLOTS_AT];
        let mut left = Vec::new();
        for at in &self.held {
            let Some(offset) = self.layout.segment(*at) else {
                continue;
            };
            // A file that ends early has no more.
            if read_at(file, &mut bytes, offset)? < bytes.len() {
                left.push(*at);
                continue;
            }
            let state = State::of(u32::try_from(word(&bytes, CLAIM_AT) & 0xffff_ffff).unwrap_or(0));
            if !matches!(state, Some(State::Open | State::Passed | State::Taken)) {
                left.push(*at);
            }
            for [ticks, monotonic_ns, realtime_ns] in [
                [segment::TICKS_AT, segment::MONOTONIC_AT, segment::REALTIME_AT],
                [LATER_TICKS_AT, LATER_MONOTONIC_AT, LATER_REALTIME_AT],
            ] {
                let anchor = Anchor {
                    ticks: word(&bytes, ticks),
                    monotonic_ns: word(&bytes, monotonic_ns),
                    realtime_ns: word(&bytes, realtime_ns),
                };
                if self.latest.is_none_or(|latest| latest.ticks < anchor.ticks) && anchor.ticks != 0 {
                    self.latest = Some(anchor);
                }
            }
            // A segment that was left has added its own to the table, and holds zeros.
            let counters = bytes.get(COUNTERS_AT..).unwrap_or_default().chunks_exact(COUNTER_BYTES);
            for counter in counters.take(COUNTERS) {
                let number = u16::try_from(half(counter, 0)).unwrap_or(0);
                if number != 0 {
                    let sum: &mut NameTicks = sums.entry(number).or_default();
                    sum.calls = sum.calls.saturating_add(u64::from(half(counter, 4)));
                    sum.ticks = sum.ticks.saturating_add(word(counter, 8));
                    sum.last = sum.last.max(word(counter, 16));
                }
            }
        }
        for at in left {
            self.held.remove(&at);
        }
        Ok(())
    }
}

/// What an entry of the table of names holds.
fn of_table(entry: &[u8]) -> NameTicks {
    NameTicks {
        calls: word(entry, CALLS_AT),
        ticks: word(entry, TICKS_AT),
        last: word(entry, LAST_AT),
    }
}

fn cursor(file: &File) -> Result<u64, Failure> {
    let mut cursor = [0; 8];
    let read = read_at(file, &mut cursor, CURSOR_AT)?;
    if read < cursor.len() {
        return Err(Failure::NotARing("it ends within its header"));
    }
    Ok(u64::from_le_bytes(cursor))
}

/// Reads from a place until the buffer is full or the file ends.
fn read_at(file: &File, mut buffer: &mut [u8], offset: usize) -> Result<usize, Failure> {
    let mut at = u64::try_from(offset).unwrap_or(u64::MAX);
    let mut all = 0;
    while !buffer.is_empty() {
        match file.read_at(buffer, at) {
            Ok(0) => break,
            Ok(read) => {
                buffer = buffer.get_mut(read..).unwrap_or_default();
                at = at.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
                all += read;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::Open(error)),
        }
    }
    Ok(all)
}
