//! Counters of launches that a kernel profiler measured, as JSON: all of them under the profiler's own names, and beside them the
//! figures that most ask for, in one unit each.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};

use serde::Serialize;

use super::{ExportError, Exported, MOST_LAUNCHES};
use crate::measures::kernel_figures::Figures;
use crate::model::{KernelProfile, Metric, MetricValue, Timeline};

/// Writes nothing at all where the capture has no such launch.
pub(super) fn write<W: Write>(timeline: &Timeline, out: W) -> Result<Exported, ExportError> {
    let capture = &timeline.capture;
    let mut exported = Exported::default();
    if capture.profiles.is_empty() {
        return Ok(exported);
    }
    let kernels: Vec<Kernel<'_>> = capture.profiles.iter().take(MOST_LAUNCHES).map(Kernel::of).collect();
    exported.profiles = u64::try_from(kernels.len()).unwrap_or(u64::MAX);
    let document = Document {
        session_id: &timeline.session_id,
        tool: &capture.source.tool,
        tool_version: &capture.source.tool_version,
        total_kernels: capture.profiles.len(),
        kernels,
    };
    let mut out = BufWriter::new(out);
    serde_json::to_writer(&mut out, &document)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(exported)
}

#[derive(Serialize)]
struct Document<'a> {
    session_id: &'a str,
    tool: &'a str,
    tool_version: &'a str,
    /// Launches in the capture, in the document or not.
    total_kernels: usize,
    kernels: Vec<Kernel<'a>>,
}

#[derive(Serialize)]
struct Kernel<'a> {
    id: u64,
    name: &'a str,
    process: u32,
    device: u32,
    context: u64,
    stream: u64,
    grid: [u32; 3],
    block: [u32; 3],
    figures: Figures,
    metrics: BTreeMap<&'a str, Value<'a>>,
}

#[derive(Serialize)]
struct Value<'a> {
    value: Shown<'a>,
    unit: &'a str,
}

/// A value as JSON has it.
#[derive(Serialize)]
#[serde(untagged)]
enum Shown<'a> {
    Number(f64),
    Integer(u64),
    Text(&'a str),
}

impl<'a> From<&'a MetricValue> for Shown<'a> {
    fn from(value: &'a MetricValue) -> Self {
        match value {
            MetricValue::Number(number) => Self::Number(*number),
            MetricValue::Integer(number) => Self::Integer(*number),
            MetricValue::Text(text) => Self::Text(text),
        }
    }
}

impl<'a> Kernel<'a> {
    fn of(profile: &'a KernelProfile) -> Self {
        let value = |metric: &'a Metric| Value {
            value: (&metric.value).into(),
            unit: &metric.unit,
        };
        Self {
            id: profile.id,
            name: &profile.name,
            process: profile.process,
            device: profile.device,
            context: profile.context,
            stream: profile.stream,
            grid: profile.grid,
            block: profile.block,
            figures: Figures::of(&profile.metrics),
            metrics: profile
                .metrics
                .iter()
                .map(|(name, metric)| (name.as_str(), value(metric)))
                .collect(),
        }
    }
}
