//! Files of the flight recorder, of our own making: whole, damaged, and written by somebody who
//! wants to hurt the reader.

use flopwatch_model::{Capture, Category, Events, Loss};
use flopwatch_ring::header::{BYTES_AT, Count, MONOTONIC_AT, REALTIME_AT, TICKS_ARE_TSC_AT, TICKS_AT, VERSION_AT};
use flopwatch_ring::segment::{
    self, CLAIM_AT, FIRST_EVENT_AT, PROCESS_AT, SERIAL_AT, SLOTS, SLOTS_AT, State, THREAD_AT,
};
use flopwatch_ring::slot::{self, Kind, tag};
use flopwatch_ring::{LEAST_BYTES, Layout, MAGIC, VERSION, name};
use flopwatch_trace::{Format, ReadLimits, detect, read, recorder};
use proptest::prelude::*;

use crate::capture::{counted, read_as, timeline_of};
use crate::limits::limited;

/// Ticks are nanoseconds from here on.
const START: u64 = 5_000_000_000;
const UTC: u64 = 1_700_000_000_000_000_000;

/// A file that is put together by hand.
pub(crate) struct File(pub(crate) Vec<u8>);

impl File {
    pub(crate) fn new() -> Self {
        let mut file = Self(vec![0; LEAST_BYTES]);
        file.0[..8].copy_from_slice(&MAGIC);
        file.put_half(VERSION_AT, VERSION);
        file.put_half(TICKS_ARE_TSC_AT, 0);
        file.put(BYTES_AT, LEAST_BYTES.try_into().unwrap());
        file.put(TICKS_AT, START);
        file.put(MONOTONIC_AT, START);
        file.put(REALTIME_AT, UTC);
        file
    }

    pub(crate) fn layout() -> Layout {
        Layout::of(LEAST_BYTES).unwrap()
    }

