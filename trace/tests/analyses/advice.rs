//! Advice on real captures.

use serde_json::{Value, json};

use crate::captures::{analyze, timeline};

/// The outcome of a rule, and its finding where it fired.
fn outcome<'a>(advice: &'a Value, rule: &str) -> (&'a str, Option<&'a Value>) {
    let rules = advice["rules"].as_array().unwrap();
    let told = rules.iter().find(|told| told["rule"] == rule).unwrap();
    let findings = advice["findings"].as_array().unwrap();
    (
        told["outcome"].as_str().unwrap(),
        findings.iter().find(|found| found["rule"] == rule),
    )
}

fn print(name: &str, advice: &Value) {
    println!(
        "== {name}: window {} ns of {} GPUs",
        advice["window_ns"], advice["gpus"]
    );
    for found in advice["findings"].as_array().unwrap() {
        println!("{} {} {}", found["rule"], found["severity"], found["sentence"]);
    }
    for lacking in advice["not_captured"].as_array().unwrap() {
        println!("  abstains: {}: {}", lacking["what"], lacking["reason"]);
    }
}

#[test]
fn every_capture_is_advised_on_within_its_own_window() {
    for name in [
        "nsys-ai/mfu_2gpu_before.sqlite",
        "nsys-ai/mock.sqlite",
        "nsightful/power_iteration__baseline.sqlite",
        "gpubootcamp-jacobi/jacobi_memcpy_sys_report.qdrep",
        "trt-controlnet/cudagraph.nsys-rep",
        "hta/nccl_parser_config-nccl_data.json.gz",
        "hta/trace_filter-sampled_rank-1.json.gz",
        "hta/alexnet-benchmark_result_2869224_1695835535_trace.json.gz",
        "tracelens-h100/gaunernst_bert-small-uncased__1016001.json.gz",
        "param-resnet/resnet_kineto.json.gz",
        "xprof/tpu_inference_2.xplane.pb",
    ] {
        let Some(timeline) = timeline(name) else { continue };
        let advice = analyze("advice", &json!({"places": 3}), &[&timeline]);
        print(name, &advice);
        let window = advice["window_ns"].as_u64().unwrap();
        let end = timeline.capture.duration_ns;
        for found in advice["findings"].as_array().unwrap() {
            let gain = found["gain"]["gain_ns"].as_u64().unwrap_or(0);
            assert!(gain <= window, "{name}: {found}");
            assert!(found["evidence"].as_array().unwrap().len() <= 16, "{name}: {found}");
            for evidence in found["evidence"].as_array().unwrap() {
                let place = &evidence["place"];
                assert!(
                    place.is_null() || place["end_ns"].as_u64().unwrap() <= end.max(1),
                    "{name}: {evidence}"
                );
            }
        }
        let rules = advice["rules"].as_array().unwrap();
        let abstained = rules.iter().filter(|rule| rule["outcome"] == "abstained");
        assert_eq!(abstained.count(), advice["not_captured"].as_array().unwrap().len());
    }
}

#[test]
fn a_host_that_waits_while_the_gpu_works_is_no_finding() {
    let Some(timeline) = timeline("nsys-ai/mfu_2gpu_before.sqlite") else {
        return;
    };
    let advice = analyze("advice", &Value::Null, &[&timeline]);
    // nsys-ai 0.3.0 says of GPU 0 that synchronisation blocks 58.7 % of wall time: it blocks the host, and the GPU works meanwhile.
    assert_eq!(outcome(&advice, "host-synchronisation").0, "quiet");
    // One kernel has half of all kernel time: flash attention, 272.32 of 535.20 ms.
    let (dominant, found) = outcome(&advice, "dominant-kernel");
    assert_eq!(dominant, "fired");
    assert_eq!(found.unwrap()["evidence"][1]["value"], 535_200_650);
    assert_eq!(outcome(&advice, "gpus-unbalanced").0, "quiet");
}

#[test]
fn a_capture_without_kernels_says_so_first() {
    let Some(timeline) = timeline("trt-controlnet/cudagraph.nsys-rep") else {
        return;
    };
    let advice = analyze("advice", &Value::Null, &[&timeline]);
    assert_eq!(advice["findings"][0]["rule"], "no-gpu-work");
    assert_eq!(advice["findings"][0]["severity"], "high");
    assert_eq!(outcome(&advice, "gpu-idle").0, "abstained");
}
