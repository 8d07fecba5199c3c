//! Keeps the records of a window in a drained file, while programs write the tracer's file: so the
//! file bounds no window, and what was drained is read by a child, as every foreign file.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use flopwatch_model::count;
use flopwatch_tracer_file::header::{CURSOR_AT, HEAP_USED_AT, PROCESSES_LEFT_OUT_AT, drained_identity};
use flopwatch_tracer_file::name::MAX_NAME_BYTES;
use flopwatch_tracer_file::process::{
    BYTES, Count, HELD_AT, HOLDER_AT, PHASE_AT, Process, REASON_AT, RESULT_AT, SLOTS,
};
use flopwatch_tracer_file::record::Record;
use flopwatch_tracer_file::segment as layout_of_segment;
use flopwatch_tracer_file::{
    Drained, HEADER_BYTES, Layout, Losses, MAX_DRAINED_SEGMENTS, NAMES_AT, Origin, Reader, Seen, Source as _,
};

use super::segment::{Segment, put};
use super::tally::{Counting, Tally, published_name};
use super::{Failure, FileBytes};
use crate::limits::ReadLimits;

/// Bytes of names that are copied at once.
const CHUNK_BYTES: usize = 1 << 20;

/// A tracer's file that is drained into another.
pub struct Drain {
    file: FileBytes,
    reader: Reader<Vec<Seen>>,
    packer: Packer,
    /// The process of each slot before the window.
    before: Vec<Option<Process>>,
    extent: Extent,
}

/// What of the file is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// A window, from its begin on.
    Window,
    /// What the file still holds of a time that is past.
    Recent {
        /// Whether the programs have ended.
        have_ended: bool,
    },
}

impl Drain {
    /// Drains `file` into `to`, which is empty, from now on: what the file holds already is left
    /// out. No more records are kept than `limits` let a reader have.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is none of a tracer.
    pub fn new(file: File, to: File, limits: &ReadLimits) -> Result<Self, Failure> {
        let mut file = FileBytes::new(file);
        let mut reader = live_reader(&mut file)?;
        reader.drain(&mut file, |_, _| {})?;
        let mut before = Vec::with_capacity(SLOTS);
        for slot in 0..SLOTS {
            before.push(reader.process(&mut file, slot)?);
        }
        Ok(Self {
            packer: Packer::new(to, &reader, limits, 0),
            file,
            reader,
            before,
            extent: Extent::Window,
        })
    }

    /// Goes on with a window that another has drained before, of which nothing is left but what the
    /// file holds: drains `file` into `to`, which is empty, from its oldest record on that ran at
    /// `since_utc_ns` or later. What has no time, such as the name of a device, is kept. `before`
    /// are the processes of all slots before the window, by which its records are counted.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is none of a tracer.
    pub fn resume(
        file: File,
        to: File,
        limits: &ReadLimits,
        before: Vec<Option<Process>>,
        since_utc_ns: u64,
    ) -> Result<Self, Failure> {
        let mut file = FileBytes::new(file);
        let reader = live_reader(&mut file)?;
        Ok(Self {
            packer: Packer::new(to, &reader, limits, since_utc_ns),
            file,
            reader,
            before,
            extent: Extent::Window,
        })
    }

    /// Takes what `file` still holds of what ran at `since_utc_ns` or later into `to`, which is
    /// empty, and completes that. What has no time, such as the name of a device, is kept. Programs
    /// go on writing, unless they `have_ended`. Gives how many records were kept.
    ///
    /// Of a process of which the file reaches back beyond that time, nothing counts as lost that
    /// the file no longer holds; of any other, all that it wrote before.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is none of a tracer, or what is taken cannot be written.
    pub fn recent(
        file: File,
        to: File,
        limits: &ReadLimits,
        since_utc_ns: u64,
        have_ended: bool,
    ) -> Result<u64, Failure> {
        let mut drain = Self {
            extent: Extent::Recent { have_ended },
            ..Self::resume(file, to, limits, vec![None; SLOTS], since_utc_ns)?
        };
        drain.drain()?;
        let records = drain.records();
        drain.finish(&BTreeMap::new(), |_| true)?;
        Ok(records)
    }

