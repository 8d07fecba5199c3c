//! Captures of the corpus as timelines, and analyses of them.

use std::path::Path;

use flopwatch_analysis::{Input, Request};
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

#[test]
fn every_table_of_the_catalogue_can_be_made_of_a_real_capture() {
    let Some(timeline) = timeline("nsys-ai/mfu_2gpu_before.sqlite") else {
        return;
    };
    let streams = analyze("kernels-per-stream", &Value::Null, &[&timeline]);
    assert_eq!(streams["captured"], true);
    assert!(!streams["rows"].as_array().unwrap().is_empty());
}
