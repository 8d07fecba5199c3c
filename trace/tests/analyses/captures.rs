//! Captures of the corpus as timelines, and analyses of them.

use std::path::Path;

use flopwatch_analysis::catalogue::CATALOGUE;
use flopwatch_analysis::{Format, Input, Request, ResultType};
use flopwatch_trace::model::Timeline;
use flopwatch_trace::transform::{TransformOptions, transform};
use flopwatch_trace::{ReadLimits, read};
use serde_json::Value;

use crate::nsys;

/// A capture of the corpus; `None`, with the reason printed, where it cannot be read here. Reports of nsys are exported first.
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
    let capture = read(path, &ReadLimits::default()).unwrap();
    let options = TransformOptions {
        session_id: "c0ffee00".to_owned(),
    };
    transform(capture, options)
}

/// The JSON that `analysis` makes of `timelines` with `parameters`, a JSON object or null.
pub(crate) fn analyze(analysis: &str, parameters: &Value, timelines: &[&Timeline]) -> Value {
    let request = Request::parse(analysis, parameters).unwrap();
    let inputs: Vec<Input<'_>> = timelines.iter().map(|timeline| Input::whole(timeline)).collect();
    let mut out = Vec::new();
    request.run(&inputs, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

/// A page that a browser opens at once.
const MOST_HTML: usize = 5 << 20;

/// One capture of each kind: nsys, Kineto, `XPlane` and ncu.
const KINDS: &[&str] = &[
    "nsys-ai/mfu_2gpu_before.sqlite",
    "hta/nccl_parser_config-nccl_data.json.gz",
    "tracelens-jax/jax_conv_minimal_08.xplane.pb",
    "nsightful/copy_blocked.csv",
];

#[test]
fn every_analysis_of_every_kind_of_capture_has_every_format() {
    for name in KINDS {
        let Some(timeline) = timeline(name) else {
            continue;
        };
        let analyses = CATALOGUE
            .iter()
            .filter(|definition| definition.inputs.accepts(1) && matches!(definition.result, ResultType::Json { .. }));
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
                let is_small = *format != Format::Html || out.len() < MOST_HTML;
                assert!(is_small, "{} of {name}: {} bytes of HTML", definition.name, out.len());
            }
        }
    }
}
