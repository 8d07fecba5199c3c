//! Columns that only some sources fill: kept by every reader that finds them, by the transform and
//! by the file.

mod kineto;
mod nsys;

use flopwatch_analysis::export::{ExportFormat, Table};
use flopwatch_model::{Capture, Category, ColumnId, Event, Events, Row, Timeline, Track};
use flopwatch_trace::{ReadLimits, timeline_file};
use proptest::prelude::*;

use self::kineto::OPERATORS;
use self::nsys::{STRINGS, export, kernels};
use crate::capture::timeline_of;
use crate::export::{Export, Schema};
use crate::kineto::{document, read_text};
use crate::properties::with_ties_in_order;

pub(crate) fn numbers(events: &Events, id: ColumnId) -> Option<Vec<u64>> {
    let values = events.column(id)?;
    (0..values.len()).map(|at| values.get(at)).collect()
}

pub(crate) fn texts(events: &Events, id: ColumnId) -> Vec<Option<&str>> {
    (0..events.len()).map(|at| events.text(id, at)).collect()
}

/// Writes a timeline and reads it back: nothing is lost.
pub(crate) fn through_a_file(timeline: &Timeline) -> Timeline {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.h5");
    timeline_file::write(timeline, &path).unwrap();
    let read = timeline_file::read(&path, &ReadLimits::default()).unwrap();
    assert_eq!(&read, timeline);
    read
}

#[test]
fn a_table_of_events_has_them_behind_its_other_columns() {
    let csv = |timeline: &Timeline| {
        let mut bytes = Vec::new();
        flopwatch_analysis::export::export(timeline, ExportFormat::Csv, Table::Events, &mut bytes).unwrap();
        let mut reader = csv::Reader::from_reader(bytes.as_slice());
        let heads: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let lines: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        (heads, lines)
    };
    let plain = Export::new(Schema::V2023, STRINGS).table("CUPTI_ACTIVITY_KIND_KERNEL", &kernels());
    let (heads, _) = csv(&plain.finish().timeline());
    assert_eq!((heads.len(), heads.last().map(String::as_str)), (36, Some("flops")));
    let (heads, lines) = csv(&timeline_of(read_text(&document(OPERATORS)).unwrap()));
    let at = |name: &str| heads.iter().position(|head| head == name).unwrap();
    let cell = |line: usize, name: &str| lines[line].get(at(name)).unwrap();
    assert!(at("input_shapes") > 35 && at("blocks_per_sm_milli") > 35);
    // Kernels come first, copies and memsets then, operators last.
    assert_eq!([0, 1].map(|line| cell(line, "blocks_per_sm_milli")), ["", "2370"]);
    assert_eq!([0, 1].map(|line| cell(line, "collective")), ["allreduce", ""]);
    assert_eq!([4, 5].map(|line| cell(line, "input_shapes")), ["[[64,3,7,7],[]]", ""]);
}

/// Events of a category with a column of texts, whose list is in any order and says some texts
/// twice.
fn any_texts() -> impl Strategy<Value = Vec<(u64, u32, u64)>> {
    prop::collection::vec((0..20_u64, 0..6_u32, 0..3_u64), 0..60)
}

fn with_texts(all: &[(u64, u32, u64)]) -> Timeline {
    let mut events = Events::new(Category::CpuOp);
    events.names = vec!["op".to_owned()];
    let place = events.add_column(ColumnId::InputShapes);
    let texts = ["[[2]]", "[]", "[[1]]", "[]", "never said"].map(str::to_owned);
    events.columns[place].texts.extend(texts);
    for (start_ns, text, external) in all.iter().copied() {
        let event = Event {
            start_ns,
            ..Event::default()
        };
        // Only four of the five are said, and none.
        events.push(event, &[external, ColumnId::NO_SEQUENCE, u64::from(text.min(4))]);
    }
    let row = Row {
        thread: Some(1),
        ..Row::of(1, Track::CpuOp)
    };
    let capture = Capture {
        events: [(Category::CpuOp, events)].into(),
        rows: vec![row],
        ..Capture::default()
    };
    timeline_of(capture)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn texts_stay_with_their_events_in_any_order_of_the_input(
        (all, shuffled) in any_texts().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle()))
    ) {
        let timeline = with_texts(&all);
        let shuffled = with_ties_in_order(&all, &shuffled, |of| of.0);
        prop_assert_eq!(&timeline, &with_texts(&shuffled));
        let Some(events) = timeline.capture.events.get(&Category::CpuOp) else {
            prop_assert!(all.is_empty());
            return Ok(());
        };
        let column = events.columns.iter().find(|column| column.id == ColumnId::InputShapes).unwrap();
        prop_assert_eq!(&column.texts[0], "");
        prop_assert!(column.texts.is_sorted_by(|a, b| a < b), "{:?}", column.texts);
        let list = [None, Some("[[2]]"), Some("[]"), Some("[[1]]"), Some("[]")];
        let message = |(start, text, external): (u64, u32, u64)| {
            (start, external, list[usize::try_from(text.min(4)).unwrap()].map(str::to_owned))
        };
        let mut expected: Vec<_> = all.iter().copied().map(message).collect();
        let external = numbers(events, ColumnId::ExternalId).unwrap();
        let text = |at| events.text(ColumnId::InputShapes, at).map(str::to_owned);
        let mut found: Vec<_> = (0..events.len()).map(|at| (events.start_ns[at], external[at], text(at))).collect();
        expected.sort();
        found.sort();
        prop_assert_eq!(found, expected);
        through_a_file(&timeline);
    }
}

#[test]
fn a_column_in_which_nothing_is_said_is_not_there() {
    let timeline = export(0).timeline();
    let calls = &timeline.capture.events[&Category::CudaApi];
    assert_eq!(calls.column(ColumnId::ReturnValue), None);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.h5");
    timeline_file::write(&timeline, &path).unwrap();
    let file = hdf5::File::open(&path).unwrap();
    assert!(!file.link_exists("cuda_api/return_value") && !file.link_exists("names/cuda_api.short_name"));
    assert!(file.link_exists("names/cuda_kernel.short_name") && file.link_exists("names/nvtx_range.range_category"));
}

#[test]
fn a_damaged_list_of_texts_is_refused() {
    let timeline = export(0).timeline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.h5");
    let list = "names/nvtx_range.range_category";
    let forged: [(&[&str], &str); 4] = [
        (&["", "5"], "an event refers to a text that is not there"),
        (&["a", "b", "c"], "the first text is not empty"),
        (&["", "b", "a"], "not sorted, each text once"),
        (&[], "the first text is not empty"),
    ];
    // A file without the list, and what is said of it.
    let without = || {
        timeline_file::write(&timeline, &path).unwrap();
        let file = hdf5::File::open_rw(&path).unwrap();
        file.unlink(list).unwrap();
        file
    };
    let refusal = |file: hdf5::File| {
        file.close().unwrap();
        let read = timeline_file::read(&path, &ReadLimits::default());
        read.unwrap_err().to_string()
    };
    for (texts, reason) in forged {
        let file = without();
        let texts: Vec<hdf5::types::VarLenUnicode> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let builder = file.new_dataset_builder();
        if texts.is_empty() {
            let builder = builder.empty::<hdf5::types::VarLenUnicode>();
            builder.shape(0).create(list).unwrap();
        } else {
            builder.chunk(texts.len()).with_data(&texts).create(list).unwrap();
        }
        let error = refusal(file);
        assert!(error.contains(list) && error.contains(reason), "{error}");
    }
    let error = refusal(without());
    assert!(error.contains("has no dataset nvtx_range.range_category"), "{error}");
}
