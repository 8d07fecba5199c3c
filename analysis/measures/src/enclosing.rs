//! Which GPU work was launched inside a range: the join of ranges, annotations and operators of a
//! thread to the work of GPUs.
//!
//! A range encloses a piece of GPU work when the call that launched it begins inside the range on
//! the same thread. When the work itself ran does not matter: it often runs after the range has
//! ended.

use std::collections::HashMap;

use flopwatch_model::{Category, RowId, Timeline, index};

use crate::interval::{Interval, Intervals};
use crate::work::{GpuWork, Work};

/// The threads of a timeline, numbered from 0. A thread has a row per track, and all of them have
/// its number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Threads {
    of_row: Vec<Option<u32>>,
    count: u32,
}

impl Threads {
    /// Of the rows of `timeline`, which must have been read.
    pub fn of(timeline: &Timeline) -> Self {
        let mut known = HashMap::new();
        let mut count = 0_u32;
        let of_row = timeline.capture.rows.iter().map(|row| {
            let key = (row.capture, row.machine, row.process, row.thread?);
            let number = known.entry(key).or_insert_with(|| {
                count += 1;
                count - 1
            });
            Some(*number)
        });
        let of_row = of_row.collect();
        Self { of_row, count }
    }

    /// The same, and those that sources give no number but a label, as traces of PyTorch do whose
    /// numbers of threads overflow: rows of the CPU with one label are of one thread.
    pub fn by_label_too(timeline: &Timeline) -> Self {
        let mut threads = Self::of(timeline);
        let mut known = HashMap::new();
        for (row, number) in timeline.capture.rows.iter().zip(&mut threads.of_row) {
            if number.is_none() && row.device.is_none() {
                let key = (row.capture, row.machine, row.process, row.label.as_str());
                *number = Some(*known.entry(key).or_insert_with(|| {
                    threads.count += 1;
                    threads.count - 1
                }));
            }
        }
        threads
    }

    /// The thread that a row belongs to; `None` of a row of a GPU and of one without a thread.
    pub fn of_row(&self, row: RowId) -> Option<u32> {
        self.of_row.get(row.index()).copied().flatten()
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.count
    }
}

/// A piece of GPU work and the call that launched it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaunchInterval {
    /// When the call ran on its thread.
    pub call: Interval,
    /// When the work ran on the GPU.
    pub time: Interval,
    /// Place of the work in [`GpuWork::all`].
    pub work: u32,
    /// The call's place among the events of [`Category::CudaApi`].
    pub launch: u32,
}

/// The work that one thread launched, in the order of the calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct OfThread {
    launched: Vec<LaunchInterval>,
    /// Total length in ns of the work before each place; one longer than `launched`.
    length: Vec<u64>,
    /// How often, before each place, work began before the work launched just before it had ended;
    /// one longer than `launched`.
    overlaps: Vec<u32>,
}

/// The work of GPUs by the thread that launched it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchedWork {
    threads: Vec<OfThread>,
    matched: u64,
    unmatched: u64,
}

impl LaunchedWork {
    /// Of `work`, the GPU work of `timeline`. Needs rows, the events of [`Category::CudaApi`] and
    /// [`flopwatch_model::ColumnId::Launch`].
    pub fn of(timeline: &Timeline, threads: &Threads, work: &GpuWork) -> Self {
        Self::of_those(timeline, threads, work, |_| true)
    }

    /// The same of the pieces that `wanted` picks.
    pub fn of_those(timeline: &Timeline, threads: &Threads, work: &GpuWork, wanted: impl Fn(&Work) -> bool) -> Self {
        let mut found = Self {
            threads: vec![OfThread::default(); index(threads.count())],
            ..Self::default()
        };
        let calls = timeline.capture.events.get(&Category::CudaApi);
        for (number, piece) in (0_u32..).zip(work.all()).filter(|(_, piece)| wanted(piece)) {
            let thread = || {
                let (calls, launch) = (calls?, piece.launch(timeline)?);
                let thread = threads.of_row(*calls.row.get(launch)?)?;
                let launched = LaunchInterval {
                    call: Interval::of(calls, launch),
                    time: piece.time,
                    work: number,
                    launch: u32::try_from(launch).ok()?,
                };
                Some((index(thread), launched))
            };
            let target = thread().and_then(|(thread, launched)| Some((found.threads.get_mut(thread)?, launched)));
            if let Some((thread, launched)) = target {
                thread.launched.push(launched);
                found.matched += 1;
            } else {
                found.unmatched += 1;
            }
        }
        for thread in &mut found.threads {
            thread.index();
        }
        found
    }

    /// Pieces of work whose call is known.
    pub fn matched(&self) -> u64 {
        self.matched
    }

    /// Pieces of work whose call is not in the capture, so that no range encloses them.
    pub fn unmatched(&self) -> u64 {
        self.unmatched
    }

    /// All that `thread` launched, in the order of the calls.
    pub fn by_thread(&self, thread: u32) -> &[LaunchInterval] {
        self.thread(thread).map_or(&[], |thread| &thread.launched)
    }

    /// What `thread` launched with calls that begin inside `range`, in the order of the calls.
    /// O(log n).
    pub fn inside(&self, thread: u32, range: Interval) -> &[LaunchInterval] {
        let launched = self.thread(thread).map(|thread| thread.inside(range));
        launched.map_or(&[], |(_, launched)| launched)
    }

    /// The same with calls that also end inside `range`, as the reports of Nsight Systems have it.
    pub fn within(&self, thread: u32, range: Interval) -> impl Iterator<Item = &LaunchInterval> {
        let launched = self.inside(thread, range).iter();
        launched.filter(move |launched| launched.call.end <= range.end)
    }

