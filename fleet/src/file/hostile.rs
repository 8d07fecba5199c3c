//! Files that somebody else made. Pages are not compressed here, so that what is changed reaches
//! the decoders and not a checksum.

use std::sync::LazyLock;

use bytes::Bytes;
use parquet::basic::{Compression, GzipLevel};
use proptest::prelude::*;
use proptest::sample::Index;

use super::read::{ReadError, read};
use super::write::{WriteError, encode};
use super::{write_captures, write_rows};
use crate::{CaptureRow, Limits, Row, Sketch, name_hash};

fn capture(number: i64) -> CaptureRow {
    CaptureRow {
        capture_uid: format!("uid-{number}"),
        namespace: "ml".to_owned(),
        image: format!("registry.example/train:{}", number % 3),
        version: (number % 2 == 0).then(|| number.to_string()),
        categories: ["cuda_kernel", "nvtx_range"]
            .into_iter()
            .take(usize::try_from(number % 3).unwrap())
            .map(str::to_owned)
            .collect(),
        window_ns: number,
        ..CaptureRow::default()
    }
}

fn row(number: i64) -> Row {
    let mut sketch = Sketch::default();
    let duration = number.unsigned_abs() * 37;
    sketch.add(duration);
    sketch.add(duration);
    Row {
        capture_uid: "uid".to_owned(),
        name: format!("gemm_{number}"),
        name_hash: name_hash(&format!("gemm_{number}")),
        probability_per_billion: 1 + number,
        calls: 2,
        total_ns: duration.cast_signed() * 2,
        min_ns: duration.cast_signed(),
        median_ns: duration.cast_signed(),
        max_ns: duration.cast_signed(),
        device: (number % 4 > 0).then_some(number % 4),
        sketch: (number % 5 > 0).then_some(sketch),
        ..Row::default()
    }
}

fn captures() -> Vec<CaptureRow> {
    (0..40).map(capture).collect()
}

fn rows() -> Vec<Row> {
    (0..200).map(row).collect()
}

fn compression(stored: bool) -> Compression {
    if stored {
        Compression::UNCOMPRESSED
    } else {
        Compression::GZIP(GzipLevel::default())
    }
}

/// A file of each table, compressed and not.
static FILES: LazyLock<[[Vec<u8>; 2]; 2]> = LazyLock::new(|| {
    [false, true].map(|stored| {
        let compression = compression(stored);
        [
            encode(&captures(), compression).unwrap(),
            encode(&rows(), compression).unwrap(),
        ]
    })
});

