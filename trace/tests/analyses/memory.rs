//! Memory of real captures. The figures were computed by programs of a few lines of Python that
//! share nothing with these: they read the JSON, or the protocol buffers, and keep a dictionary of
//! what is given out.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::captures::{analyze, timeline, timeline_at};
use crate::nsys;
use crate::result::{find, list, numbers, said};

pub(crate) fn pool<'a>(result: &'a Value, memory: &str) -> &'a Value {
    find(&result["pools"], "memory", memory)
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
        said(gpu, &PEAK),
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
    let alive = list(&gpu["alive"]).map(|one| (&one["bytes"], &one["given_ns"], &one["requester"]["operator"]));
    assert_eq!(
        json!(alive.collect::<Vec<_>>()),
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
    let lives = json!([109, 47_460_864, 0, 93, 0, 94, 35_776_000, 0]);
    assert_eq!(said(gpu, &LIVES), lives);
    assert_eq!(gpu["longest"][0]["lifetime_ns"], 3_489_751);
    let classes = numbers(&gpu["lifetimes"], "buffers");
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
        said(gpu, &PEAK),
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
    assert_eq!(gpu["alive_left_out"], 55);
    assert_eq!(gpu["alive"][0]["bytes"], 50_372_608);
    // By operator and function: the sums of an operator are those of the independent count.
    let all = analyze("memory", &json!({"limit": 1000}), &[&timeline]);
    let by = &pool(&all, "GPU 0")["alive_by_requester"];
    let of = |operator: &str| -> u64 {
        let of_it = list(by).filter(|one| one["requester"]["operator"] == operator);
        of_it.map(|one| one["bytes"].as_u64().unwrap()).sum()
    };
    assert_eq!(
        (of("aten::add"), of("aten::addmm"), of("aten::mul")),
        (476_250_112, 439_615_488, 68_689_920)
    );
    let result = analyze("buffers", &Value::Null, &[&timeline]);
    let lives = json!([1125, 21_375_221_248_u64, 0, 1050, 0, 1046, 20_094_776_320_u64, 0]);
    assert_eq!(said(pool(&result, "GPU 0"), &LIVES), lives);
    let names = ["allocations", "reuses", "reuse_ratio", "kept"];
    assert_eq!(said(pool(&result, "host"), &names), json!([100, 98, 50.0, 0]));
    let earlier = analyze("profiler-memory", &Value::Null, &[&timeline]);
    let peak = said(&earlier, &["peak_allocated_mb", "peak_time_ms"]);
    assert_eq!(peak, json!([2_088.508_416, 46.587_553]));
    assert_eq!(list(&earlier["points"]).len(), 50);
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
    assert_eq!(said(gpu, &["alive_bytes", "before"]), json!([null, "at_least"]));
    let of = |figure: &str| gpu[figure].as_u64().unwrap();
    assert_eq!(of("allocations") + of("releases"), 5898 + 2322);
}

#[test]
fn memory_of_jax_is_what_xlas_allocators_say() {
    if let Some(timeline) = timeline("tracelens-jax/jax_conv_minimal_08.xplane.pb") {
        let result = analyze("memory", &Value::Null, &[&timeline]);
        assert_eq!(list(&result["pools"]).len(), 8);
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
        let expected = json!([1_730_171_904, 45_224_580, 579_072_768, 10, 10, 0, 154_606_239_744_u64]);
        assert_eq!(said(gpu, &names), expected);
        let gpu = said(pool(&result, "GPU 7"), &names[..3]);
        assert_eq!(gpu, json!([1_732_169_984, 48_987_395, 580_415_488]));
        let is_scattered = |one: &&Value| one["device"] == "gpu0" && one["metric"] == "memory_fragmentation";
        let scattered = list(&result["series"]).find(is_scattered);
        assert_eq!(scattered.unwrap()["max"], 0.557_062);
        let notes = result["notes"].to_string();
        assert!(notes.contains("not fragmented"), "{notes}");
        let lives = analyze("buffers", &Value::Null, &[&timeline]);
        let lives = said(pool(&lives, "GPU 0"), &["kept", "unmatched_releases"]);
        assert_eq!(lives, json!([1, 1]));
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
        let expected = json!([16_106_341_504_u64, 6_478_008_144_u64, 0, 117, 0, 0]);
        assert_eq!(said(pool(&result, "TPU 0"), &names), expected);
        assert_eq!(pool(&result, "TPU 3")["peak_ns"], 6_478_019_474_u64);
    }
}

