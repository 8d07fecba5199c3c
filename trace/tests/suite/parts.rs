//! Parts of a timeline file: what an analysis needs is read, and no more.

use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

use flopwatch_analysis::catalogue::CATALOGUE;
use flopwatch_analysis::{Input, InputCount, Request};
use flopwatch_model::{Category, ColumnId, CounterSeries, KernelProfile, Metric, Timeline};
use flopwatch_model::{Needs, Totals};
use flopwatch_trace::ReadLimits;
use flopwatch_trace::timeline_file::{self, Layout, Part};

use crate::capture::{published, spans};
use crate::export::{Finished, Schema};
use crate::sample::sample;

/// Some of everything: events of most categories, series and profiled launches.
fn timeline() -> (Finished, Timeline) {
    let export = sample(Schema::V2023, true);
    let mut capture = export.read().unwrap();
    capture.add_counters(vec![CounterSeries {
        source: "nvml".to_owned(),
        device: "gpu0".to_owned(),
        metric: "power_watts".to_owned(),
        unit: "W".to_owned(),
        t_ns: vec![0, 100, 200],
        value: vec![1.5, -2.0, f64::MAX],
    }]);
    let duration = Metric {
        value: 1.5.into(),
        unit: "us".to_owned(),
    };
    capture.profiles = vec![KernelProfile {
        name: "gemm".to_owned(),
        metrics: [("gpu__time_duration.sum".to_owned(), duration)].into(),
        ..KernelProfile::default()
    }];
    (export, published(capture))
}

fn read_for(export: &Finished, timeline: &Timeline, needs: &Needs) -> Part {
    let path = export.beside("part.h5");
    timeline_file::write(timeline, &path).unwrap();
    timeline_file::read_for(&path, &ReadLimits::default(), needs).unwrap()
}

#[test]
fn a_file_without_a_name_is_written_and_read_as_any_other() {
    let (export, timeline) = timeline();
    let named = export.beside("named.h5");
    timeline_file::write(&timeline, &named).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&vec![7; 1 << 20]).unwrap();
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    timeline_file::overwrite(&timeline, &path).unwrap();
    assert!(
        std::fs::read(&path).unwrap() == std::fs::read(&named).unwrap(),
        "nothing is left of what was there"
    );
    assert!(timeline_file::is_one(&path));
    assert_eq!(Layout::of(&path).unwrap(), Layout::of(&named).unwrap());
    let read = |path| timeline_file::read(path, &ReadLimits::default()).unwrap();
    assert_eq!(read(&path), read(&named));
}

#[test]
fn everything_is_the_timeline_without_what_is_derived_of_it() {
    let (export, timeline) = timeline();
    let part = read_for(&export, &timeline, &Needs::EVERYTHING);
    assert_eq!(part.totals, Totals::of(&timeline));
    let bare = Timeline {
        lod: [].into(),
        figures: [].into(),
        ..timeline
    };
    assert_eq!(part.timeline, bare);
}

#[test]
fn groups_are_told_where_something_is_in_them() {
    let (export, timeline) = timeline();
    let path = export.beside("groups.h5");
    timeline_file::write(&timeline, &path).unwrap();
    let filled = |path| timeline_file::filled_groups(path, &["counters", "programs", "profiles", "none"]).unwrap();
    assert_eq!(filled(&path), ["counters", "profiles"]);
    let mut bare = timeline;
    bare.capture.counters.clear();
    bare.capture.profiles.clear();
    timeline_file::overwrite(&bare, &path).unwrap();
    assert_eq!(filled(&path), [""; 0], "an empty group of series is always there");
}

#[test]
fn of_a_part_the_rest_is_empty_and_counted() {
    let (export, timeline) = timeline();
    let needs = Needs::of(&[Category::CudaKernel]).columns(&[ColumnId::GridX]).names();
    let Part { timeline: part, totals } = read_for(&export, &timeline, &needs);
    assert_eq!(totals, Totals::of(&timeline));
    assert_eq!(part.capture.captured, timeline.capture.captured);
    assert_eq!(part.capture.events.keys().collect::<Vec<_>>(), [&Category::CudaKernel]);
    let kernels = |of: &Timeline| of.capture.events[&Category::CudaKernel].clone();
    let (kernels, whole) = (kernels(&part), kernels(&timeline));
    assert_eq!(spans(&kernels), spans(&whole));
    assert_eq!(kernels.names, whole.names);
    assert_eq!(kernels.columns.len(), 1);
    assert_eq!(kernels.column(ColumnId::GridX), whole.column(ColumnId::GridX));
    assert!(kernels.row.is_empty() && kernels.lane.is_empty() && kernels.correlation.is_empty());
    assert!(part.capture.rows.is_empty() && part.capture.counters.is_empty() && part.capture.profiles.is_empty());
}

#[test]
fn what_was_not_asked_for_is_not_opened() {
    let (export, timeline) = timeline();
    let path = export.beside("holes.h5");
    timeline_file::write(&timeline, &path).unwrap();
    let file = crate::export::unlocked().open_rw(&path).unwrap();
    for hole in [
        "cuda_kernel/grid_x",
        "cuda_kernel/lane",
        "cuda_api/duration_ns",
        "names/cuda_api",
        "lod",
        "tiles",
    ] {
        file.unlink(hole).unwrap();
    }
    file.close().unwrap();
    let limits = ReadLimits::default();
    timeline_file::read(&path, &limits).unwrap_err();
    let request = Request::parse("kernels-per-stream", &serde_json::Value::Null).unwrap();
    let part = timeline_file::read_for(&path, &limits, &request.definition().needs).unwrap();
    let run = |input: Input<'_>| {
        let mut bytes = Vec::new();
        request.run(&[input], &mut bytes).unwrap();
        bytes
    };
    let Part { timeline: read, totals } = &part;
    let of_part = run(Input {
        timeline: read,
        totals: *totals,
    });
    assert_eq!(of_part, run(Input::whole(&timeline)));
}

/// The other half: an analysis that reads more than it says gives another result on a file than on
/// a whole timeline.
#[test]
fn every_analysis_gives_the_same_bytes_and_counts_on_what_it_needs_as_on_everything() {
    let (export, timeline) = timeline();
    for definition in CATALOGUE {
        let request = Request::of(definition).unwrap();
        let part = read_for(&export, &timeline, &definition.needs);
        let run = |input: Input<'_>| {
            let inputs = [input, input];
            let count = if definition.inputs == InputCount::One { 1 } else { 2 };
            let mut bytes = Vec::new();
            let report = request.run(&inputs[..count], &mut bytes).unwrap();
            // One of no bytes says that the capture holds nothing of the kind: here that is a
            // compiled program.
            assert!(!bytes.is_empty() || definition.is_absent(0), "{}", definition.name);
            (bytes, report)
        };
        let of_part = run(Input {
            timeline: &part.timeline,
            totals: part.totals,
        });
        assert!(of_part == run(Input::whole(&timeline)), "{}", definition.name);
    }
}
