//! Operators of one time: traces of whole microseconds are full of them, and only the order of the
//! file tells which is inside which.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;
use flopwatch_model::{Category, ColumnId, EventId, RowId};
use flopwatch_trace::{ReadLimits, read};
use serde_json::Value;

use crate::capture::{names, timeline_of};
use crate::kineto::{document, read_text};
use crate::nsys::corpus;

#[test]
fn an_operator_of_the_same_time_as_the_one_around_it_stays_inside() {
    let events = r#"
        {"ph": "X", "cat": "cpu_op", "name": "aten::zeros", "pid": 1, "tid": 1, "ts": 10, "dur": 3},
        {"ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 1, "tid": 1, "ts": 10, "dur": 3},
        {"ph": "X", "cat": "cpu_op", "name": "aten::_unsafe_view", "pid": 1, "tid": 1, "ts": 10, "dur": 3}"#;
    let timeline = timeline_of(read_text(&document(events)).unwrap());
    let operators = &timeline.capture.events[&Category::CpuOp];
    assert_eq!(names(operators), ["aten::zeros", "aten::empty", "aten::_unsafe_view"]);
    let parents = operators.parents(|_| true);
    let parents: Vec<Option<u32>> = parents.iter().map(|parent| parent.map(EventId::number)).collect();
    assert_eq!(parents, [None, Some(0), Some(1)]);
}

/// Thread, start and length of an operator, as the file writes them.
type Time = (String, String, String);

/// External ids of the operators of each thread and time, in the order of the file.
fn ids_of_file(text: &str) -> BTreeMap<Time, Vec<u64>> {
    let trace: Value = serde_json::from_str(text).unwrap();
    let mut ties: BTreeMap<Time, Vec<u64>> = BTreeMap::new();
    for event in trace["traceEvents"].as_array().unwrap() {
        let is_operator = event["ph"] == "X" && event["cat"] == "cpu_op";
        let is_step = |name: &str| name.starts_with("ProfilerStep#");
        if is_operator && !event["name"].as_str().is_some_and(is_step) {
            let time = ["tid", "ts", "dur"].map(|member| event[member].to_string());
            let id = event["args"]["External id"].as_u64().unwrap();
            ties.entry(time.into()).or_default().push(id);
        }
    }
    ties.retain(|_, ids| ids.len() > 1);
    ties
}

/// 1,358 pairs of operators of this capture have equal times; by their names 390 of them were the
/// other way around.
#[test]
fn operators_of_one_time_nest_as_the_file_has_them_in_a_capture_of_whole_microseconds() {
    let Some(path) = corpus("hta/trace_diff-control-control.json.gz") else {
        return;
    };
    let mut text = String::new();
    let file = std::fs::File::open(&path).unwrap();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let expected = ids_of_file(&text);
    let pairs: usize = expected.values().map(|ids| ids.len() - 1).sum();
    assert_eq!(pairs, 1358);
    let timeline = timeline_of(read(&path, &ReadLimits::default()).unwrap());
    let operators = &timeline.capture.events[&Category::CpuOp];
    let ids = operators.column(ColumnId::ExternalId).unwrap();
    let time = |at: usize| (operators.row[at], operators.start_ns[at], operators.duration_ns[at]);
    let mut found: BTreeMap<(RowId, u64, u64), Vec<u64>> = BTreeMap::new();
    for at in 0..operators.len() {
        found.entry(time(at)).or_default().push(ids.get(at).unwrap());
    }
    let several = found.into_values().filter(|ids| ids.len() > 1);
    let (mut found, mut expected): (Vec<_>, Vec<_>) = (several.collect(), expected.into_values().collect());
    found.sort();
    expected.sort();
    assert!(found == expected, "{} and {} times", found.len(), expected.len());
}
