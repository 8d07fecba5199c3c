//! Calls of the host, and threads.

use std::collections::BTreeMap;

use flopwatch_analysis_testing::Trace;
use flopwatch_measures::enclosing::Threads;
use flopwatch_measures::interval::Interval;
use flopwatch_measures::thread_activity::{HostActivity, ThreadActivities};
use flopwatch_model::{Category, RowId, Timeline, Track};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Moments, Size, answer, list, number};

/// A call: start, length, which of [`THREADS`], which of [`CALLS`].
type Call = (u64, u64, usize, usize);

/// Process and thread.
const THREADS: [(u32, u64); 3] = [(1, 10), (1, 11), (2, 20)];

const CALLS: [(Category, Track, &str); 7] = [
    (Category::CudaApi, Track::CudaApi, "cudaStreamSynchronize"),
    (Category::CudaApi, Track::CudaApi, "cudaMalloc"),
    (Category::CudaApi, Track::CudaApi, "cuModuleLoadData"),
    (Category::CudaApi, Track::CudaApi, "cudaLaunchKernel"),
    (Category::OsRuntime, Track::OsRuntime, "poll"),
    (Category::OsRuntime, Track::OsRuntime, "ioctl"),
    (Category::Overhead, Track::Overhead, "flush"),
];

const SYNCHRONIZE: usize = 0;
const ALLOCATE: usize = 1;
const LOAD: usize = 2;
const POLL: usize = 4;

fn calls() -> impl Strategy<Value = Vec<Call>> {
    vec((0_u64..150, 0_u64..40, 0_usize..3, 0_usize..7), 1..25)
}

/// Work: start, length, process.
fn work() -> impl Strategy<Value = Vec<(u64, u64, u32)>> {
    vec((0_u64..200, 0_u64..40, 1_u32..3), 0..10)
}

fn timeline(calls: &[Call], work: &[(u64, u64, u32)]) -> Timeline {
    let mut trace = Trace::new();
    let mut rows = BTreeMap::new();
    for (start, length, thread, call) in calls {
        let (category, on, name) = CALLS[*call];
        let (process, id) = THREADS[*thread];
        let row = *rows
            .entry((*thread, on))
            .or_insert_with(|| trace.thread(process, id, on));
        trace.event(category, row, name, *start, start + length);
    }
    let streams = [1, 2].map(|process| trace.stream(process, 0, 7));
    for (start, length, process) in work {
        let stream = streams[usize::try_from(*process).unwrap() - 1];
        trace.kernel(stream, "gemm", *start, start + length);
    }
    trace.captured(Category::CudaApi);
    trace.build()
}

fn spans<'a>(calls: impl Iterator<Item = &'a Call>) -> impl Iterator<Item = (u64, u64)> {
    calls.map(|(start, length, _, _)| (*start, start + length))
}

/// When GPUs worked for a process.
fn busy(work: &[(u64, u64, u32)], process: u32) -> Moments {
    let of_process = work.iter().filter(|(_, _, of)| *of == process);
    Moments::of(of_process.map(|(start, length, _)| (*start, start + length)))
}

fn has_work(work: &[(u64, u64, u32)], process: u32) -> bool {
    work.iter().any(|(_, _, of)| *of == process)
}

/// Calls of a kind of a process.
fn of_process(calls: &[Call], kind: usize, process: u32) -> impl Iterator<Item = &Call> + Clone {
    calls
        .iter()
        .filter(move |(_, _, thread, call)| *call == kind && THREADS[*thread].0 == process)
}

