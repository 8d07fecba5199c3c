//! Compiled programs of real captures, beside what XProf (PyPI) says of them; `xprof.rs` asks it of
//! everything.

use std::path::Path;

use flopwatch_model::Timeline;
use serde_json::{Value, json};

use crate::captures::{analyze, bytes, timeline, timeline_at};
use crate::result::{find, list, numbers, said};

fn row<'a>(result: &'a Value, operation: &str) -> &'a Value {
    find(&result["rows"], "operation", operation)
}

fn near(value: &Value, expected: f64) {
    let value = value.as_f64().unwrap();
    assert!((value / expected - 1.0).abs() < 1e-6, "{value} is not {expected}");
}

#[test]
fn operations_of_gpus_take_the_time_that_xprof_gives_and_a_convolution_of_two_kernels_ran_once() {
    let Some(timeline) = timeline("tracelens-jax/jax_conv_minimal_08.xplane.pb") else {
        return;
    };
    let found = analyze("hlo-operations", &json!({}), &[&timeline]);
    for (operation, occurrences, total_ns) in [
        ("input_transpose_fusion", 40, 14_344_140),
        ("cudnn-conv.1", 40, 12_531_616),
        ("input_transpose_fusion.1", 39, 481_400),
        ("loop_transpose_fusion", 40, 193_520),
    ] {
        let figures = said(row(&found, operation), &["occurrences", "total_ns"]);
        assert_eq!(figures, json!([occurrences, total_ns]));
    }
    let convolution = row(&found, "cudnn-conv.1");
    // XProf has 79 occurrences, as many as kernels, each with the work of a whole convolution:
    // 206,240.77 GFLOP/s.
    assert_eq!(convolution["events"], 79);
    near(&convolution["flops"], 206_240.769_330_946_6 * 12_531.616e3 / 79.0);
    near(&convolution["flops_per_second"], 206_240.769_330_946_6e9 * 40.0 / 79.0);
    assert_eq!(convolution["source"], "/workspace/traces/generate_conv_trace.py:23");
    assert_eq!(found["kernels"][1]["operation"], "cudnn-conv.1");
}

#[test]
fn operations_of_an_accelerator_have_the_work_that_xprof_gives() {
    let Some(timeline) = timeline("xprof/tpu_inference_2.xplane.pb") else {
        return;
    };
    let found = analyze("hlo-operations", &json!({}), &[&timeline]);
    let add = row(&found, "broadcast_add_fusion.1");
    // `hlo_stats`: 400 occurrences, 164.577938 GFLOP/s over 3,262,107.41375 us, 0.125 FLOP per
    // byte, bound by HBM. Its time is that of the device's clock; the events of the timeline are
    // 0.2 % longer.
    assert_eq!(add["occurrences"], 400);
    near(&add["flops"], 164.577_938_095_187_6 * 3_262_107.413_75e3 / 400.0);
    assert_eq!(said(add, &["intensity", "bound"]), json!([0.125, "memory"]));
    assert_eq!(add["total_ns"], 3_268_452_061_u64);
    // Copies beside the operations are no time of theirs.
    let beside = row(&found, "async-copy");
    assert_eq!(said(beside, &["is_asynchronous", "self_ratio"]), json!([true, null]));
    let own = list(&found["rows"]).filter(|row| row["is_asynchronous"] == false);
    assert_eq!(found["self_ns"], own.map(|row| number(&row["self_ns"])).sum::<u64>());
}

/// What JAX says of a program: `cost_analysis` and `memory_analysis`.
pub(crate) struct Said {
    pub(crate) flops: u64,
    pub(crate) transcendentals: u64,
    pub(crate) bytes: u64,
    pub(crate) parameters: u64,
    pub(crate) temporaries: u64,
}

/// The dump of a program of `model.py` that is kept beside it: jax 0.10.2 on a processor, with
/// `XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_proto"`.
fn kept(name: &str, stage: &str) -> Timeline {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/jax");
    timeline_at(&folder.join(format!("{name}.{stage}_optimizations.hlo.pb")))
}

pub(crate) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no whole number"))
}

/// Our count of a program's work and memory against JAX's own.
pub(crate) fn equals_what_jax_says(name: &str, timeline: &Timeline, said: &Said) {
    let cost = analyze("hlo-cost", &Value::Null, &[timeline]);
    let cost = &cost["rows"][0];
    // XLA counts in floats of 32 bits, which have 24 digits.
    let flops = number(&cost["cost_analysis_flops"]);
    let is_near = |found: u64, expected: u64| found.abs_diff(expected) <= expected >> 24;
    assert!(is_near(flops, said.flops), "{name}: {flops} FLOP, of {}", said.flops);
    assert_eq!(cost["cost_analysis_transcendentals"], said.transcendentals, "{name}");
    let bytes = number(&cost["cost_analysis_bytes"]);
    assert!(is_near(bytes, said.bytes), "{name}: {bytes} bytes, of {}", said.bytes);
    let memory = analyze("hlo-memory", &Value::Null, &[timeline]);
    assert_eq!(memory["parameters_bytes"], said.parameters, "{name}");
    assert_eq!(memory["temporaries_bytes"], said.temporaries, "{name}");
}

