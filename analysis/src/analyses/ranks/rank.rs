//! Finds the ranks of one capture: its GPUs, each with its iterations and kernels.

use std::collections::{BTreeMap, BTreeSet};

use flopwatch_measures::counterpart::Tally;
use flopwatch_measures::exclusive_time::{BusyByClass, ExclusiveTime};
use flopwatch_measures::gpu::Gpu;
use flopwatch_measures::interval::Interval;
use flopwatch_measures::iteration::{self, Assignment, IterationOptions, Iterations};
use flopwatch_measures::work::GpuWork;
use flopwatch_model::{Category, Timeline, index, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::TimelineLocation;

use super::{Rank, RanksParams};

/// A capture with its GPU work and its iterations.
pub(super) struct RankCapture<'a> {
    timeline: &'a Timeline,
    input: u32,
    work: GpuWork,
    iterations: Iterations,
    assigned: Assignment,
}

/// A rank and the data by which it is compared with others.
pub(super) struct RankInputs<'a> {
    pub(super) rank: Rank,
    /// The rank's GPU.
    pub(super) gpu: Gpu,
    /// Time of each iteration of the rank by its number in the program's loop.
    pub(super) iterations: BTreeMap<u64, Interval>,
    /// Number and total time of the rank's kernels by name.
    pub(super) kernels: BTreeMap<&'a str, Tally>,
}

impl<'a> RankCapture<'a> {
    pub(super) fn of(timeline: &'a Timeline, input: u32, params: &RanksParams) -> Self {
        let work = GpuWork::of(timeline);
        let options = IterationOptions::new(params.by, &params.range);
        let iterations = iteration::of_work(timeline, &work, &options);
        Self {
            timeline,
            input,
            assigned: iterations.assign(timeline, &work),
            work,
            iterations,
        }
    }

    /// The reason why the capture has no iterations; `None` where it has.
    pub(super) fn not_found(&self) -> Option<NotCaptured> {
        let missing = self.iterations.not_found.as_ref()?;
        Some(NotCaptured::new(
            format!("{} of capture {}", missing.what, self.input),
            missing.reason.clone(),
        ))
    }

    /// Reservations about how the capture's iterations were found.
    pub(super) fn cautions(&self) -> &[String] {
        &self.iterations.cautions
    }

    /// The ranks of the capture, at most one per GPU with work. `earliest` is the start of the
    /// earliest of all captures in ns since 1970; `None` where one of them has no start.
    pub(super) fn ranks(&self, earliest: Option<u64>) -> Vec<RankInputs<'a>> {
        let mut used: BTreeMap<Gpu, BTreeSet<u32>> = BTreeMap::new();
        for (work, iteration) in self.work.all().iter().zip(&self.assigned.iteration) {
            if let Some(gpu) = Gpu::of_row(self.timeline, work.row).filter(|_| *iteration != Assignment::NONE) {
                used.entry(gpu).or_default().insert(*iteration);
            }
        }
        let gpus = self.work.by_gpu(self.timeline);
        // A source that recorded no launches may not say which process the work is of either: of
        // one GPU and one loop it is clear.
        if let (Some((gpu, _)), 1, 1, true) = (
            gpus.first_key_value(),
            gpus.len(),
            self.iterations.loops().count(),
            used.is_empty(),
        ) {
            let all = 0..u32::try_from(self.iterations.list.len()).unwrap_or(u32::MAX);
            used.insert(*gpu, all.collect());
        }
        let ranks = gpus
            .iter()
            .filter_map(|(gpu, work)| self.rank(*gpu, work, used.get(gpu), earliest));
        ranks.collect()
    }

    fn rank(
        &self,
        gpu: Gpu,
        work: &GpuWork,
        used: Option<&BTreeSet<u32>>,
        earliest: Option<u64>,
    ) -> Option<RankInputs<'a>> {
        let span = work.span()?;
        let busy = BusyByClass::of(work);
        let time = ExclusiveTime::of(&busy, span);
        let used = used.into_iter().flatten();
        let list = used.filter_map(|number| self.iterations.list.get(index(*number)));
        let list: Vec<(u64, Interval)> = list.map(|iteration| (iteration.number, iteration.time)).collect();
        let count = u64::try_from(list.len()).unwrap_or(u64::MAX);
        let lengths = || list.iter().map(|(_, time)| time.len());
        let mean = |sum: u128| ratio(sum, count);
        // What of an iteration is not exposed communication on this GPU.
        let own = list.iter().map(|(_, time)| {
            let exposed = ExclusiveTime::of(&busy, *time).exposed_communication_ns;
            u128::from(time.len() - exposed)
        });
        let kernels = self.kernels(work);
        let started = self.timeline.capture.session_start_utc_ns.zip(earliest);
        let rank = Rank {
            input: self.input,
            session_id: self.timeline.session_id.clone(),
            gpu: gpu.label(),
            started_after_ns: started.map(|(start, earliest)| start.saturating_sub(earliest)),
            time,
            idle_ratio: ratio(time.idle_ns, time.window_ns),
            exposed_communication_ratio: ratio(time.exposed_communication_ns, time.window_ns),
            iterations: count,
            mean_iteration_ns: mean(lengths().map(u128::from).sum()),
            min_iteration_ns: lengths().min(),
            max_iteration_ns: lengths().max(),
            mean_own_ns: mean(own.sum()),
            kernels: kernels.values().map(|tally| tally.count).sum(),
            place: Some(TimelineLocation::new(span.start, span.end, None).of_input(self.input)),
        };
        Some(RankInputs {
            rank,
            gpu,
            iterations: list.into_iter().collect(),
            kernels,
        })
    }

    fn kernels(&self, work: &GpuWork) -> BTreeMap<&'a str, Tally> {
        let mut kernels = BTreeMap::new();
        let Some(events) = self.timeline.capture.events.get(&Category::CudaKernel) else {
            return kernels;
        };
        let mut tallies = vec![Tally::default(); events.names.len()];
        for kernel in work.all().iter().filter(|work| work.category == Category::CudaKernel) {
            let name = events.name.get(index(kernel.at));
            if let Some(tally) = name.and_then(|name| tallies.get_mut(name.index())) {
                tally.add(kernel.time.len());
            }
        }
        for (name, tally) in events.names.iter().zip(tallies).filter(|(_, tally)| tally.count > 0) {
            kernels.insert(name.as_str(), tally);
        }
        kernels
    }
}
