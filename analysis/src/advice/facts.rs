//! What the rules look at, computed once per capture.

mod calls;
mod copy_sizes;
mod framework;
mod gpu;
mod grids;
mod host_ranges;
mod idle_parts;
mod memory;
mod named_times;

use flopwatch_measures::api_call::ApiCall;
use flopwatch_measures::gap::{Gap, GapOptions, KERNEL_WAIT_NS, gaps};
use flopwatch_measures::gpu::Gpu;
use flopwatch_measures::interval::Interval;
use flopwatch_measures::iteration::{self, Iteration, IterationOptions, Iterations};
use flopwatch_measures::launch::{LaunchJoin, WorkCalls};
use flopwatch_measures::work::{GpuWork, Work};
use flopwatch_model::{Category, ColumnId, Events, Loss, RowId, Timeline, count, index};
use flopwatch_report::page::{Cell, TimelineLocation, Unit};

use crate::advice::finding::Evidence;
use crate::analyses::idle::host_wait_pieces;

pub(crate) use calls::{Call, Calls};
pub(crate) use copy_sizes::CopySizes;
pub(crate) use framework::Framework;
pub(crate) use gpu::GpuFacts;
pub(crate) use host_ranges::{COMPILER, HostRanges, PROGRAM};
pub(crate) use idle_parts::{IdleOwner, IdleParts};
pub(crate) use named_times::{NamedTime, times};

/// Iterations that are taken for warm-up; as nsys-jax, which drops the first two of each module.
const WARM_UP_ITERATIONS: usize = 2;
/// Where there are too few iterations the first tenth of the window is taken for warm-up.
const WARM_UP_PART: u64 = 10;

/// From this part of the GPUs' work on, whole graphs hide what kernels do: a tenth, as shares from
/// which on rules fire.
const HIDDEN_PART: u64 = 10;

/// From this part of all GPU work on, work whose times cannot be makes figures of all of it wrong:
/// a hundredth, as lost events do.
const IMPOSSIBLE_PART: u64 = 100;

/// Size in bytes up to which a synchronous copy to the GPU does not wait: nsys's rule
/// `cuda_memcpy_sync`.
pub(crate) const MAX_UNWAITED_COPY: u64 = 64_000;

/// What is known of a capture.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) timeline: &'a Timeline,
    /// From the start of the first GPU work to the end of the last, over all GPUs. Shares are
    /// shares of it.
    pub(crate) window: Interval,
    /// The work of all GPUs.
    pub(crate) work: GpuWork,
    /// Whether whole CUDA graphs hide what its kernels are.
    pub(crate) kernels_are_hidden: bool,
    /// What launched it.
    pub(crate) work_calls: WorkCalls,
    /// The GPUs that worked.
    pub(crate) gpus: Vec<GpuFacts>,
    /// The part of the window in which the program has warmed up.
    pub(crate) steady: Interval,
    /// How that is known, as the beginning of a sentence; and whether iterations tell it.
    pub(crate) warm_up: (String, bool),
    /// The iterations of the loop.
    pub(crate) iterations: Iterations,
    /// The calls of the CUDA API.
    pub(crate) calls: Calls<'a>,
    /// The framework that the program uses.
    pub(crate) framework: Framework,
    /// Most rows of evidence per finding.
    pub(crate) rows: usize,
    /// Ranges that are named after what the host does.
    pub(crate) host_ranges: HostRanges<'a>,
    /// Calls and phases that load code for the GPU.
    pub(crate) module_loads: Vec<NamedTime<'a>>,
    /// The gaps of all GPUs, and the causes of those that wait for the host.
    pub(crate) idle_parts: IdleParts,
}

impl<'a> Facts<'a> {
    /// Of `timeline`.
    pub(crate) fn of(timeline: &'a Timeline, rows: usize) -> Self {
        let work = GpuWork::of(timeline);
        let window = work.span().unwrap_or_default();
        let of_gpus = || {
            let calls = WorkCalls::of(timeline, &work);
            let by_gpu = work.places_by(|row| Gpu::of_row(timeline, row));
            let options = GapOptions {
                kernel_wait_ns: KERNEL_WAIT_NS,
                from_ns: Some(window.start),
            };
            let gaps_of = |places: &Vec<u32>| gaps(&work, places, &calls, options);
            let all_gaps: Vec<Gap> = by_gpu.values().flat_map(gaps_of).collect();
            let pieces = host_wait_pieces(timeline, &work, &calls, &all_gaps);
            let gpus = by_gpu
                .into_iter()
                .map(|(gpu, work_indices)| GpuFacts::of(gpu, (&work, &work_indices), window));
            (gpus.collect::<Vec<GpuFacts>>(), all_gaps, pieces, calls)
        };
        let (iterations, (gpus, all_gaps, pieces, work_calls)) = rayon::join(
            || iteration::of_work(timeline, &work, &IterationOptions::default()),
            of_gpus,
        );
        let (steady, is_known) = steady(window, &iterations);
        let warm_up = if is_known {
            (format!("After the first two {}", iterations.unit().many), true)
        } else {
            let unknown = "After the first tenth of the window (no warm-up is known, for there are too few iterations that are sure)";
            (unknown.to_owned(), false)
        };
        let mut facts = Self {
            timeline,
            window,
            gpus,
            steady,
            warm_up,
            iterations,
            kernels_are_hidden: are_kernels_hidden(&work),
            work,
            work_calls,
            calls: Calls::of(timeline),
            framework: Framework::of(timeline),
            rows,
            host_ranges: HostRanges::default(),
            module_loads: Vec::new(),
            idle_parts: IdleParts::default(),
        };
        facts.host_ranges = HostRanges::of(&facts);
        facts.module_loads = facts.find_module_loads();
        facts.idle_parts = IdleParts::of(&facts, all_gaps, &pieces);
        facts
    }

