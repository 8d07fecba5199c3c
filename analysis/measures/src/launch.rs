//! Pieces of GPU work with the calls that launched them.

use flopwatch_model::{Category, Figures, RowId, Timeline, approximate, index, ratio};
use schemars::JsonSchema;
use serde::Serialize;

use crate::interval::Interval;
use crate::work::{GpuWork, Work};

/// A piece of work and its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// What runs on the GPU.
    pub work: Work,
    /// When its call ran.
    pub call: Interval,
    /// The call's place among the events of [`Category::CudaApi`].
    pub at: usize,
    /// Whether it is the first work of its call. A call that launches a CUDA graph has many, and
    /// its length and delay are counted once.
    pub is_first: bool,
}

impl Launch {
    /// From the end of the call to the start of the work in ns; 0 where the work began before the
    /// call returned.
    pub const fn delay_ns(&self) -> u64 {
        self.work.time.start.saturating_sub(self.call.end)
    }
}

/// The join of GPU work to its calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchJoin {
    /// Work whose call is known, in the order in which the work began.
    pub launches: Vec<Launch>,
    /// Pieces of work whose call was not recorded.
    pub unjoined: u64,
    /// Pieces of work that began before their call did: the clocks of CPU and GPU disagree. They
    /// are among `launches`.
    pub before_call: u64,
}

impl LaunchJoin {
    /// Of `work`. Needs the events of [`Category::CudaApi`] and
    /// [`flopwatch_model::ColumnId::Launch`].
    pub fn of(timeline: &Timeline, work: &GpuWork) -> Self {
        let Some(calls) = timeline.capture.events.get(&Category::CudaApi) else {
            return Self {
                unjoined: u64::try_from(work.all().len()).unwrap_or(u64::MAX),
                ..Self::default()
            };
        };
        let mut joined = Self::default();
        let mut seen = vec![false; calls.len()];
        for work in work.all().iter().copied() {
            let launched = work.launch(timeline).and_then(|at| Some((at, seen.get_mut(at)?)));
            let Some((at, seen)) = launched else {
                joined.unjoined += 1;
                continue;
            };
            let call = Interval::of(calls, at);
            joined.before_call += u64::from(work.time.start < call.start);
            joined.launches.push(Launch {
                work,
                call,
                at,
                is_first: !std::mem::replace(seen, true),
            });
        }
        joined
    }

    /// Places among `launches` in the order of the calls, which is that of their starts. GPU
    /// operations of one call stay in the order in which they began.
    pub fn by_call(&self) -> Vec<u32> {
        let calls = self.launches.iter().map(|launch| launch.at + 1).max().unwrap_or(0);
        let mut next = vec![0_u32; calls];
        for launch in &self.launches {
            if let Some(count) = next.get_mut(launch.at) {
                *count += 1;
            }
        }
        let mut before = 0;
        for slot in &mut next {
            before += std::mem::replace(slot, before);
        }
        let mut order = vec![0; self.launches.len()];
        for (at, launch) in (0_u32..).zip(&self.launches) {
            let Some(position) = next.get_mut(launch.at) else {
                continue;
            };
            if let Some(slot) = order.get_mut(index(*position)) {
                *slot = at;
            }
            *position += 1;
        }
        order
    }

    /// How much of the work has its call.
    pub fn coverage(&self) -> LaunchCoverage {
        let joined = u64::try_from(self.launches.len()).unwrap_or(u64::MAX);
        let gpu_ops = joined + self.unjoined;
        LaunchCoverage {
            gpu_ops,
            joined,
            joined_ratio: ratio(joined, gpu_ops),
            before_call: self.before_call,
        }
    }
}

/// The call of each piece of work, by its place in [`GpuWork::all`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkCalls(Vec<Option<(RowId, Interval)>>);

impl WorkCalls {
    /// Of `work`. Needs the events of [`Category::CudaApi`] and
    /// [`flopwatch_model::ColumnId::Launch`].
    pub fn of(timeline: &Timeline, work: &GpuWork) -> Self {
        let calls = timeline.capture.events.get(&Category::CudaApi);
        let of = |work: &Work| {
            let (calls, at) = (calls?, work.launch(timeline)?);
            Some((*calls.row.get(at)?, Interval::of(calls, at)))
        };
        Self(work.all().iter().map(of).collect())
    }

    /// The row of the call that launched the work at `at`, and when it ran; `None` where it was not
    /// recorded.
    pub fn get(&self, at: u32) -> Option<(RowId, Interval)> {
        self.0.get(index(at)).copied().flatten()
    }

