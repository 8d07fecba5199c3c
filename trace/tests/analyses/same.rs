//! What must change no figure changes none: when a capture began, what its streams are called, the
//! order of its events in the file, whether it was taken in one piece, and whether it was a trace
//! of our own meanwhile. Of random programs and of captures of the corpus.

mod change;
mod figures;
mod program;

use std::fs::File;
use std::io::Read;

use flate2::read::GzDecoder;
use flopwatch_analysis::export::{ExportFormat, Table, export};
use flopwatch_model::{Capture, Timeline};
use flopwatch_trace::{ReadLimits, read};
use proptest::prelude::*;

use crate::captures::transformed;
use crate::nsys::corpus;
use figures::Figures;
use program::{capture_of, program};

/// Programs that every analysis is made of several times. Those of which the timeline alone is
/// made are as many as proptest tries without being told.
const CASES: u32 = 24;
/// How much later a capture begins, in ns: nothing that bins of any width hide.
const LATER: u64 = 1_000_003;
/// Behind the end of every random program, in ns.
const NEXT: u64 = 1_000;

/// Small captures of several sources: Kineto with collectives, with Python functions, with waits
/// for events, without launches of most work; Nsight Systems with calls of the operating system.
const CAPTURES: [&str; 5] = [
    "hta/trace_filter-sampled_rank-0.json.gz",
    "tracelens-h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "hta/cuda_event_sync-event_sync_trace.json.gz",
    "hta/trace_compare-base-base.json.gz",
    "pipit-nsys/saxpy-mpi-cuda_nsys_perlmutter0.sqlite",
];

/// Captures in which all threads and GPUs do nothing for a moment.
const WITH_A_PAUSE: [&str; 4] = [
    "hta/trace_filter-sampled_rank-0.json.gz",
    "nsys-ai/mfu_2gpu_before.sqlite",
    "nsightful/power_iteration__baseline.json.gz",
    "pipit-nsys/saxpy-mpi-cuda_nsys_perlmutter0.sqlite",
];

/// Traces of the Chrome format, compressed.
const TRACES: [&str; 2] = [
    "hta/trace_filter-sampled_rank-0.json.gz",
    "tracelens-h100/gaunernst_bert-small-uncased__1016001.json.gz",
];

/// A capture of the corpus as its reader gives it; `None`, with the reason printed, where it is
/// not here.
fn taken(name: &str) -> Option<Capture> {
    let path = corpus(name)?;
    Some(read(&path, &ReadLimits::default()).unwrap())
}

/// The capture in two pieces that were taken one after the other, as one again; `None` where it
/// has no moment without events.
fn in_two_pieces(whole: &Capture) -> Option<Capture> {
    let pause = change::pause(whole)?;
    let [first, second] = change::cut(whole, pause);
    Some(Capture::merge(vec![second, first]).unwrap())
}

/// The timeline of a trace of the Chrome format.
fn of_trace(text: &[u8]) -> Timeline {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    std::fs::write(&path, text).unwrap();
    transformed(read(&path, &ReadLimits::default()).unwrap())
}

/// The timeline as a Chrome trace of ours, read again.
fn by_way_of_chrome(timeline: &Timeline) -> Timeline {
    let mut text = Vec::new();
    export(timeline, ExportFormat::Chrome, Table::Events, &mut text).unwrap();
    of_trace(&text)
}

/// What the figures of a capture say where it begins later.
fn moved(figures: Figures) -> Figures {
    figures.renamed(|field, number| figures::is_moment(field).then_some(number + LATER))
}