    /// Calls that load code, and the phases of loading that Kineto files under overhead.
    fn find_module_loads(&self) -> Vec<NamedTime<'a>> {
        let calls = self.calls.of_kind(ApiCall::Module);
        let mut loads: Vec<NamedTime<'a>> = calls
            .map(|call| (call.time.len(), call.name, call.time, call.row))
            .collect();
        loads.extend(self.named(&[Category::Overhead], |name| name.contains("Lazy Function Loading")));
        loads
    }

    /// Calls that allocate or free memory. The asynchronous ones take memory from a pool and do not
    /// wait: they are left out.
    pub(crate) fn allocations(&self) -> impl Iterator<Item = Call<'a>> {
        self.calls
            .named(|name, kind| kind == ApiCall::Allocate && !name.contains("Async"))
    }

    /// The call that asked for `work`, where that is a copy for which the host waits: one that is
    /// not asynchronous, and not so small that it waits for nothing.
    pub(crate) fn synchronous_copy(&self, work: &Work) -> Option<Call<'a>> {
        let is_exempt = match work.category {
            // One whose size is not known may be small.
            Category::CudaMemcpyH2d => work.bytes(self.timeline).is_none_or(|size| size <= MAX_UNWAITED_COPY),
            Category::CudaMemcpyD2d => true,
            category => !Category::MEMCPY.contains(&category),
        };
        let call = self.calls.get(work.launch(self.timeline).filter(|_| !is_exempt)?)?;
        (call.kind == ApiCall::Copy && !call.name.contains("Async")).then_some(call)
    }

    /// The events of a category, where there are any.
    pub(crate) fn events(&self, category: Category) -> Option<&'a Events> {
        self.timeline.capture.events.get(&category)
    }

    /// Why nothing can be said of GPU work: so many pieces of it have times that cannot be, and
    /// were left out or cut, that neither sums nor gaps are those of the program. `None` where
    /// there are few.
    pub(crate) fn impossible_times(&self) -> Option<String> {
        let losses = self.timeline.capture.losses.list();
        let of_work = losses
            .iter()
            .filter(|loss| loss.impossible_times_of().is_some_and(Category::is_gpu_work));
        let impossible = of_work.fold(0_u64, |sum, loss| sum.saturating_add(loss.count));
        let all = count(self.work.all().len()).saturating_add(impossible);
        (impossible > 0 && impossible.saturating_mul(IMPOSSIBLE_PART) >= all).then(|| {
            format!(
                "the source gives {impossible} pieces of GPU work times that cannot be: sums are too small, and gaps \
                 may be none"
            )
        })
    }

    /// Whether the file that was read ends before its end: what looks like idle time may be what is
    /// missing.
    pub(crate) fn ends_early(&self) -> bool {
        let losses = self.timeline.capture.losses.list();
        losses.iter().any(Loss::is_of_a_cut_file)
    }

    /// Whether the program launches CUDA graphs: by calls, by graphs that were recorded as a whole,
    /// or by nodes that say that they are some.
    pub(crate) fn uses_graphs(&self) -> bool {
        let is_node = |kernels: &Events| {
            let nodes = kernels.column(ColumnId::GraphNode);
            nodes.is_some_and(|nodes| (0..nodes.len()).any(|at| nodes.get(at).is_some_and(|node| node > 0)))
        };
        self.events(Category::CudaGraph).is_some()
            || self
                .calls
                .named(|name, _| name.contains("GraphLaunch"))
                .next()
                .is_some()
            || self.events(Category::CudaKernel).is_some_and(is_node)
    }

    /// The iterations of the loop that has most.
    pub(crate) fn main_loop(&self) -> &[Iteration] {
        self.iterations.loops().max_by_key(|list| list.len()).unwrap_or(&[])
    }

    /// The mean over GPUs of a length in ns.
    pub(crate) fn per_gpu(&self, length: impl Fn(&GpuFacts) -> u64) -> u64 {
        let total: u64 = self.gpus.iter().map(length).sum();
        let gpus = u64::try_from(self.gpus.len()).unwrap_or(u64::MAX);
        total.checked_div(gpus).unwrap_or(0)
    }

    /// The pieces of work with the calls that launched them, as the analysis `launches` joins them.
    pub(crate) fn joined(&self) -> LaunchJoin {
        LaunchJoin::of(self.timeline, &self.work)
    }

    /// The work that ends `gap`.
    pub(crate) fn behind(&self, gap: &Gap) -> Option<&Work> {
        self.work.all().get(index(gap.after))
    }

    /// The gaps of all GPUs.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = &Gap> {
        self.idle_parts.gaps().iter()
    }

    /// The total length of gaps as wall time: the mean over GPUs.
    pub(crate) fn gap_time<'g>(&self, gaps: impl IntoIterator<Item = &'g Gap>) -> u64 {
        let total: u64 = gaps.into_iter().map(|gap| gap.time.len()).sum();
        self.shared(total)
    }

    /// A sum over all GPUs as wall time: the mean over GPUs.
    pub(crate) fn shared(&self, total: u64) -> u64 {
        let gpus = u64::try_from(self.gpus.len()).unwrap_or(u64::MAX);
        total.checked_div(gpus).unwrap_or(0)
    }

    /// A place in the timeline.
    pub(crate) fn location(time: Interval, row: RowId) -> TimelineLocation {
        TimelineLocation::new(time.start, time.end, Some(row))
    }

    /// The longest of some pieces of time with their rows, as evidence.
    pub(crate) fn longest(&self, what: &str, pieces: impl IntoIterator<Item = (Interval, RowId)>) -> Vec<Evidence> {
        let pieces = pieces.into_iter();
        self.largest(pieces.map(|(time, row)| (time.len(), what, time, row)), Unit::Ns)
    }

    /// The longest gaps, as evidence.
    pub(crate) fn longest_gaps<'g>(&self, gaps: impl IntoIterator<Item = &'g Gap>) -> Vec<Evidence> {
        let piece = |gap: &Gap| Some((gap.time, self.behind(gap)?.row));
        self.longest("idle gap", gaps.into_iter().filter_map(piece))
    }

    /// Those of `(value, what, time, row)` whose value is largest, as evidence.
    pub(crate) fn largest<N: Into<String>>(
        &self,
        pieces: impl IntoIterator<Item = (u64, N, Interval, RowId)>,
        unit: Unit,
    ) -> Vec<Evidence> {
        let mut largest: Vec<(u64, N, Interval, RowId)> = Vec::new();
        for piece in pieces {
            largest.push(piece);
            // Kept short, so that ten million pieces are not kept to show five.
            if largest.len() > self.rows.saturating_mul(64).max(1024) {
                cut(&mut largest, self.rows);
            }
        }
        cut(&mut largest, self.rows);
        let row = |(value, what, time, row): (u64, N, Interval, RowId)| Evidence {
            what: what.into(),
            value: Cell::from(value),
            unit,
            place: Some(Self::location(time, row)),
        };
        largest.into_iter().map(row).collect()
    }

    /// Work, as evidence of its length.
    pub(crate) fn longest_work<'w>(&self, what: &str, work: impl IntoIterator<Item = &'w Work>) -> Vec<Evidence> {
        self.longest(what, work.into_iter().map(|work| (work.time, work.row)))
    }
}