    /// Length in ns of the union of the work [`inside`](Self::inside). O(log n) where that work ran
    /// piece after piece, as on one stream.
    pub fn busy_ns(&self, thread: u32, range: Interval) -> u64 {
        let Some(thread) = self.thread(thread) else {
            return 0;
        };
        let (first, launched) = thread.inside(range);
        thread.one_after_another_ns(first, launched.len()).unwrap_or_else(|| {
            let times = launched.iter().map(|launched| launched.time);
            Intervals::union_of(times).len_ns()
        })
    }

    fn thread(&self, thread: u32) -> Option<&OfThread> {
        self.threads.get(index(thread))
    }
}

impl OfThread {
    fn index(&mut self) {
        self.launched.sort_unstable();
        let (mut length, mut overlaps, mut last_end) = (0_u64, 0_u32, 0_u64);
        self.length.push(length);
        self.overlaps.push(overlaps);
        for launched in &self.launched {
            length = length.saturating_add(launched.time.len());
            overlaps += u32::from(launched.time.start < last_end);
            last_end = launched.time.end;
            self.length.push(length);
            self.overlaps.push(overlaps);
        }
    }

    /// Where the work that was launched inside begins, and the work.
    fn inside(&self, range: Interval) -> (usize, &[LaunchInterval]) {
        let first = self
            .launched
            .partition_point(|launched| launched.call.start < range.start);
        let last = self
            .launched
            .partition_point(|launched| launched.call.start < range.end);
        (first, self.launched.get(first..last).unwrap_or_default())
    }

    /// Total length of `count` pieces from `first` on; `None` where some of them overlap.
    fn one_after_another_ns(&self, first: usize, count: usize) -> Option<u64> {
        if count == 0 {
            return Some(0);
        }
        // The first piece may overlap the one before it, which is not among these.
        let overlaps = |at: usize| self.overlaps.get(at);
        if overlaps(first + 1)? != overlaps(first + count)? {
            return None;
        }
        self.length.get(first + count)?.checked_sub(*self.length.get(first)?)
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::Track;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn work_belongs_to_the_range_in_which_its_call_began_on_the_same_thread() {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 7);
        let (api, other_api) = (trace.thread(1, 10, Track::CudaApi), trace.thread(1, 11, Track::CudaApi));
        let nvtx = trace.thread(1, 10, Track::Nvtx);
        // Two launches inside 100..200, of which one ends outside; one before; one at the same time
        // on another thread.
        trace.launch_kernel((api, 90, 99), (stream, "before", 100, 110));
        trace.launch_kernel((api, 110, 120), (stream, "a", 300, 340));
        trace.launch_kernel((api, 195, 205), (stream, "b", 340, 360));
        trace.launch_kernel((other_api, 110, 120), (stream, "other", 360, 999));
        trace.kernel(stream, "unmatched", 1000, 1001);
        let timeline = trace.build();
        let (threads, work) = (Threads::of(&timeline), GpuWork::of(&timeline));
        let launched = LaunchedWork::of(&timeline, &threads, &work);
        let thread = threads.of_row(nvtx).unwrap();
        let range = Interval::new(100, 200);
        let names = |list: Vec<&LaunchInterval>| -> Vec<String> {
            let work = list.iter().map(|launched| work.all()[index(launched.work)]);
            work.map(|work| work.name(&timeline).to_owned()).collect()
        };
        assert_eq!(names(launched.inside(thread, range).iter().collect()), ["a", "b"]);
        assert_eq!(names(launched.within(thread, range).collect()), ["a"]);
        assert_eq!(launched.busy_ns(thread, range), 60);
        assert_eq!((launched.matched(), launched.unmatched()), (4, 1));
        assert_eq!(threads.of_row(stream), None);
    }

    #[test]
    fn threads_without_a_number_are_known_by_their_label() {
        let mut trace = Trace::new();
        let numbered = trace.thread(1, 10, Track::CudaApi);
        let stream = trace.stream(1, 0, 7);
        let mut labelled = |label: &str, track| {
            let row = flopwatch_model::Row {
                label: label.to_owned(),
                ..flopwatch_model::Row::of(1, track)
            };
            trace.row(row)
        };
        let api = labelled("thread -9", Track::CudaApi);
        let op = labelled("thread -9", Track::CpuOp);
        let other = labelled("thread -8", Track::CpuOp);
        let timeline = trace.build();
        let threads = Threads::by_label_too(&timeline);
        let of = |row| threads.of_row(row);
        assert_eq!(
            (of(numbered), of(api), of(op), of(other), of(stream)),
            (Some(0), Some(1), Some(1), Some(2), None)
        );
        assert_eq!((threads.count(), Threads::of(&timeline).count()), (3, 1));
    }

    proptest! {
        #[test]
        fn busy_time_inside_a_range_is_the_length_of_the_union(
            pieces in vec((0_u64..50, 0_u64..200, 0_u64..20), 0..30), start in 0_u64..50, length in 0_u64..50,
        ) {
            let mut trace = Trace::new();
            let (stream, api) = (trace.stream(1, 0, 7), trace.thread(1, 10, Track::CudaApi));
            for (call, begin, took) in &pieces {
                trace.launch_kernel((api, *call, call + 1), (stream, "k", *begin, begin + took));
            }
            let timeline = trace.build();
            let threads = Threads::of(&timeline);
            let launched = LaunchedWork::of(&timeline, &threads, &GpuWork::of(&timeline));
            let range = Interval::new(start, start + length);
            let inside = pieces.iter().filter(|(call, _, _)| (start..start + length).contains(call));
            let expected: Intervals = inside.map(|(_, begin, took)| Interval::new(*begin, begin + took)).collect();
            prop_assert_eq!(launched.busy_ns(threads.of_row(api).unwrap(), range), expected.len_ns());
        }
    }
}
