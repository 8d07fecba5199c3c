//! The time of GPUs in real captures, held against HolisticTraceAnalysis 0.5.0
//! (`include_last_profiler_step=True`), TraceLens's published table, and an exact computation in
//! integers outside of this repository.

use serde_json::{Value, json};

use crate::captures::{analyze, timeline};
use crate::result::{find, list, numbers, said};

const CONTROL: &str = "hta/trace_diff-control-control.json.gz";
const NCCL: &str = "hta/nccl_parser_config-nccl_data.json.gz";
const RANK_0: &str = "hta/trace_filter-sampled_rank-0.json.gz";
const RANK_1: &str = "hta/trace_filter-sampled_rank-1.json.gz";
const ALEXNET: &str = "hta/alexnet-benchmark_result_2869224_1695835535_trace.json.gz";
const BERT: &str = "tracelens-h100/gaunernst_bert-small-uncased__1016001.json.gz";

/// Window, computation, exposed communication, exposed copies and idle time in ns; what of
/// communication is hidden, in hundredths of a percent. The rows of `CONTROL`, `RANK_0` and
/// `RANK_1` equal HolisticTraceAnalysis's.
const GOLDEN: &[(&str, [u64; 5], Option<u64>)] = &[
    (
        CONTROL,
        [464_594_000, 281_336_000, 87_921_000, 19_330_000, 76_007_000],
        Some(4624),
    ),
    (
        RANK_0,
        [1_222_847_000, 210_320_000, 336_983_000, 353_000, 675_191_000],
        Some(1495),
    ),
    (
        RANK_1,
        [1_231_186_000, 271_973_000, 303_523_000, 4_554_000, 651_136_000],
        Some(1993),
    ),
    (
        NCCL,
        [660_551_005, 115_655_847, 39_559_468, 2_284_699, 503_050_991],
        Some(1561),
    ),
    (
        ALEXNET,
        [12_920_244_000, 10_630_000, 0, 55_511_000, 12_854_103_000],
        None,
    ),
];

fn parts(gpu: &Value) -> [u64; 5] {
    let names = [
        "window_ns",
        "compute_ns",
        "exposed_communication_ns",
        "exposed_memory_ns",
        "idle_ns",
    ];
    names.map(|name| gpu["parts"][name].as_u64().unwrap())
}

#[test]
fn the_parts_of_the_time_equal_the_golden_figures_to_the_nanosecond() {
    for (name, expected, hidden) in GOLDEN {
        let Some(timeline) = timeline(name) else {
            return;
        };
        let times = analyze("gpu-time", &Value::Null, &[&timeline]);
        assert_eq!(list(&times["gpus"]).len(), 1, "{name}");
        assert_eq!(parts(&times["gpus"][0]), *expected, "{name}");
        assert_eq!(expected[1..].iter().sum::<u64>(), expected[0], "{name}");
        let overlap = analyze("overlap", &Value::Null, &[&timeline]);
        let ratio = overlap["gpus"][0]["communication_under_compute_ratio"].as_f64();
        let hundredths = ratio.map(|ratio| format!("{:.0}", ratio * 10_000.0));
        assert_eq!(hundredths, hidden.map(|hidden| hidden.to_string()), "{name}");
    }
}

/// HolisticTraceAnalysis's `get_gpu_kernel_breakdown(include_memory_kernels=True)` in µs:
/// computation alone, communication alone, memory alone, computation with communication,
/// computation with memory, communication with memory, all three.
#[test]
fn combinations_of_kinds_of_work_equal_those_of_holistic_trace_analysis() {
    for (name, expected) in [
        (CONTROL, [180_696, 86_554, 19_330, 66_699, 25_026, 1367, 8915]),
        (RANK_0, [151_094, 336_033, 353, 59_204, 10, 950, 12]),
        (RANK_1, [196_425, 299_495, 4554, 67_626, 18, 4028, 7904]),
    ] {
        let Some(timeline) = timeline(name) else {
            return;
        };
        let overlap = analyze("overlap", &Value::Null, &[&timeline]);
        let found = numbers(&overlap["gpus"][0]["mixes"], "time_ns").into_iter();
        let found: Vec<u64> = found.map(|ns| ns / 1000).collect();
        assert_eq!(found, expected, "{name}");
    }
}

