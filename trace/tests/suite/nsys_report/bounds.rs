//! Reports that are cut off, damaged or forged: an error that says so, or a result, in bounded
//! memory.

use flopwatch_trace::ReadLimits;

use super::writer::{Report, chunk, file, finished, literals};
use super::{read_bytes, sample};
use crate::limits::limited;
use crate::message::{Message, new, varint};

fn error(bytes: &[u8]) -> String {
    let error = read_bytes(bytes, &ReadLimits::default()).unwrap_err();
    assert!(error.contains("a.nsys-rep"), "{error}");
    error
}

#[test]
fn a_report_that_is_cut_off_anywhere_is_an_error() {
    let whole = sample().bytes();
    for end in 0..whole.len() {
        let error = error(&whole[..end]);
        assert!(error.contains("is no finished report"), "{end}: {error}");
    }
}

#[test]
fn a_report_that_loses_a_byte_anywhere_is_an_error_or_a_result() {
    let whole = sample().bytes();
    let limits = ReadLimits::default();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes.remove(at);
        drop(read_bytes(&bytes, &limits));
        for value in [0, 0x7F, 0xFF, whole[at] ^ 1, whole[at] ^ 0x80] {
            bytes.clone_from(&whole);
            bytes[at] = value;
            drop(read_bytes(&bytes, &limits));
        }
    }
}

/// A file whose events are these bytes, and of which everything else is sound.
fn with_events(events: &[u8]) -> Vec<u8> {
    let before = [
        new().number(18, 9).delimited(),
        new().number(1, 1).delimited(),
        events.to_vec(),
    ]
    .concat();
    let strings = chunk(&new().text(1, "").delimited());
    let behind = [strings, new().delimited(), new().delimited()].concat();
    let offsets = new().text(1, "lz4").number(2, u64::try_from(before.len()).unwrap());
    file(&[
        ("Raw Sampling Data", [b"QDTEXT00", before.as_slice(), &behind].concat()),
        ("Sampling Data Offsets", offsets.0),
    ])
}

/// A chunk that claims these lengths.
fn claiming(stored: u64, inflated: u64, block: &[u8]) -> Vec<u8> {
    [varint(stored), varint(inflated), block.to_vec()].concat()
}

#[test]
fn a_chunk_that_claims_more_than_its_bytes_can_be_is_refused_before_it_is_read() {
    read_bytes(&with_events(&chunk(&new().delimited())), &ReadLimits::default()).unwrap();
    for (inflated, says) in [
        (4 << 30, "claims to inflate to more"),
        (u64::MAX, "claims to inflate to more"),
        (10 * 255 + 1, "claims to inflate to more"),
        (10 * 255, "does not inflate to what it claims"),
    ] {
        let error = error(&with_events(&claiming(10, inflated, &[0; 10])));
        assert!(error.contains(says), "{inflated}: {error}");
    }
    for stored in [11, 4 << 30, u64::MAX] {
        // Behind the chunk come the strings: it may not reach into them.
        let error = error(&with_events(&claiming(stored, 10, &[0; 10])));
        assert!(error.contains("reaches out of its section"), "{stored}: {error}");
    }
    let block = literals(&vec![0; 5 << 20]);
    let length = u64::try_from(block.len()).unwrap();
    let large = with_events(&claiming(length, 5 << 20, &block));
    let limits = limited(|of| of.max_chunk_bytes = 1 << 20);
    let error = read_bytes(&large, &limits).unwrap_err();
    assert!(error.contains("1048576 bytes of one chunk"), "{error}");
}

#[test]
fn a_chunk_of_anything_but_one_message_is_refused() {
    for (content, says) in [
        (&[][..], "is no message"),
        (&[5, 1], "is no message"),
        (&[0, 1], "holds more than one message"),
        (&[2, 0x0A, 9], "holds a damaged event"),
    ] {
        let error = error(&with_events(&chunk(content)));
        assert!(error.contains(says), "{content:?}: {error}");
    }
}

#[test]
fn messages_that_nest_without_end_are_not_followed() {
    let mut deep = new();
    for _ in 0..2000 {
        deep = new().message(1, &deep);
    }
    for report in [
        Report::new(&[""]).event(250, &deep),
        Report::new(&[""]).event(107, &deep).event(108, &deep).event(102, &deep),
        Report {
            state: new().message(1, &deep).message(16, &deep),
            system: new().message(1, &deep).message(7, &deep),
            options: deep.clone(),
            threads: deep,
            ..Report::new(&[""])
        },
    ] {
        read_bytes(&report.bytes(), &ReadLimits::default()).unwrap();
    }
}

#[test]
fn sections_lie_inside_the_file_and_those_that_every_report_has_are_there() {
    let section = |name: &str, offset: u64, length: u64| {
        let section = new().text(1, name).number(2, offset).number(3, length);
        new().message(1, &section)
    };
    let begin = [super::writer::MAGIC, b"1.\n"].concat();
    for list in [
        section("Raw Sampling Data", 0, 1 << 40),
        section("Raw Sampling Data", u64::MAX, 1),
        section("Raw Sampling Data", 1 << 40, 0),
    ] {
        let error = error(&finished(begin.clone(), &list));
        assert!(error.contains("a section at byte"), "{error}");
    }
    let error = error(&finished(begin.clone(), &new()));
    assert!(error.contains("without the section Sampling Data Offsets"), "{error}");
    let error = self::error(&finished(begin.clone(), &Message(vec![0x0A, 9])));
    assert!(error.contains("the list of sections"), "{error}");
    let mut forged = finished(begin, &new());
    let place = forged.len() - 16;
    forged[place..place + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    let error = self::error(&forged);
    assert!(error.contains("reaches out of the file"), "{error}");
}

#[test]
fn a_compression_that_is_not_known_is_named() {
    let mut report = sample();
    report.compression = "zstd";
    let error = error(&report.bytes());
    assert!(
        error.contains("compressed by \"zstd\"") && error.contains("nsys export"),
        "{error}"
    );
}

#[test]
fn limits_end_in_errors_that_name_them() {
    let whole = sample().bytes();
    for (limits, says) in [
        (limited(|of| of.max_events = 3), "3 events"),
        (limited(|of| of.max_text_bytes = 100), "100 bytes of events"),
        (limited(|of| of.max_chunk_bytes = 10), "10 bytes of one message"),
        (limited(|of| of.max_table_rows = 3), "3 strings"),
        (limited(|of| of.max_string_bytes = 10), "10 bytes of one chunk"),
        (limited(|of| of.max_rows = 0), "0 "),
    ] {
        let error = read_bytes(&whole, &limits).unwrap_err();
        assert!(error.contains("a.nsys-rep") && error.contains(says), "{says}: {error}");
    }
}
