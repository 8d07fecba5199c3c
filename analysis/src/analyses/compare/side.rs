//! What one of the captures holds of what is compared.

use std::borrow::Cow;
use std::collections::BTreeMap;

use flopwatch_measures::counterpart::{NameTally, Tally};
use flopwatch_measures::exclusive_time::{BusyByClass, ExclusiveTime};
use flopwatch_measures::gpu::Gpu;
use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_measures::iteration::{self, Assignment, Iteration, IterationOptions, Iterations};
use flopwatch_measures::moved_bytes::MovedBytes;
use flopwatch_measures::work::{GpuWork, Work};
use flopwatch_measures::{kernel_name, operation_name};
use flopwatch_model::{Category, ColumnId, Events, LossReason, RowId, Timeline, index, whole};
use flopwatch_report::page::TimelineLocation;

use super::{CompareParams, ComparedCapture};

/// One of the captures.
pub(super) struct Side<'a> {
    pub(super) timeline: &'a Timeline,
    /// Which input it is.
    input: u32,
    pub(super) work: GpuWork,
    /// The same of each GPU.
    gpus: BTreeMap<Gpu, GpuWork>,
    /// What was found of iterations, compared or not.
    pub(super) found: Iterations,
    /// The iterations that are compared; none where whole captures are.
    pub(super) iterations: Vec<Interval>,
    /// When they are.
    scope: Intervals,
    /// For each piece of work whether it belongs to them; empty where whole captures are compared.
    belongs: Vec<bool>,
}

/// A name of a category with its tally and its longest event.
#[derive(Debug, Clone)]
pub(super) struct Entry<'a> {
    name: Cow<'a, str>,
    short: Cow<'a, str>,
    tally: Tally,
    longest: Interval,
    /// Row of the longest event.
    row: Option<RowId>,
}

impl<'a> Side<'a> {
    pub(super) fn of(timeline: &'a Timeline, input: u32, params: &CompareParams) -> Self {
        let work = GpuWork::of(timeline);
        let options = IterationOptions::new(params.by, &params.range);
        let found = iteration::of_work(timeline, &work, &options);
        let skip = usize::try_from(params.skip_iterations).unwrap_or(usize::MAX);
        let is_compared = |list: &[Iteration]| (0..list.len()).map(|position| position >= skip).collect::<Vec<bool>>();
        let compared: Vec<bool> = found.loops().flat_map(is_compared).collect();
        let kept = found.list.iter().zip(&compared).filter(|(_, compared)| **compared);
        let iterations: Vec<Interval> = kept.map(|(iteration, _)| iteration.time).collect();
        let scope: Intervals = iterations.iter().copied().collect();
        let assigned = found.assign(timeline, &work).iteration;
        let belongs = work.all().iter().zip(assigned).map(|(work, position)| {
            // A source that recorded no launch may not say which process the work is of either: its
            // time is all that there is.
            let by_time =
                || position == Assignment::NONE && work.launch(timeline).is_none() && holds(&scope, work.time.start);
            compared.get(index(position)).copied().unwrap_or_else(by_time)
        });
        Self {
            timeline,
            input,
            belongs: belongs.collect(),
            scope,
            gpus: work.by_gpu(timeline),
            work,
            found,
            iterations,
        }
    }

    /// Compares the whole capture in place of its iterations.
    pub(super) fn compare_whole(&mut self) {
        self.iterations.clear();
        self.belongs.clear();
        self.scope = Intervals::default();
    }

    /// How often what is compared happens.
    pub(super) fn units(&self) -> u64 {
        u64::try_from(self.iterations.len()).unwrap_or(u64::MAX).max(1)
    }

