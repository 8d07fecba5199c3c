//! Captures of the corpus as timelines, and analyses of them.

use std::path::Path;

use flopwatch_analysis::catalogue::CATALOGUE;
use flopwatch_analysis::{Definition, Input, Request, ResultType};
use flopwatch_model::Selection;
use flopwatch_model::{Capture, Events, Timeline};
use flopwatch_report::Format;
use flopwatch_trace::transform::{TransformOptions, transform};
use flopwatch_trace::{ReadLimits, read};
use serde_json::Value;

use crate::cases::case;
use crate::nsys;

/// A capture of the corpus; `None`, with the reason printed, where it cannot be read here. Reports
/// of nsys are exported first.
pub(crate) fn timeline(name: &str) -> Option<Timeline> {
    let is_report = [".qdrep", ".nsys-rep"].iter().any(|ending| name.ends_with(ending));
    let (export, path);
    if is_report {
        export = nsys::export(name)?;
        path = export.path();
    } else {
        path = nsys::corpus(name)?;
    }
    Some(timeline_at(&path))
}

/// The capture in a file that the program can read.
pub(crate) fn timeline_at(path: &Path) -> Timeline {
    transformed(read(path, &ReadLimits::default()).unwrap())
}

/// A capture of the cases; `None`, with the reason printed, where they are not there.
pub(crate) fn timeline_of_case(name: &str) -> Option<Timeline> {
    Some(timeline_at(&case(name)?))
}

/// A capture in its published form.
pub(crate) fn transformed(capture: Capture) -> Timeline {
    let options = TransformOptions {
        session_id: "c0ffee00".to_owned(),
    };
    transform(capture, options)
}

/// What `analysis` makes of `timelines` with `parameters`, a JSON object or null.
pub(crate) fn bytes(analysis: &str, parameters: &Value, timelines: &[&Timeline]) -> Vec<u8> {
    let request = Request::parse(analysis, parameters).unwrap();
    let inputs: Vec<Input<'_>> = timelines.iter().map(|timeline| Input::whole(timeline)).collect();
    let mut out = Vec::new();
    request.run(&inputs, &mut out).unwrap();
    out
}

/// The same of an analysis whose result is JSON.
pub(crate) fn analyze(analysis: &str, parameters: &Value, timelines: &[&Timeline]) -> Value {
    serde_json::from_slice(&bytes(analysis, parameters, timelines)).unwrap()
}

/// A page that a browser opens at once.
const MAX_HTML: usize = 5 << 20;

/// One capture of each kind: nsys, Kineto, `XPlane` of GPUs and of TPUs, ncu as CSV and as a
/// report, a profile of memory.
const KINDS: &[&str] = &[
    "nsys-ai/mfu_2gpu_before.sqlite",
    "hta/nccl_parser_config-nccl_data.json.gz",
    "tracelens-jax/jax_conv_minimal_08.xplane.pb",
    "xprof/tpu_inference_2.xplane.pb",
    "nsightful/copy_blocked.csv",
    "mojo-gtx1660ti/mojo_profile.ncu-rep",
    "microjax/memory.prof",
];

fn of_one_capture() -> impl Iterator<Item = &'static Definition> {
    CATALOGUE
        .iter()
        .copied()
        .filter(|definition| definition.inputs.accepts(1))
}

#[test]
fn every_analysis_of_every_kind_of_capture_has_every_format() {
    let mut silent = Vec::new();
    for name in KINDS {
        let Some(timeline) = timeline(name) else {
            continue;
        };
        let analyses = of_one_capture().filter(|definition| matches!(definition.result, ResultType::Json { .. }));
        for definition in analyses {
            for format in definition.formats() {
                let request = Request::of(definition).unwrap().written_as(*format).unwrap();
                let mut out = Vec::new();
                let ran = request.run(&[Input::whole(&timeline)], &mut out);
                assert!(ran.is_ok(), "{} of {name} as {format}: {ran:?}", definition.name);
                assert!(
                    !out.is_empty() || *format == Format::Csv,
                    "{} of {name} as {format}",
                    definition.name
                );
                let is_small = *format != Format::Html || out.len() < MAX_HTML;
                assert!(is_small, "{} of {name}: {} bytes of HTML", definition.name, out.len());
                // What people read says it for every analysis; results with the fields of earlier
                // tools have null.
                if *format == Format::Page && lacks_all_that_it_reads(definition, &timeline) {
                    let result: Value = serde_json::from_slice(&out).unwrap();
                    let says_so = result["page"]["not_captured"]
                        .as_array()
                        .is_some_and(|list| !list.is_empty());
                    if !says_so {
                        silent.push(format!("{} of {name}: {result}", definition.name));
                    }
                }
            }
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

/// Whether an analysis reads events, and the capture holds none of those that it reads, nor
/// counters of kernels, memory or programs for it.
fn lacks_all_that_it_reads(definition: &Definition, timeline: &Timeline) -> bool {
    let (needs, capture) = (&definition.needs, &timeline.capture);
    let Selection::Only(categories) = needs.categories else {
        return false;
    };
    let other = [
        needs.profiles && !capture.profiles.is_empty(),
        needs.counters && !capture.counters.is_empty(),
        needs.allocations && !capture.allocations.is_empty(),
        needs.programs && !capture.programs.is_empty(),
        needs.stacks && capture.stacks.is_some(),
    ];
    !categories.is_empty() && !other.contains(&true) && !categories.iter().any(|of| capture.captured.contains(of))
}

/// A file of another program's format is written of every capture. Counters of kernels and folded
/// stacks may be missing, where there are none.
#[test]
fn every_kind_of_capture_is_written_in_the_formats_of_other_programs() {
    for name in KINDS {
        let Some(timeline) = timeline(name) else {
            continue;
        };
        let events: usize = timeline.capture.events.values().map(Events::len).sum();
        for definition in of_one_capture().filter(|definition| matches!(definition.result, ResultType::File { .. })) {
            let mut out = Vec::new();
            let ran = Request::of(definition)
                .unwrap()
                .run(&[Input::whole(&timeline)], &mut out);
            assert!(ran.is_ok(), "{} of {name}: {ran:?}", definition.name);
            let is_absent = definition.is_absent(i64::try_from(out.len()).unwrap());
            assert_eq!(is_absent, out.is_empty(), "{} of {name}", definition.name);
            if definition.name == "kernel-counters" {
                assert_eq!(is_absent, timeline.capture.profiles.is_empty(), "{name}");
            }
            if definition.media_type() == "text/csv" {
                let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
                assert!(lines.count() > events, "{} of {name}", definition.name);
            }
            if definition.media_type() == "application/json" && !is_absent {
                let told: Value = serde_json::from_slice(&out).unwrap();
                assert!(told.is_object() || told.is_array(), "{} of {name}", definition.name);
            }
        }
    }
}
