extern crate std;

use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::LEAST_BYTES;
use crate::record::{Call, Kernel, KernelRun, MemoryCopy};

/// A file in memory, with what a library does to it.
struct File {
    bytes: Vec<u8>,
    layout: Layout,
}

#[derive(Debug, PartialEq)]
struct Ended;

impl fmt::Display for Ended {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("it ends")
    }
}

impl Source for File {
    type Error = Ended;

    fn read(&mut self, at: usize, into: &mut [u8]) -> Result<(), Ended> {
        let part = self.bytes.get(at..).and_then(|rest| rest.get(..into.len()));
        into.copy_from_slice(part.ok_or(Ended)?);
        Ok(())
    }
}

/// A segment that a process writes to.
struct Open {
    begin: usize,
    number: u32,
    used: usize,
}

impl File {
    fn new() -> Self {
        let layout = Layout::of(LEAST_BYTES).unwrap();
        let mut file = Self {
            bytes: vec![0; layout.bytes],
            layout,
        };
        file.put(0, &header::identity(u64::try_from(layout.bytes).unwrap()));
        file
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn add(&mut self, at: usize, more: u64) -> u64 {
        let known = word(self, at).unwrap();
        self.put(at, &(known + more).to_le_bytes());
        known
    }

    fn begin(&mut self, slot: usize, pid: u32) {
        let at = self.layout.process(slot).unwrap();
        self.put(at + process::PID_AT, &pid.to_le_bytes());
        self.put(at + process::CLAIM_AT, &process::claim(1, process::USED).to_le_bytes());
    }

    fn claim(&mut self, slot: usize, pid: u32) -> Open {
        let turn = self.add(header::CURSOR_AT, 1);
        let at = usize::try_from(turn).unwrap() % self.layout.segments;
        let begin = self.layout.segment(at).unwrap();
        let number = segment::number_of_turn(turn);
        self.put(begin + segment::PROCESS_AT, &u32::try_from(slot).unwrap().to_le_bytes());
        self.put(begin + segment::SERIAL_AT, &1_u32.to_le_bytes());
        self.put(begin + segment::PID_AT, &pid.to_le_bytes());
        self.put(begin, &segment::claim(number, State::Open).to_le_bytes());
        Open { begin, number, used: 0 }
    }

    fn close(&mut self, open: &Open) {
        self.put(open.begin, &segment::claim(open.number, State::Closed).to_le_bytes());
    }

    fn slot(&mut self, open: &mut Open, kind: Kind, body: &[u8; BODY_BYTES]) {
        let at = open.begin + segment::SLOTS_AT + open.used * slot::BYTES;
        self.put(at, body);
        self.put(at + slot::TAG_AT, &slot::tag(open.number, kind).to_le_bytes());
        open.used += 1;
    }

    fn write(&mut self, open: &mut Open, slot: usize, record: &Record) {
        let (first, (kind, body)) = record.slots();
        if let Some((kind, body)) = first {
            self.slot(open, kind, &body);
        }
        self.slot(open, kind, &body);
        let count = self.layout.process(slot).unwrap() + Count::Records.at();
        self.add(count, 1);
    }

    fn reader(&mut self) -> Reader<Vec<Seen>> {
        let segments = self.layout.segments;
        Reader::new(self, vec![Seen::default(); segments]).unwrap()
    }
}

fn kernel(number: u32) -> Record {
    let run = KernelRun {
        correlation: number,
        start_ns: 1,
        end_ns: 2,
        ..KernelRun::default()
    };
    Record::Kernel(Kernel {
        run,
        ..Kernel::default()
    })
}

fn call(number: u32) -> Record {
    Record::Call(Call {
        correlation: number,
        ..Call::default()
    })
}

fn drained(reader: &mut Reader<Vec<Seen>>, file: &mut File) -> Vec<Record> {
    let mut found = Vec::new();
    let sums = reader.drain(file, |_, record| found.push(record)).unwrap();
    assert_eq!((sums.records, sums.nonsense), (u64::try_from(found.len()).unwrap(), 0));
    found
}

#[test]
fn every_record_is_handed_out_once_while_two_processes_write() {
    let mut file = File::new();
    file.begin(0, 70);
    file.begin(9, 71);
    let mut reader = file.reader();
    let (mut one, mut other) = (file.claim(0, 70), file.claim(9, 71));
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    for at in 0..400 {
        file.write(&mut one, 0, &kernel(at));
        file.write(&mut other, 9, &call(at));
        expected.extend([(70, kernel(at)), (71, call(at))]);
        if at % 37 == 0 {
            reader
                .drain(&mut file, |origin, record| found.push((origin.pid, record)))
                .unwrap();
        }
    }
    file.close(&one);
    reader
        .drain(&mut file, |origin, record| found.push((origin.pid, record)))
        .unwrap();
    let of = |pid: u32, list: &[(u32, Record)]| -> Vec<Record> {
        list.iter()
            .filter(|found| found.0 == pid)
            .map(|found| found.1)
            .collect()
    };
    for pid in [70, 71] {
        assert_eq!(of(pid, &found), of(pid, &expected));
    }
    for slot in [0, 9] {
        assert_eq!(reader.losses(&mut file, slot).unwrap().unwrap().records(), 0);
    }
    assert_eq!(reader.losses(&mut file, 1).unwrap(), None);
}

#[test]
fn a_kernel_whose_shape_alone_is_there_comes_with_the_next_call() {
    let mut file = File::new();
    file.begin(0, 70);
    let mut reader = file.reader();
    let mut open = file.claim(0, 70);
    file.write(&mut open, 0, &call(1));
    let (shape, (kind, body)) = kernel(2).slots();
    let (shape_kind, shape_body) = shape.unwrap();
    file.slot(&mut open, shape_kind, &shape_body);
    assert_eq!(drained(&mut reader, &mut file), [call(1)]);
    assert_eq!(drained(&mut reader, &mut file), []);
    file.slot(&mut open, kind, &body);
    assert_eq!(drained(&mut reader, &mut file), [kernel(2)]);
}

#[test]
fn a_slot_without_its_tag_is_not_there() {
    let mut file = File::new();
    file.begin(0, 70);
    let mut open = file.claim(0, 70);
    file.write(&mut open, 0, &call(1));
    let at = open.begin + segment::SLOTS_AT + slot::BYTES;
    file.put(at, &[7; BODY_BYTES]);
    let mut reader = file.reader();
    assert_eq!(drained(&mut reader, &mut file), [call(1)]);
}

#[test]
fn what_went_round_before_the_reader_came_is_counted_as_lost() {
    let mut file = File::new();
    file.begin(3, 70);
    let mut reader = file.reader();
    let rounds = file.layout.segments + 3;
    for at in 0..rounds {
        let mut open = file.claim(3, 70);
        for _ in 0..10 {
            file.write(&mut open, 3, &call(u32::try_from(at).unwrap()));
        }
        file.close(&open);
    }
    let found = drained(&mut reader, &mut file);
    assert_eq!(found.len(), file.layout.segments * 10);
    let losses = reader.losses(&mut file, 3).unwrap().unwrap();
    assert_eq!((losses.overwritten, losses.records()), (30, 30));
}

#[test]
fn a_turn_whose_claim_comes_late_is_awaited() {
    let mut file = File::new();
    file.begin(0, 70);
    let mut reader = file.reader();
    let turn = file.add(header::CURSOR_AT, 1);
    assert_eq!((turn, drained(&mut reader, &mut file)), (0, vec![]));
    file.put(header::CURSOR_AT, &0_u64.to_le_bytes());
    let mut open = file.claim(0, 70);
    file.write(&mut open, 0, &call(5));
    assert_eq!(drained(&mut reader, &mut file), [call(5)]);
}

#[test]
fn a_segment_that_is_taken_while_it_is_read_is_given_up() {
    /// Takes the segment with the second reading of its claim.
    struct Racing(File, usize, usize);
    impl Source for Racing {
        type Error = Ended;
        fn read(&mut self, at: usize, into: &mut [u8]) -> Result<(), Ended> {
            if at == self.1 {
                self.2 += 1;
                if self.2 == 2 {
                    self.0.put(at, &segment::claim(99, State::Taken).to_le_bytes());
                }
            }
            self.0.read(at, into)
        }
    }
    let mut file = File::new();
    file.begin(0, 70);
    let mut reader = file.reader();
    let mut open = file.claim(0, 70);
    file.write(&mut open, 0, &call(5));
    let mut racing = Racing(file, open.begin, 0);
    let sums = reader.drain(&mut racing, |_, _| panic!("it is of nobody")).unwrap();
    assert_eq!((sums.records, sums.overtaken), (0, 1));
    assert_eq!(reader.losses(&mut racing, 0).unwrap().unwrap().overwritten, 1);
}

#[test]
fn processes_that_found_no_slot_are_counted() {
    let mut file = File::new();
    let reader = file.reader();
    assert_eq!(reader.left_out(&mut file), Ok(0));
    file.add(header::PROCESSES_LEFT_OUT_AT, 3);
    assert_eq!(reader.left_out(&mut file), Ok(3));
}

#[test]
fn names_are_read_from_the_heap() {
    let mut file = File::new();
    let at = file.layout.name(4).unwrap();
    file.put(at, &1_u64.to_le_bytes());
    file.put(at + name::PLACE_AT, &16_u32.to_le_bytes());
    file.put(at + name::LENGTH_AT, &6_u32.to_le_bytes());
    file.put(file.layout.heap_at + 16, b"kernel");
    let reader = file.reader();
    let mut text = Box::new([0; name::MAX_NAME_BYTES]);
    let found = reader.name(&mut file, 5, &mut text).unwrap();
    assert_eq!(
        found.map(|name| (name.text, name.is_cut)),
        Some((&b"kernel"[..], false))
    );
    for number in [0, 4, 6, u32::MAX] {
        assert_eq!(reader.name(&mut file, number, &mut text).unwrap(), None);
    }
}

#[test]
fn a_file_of_another_kind_or_a_short_one_is_refused() {
    let new = |bytes: Vec<u8>, seen: usize| {
        let layout = Layout::of(LEAST_BYTES).unwrap();
        let mut file = File { bytes, layout };
        Reader::new(&mut file, vec![Seen::default(); seen]).map(drop)
    };
    assert_eq!(new(vec![0; 10], 99), Err(ReadError::Source(Ended)));
    assert_eq!(new(vec![0; 100], 99), Err(ReadError::NotATracerFile));
    let whole = File::new().bytes;
    assert_eq!(new(whole.clone(), 1), Err(ReadError::TooFewSeen));
    for at in [0, header::VERSION_AT, header::BYTES_AT] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        assert_eq!(new(bytes, 99), Err(ReadError::NotATracerFile), "{at}");
    }
    let mut cut = File::new();
    let mut reader = cut.reader();
    cut.add(header::CURSOR_AT, 3);
    cut.bytes.truncate(NAMES_END);
    assert_eq!(reader.drain(&mut cut, |_, _| ()), Err(ReadError::Source(Ended)));
}

