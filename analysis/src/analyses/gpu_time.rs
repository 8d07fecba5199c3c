//! Where the time of each GPU went.

use flopwatch_measures::exclusive_time::{BusyByClass, ExclusiveTime};
use flopwatch_measures::gpu::{Gpu, Window};
use flopwatch_measures::interval::Interval;
use flopwatch_measures::work::{GPU_WORK, GpuWork, NAMED_WORK};
use flopwatch_model::{Needs, Timeline, count, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Bars, Cell, Page, Table, Tile, TimelineLocation, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;

/// Computation, exposed communication, exposed copies and idle time of each GPU.
#[derive(Debug)]
pub struct GpuTime;

/// Parameters of [`GpuTime`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GpuTimeParams {
    /// Which time of each GPU is analysed.
    pub window: Window,
    /// Only what lies behind this time in ns since the session's start.
    pub from_ns: Option<u64>,
    /// Only what lies before this time in ns.
    pub to_ns: Option<u64>,
    /// Idle pieces shorter than this, in ns, are also reported apart: they are the price of one
    /// launch after another.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub micro_idle_below_ns: u64,
}

impl Default for GpuTimeParams {
    fn default() -> Self {
        Self {
            window: Window::Gpu,
            from_ns: None,
            to_ns: None,
            micro_idle_below_ns: 30_000,
        }
    }
}

/// The result of the analysis `gpu-time`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct GpuTimes {
    /// The GPUs.
    pub gpus: Vec<TimeOfGpu>,
    /// The parts of all GPUs together: sums over `gpus`, so that the window is as many times as
    /// long as there are GPUs.
    pub all: ExclusiveTime,
    /// Idle pieces below this many ns are `micro_idle_ns`.
    pub micro_idle_below_ns: u64,
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
}

/// Where the time of one GPU went.
/// `compute + exposed communication + exposed memory + idle = window`, exactly.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TimeOfGpu {
    /// The GPU whose time this is.
    pub gpu: Gpu,
    /// Start of the window in ns since the session's start.
    pub start_ns: u64,
    /// End of the window in ns.
    pub end_ns: u64,
    /// Kernels, copies and memsets that ran in the window.
    pub gpu_ops: u64,
    /// The window, divided: each ns is in one part.
    pub parts: ExclusiveTime,
    /// Time in ns in which anything ran.
    pub busy_ns: u64,
    /// `busy_ns` of the window.
    pub busy_ratio: f64,
    /// Time in ns in which something ran and nothing computed: HolisticTraceAnalysis's non-compute
    /// time.
    pub non_compute_ns: u64,
    /// Time in ns in which communication ran, hidden or not.
    pub communication_ns: u64,
    /// Time in ns in which copies or memsets ran, hidden or not.
    pub memory_ns: u64,
    /// Pieces of idle time.
    pub idle_pieces: u64,
    /// Part of the idle time in ns that is in pieces below the threshold.
    pub micro_idle_ns: u64,
    /// How many such pieces there are.
    pub micro_idle_pieces: u64,
    /// The longest idle piece in ns.
    pub longest_idle_ns: u64,
}

impl TimeOfGpu {
    /// Of a GPU's `work` in `window`.
    pub fn of(gpu: Gpu, work: &GpuWork, window: Interval, micro_idle_below_ns: u64) -> Self {
        let busy = BusyByClass::of(work).clip(window);
        let parts = ExclusiveTime::of(&busy, window);
        let idle = busy.any().gaps(window);
        let pieces = idle.as_slice();
        let micro = pieces.iter().filter(|piece| piece.len() < micro_idle_below_ns);
        let gpu_ops = work.all().iter().filter(|work| work.time.happens_in(window));
        Self {
            gpu,
            start_ns: window.start,
            end_ns: window.end,
            gpu_ops: count(gpu_ops.count()),
            busy_ns: parts.busy_ns(),
            busy_ratio: ratio(parts.busy_ns(), parts.window_ns).unwrap_or(0.0),
            non_compute_ns: parts.exposed_communication_ns + parts.exposed_memory_ns,
            communication_ns: busy.communication.len_ns(),
            memory_ns: busy.memory.len_ns(),
            idle_pieces: count(pieces.len()),
            micro_idle_ns: micro.clone().map(|piece| piece.len()).sum(),
            micro_idle_pieces: count(micro.count()),
            longest_idle_ns: pieces.iter().map(|piece| piece.len()).max().unwrap_or(0),
            parts,
        }
    }
}

