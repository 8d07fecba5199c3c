//! How much launched work waits for each stream.

use flopwatch_measures::bins::Bins;
use flopwatch_measures::gpu::GpuStream;
use flopwatch_measures::interval::Interval;
use flopwatch_measures::launch::{LaunchCoverage, LaunchJoin};
use flopwatch_measures::work::GpuWork;
use flopwatch_model::{Category, ColumnId, Needs, RowId, Timeline, approximate, gpu_work_and, index, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Lines, Page, Series, Table, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::launches::not_captured;
use crate::cut::cut;
use crate::definition::{Analysis, AnalysisError};
use crate::input::Inputs;

/// GPU operations of each stream that were launched and have not begun.
#[derive(Debug)]
pub struct QueueLength;

/// Parameters of [`QueueLength`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QueueLengthParams {
    /// GPU operations at which a queue is full, so that a launching thread waits. CUDA's queue
    /// holds 1024 per stream.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub capacity: u32,
    /// Points of the series over time.
    #[schemars(range(min = 1, max = 10_000))]
    pub bins: u32,
    /// Most streams, those with most GPU operations.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: u32,
}

impl Default for QueueLengthParams {
    fn default() -> Self {
        Self {
            capacity: 1024,
            bins: 200,
            limit: 32,
        }
    }
}

/// The result of the analysis `queue-length`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Queues {
    /// How much of the work has its call; the rest is in no queue.
    pub coverage: LaunchCoverage,
    /// The streams, the one with most GPU operations first.
    pub streams: Vec<QueueOfStream>,
    /// Streams that were left out.
    pub streams_left_out: u64,
    /// Starts of the bins of each stream's series in ns since the session's start.
    pub bin_starts_ns: Vec<u64>,
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
}

/// The queue of one stream. A work is in it from the start of its call to its own start.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QueueOfStream {
    /// The stream whose queue this is.
    pub stream: GpuStream,
    /// GPU operations that went through the queue.
    pub gpu_ops: u64,
    /// Most GPU operations in it.
    pub max: u64,
    /// Mean number of GPU operations in it over the time from the first launch to the last start;
    /// null where that is no time.
    pub mean: Option<f64>,
    /// Mean over its changes, whatever their distance in time: HolisticTraceAnalysis's mean.
    pub mean_at_changes: f64,
    /// From the first launch to the last start in ns.
    pub span_ns: u64,
    /// Part of it in ns in which the queue was empty.
    pub empty_ns: u64,
    /// Part of it in ns in which the queue was full.
    pub full_ns: u64,
    /// Most GPU operations in it in each bin of time.
    pub max_by_bin: Vec<u32>,
}

impl QueueOfStream {
    fn of(stream: GpuStream, mut entered: Vec<u64>, mut left: Vec<u64>, bins: &Bins, capacity: u32) -> Self {
        entered.sort_unstable();
        left.sort_unstable();
        let mut max_by_bin = vec![0_u32; bins.count];
        let (mut length, mut max, mut changes) = (0_u64, 0_u64, 0_u128);
        let (mut empty_ns, mut full_ns, mut area) = (0_u64, 0_u64, 0_u128);
        let first = entered.first().copied().unwrap_or(0);
        let mut last = first;
        let count = u64::try_from(left.len()).unwrap_or(u64::MAX);
        let mut entered = entered.into_iter().peekable();
        let mut left = left.into_iter().peekable();
        while let Some(next_left) = left.peek().copied() {
            // What enters at the time at which another leaves enters first, so that no length is
            // negative.
            let enters = entered.next_if(|at| *at <= next_left);
            let now = enters.unwrap_or(next_left);
            let took = now.saturating_sub(last);
            area += u128::from(length) * u128::from(took);
            empty_ns += if length == 0 { took } else { 0 };
            full_ns += if length >= u64::from(capacity) { took } else { 0 };
            raise(bins, &mut max_by_bin, Interval::new(last, now), length);
            if enters.is_some() {
                length += 1;
            } else {
                left.next();
                length = length.saturating_sub(1);
            }
            changes += u128::from(length);
            max = max.max(length);
            last = now;
            raise(bins, &mut max_by_bin, Interval::new(now, now), length);
        }
        let span_ns = last - first;
        Self {
            stream,
            gpu_ops: count,
            max,
            mean: ratio(area, span_ns),
            mean_at_changes: approximate(changes) / approximate(u128::from(count.max(1)) * 2),
            span_ns,
            empty_ns,
            full_ns,
            max_by_bin,
        }
    }
}

