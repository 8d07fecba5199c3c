//! Advice on real captures.

use serde_json::{Value, json};

use crate::captures::{analyze, timeline};
use crate::result::{assert_near, find, list, texts};

/// The outcome of a rule, and its finding where it fired.
fn outcome<'a>(advice: &'a Value, rule: &str) -> (&'a str, Option<&'a Value>) {
    let told = find(&advice["rules"], "rule", rule)["outcome"].as_str();
    let finding = list(&advice["findings"]).find(|found| found["rule"] == rule);
    (told.unwrap(), finding)
}

fn print(name: &str, advice: &Value) {
    println!(
        "== {name}: window {} ns of {} GPUs",
        advice["window_ns"], advice["gpus"]
    );
    for found in list(&advice["findings"]) {
        println!("{} {} {}", found["rule"], found["severity"], found["sentence"]);
    }
    for lacking in list(&advice["not_captured"]) {
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
        "pipit-nsys/saxpy-mpi-cuda_nsys_perlmutter0.sqlite",
        "xprof/tpu_inference_2.xplane.pb",
    ] {
        let Some(timeline) = timeline(name) else { continue };
        let advice = analyze("advice", &json!({"places": 3}), &[&timeline]);
        print(name, &advice);
        let window = advice["window_ns"].as_u64().unwrap();
        let end = timeline.capture.duration_ns;
        for found in list(&advice["findings"]) {
            let gain = found["gain"]["gain_ns"].as_u64().unwrap_or(0);
            assert!(gain <= window, "{name}: {found}");
            assert!(list(&found["evidence"]).len() <= 16, "{name}: {found}");
            for evidence in list(&found["evidence"]) {
                let place = &evidence["place"];
                assert!(
                    place.is_null() || place["end_ns"].as_u64().unwrap() <= end.max(1),
                    "{name}: {evidence}"
                );
            }
        }
        no_time_is_claimed_twice(name, &advice);
        let abstained = texts(&advice["rules"], "outcome").into_iter();
        let abstained = abstained.filter(|outcome| *outcome == "abstained");
        assert_eq!(abstained.count(), list(&advice["not_captured"]).len());
    }
}

/// Rules on causes of idle time share it: together they claim no more than there is.
fn no_time_is_claimed_twice(name: &str, advice: &Value) {
    let (_, Some(idle)) = outcome(advice, "gpu-idle") else {
        return;
    };
    let causes = [
        "launch-bound",
        "host-synchronisation",
        "input-bound",
        "garbage-collection",
        "allocations",
        "module-loading",
        "recompilation",
    ];
    let gain = |rule| outcome(advice, rule).1?["gain"]["gain_ns"].as_u64();
    let claimed: u64 = causes.into_iter().filter_map(gain).sum();
    let copies = outcome(advice, "synchronous-copies").1;
    let of_copies = copies.map_or(0, |found| found["evidence"][2]["value"].as_u64().unwrap());
    let all = idle["evidence"][0]["value"].as_u64().unwrap();
    assert!(claimed + of_copies <= all, "{name}: {claimed} and {of_copies} of {all}");
}

#[test]
fn a_host_that_waits_while_the_gpu_works_is_no_finding() {
    let Some(timeline) = timeline("nsys-ai/mfu_2gpu_before.sqlite") else {
        return;
    };
    let advice = analyze("advice", &Value::Null, &[&timeline]);
    // nsys-ai 0.3.0 says of GPU 0 that synchronisation blocks 58.7 % of wall time: it blocks the
    // host, and the GPU works meanwhile.
    assert_eq!(outcome(&advice, "host-synchronisation").0, "quiet");
    // One kernel has half of all kernel time: flash attention, 272.32 of 535.20 ms.
    let (dominant, found) = outcome(&advice, "dominant-kernel");
    assert_eq!(dominant, "fired");
    assert_eq!(found.unwrap()["evidence"][1]["value"], 535_200_650);
    assert_eq!(outcome(&advice, "gpus-unbalanced").0, "quiet");
    // Nor does the idle time of 9.8 % vanish below the rule's 10 %.
    let near = &advice["near_misses"][0];
    assert_eq!(near["rule"], "gpu-idle");
    assert_near(&near["window_share_ratio"], 0.098, 0.001);
    // What repeats are blocks of a model, no iterations.
    let (slow, found) = outcome(&advice, "iterations-unbalanced");
    assert_eq!(slow, "fired");
    assert_eq!(found.unwrap()["title"], "Some blocks are slow");
    assert!(found.unwrap()["sentence"].as_str().unwrap().contains("block"));
}

#[test]
fn a_wait_that_ends_behind_the_launch_of_the_next_kernel_is_no_cause() {
    let Some(timeline) = timeline("tracelens-h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz") else {
        return;
    };
    let advice = analyze("advice", &Value::Null, &[&timeline]);
    // 578 gaps begin in a synchronising call; 576 of them end in it too, for their kernels were
    // queued. The other two have 0.44 of 49 ms.
    assert_eq!(outcome(&advice, "host-synchronisation").0, "quiet");
    // 509 kernels were on the GPU when the profiler began.
    let (unmatched, found) = outcome(&advice, "launches-unmatched");
    assert_eq!(unmatched, "fired");
    let sentence = found.unwrap()["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("all of them began before the first launch"),
        "{sentence}"
    );
    assert_eq!(found.unwrap()["evidence"][2]["value"], 509);
}

#[test]
fn a_thread_that_waits_in_the_operating_system_is_not_slow_to_launch() {
    let Some(timeline) = timeline("alpa-jax/jax_profile_mem.nsys-rep") else {
        return;
    };
    let advice = analyze("advice", &Value::Null, &[&timeline]);
    // 14 kernels in 0.95 s, the largest gap in futex and pthread_cond_wait.
    assert_eq!(outcome(&advice, "launch-bound").0, "quiet");
}

#[test]
fn an_accelerator_that_waits_for_copies_is_told_so() {
    let Some(timeline) = timeline("xprof/tpu_inference_2.xplane.pb") else {
        return;
    };
    let advice = analyze("advice", &Value::Null, &[&timeline]);
    let (waits, found) = outcome(&advice, "device-waits");
    assert_eq!(waits, "fired");
    let found = found.unwrap();
    assert_eq!(found["severity"], "high");
    // 96.6 % of the operations' time is copy-done; of whose memory the capture does not say.
    let value = |at: usize| found["evidence"][at]["value"].as_f64().unwrap();
    assert!((0.95..0.98).contains(&(value(1) / value(0))), "{found}");
}

#[test]
fn what_nvidias_rules_say_in_a_report_of_nsight_compute_is_relayed() {
    let Some(timeline) = timeline("indexspaces/indexspaces_profile_a.ncu-rep") else {
        return;
    };
    let advice = analyze("advice", &Value::Null, &[&timeline]);
    let (relayed, found) = outcome(&advice, "nsight-compute-rules");
    assert_eq!(relayed, "fired");
    let mut actions = list(&found.unwrap()["actions"]);
    assert!(actions.len() > 0 && actions.all(|action| !action.to_string().contains("@section")));
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
