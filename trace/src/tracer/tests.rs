//! Files that a container filled: with as much as fits, and with nonsense.

use std::collections::BTreeSet;

use flopwatch_model::{Category, count};
use flopwatch_tracer_file::header::{CURSOR_AT, PROCESSES_LEFT_OUT_AT, identity};
use flopwatch_tracer_file::name::{HASH_AT, LENGTH_AT, MAX_NAME_BYTES, PLACE_AT};
use flopwatch_tracer_file::process::{
    BYTES, CLAIM_AT, Count, HOLDER_AT, Holder, KINDS_AT, PHASE_AT, PID_AT, Phase, REASON_AT, RESULT_AT, Reason, USED,
    claim,
};
use flopwatch_tracer_file::record::{Device, Kernel, KernelRun, Partition, Record};
use flopwatch_tracer_file::wanted::Kinds;
use flopwatch_tracer_file::{Moment, Origin};

use super::segment::Segment;
use super::*;

/// Bytes of a file in which each of 256 processes has a segment.
const FILE_BYTES: usize = 32 << 20;
/// Kernels of a segment, at two slots each.
const KERNELS: usize = 500;
/// Numbers of the processes begin here.
const FIRST_PID: u32 = 1_000;

/// A file as a container left it.
struct Filled {
    bytes: Vec<u8>,
    layout: Layout,
    turns: u64,
}

impl Filled {
    fn new() -> Self {
        let layout = Layout::of(FILE_BYTES).unwrap();
        let mut filled = Self {
            bytes: vec![0; layout.bytes],
            layout,
            turns: 0,
        };
        filled.put(0, &identity(count(FILE_BYTES)));
        filled
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Writes over a slot.
    fn slot(&mut self, slot: usize, filler: u8, words: &[(usize, u32)]) {
        let at = self.layout.process(slot).unwrap();
        self.bytes[at..at + BYTES].fill(filler);
        for (place, word) in words {
            self.put(at + place, &word.to_le_bytes());
        }
        self.put(at + CLAIM_AT, &claim(1, USED).to_le_bytes());
    }

    /// A process in a slot, with a segment of records that it wrote and counted.
    fn write(&mut self, slot: usize, pid: u32, records: &[Record]) {
        let moment = Moment {
            cupti_ns: 1,
            monotonic_ns: 1,
            realtime_ns: 1,
        };
        let origin = Origin {
            slot,
            serial: 1,
            pid,
            moment,
        };
        let mut segment = Segment::new(self.turns, &origin);
        for record in records {
            let (shape, last) = record.slots();
            for (kind, body) in shape.into_iter().chain([last]) {
                segment.push(kind, &body);
            }
        }
        let at = self.layout.segment(usize::try_from(self.turns).unwrap()).unwrap();
        self.put(at, segment.bytes());
        self.turns += 1;
        self.put(CURSOR_AT, &self.turns.to_le_bytes());
        self.slot(slot, 0, &[(PID_AT, pid), (KINDS_AT, Kinds::KERNELS.bits())]);
        let at = self.layout.process(slot).unwrap();
        self.put(at + Count::Records.at(), &count(records.len()).to_le_bytes());
        self.put(at + Count::Windows.at(), &1_u64.to_le_bytes());
    }

    fn capture(&self, limits: &ReadLimits) -> Result<Capture, ReadError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cuda.trace");
        std::fs::write(&path, &self.bytes).unwrap();
        read(&path, limits)
    }
}

fn kernel(name: u32, start_ns: u64) -> Record {
    let run = KernelRun {
        start_ns,
        end_ns: start_ns + 5,
        correlation: name,
        name,
        context: 1,
        stream: 7,
        ..KernelRun::default()
    };
    Record::Kernel(Kernel {
        run,
        ..Kernel::default()
    })
}

