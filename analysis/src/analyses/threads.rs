//! What each thread of the host did: worked, waited, or did nothing that was recorded.

mod page;

use std::collections::BTreeMap;

use flopwatch_measures::api_call::ApiCall;
use flopwatch_measures::coverage::Coverage;
use flopwatch_measures::holder::{ThreadKey, thread_of};
use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_measures::os_call::OsCall;
use flopwatch_model::{Category, Figures, Needs, RowId, Timeline, Track, figures_by_key, listed, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;

/// Work and waits of the threads of the host.
#[derive(Debug)]
pub struct Threads;

/// Parameters of [`Threads`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ThreadsParams {
    /// Most threads in the result, those that worked longest.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u32,
    /// Pieces of time in which utilisation is given.
    #[schemars(range(min = 1, max = 2_000))]
    pub bins: u32,
    /// Threads whose utilisation over time is given.
    #[schemars(range(min = 0, max = 100))]
    pub charted: u32,
}

impl Default for ThreadsParams {
    fn default() -> Self {
        Self {
            limit: 200,
            bins: 100,
            charted: 8,
        }
    }
}

/// What is read: what threads do, and behind it when they ran.
const READ: &[Category] = &[
    Category::CudaApi,
    Category::CudnnApi,
    Category::CublasApi,
    Category::NvtxRange,
    Category::OsRuntime,
    Category::CpuOp,
    Category::Annotation,
    Category::Step,
    Category::PythonFunction,
    Category::Overhead,
    Category::CpuRunning,
];

/// Categories of what threads do.
const OF_THREADS: &[Category] = match READ {
    [of_threads @ .., Category::CpuRunning] => of_threads,
    all => all,
};

/// What the threads of a capture did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ThreadsResult {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// Length in ns from the first event to the end of the last: the window of every thread.
    pub window_ns: u64,
    /// Threads of which anything was recorded.
    pub threads: u64,
    /// Time in ns that threads worked, summed, by the window: how many threads worked on average.
    pub mean_working_threads: Option<f64>,
    /// The threads, those that worked longest first. Of each, `working_ns`, `waiting_ns` and
    /// `unrecorded_ns` add up to the window.
    pub rows: Vec<ThreadRow>,
    /// Threads that were left out behind these.
    pub left_out: u64,
    /// Functions of the operating system over all threads, the longest total first.
    pub os_functions: Vec<OsFunctionRow>,
    /// When each piece of time begins in ns.
    pub bin_starts_ns: Vec<u64>,
    /// Utilisation over time of the threads that worked longest.
    pub utilisation: Vec<ThreadUtilisation>,
}

/// What a thread did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ThreadRow {
    /// Process id.
    pub process: u32,
    /// Thread id.
    pub thread: u64,
    /// A text for people.
    pub label: String,
    /// Time in ns in which something of it was recorded and it did not wait.
    pub working_ns: u64,
    /// Time in ns in which it waited: in functions of the operating system that wait, or in
    /// synchronisation with a GPU.
    pub waiting_ns: u64,
    /// The rest of the window: nothing of it was recorded, but when it ran on a CPU.
    pub unrecorded_ns: u64,
    /// `working_ns` of the window.
    pub working_ratio: Option<f64>,
    /// The part of `waiting_ns` in functions of the operating system.
    pub os_waiting_ns: u64,
    /// The part of `waiting_ns` in synchronisation with a GPU.
    pub gpu_waiting_ns: u64,
    /// Time on each of its tracks, each counted once; tracks overlap.
    pub tracks: Vec<ThreadTrack>,
}

/// Time of a thread on a track.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ThreadTrack {
    /// The track: `cuda_api`, `library`, `nvtx`, `os_runtime`, `cpu_op`, `annotation`, `python`,
    /// `overhead`, or `cpu_running`: when it ran on a CPU, which is neither working nor waiting.
    pub track: String,
    /// Events on it.
    pub events: u64,
    /// Length of the union of their times in ns.
    pub busy_ns: u64,
    /// Row of the timeline.
    pub row: RowId,
}