    /// Pieces of work whose call was recorded.
    pub fn known(&self) -> u64 {
        u64::try_from(self.0.iter().flatten().count()).unwrap_or(u64::MAX)
    }

    /// When that call ran.
    pub fn time(&self, at: u32) -> Option<Interval> {
        self.get(at).map(|(_, time)| time)
    }
}

/// How much of the GPU work has the call that launched it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct LaunchCoverage {
    /// Kernels, copies and memsets.
    pub gpu_ops: u64,
    /// Those whose call was recorded: figures of launches are of these alone.
    pub joined: u64,
    /// `joined` of `gpu_ops`; null without work.
    pub joined_ratio: Option<f64>,
    /// Those that began before their call did, by clocks that disagree.
    pub before_call: u64,
}

/// Figures of lengths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Spread {
    /// How many; with 0 all others are 0.
    pub count: u64,
    /// Sum in ns.
    pub sum_ns: u64,
    /// Mean in ns.
    pub mean_ns: f64,
    /// Median in ns; between two middle ones, their mean.
    pub median_ns: f64,
    /// Shortest in ns.
    pub min_ns: u64,
    /// Longest in ns.
    pub max_ns: u64,
}

impl From<&Figures> for Spread {
    fn from(figures: &Figures) -> Self {
        if figures.count == 0 {
            return Self::default();
        }
        Self {
            count: figures.count,
            sum_ns: u64::try_from(figures.total).unwrap_or(u64::MAX),
            mean_ns: approximate(figures.total) / approximate(figures.count.into()),
            median_ns: figures.median().unwrap_or(0.0),
            min_ns: figures.min,
            max_ns: figures.max,
        }
    }
}

impl FromIterator<u64> for Spread {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Self {
        let mut values: Vec<u64> = values.into_iter().collect();
        Self::from(&Figures::of(&mut values))
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::Track;

    use super::*;

    #[test]
    fn a_graph_is_one_call_of_many_gpu_ops() {
        let mut trace = Trace::new();
        let (stream, thread) = (trace.stream(1, 0, 7), trace.thread(1, 1, Track::CudaApi));
        let graph = trace.call(thread, "cudaGraphLaunch", 0, 10);
        for (name, start) in [("a", 20), ("b", 30), ("c", 40)] {
            let kernel = trace.kernel(stream, name, start, start + 5);
            trace.launched_by(kernel, graph);
        }
        trace.kernel(stream, "d", 50, 60);
        let timeline = trace.build();
        let joined = LaunchJoin::of(&timeline, &GpuWork::of(&timeline));
        let first: Vec<bool> = joined.launches.iter().map(|launch| launch.is_first).collect();
        assert_eq!(first, [true, false, false]);
        assert_eq!(joined.launches[0].delay_ns(), 10);
        let coverage = joined.coverage();
        assert_eq!(
            (coverage.gpu_ops, coverage.joined, coverage.joined_ratio),
            (4, 3, Some(0.75))
        );
    }

    #[test]
    fn works_are_put_in_the_order_of_their_calls() {
        let mut trace = Trace::new();
        let (one, other) = (trace.stream(1, 0, 7), trace.stream(1, 0, 8));
        let thread = trace.thread(1, 1, Track::CudaApi);
        trace.launch_kernel((thread, 0, 5), (one, "late", 90, 95));
        let graph = trace.call(thread, "cudaGraphLaunch", 10, 15);
        for (name, start) in [("b", 40), ("a", 30)] {
            let kernel = trace.kernel(other, name, start, start + 5);
            trace.launched_by(kernel, graph);
        }
        trace.launch_kernel((thread, 20, 25), (other, "early", 26, 28));
        let timeline = trace.build();
        let joined = LaunchJoin::of(&timeline, &GpuWork::of(&timeline));
        let names: Vec<&str> = joined
            .by_call()
            .into_iter()
            .map(|at| joined.launches[index(at)].work.name(&timeline))
            .collect();
        assert_eq!(names, ["late", "a", "b", "early"]);
    }

    #[test]
    fn work_that_begins_before_its_call_is_counted() {
        let mut trace = Trace::new();
        let (stream, thread) = (trace.stream(1, 0, 7), trace.thread(1, 1, Track::CudaApi));
        trace.launch_kernel((thread, 10, 20), (stream, "k", 5, 8));
        let timeline = trace.build();
        let joined = LaunchJoin::of(&timeline, &GpuWork::of(&timeline));
        assert_eq!((joined.before_call, joined.launches[0].delay_ns()), (1, 0));
    }
}