#[test]
fn as_many_processes_as_a_file_has_room_for_on_parts_of_eight_gpus_stand_in_one_timeline() {
    let mut filled = Filled::new();
    for slot in 0..SLOTS {
        let number = u32::try_from(slot).unwrap();
        let (gpu, part) = (number / 7 % 8, number % 7);
        let mut uuid = [0; 16];
        uuid[0] = u8::try_from(gpu).unwrap();
        // Each sees its part alone, by the UUID of the whole GPU.
        let device = Device {
            uuid,
            is_partition: 1,
            gpu_instance: part,
            ..Device::default()
        };
        uuid[1] = u8::try_from(part).unwrap();
        let partition = Partition { uuid, device: 0 };
        let records = [
            Record::Device(device),
            Record::Partition(partition),
            kernel(0, 1_000 + u64::from(number)),
            kernel(0, 2_000),
        ];
        filled.write(slot, FIRST_PID + number, &records);
    }
    let capture = filled.capture(&ReadLimits::default()).unwrap();
    assert_eq!(capture.losses.list(), []);
    assert_eq!(capture.events[&Category::CudaKernel].len(), 2 * SLOTS);
    assert_eq!(capture.duration_ns, 1_005, "from the first begin to the last end");
    let processes: BTreeSet<u32> = capture.rows.iter().map(|row| row.process).collect();
    assert_eq!((processes.len(), capture.rows.len()), (SLOTS, SLOTS));
    let instance = |device: &flopwatch_model::Device| device.mig.clone().unwrap();
    let parts: BTreeSet<String> = capture.devices.iter().map(|device| instance(device).uuid).collect();
    assert_eq!((parts.len(), capture.devices.len()), (56, 56));
    for row in &capture.rows {
        let device = capture.devices.iter().find(|device| Some(device.id) == row.device);
        let part = (row.process - FIRST_PID) % 7;
        assert_eq!(instance(device.unwrap()).gpu_instance, Some(part), "{}", row.label);
    }
}

#[test]
fn names_that_all_have_the_whole_length_are_kept_within_the_limit_and_those_beyond_the_heap_are_none() {
    let mut filled = Filled::new();
    let (names, heap_at) = (filled.layout.names, filled.layout.heap_at);
    let length = u32::try_from(MAX_NAME_BYTES).unwrap();
    for at in 0..names {
        let entry = filled.layout.name(at).unwrap();
        filled.put(entry + HASH_AT, &u64::MAX.to_le_bytes());
        filled.put(entry + LENGTH_AT, &length.to_le_bytes());
    }
    // No text at all.
    filled.bytes[heap_at..heap_at + MAX_NAME_BYTES].fill(0xff);
    let numbers: Vec<u32> = (1..=u32::try_from(names).unwrap()).collect();
    for (slot, numbers) in numbers.chunks(KERNELS).enumerate() {
        let kernels: Vec<Record> = numbers.iter().map(|number| kernel(*number, 1_000)).collect();
        filled.write(slot, FIRST_PID, &kernels);
    }
    let limits = ReadLimits {
        max_string_bytes: 1 << 20,
        ..ReadLimits::default()
    };
    let error = filled.capture(&limits).unwrap_err().to_string();
    assert!(error.ends_with("holds more than 1048576 bytes of strings"), "{error}");
    for at in 0..names {
        let entry = filled.layout.name(at).unwrap();
        filled.put(entry + PLACE_AT, &u32::MAX.to_le_bytes());
    }
    let capture = filled.capture(&limits).unwrap();
    let kernels = &capture.events[&Category::CudaKernel];
    assert_eq!(kernels.len(), names);
    assert!(kernels.names.iter().all(String::is_empty));
}

#[test]
fn slots_full_of_nonsense_take_nothing_from_a_process_and_are_told_in_a_list_that_ends() {
    let mut filled = Filled::new();
    for slot in 0..SLOTS {
        let number = u32::try_from(slot).unwrap();
        let words = [
            (PID_AT, number),
            (PHASE_AT, Phase::Refused.bits()),
            (REASON_AT, Reason::Cupti.bits()),
            (RESULT_AT, number),
            (HOLDER_AT, Holder::None.bits()),
        ];
        filled.slot(slot, 0xa5, &words);
    }
    filled.put(PROCESSES_LEFT_OUT_AT, &u64::MAX.to_le_bytes());
    filled.write(9, 77, &[kernel(0, 1_000)]);
    let capture = filled.capture(&ReadLimits::default()).unwrap();
    assert_eq!(capture.events[&Category::CudaKernel].len(), 1);
    let processes: Vec<u32> = capture.rows.iter().map(|row| row.process).collect();
    assert_eq!(processes, [77]);
    let losses = capture.losses.list();
    assert!(losses.len() < 270, "{}", losses.len());
    let left_out = losses.iter().find(|loss| loss.what.contains("beyond the 256"));
    assert_eq!(left_out.map(|loss| loss.count), Some(u64::MAX));
}