/// HolisticTraceAnalysis finds 252 µs of computation here, by rounding to microseconds. TraceLens's
/// `gpu_timeline.csv` of the same capture: computation 0.307198 ms, copies 0.002240 ms, idle
/// 3.598387 ms of 3.907825 ms.
#[test]
fn the_parts_of_the_time_equal_the_table_of_tracelens() {
    let Some(timeline) = timeline(BERT) else {
        return;
    };
    let times = analyze("gpu-time", &Value::Null, &[&timeline]);
    let expected = [3_907_825, 307_197, 0, 2240, 3_598_388];
    assert_eq!(parts(&times["gpus"][0]), expected);
}

#[test]
fn names_of_each_class_equal_those_of_holistic_trace_analysis() {
    let Some(timeline) = timeline(CONTROL) else {
        return;
    };
    let types = analyze("kernel-types", &json!({"limit": 5}), &[&timeline]);
    let communication = &types["classes"][1];
    assert_eq!(communication["class"], "communication");
    let expected = [
        (3_110.833_333, 130_655, 12_621, 3_787.544_625),
        (1_826.666_667, 32_880, 4796, 1_568.384_444),
    ];
    assert_eq!(list(&communication["names"]).len(), expected.len());
    for (name, (mean, sum, max, deviation)) in list(&communication["names"]).zip(expected) {
        let us = |field: &str| name[field].as_f64().unwrap() / 1000.0;
        let is_near = (us("mean_ns") - mean).abs() < 1e-6 && (us("deviation_ns") - deviation).abs() < 1e-6;
        assert!(is_near, "{name}");
        let whole = ["sum_ns", "max_ns"].map(|field| name[field].as_u64().unwrap() / 1000);
        assert_eq!(whole, [sum, max]);
    }
}

/// HolisticTraceAnalysis's `get_cuda_kernel_launch_stats`: rows; sum and maximum of `cpu_duration`,
/// `gpu_duration` and `launch_delay` in µs; rows with `gpu_duration < cpu_duration`, with
/// `cpu_duration > 50`, with `launch_delay > 100`.
#[test]
fn launches_equal_those_of_holistic_trace_analysis() {
    for (name, rows, sums, maxima, counts) in [
        (
            CONTROL,
            9450,
            [139_446, 501_567, 20_056_883],
            [6587, 12_621, 11_684],
            [3704, 30, 6098],
        ),
        (
            RANK_0,
            1204,
            [11_050, 607_844, 20_539_698],
            [777, 67_827, 111_018],
            [282, 2, 937],
        ),
        (
            RANK_1,
            1154,
            [9602, 667_530, 20_270_258],
            [49, 90_771, 120_824],
            [278, 0, 880],
        ),
    ] {
        let Some(timeline) = timeline(name) else {
            return;
        };
        let found = analyze("launches", &Value::Null, &[&timeline]);
        assert_eq!(found["coverage"]["joined"], rows, "{name}");
        let of = |field: &str| ["call", "gpu", "delay"].map(|part| found[part][field].as_u64().unwrap() / 1000);
        assert_eq!((of("sum_ns"), of("max_ns")), (sums, maxima), "{name}");
        let flags = ["short_gpu_ops", "slow_calls", "late_gpu_ops"].map(|flag| found[flag].as_u64().unwrap());
        assert_eq!(flags, counts, "{name}");
    }
}

/// What a result says of the stream of this number.
fn of_stream(result: &Value, stream: u64) -> &Value {
    let is_it = |one: &&Value| one["stream"]["stream"] == stream;
    list(&result["streams"]).find(is_it).unwrap()
}

