//! Work of GPUs.

use flopwatch_analysis_testing::Trace;
use flopwatch_model::{Category, ColumnId, Row, Timeline, Track};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Moments, Size, answer, list, number};

/// A piece of work: start, length, which of [`PLACES`], which of [`KINDS`].
type Piece = (u64, u64, usize, usize);

/// Machine, device and stream. Two devices have one ordinal, and two streams one device.
const PLACES: [(u32, u32, u64); 4] = [(0, 0, 7), (0, 0, 8), (0, 1, 7), (1, 0, 7)];

const KINDS: [(Category, &str); 3] = [
    (Category::CudaKernel, "gemm"),
    (Category::CudaKernel, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
    (Category::CudaMemcpyH2d, "Memcpy HtoD"),
];

const COMPUTE: usize = 0;
const COMMUNICATION: usize = 1;
const MEMORY: usize = 2;

fn work() -> impl Strategy<Value = Vec<Piece>> {
    vec((0_u64..150, 0_u64..40, 0_usize..4, 0_usize..3), 1..25)
}

/// A part of the time.
fn window() -> impl Strategy<Value = (u64, u64)> {
    (0_u64..200, 1_u64..200).prop_map(|(start, length)| (start, start + length))
}

fn timeline(pieces: &[Piece]) -> Timeline {
    let mut trace = Trace::new();
    let rows = PLACES.map(|(machine, device, stream)| {
        trace.row(Row {
            capture: 0,
            machine,
            process: 1,
            track: Track::GpuStream,
            device: Some(device),
            context: Some(1),
            stream: Some(stream),
            thread: None,
            label: String::new(),
        })
    });
    for (start, length, slot, kind) in pieces {
        let (category, name) = KINDS[*kind];
        let piece = trace.event(category, rows[*slot], name, *start, start + length);
        if *kind == MEMORY {
            trace.number(piece, ColumnId::Bytes, 1000 + start);
        }
    }
    trace.build()
}

/// The work of a GPU, as results name it.
fn of_gpu<'a>(pieces: &'a [Piece], gpu: &'a Value) -> impl Iterator<Item = &'a Piece> + Clone {
    let is_here = move |slot: usize| {
        let (machine, device, _) = PLACES[slot];
        (gpu["machine"].as_u64(), gpu["device"].as_u64()) == (Some(machine.into()), Some(device.into()))
    };
    pieces.iter().filter(move |(_, _, slot, _)| is_here(*slot))
}

fn spans<'a>(pieces: impl Iterator<Item = &'a Piece>) -> impl Iterator<Item = (u64, u64)> {
    pieces.map(|(start, length, _, _)| (*start, start + length))
}

/// When each kind of work ran on a GPU.
fn by_kind(pieces: &[Piece], gpu: &Value) -> [Moments; 3] {
    [COMPUTE, COMMUNICATION, MEMORY]
        .map(|kind| Moments::of(spans(of_gpu(pieces, gpu).filter(|(_, _, _, of)| *of == kind))))
}

