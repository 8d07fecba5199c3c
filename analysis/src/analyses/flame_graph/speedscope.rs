//! The file format of speedscope: <https://www.speedscope.app/file-format-schema.json>.

use std::convert::Infallible;
use std::io::Write;

use flopwatch_measures::flame::{Flame, FlameWeight, Side};
use serde::Serialize;

use crate::definition::AnalysisError;

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    shared: Shared<'a>,
    profiles: [Profile; 1],
    name: &'a str,
    #[serde(rename = "activeProfileIndex")]
    active_profile_index: u32,
    exporter: &'static str,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: Vec<Vec<u32>>,
    weights: Vec<u64>,
}

pub(super) fn write(flame: &Flame, name: &str, weight: FlameWeight, out: &mut dyn Write) -> Result<(), AnalysisError> {
    let frames = flame.frames.iter().map(|frame| {
        let (file, line) = frame.source().unzip();
        let name = frame.name.as_str();
        Frame { name, file, line }
    });
    let (mut samples, mut weights) = (Vec::new(), Vec::new());
    let Ok(()) = flame.stacks(|stack, row| {
        let rows = stack.iter().filter_map(|at| flame.rows.get(*at));
        samples.push(rows.map(|row| row.frame).collect());
        weights.push(Side::Before.of(row.own_ns));
        Ok::<(), Infallible>(())
    });
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        shared: Shared {
            frames: frames.collect(),
        },
        profiles: [Profile {
            kind: "sampled",
            name: match weight {
                FlameWeight::Gpu => "GPU time",
                FlameWeight::Cpu => "CPU time",
                FlameWeight::Samples => "CPU samples",
            },
            unit: match weight {
                FlameWeight::Gpu | FlameWeight::Cpu => "nanoseconds",
                FlameWeight::Samples => "none",
            },
            start_value: 0,
            end_value: weights.iter().copied().fold(0, u64::saturating_add),
            samples,
            weights,
        }],
        name,
        active_profile_index: 0,
        exporter: concat!("flopwatch ", env!("CARGO_PKG_VERSION")),
    };
    serde_json::to_writer(out, &file).map_err(AnalysisError::Json)
}
