//! How much of what GPUs do runs at the same time.

use flopwatch_measures::exclusive_time::BusyByClass;
use flopwatch_measures::gpu::{Gpu, Window};
use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_measures::kernel_class::WorkClass;
use flopwatch_measures::work::{GPU_WORK, GpuWork, NAMED_WORK};
use flopwatch_model::{Needs, Timeline, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, Table, Tile, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;

/// Overlap of computation, communication and copies on each GPU.
#[derive(Debug)]
pub struct Overlap;

/// Parameters of [`Overlap`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OverlapParams {
    /// Which time of each GPU is analysed.
    pub window: Window,
    /// Only what lies behind this time in ns since the session's start.
    pub from_ns: Option<u64>,
    /// Only what lies before this time in ns.
    pub to_ns: Option<u64>,
}

/// The result of the analysis `overlap`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Overlaps {
    /// The GPUs.
    pub gpus: Vec<OverlapOfGpu>,
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
}

/// What ran at the same time on one GPU.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OverlapOfGpu {
    /// The GPU on which it ran.
    pub gpu: Gpu,
    /// Start of the window in ns since the session's start.
    pub start_ns: u64,
    /// End of the window in ns.
    pub end_ns: u64,
    /// Time in ns in which anything ran: the sum of `mixes`.
    pub busy_ns: u64,
    /// Time in ns in which communication ran.
    pub communication_ns: u64,
    /// Part of it in ns in which something computed.
    pub communication_under_compute_ns: u64,
    /// That part of `communication_ns`, as HolisticTraceAnalysis has it; null without
    /// communication.
    pub communication_under_compute_ratio: Option<f64>,
    /// Time in ns in which copies or memsets ran.
    pub memory_ns: u64,
    /// Part of it in ns in which something computed.
    pub memory_under_compute_ns: u64,
    /// That part of `memory_ns`; null without copies.
    pub memory_under_compute_ratio: Option<f64>,
    /// Part of `memory_ns` in which something communicated.
    pub memory_under_communication_ns: u64,
    /// Every combination of classes, each with the time in ns in which exactly these ran.
    pub mixes: Vec<ClassMix>,
    /// For how long how many pieces of work ran at once, of whatever class.
    pub at_once: Vec<AtOnce>,
}

/// Classes of work that ran at once, and no other did.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ClassMix {
    /// Whether computation ran.
    pub compute: bool,
    /// Whether communication ran.
    pub communication: bool,
    /// Whether copies or memsets ran.
    pub memory: bool,
    /// Time in ns during which that many GPU operations ran at once.
    pub time_ns: u64,
    /// `time_ns` of the GPU's busy time; null where nothing ran.
    pub busy_ratio: Option<f64>,
}

/// Time in which a number of GPU operations ran at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AtOnce {
    /// Number of GPU operations that run at once; the last entry, of 8, also has the time of more.
    pub gpu_ops: u32,
    /// Time in ns during which that many GPU operations ran at once.
    pub time_ns: u64,
}

impl AtOnce {
    /// Largest number of GPU operations at once that has an entry of its own.
    pub const MAX: u32 = 8;
}

/// Exclusive combinations: each nanosecond in which anything ran is in one.
fn mixes(busy: &BusyByClass) -> Vec<ClassMix> {
    let of = |class, wanted: bool, set: &Intervals| {
        let runs = busy.class(class);
        if wanted {
            set.intersect(runs)
        } else {
            set.subtract(runs)
        }
    };
    let any = busy.any();
    let busy_ns = any.len_ns();
    let mut mixes = Vec::new();
    for (compute, communication, memory) in [
        (true, false, false),
        (false, true, false),
        (false, false, true),
        (true, true, false),
        (true, false, true),
        (false, true, true),
        (true, true, true),
    ] {
        let set = of(WorkClass::Compute, compute, &any);
        let set = of(WorkClass::Communication, communication, &set);
        let time_ns = of(WorkClass::Memory, memory, &set).len_ns();
        mixes.push(ClassMix {
            compute,
            communication,
            memory,
            time_ns,
            busy_ratio: ratio(time_ns, busy_ns),
        });
    }
    mixes
}