/// The fields of a message, whole, with their numbers below 16.
fn fields(message: &[u8]) -> Vec<(u8, &[u8])> {
    let (mut found, mut rest) = (Vec::new(), message);
    while let Some(key) = rest.first() {
        assert_eq!(key & 7, 2, "a profile of JAX holds messages and texts");
        let (mut length, mut at) = (0_usize, 1);
        loop {
            length |= usize::from(rest[at] & 0x7f) << (7 * (at - 1));
            at += 1;
            if rest[at - 1] < 0x80 {
                break;
            }
        }
        let (field, behind) = rest.split_at(at + length);
        found.push((key >> 3, field));
        rest = behind;
    }
    found
}

/// `go tool pprof -top`: flat and cumulative bytes by function. Python's `<module>` would lose its
/// name without the setting.
pub(crate) fn top(arguments: &[&Path]) -> Option<BTreeMap<String, (i64, i64)>> {
    let settings = [
        "-top",
        "-unit=B",
        "-nodefraction=0",
        "-nodecount=1000000",
        "-symbolize=demangle=none",
    ];
    let mut go = Command::new(std::env::var_os("FLOPWATCH_GO").unwrap_or_else(|| "go".into()));
    go.args(["tool", "pprof"])
        .args(settings)
        .args(arguments)
        .stdin(Stdio::null());
    let Ok(output) = go.output() else {
        println!("skipped: no Go on this machine (set FLOPWATCH_GO to one)");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let bytes = |word: &str| word.trim_end_matches('B').parse::<i64>().unwrap();
    let lines = text.lines().skip_while(|line| !line.contains("flat%")).skip(1);
    let functions = lines.map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words[5..].join(" "), (bytes(words[0]), bytes(words[3])))
    });
    Some(functions.filter(|(_, bytes)| *bytes != (0, 0)).collect())
}

pub(crate) fn functions(result: &Value) -> BTreeMap<String, (i64, i64)> {
    let functions = list(&result["functions"]).map(|of| {
        let bytes = |name: &str| of[name].as_i64().unwrap();
        (
            of["function"].as_str().unwrap().to_owned(),
            (bytes("flat_bytes"), bytes("cumulative_bytes")),
        )
    });
    functions.filter(|(_, bytes)| *bytes != (0, 0)).collect()
}

#[test]
fn a_memory_profile_and_its_difference_are_those_of_go_tool_pprof() {
    let Some(after) = nsys::corpus("microjax/memory.prof") else {
        return;
    };
    let mut whole = Vec::new();
    let packed = std::fs::File::open(&after).unwrap();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut whole).unwrap();
    // A profile before: without every third sample, and with every fifth one twice.
    let mut samples = 0_u32;
    let before: Vec<u8> = fields(&whole)
        .into_iter()
        .flat_map(|(number, field)| {
            samples += u32::from(number == 2);
            let times = match number {
                2 if samples.is_multiple_of(3) => 0,
                2 if samples.is_multiple_of(5) => 2,
                _ => 1,
            };
            field.repeat(times)
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("before.prof");
    std::fs::write(&path, before).unwrap();
    let (old, new) = (timeline_at(&path), timeline_at(&after));
    let all = json!({"limit": 100_000});
    let result = analyze("memory-profile", &all, &[&new]);
    let totals = said(&result, &["total_bytes", "total_buffers"]);
    assert_eq!(totals, json!([1_055_160, 103]));
    assert_eq!(
        result["devices"],
        json!([
            {"device": null, "kind": "executable", "bytes": 1_023_096, "buffers": 99},
            {"device": "cuda:0", "kind": "buffer", "bytes": 32_064, "buffers": 4}
        ])
    );
    let own = &find(&result["stacks"], "kind", "buffer")["own_frame"];
    let file = own["file"].as_str().unwrap();
    assert!(file.starts_with("/home/miyazaki/work/microjax/"), "{own}");
    let changes = analyze("memory-profile-changes", &all, &[&old, &new]);
    let Some(told) = top(&[&after]) else { return };
    assert_eq!(functions(&result), told);
    let base = format!("-base={}", path.display());
    let told = top(&[Path::new(&base), &after]).unwrap();
    assert!(told.values().any(|(flat, _)| *flat != 0));
    assert_eq!(functions(&changes), told);
}
