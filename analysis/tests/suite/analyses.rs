//! Analyses on captures made by hand, whose figures one can add up in one's head.

#![allow(
    clippy::unwrap_used,
    reason = "a test fails by panicking; helpers are outside of #[test] functions"
)]

use flopwatch_analysis::{AnalysisError, Input, Request};
use flopwatch_model::{Capture, Category, Event, Events, NameId, Row, RowId, Timeline, Track};
use serde_json::{Value, json};

/// Kernels as a timeline holds them: name, row, start and length, in the order of their starts.
fn kernels(list: &[(&str, u32, u64, u64)]) -> Timeline {
    let mut events = Events::new(Category::CudaKernel);
    for (name, row, start_ns, duration_ns) in list {
        let at = events.names.iter().position(|known| known == name).unwrap_or_else(|| {
            events.names.push((*name).to_owned());
            events.names.len() - 1
        });
        let event = Event {
            start_ns: *start_ns,
            duration_ns: *duration_ns,
            row: RowId::new(*row),
            name: NameId::from_index(at).unwrap(),
            ..Event::default()
        };
        events.push(event, &[]);
    }
    let stream = |device, stream| Row {
        device: Some(device),
        context: Some(1),
        stream: Some(stream),
        ..Row::of(1, Track::GpuStream)
    };
    let captured = [Category::CudaKernel].into();
    let events = [(Category::CudaKernel, events)].into();
    Timeline {
        capture: Capture {
            captured,
            events,
            rows: vec![stream(0, 7), stream(0, 8), stream(1, 7)],
            ..Capture::default()
        },
        ..Timeline::default()
    }
}

fn run(name: &str, parameters: &Value, timelines: &[&Timeline]) -> Result<Value, AnalysisError> {
    let request = Request::parse(name, parameters).unwrap();
    let inputs: Vec<Input<'_>> = timelines.iter().map(|timeline| Input::whole(timeline)).collect();
    let mut bytes = Vec::new();
    request.run(&inputs, &mut bytes)?;
    Ok(serde_json::from_slice(&bytes).unwrap())
}

#[test]
fn streams_count_overlap_once_and_keep_devices_apart() {
    let timeline = kernels(&[
        ("a", 0, 0, 100),
        ("b", 0, 50, 100),
        ("a", 2, 60, 5),
        ("a", 0, 70, 10),
        ("a", 0, 200, 1),
    ]);
    let rows = run("kernels-per-stream", &json!({}), &[&timeline]).unwrap()["rows"].clone();
    let row = |device, launches, busy_ns, distinct| json!({"process": 1, "device": device, "context": 1, "stream": 7, "launches": launches, "busy_ns": busy_ns, "distinct_kernels": distinct});
    assert_eq!(rows, json!([row(0, 4, 151, 2), row(1, 1, 5, 1)]));
}

#[test]
fn no_kernels_are_not_the_same_as_kernels_that_were_not_recorded() {
    let nothing = Timeline::default();
    let none = kernels(&[]);
    for (timeline, captured) in [(&nothing, false), (&none, true)] {
        let streams = run("kernels-per-stream", &json!({}), &[timeline]).unwrap();
        let changes = run("kernel-changes", &json!({}), &[timeline, &none]).unwrap();
        for (result, what) in [(streams, "what streams ran"), (changes, "kernels before")] {
            assert_eq!(result["rows"], json!([]));
            let missing: Vec<&Value> = result["not_captured"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| &one["what"])
                .collect();
            assert_eq!(missing, if captured { vec![] } else { vec![what] });
        }
    }
}

#[test]
fn changes_are_in_the_order_of_their_size_and_say_what_is_new_and_gone() {
    let before = kernels(&[
        ("same", 0, 0, 10),
        ("gone", 0, 20, 30),
        ("slow", 0, 60, 100),
        ("slow", 0, 200, 50),
    ]);
    let after = kernels(&[("same", 0, 0, 10), ("slow", 0, 60, 400), ("new", 1, 500, 20)]);
    let changes = run("kernel-changes", &json!({}), &[&before, &after]).unwrap();
    let told = |key: &str| -> Vec<Value> {
        let rows = changes["rows"].as_array().unwrap();
        rows.iter().map(|row| row[key].clone()).collect()
    };
    assert_eq!(told("name"), ["slow", "gone", "new", "same"]);
    assert_eq!(told("presence"), ["both", "before", "after", "both"]);
    assert_eq!(told("difference_ns"), [250, -30, 20, 0]);
    assert_eq!(
        told("before_mean_ns"),
        [json!(75.0), json!(30.0), json!(null), json!(10.0)]
    );
    assert_eq!(told("after_launches"), [1, 0, 1, 1]);
    // slow: one launch less of 75 ns, and one that took 325 ns longer.
    assert_eq!(told("count_part_ns"), [-75, -30, 20, 0]);
    assert_eq!(told("duration_part_ns"), [325, 0, 0, 0]);
    assert_eq!(
        (&changes["before_total_ns"], &changes["after_total_ns"]),
        (&json!(190), &json!(430))
    );
    // The other way round every difference has the other sign.
    let back = run("kernel-changes", &json!({"name_contains": "o"}), &[&after, &before]).unwrap();
    let rows = back["rows"].as_array().unwrap();
    assert_eq!(
        rows.iter().map(|row| row["difference_ns"].clone()).collect::<Vec<_>>(),
        [-250, 30]
    );
    assert_eq!(back["kernels"], 2);
}

#[test]
fn as_many_captures_are_taken_as_an_analysis_is_made_of() {
    let one = kernels(&[]);
    for (name, count, wanted) in [
        ("kernels-per-stream", 2, "one capture"),
        ("kernel-changes", 1, "two captures"),
        ("summary", 0, "one capture"),
    ] {
        let error = run(name, &json!({}), &vec![&one; count]).unwrap_err().to_string();
        assert!(error.contains(wanted) && error.contains(name), "{error}");
    }
}