    /// Takes what was written since the last time. To be called so often that the file never goes
    /// round between two calls; what it did is counted.
    ///
    /// # Errors
    ///
    /// When the file cannot be read any more, or what is drained cannot be written.
    pub fn drain(&mut self) -> Result<Drained, Failure> {
        let packer = &mut self.packer;
        let drained = self
            .reader
            .drain(&mut self.file, |origin, record| packer.add(&origin, &record))?;
        packer.failure.take().map_or(Ok(drained), Err)
    }

    /// Records that are kept.
    pub const fn records(&self) -> u64 {
        self.packer.records
    }

    /// What is kept so far, and the kernels that came since the last tally.
    ///
    /// # Errors
    ///
    /// When the file cannot be read any more.
    pub fn tally(&mut self) -> Result<Tally, Failure> {
        let (reader, file) = (&self.reader, &mut self.file);
        let mut text = Box::new([0; MAX_NAME_BYTES]);
        self.packer.counting.tally(|number| {
            let name = reader.name(file, number, &mut text)?;
            Ok(published_name(name))
        })
    }

    /// Whether no more records are kept.
    pub fn is_full(&self) -> bool {
        self.packer.is_full()
    }

    /// The processes of all slots, as they are now, with the numbers of their slots.
    ///
    /// # Errors
    ///
    /// When the file cannot be read any more.
    pub fn processes(&mut self) -> Result<Vec<(usize, Process)>, Failure> {
        let mut all = Vec::new();
        for slot in 0..SLOTS {
            let process = self.reader.process(&mut self.file, slot)?;
            all.extend(process.map(|process| (slot, process)));
        }
        Ok(all)
    }

    /// Completes the drained file: what is left in the segments, the processes that `took_part` or
    /// of which there are records, counted from the begin on, and all names. The end of a window
    /// takes the reason from a process that has `refused`; it is kept, by its slot. Gives how many
    /// records these processes wrote, by their own count.
    ///
    /// # Errors
    ///
    /// When the file cannot be read any more, or what is drained cannot be written.
    pub fn finish(
        mut self,
        refused: &BTreeMap<usize, Process>,
        took_part: impl Fn(&Process) -> bool,
    ) -> Result<u64, Failure> {
        let layout = *self.reader.layout();
        self.packer.close()?;
        let to = &self.packer.to;
        let length = offset(layout.segments_at)
            .saturating_add(self.packer.segments.saturating_mul(offset(layout_of_segment::BYTES)));
        to.set_len(length).map_err(Failure::Write)?;
        let write = |at: usize, bytes: &[u8]| to.write_all_at(bytes, offset(at)).map_err(Failure::Write);

        let mut front = vec![0; HEADER_BYTES];
        put(&mut front, 0, &drained_identity(offset(layout.bytes)));
        put(&mut front, CURSOR_AT, &self.packer.segments.to_le_bytes());
        for at in [HEAP_USED_AT, PROCESSES_LEFT_OUT_AT] {
            let mut word = [0; 8];
            self.file.read(at, &mut word).map_err(Failure::of_read)?;
            put(&mut front, at, &word);
        }
        write(0, &front)?;

        let mut written: u64 = 0;
        for (slot, before) in self.before.iter().enumerate() {
            let Some(at) = layout.process(slot) else { break };
            let mut bytes = [0; BYTES];
            self.file.read(at, &mut bytes).map_err(Failure::of_read)?;
            let Some(now) = Process::of_bytes(&bytes) else { continue };
            let before = before.filter(|before| before.serial == now.serial);
            let since = |what: Count| {
                let earlier = before.map_or(0, |before| before.count(what));
                now.count(what).saturating_sub(earlier)
            };
            if !took_part(&now) && since(Count::Records) == 0 {
                continue;
            }
            written = written.saturating_add(since(Count::Records));
            for what in Count::ALL {
                put(&mut bytes, what.at(), &since(what).to_le_bytes());
            }
            if let Extent::Recent { have_ended } = self.extent {
                let losses = self.reader.losses(&mut self.file, slot)?;
                if let Some(kept) = losses.and_then(|losses| self.packer.kept_of(slot, &losses)) {
                    put(&mut bytes, Count::Records.at(), &kept.to_le_bytes());
                }
                if !have_ended {
                    // These are not lost: they come when they are complete.
                    put(&mut bytes, HELD_AT, &0_u64.to_le_bytes());
                }
            }
            if let Some(refused) = refused.get(&slot).filter(|refused| refused.serial == now.serial) {
                put(&mut bytes, PHASE_AT, &refused.phase.bits().to_le_bytes());
                put(&mut bytes, REASON_AT, &refused.reason.bits().to_le_bytes());
                put(&mut bytes, RESULT_AT, &refused.result.to_le_bytes());
                put(&mut bytes, HOLDER_AT, &refused.holder.bits().to_le_bytes());
            }
            write(at, &bytes)?;
        }
        self.copy_names(&layout)?;
        Ok(written)
    }

