//! When CPU and GPU worked, and when both did.

use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_model::{Category, Events, Needs, Timeline, gpu_work_and, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::category::label;
use flopwatch_report::page::{Bars, Block, Page, Text, Tile, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;

/// Time in which the CPU, the GPU or both were active.
#[derive(Debug)]
pub struct CpuGpu;

/// Parameters of [`CpuGpu`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CpuGpuParams {
    /// Events shorter than this, in ns, are left out, on either side.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub min_duration_ns: u64,
    /// Whether functions of the Python interpreter count as activity of the CPU.
    pub include_python: bool,
    /// Only what lies behind this time in ns since the session's start.
    pub from_ns: Option<u64>,
    /// Only what lies before this time in ns.
    pub to_ns: Option<u64>,
}

impl Default for CpuGpuParams {
    fn default() -> Self {
        Self {
            min_duration_ns: 0,
            include_python: true,
            from_ns: None,
            to_ns: None,
        }
    }
}

/// The result. `cpu_only + overlap + gpu_only + neither = total`, exactly.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct CpuGpuTime {
    /// Start in ns since the session's start: of the first event that counts, or what was asked
    /// for.
    pub start_ns: u64,
    /// End in ns of the last event that counts, or what was asked for.
    pub end_ns: u64,
    /// Length in ns from the first start to the last end of what counts.
    pub total_ns: u64,
    /// Time in ns in which any thread was inside an operator, a CUDA call or (where asked for) a
    /// Python function.
    pub cpu_active_ns: u64,
    /// Time in ns in which any GPU ran a kernel, copy or memset.
    pub gpu_active_ns: u64,
    /// Time in ns in which both were active.
    pub overlap_ns: u64,
    /// Time in ns in which the CPU alone was active.
    pub cpu_only_ns: u64,
    /// Time in ns in which a GPU alone was active.
    pub gpu_only_ns: u64,
    /// Time in ns in which neither was.
    pub neither_ns: u64,
    /// `overlap_ns` of `gpu_active_ns`; null where no GPU was active.
    pub overlap_ratio: Option<f64>,
    /// What counted as activity of the CPU.
    pub cpu_categories: Vec<Category>,
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
}

/// What a program does on the CPU. Ranges that a program marks are no activity of their own, nor
/// are waits in the operating system.
const CPU: &[Category] = &[Category::CpuOp, Category::CudaApi, Category::PythonFunction];

const NEEDED: &[Category] = gpu_work_and![
    Category::DeviceOp,
    Category::CpuOp,
    Category::CudaApi,
    Category::PythonFunction
];

fn active(timeline: &Timeline, categories: &[Category], min_ns: u64, asked: Interval) -> Intervals {
    let of = |events: &Events| -> Intervals {
        let times = (0..events.len()).map(|at| Interval::of(events, at));
        let long = times.filter(|time| time.len() >= min_ns);
        long.map(|time| time.intersect(asked)).collect()
    };
    let lists = categories
        .iter()
        .filter_map(|category| timeline.capture.events.get(category));
    lists.map(of).fold(Intervals::default(), |all, set| all.union(&set))
}

impl CpuGpu {
    /// Of `timeline`, of which the events of the CPU and of GPUs were read.
    pub fn of(timeline: &Timeline, params: &CpuGpuParams) -> CpuGpuTime {
        let capture = &timeline.capture;
        let is_gpu = |category: &Category| category.is_gpu_work() || *category == Category::DeviceOp;
        let gpu_categories: Vec<Category> = NEEDED.iter().copied().filter(is_gpu).collect();
        let counts = |category: &Category| params.include_python || *category != Category::PythonFunction;
        let cpu_categories: Vec<Category> = CPU.iter().copied().filter(counts).collect();
        let asked = Interval::new(params.from_ns.unwrap_or(0), params.to_ns.unwrap_or(u64::MAX));
        let cpu = active(timeline, &cpu_categories, params.min_duration_ns, asked);
        let gpu = active(timeline, &gpu_categories, params.min_duration_ns, asked);
        let either = cpu.union(&gpu);
        let found = either.span().unwrap_or_default();
        let window = Interval::new(params.from_ns.unwrap_or(found.start), params.to_ns.unwrap_or(found.end));
        let overlap_ns = cpu.intersect(&gpu).len_ns();
        let parts: [(&[Category], &str); 2] = [
            (&cpu_categories, "activity of the CPU"),
            (&gpu_categories, "activity of GPUs"),
        ];
        let not_captured = NotCaptured::of_parts(capture, &parts);
        CpuGpuTime {
            start_ns: window.start,
            end_ns: window.end,
            total_ns: window.len(),
            cpu_active_ns: cpu.len_ns(),
            gpu_active_ns: gpu.len_ns(),
            overlap_ns,
            cpu_only_ns: cpu.len_ns() - overlap_ns,
            gpu_only_ns: gpu.len_ns() - overlap_ns,
            neither_ns: either.gaps(window).len_ns(),
            overlap_ratio: ratio(overlap_ns, gpu.len_ns()),
            cpu_categories: cpu_categories
                .into_iter()
                .filter(|category| capture.captured.contains(category))
                .collect(),
            not_captured,
        }
    }
}