/// GPUs that have work.
fn gpus(pieces: &[Piece]) -> usize {
    let devices = pieces.iter().map(|(_, _, slot, _)| (PLACES[*slot].0, PLACES[*slot].1));
    devices.collect::<std::collections::BTreeSet<_>>().len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(super::CASES))]

    #[test]
    fn the_time_of_each_gpu_is_that_of_each_nanosecond(pieces in work(), asked in window()) {
        let parameters = json!({"from_ns": asked.0, "to_ns": asked.1, "micro_idle_below_ns": 5});
        for gpu in list(&answer("gpu-time", &parameters, &timeline(&pieces))["gpus"]) {
            let all = || spans(of_gpu(&pieces, &gpu["gpu"]));
            let start = all().map(|(start, _)| start).min().unwrap().max(asked.0);
            let end = all().map(|(_, end)| end).max().unwrap().min(asked.1);
            prop_assert_eq!((number(&gpu["start_ns"]), number(&gpu["end_ns"])), (start, end));
            let within = Moments::of([(start, end)]);
            let [compute, communication, memory] = by_kind(&pieces, &gpu["gpu"]).map(|times| times.and(&within));
            let hidden_by = compute.or(&communication);
            let busy = hidden_by.or(&memory);
            let idle = within.without(&busy).pieces();
            let micro: Vec<u64> = idle.iter().copied().filter(|piece| *piece < 5).collect();
            let parts = &gpu["parts"];
            for (found, expected) in [
                (&parts["window_ns"], end - start),
                (&parts["compute_ns"], compute.count()),
                (&parts["exposed_communication_ns"], communication.without(&compute).count()),
                (&parts["exposed_memory_ns"], memory.without(&hidden_by).count()),
                (&parts["idle_ns"], idle.iter().sum::<u64>()),
                (&gpu["busy_ns"], busy.count()),
                (&gpu["non_compute_ns"], busy.without(&compute).count()),
                (&gpu["communication_ns"], communication.count()),
                (&gpu["memory_ns"], memory.count()),
                (&gpu["idle_pieces"], u64::try_from(idle.len()).unwrap()),
                (&gpu["longest_idle_ns"], idle.iter().copied().max().unwrap_or(0)),
                (&gpu["micro_idle_ns"], micro.iter().sum::<u64>()),
                (&gpu["micro_idle_pieces"], u64::try_from(micro.len()).unwrap()),
                (&gpu["gpu_ops"], all().filter(|span| is_in(*span, (start, end))).count().size()),
            ] {
                prop_assert_eq!(number(found), expected, "{}", gpu);
            }
        }
    }

    #[test]
    fn kinds_of_work_at_once_are_those_of_each_nanosecond(pieces in work()) {
        let found = answer("overlap", &Value::Null, &timeline(&pieces));
        let long: Vec<Piece> = pieces.iter().copied().filter(|piece| piece.1 > 0).collect();
        prop_assert!((gpus(&long)..=gpus(&pieces)).contains(&list(&found["gpus"]).len()));
        for gpu in list(&found["gpus"]) {
            let [compute, communication, memory] = by_kind(&pieces, &gpu["gpu"]);
            for (field, expected) in [
                ("busy_ns", compute.or(&communication).or(&memory)),
                ("communication_ns", communication.clone()),
                ("communication_under_compute_ns", communication.and(&compute)),
                ("memory_ns", memory.clone()),
                ("memory_under_compute_ns", memory.and(&compute)),
                ("memory_under_communication_ns", memory.and(&communication)),
            ] {
                prop_assert_eq!(number(&gpu[field]), expected.count(), "{}", field);
            }
            for mix in list(&gpu["mixes"]) {
                let runs = ["compute", "communication", "memory"].map(|class| mix[class].as_bool().unwrap());
                let exactly = |at: u64| [&compute, &communication, &memory].map(|times| times.holds(at)) == runs;
                prop_assert_eq!(number(&mix["time_ns"]), (0..200).filter(|at| exactly(*at)).count().size());
            }
            for entry in list(&gpu["at_once"]) {
                let gpu_ops = number(&entry["gpu_ops"]);
                let at_once = |at: u64| spans(of_gpu(&pieces, &gpu["gpu"])).filter(|(start, end)| (*start..*end).contains(&at)).count();
                let expected = (0..200).filter(|at| u64::try_from(at_once(*at)).unwrap().min(8) == gpu_ops).count();
                prop_assert_eq!(number(&entry["time_ns"]), expected.size());
            }
        }
    }

    #[test]
    fn the_time_of_a_class_is_the_union_of_its_gpu_ops(pieces in work()) {
        for class in list(&answer("kernel-types", &Value::Null, &timeline(&pieces))["gpus"]) {
            let kind = ["compute", "communication", "memory"].iter().position(|name| class["class"] == *name).unwrap();
            let of_class = || of_gpu(&pieces, &class["gpu"]).filter(|(_, _, _, of)| *of == kind);
            prop_assert_eq!(number(&class["gpu_ops"]), of_class().count().size());
            prop_assert_eq!(number(&class["sum_ns"]), of_class().map(|(_, length, _, _)| length).sum::<u64>());
            prop_assert_eq!(number(&class["busy_ns"]), Moments::of(spans(of_class())).count());
        }
    }

    #[test]
    fn what_is_told_of_each_part_of_the_time_is_what_its_nanoseconds_hold(pieces in work(), asked in window(), bins in 1_u64..9) {
        let parameters = json!({"from_ns": asked.0, "to_ns": asked.1, "bins": bins});
        let found = answer("utilization", &parameters, &timeline(&pieces));
        let mut edges: Vec<u64> = list(&found["bin_starts_ns"]).iter().map(number).collect();
        edges.push(number(&found["end_ns"]));
        for gpu in list(&found["gpus"]) {
            let [compute, communication, memory] = by_kind(&pieces, &gpu["gpu"]);
            let hidden_by = compute.or(&communication);
            for (bin, edge) in edges.windows(2).enumerate() {
                let within = Moments::of([(edge[0], edge[1])]);
                for (field, times) in [
                    ("busy_ns", hidden_by.or(&memory)),
                    ("compute_ns", compute.clone()),
                    ("exposed_communication_ns", communication.without(&compute)),
                    ("exposed_memory_ns", memory.without(&hidden_by)),
                ] {
                    prop_assert_eq!(number(&gpu[field][bin]), times.and(&within).count(), "{}", field);
                }
            }
        }
        let last = edges.len() - 2;
        let whole = (edges[0], edges[last + 1]);
        for copies in list(&found["copies"]) {
            let here = || of_gpu(&pieces, &copies["gpu"]).filter(|(_, _, _, kind)| *kind == MEMORY);
            let times = Moments::of(spans(here())).and(&Moments::of([whole]));
            prop_assert_eq!(number(&copies["busy_ns"]), times.count());
            let inside = spans(here()).filter(|span| is_in(*span, whole)).count();
            prop_assert_eq!(number(&copies["copies"]), inside.size());
            // Of a copy the bytes up to each nanosecond are rounded down.
            let moved = |(start, length, _, _): &Piece, until: u64| {
                let past = until.clamp(*start, start + length) - start;
                (1000 + start) * past / (*length).max(1)
            };
            for (bin, edge) in edges.windows(2).enumerate() {
                let long = here().filter(|(_, length, _, _)| *length > 0);
                let long: u64 = long.map(|piece| moved(piece, edge[1]) - moved(piece, edge[0])).sum::<u64>();
                let at_once = here().filter(|(start, length, _, _)| *length == 0 && in_bin(*start, edge, bin == last));
                let at_once: u64 = at_once.map(|(start, ..)| 1000 + start).sum::<u64>();
                prop_assert_eq!(number(&copies["bytes_by_bin"][bin]), long + at_once);
            }
        }
    }

    #[test]
    fn communication_is_hidden_by_computation_of_its_own_gpu_alone(pieces in work()) {
        let found = answer("collectives", &json!({"limit": 1000}), &timeline(&pieces));
        let mut sums = [0, 0];
        for (machine, device) in [(0, 0), (0, 1), (1, 0)] {
            let [compute, communication, _] = by_kind(&pieces, &json!({"machine": machine, "device": device}));
            let hidden = communication.and(&compute).count();
            sums = [sums[0] + communication.count(), sums[1] + hidden];
            let here = |row: &&Value| (&row["machine"], &row["device"]) == (&json!(machine), &json!(device));
            if let Some(row) = list(&found["devices"]).iter().find(here) {
                prop_assert_eq!((number(&row["communication_ns"]), number(&row["hidden_ns"])), (communication.count(), hidden));
                prop_assert_eq!(number(&row["exposed_ns"]), communication.without(&compute).count());
            } else {
                prop_assert_eq!(communication.count(), 0);
            }
        }
        prop_assert_eq!([number(&found["communication_ns"]), number(&found["hidden_ns"])], sums);
        let calls: u64 = list(&found["longest"]).iter().map(|call| number(&call["hidden_ns"])).sum::<u64>();
        let one = |piece: &&Piece| {
            let (machine, device, _) = PLACES[piece.2];
            let [compute, ..] = by_kind(&pieces, &json!({"machine": machine, "device": device}));
            Moments::of(spans(std::iter::once(*piece))).and(&compute).count()
        };
        let expected: u64 = pieces.iter().filter(|piece| piece.3 == COMMUNICATION).map(|piece| one(&piece)).sum::<u64>();
        prop_assert_eq!(calls, expected);
    }
}