/// A function of the operating system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OsFunctionRow {
    /// Name of the function.
    pub name: String,
    /// What it is for.
    pub kind: OsCall,
    /// Calls.
    pub calls: u64,
    /// Sum of their lengths in ns, over all threads.
    pub total_ns: u64,
    /// The longest in ns.
    pub max_ns: u64,
}

/// Utilisation of a thread over time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ThreadUtilisation {
    /// Process id.
    pub process: u32,
    /// Thread id.
    pub thread: u64,
    /// The share of each piece of time in which it worked.
    pub working_ratio: Vec<Option<f64>>,
}

impl Analysis for Threads {
    const NAME: &'static str = "threads";
    const VERSION: u32 = 2;
    const ABOUT: &'static str =
        "What each thread of the host did: worked, waited, or did nothing that was recorded, and over time.";
    const TITLE: &'static str = "Threads of the host";
    const GROUP: Group = Group::Host;
    const NEEDS: Needs = Needs::of(READ).names().rows();
    type Params = ThreadsParams;
    type Output = ThreadsResult;

    fn run(inputs: &Inputs<'_>, params: &ThreadsParams) -> Result<ThreadsResult, AnalysisError> {
        Ok(ThreadsResult::of(inputs.first(), *params))
    }

    fn page(output: &ThreadsResult) -> Result<Page, AnalysisError> {
        Ok(page::page(Self::TITLE, Self::ABOUT, output))
    }
}

/// Times that are added in the order of starts, joined where they touch.
#[derive(Default)]
struct IntervalBuilder {
    list: Vec<Interval>,
    events: u64,
}

impl IntervalBuilder {
    fn add(&mut self, time: Interval) {
        self.events += 1;
        match self.list.last_mut() {
            Some(last) if last.start <= time.start && time.start <= last.end => last.end = last.end.max(time.end),
            _ => self.list.push(time),
        }
    }
}

/// What was recorded of a row.
#[derive(Default)]
struct OfRow {
    all: IntervalBuilder,
    waiting: IntervalBuilder,
}

/// What was recorded of each row of the host.
fn by_row(timeline: &Timeline) -> Vec<OfRow> {
    let mut rows: Vec<OfRow> = timeline.capture.rows.iter().map(|_| OfRow::default()).collect();
    for category in READ {
        let Some(events) = timeline.capture.events.get(category) else {
            continue;
        };
        let waits: Vec<bool> = events
            .names
            .iter()
            .map(|name| match category {
                Category::OsRuntime => OsCall::of(name).waits(),
                Category::CudaApi => ApiCall::of(name) == ApiCall::Synchronize,
                _ => false,
            })
            .collect();
        for (at, (row, name)) in events.row.iter().zip(&events.name).enumerate() {
            let Some(found) = rows.get_mut(row.index()) else {
                continue;
            };
            let time = Interval::of(events, at);
            found.all.add(time);
            if waits.get(name.index()).copied().unwrap_or(false) {
                found.waiting.add(time);
            }
        }
    }
    rows
}

/// A thread, when it worked, and its row of the result.
type ThreadWork = (ThreadRow, Intervals);

impl ThreadsResult {
    /// Computes the result for one timeline.
    pub fn of(timeline: &Timeline, params: ThreadsParams) -> Self {
        let window = Interval::of_events(timeline);
        let mut rows_of: BTreeMap<ThreadKey, Vec<(RowId, OfRow)>> = BTreeMap::new();
        for ((id, row), found) in RowId::all().zip(&timeline.capture.rows).zip(by_row(timeline)) {
            if let Some(thread) = thread_of(row).filter(|_| found.all.events > 0) {
                rows_of.entry(thread).or_default().push((id, found));
            }
        }
        let threads = rows_of
            .into_iter()
            .map(|(thread, rows)| work_of_thread(timeline, window, thread, rows));
        let mut threads: Vec<ThreadWork> = threads.collect();
        threads.sort_by_key(|(row, _)| std::cmp::Reverse(row.working_ns));
        let working: u64 = threads.iter().map(|(row, _)| row.working_ns).sum();
        let limit = usize::try_from(params.limit).unwrap_or(usize::MAX);
        let (bin_starts_ns, utilisation) = over_time(&threads, window, params);
        Self {
            not_captured: not_captured(timeline),
            window_ns: window.len(),
            threads: u64::try_from(threads.len()).unwrap_or(u64::MAX),
            mean_working_threads: ratio(working, window.len()),
            left_out: u64::try_from(threads.len().saturating_sub(limit)).unwrap_or(u64::MAX),
            rows: threads.into_iter().take(limit).map(|(row, _)| row).collect(),
            os_functions: os_functions(timeline, limit),
            bin_starts_ns,
            utilisation,
        }
    }
}