    fn put(&mut self, at: usize, value: u64) {
        self.0[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn put_half(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Enters a name and gives its number.
    fn name(&mut self, number: u16, text: &str) -> u16 {
        let at = Self::layout().name(usize::from(number) - 1).unwrap();
        self.put(at + name::HASH_AT, u64::from(number));
        self.put_half(at + name::LENGTH_AT, text.len().try_into().unwrap());
        self.0[at + name::TEXT_AT..][..text.len()].copy_from_slice(text.as_bytes());
        number
    }

    /// Fills a segment with events of a thread, each with its time after the start.
    fn segment(&mut self, at: usize, (serial, first): (u64, u64), events: &[(Kind, u16, u64)]) {
        let begin = Self::layout().segment(at).unwrap();
        self.put(begin + CLAIM_AT, (3 << 32) | u64::from(State::Open.bits()));
        self.put(begin + SERIAL_AT, serial);
        self.put(begin + FIRST_EVENT_AT, first);
        self.put_half(begin + PROCESS_AT, 7);
        self.put_half(begin + THREAD_AT, u32::try_from(serial).unwrap() + 100);
        for (clock, now) in [
            (segment::TICKS_AT, START),
            (segment::MONOTONIC_AT, START),
            (segment::REALTIME_AT, UTC),
        ] {
            self.put(begin + clock, now);
        }
        for (place, (kind, name, after)) in events.iter().enumerate() {
            let slot = begin + SLOTS_AT + place * slot::BYTES;
            self.put(slot, START + after);
            self.put(slot + slot::TAG_AT, tag(3, *kind, 0, *name));
        }
    }

    fn read(&self) -> Capture {
        read_as("recorder.ring", &self.0, |path| read(path, &ReadLimits::default())).unwrap()
    }
}

/// Two threads with ranges in ranges.
pub(crate) fn ring() -> File {
    let mut file = File::new();
    let (outer, inner) = (file.name(1, "outer"), file.name(2, "inner MY_TOKEN=t0ps3cret"));
    let events = [
        (Kind::Push, outer, 100),
        (Kind::Push, inner, 200),
        (Kind::Pop, 0, 300),
        (Kind::Pop, 0, 400),
    ];
    file.segment(0, (1, 0), &events);
    file.segment(1, (2, 0), &events);
    file
}

fn spans(capture: &Capture) -> Vec<(&str, u64, u64)> {
    let mut spans = crate::capture::spans(&capture.events[&Category::NvtxRange]);
    spans.sort_unstable();
    spans
}

fn lost(capture: &Capture, what: &str) -> u64 {
    let losses = counted(capture).into_iter().filter(|loss| loss.0 == what);
    losses.map(|loss| loss.1).sum()
}

#[test]
fn ranges_of_a_ring_have_their_times_names_and_threads() {
    let capture = ring().read();
    let inner = ("inner MY_TOKEN=[redacted]", 100, 100);
    assert_eq!(spans(&capture), [inner, inner, ("outer", 0, 300), ("outer", 0, 300)]);
    assert_eq!(capture.session_start_utc_ns, Some(UTC + 100));
    assert_eq!(capture.rows.len(), 2);
    assert_eq!(capture.redactions, 1);
    assert_eq!(capture.losses.list(), []);
    assert_eq!(timeline_of(capture).total_events(), 4);
}

#[test]
fn a_gap_ends_what_was_open_before_it_and_is_counted() {
    let mut file = File::new();
    let name = file.name(1, "a");
    file.segment(0, (1, 0), &[(Kind::Push, name, 0), (Kind::Push, name, 50)]);
    // Ten events are missing.
    let behind = [(Kind::Pop, 0, 500), (Kind::Push, name, 600), (Kind::Pop, 0, 700)];
    file.segment(1, (1, 12), &behind);
    file.put(Count::EventsOverwritten.at(), 10);
    let capture = file.read();
    assert_eq!(spans(&capture), [("a", 0, 50), ("a", 50, 0), ("a", 600, 100)]);
    assert_eq!(lost(&capture, "NVTX events that the ring no longer holds"), 10);
    assert_eq!(lost(&capture, "ranges that were open before a gap in the ring"), 2);
    assert_eq!(lost(&capture, "ranges whose begin the ring no longer holds"), 1);
}

#[test]
fn a_range_that_is_open_ends_with_the_last_event() {
    let mut file = File::new();
    let name = file.name(1, "a");
    file.segment(0, (1, 0), &[(Kind::Push, name, 0)]);
    file.segment(1, (2, 0), &[(Kind::Push, name, 10), (Kind::Pop, 0, 90)]);
    let capture = file.read();
    assert_eq!(spans(&capture), [("a", 0, 90), ("a", 10, 80)]);
    assert_eq!(lost(&capture, "ranges that had not ended"), 1);
}

#[test]
fn slots_of_an_earlier_claim_are_of_nobody_and_torn_ones_are_counted() {
    let mut file = File::new();
    let name = file.name(1, "a");
    let events = [(Kind::Push, name, 0), (Kind::Mark, name, 5), (Kind::Pop, 0, 90)];
    file.segment(0, (1, 0), &events);
    let begin = File::layout().segment(0).unwrap() + SLOTS_AT;
    // The second was overwritten by a thread that had lost the segment, and the fourth is left of
    // the claim before.
    file.put(begin + slot::BYTES + slot::TAG_AT, tag(2, Kind::Mark, 0, name));
    file.put(begin + 3 * slot::BYTES + slot::TAG_AT, tag(2, Kind::Push, 0, name));
    let capture = file.read();
    assert_eq!(spans(&capture), [("a", 0, 90)]);
    assert_eq!(lost(&capture, "NVTX events that are not whole"), 1);
    assert_eq!(capture.losses.list().len(), 1);
}

#[test]
fn a_ring_that_is_cut_anywhere_is_refused_or_says_that_it_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.ring");
    let whole = ring().0;
    std::fs::write(&path, &whole).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let layout = File::layout();
    // Every byte of the header and of both segments with events; beyond them one of a page.
    let told = layout.segments_at + 2 * segment::BYTES;
    let ends = (told..whole.len()).rev().step_by(4093);
    let close = (layout.segments_at..told).rev().chain((0..5000).rev());
    for end in ends.chain(close) {
        file.set_len(end.try_into().unwrap()).unwrap();
        match read(&path, &ReadLimits::default()) {
            Ok(capture) => {
                let losses = capture.losses.list();
                assert!(losses.iter().any(Loss::is_of_a_cut_file), "{end}");
                let whole = (end.saturating_sub(layout.segments_at) / segment::BYTES).min(2);
                let ranges = capture.events.get(&Category::NvtxRange).map_or(0, Events::len);
                assert_eq!(ranges, 2 * whole, "{end}");
            }
            Err(error) => assert!(error.to_string().contains("cut.ring") && end < 4096, "{end}: {error}"),
        }
    }
}

#[test]
fn a_ring_of_another_version_or_length_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.ring");
    for (at, value) in [(VERSION_AT, 9_u64), (BYTES_AT, 12_345), (BYTES_AT, u64::MAX)] {
        let mut file = ring();
        file.put(at, value);
        std::fs::write(&path, &file.0).unwrap();
        assert_eq!(detect(&path).unwrap(), Some(Format::Recorder));
        let error = read(&path, &ReadLimits::default()).unwrap_err().to_string();
        assert!(error.contains("other.ring"), "{error}");
    }
}

#[test]
fn the_limits_of_a_reader_bound_a_ring() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.ring");
    std::fs::write(&path, ring().0).unwrap();
    for (what, limits) in [
        ("events", limited(|of| of.max_events = 3)),
        ("threads", limited(|of| of.max_rows = 1)),
        ("bytes of strings", limited(|of| of.max_string_bytes = 4)),
        ("bytes", limited(|of| of.max_text_bytes = 5000)),
    ] {
        let error = read(&path, &limits).unwrap_err().to_string();
        assert!(error.contains(what) && error.contains("large.ring"), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_events_a_thread_wrote_each_is_a_range_or_counted(
        kinds in prop::collection::vec(0_u8..5, 0..SLOTS),
        steps in prop::collection::vec(0_u64..1000, SLOTS),
    ) {
        let mut file = File::new();
        let name = file.name(1, "a");
        let mut now = 0;
        let events: Vec<_> = kinds.iter().zip(&steps).map(|(kind, step)| {
            now += step;
            (Kind::ALL[usize::from(*kind)], name, now)
        }).collect();
        file.segment(0, (1, 0), &events);
        let capture = file.read();
        let ranges = capture.events.get(&Category::NvtxRange).map_or(0, Events::count);
        let counted = |what| lost(&capture, what);
        let halves = counted("ranges that had not ended") + counted("ranges that were open before a gap in the ring");
        // A start without an identifier shares it with all others; what replaces it also ends it.
        let headless = counted("ranges whose begin the ring no longer holds");
        let told = 2 * ranges - halves + headless + counted("NVTX marks");
        prop_assert_eq!(told, u64::try_from(events.len()).unwrap());
    }

    #[test]
    fn rubbish_in_any_place_never_hurts_the_reader(places in prop::collection::vec((0..LEAST_BYTES / 8, any::<u64>()), 1..400)) {
        let mut file = ring();
        for (place, value) in places {
            // The first words say that it is a ring, which is what lets the reader go on.
            if place >= 3 {
                file.put(place * 8, value);
            }
        }
        let capture = file.read();
        timeline_of(capture);
        read_as("recorder.ring", &file.0, recorder::counts).unwrap();
    }
}