    /// Copies the table of names and their heap.
    fn copy_names(&mut self, layout: &Layout) -> Result<(), Failure> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut at = NAMES_AT;
        while at < layout.segments_at {
            let length = CHUNK_BYTES.min(layout.segments_at - at);
            let Some(part) = chunk.get_mut(..length) else { break };
            self.file.read(at, part).map_err(Failure::of_read)?;
            self.packer.to.write_all_at(part, offset(at)).map_err(Failure::Write)?;
            at += length;
        }
        Ok(())
    }
}

/// A reader of a file that programs write to.
fn live_reader(file: &mut FileBytes) -> Result<Reader<Vec<Seen>>, Failure> {
    let reader = file.reader()?;
    if reader.is_drained() {
        return Err(Failure::NotATrace);
    }
    Ok(reader)
}

/// A place in a file. Every supported target has at most 64 bits of address space.
fn offset(at: usize) -> u64 {
    count(at)
}

/// Packs records into segments of the drained file.
struct Packer {
    to: File,
    segments_at: usize,
    /// The segment that is filled, by the slot of its process.
    open: BTreeMap<usize, Segment>,
    /// Segments that are begun.
    segments: u64,
    records: u64,
    most: u64,
    /// What ended before is left out, ns since the Unix epoch.
    since_utc_ns: u64,
    counting: Counting,
    /// What was left out so, by the slot of its process.
    earlier: BTreeMap<usize, Earlier>,
    failure: Option<Failure>,
}

/// Records of a process that are of an earlier time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Earlier {
    /// Which claim of its slot the process is.
    serial: u32,
    records: u64,
}

impl Packer {
    fn new(to: File, reader: &Reader<Vec<Seen>>, limits: &ReadLimits, since_utc_ns: u64) -> Self {
        Self {
            to,
            segments_at: reader.layout().segments_at,
            open: BTreeMap::new(),
            segments: 0,
            records: 0,
            most: limits.max_events,
            since_utc_ns,
            counting: Counting::default(),
            earlier: BTreeMap::new(),
            failure: None,
        }
    }

    /// Whether a reader would take no more: records, or segments. A file in which each record is of
    /// another program has a segment for each.
    fn is_full(&self) -> bool {
        self.records >= self.most || self.segments >= offset(MAX_DRAINED_SEGMENTS)
    }

    /// Whether a record is of a time before the window.
    fn is_earlier(&self, origin: &Origin, record: &Record) -> bool {
        let end = record.times().and_then(|(_, end)| origin.moment.realtime_of(end));
        end.is_some_and(|end| end < self.since_utc_ns)
    }

    /// Counts a record of a time before the window.
    fn leave_out(&mut self, origin: &Origin) {
        let serial = origin.serial;
        let earlier = self.earlier.entry(origin.slot);
        let earlier = earlier.or_insert(Earlier { serial, records: 0 });
        if earlier.serial != serial {
            *earlier = Earlier { serial, records: 0 };
        }
        earlier.records = earlier.records.saturating_add(1);
    }