/// Whether a time has a part in `window`; one of no length, whether it is in it.
fn is_in((start, end): (u64, u64), window: (u64, u64)) -> bool {
    if start == end {
        window.0 <= start && start <= window.1
    } else {
        start < window.1 && end > window.0
    }
}

/// Whether a point of time is in a part; the end of the whole is in the last one.
fn in_bin(at: u64, edge: &[u64], is_last: bool) -> bool {
    (edge[0]..edge[1]).contains(&at) || (is_last && at == edge[1])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(super::CASES))]

    /// Calls in any order, some without work and some with several pieces, and work without a call.
    #[test]
    fn lengths_and_delays_of_launches_are_those_of_each_pair(
        calls in vec((0_u64..100, 0_u64..30, vec((0_u64..200, 0_u64..30), 0..3)), 0..12), alone in vec((0_u64..200, 0_u64..30), 0..4),
    ) {
        let mut trace = Trace::new();
        let (stream, thread) = (trace.stream(1, 0, 7), trace.thread(1, 1, Track::CudaApi));
        for (start, length, gpu_ops) in &calls {
            let call = trace.call(thread, "cudaGraphLaunch", *start, start + length);
            for (begin, took) in gpu_ops {
                let kernel = trace.kernel(stream, "k", *begin, begin + took);
                trace.launched_by(kernel, call);
            }
        }
        for (begin, took) in &alone {
            trace.kernel(stream, "k", *begin, begin + took);
        }
        let found = answer("launches", &json!({"slow_call_ns": 10, "late_ns": 20}), &trace.build());
        let launching = || calls.iter().filter(|(_, _, gpu_ops)| !gpu_ops.is_empty());
        // A call counts once, with its first work.
        let first = |(_, _, gpu_ops): &(u64, u64, Vec<(u64, u64)>)| {
            *gpu_ops.iter().min_by_key(|(begin, took)| (*begin, std::cmp::Reverse(*took))).unwrap()
        };
        let delay = |call: &(u64, u64, Vec<(u64, u64)>)| first(call).0.saturating_sub(call.0 + call.1);
        let gpu_ops = || calls.iter().flat_map(|call| call.2.iter().map(move |work| (call, work)));
        for (name, found, expected) in [
            ("joined", &found["coverage"]["joined"], gpu_ops().count().size()),
            ("gpu_ops", &found["coverage"]["gpu_ops"], (gpu_ops().count() + alone.len()).size()),
            ("before", &found["coverage"]["before_call"], gpu_ops().filter(|(call, (begin, _))| *begin < call.0).count().size()),
            ("call", &found["call"]["sum_ns"], launching().map(|(_, length, _)| *length).sum::<u64>()),
            ("gpu", &found["gpu"]["sum_ns"], gpu_ops().map(|(_, (_, took))| *took).sum::<u64>()),
            ("delay", &found["delay"]["sum_ns"], launching().map(delay).sum::<u64>()),
            ("longest delay", &found["delay"]["max_ns"], launching().map(delay).max().unwrap_or(0)),
            ("slow", &found["slow_calls"], launching().filter(|(_, length, _)| *length > 10).count().size()),
            ("late", &found["late_gpu_ops"], launching().filter(|call| delay(call) > 20).count().size()),
            ("short", &found["short_gpu_ops"], launching().filter(|call| first(call).1 < call.1).count().size()),
        ] {
            prop_assert_eq!(number(found), expected, "{}", name);
        }
    }
}