/// Whether the costs of the calls of a kind are those of each nanosecond.
fn costs(found: &Value, calls: &[Call], work: &[(u64, u64, u32)], kind: usize) -> Result<(), TestCaseError> {
    let all = || calls.iter().filter(|(_, _, _, call)| *call == kind);
    let (mut held, mut idle) = (0, None);
    for process in [1, 2] {
        let times = Moments::of(spans(of_process(calls, kind, process)));
        held += times.count();
        if has_work(work, process) && of_process(calls, kind, process).next().is_some() {
            *idle.get_or_insert(0) += times.without(&busy(work, process)).count();
        }
    }
    for (field, expected) in [
        ("calls", all().count().size()),
        ("total_ns", all().map(|(_, length, _, _)| *length).sum::<u64>()),
        ("longest_ns", all().map(|(_, length, _, _)| *length).max().unwrap_or(0)),
        ("held_ns", held),
    ] {
        prop_assert_eq!(number(&found[field]), expected, "{} of {}", field, CALLS[kind].2);
    }
    prop_assert_eq!(found["gpu_idle_ns"].as_u64(), idle, "{}", CALLS[kind].2);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(super::CASES))]

    #[test]
    fn what_calls_cost_is_counted_once_per_process_and_nanosecond(calls in calls(), work in work()) {
        let timeline = timeline(&calls, &work);
        let waits = answer("host-sync", &Value::Null, &timeline);
        costs(&waits["cost"], &calls, &work, SYNCHRONIZE)?;
        costs(&answer("allocations", &Value::Null, &timeline)["calls"]["cost"], &calls, &work, ALLOCATE)?;
        costs(&answer("module-loading", &Value::Null, &timeline)["all"]["cost"], &calls, &work, LOAD)?;
        // Behind a wait, up to the next work of the process, where none runs.
        let behind = [1, 2].into_iter().filter(|process| has_work(&work, *process)).map(|process| {
            let busy = busy(&work, process);
            let ends = spans(of_process(&calls, SYNCHRONIZE, process)).map(|(_, end)| end);
            let next = |end: u64| (end..400).find(|at| busy.holds(*at));
            let idle = ends.filter_map(|end| Some((end, next(end)?)));
            Moments::of(idle).count()
        });
        let behind: u64 = behind.sum::<u64>();
        prop_assert_eq!(waits["gpu_idle_after_ns"].as_u64(), (!work.is_empty()).then_some(behind));
        for call in list(&waits["longest"]) {
            let process = u32::try_from(number(&call["process"])).unwrap();
            let time = Moments::of([(number(&call["start_ns"]), number(&call["start_ns"]) + number(&call["duration_ns"]))]);
            let idle = time.without(&busy(&work, process)).count();
            prop_assert_eq!(call["gpu_idle_ns"].as_u64(), has_work(&work, process).then_some(idle));
        }
    }

    #[test]
    fn a_thread_works_waits_or_is_unrecorded_in_each_nanosecond(calls in calls(), bins in 1_u32..9) {
        let found = answer("threads", &json!({"bins": bins, "limit": 100}), &timeline(&calls, &[]));
        let window = (
            calls.iter().map(|call| call.0).min().unwrap(),
            calls.iter().map(|call| call.0 + call.1).max().unwrap(),
        );
        prop_assert_eq!(number(&found["window_ns"]), window.1 - window.0);
        for row in list(&found["rows"]) {
            let of_thread = |call: &&Call| {
                let (process, id) = THREADS[call.2];
                (&row["process"], &row["thread"]) == (&json!(process), &json!(id))
            };
            let of_kind = |kind: usize| Moments::of(spans(calls.iter().filter(of_thread).filter(|call| call.3 == kind)));
            let recorded = Moments::of(spans(calls.iter().filter(of_thread)));
            let (on_gpu, on_system) = (of_kind(SYNCHRONIZE), of_kind(POLL));
            let waiting = on_gpu.or(&on_system);
            let working = recorded.without(&waiting);
            for (field, expected) in [
                ("working_ns", working.count()),
                ("waiting_ns", waiting.count()),
                ("unrecorded_ns", window.1 - window.0 - recorded.count()),
                ("os_waiting_ns", on_system.count()),
                ("gpu_waiting_ns", on_gpu.count()),
            ] {
                prop_assert_eq!(number(&row[field]), expected, "{}", field);
            }
            for track in list(&row["tracks"]) {
                let on_track = |call: &&Call| track["track"] == CALLS[call.3].1.name();
                let times = Moments::of(spans(calls.iter().filter(of_thread).filter(on_track)));
                prop_assert_eq!(number(&track["busy_ns"]), times.count());
            }
            let mut edges: Vec<u64> = list(&found["bin_starts_ns"]).iter().map(number).collect();
            edges.push(window.1);
            let over_time = list(&found["utilisation"]).iter().find(|of| (&of["process"], &of["thread"]) == (&row["process"], &row["thread"]));
            for (edge, share) in edges.windows(2).zip(over_time.iter().flat_map(|of| list(&of["working_ratio"]))) {
                let here = working.and(&Moments::of([(edge[0], edge[1])])).count();
                let length = edge[1] - edge[0];
                let reported = share.as_f64().unwrap() * f64::from(u32::try_from(length).unwrap());
                prop_assert!((reported - f64::from(u32::try_from(here).unwrap())).abs() < 1e-6);
            }
        }
    }

    /// The profiler's work comes before calls of CUDA, and these before those of the system; of
    /// calls of a kind the one that began first, and of those the longest, counts.
    #[test]
    fn a_thread_does_one_thing_in_each_nanosecond(calls in calls()) {
        let timeline = timeline(&calls, &[]);
        let threads = Threads::of(&timeline);
        let found = ThreadActivities::of(&timeline, &threads);
        for (row, described) in RowId::all().zip(&timeline.capture.rows) {
            let Some(thread) = threads.of_row(row) else { continue };
            let id = (described.process, described.thread.unwrap_or(0));
            let pieces: Vec<_> = found.within(thread, Interval::new(0, 400)).collect();
            for at in 0..400 {
                let here = |call: &&Call| THREADS[call.2] == id && (call.0..call.0 + call.1).contains(&at);
                let rank = |call: &&Call| match CALLS[call.3].0 {
                    Category::Overhead => 0,
                    Category::CudaApi => 1,
                    _ => 2,
                };
                // The sort of a trace is stable.
                let expected = calls.iter().filter(here).min_by_key(|call| (rank(call), call.0, std::cmp::Reverse(call.1)));
                let expected = expected.map(|call| match call.3 {
                    SYNCHRONIZE => HostActivity::Synchronize,
                    ALLOCATE => HostActivity::Allocate,
                    LOAD => HostActivity::LoadModule,
                    3 => HostActivity::Launch,
                    POLL => HostActivity::OsWait,
                    6 => HostActivity::Profiler,
                    _ => HostActivity::OsCall,
                });
                let piece = pieces.iter().find(|piece| (piece.time.start..piece.time.end).contains(&at));
                prop_assert_eq!(piece.map(|piece| piece.activity), expected, "at {}", at);
            }
        }
    }

    #[test]
    fn processor_and_gpu_are_active_in_each_nanosecond_that_they_are(calls in calls(), work in work(), asked in prop::option::of((0_u64..150, 1_u64..90))) {
        let asked = asked.map(|(from, length)| (from, from + length));
        let parameters = asked.map_or(Value::Null, |(from, to)| json!({"from_ns": from, "to_ns": to}));
        let found = answer("cpu-gpu", &parameters, &timeline(&calls, &work));
        let within = Moments::of([asked.unwrap_or((0, 400))]);
        let cpu = Moments::of(spans(calls.iter().filter(|call| CALLS[call.3].0 == Category::CudaApi))).and(&within);
        let gpu = busy(&work, 1).or(&busy(&work, 2)).and(&within);
        let neither = number(&found["total_ns"]) - cpu.or(&gpu).count();
        for (field, expected) in [
            ("cpu_active_ns", cpu.count()),
            ("gpu_active_ns", gpu.count()),
            ("overlap_ns", cpu.and(&gpu).count()),
            ("cpu_only_ns", cpu.without(&gpu).count()),
            ("gpu_only_ns", gpu.without(&cpu).count()),
            ("neither_ns", neither),
        ] {
            prop_assert_eq!(number(&found[field]), expected, "{}", field);
        }
        if let Some((from, to)) = asked {
            prop_assert_eq!(number(&found["total_ns"]), to - from);
        }
    }

    /// Two ranks run the same collectives, each in its own time; one ends when the other does.
    #[test]
    fn a_rank_waits_from_its_start_to_the_last_one(collectives in vec((1_u64..40, 0_u64..30, 0_u64..30, 1_u64..30), 1..8)) {
        let mut trace = Trace::new();
        let streams = [0, 1].map(|device| trace.stream(1, device, 20));
        let mut now = 0;
        let (mut waits, mut latency, mut total) = ([0, 0], 0, [0, 0]);
        for (at, (pause, first, second, both)) in collectives.iter().enumerate() {
            now += pause;
            let starts = [now + first, now + second];
            let last = starts[0].max(starts[1]);
            let end = last + both;
            for (rank, start) in starts.into_iter().enumerate() {
                let kernel = trace.kernel(streams[rank], "ncclDevKernel_AllReduce_Sum_f32_RING_LL", start, end);
                trace.text(kernel, flopwatch_model::ColumnId::ElementType, "Float");
                // No two collectives that follow each other have one size, so that none is taken
                // for the next.
                trace.number(kernel, flopwatch_model::ColumnId::InElements, 100 + u64::try_from(at).unwrap());
                waits[rank] += last - start;
                total[rank] += end - start;
            }
            latency += both;
            now = end;
        }
        let found = answer("stragglers", &Value::Null, &trace.build());
        prop_assert_eq!(number(&found["matched"]), collectives.len().size());
        prop_assert_eq!(number(&found["wait_ns"]), waits[0] + waits[1]);
        for rank in list(&found["ranks"]) {
            let device = usize::try_from(number(&rank["device"])).unwrap();
            prop_assert_eq!((number(&rank["wait_ns"]), number(&rank["collective_ns"])), (waits[device], total[device]));
        }
        let reported: u64 = list(&found["rows"]).iter().map(|row| number(&row["latency_ns"])).sum::<u64>();
        prop_assert_eq!(reported, latency);
    }
}