impl Analysis for CpuGpu {
    const NAME: &'static str = "cpu-gpu";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "When the CPU was active, when GPUs were, and when both were.";
    const TITLE: &'static str = "CPU and GPU";
    const GROUP: Group = Group::GpuTime;
    const NEEDS: Needs = Needs::of(NEEDED);
    type Params = CpuGpuParams;
    type Output = CpuGpuTime;

    fn run(inputs: &Inputs<'_>, params: &CpuGpuParams) -> Result<CpuGpuTime, AnalysisError> {
        Ok(Self::of(inputs.first(), params))
    }

    fn page(output: &CpuGpuTime) -> Result<Page, AnalysisError> {
        let mut page = Page::of(Self::TITLE, Self::ABOUT, &output.not_captured);
        page.tiles([
            Tile::figure("Total", Unit::Ns, output.total_ns),
            Tile::figure("CPU active", Unit::Ns, output.cpu_active_ns),
            Tile::figure("GPU active", Unit::Ns, output.gpu_active_ns),
            Tile::figure("Both active", Unit::Ns, output.overlap_ns),
            Tile::figure(
                "Share of GPU time with the CPU active",
                Unit::Ratio,
                output.overlap_ratio,
            ),
        ]);
        page.bars(
            Bars::of("Time", Unit::Ratio, [output], |_| "capture".to_owned())
                .series("CPU alone", |of| ratio(of.cpu_only_ns, of.total_ns))
                .series("both", |of| ratio(of.overlap_ns, of.total_ns))
                .series("GPU alone", |of| ratio(of.gpu_only_ns, of.total_ns))
                .series("neither", |of| ratio(of.neither_ns, of.total_ns))
                .stacked(),
        );
        let names: Vec<&str> = output.cpu_categories.iter().map(|category| label(*category)).collect();
        page.blocks.push(Block::Text(Text {
            title: "What counts".to_owned(),
            text: format!(
                "The CPU is active while a thread is inside one of these: {}; a call that waits for the GPU counts too. The GPU is active \
                 while it runs a kernel, copy or memset.",
                if names.is_empty() { "nothing was recorded".to_owned() } else { names.join(", ") }
            ),
        }));
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

    fn trace(events: &[(Category, u64, u64)]) -> Timeline {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 7);
        let thread = trace.thread(1, 1, Track::CpuOp);
        for (category, start, end) in events.iter().copied() {
            let row = if category.is_gpu_work() { stream } else { thread };
            trace.event(category, row, "e", start, end);
        }
        trace.build()
    }

    const EVENTS: &[(Category, u64, u64)] = &[
        (Category::CpuOp, 10, 50),
        (Category::CudaApi, 20, 30),
        (Category::PythonFunction, 90, 95),
        (Category::OsRuntime, 0, 200),
        (Category::NvtxRange, 0, 200),
        (Category::CudaKernel, 40, 80),
        (Category::CudaMemset, 80, 82),
    ];

    #[test]
    fn activity_is_a_union_on_each_side() {
        let time = CpuGpu::of(&trace(EVENTS), &CpuGpuParams::default());
        assert_eq!((time.start_ns, time.end_ns, time.total_ns), (10, 95, 85));
        assert_eq!((time.cpu_active_ns, time.gpu_active_ns, time.overlap_ns), (45, 42, 10));
        assert_eq!((time.cpu_only_ns, time.gpu_only_ns, time.neither_ns), (35, 32, 8));
    }

    #[test]
    fn short_events_and_python_are_left_out_where_that_is_asked_for() {
        let params = CpuGpuParams {
            min_duration_ns: 5,
            include_python: false,
            ..CpuGpuParams::default()
        };
        let time = CpuGpu::of(&trace(EVENTS), &params);
        assert_eq!((time.total_ns, time.cpu_active_ns, time.gpu_active_ns), (70, 40, 40));
        assert_eq!(time.cpu_categories, [Category::CpuOp, Category::CudaApi]);
    }

    #[test]
    fn a_capture_of_the_gpu_alone_says_that_the_cpu_was_not_captured() {
        let time = CpuGpu::of(&trace(&[(Category::CudaKernel, 0, 5)]), &CpuGpuParams::default());
        assert_eq!(time.not_captured.len(), 1);
        assert_eq!(time.not_captured[0].what, "activity of the CPU");
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_total(
            spans in vec((0_u64..100, 0_u64..40, prop::bool::ANY), 0..20), from in prop::option::of(0_u64..150), length in 0_u64..90,
        ) {
            let of = |(start, length, gpu): (u64, u64, bool)| {
                (if gpu { Category::CudaKernel } else { Category::CudaApi }, start, start + length)
            };
            let events: Vec<_> = spans.into_iter().map(of).collect();
            let params = CpuGpuParams { from_ns: from, to_ns: from.map(|from| from + length), ..CpuGpuParams::default() };
            let time = CpuGpu::of(&trace(&events), &params);
            prop_assert_eq!(time.cpu_only_ns + time.overlap_ns + time.gpu_only_ns + time.neither_ns, time.total_ns);
        }
    }
}
