//! What each stream of each GPU ran: the analysis that CONTRIBUTING walks through.

use std::collections::{BTreeMap, BTreeSet};

use flopwatch_model::{Category, NameId, Needs};
use flopwatch_report::NotCaptured;
use schemars::JsonSchema;
use serde::Serialize;

use crate::definition::{Analysis, AnalysisError, NoParameters};
use crate::group::Group;
use crate::input::Inputs;

/// Launches, busy time and distinct kernels per stream.
#[derive(Debug)]
pub struct KernelsPerStream;

/// The result: a row per stream that ran a kernel, by process, device, context and stream.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Streams {
    /// The streams.
    pub rows: Vec<Stream>,
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
}

/// What a stream ran.
#[allow(
    clippy::struct_field_names,
    reason = "a stream is known by its number, as the profiler calls it"
)]
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Stream {
    /// Process id as the profiler saw it.
    pub process: u32,
    /// Device ordinal.
    pub device: u32,
    /// CUDA context; 0 where the source does not say.
    pub context: u64,
    /// CUDA stream; 0 where the source does not say.
    pub stream: u64,
    /// Kernels that it ran.
    pub launches: u64,
    /// Length in ns of the union of their intervals.
    pub busy_ns: u64,
    /// Distinct names among them.
    pub distinct_kernels: usize,
}

impl Analysis for KernelsPerStream {
    const NAME: &'static str = "kernels-per-stream";
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "Launches, busy time and distinct kernels of each stream of each GPU.";
    const TITLE: &'static str = "Kernels per stream";
    const GROUP: Group = Group::GpuTime;
    const NEEDS: Needs = Needs::of(&[Category::CudaKernel, Category::CudaGraph]).rows().names();
    type Params = NoParameters;
    type Output = Streams;

    fn run(inputs: &Inputs<'_>, _params: &NoParameters) -> Result<Streams, AnalysisError> {
        let capture = &inputs.first().capture;
        let mut streams: BTreeMap<_, (Stream, u64, BTreeSet<NameId>)> = BTreeMap::new();
        if let Some(kernels) = capture.events.get(&Category::CudaKernel) {
            let times = kernels.start_ns.iter().zip(&kernels.duration_ns);
            for ((row, name), (start, duration)) in kernels.row.iter().zip(&kernels.name).zip(times) {
                let Some(row) = capture.rows.get(row.index()) else {
                    continue;
                };
                let key = (row.process, row.device, row.context, row.stream);
                let (stream, until, names) = streams.entry(key).or_default();
                let end = start.saturating_add(*duration);
                stream.launches += 1;
                // Sorted by start: overlap counts once.
                stream.busy_ns += end.saturating_sub((*start).max(*until));
                *until = end.max(*until);
                names.insert(*name);
            }
        }
        let rows = streams
            .into_iter()
            .map(|((process, device, context, stream), (found, _, names))| Stream {
                process,
                device: device.unwrap_or(0),
                context: context.unwrap_or(0),
                stream: stream.unwrap_or(0),
                distinct_kernels: names.len(),
                ..found
            });
        let not_captured = NotCaptured::unless_any(capture, &[Category::CudaKernel], "what streams ran");
        Ok(Streams {
            rows: rows.collect(),
            not_captured: not_captured.into_iter().collect(),
        })
    }
}