const NAMES_END: usize = crate::NAMES_AT;

proptest! {
    #[test]
    fn any_record_is_read_as_it_was_written(
        times in any::<(u64, u64, u64, u64)>(), places in any::<[u32; 5]>(), kinds in any::<[u8; 4]>(),
        shape in any::<[u32; 10]>(), small in any::<[u16; 4]>(),
    ) {
        let [correlation, device, context, stream, graph] = places;
        let [kind, source, destination, flags] = kinds;
        let (start_ns, end_ns, bytes, graph_node) = times;
        let copy = Record::Copy(MemoryCopy {
            start_ns, end_ns, bytes, graph_node, correlation, device, context, stream, graph, kind, source, destination, flags,
        });
        let run = KernelRun {
            start_ns, end_ns, graph_node, correlation, name: graph, device, context, stream, graph,
            channel: correlation, launch_kind: kind, channel_kind: flags,
        };
        let [grid_x, grid_y, grid_z, block_x, block_y, block_z, static_shared, dynamic_shared, local_per_thread, executed_shared] = shape;
        let [registers, cluster_x, cluster_y, cluster_z] = small;
        let shape = Shape {
            grid_x, grid_y, grid_z, block_x, block_y, block_z, static_shared, dynamic_shared, local_per_thread, executed_shared,
            registers, cluster_x, cluster_y, cluster_z, is_device_launched: source,
        };
        let kernel = Record::Kernel(Kernel { run, shape });
        let mut file = File::new();
        file.begin(0, 1);
        let mut open = file.claim(0, 1);
        file.write(&mut open, 0, &copy);
        file.write(&mut open, 0, &kernel);
        let mut reader = file.reader();
        prop_assert_eq!(drained(&mut reader, &mut file), [copy, kernel]);
        prop_assert_eq!(copy.times(), Some((start_ns, end_ns)));
    }

    #[test]
    fn rubbish_in_a_file_is_left_out_and_ends(
        writes in prop::collection::vec((24_usize..LEAST_BYTES - 8, any::<u64>()), 0..400),
        headers in prop::collection::vec((0_usize..12, 0_usize..16, any::<u64>()), 0..60),
        cursor in any::<u64>(),
    ) {
        let mut file = File::new();
        file.begin(0, 1);
        for _ in 0..4 {
            let mut open = file.claim(0, 1);
            for number in 0..50 {
                file.write(&mut open, 0, &kernel(number));
            }
        }
        let mut reader = file.reader();
        let bound = u64::try_from(LEAST_BYTES / slot::BYTES).unwrap();
        for (at, value) in writes {
            file.put(at, &value.to_le_bytes());
        }
        for (at, word, value) in headers {
            let begin = file.layout.segment(at % file.layout.segments).unwrap();
            file.put(begin + word * 8, &value.to_le_bytes());
        }
        for round in 0..3 {
            let mut records = 0;
            let sums = reader.drain(&mut file, |_, record| {
                records += 1;
                let _ = record.times();
            }).unwrap();
            prop_assert!(sums.records == records && records <= bound && sums.nonsense <= bound);
            for slot in 0..process::SLOTS {
                reader.losses(&mut file, slot).unwrap();
            }
            let mut text = [0; name::MAX_NAME_BYTES];
            for number in 0..200 {
                reader.name(&mut file, number, &mut text).unwrap();
            }
            reader.wanted(&mut file).unwrap();
            file.put(header::CURSOR_AT, &cursor.wrapping_add(round).to_le_bytes());
        }
    }
}