/// HolisticTraceAnalysis's `get_queue_length_summary`: stream, changes, mean over the changes,
/// maximum. Its order of changes within one microsecond is that of an unstable sort, so that its
/// means are not exact.
#[test]
fn lengths_of_queues_equal_those_of_holistic_trace_analysis() {
    for (name, expected) in [
        (
            CONTROL,
            [
                (7, 17_928, 36.366_466, 288),
                (20, 564, 2.581_560, 10),
                (22, 288, 10.576_389, 22),
            ],
        ),
        (
            RANK_0,
            [(7, 2104, 25.458_175, 80), (23, 252, 0.626_984, 4), (25, 32, 4.0, 8)],
        ),
        (
            RANK_1,
            [(7, 2004, 27.818_363, 91), (23, 252, 0.531_746, 2), (25, 32, 4.0, 8)],
        ),
    ] {
        let Some(timeline) = timeline(name) else {
            return;
        };
        let found = analyze("queue-length", &Value::Null, &[&timeline]);
        for (stream, changes, mean, max) in expected {
            let queue = of_stream(&found, stream);
            let counts = said(queue, &["gpu_ops", "max"]);
            assert_eq!(counts, json!([changes / 2, max]), "{name} {stream}");
            let found = queue["mean_at_changes"].as_f64().unwrap();
            assert!((found - mean).abs() < 0.05, "{name} {stream}: {found} is not {mean}");
        }
    }
}

/// Two processes use the same correlation ids: a join on the id alone would pair strangers.
#[test]
fn launches_of_two_processes_are_joined_within_each() {
    let Some(timeline) = timeline("nsys-ai/mfu_2gpu_before.sqlite") else {
        return;
    };
    let found = analyze("launches", &json!({"include_memory": false}), &[&timeline]);
    let coverage = said(&found["coverage"], &["joined", "gpu_ops"]);
    assert_eq!(coverage, json!([3986, 4010]));
}

/// HolisticTraceAnalysis's `get_idle_time_breakdown`: stream; host wait, kernel wait and other in
/// µs. Every stream of these captures.
#[test]
fn classes_of_idle_time_equal_those_of_holistic_trace_analysis() {
    let control = [
        (7, [133_311, 17_152, 32_751]),
        (20, [424_456, 739, 9684]),
        (21, [285_806, 78, 0]),
        (22, [340_772, 1515, 0]),
    ];
    let rank_0 = [
        (7, [397_917, 3765, 598_335]),
        (23, [1_214_793, 160, 34]),
        (25, [560_120, 35, 100_413]),
        (84, [794_901, 6, 3142]),
        (203, [558_073, 0, 0]),
    ];
    let rank_1 = [
        (7, [407_794, 3475, 524_657]),
        (23, [1_222_526, 134, 30]),
        (25, [556_447, 17, 91_823]),
        (84, [715_850, 0, 62_586]),
        (203, [559_033, 0, 0]),
    ];
    for (name, expected) in [(CONTROL, &control[..]), (RANK_0, &rank_0[..]), (RANK_1, &rank_1[..])] {
        let Some(timeline) = timeline(name) else {
            return;
        };
        let idle = analyze("idle", &Value::Null, &[&timeline]);
        assert_eq!(list(&idle["streams"]).len(), expected.len(), "{name}");
        for (stream, expected) in expected {
            let found = of_stream(&idle, *stream);
            let times = [0, 1, 2].map(|class: usize| found["classes"][class]["idle_ns"].as_u64().unwrap() / 1000);
            assert_eq!(times, *expected, "{name} {stream}");
        }
        // The gaps of the GPU are its idle time.
        let times = analyze("gpu-time", &Value::Null, &[&timeline]);
        let gpu = &times["gpus"][0];
        assert_eq!(idle["gpus"][0]["idle_ns"], gpu["parts"]["idle_ns"], "{name}");
        assert_eq!(idle["gaps"][0]["idle_ns"], gpu["longest_idle_ns"], "{name}");
    }
}

