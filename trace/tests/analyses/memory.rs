//! Memory of real captures. The figures were computed by programs of a few lines of Python that share nothing with these: they read the JSON, or the
//! protocol buffers, and keep a dictionary of what is given out.

use serde_json::{Value, json};

use crate::captures::{analyze, timeline};

fn pool<'a>(result: &'a Value, memory: &str) -> &'a Value {
    let pools = result["pools"].as_array().unwrap();
    pools.iter().find(|pool| pool["memory"] == memory).unwrap()
}

/// What `pool` says under `names`.
fn said(pool: &Value, names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| pool[name].clone()).collect()
}

const PEAK: [&str; 8] = [
    "peak_bytes",
    "peak_ns",
    "before_bytes",
    "alive_bytes",
    "unused_at_peak_bytes",
    "most_unused_bytes",
    "allocations",
    "gaps",
];

const LIVES: [&str; 8] = [
    "allocations",
    "allocated_bytes",
    "kept",
    "address_reuses",
    "growths",
    "reuses",
    "saved_bytes",
    "unmatched_releases",
];

#[test]
fn the_peak_of_bert_is_what_was_before_and_what_a_linear_layer_asked_for() {
    let Some(timeline) = timeline("tracelens-h100/gaunernst_bert-small-uncased__1016001.json.gz") else {
        return;
    };
    let result = analyze("memory", &Value::Null, &[&timeline]);
    assert_eq!(result["not_captured"], json!([]));
    let gpu = pool(&result, "GPU 0");
    assert_eq!(
        json!(said(gpu, &PEAK)),
        json!([
            101_305_344,
            4_775_792,
            91_360_768,
            9_944_576,
            20_329_472,
            30_274_048,
            109,
            0
        ])
    );
    assert_eq!(gpu["from_before_bytes"], 91_360_768);
    let alive: Vec<_> = gpu["alive"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["bytes"], &one["given_ns"], &one["requester"]["operator"]))
        .collect();
    assert_eq!(
        json!(alive),
        json!([
            [8_607_232, 4_768_531, "aten::addmm"],
            [1_048_576, 4_775_792, "aten::addmm"],
            [144_384, 4_439_067, "aten::native_layer_norm"],
            [144_384, 4_724_581, "aten::native_layer_norm"]
        ])
    );
    assert_eq!(
        gpu["alive"][0]["requester"]["function"],
        "torch/nn/modules/linear.py(124): forward"
    );
    let result = analyze("buffers", &Value::Null, &[&timeline]);
    let gpu = pool(&result, "GPU 0");
    assert_eq!(
        json!(said(gpu, &LIVES)),
        json!([109, 47_460_864, 0, 93, 0, 94, 35_776_000, 0])
    );
    assert_eq!(gpu["longest"][0]["lifetime_ns"], 3_489_751);
    let classes: Vec<u64> = gpu["lifetimes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|class| class["buffers"].as_u64().unwrap())
        .collect();
    assert_eq!(classes, [0, 0, 71, 37, 1, 0, 0, 0, 0]);
}