const SAID: [(&str, Said); 3] = [
    (
        "step",
        Said {
            flops: 135_299_840,
            transcendentals: 98_304,
            bytes: 8_928_332,
            parameters: 920_576,
            temporaries: 262_144,
        },
    ),
    (
        "convolve",
        Said {
            flops: 219_518,
            transcendentals: 4_096,
            bytes: 168_512,
            parameters: 7_008,
            temporaries: 32_768,
        },
    ),
    (
        "loop",
        Said {
            flops: 524_290,
            transcendentals: 4_096,
            bytes: 147_517,
            parameters: 16_384,
            temporaries: 32_836,
        },
    ),
];

#[test]
fn counted_work_and_memory_equal_what_jax_says_of_its_programs() {
    for (name, said) in &SAID {
        equals_what_jax_says(name, &kept(name, "after"), said);
    }
    // The loop runs ten times, which cost_analysis leaves out: two operations per element and
    // element summed over, of 64 each.
    let cost = analyze("hlo-cost", &Value::Null, &[&kept("loop", "after")]);
    assert_eq!(number(&cost["rows"][0]["flops"]), 10 * 2 * 64 * 64 * 64);
}

#[test]
fn operations_of_a_dump_have_the_work_of_its_program_together() {
    for (name, _) in &SAID {
        let dump = kept(name, "after");
        let cost = analyze("hlo-cost", &Value::Null, &[&dump]);
        let found = analyze("hlo-operations", &json!({"limit": 100_000}), &[&dump]);
        for figure in ["flops", "bytes"] {
            let sum: u64 = numbers(&found["unmeasured"], figure).iter().sum();
            assert_eq!(sum, number(&cost["rows"][0][figure]), "{figure} of {name}");
        }
        assert_eq!(found["rows"], json!([]), "{name}");
    }
}

/// MiB of XProf's memory viewer as bytes.
pub(crate) fn mib(value: f64) -> u64 {
    format!("{:.0}", value * 1_048_576.0).parse().unwrap()
}

#[test]
fn memory_is_in_use_as_the_memory_viewer_of_xprof_has_it() {
    // `heapSizes` before the first event and behind each.
    let conv = [
        0.022_308_349_609_375,
        0.028_167_724_609_375,
        0.028_991_699_218_75,
        0.023_132_324_218_75,
        0.022_308_349_609_375,
        0.037_933_349_609_375,
        0.053_558_349_609_375,
        0.037_933_349_609_375,
        0.037_940_979_003_906_25,
        0.022_315_979_003_906_25,
        0.022_308_349_609_375,
    ];
    let memory = analyze("hlo-memory", &Value::Null, &[&kept("convolve", "after")]);
    let in_use = [vec![number(&memory["fixed_bytes"])], numbers(&memory["steps"], "bytes")];
    assert_eq!(in_use.concat(), conv.map(mib));
    let peak = said(&memory, &["peak_bytes", "peak_step"]);
    assert_eq!(peak, json!([mib(0.053_558_349_609_375), 5]));
    let at_peak: u64 = numbers(&memory["at_peak"], "bytes").iter().sum();
    assert_eq!(memory["peak_bytes"], at_peak);
    for (name, peak) in [("step", 1.880_920_410_156_25), ("loop", 0.062_515_258_789_062_5)] {
        let memory = analyze("hlo-memory", &Value::Null, &[&kept(name, "after")]);
        assert_eq!(number(&memory["peak_bytes"]), mib(peak), "{name}");
    }
}

#[test]
fn a_graph_has_what_a_program_is_before_and_after_optimisation() {
    let (before, after) = (kept("step", "before"), kept("step", "after"));
    let graph = analyze("hlo-graph", &Value::Null, &[&before, &after]);
    assert_eq!(said(&graph, &["program", "is_optimised"]), json!(["jit_step", true]));
    let counts = |opcode: &str| {
        let row = find(&graph["opcodes"], "opcode", opcode);
        (row["before"].as_u64(), row["after"].as_u64())
    };
    // Three layers forward, and of their gradients three by weights and two by inputs:
    // `grep -c ' dot('` of the dumps as text.
    assert_eq!(counts("dot"), (Some(8), Some(8)));
    assert_eq!(counts("fusion").0, Some(0));
    let mut sources = list(&graph["fusions"]).map(|fusion| fusion["source"].as_str());
    assert_eq!(Some(u64::try_from(sources.len()).unwrap()), counts("fusion").1);
    assert!(sources.any(|source| source.is_some_and(|source| source.starts_with("model.py:"))));
    let around = json!({"around": "dot", "distance": 1});
    let graph = analyze("hlo-graph", &around, &[&after]);
    assert!(list(&graph["nodes"]).len() >= 3);
    let dot = String::from_utf8(bytes("hlo-dot", &around, &[&after])).unwrap();
    assert!(dot.starts_with("digraph \"jit_step\""), "{dot}");
    let edges = dot.lines().filter(|line| line.contains(" -> ")).count();
    assert_eq!(edges, list(&graph["edges"]).len());
}