#[derive(Debug, Clone)]
enum Change {
    Set(Index, u8),
    Flip(Index, u8),
    Cut(Index),
    Insert(Index, Vec<u8>),
    Copy(Index, Index, u8),
    Huge(Index),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<Index>;
    prop_oneof![
        4 => (at(), any::<u8>()).prop_map(|(at, value)| Change::Set(at, value)),
        4 => (at(), 0_u8..8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        1 => at().prop_map(Change::Cut),
        1 => (at(), prop::collection::vec(any::<u8>(), 1..9)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        1 => (at(), at(), 1_u8..40).prop_map(|(from, to, length)| Change::Copy(from, to, length)),
        // A number of as many bytes as Parquet's numbers have, all set: counts and sizes that
        // nothing has.
        2 => at().prop_map(Change::Huge),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    if bytes.is_empty() {
        return;
    }
    let length = bytes.len();
    match change {
        Change::Set(at, value) => bytes[at.index(length)] = *value,
        Change::Flip(at, bit) => bytes[at.index(length)] ^= 1 << bit,
        Change::Cut(at) => bytes.truncate(at.index(length)),
        Change::Insert(at, more) => {
            let at = at.index(length);
            bytes.splice(at..at, more.iter().copied());
        }
        Change::Copy(from, to, count) => {
            let (from, to) = (from.index(length), to.index(length));
            let count = usize::from(*count).min(length - from).min(length - to);
            bytes.copy_within(from..from + count, to);
        }
        Change::Huge(at) => {
            let at = at.index(length);
            let end = (at + 4).min(length);
            bytes[at..end].fill(0xff);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_file_that_was_changed_is_read_or_refused(
        stored in any::<bool>(),
        changes in prop::collection::vec(change(), 1..5),
        // Most of what can be said wrong is said at the end.
        at_the_end in any::<bool>(),
    ) {
        for mut bytes in FILES[usize::from(stored)].clone() {
            let kept = if at_the_end { bytes.len() - bytes.len() / 3 } else { 0 };
            let mut tail = bytes.split_off(kept);
            for change in &changes {
                apply(&mut tail, change);
            }
            bytes.extend(tail);
            let bytes = Bytes::from(bytes);
            let limits = Limits { inflated_bytes: 1 << 20, rows: 1_000, elements: 10_000, ..Limits::default() };
            if let Ok(captures) = read::<CaptureRow>(&bytes, &limits) {
                prop_assert!(captures.len() <= 1_000);
            }
            if let Ok(rows) = read::<Row>(&bytes, &limits) {
                prop_assert!(rows.len() <= 1_000);
            }
        }
    }

    #[test]
    fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(read::<Row>(&Bytes::from(bytes), &Limits::default()).is_err());
    }
}

#[test]
fn a_file_that_holds_more_than_is_read_is_refused() {
    let bytes = Bytes::from(write_rows(&rows()).unwrap());
    let all = Limits::default();
    assert_eq!(read::<Row>(&bytes, &all).unwrap(), rows());
    let tight = [
        Limits {
            file_bytes: bytes.len() - 1,
            ..all
        },
        Limits { rows: 199, ..all },
        Limits { text_bytes: 7, ..all },
        Limits { elements: 100, ..all },
        Limits {
            inflated_bytes: 2_000,
            ..all
        },
    ];
    for limits in tight {
        assert!(read::<Row>(&bytes, &limits).is_err(), "{limits:?}");
    }
}

#[test]
fn pages_that_inflate_to_more_than_is_read_are_refused() {
    let bomb: Vec<CaptureRow> = (0..1_000)
        .map(|number| CaptureRow {
            cluster: format!("{}{number}", "a".repeat(4_000)),
            ..capture(number)
        })
        .collect();
    let bytes = Bytes::from(encode(&bomb, compression(false)).unwrap());
    assert!(bytes.len() < 100_000, "{}", bytes.len());
    let limits = Limits {
        inflated_bytes: 1 << 20,
        ..Limits::default()
    };
    let refused = read::<CaptureRow>(&bytes, &limits).unwrap_err();
    assert!(refused.to_string().contains("the size of its pages"), "{refused}");
}

#[test]
fn a_file_of_another_table_or_version_is_refused() {
    let bytes = Bytes::from(write_captures(&captures()).unwrap());
    assert!(matches!(
        read::<Row>(&bytes, &Limits::default()),
        Err(ReadError::Parquet(_) | ReadError::Table { .. })
    ));
    let mut other = encode(&rows(), compression(true)).unwrap();
    let key = b"flopwatch.schema_version";
    let at = other.windows(key.len()).position(|window| window == key).unwrap();
    let version = other[at..].iter().position(|byte| *byte == b'1').unwrap();
    other[at + version] = b'2';
    let refused = read::<Row>(&Bytes::from(other), &Limits::default()).unwrap_err();
    assert!(matches!(refused, ReadError::Table { table: "rows" }), "{refused}");
}

#[test]
fn records_that_make_no_sense_are_neither_written_nor_read() {
    let changed = |change: fn(&mut Row)| {
        let mut row = row(3);
        change(&mut row);
        row
    };
    let wrong = [
        changed(|row| row.calls = 0),
        changed(|row| row.min_ns = -1),
        changed(|row| row.median_ns = row.max_ns + 1),
        changed(|row| row.total_ns = row.max_ns - 1),
        changed(|row| row.calls = 3),
        changed(|row| row.name = "gemm".to_owned()),
        changed(|row| row.probability_per_billion = 0),
        changed(|row| row.probability_per_billion = 1_000_000_001),
        changed(|row| row.device = Some(-1)),
    ];
    for row in wrong {
        let bytes = Bytes::from(encode(std::slice::from_ref(&row), compression(false)).unwrap());
        let refused = read::<Row>(&bytes, &Limits::default());
        assert!(matches!(refused, Err(ReadError::Record { position: 0, .. })), "{row:?}");
        assert!(matches!(write_rows(&[row]), Err(WriteError::Refused(_))));
    }
    let long = CaptureRow {
        image: "i".repeat(5_000),
        ..capture(1)
    };
    assert!(write_captures(&[long]).is_err());
    let older = CaptureRow {
        schema_version: 0,
        ..capture(1)
    };
    assert!(write_captures(&[older]).is_err());
}