/// What the figures of a capture say where its streams have their other names.
fn with_other_streams(figures: Figures) -> Figures {
    let is_stream = |field: &str| field == "stream" || field.ends_with("_stream");
    figures.renamed(|field, number| is_stream(field).then(|| change::other_stream(number)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn when_a_program_began_changes_moments_alone(program in program()) {
        let capture = capture_of(&[(&program, 0)]);
        let later = Figures::of(&transformed(change::later(capture.clone(), LATER)));
        prop_assert_eq!(later.difference(&moved(Figures::of(&transformed(capture)))), None);
    }

    #[test]
    fn the_names_of_streams_change_names_alone(program in program()) {
        let capture = capture_of(&[(&program, 0)]);
        let renamed = Figures::of(&transformed(change::with_other_streams(capture.clone())));
        prop_assert_eq!(renamed.difference(&with_other_streams(Figures::of(&transformed(capture)))), None);
    }

    #[test]
    fn a_trace_of_ours_has_the_figures_of_the_program(program in program()) {
        let timeline = transformed(capture_of(&[(&program, 0)]));
        let again = Figures::of_exports(&by_way_of_chrome(&timeline));
        prop_assert_eq!(again.difference(&Figures::of_exports(&timeline)), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_program_that_was_taken_in_two_pieces_is_the_same_timeline(first in program(), second in program()) {
        let whole = change::dated(capture_of(&[(&first, 0), (&second, NEXT)]));
        let pieces = change::cut(&whole, NEXT);
        let merged = Capture::merge(pieces.into()).unwrap();
        prop_assert!(transformed(merged) == transformed(whole));
    }

    #[test]
    fn the_order_in_the_file_of_what_is_not_of_one_time_and_row_changes_nothing(program in program(), seed in any::<u64>()) {
        let capture = capture_of(&[(&program, 0)]);
        let shuffled = change::shuffled(&capture, seed);
        prop_assert!(transformed(shuffled) == transformed(capture));
    }
}

#[test]
fn when_a_capture_began_changes_moments_alone() {
    for name in CAPTURES {
        let Some(capture) = taken(name) else { continue };
        let later = Figures::of(&transformed(change::later(capture.clone(), LATER)));
        let expected = moved(Figures::of(&transformed(capture)));
        assert_eq!(later.difference(&expected), None, "{name}");
    }
}

#[test]
fn the_names_of_streams_of_a_capture_change_names_alone() {
    for name in CAPTURES {
        let Some(capture) = taken(name) else { continue };
        let renamed = Figures::of(&transformed(change::with_other_streams(capture.clone())));
        let expected = with_other_streams(Figures::of(&transformed(capture)));
        assert_eq!(renamed.difference(&expected), None, "{name}");
    }
}

#[test]
fn a_trace_of_ours_has_the_figures_of_the_capture() {
    for name in CAPTURES {
        let Some(capture) = taken(name) else { continue };
        let timeline = transformed(capture);
        let again = Figures::of_exports(&by_way_of_chrome(&timeline));
        assert_eq!(again.difference(&Figures::of_exports(&timeline)), None, "{name}");
    }
}

#[test]
fn a_capture_that_was_taken_in_two_pieces_is_the_same_timeline() {
    for name in WITH_A_PAUSE {
        let Some(capture) = taken(name) else { continue };
        let whole = change::dated(change::without_windows(capture));
        let merged = in_two_pieces(&whole);
        let merged = merged.unwrap_or_else(|| panic!("{name} has no moment without events"));
        assert!(transformed(merged) == transformed(whole), "{name}");
    }
}

#[test]
fn the_order_in_the_file_of_what_is_not_of_one_time_and_row_changes_no_timeline() {
    for name in CAPTURES.into_iter().chain(WITH_A_PAUSE) {
        let Some(capture) = taken(name) else { continue };
        let shuffled = change::shuffled(&capture, 38);
        assert!(transformed(shuffled) == transformed(capture), "{name}");
    }
}

#[test]
fn the_order_of_a_trace_but_of_what_is_of_one_time_and_thread_changes_no_timeline() {
    for name in TRACES {
        let Some(path) = corpus(name) else { continue };
        let mut text = Vec::new();
        let mut file = GzDecoder::new(File::open(path).unwrap());
        file.read_to_end(&mut text).unwrap();
        let shuffled = change::shuffled_trace(&text, 38);
        assert!(of_trace(&shuffled) == of_trace(&text), "{name}");
    }
}