fn work_of_thread(timeline: &Timeline, window: Interval, thread: ThreadKey, rows: Vec<(RowId, OfRow)>) -> ThreadWork {
    let (_, _, process, id) = thread;
    let mut found = ThreadRow {
        process,
        thread: id,
        ..ThreadRow::default()
    };
    let (mut recorded, mut os, mut gpu) = (Vec::new(), Vec::new(), Vec::new());
    for (id, row) in rows {
        let of = timeline.row(id);
        let track = of.map_or(Track::Other, |row| row.track);
        if found.label.is_empty() {
            found.label = of.map_or_else(String::new, |row| row.label.clone());
        }
        let busy = Intervals::union_of(row.all.list).clip(window);
        found.tracks.push(ThreadTrack {
            track: track.name().to_owned(),
            events: row.all.events,
            busy_ns: busy.len_ns(),
            row: id,
        });
        if track == Track::CpuRunning {
            continue;
        }
        recorded.extend_from_slice(busy.as_slice());
        let waiting = if track == Track::OsRuntime { &mut os } else { &mut gpu };
        waiting.extend(row.waiting.list);
    }
    let recorded = Intervals::union_of(recorded);
    let os = Intervals::union_of(os).clip(window);
    let gpu = Intervals::union_of(gpu).clip(window);
    let working = recorded.subtract(&os).subtract(&gpu);
    found.os_waiting_ns = os.len_ns();
    found.gpu_waiting_ns = gpu.len_ns();
    found.waiting_ns = os.union(&gpu).len_ns();
    found.working_ns = working.len_ns();
    found.unrecorded_ns = window.len() - recorded.len_ns();
    found.working_ratio = ratio(found.working_ns, window.len());
    (found, working)
}

fn over_time(threads: &[ThreadWork], window: Interval, params: ThreadsParams) -> (Vec<u64>, Vec<ThreadUtilisation>) {
    let step = window.len().div_ceil(u64::from(params.bins.max(1))).max(1);
    let bins: Vec<Interval> = (0..u64::from(params.bins))
        .map(|bin| window.start + bin * step)
        .map(|start| Interval::new(start, (start + step).min(window.end)))
        .take_while(|bin| !bin.is_empty())
        .collect();
    let charted = usize::try_from(params.charted).unwrap_or(usize::MAX);
    let utilisation = threads.iter().take(charted).map(|(row, working)| {
        let working = Coverage::of(working);
        let share = |bin: &Interval| ratio(working.within(*bin), bin.len());
        ThreadUtilisation {
            process: row.process,
            thread: row.thread,
            working_ratio: bins.iter().map(share).collect(),
        }
    });
    let utilisation = utilisation.collect();
    (bins.iter().map(|bin| bin.start).collect(), utilisation)
}

fn os_functions(timeline: &Timeline, limit: usize) -> Vec<OsFunctionRow> {
    let Some(events) = timeline.capture.events.get(&Category::OsRuntime) else {
        return Vec::new();
    };
    let names = u32::try_from(events.names.len()).unwrap_or(u32::MAX);
    let figures: Vec<Figures> = figures_by_key(names, &events.name, listed(&events.duration_ns));
    let rows = events
        .names
        .iter()
        .zip(figures)
        .filter(|(_, figures)| figures.count > 0);
    let rows = rows.map(|(name, figures)| OsFunctionRow {
        name: name.clone(),
        kind: OsCall::of(name),
        calls: figures.count,
        total_ns: u64::try_from(figures.total).unwrap_or(u64::MAX),
        max_ns: figures.max,
    });
    let mut rows: Vec<OsFunctionRow> = rows.collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
    rows.truncate(limit);
    rows
}