impl GpuTime {
    /// Of `timeline`, of which [`GPU_WORK`], names and rows were read.
    pub fn of(timeline: &Timeline, params: &GpuTimeParams) -> GpuTimes {
        let all = GpuWork::of(timeline);
        let gpus: Vec<TimeOfGpu> = all
            .by_gpu(timeline)
            .iter()
            .filter_map(|(gpu, work)| {
                let window = params.window.of(timeline, &all, work, params.from_ns, params.to_ns)?;
                Some(TimeOfGpu::of(*gpu, work, window, params.micro_idle_below_ns))
            })
            .collect();
        GpuTimes {
            all: gpus
                .iter()
                .fold(ExclusiveTime::default(), |sum, gpu| sum.plus(gpu.parts)),
            gpus,
            micro_idle_below_ns: params.micro_idle_below_ns,
            not_captured: NotCaptured::unless_any(&timeline.capture, GPU_WORK, "the time of GPUs")
                .or_else(|| NotCaptured::inside_graphs(&timeline.capture, "communication and copies in graphs"))
                .into_iter()
                .collect(),
        }
    }
}

impl Analysis for GpuTime {
    const NAME: &'static str = "gpu-time";
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "Where the time of each GPU went: computation, communication and copies that nothing hides, idle. The parts add \
         up to the window exactly.";
    const TITLE: &'static str = "GPU time";
    const GROUP: Group = Group::GpuTime;
    const NEEDS: Needs = NAMED_WORK;
    type Params = GpuTimeParams;
    type Output = GpuTimes;

    fn run(inputs: &Inputs<'_>, params: &GpuTimeParams) -> Result<GpuTimes, AnalysisError> {
        Ok(Self::of(inputs.first(), params))
    }

    fn page(output: &GpuTimes) -> Result<Page, AnalysisError> {
        let mut page = Page::of(Self::TITLE, Self::ABOUT, &output.not_captured);
        let all = &output.all;
        let share = |part: u64| Cell::from(ratio(part, all.window_ns));
        page.tiles([
            Tile::figure("Busy", Unit::Ratio, share(all.busy_ns())),
            Tile::figure("Compute", Unit::Ratio, share(all.compute_ns)),
            Tile::figure(
                "Exposed communication",
                Unit::Ratio,
                share(all.exposed_communication_ns),
            ),
            Tile::figure("Exposed copies", Unit::Ratio, share(all.exposed_memory_ns)),
            Tile::figure("Idle", Unit::Ratio, share(all.idle_ns)),
        ]);
        page.bars(
            Bars::of("Time per GPU", Unit::Ratio, &output.gpus, |gpu| gpu.gpu.label())
                .series("compute", |gpu| ratio(gpu.parts.compute_ns, gpu.parts.window_ns))
                .series("exposed communication", |gpu| {
                    ratio(gpu.parts.exposed_communication_ns, gpu.parts.window_ns)
                })
                .series("exposed copies", |gpu| {
                    ratio(gpu.parts.exposed_memory_ns, gpu.parts.window_ns)
                })
                .series("idle", |gpu| ratio(gpu.parts.idle_ns, gpu.parts.window_ns))
                .stacked(),
        );
        page.table(table(output));
        Ok(page)
    }
}