/// Raises the parts that `time` lies in to `length`.
fn raise(bins: &Bins, longest: &mut [u32], time: Interval, length: u64) {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    let last = bins.of(time.end.max(time.start + 1) - 1);
    for bin in longest.iter_mut().take(last + 1).skip(bins.of(time.start)) {
        *bin = (*bin).max(length);
    }
}

impl QueueLength {
    /// Of `timeline`, of which GPU work, calls, names, rows and the column of launches were read.
    pub fn of(timeline: &Timeline, params: &QueueLengthParams) -> Queues {
        let joined = LaunchJoin::of(timeline, &GpuWork::of(timeline));
        let mut by_row: Vec<(RowId, u64, u64)> = joined
            .launches
            .iter()
            .map(|launch| (launch.work.row, launch.call.start, launch.work.time.start))
            .filter(|(_, enters, leaves)| enters <= leaves)
            .collect();
        by_row.sort_unstable();
        let first = by_row.iter().map(|(_, enters, _)| *enters).min().unwrap_or(0);
        let last = by_row.iter().map(|(_, _, leaves)| *leaves).max().unwrap_or(0);
        let bins = Bins {
            window: Interval::new(first, last),
            count: index(params.bins),
        };
        let mut streams: Vec<QueueOfStream> = by_row
            .chunk_by(|a, b| a.0 == b.0)
            .filter_map(|gpu_ops| {
                let stream = GpuStream::of_row(timeline, gpu_ops.first()?.0)?;
                let entered = gpu_ops.iter().map(|(_, enters, _)| *enters).collect();
                let left = gpu_ops.iter().map(|(_, _, leaves)| *leaves).collect();
                Some(QueueOfStream::of(stream, entered, left, &bins, params.capacity))
            })
            .collect();
        streams.sort_by_key(|queue| (std::cmp::Reverse(queue.gpu_ops), queue.stream.row));
        let streams_left_out = cut(&mut streams, params.limit);
        Queues {
            coverage: joined.coverage(),
            bin_starts_ns: if streams.is_empty() { Vec::new() } else { bins.starts() },
            streams,
            streams_left_out,
            not_captured: not_captured(timeline, "lengths of queues"),
        }
    }
}

const NEEDED: &[Category] = gpu_work_and![Category::CudaApi];

impl Analysis for QueueLength {
    const NAME: &'static str = "queue-length";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "How much launched work waits for each stream, when its queue ran dry and when it was full.";
    const TITLE: &'static str = "Queue length";
    const GROUP: crate::Group = crate::Group::Launches;
    const NEEDS: Needs = Needs::of(NEEDED).columns(&[ColumnId::Launch]).rows();
    type Params = QueueLengthParams;
    type Output = Queues;

    fn run(inputs: &Inputs<'_>, params: &QueueLengthParams) -> Result<Queues, AnalysisError> {
        Ok(Self::of(inputs.first(), params))
    }