fn not_captured(timeline: &Timeline) -> Vec<NotCaptured> {
    let capture = &timeline.capture;
    let threads = NotCaptured::unless_any(capture, OF_THREADS, "what threads did");
    let waits = NotCaptured::unless_any(capture, &[Category::OsRuntime], "waits in the operating system");
    let runs = NotCaptured::unless_any(capture, &[Category::CpuRunning], "when threads ran on a CPU");
    threads.into_iter().chain(waits).chain(runs).collect()
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;

    use super::*;

    #[test]
    fn working_waiting_and_unrecorded_time_add_up_to_the_window() {
        let mut trace = Trace::new();
        let ranges = trace.thread(1, 1, Track::Nvtx);
        let (calls, os) = (trace.thread(1, 1, Track::CudaApi), trace.thread(1, 1, Track::OsRuntime));
        let other = trace.thread(1, 2, Track::OsRuntime);
        trace.event(Category::NvtxRange, ranges, "step", 0, 60);
        trace.call(calls, "cudaLaunchKernel", 5, 10);
        trace.call(calls, "cudaStreamSynchronize_v3020", 20, 40);
        trace.event(Category::OsRuntime, os, "poll", 30, 50);
        trace.event(Category::OsRuntime, os, "ioctl", 70, 75);
        trace.event(Category::OsRuntime, other, "sem_wait", 0, 100);
        let result = ThreadsResult::of(
            &trace.build(),
            ThreadsParams {
                bins: 4,
                ..ThreadsParams::default()
            },
        );
        let [main, waiter] = &result.rows[..] else {
            panic!("{result:?}");
        };
        // 0-20 and 50-60 in the range, 70-75 in ioctl; 20-50 waiting.
        assert_eq!((main.working_ns, main.waiting_ns, main.unrecorded_ns), (35, 30, 35));
        assert_eq!((main.os_waiting_ns, main.gpu_waiting_ns), (20, 20));
        assert_eq!(
            (waiter.working_ns, waiter.waiting_ns, waiter.unrecorded_ns),
            (0, 100, 0)
        );
        assert_eq!(result.mean_working_threads, Some(0.35));
        assert_eq!(result.bin_starts_ns, [0, 25, 50, 75]);
        assert_eq!(
            result.utilisation[0].working_ratio,
            [Some(0.8), Some(0.0), Some(0.6), Some(0.0)]
        );
        let functions: Vec<_> = result
            .os_functions
            .iter()
            .map(|row| (row.name.as_str(), row.kind))
            .collect();
        assert_eq!(
            functions,
            [
                ("sem_wait", OsCall::Wait),
                ("poll", OsCall::Wait),
                ("ioctl", OsCall::InputOutput)
            ]
        );
    }

    #[test]
    fn when_a_thread_ran_on_a_cpu_is_told_beside_what_it_did() {
        let mut trace = Trace::new();
        let calls = trace.thread(1, 1, Track::CudaApi);
        let runs = trace.thread(1, 1, Track::CpuRunning);
        let other = trace.thread(1, 2, Track::CpuRunning);
        trace.call(calls, "cudaLaunchKernel", 10, 20);
        trace.event(Category::CpuRunning, runs, "CPU 3", 0, 30);
        trace.event(Category::CpuRunning, runs, "CPU 4", 50, 60);
        trace.event(Category::CpuRunning, other, "CPU 3", 30, 100);
        let result = ThreadsResult::of(&trace.build(), ThreadsParams::default());
        let of = |row: &ThreadRow| {
            let run = row.tracks.iter().find(|track| track.track == "cpu_running").unwrap();
            (row.thread, row.working_ns, row.unrecorded_ns, run.busy_ns, run.events)
        };
        let found: Vec<_> = result.rows.iter().map(of).collect();
        // The second one ran the program's own code, of which nothing was recorded.
        assert_eq!(found, [(1, 10, 90, 40, 2), (2, 0, 100, 70, 1)]);
    }

    #[test]
    fn a_capture_of_no_threads_says_what_is_missing() {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 7);
        trace.kernel(stream, "gemm", 0, 10);
        let result = ThreadsResult::of(&trace.build(), ThreadsParams::default());
        assert_eq!(result.threads, 0);
        assert_eq!(result.not_captured.len(), 3);
    }
}