#[test]
fn parts_add_up_in_a_capture_of_two_gpus() {
    let Some(timeline) = timeline("nsys-ai/mfu_2gpu_before.sqlite") else {
        return;
    };
    let times = analyze("gpu-time", &Value::Null, &[&timeline]);
    assert_eq!(list(&times["gpus"]).len(), 2);
    for gpu in list(&times["gpus"]) {
        let [window, compute, communication, memory, idle] = parts(gpu);
        assert_eq!(compute + communication + memory + idle, window);
    }
    let idle = analyze("idle", &Value::Null, &[&timeline]);
    for gpu in list(&idle["gpus"]) {
        let sum = |list: &str| numbers(&gpu[list], "idle_ns").iter().sum::<u64>();
        assert_eq!(gpu["idle_ns"], sum("classes"));
        assert_eq!(gpu["classes"][0]["idle_ns"], sum("host_wait_causes"));
    }
    let over_time = analyze("utilization", &json!({"bins": 50}), &[&timeline]);
    let busy = list(&over_time["gpus"][0]["busy_ns"]).map(|ns| ns.as_u64().unwrap());
    assert_eq!(times["gpus"][0]["busy_ns"], busy.sum::<u64>());
    let both = analyze("cpu-gpu", &Value::Null, &[&timeline]);
    let of = |field: &str| both[field].as_u64().unwrap();
    let all = ["cpu_only_ns", "overlap_ns", "gpu_only_ns", "neither_ns"].map(of);
    assert_eq!(both["total_ns"], all.iter().sum::<u64>());
    // By SQL: 32 calls of aten::cat, each with an op_id of its own, launch two.
    let parameters = json!({"min_length": 2, "under": "aten::cat"});
    let patterns = analyze("launch-patterns", &parameters, &[&timeline]);
    let cat = find(&patterns["patterns"], "name", "aten::cat");
    assert_eq!(said(cat, &["count", "length"]), json!([32, 2]));
}

/// HolisticTraceAnalysis 0.5.0 (pandas 2.2) `get_frequent_cuda_kernel_sequences(operator_name)`:
/// count, GPU operations, `GPU kernel duration (us)` and `CPU op duration (us)` of the only pattern
/// that it finds.
#[test]
fn frequent_sequences_equal_those_of_holistic_trace_analysis() {
    let Some(timeline) = timeline(CONTROL) else {
        return;
    };
    for (under, expected) in [
        ("aten::linear", [12, 3, 1183, 1348]),
        ("Optimizer.step", [6, 8, 7642, 15_610]),
        ("## forward ##", [6, 436, 150_169, 120_220]),
    ] {
        let found = analyze("launch-patterns", &json!({"under": under}), &[&timeline]);
        let patterns = found["patterns"].as_array().unwrap();
        let [pattern] = patterns.as_slice() else {
            panic!("{under}: {patterns:?}");
        };
        let of = |field: &str| pattern[field].as_u64().unwrap();
        let told = [of("count"), of("length"), of("gpu_ns") / 1000, of("host_ns") / 1000];
        assert_eq!(told, expected, "{under}");
    }
    // Without a name the passes are found as well.
    let found = analyze("launch-patterns", &json!({"limit": 1000}), &[&timeline]);
    find(&found["patterns"], "name", "## forward ##");
}

/// Kind, copies, bytes, and time in ns in which at least one ran, from the events of the trace by a
/// program of its own. HolisticTraceAnalysis's `get_memory_bw_summary` has 5.32, 0.66, 537.11 and
/// 16.07 GB/s as the mean: over the changes of the rate, each as much as any other, however long it
/// lasted.
#[test]
fn rates_of_copies_are_bytes_by_time() {
    let Some(timeline) = timeline(CONTROL) else {
        return;
    };
    let found = analyze("utilization", &Value::Null, &[&timeline]);
    for (kind, copies, bytes, busy, giga) in [
        ("cuda_memcpy_h2d", 150, 423_923_260_u64, 50_656_000_u64, 8.37),
        ("cuda_memcpy_d2h", 60, 100_896, 107_000, 0.94),
        ("cuda_memcpy_d2d", 18, 1_821_299_360, 2_735_000, 665.92),
        ("cuda_memset", 654, 76_353_248, 1_256_000, 60.79),
    ] {
        let row = find(&found["copies"], "category", kind);
        let sums = said(row, &["copies", "bytes", "busy_ns"]);
        assert_eq!(sums, json!([copies, bytes, busy]), "{kind}");
        let rate = row["bytes_per_second"].as_f64().unwrap() / 1e9;
        assert!((rate - giga).abs() < 0.01, "{kind}: {rate}");
    }
}