/// Whether whole CUDA graphs are so much of `work` that the kernels which were recorded do not
/// stand for it.
fn are_kernels_hidden(work: &GpuWork) -> bool {
    let (mut graphs, mut all) = (0_u64, 0_u64);
    for work in work.all() {
        all = all.saturating_add(work.time.len());
        if work.category == Category::CudaGraph {
            graphs = graphs.saturating_add(work.time.len());
        }
    }
    graphs > 0 && graphs.saturating_mul(HIDDEN_PART) >= all
}

/// The part of the window behind the warm-up, and whether iterations tell it.
fn steady(window: Interval, iterations: &Iterations) -> (Interval, bool) {
    let longest = iterations.loops().max_by_key(|list| list.len()).unwrap_or(&[]);
    // Layers of one iteration are no warm-up.
    let is_long_enough = longest.len() > 2 * WARM_UP_ITERATIONS && !iterations.may_be_parts();
    let warm = longest.get(WARM_UP_ITERATIONS).filter(|_| is_long_enough);
    let tenth = window.start + window.len() / WARM_UP_PART;
    let start = warm.map_or(tenth, |first| first.time.start.max(window.start));
    (Interval::new(start.min(window.end), window.end), warm.is_some())
}

fn cut<N>(pieces: &mut Vec<(u64, N, Interval, RowId)>, rows: usize) {
    pieces.sort_by_key(|(value, _, time, row)| (std::cmp::Reverse(*value), time.start, *row));
    pieces.truncate(rows);
}