    /// The work that belongs to what is compared.
    fn compared_work(&self) -> impl Iterator<Item = Work> + '_ {
        let all = self.work.all().iter().enumerate();
        let whole = self.belongs.is_empty();
        let within = all.filter(move |(at, _)| whole || self.belongs.get(*at).copied().unwrap_or(false));
        within.map(|(_, work)| *work)
    }

    /// Kernels or whole graphs, as `category` says, by name.
    pub(super) fn kernels(&self, category: Category) -> Vec<Entry<'a>> {
        let events = self.timeline.capture.events.get(&category);
        let Some(events) = events else { return Vec::new() };
        let kernels = self.compared_work().filter(|work| work.category == category);
        let tallies = tallies(events, kernels.map(|work| index(work.at)));
        let named = events.names.iter().zip(tallies).enumerate();
        let named = named.map(|(position, (name, (tally, longest, row)))| Entry {
            name: name.into(),
            short: kernel_name::short_of(events, position).into(),
            tally,
            longest,
            row,
        });
        named.filter(|entry| entry.tally.count > 0).collect()
    }

    /// Ranges of a category by name, without the numbers that tell one from the next.
    pub(super) fn ranges(&self, category: Category) -> Vec<Entry<'a>> {
        let events = self.timeline.capture.events.get(&category);
        let Some(events) = events else { return Vec::new() };
        let starts = events.start_ns.iter().enumerate();
        let within = starts
            .filter(|(_, start)| self.scope.is_empty() || holds(&self.scope, **start))
            .map(|(at, _)| at);
        let mut found: BTreeMap<Cow<'a, str>, Entry<'a>> = BTreeMap::new();
        for (name, (tally, longest, row)) in events.names.iter().zip(tallies(events, within)) {
            if tally.count == 0 {
                continue;
            }
            let name = operation_name::normalised(name);
            let entry = found.entry(name.clone()).or_insert_with(|| Entry {
                short: name.clone(),
                name,
                tally: Tally::default(),
                longest,
                row,
            });
            if longest.len() > entry.longest.len() {
                (entry.longest, entry.row) = (longest, row);
            }
            entry.tally.merge(tally);
        }
        found.into_values().collect()
    }

    /// Copies and memsets by direction: their tally and their bytes.
    pub(super) fn copies(&self) -> BTreeMap<Category, (Tally, MovedBytes)> {
        let mut copies: BTreeMap<Category, (Tally, MovedBytes)> = BTreeMap::new();
        for work in self
            .compared_work()
            .filter(|work| work.category.columns().contains(&ColumnId::Bytes))
        {
            let (tally, moved) = copies.entry(work.category).or_default();
            tally.add(work.time.len());
            moved.add(work.bytes(self.timeline));
        }
        copies
    }

    /// How the GPUs spent what is compared, all of them together: of each its iterations, or from
    /// its first work to its last.
    pub(super) fn gpu_time(&self) -> ExclusiveTime {
        let mut time = ExclusiveTime::default();
        for work in self.gpus.values() {
            let busy = BusyByClass::of(work);
            let whole = work.span();
            let windows = if self.scope.is_empty() {
                whole.as_slice()
            } else {
                self.scope.as_slice()
            };
            for window in windows {
                time = time.plus(ExclusiveTime::of(&busy, *window));
            }
        }
        time
    }

    /// From the first GPU work to the last, of the GPU that has the longest such time.
    pub(super) fn gpu_span_ns(&self) -> Option<u64> {
        self.gpus.values().filter_map(|work| Some(work.span()?.len())).max()
    }

    /// The product names of the GPUs that did at least a hundredth of the work, sorted; empty texts
    /// where the source names none. A GPU that only a library's start touched does not count.
    pub(super) fn gpus(&self) -> Vec<String> {
        let busy: Vec<(Gpu, u64)> = self
            .gpus
            .iter()
            .map(|(gpu, work)| (*gpu, work.busy().len_ns()))
            .collect();
        let all: u128 = busy.iter().map(|(_, busy)| u128::from(*busy)).sum();
        let named = busy
            .iter()
            .filter(|(_, busy)| u128::from(*busy) * 100 >= all)
            .map(|(gpu, _)| {
                let known = self
                    .timeline
                    .capture
                    .devices
                    .iter()
                    .find(|device| device.id == gpu.device);
                known.map(|device| device.name.clone()).unwrap_or_default()
            });
        let mut named: Vec<String> = named.collect();
        named.sort();
        named
    }

    /// The highest memory in use that was recorded, per device, in bytes: what allocators said,
    /// otherwise the series of memory in use.
    pub(super) fn peaks(&self) -> BTreeMap<String, u64> {
        let capture = &self.timeline.capture;
        let mut peaks: BTreeMap<String, u64> = BTreeMap::new();
        let mut running: BTreeMap<(u32, u32), i128> = BTreeMap::new();
        for allocation in &capture.allocations {
            let Some(device) = allocation.device else { continue };
            // Where the allocator does not say what is in use, it is what was given out and not
            // taken back since the capture began.
            let sum = running.entry((allocation.process, device)).or_default();
            *sum = (*sum + i128::from(allocation.bytes)).max(0);
            let in_use = allocation
                .allocated
                .unwrap_or_else(|| u64::try_from(*sum).unwrap_or(u64::MAX));
            let peak = peaks.entry(format!("gpu{device}")).or_default();
            *peak = in_use.max(*peak);
        }
        if !peaks.is_empty() {
            return peaks;
        }
        let memory = ["memory_used", "memory_allocated"];
        let series = capture.counters.iter().filter(|series| {
            series.unit == "bytes"
                && series.device != "cpu"
                && memory.iter().any(|name| series.metric.starts_with(name))
        });
        for series in series {
            let highest = series
                .value
                .iter()
                .copied()
                .filter(|value| value.is_finite())
                .fold(0.0_f64, f64::max);
            let peak = peaks.entry(series.device.clone()).or_default();
            *peak = whole(highest).max(*peak);
        }
        peaks
    }

    /// Events that the profiler says it lost.
    pub(super) fn lost(&self) -> u64 {
        let losses = self.timeline.capture.losses.list();
        let dropped = losses.iter().filter(|loss| loss.reason == LossReason::Dropped);
        dropped.map(|loss| loss.count).fold(0, u64::saturating_add)
    }

    /// An entry as it is matched with those of the other side.
    pub(super) fn named<'e>(&self, entry: &'e Entry<'_>) -> NameTally<'e> {
        NameTally {
            name: &entry.name,
            short: &entry.short,
            tally: entry.tally,
            longest: Some(
                TimelineLocation::new(entry.longest.start, entry.longest.end, entry.row).of_input(self.input),
            ),
        }
    }

    pub(super) fn about(&self) -> ComparedCapture {
        let capture = &self.timeline.capture;
        let kernels = self
            .compared_work()
            .filter(|work| work.category == Category::CudaKernel);
        let (mut count, mut without_launch) = (0, 0);
        for work in kernels {
            count += 1;
            without_launch += u64::from(work.launch(self.timeline).is_none());
        }
        let named = |name: String| {
            if name.is_empty() {
                "a GPU without a name".to_owned()
            } else {
                name
            }
        };
        ComparedCapture {
            session_id: self.timeline.session_id.clone(),
            tool: capture.source.tool.clone(),
            tool_version: capture.source.tool_version.clone(),
            duration_ns: capture.duration_ns,
            gpus: self.gpus().into_iter().map(named).collect(),
            iterations: u64::try_from(self.iterations.len()).unwrap_or(u64::MAX),
            kernels: count,
            kernels_without_launch: without_launch,
        }
    }
}

/// Whether `time` is in the set.
fn holds(set: &Intervals, time: u64) -> bool {
    let intervals = set.as_slice();
    let begun = intervals.partition_point(|interval| interval.start <= time);
    let latest = begun.checked_sub(1).and_then(|at| intervals.get(at));
    latest.is_some_and(|interval| time < interval.end)
}

/// For each name of the events at these places its tally, its longest event and the row of that.
fn tallies(events: &Events, events_at: impl Iterator<Item = usize>) -> Vec<(Tally, Interval, Option<RowId>)> {
    let mut found = vec![(Tally::default(), Interval::default(), None); events.names.len()];
    for at in events_at {
        let name = events.name.get(at).and_then(|name| found.get_mut(name.index()));
        let Some((tally, longest, row)) = name else { continue };
        let time = Interval::of(events, at);
        if tally.count == 0 || time.len() > longest.len() {
            (*longest, *row) = (time, events.row.get(at).copied());
        }
        tally.add(time.len());
    }
    found
}