    /// How many records of a process were read and not left out, where some of an earlier time
    /// were: nothing is gone between them.
    fn kept_of(&self, slot: usize, losses: &Losses) -> Option<u64> {
        let process = &losses.process;
        let earlier = self.earlier.get(&slot);
        let earlier = earlier.filter(|earlier| earlier.serial == process.serial)?;
        let read = process.count(Count::Records).saturating_sub(losses.overwritten);
        Some(read.saturating_sub(earlier.records))
    }

    fn add(&mut self, origin: &Origin, record: &Record) {
        if self.failure.is_some() || self.is_full() {
            return;
        }
        if self.is_earlier(origin, record) {
            self.leave_out(origin);
            return;
        }
        let (shape, last) = record.slots();
        // A kernel stands in one segment with its shape.
        let needed = if shape.is_some() { 2 } else { 1 };
        let current = self.open.get(&origin.slot);
        let has_room = current.is_some_and(|segment| segment.has_room(origin.serial, needed));
        if !has_room {
            let next = Segment::new(self.segments, origin);
            self.segments = self.segments.saturating_add(1);
            if let Some(full) = self.open.insert(origin.slot, next)
                && let Err(failure) = self.write(&full)
            {
                self.failure = Some(failure);
                return;
            }
        }
        if let Some(segment) = self.open.get_mut(&origin.slot) {
            for (kind, body) in shape.into_iter().chain([last]) {
                segment.push(kind, &body);
            }
            self.records = self.records.saturating_add(1);
            self.counting.add(record);
        }
    }

    fn write(&self, segment: &Segment) -> Result<(), Failure> {
        let before = segment.turn.saturating_mul(offset(layout_of_segment::BYTES));
        let at = offset(self.segments_at).saturating_add(before);
        self.to.write_all_at(segment.bytes(), at).map_err(Failure::Write)
    }

    /// Writes the segments that are not full.
    fn close(&mut self) -> Result<(), Failure> {
        let open = std::mem::take(&mut self.open);
        open.values().try_for_each(|segment| self.write(segment))
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_model::Category;
    use flopwatch_tracer_file::header::identity;
    use flopwatch_tracer_file::record::MemorySet;
    use flopwatch_tracer_file::{LEAST_BYTES, Moment};

    use super::*;

    #[test]
    fn no_more_segments_are_kept_than_a_reader_takes() {
        let most = offset(MAX_DRAINED_SEGMENTS);
        let mut packer = Packer {
            to: tempfile::tempfile().unwrap(),
            segments_at: 0,
            open: BTreeMap::new(),
            segments: most - 1,
            records: 0,
            most: u64::MAX,
            since_utc_ns: 0,
            counting: Counting::default(),
            earlier: BTreeMap::new(),
            failure: None,
        };
        for serial in 1..=3 {
            let origin = Origin {
                slot: 0,
                serial,
                pid: 7,
                moment: Moment::default(),
            };
            packer.add(&origin, &Record::Set(MemorySet::default()));
        }
        assert!(packer.is_full());
        assert_eq!((packer.records, packer.segments), (1, most));
        let tally = packer.counting.tally(|_| Ok(String::new())).unwrap();
        assert_eq!(tally.events, BTreeMap::from([(Category::CudaMemset, 1)]));
    }

    #[test]
    fn a_file_that_is_cut_while_it_is_drained_is_an_error_and_ends_nobody() {
        let file = tempfile::tempfile().unwrap();
        let bytes = offset(LEAST_BYTES);
        file.set_len(bytes).unwrap();
        file.write_all_at(&identity(bytes), 0).unwrap();
        let cut = file.try_clone().unwrap();
        let to = tempfile::tempfile().unwrap();
        let mut drain = Drain::new(file, to, &ReadLimits::default()).unwrap();
        assert_eq!(drain.drain().unwrap().records, 0);
        cut.set_len(64).unwrap();
        assert!(matches!(drain.drain(), Err(Failure::Cut)));
        assert!(matches!(drain.processes(), Err(Failure::Cut)));
        assert!(matches!(drain.finish(&BTreeMap::new(), |_| true), Err(Failure::Cut)));
    }
}
