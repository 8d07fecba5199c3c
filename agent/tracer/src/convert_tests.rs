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
        let mut asked = 0;
        let converted = convert(&bytes, |address| {
            asked = address;
            12
        });
        let Converted::One(Record::Kernel(kernel)) = converted else {
            panic!("{release}: {converted:?}");
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
    }
}

#[test]
fn a_record_without_times_or_with_wrong_ones_is_timeless() {
    for (start, end) in [(0, 0), (0, 5), (5, 0), (5, 4)] {
        let bytes = of(1, 88, &[(16, start, 8), (24, end, 8)]);
        assert_eq!(convert(&bytes, |_| 0), Converted::Timeless);
    }
    let bytes = of(1, 88, &[(16, 5, 8), (24, 5, 8), (7, 1, 1), (8, 4096, 8)]);
    let Converted::One(Record::Copy(copy)) = convert(&bytes, |_| 0) else {
        panic!("it is a copy");
    };
    assert_eq!((copy.bytes, copy.flags), (4096, 1));
}

#[test]
fn fields_that_later_releases_append_are_told_by_the_length() {
    let fields = [(8, 1, 8), (16, 2, 8), (24, 6, 4), (32, 7, 4)];
    let device = |length: usize, more: &[(usize, u64, usize)]| {
        let bytes = of(51, length, &[&fields[..], more].concat());
        match convert(&bytes, |_| 0) {
            Converted::One(Record::Graph(graph)) => (graph.end_device, graph.end_context),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(device(48, &[]), (6, 7));
    assert_eq!(device(56, &[(48, 8, 4), (52, 9, 4)]), (8, 9));
}

#[test]
fn a_part_of_a_device_says_whose_it_is() {
    let whole = of(8, 176, &[(112, 1, 4), (120, 5, 1)]);
    assert!(matches!(convert(&whole, |_| 3), Converted::One(Record::Device(device)) if device.name == 3));
    let part = of(8, 184, &[(112, 1, 4), (145, 1, 1), (152, 2, 4), (160, 77, 1)]);
    let Converted::Two(Record::Device(device), Record::Partition(partition)) = convert(&part, |_| 3) else {
        panic!("there are two");
    };
    assert_eq!((device.gpu_instance, partition.device, partition.uuid[0]), (2, 1, 77));
}

#[test]
fn kinds_that_are_not_known_are_said_to_be() {
    assert_eq!(convert(&of(58, 48, &[]), |_| 0), Converted::Unknown);
    assert_eq!(convert(&[1, 0], |_| 0), Converted::Short);
}

proptest! {
    #[test]
    fn any_bytes_are_converted_or_left_out(kind in 0_u32..64, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut whole = kind.to_le_bytes().to_vec();
        whole.extend(bytes);
        if let Converted::One(record) = convert(&whole, |_| 0)
            && let Some((start, end)) = record.times()
        {
            prop_assert!(start > 0 && start <= end);
        }
    }
}
