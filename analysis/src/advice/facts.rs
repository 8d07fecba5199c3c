//! What the rules look at, computed once per capture.

mod calls;
mod gpu;
mod grids;
mod memory;
mod moved;
mod named;

use flopwatch_measures::gap::Gap;
use flopwatch_measures::gpu::Gpu;
use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_measures::iteration::{self, Iteration, IterationOptions, Iterations};
use flopwatch_measures::launch::{Joined, WorkCalls};
use flopwatch_measures::work::{GpuWork, Work};
use flopwatch_model::{Category, ColumnId, Events, Timeline, count, index};
use flopwatch_report::page::{Cell, Place, Unit};

use crate::advice::finding::Evidence;
use crate::analyses::idle::{IdleCause, host_wait_causes};

pub(crate) use calls::{Call, Calls};
pub(crate) use gpu::GpuFacts;
pub(crate) use named::{Named, times};

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

/// What is known of a capture.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    /// The capture.
    pub(crate) timeline: &'a Timeline,
    /// From the start of the first GPU work to the end of the last, over all GPUs. Shares are shares of it.
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
    pub(crate) warm_up: (&'static str, bool),
    /// The iterations of the loop.
    pub(crate) iterations: Iterations,
    /// The calls of the CUDA API.
    pub(crate) calls: Calls<'a>,
    /// Most rows of evidence per finding.
    pub(crate) rows: usize,
    /// What launching threads did while GPUs waited for the host, longest first, as the analysis `idle` tells it; sums over all GPUs.
    pub(crate) host_wait_causes: Vec<IdleCause>,
}

impl<'a> Facts<'a> {
    /// Of `timeline`.
    pub(crate) fn of(timeline: &'a Timeline, rows: usize) -> Self {
        let work = GpuWork::of(timeline);
        let window = work.span().unwrap_or_default();
        let of_gpus = || {
            let calls = WorkCalls::of(timeline, &work);
            let by_gpu = work.places_by(|row| Gpu::of_row(timeline, row));
            let gpus = by_gpu
                .into_iter()
                .map(|(gpu, places)| GpuFacts::of(gpu, (&work, &places), &calls, window));
            let gpus: Vec<GpuFacts> = gpus.collect();
            let gaps = gpus.iter().flat_map(|gpu| &gpu.gaps);
            let causes = host_wait_causes(timeline, &work, &calls, gaps);
            (calls, gpus, causes)
        };
        let (iterations, (work_calls, gpus, host_wait_causes)) = rayon::join(
            || iteration::of_work(timeline, &work, &IterationOptions::default()),
            of_gpus,
        );
        let (steady, is_known) = steady(window, &iterations);
        let warm_up = if is_known {
            ("After the first two iterations", true)
        } else {
            (
                "After the first tenth of the window (no warm-up is known, for there are too few iterations that are sure)",
                false,
            )
        };
        Self {
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
            rows,
            host_wait_causes,
        }
    }

    /// The events of a category, where there are any.
    pub(crate) fn events(&self, category: Category) -> Option<&'a Events> {
        self.timeline.capture.events.get(&category)
    }

    /// Why nothing can be said of GPU work: so many pieces of it have times that cannot be, and were
    /// left out or cut, that neither sums nor gaps are those of the program. `None` where there are
    /// few.
    pub(crate) fn impossible_times(&self) -> Option<String> {
        let losses = self.timeline.capture.drops.list();
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

    /// The gaps of all GPUs that began while one of `calls` ran, or as it returned: the GPU had done all that it was given while the host
    /// waited for it.
    pub(crate) fn gaps_begun_in(&self, calls: &Intervals) -> Vec<Gap> {
        let begun = |gap: &&Gap| {
            let calls = calls.as_slice();
            let behind = calls.partition_point(|call| call.start <= gap.time.start);
            let call = behind.checked_sub(1).and_then(|at| calls.get(at));
            call.is_some_and(|call| gap.time.start <= call.end)
        };
        self.gaps().filter(begun).copied().collect()
    }

    /// The pieces of work with the calls that launched them, as the analysis `launches` joins them.
    pub(crate) fn joined(&self) -> Joined {
        Joined::of(self.timeline, &self.work)
    }

    /// The work that ends `gap`.
    pub(crate) fn behind(&self, gap: &Gap) -> Option<&Work> {
        self.work.all().get(index(gap.after))
    }

    /// The gaps of all GPUs.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = &Gap> {
        self.gpus.iter().flat_map(|gpu| &gpu.gaps)
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
    pub(crate) fn place(time: Interval, row: u32) -> Place {
        Place {
            input: 0,
            start_ns: time.start,
            end_ns: time.end,
            row: Some(row),
        }
    }

    /// The longest of some pieces of time with their rows, as evidence.
    pub(crate) fn longest(&self, what: &str, pieces: impl IntoIterator<Item = (Interval, u32)>) -> Vec<Evidence> {
        let pieces = pieces.into_iter();
        self.largest(pieces.map(|(time, row)| (time.len(), what, time, row)), Unit::Ns)
    }

    /// The longest gaps, as evidence.
    pub(crate) fn longest_gaps<'g>(&self, gaps: impl IntoIterator<Item = &'g Gap>) -> Vec<Evidence> {
        let row = |gap: &Gap| self.behind(gap).map_or(0, |work| work.row);
        self.longest("idle gap", gaps.into_iter().map(|gap| (gap.time, row(gap))))
    }

    /// Those of `(value, what, time, row)` whose value is largest, as evidence.
    pub(crate) fn largest<N: Into<String>>(
        &self,
        pieces: impl IntoIterator<Item = (u64, N, Interval, u32)>,
        unit: Unit,
    ) -> Vec<Evidence> {
        let mut largest: Vec<(u64, N, Interval, u32)> = Vec::new();
        for piece in pieces {
            largest.push(piece);
            // Kept short, so that ten million pieces are not kept to show five.
            if largest.len() > self.rows.saturating_mul(64).max(1024) {
                cut(&mut largest, self.rows);
            }
        }
        cut(&mut largest, self.rows);
        let row = |(value, what, time, row): (u64, N, Interval, u32)| Evidence {
            what: what.into(),
            value: Cell::from(value),
            unit,
            place: Some(Self::place(time, row)),
        };
        largest.into_iter().map(row).collect()
    }

    /// Work, as evidence of its length.
    pub(crate) fn longest_work<'w>(&self, what: &str, work: impl IntoIterator<Item = &'w Work>) -> Vec<Evidence> {
        self.longest(what, work.into_iter().map(|work| (work.time, work.row)))
    }
}

/// Whether whole CUDA graphs are so much of `work` that the kernels which were recorded do not stand
/// for it.
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
    let tells = longest.len() > 2 * WARM_UP_ITERATIONS && !iterations.may_be_parts();
    let warm = longest.get(WARM_UP_ITERATIONS).filter(|_| tells);
    let tenth = window.start + window.len() / WARM_UP_PART;
    let start = warm.map_or(tenth, |first| first.time.start.max(window.start));
    (Interval::new(start.min(window.end), window.end), warm.is_some())
}

fn cut<N>(pieces: &mut Vec<(u64, N, Interval, u32)>, rows: usize) {
    pieces.sort_by_key(|(value, _, time, row)| (std::cmp::Reverse(*value), time.start, *row));
    pieces.truncate(rows);
}