fn table(output: &GpuTimes) -> impl Into<Table> {
    let ns = Unit::Ns;
    Table::of("Time of each GPU", &output.gpus)
        .about(format!(
            "Micro idle is the idle time in pieces below {} µs.",
            output.micro_idle_below_ns / 1000
        ))
        .column("GPU", |gpu| gpu.gpu.label())
        .figure("Window", ns, |gpu| gpu.parts.window_ns)
        .figure("Compute", ns, |gpu| gpu.parts.compute_ns)
        .figure("Exposed communication", ns, |gpu| gpu.parts.exposed_communication_ns)
        .figure("Exposed copies", ns, |gpu| gpu.parts.exposed_memory_ns)
        .figure("Idle", ns, |gpu| gpu.parts.idle_ns)
        .figure("Busy", Unit::Ratio, |gpu| gpu.busy_ratio)
        .figure("Communication in all", ns, |gpu| gpu.communication_ns)
        .figure("Copies in all", ns, |gpu| gpu.memory_ns)
        .column("GPU ops", |gpu| gpu.gpu_ops)
        .column("Idle pieces", |gpu| gpu.idle_pieces)
        .figure("Max idle", ns, |gpu| gpu.longest_idle_ns)
        .figure("Micro idle", ns, |gpu| gpu.micro_idle_ns)
        .at(|gpu| TimelineLocation::new(gpu.start_ns, gpu.end_ns, None))
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::Category;

    use super::*;

    /// 0       100     150      200     220      300   ns
    /// | gemm  |    nccl         |               | gemm ends at 340
    ///         50 to 200                 copy 210 to 230
    fn trace() -> Timeline {
        let mut trace = Trace::new();
        let (main, side) = (trace.stream(1, 0, 7), trace.stream(1, 0, 20));
        trace.kernel(main, "gemm", 0, 100);
        trace.kernel(side, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 50, 200);
        trace.event(Category::CudaMemcpyH2d, main, "Memcpy HtoD", 210, 230);
        trace.kernel(main, "gemm", 300, 340);
        trace.build()
    }

    #[test]
    fn every_nanosecond_is_counted_once() {
        let params = GpuTimeParams {
            micro_idle_below_ns: 50,
            ..GpuTimeParams::default()
        };
        let times = GpuTime::of(&trace(), &params);
        let gpu = &times.gpus[0];
        let parts = ExclusiveTime {
            window_ns: 340,
            compute_ns: 140,
            exposed_communication_ns: 100,
            exposed_memory_ns: 20,
            idle_ns: 80,
        };
        assert_eq!((gpu.parts, times.all), (parts, parts));
        assert_eq!((gpu.busy_ns, gpu.non_compute_ns, gpu.communication_ns), (260, 120, 150));
        assert_eq!((gpu.idle_pieces, gpu.longest_idle_ns), (2, 70));
        assert_eq!((gpu.micro_idle_pieces, gpu.micro_idle_ns), (1, 10));
    }

    #[test]
    fn a_part_of_the_window_has_its_own_parts() {
        let params = GpuTimeParams {
            from_ns: Some(50),
            to_ns: Some(220),
            ..GpuTimeParams::default()
        };
        let times = GpuTime::of(&trace(), &params);
        let parts = ExclusiveTime {
            window_ns: 170,
            compute_ns: 50,
            exposed_communication_ns: 100,
            exposed_memory_ns: 10,
            idle_ns: 10,
        };
        assert_eq!(times.gpus[0].parts, parts);
        assert_eq!(times.gpus[0].gpu_ops, 3);
    }

    /// HolisticTraceAnalysis takes any event with a stream for work, so that the wait counts as
    /// busy.
    #[test]
    fn a_wait_that_the_gpu_sees_is_no_work() {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 7);
        trace.kernel(stream, "gemm", 0, 100);
        trace.event(Category::CudaSync, stream, "Stream Sync", 100, 400);
        trace.kernel(stream, "gemm", 400, 500);
        let parts = GpuTime::of(&trace.build(), &GpuTimeParams::default()).all;
        assert_eq!((parts.window_ns, parts.compute_ns, parts.idle_ns), (500, 200, 300));
    }

    /// HolisticTraceAnalysis rounds starts up and ends down to microseconds: the kernels are 0 and
    /// −1 µs long for it, and all the time is idle.
    #[test]
    fn kernels_shorter_than_a_microsecond_have_their_length() {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 7);
        trace.kernel(stream, "memset", 100, 1100);
        trace.kernel(stream, "memset", 2100, 2900);
        let parts = GpuTime::of(&trace.build(), &GpuTimeParams::default()).all;
        assert_eq!((parts.window_ns, parts.compute_ns, parts.idle_ns), (2800, 1800, 1000));
    }

    #[test]
    fn a_capture_without_gpu_work_says_so() {
        let times = GpuTime::of(&Timeline::default(), &GpuTimeParams::default());
        assert!(times.gpus.is_empty());
        assert!(
            GpuTime::page(&times).unwrap().not_captured[0]
                .reason
                .contains("no GPU work")
        );
    }
}
