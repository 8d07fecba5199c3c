use proptest::prelude::*;

use super::*;

/// Bytes of a kernel's record by release.
const KERNELS: [(&str, usize); 6] = [
    ("11.8", 200),
    ("12.0 to 12.9", 208),
    ("13.0", 216),
    ("13.1", 224),
    ("13.3", 232),
    ("13.4, 13.5", 248),
];

/// Keeps what records come to.
struct Taken {
    /// The number of every name.
    number: u32,
    /// The address of the last one.
    asked: u64,
    records: Vec<Record>,
}

impl Sink for Taken {
    fn name(&mut self, address: u64) -> u32 {
        self.asked = address;
        self.number
    }

    fn kernel(&mut self, kernel: &Kernel) {
        self.records.push(Record::Kernel(*kernel));
    }

    fn call(&mut self, call: &Call) {
        self.records.push(Record::Call(*call));
    }

    fn other(&mut self, record: &Record) {
        self.records.push(*record);
    }
}

/// What a record comes to where every name has that number, and the address that was asked for one.
pub(crate) fn converted(bytes: &[u8], number: u32) -> (Result<Vec<Record>, LeftOut>, u64) {
    let mut taken = Taken {
        number,
        asked: 0,
        records: Vec::new(),
    };
    let outcome = convert(bytes, &mut taken);
    assert_eq!(outcome.is_ok(), !taken.records.is_empty());
    (outcome.map(|()| taken.records), taken.asked)
}

/// The one record that these bytes come to.
fn one(bytes: &[u8]) -> Record {
    match converted(bytes, 3).0.as_deref() {
        Ok([record]) => *record,
        other => panic!("{other:?}"),
    }
}

fn put(bytes: &mut [u8], at: usize, value: u64, count: usize) {
    bytes[at..at + count].copy_from_slice(&value.to_le_bytes()[..count]);
}

fn of(kind: u64, length: usize, fields: &[(usize, u64, usize)]) -> Vec<u8> {
    let mut bytes = vec![0; length];
    put(&mut bytes, 0, kind, 4);
    for (at, value, count) in fields {
        put(&mut bytes, *at, *value, *count);
    }
    bytes
}

#[test]
fn a_kernel_of_every_release_has_the_same_fields() {
    for (release, length) in KERNELS {
        let fields = [
            (6, 40, 2),
            (16, 1_000, 8),
            (24, 2_000, 8),
            (40, 3, 4),
            (44, 1, 4),
            (48, 7, 4),
            (52, 108, 4),
        ];
        let more = [
            (64, 256, 4),
            (92, 55, 4),
            (104, 0xabc, 8),
            (144, 9, 8),
            (156, 4, 4),
            (176, 2, 4),
        ];
        let bytes = of(10, length, &[&fields[..], &more[..]].concat());
        let (records, asked) = converted(&bytes, 12);
        let Ok([Record::Kernel(kernel)]) = records.as_deref() else {
            panic!("{release}: {records:?}");
        };
        let run = kernel.run;
        assert_eq!(
            (run.start_ns, run.end_ns, run.correlation, run.name),
            (1_000, 2_000, 55, 12)
        );
        assert_eq!(
            (run.device, run.context, run.stream, run.graph, run.graph_node),
            (3, 1, 7, 4, 9)
        );
        let shape = kernel.shape;
        assert_eq!(
            (shape.grid_x, shape.block_x, shape.registers, shape.cluster_x),
            (108, 256, 40, 2)
        );
        assert_eq!(asked, 0xabc);
        assert_eq!(converted(&bytes[..187], 12).0, Err(LeftOut::Short), "{release}");
    }
}

#[test]
fn a_call_says_whether_it_is_one_of_the_runtime_or_of_the_driver() {
    for (kind, domain) in [(4, DRIVER), (5, RUNTIME)] {
        let bytes = of(
            kind,
            40,
            &[
                (4, 211, 4),
                (8, 5, 8),
                (16, 9, 8),
                (24, 70, 4),
                (28, 71, 4),
                (32, 55, 4),
                (36, 1, 4),
            ],
        );
        let call = Call {
            start_ns: 5,
            end_ns: 9,
            function: 211,
            process: 70,
            thread: 71,
            correlation: 55,
            status: 1,
            domain,
        };
        assert_eq!(one(&bytes), Record::Call(call));
        assert_eq!(converted(&bytes[..39], 0).0, Err(LeftOut::Short));
    }
}

#[test]
fn a_record_without_times_or_with_wrong_ones_is_timeless() {
    for (start, end) in [(0, 0), (0, 5), (5, 0), (5, 4)] {
        for (kind, length, at) in [(1, 88, 16), (10, 200, 16), (5, 40, 8), (51, 48, 8)] {
            let bytes = of(kind, length, &[(at, start, 8), (at + 8, end, 8)]);
            assert_eq!(converted(&bytes, 0).0, Err(LeftOut::Timeless), "kind {kind}");
        }
    }
    let bytes = of(1, 88, &[(16, 5, 8), (24, 5, 8), (7, 1, 1), (8, 4096, 8)]);
    let Record::Copy(copy) = one(&bytes) else {
        panic!("it is a copy");
    };
    assert_eq!((copy.bytes, copy.flags), (4096, 1));
}

#[test]
fn fields_that_later_releases_append_are_told_by_the_length() {
    let fields = [(8, 1, 8), (16, 2, 8), (24, 6, 4), (32, 7, 4)];
    let device = |length: usize, more: &[(usize, u64, usize)]| {
        let bytes = of(51, length, &[&fields[..], more].concat());
        match one(&bytes) {
            Record::Graph(graph) => (graph.end_device, graph.end_context),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(device(48, &[]), (6, 7));
    assert_eq!(device(56, &[(48, 8, 4), (52, 9, 4)]), (8, 9));
}

#[test]
fn a_part_of_a_device_says_whose_it_is() {
    let whole = of(8, 176, &[(112, 1, 4), (120, 5, 1)]);
    assert!(matches!(one(&whole), Record::Device(device) if device.name == 3));
    let part = of(8, 184, &[(112, 1, 4), (145, 1, 1), (152, 2, 4), (160, 77, 1)]);
    let (records, _) = converted(&part, 3);
    let Ok([Record::Device(device), Record::Partition(partition)]) = records.as_deref() else {
        panic!("there are two: {records:?}");
    };
    assert_eq!((device.gpu_instance, partition.device, partition.uuid[0]), (2, 1, 77));
}

#[test]
fn kinds_that_are_not_known_are_said_to_be() {
    assert_eq!(converted(&of(58, 48, &[]), 0).0, Err(LeftOut::Unknown));
    assert_eq!(converted(&[1, 0], 0).0, Err(LeftOut::Short));
}

proptest! {
    #[test]
    fn any_bytes_are_converted_or_left_out(kind in 0_u32..64, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut whole = kind.to_le_bytes().to_vec();
        whole.extend(bytes);
        let records = converted(&whole, 0).0.unwrap_or_default();
        for (start, end) in records.iter().filter_map(Record::times) {
            prop_assert!(start > 0 && start <= end);
        }
    }
}
