//! Captures beside each other: before and after a change, and the ranks of a job.

use flopwatch_analysis_testing::Trace;
use flopwatch_model::{Category, ColumnId, Timeline, Track};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Size, answer, answer_of, list, number};

/// Kinds of work.
const WORK: [(Category, &str); 5] = [
    (Category::CudaKernel, "gemm"),
    (Category::CudaKernel, "softmax"),
    (Category::CudaKernel, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
    (Category::CudaMemcpyH2d, "Memcpy HtoD"),
    (Category::CudaMemset, "Memset"),
];
const RANGES: [&str; 3] = ["forward", "backward", "optimizer"];
/// Steps begin so far apart.
const STEP: u64 = 60;

/// What a program does.
#[derive(Debug, Clone)]
struct Program {
    /// Start of the call, from there to the start of the work, its length, the device, and which of
    /// [`WORK`].
    launches: Vec<(u64, u64, u64, u32, usize)>,
    /// Start, length, and which of [`RANGES`].
    ranges: Vec<(u64, u64, usize)>,
    /// When which device gives out or takes back how many bytes.
    memory: Vec<(u64, u32, i64)>,
    /// How many steps, and how long each is.
    steps: Vec<u64>,
}

fn program() -> impl Strategy<Value = Program> {
    (
        vec((0_u64..240, 1_u64..30, 0_u64..30, 0_u32..2, 0_usize..5), 0..20),
        vec((0_u64..240, 0_u64..60, 0_usize..3), 0..10),
        vec((0_u64..240, 0_u32..2, -50_i64..100), 0..10),
        prop_oneof![Just(Vec::new()), vec(30_u64..STEP, 2..5)],
    )
        .prop_map(|(launches, ranges, memory, steps)| Program {
            launches,
            ranges,
            memory,
            steps,
        })
}

impl Program {
    fn timeline(&self) -> Timeline {
        let mut trace = Trace::new();
        let [api, nvtx, annotations] =
            [Track::CudaApi, Track::Nvtx, Track::Annotation].map(|track| trace.thread(1, 1, track));
        let streams = [0, 1].map(|device| trace.stream(1, device, 7));
        for (call, delay, length, device, kind) in &self.launches {
            let (category, name) = WORK[*kind];
            let start = call + delay;
            let stream = streams[usize::try_from(*device).unwrap()];
            let work = trace.launch((api, *call, call + 1), category, (stream, name, start, start + length));
            if category == Category::CudaMemcpyH2d {
                trace.number(work, ColumnId::Bytes, 100 + length);
            }
        }
        for (start, length, name) in &self.ranges {
            trace.event(Category::NvtxRange, nvtx, RANGES[*name], *start, start + length);
        }
        for (t_ns, device, bytes) in &self.memory {
            trace.allocation(1, *device, *t_ns, *bytes, None);
        }
        for (number, length) in (0_u64..).zip(&self.steps) {
            let start = number * STEP;
            trace.step(annotations, number, start, start + length);
        }
        trace.build()
    }
}

/// A row with what is before and after exchanged. What is left out is told by the one side or the
/// other: places, and how much of a difference is of the calls before.
fn turned(row: &Value) -> Value {
    let members = row.as_object().unwrap().iter().filter_map(|(name, value)| {
        let exchanged = match (name.strip_prefix("before_"), name.strip_prefix("after_")) {
            _ if name.ends_with("_place") || name.ends_with("_part_ns") => return None,
            (Some(rest), _) => format!("after_{rest}"),
            (_, Some(rest)) => format!("before_{rest}"),
            _ => name.clone(),
        };
        let value = match (name.as_str(), value.as_str(), value.as_i64()) {
            ("presence", Some("before"), _) => json!("after"),
            ("presence", Some("after"), _) => json!("before"),
            (name, _, Some(difference)) if name.starts_with("difference_") => json!(-difference),
            _ => value.clone(),
        };
        Some((exchanged, value))
    });
    Value::Object(members.collect::<Map<String, Value>>())
}

/// Rows as text, in an order of their own.
fn sorted(rows: impl Iterator<Item = Value>) -> Vec<String> {
    let mut rows: Vec<String> = rows.map(|row| row.to_string()).collect();
    rows.sort();
    rows
}

/// The lists of a comparison.
const LISTS: [&str; 5] = ["/kernels", "/ranges", "/copies", "/gpu_time", "/memory_diff/rows"];

/// Each frame of a difference by its stack: its time before and after, and its change with and
/// without the frames inside it.
fn frames(of: &Value, stack: &str, found: &mut Vec<(String, [i64; 4])>) {
    let signed = |name: &str| of[name].as_i64().unwrap();
    let stack = format!("{stack};{}:{}", of["kind"], of["name"]);
    let own = ["before_ns", "after_ns", "delta", "self_delta"].map(signed);
    for inner in of["children"].as_array().into_iter().flatten() {
        frames(inner, &stack, found);
    }
    found.push((stack, own));
}

fn children_of(of: &Value) -> Vec<(String, [i64; 4])> {
    let mut found = Vec::new();
    for child in list(&of["children"]) {
        frames(child, "", &mut found);
    }
    found.sort();
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(super::CASES))]

    #[test]
    fn a_comparison_the_other_way_round_says_the_opposite(one in program(), other in program()) {
        let (one, other) = (one.timeline(), other.timeline());
        let there = answer_of("compare", &Value::Null, &[&one, &other]);
        let back = answer_of("compare", &Value::Null, &[&other, &one]);
        prop_assert_eq!(&there["unit"], &back["unit"]);
        for name in LISTS {
            let [there, back] = [&there, &back].map(|of| list(of.pointer(name).unwrap()));
            // Turned twice a row lacks what was left out.
            let twice = sorted(there.iter().map(|row| turned(&turned(row))));
            prop_assert_eq!(twice, sorted(back.iter().map(turned)), "{}", name);
        }
        let score = |of: &Value| of["comparability"]["score_ratio"].as_f64().unwrap();
        prop_assert!((score(&there) - score(&back)).abs() < 1e-9);
        let speedups = there["speedup"].as_f64().zip(back["speedup"].as_f64());
        prop_assert!(speedups.is_none_or(|(there, back)| (there * back - 1.0).abs() < 1e-9));
        prop_assert_eq!(there["speedup"].is_null(), back["speedup"].is_null());
        let verdict = |of: &Value, wanted: &str| of["verdict"] == wanted;
        for judged in ["regression_likely", "improvement_likely"] {
            prop_assert!(!(verdict(&there, judged) && verdict(&back, judged)), "{there} {back}");
        }
        let peak = |of: &Value| of["memory_diff"]["peak_mb"].as_f64();
        prop_assert_eq!(peak(&there), peak(&back).map(|peak| 0.0 - peak));
    }

    #[test]
    fn a_capture_beside_itself_has_not_changed(program in program()) {
        let timeline = program.timeline();
        let found = answer_of("compare", &Value::Null, &[&timeline, &timeline]);
        for name in LISTS {
            for row in list(found.pointer(name).unwrap()) {
                prop_assert_eq!(turned(&turned(row)), turned(row));
                let parts = ["count_part_ns", "duration_part_ns"].map(|part| row[part].as_i64().unwrap_or(0));
                prop_assert_eq!(parts, [0, 0]);
            }
        }
        prop_assert!(found["verdict"] == "neutral" || found["verdict"] == "inconclusive");
        prop_assert!(found["speedup"].as_f64().is_none_or(|speedup| (speedup - 1.0).abs() < 1e-12));
        prop_assert!((found["comparability"]["score_ratio"].as_f64().unwrap() - 1.0).abs() < 1e-9, "{}", found["comparability"]);
    }

    #[test]
    fn the_differences_of_frames_add_up_to_that_of_the_whole(
        one in program(), other in program(), is_gpu in any::<bool>(), min_duration_us in prop::sample::select(vec![0.0, 0.01, 0.05]),
        max_depth in 1_u32..4, limit in 1_u32..8,
    ) {
        let (one, other) = (one.timeline(), other.timeline());
        let weight = if is_gpu { "gpu" } else { "cpu" };
        let parameters = json!({"weight": weight, "min_duration_us": min_duration_us, "max_depth": max_depth, "limit": limit});
        let there = answer_of("flame-difference", &parameters, &[&one, &other]);
        let totals = [&one, &other].map(|timeline| number(&answer("flame-graph", &parameters, timeline)["value"]));
        prop_assert_eq!([number(&there["before_ns"]), number(&there["after_ns"])], totals);
        prop_assert_eq!(number(&there["value"]), totals[0] + totals[1]);
        let whole = there["delta"].as_i64().unwrap();
        prop_assert_eq!(whole, i64::try_from(totals[1]).unwrap() - i64::try_from(totals[0]).unwrap());
        let all = children_of(&there);
        prop_assert_eq!(all.len().size(), number(&there["frames"]));
        prop_assert_eq!(all.iter().map(|(_, [_, _, _, own])| own).sum::<i64>(), whole);
        for (stack, [before, after, delta, _]) in &all {
            prop_assert_eq!(after - before, *delta, "{}", stack);
        }
        let back = answer_of("flame-difference", &parameters, &[&other, &one]);
        let opposite = children_of(&back).into_iter().map(|(stack, [before, after, delta, own])| (stack, [after, before, -delta, -own]));
        let mut opposite: Vec<_> = opposite.collect();
        opposite.sort();
        prop_assert_eq!(&all, &opposite);
        let itself = answer_of("flame-difference", &parameters, &[&one, &one]);
        prop_assert!(children_of(&itself).iter().all(|(_, [before, after, delta, own])| before == after && (*delta, *own) == (0, 0)));
    }

    #[test]
    fn a_rank_beside_others_is_what_it_is_alone(programs in vec(program(), 1..4)) {
        let timelines: Vec<Timeline> = programs.iter().map(Program::timeline).collect();
        let all: Vec<&Timeline> = timelines.iter().collect();
        let parameters = json!({"kernels": 10_000});
        let found = answer_of("ranks", &parameters, &all);
        let about = |rank: &Value| {
            let mut rank = rank.as_object().unwrap().clone();
            rank.retain(|name, _| name != "input" && name != "place");
            Value::Object(rank)
        };
        let beside: Vec<Value> = list(&found["ranks"]).iter().map(about).collect();
        let alone: Vec<Value> = timelines
            .iter()
            .flat_map(|timeline| list(&answer("ranks", &parameters, timeline)["ranks"]).iter().map(about).collect::<Vec<_>>())
            .collect();
        prop_assert_eq!(&beside, &alone);
        for kernel in list(&found["kernels"]) {
            let times: Vec<u64> = list(&kernel["total_ns"]).iter().map(number).collect();
            let (longest, slowest) = (times.iter().copied().max().unwrap(), usize::try_from(number(&kernel["slowest"])).unwrap());
            prop_assert_eq!(times[slowest], longest);
            for (rank, (of_rank, reported)) in list(&found["ranks"]).iter().zip(&times).enumerate() {
                let input = usize::try_from(number(&of_rank["input"])).unwrap();
                let gpu = u32::from(of_rank["gpu"].as_str().unwrap().contains('1'));
                let own = programs[input].launches.iter().filter(|launch| launch.3 == gpu && kernel["name"] == WORK[launch.4].1);
                prop_assert_eq!(own.map(|launch| launch.2).sum::<u64>(), *reported, "rank {}", rank);
            }
        }
        for pace in list(&found["pace"]) {
            let lengths = || list(&pace["length_ns"]).iter().filter_map(Value::as_u64);
            let (longest, shortest) = (lengths().max().unwrap(), lengths().min().unwrap());
            prop_assert_eq!(number(&pace["spread_ns"]), longest - shortest);
            prop_assert_eq!(list(&pace["length_ns"])[usize::try_from(number(&pace["slowest"])).unwrap()].as_u64(), Some(longest));
        }
        if let Some(reported) = found["slowest"].as_object() {
            let means = || beside.iter().filter_map(|rank| rank["mean_iteration_ns"].as_f64());
            let max = means().fold(0.0, f64::max);
            prop_assert!((reported["mean_ns"].as_f64().unwrap() - max).abs() < 1e-9);
            let rank = usize::try_from(number(&reported["rank"])).unwrap();
            prop_assert!((beside[rank]["mean_iteration_ns"].as_f64().unwrap() - max).abs() < 1e-9);
        }
        // Both analyses name the same rank.
        let stragglers = answer_of("stragglers", &Value::Null, &all);
        let reported = stragglers["straggler"].as_u64();
        let one = list(&stragglers["ranks"]).iter().find(|rank| rank["rank"].as_u64() == reported);
        let straggler = &found["straggler"];
        prop_assert_eq!(straggler.is_null(), reported.is_none());
        if let Some(one) = one.filter(|_| reported.is_some()) {
            prop_assert_eq!(&straggler["wait_ns"], &one["wait_ns"]);
            let rank = &found["ranks"][usize::try_from(number(&straggler["rank"])).unwrap()];
            prop_assert_eq!(&rank["input"], &one["input"]);
            let device = format!("GPU {}", one["device"]);
            prop_assert_eq!(rank["gpu"].as_str(), Some(device.as_str()));
        }
    }
}