/// How long how many of `times` ran at once, from one on. Entries without time are left out.
fn at_once(times: impl Iterator<Item = Interval>) -> Vec<AtOnce> {
    let mut starts = Vec::new();
    let mut ends = Vec::new();
    for time in times.filter(|time| !time.is_empty()) {
        starts.push(time.start);
        ends.push(time.end);
    }
    starts.sort_unstable();
    ends.sort_unstable();
    let mut entries: Vec<AtOnce> = (1..=AtOnce::MAX)
        .map(|gpu_ops| AtOnce { gpu_ops, time_ns: 0 })
        .collect();
    let (mut running, mut last) = (0_usize, 0_u64);
    let mut starts = starts.into_iter().peekable();
    for end in ends {
        while let Some(start) = starts.next_if(|start| *start < end) {
            add(&mut entries, running, start - last);
            running += 1;
            last = start;
        }
        add(&mut entries, running, end - last);
        running = running.saturating_sub(1);
        last = end;
    }
    entries.retain(|entry| entry.time_ns > 0);
    entries
}

fn add(entries: &mut [AtOnce], running: usize, time_ns: u64) {
    let slot = running.min(entries.len()).checked_sub(1);
    if let Some(entry) = slot.and_then(|slot| entries.get_mut(slot)) {
        entry.time_ns += time_ns;
    }
}

impl OverlapOfGpu {
    /// Of a GPU's `work` in `window`.
    pub fn of(gpu: Gpu, work: &GpuWork, window: Interval) -> Self {
        let busy = BusyByClass::of(work).clip(window);
        let communication_ns = busy.communication.len_ns();
        let hidden_ns = busy.communication.intersect(&busy.compute).len_ns();
        let memory_ns = busy.memory.len_ns();
        let memory_hidden_ns = busy.memory.intersect(&busy.compute).len_ns();
        let times = work.all().iter().map(|work| work.time.intersect(window));
        Self {
            gpu,
            start_ns: window.start,
            end_ns: window.end,
            busy_ns: busy.any().len_ns(),
            communication_ns,
            communication_under_compute_ns: hidden_ns,
            communication_under_compute_ratio: ratio(hidden_ns, communication_ns),
            memory_ns,
            memory_under_compute_ns: memory_hidden_ns,
            memory_under_compute_ratio: ratio(memory_hidden_ns, memory_ns),
            memory_under_communication_ns: busy.memory.intersect(&busy.communication).len_ns(),
            mixes: mixes(&busy),
            at_once: at_once(times),
        }
    }
}

impl Overlap {
    /// Of `timeline`, of which [`GPU_WORK`], names and rows were read.
    pub fn of(timeline: &Timeline, params: &OverlapParams) -> Overlaps {
        let all = GpuWork::of(timeline);
        let gpus = all.by_gpu(timeline);
        let gpus = gpus.iter().filter_map(|(gpu, work)| {
            let window = params.window.of(timeline, &all, work, params.from_ns, params.to_ns)?;
            Some(OverlapOfGpu::of(*gpu, work, window))
        });
        Overlaps {
            gpus: gpus.collect(),
            not_captured: NotCaptured::unless_any(&timeline.capture, GPU_WORK, "overlap on GPUs")
                .or_else(|| NotCaptured::inside_graphs(&timeline.capture, "overlap in graphs"))
                .into_iter()
                .collect(),
        }
    }
}

impl Analysis for Overlap {
    const NAME: &'static str = "overlap";
    const VERSION: u32 = 2;
    const ABOUT: &'static str =
        "How much communication and copying each GPU hides under computation, and which kinds of work run at once.";
    const TITLE: &'static str = "Overlap";
    const GROUP: Group = Group::GpuTime;
    const NEEDS: Needs = NAMED_WORK;
    type Params = OverlapParams;
    type Output = Overlaps;

    fn run(inputs: &Inputs<'_>, params: &OverlapParams) -> Result<Overlaps, AnalysisError> {
        Ok(Self::of(inputs.first(), params))
    }

    fn page(output: &Overlaps) -> Result<Page, AnalysisError> {
        let mut page = Page::of(Self::TITLE, Self::ABOUT, &output.not_captured);
        let sum = |of: fn(&OverlapOfGpu) -> u64| output.gpus.iter().map(of).sum::<u64>();
        let hidden = ratio(
            sum(|gpu| gpu.communication_under_compute_ns),
            sum(|gpu| gpu.communication_ns),
        );
        let copies = ratio(sum(|gpu| gpu.memory_under_compute_ns), sum(|gpu| gpu.memory_ns));
        page.tiles([
            Tile::figure("Communication under computation", Unit::Ratio, hidden),
            Tile::figure("Copies under computation", Unit::Ratio, copies),
        ]);
        page.table(hidden_table(output));
        page.table(mix_table(output));
        page.table(at_once_table(output));
        Ok(page)
    }
}