    fn page(output: &Queues) -> Result<Page, AnalysisError> {
        let mut page = Page::of(Self::TITLE, Self::ABOUT, &output.not_captured);
        let series = output.streams.iter().take(8).map(|queue| Series {
            name: queue.stream.label(),
            values: queue.max_by_bin.iter().map(|max| Some(f64::from(*max))).collect(),
        });
        page.lines(Lines {
            title: "Most GPU operations in the queue".to_owned(),
            unit: Unit::None,
            times_ns: output.bin_starts_ns.clone(),
            series: series.collect(),
        });
        page.table(
            Table::of("Queues of streams", &output.streams)
                .left_out(output.streams_left_out)
                .column("Stream", |queue| queue.stream.label())
                .column("GPU ops", |queue| queue.gpu_ops)
                .column("Max", |queue| queue.max)
                .column("Avg over time", |queue| queue.mean)
                .column("Avg over changes", |queue| queue.mean_at_changes)
                .figure("Empty", Unit::Ns, |queue| queue.empty_ns)
                .figure("Share empty", Unit::Ratio, |queue| ratio(queue.empty_ns, queue.span_ns))
                .figure("Full", Unit::Ns, |queue| queue.full_ns),
        );
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::Track;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn params() -> QueueLengthParams {
        QueueLengthParams {
            capacity: 2,
            bins: 4,
            limit: 4,
        }
    }

    #[test]
    fn work_is_queued_from_its_call_to_its_start() {
        let mut trace = Trace::new();
        let (stream, thread) = (trace.stream(1, 0, 7), trace.thread(1, 1, Track::CudaApi));
        // In the queue: 0 to 10, 20 to 50, 30 to 60.
        trace.launch_kernel((thread, 0, 5), (stream, "a", 10, 50));
        trace.launch_kernel((thread, 20, 25), (stream, "b", 50, 60));
        trace.launch_kernel((thread, 30, 35), (stream, "c", 60, 70));
        let queues = QueueLength::of(&trace.build(), &params());
        let queue = &queues.streams[0];
        assert_eq!((queue.gpu_ops, queue.max, queue.span_ns), (3, 2, 60));
        assert_eq!((queue.empty_ns, queue.full_ns), (10, 20));
        // 10 + 30 + 30 of 60; after its six changes it is 1, 0, 1, 2, 1, 0.
        assert_eq!(queue.mean, Some(70.0 / 60.0));
        assert!((queue.mean_at_changes - 5.0 / 6.0).abs() < 1e-9);
        assert_eq!(queue.max_by_bin, [1, 1, 2, 2]);
        assert_eq!(queues.bin_starts_ns, [0, 15, 30, 45]);
    }

    #[test]
    fn each_work_of_a_graph_enters_and_leaves() {
        let mut trace = Trace::new();
        let (stream, thread) = (trace.stream(1, 0, 7), trace.thread(1, 1, Track::CudaApi));
        let graph = trace.call(thread, "cudaGraphLaunch", 0, 10);
        for start in [10, 20, 30] {
            let kernel = trace.kernel(stream, "k", start, start + 5);
            trace.launched_by(kernel, graph);
        }
        let queue = QueueLength::of(&trace.build(), &params()).streams.remove(0);
        assert_eq!((queue.gpu_ops, queue.max, queue.empty_ns, queue.full_ns), (3, 3, 0, 20));
    }

    proptest! {
        #[test]
        fn the_area_of_a_queue_is_the_sum_of_the_waits(gpu_ops in vec((0_u64..100, 0_u64..50), 1..30)) {
            let mut trace = Trace::new();
            let (stream, thread) = (trace.stream(1, 0, 7), trace.thread(1, 1, Track::CudaApi));
            for (call, wait) in &gpu_ops {
                trace.launch_kernel((thread, *call, call + 1), (stream, "k", call + wait, call + wait + 1));
            }
            let queue = QueueLength::of(&trace.build(), &params()).streams.remove(0);
            let waits: u64 = gpu_ops.iter().map(|(_, wait)| *wait).sum();
            let area = queue.mean.unwrap_or(0.0) * approximate(queue.span_ns.into());
            prop_assert!((area - approximate(waits.into())).abs() < 1e-6);
            prop_assert!(queue.empty_ns + queue.full_ns <= queue.span_ns);
            prop_assert_eq!(u64::from(queue.max_by_bin.iter().copied().max().unwrap()), queue.max);
        }
    }
}