#[test]
fn memory_of_a_language_model_is_that_of_an_independent_count() {
    let Some(timeline) = timeline("tracelens-h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz") else {
        return;
    };
    let result = analyze("memory", &json!({"limit": 3}), &[&timeline]);
    let gpu = pool(&result, "GPU 0");
    assert_eq!(
        json!(said(gpu, &PEAK)),
        json!([
            2_088_508_416_u64,
            46_587_553,
            984_742_400,
            1_103_766_016,
            541_320_192,
            1_645_086_208,
            1125,
            0
        ])
    );
    assert_eq!(
        (&gpu["alive_left_out"], &gpu["alive"][0]["bytes"]),
        (&json!(55), &json!(50_372_608))
    );
    // By operator and function: the sums of an operator are those of the independent count.
    let all = analyze("memory", &json!({"limit": 1000}), &[&timeline]);
    let by = pool(&all, "GPU 0")["alive_by_requester"].as_array().unwrap();
    let of = |operator: &str| -> u64 {
        let of_it = by.iter().filter(|one| one["requester"]["operator"] == operator);
        of_it.map(|one| one["bytes"].as_u64().unwrap()).sum()
    };
    assert_eq!(
        (of("aten::add"), of("aten::addmm"), of("aten::mul")),
        (476_250_112, 439_615_488, 68_689_920)
    );
    let result = analyze("buffers", &Value::Null, &[&timeline]);
    assert_eq!(
        json!(said(pool(&result, "GPU 0"), &LIVES)),
        json!([1125, 21_375_221_248_u64, 0, 1050, 0, 1046, 20_094_776_320_u64, 0])
    );
    assert_eq!(
        json!(said(
            pool(&result, "host"),
            &["allocations", "reuses", "reuse_ratio", "kept"]
        )),
        json!([100, 98, 50.0, 0])
    );
    let earlier = analyze("profiler-memory", &Value::Null, &[&timeline]);
    let peak = (&earlier["peak_allocated_mb"], &earlier["peak_time_ms"]);
    assert_eq!(peak, (&json!(2_088.508_416), &json!(46.587_553)));
    assert_eq!(earlier["points"].as_array().unwrap().len(), 50);
}

/// Traces of 2021 have neither totals nor addresses.
#[test]
fn a_trace_without_addresses_says_what_it_cannot_tell() {
    let Some(timeline) = timeline("kineto-samples/resnet50_w0_span1.pt.trace.json.gz") else {
        return;
    };
    let result = analyze("memory", &Value::Null, &[&timeline]);
    assert_eq!(result["not_captured"][0]["what"], "what was alive at the peak");
    let gpu = pool(&result, "GPU 0");
    assert_eq!(
        (&gpu["alive_bytes"], &gpu["before"]),
        (&Value::Null, &json!("at_least"))
    );
    assert_eq!(
        gpu["allocations"].as_u64().unwrap() + gpu["releases"].as_u64().unwrap(),
        5898 + 2322
    );
}

#[test]
fn memory_of_jax_is_what_xlas_allocators_say() {
    if let Some(timeline) = timeline("tracelens-jax/jax_conv_minimal_08.xplane.pb") {
        let result = analyze("memory", &Value::Null, &[&timeline]);
        assert_eq!(result["pools"].as_array().unwrap().len(), 8);
        let gpu = pool(&result, "GPU 0");
        let names = [
            "peak_bytes",
            "peak_ns",
            "before_bytes",
            "allocations",
            "releases",
            "gaps",
            "peak_reserved_bytes",
        ];
        assert_eq!(
            json!(said(gpu, &names)),
            json!([1_730_171_904, 45_224_580, 579_072_768, 10, 10, 0, 154_606_239_744_u64])
        );
        let gpu = pool(&result, "GPU 7");
        assert_eq!(
            json!(said(gpu, &names[..3])),
            json!([1_732_169_984, 48_987_395, 580_415_488])
        );
        let series = result["series"].as_array().unwrap();
        let scattered = series
            .iter()
            .find(|one| one["device"] == "gpu0" && one["metric"] == "memory_fragmentation");
        assert_eq!(scattered.unwrap()["max"], 0.557_062);
        assert!(
            result["notes"].to_string().contains("not fragmented"),
            "{}",
            result["notes"]
        );
        let lives = analyze("buffers", &Value::Null, &[&timeline]);
        assert_eq!(
            json!(said(pool(&lives, "GPU 0"), &["kept", "unmatched_releases"])),
            json!([1, 1])
        );
    }
    // Releases of a TPU do not say their size: it is that of the allocation at the address.
    if let Some(timeline) = timeline("xprof/tpu_inference_2.xplane.pb") {
        let result = analyze("memory", &Value::Null, &[&timeline]);
        let names = [
            "peak_bytes",
            "peak_ns",
            "before_bytes",
            "allocations",
            "gaps",
            "end_bytes",
        ];
        assert_eq!(
            json!(said(pool(&result, "TPU 0"), &names)),
            json!([16_106_341_504_u64, 6_478_008_144_u64, 0, 117, 0, 0])
        );
        assert_eq!(pool(&result, "TPU 3")["peak_ns"], 6_478_019_474_u64);
    }
}