fn hidden_table(output: &Overlaps) -> impl Into<Table> {
    let ns = Unit::Ns;
    Table::of("Hidden under computation", &output.gpus)
        .column("GPU", |gpu| gpu.gpu.label())
        .figure("Busy", ns, |gpu| gpu.busy_ns)
        .figure("Communication", ns, |gpu| gpu.communication_ns)
        .figure("under computation", ns, |gpu| gpu.communication_under_compute_ns)
        .figure("Share", Unit::Ratio, |gpu| gpu.communication_under_compute_ratio)
        .figure("Copies", ns, |gpu| gpu.memory_ns)
        .figure("Copies under computation", ns, |gpu| gpu.memory_under_compute_ns)
        .figure("Share of copies", Unit::Ratio, |gpu| gpu.memory_under_compute_ratio)
        .figure("Copies under communication", ns, |gpu| {
            gpu.memory_under_communication_ns
        })
}

fn mix_table(output: &Overlaps) -> impl Into<Table> {
    let mixes = output.gpus.iter().flat_map(|gpu| {
        let mixes = gpu.mixes.iter().filter(|mix| mix.time_ns > 0);
        mixes.map(move |mix| (gpu.gpu, mix))
    });
    Table::of("Kinds of work at once", mixes)
        .about(
            "Each row is the time in which exactly these kinds ran; the rows of a GPU add up to its \
             busy time.",
        )
        .column("GPU", |(gpu, _)| gpu.label())
        .column("Computation", |(_, mix)| mix.compute)
        .column("Communication", |(_, mix)| mix.communication)
        .column("Copies", |(_, mix)| mix.memory)
        .figure("Time", Unit::Ns, |(_, mix)| mix.time_ns)
        .figure("Share of busy time", Unit::Ratio, |(_, mix)| mix.busy_ratio)
}

fn at_once_table(output: &Overlaps) -> impl Into<Table> {
    let entries = output.gpus.iter();
    let entries = entries.flat_map(|gpu| gpu.at_once.iter().map(move |entry| (gpu, entry)));
    Table::of("GPU ops at once", entries)
        .about(format!("The row of {} also has the time of more.", AtOnce::MAX))
        .column("GPU", |(gpu, _)| gpu.gpu.label())
        .column("GPU ops", |(_, entry)| entry.gpu_ops)
        .figure("Time", Unit::Ns, |(_, entry)| entry.time_ns)
        .figure("Share of busy time", Unit::Ratio, |(gpu, entry)| {
            ratio(entry.time_ns, gpu.busy_ns)
        })
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_analysis_testing::mixed::{timeline, work};
    use flopwatch_model::Category;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_combination_of_classes_has_its_own_time() {
        let mut trace = Trace::new();
        let streams = [7, 20, 22].map(|stream| trace.stream(1, 0, stream));
        trace.kernel(streams[0], "gemm", 0, 100);
        trace.kernel(streams[1], "ncclKernel_AllReduce_RING_LL_Sum_half", 40, 160);
        trace.event(Category::CudaMemcpyH2d, streams[2], "Memcpy HtoD", 90, 120);
        let found = Overlap::of(&trace.build(), &OverlapParams::default());
        let gpu = &found.gpus[0];
        let times: Vec<(bool, bool, bool, u64)> = gpu
            .mixes
            .iter()
            .map(|mix| (mix.compute, mix.communication, mix.memory, mix.time_ns))
            .collect();
        assert_eq!(
            times,
            [
                (true, false, false, 40),
                (false, true, false, 40),
                (false, false, true, 0),
                (true, true, false, 50),
                (true, false, true, 0),
                (false, true, true, 20),
                (true, true, true, 10),
            ]
        );
        assert_eq!(gpu.communication_under_compute_ratio, Some(0.5));
        assert_eq!(
            (gpu.memory_under_compute_ns, gpu.memory_under_communication_ns),
            (10, 30)
        );
        let at_once: Vec<(u32, u64)> = gpu.at_once.iter().map(|entry| (entry.gpu_ops, entry.time_ns)).collect();
        assert_eq!(at_once, [(1, 80), (2, 70), (3, 10)]);
    }

    proptest! {
        #[test]
        fn combinations_and_counts_at_once_add_up_to_the_busy_time(pieces in work()) {
            for gpu in Overlap::of(&timeline(&pieces), &OverlapParams::default()).gpus {
                prop_assert_eq!(gpu.mixes.iter().map(|mix| mix.time_ns).sum::<u64>(), gpu.busy_ns);
                prop_assert_eq!(gpu.at_once.iter().map(|entry| entry.time_ns).sum::<u64>(), gpu.busy_ns);
                prop_assert!(gpu.communication_under_compute_ratio.unwrap_or(0.0) <= 1.0);
            }
        }
    }
}
