//! Whole graphs, unified memory and copies whose size is not said: small captures of
//! `../shared/cases` with what analyses must say of them.

use flopwatch_model::Category;
use flopwatch_summary::summarise;
use serde_json::{Value, json};

use crate::captures::{analyze, timeline_of_case};
use crate::result::{find, list, said};

/// The finding of a rule.
fn finding<'a>(advice: &'a Value, rule: &str) -> Option<&'a Value> {
    list(&advice["findings"]).find(|finding| finding["rule"] == rule)
}

#[test]
fn whole_graphs_are_time_in_which_the_gpu_works() {
    let Some(timeline) = timeline_of_case("nsys_whole_graphs.sqlite") else {
        return;
    };
    let summary = summarise(&timeline);
    assert_eq!(summary.gpus[0].busy_ns, 7_200_000);
    assert_eq!((summary.launches.matched, summary.launches.unmatched), (40, 0));
    assert_eq!(summary.cuda_graphs.rows[0].statistics.calls, 20);

    let idle = analyze("idle", &Value::Null, &[&timeline]);
    assert_eq!(idle["gpus"][0]["idle_ns"], 762_000);
    assert_eq!(idle["coverage"]["joined"], 40);
    let overlap = analyze("overlap", &Value::Null, &[&timeline]);
    assert_eq!(overlap["gpus"][0]["busy_ns"], 7_200_000);
    let time = analyze("gpu-time", &Value::Null, &[&timeline]);
    assert_eq!(time["gpus"][0]["busy_ns"], 7_200_000);
    let utilization = analyze("utilization", &json!({"bins": 1}), &[&timeline]);
    assert_eq!(utilization["gpus"][0]["busy_ns"], json!([7_200_000]));
    let launches = analyze("launches", &json!({"include_memory": false}), &[&timeline]);
    assert_eq!(launches["coverage"]["joined"], 40);
    let iterations = analyze("iterations", &Value::Null, &[&timeline]);
    let first = &iterations["rows"][0];
    assert_eq!(said(first, &["kernels", "graphs", "copies"]), json!([1, 1, 0]));
    assert_eq!(first["parts"]["compute_ns"], 360_000);
    // What ran inside of graphs is told to be unknown.
    for analysis in [
        "overlap",
        "gpu-time",
        "kernel-types",
        "iterations",
        "kernels-per-stream",
    ] {
        let lacking = analyze(analysis, &Value::Null, &[&timeline])["not_captured"].to_string();
        assert!(lacking.contains("20 launches of CUDA graphs"), "{analysis}: {lacking}");
    }
}

#[test]
fn who_uses_graphs_is_not_told_to_use_them_nor_that_the_gpu_is_idle() {
    let Some(timeline) = timeline_of_case("nsys_whole_graphs.sqlite") else {
        return;
    };
    let advice = analyze("advice", &Value::Null, &[&timeline]);
    for rule in [
        "gpu-idle",
        "launch-bound",
        "cuda-graphs",
        "no-gpu-work",
        "launches-unmatched",
    ] {
        assert_eq!(finding(&advice, rule), None, "{rule}");
    }
    // Rules on kernels do not take the few that are seen for all.
    for rule in ["small-kernels", "dominant-kernel", "communication-exposed"] {
        let told = find(&advice["rules"], "rule", rule);
        assert_eq!(told["outcome"], "abstained", "{rule}");
    }
}

#[test]
fn pages_that_migrate_have_advice_of_their_own() {
    let Some(timeline) = timeline_of_case("nsys_unified_memory.sqlite") else {
        return;
    };
    assert_eq!(timeline.capture.events[&Category::CudaMigration].len(), 400);
    let summary = summarise(&timeline);
    assert_eq!((summary.launches.matched, summary.launches.unmatched), (10, 0));
    let advice = analyze("advice", &Value::Null, &[&timeline]);
    for rule in ["launches-unmatched", "small-copies"] {
        assert_eq!(finding(&advice, rule), None, "{rule}");
    }
    let migrating = finding(&advice, "unified-memory").unwrap();
    let actions = migrating["actions"].to_string();
    assert!(actions.contains("cudaMemPrefetchAsync"), "{migrating}");
    let idle = analyze("idle", &Value::Null, &[&timeline]);
    let gaps = list(&idle["gaps"]);
    assert_eq!(gaps.len(), 9);
    for gap in gaps {
        assert!(gap["after"].as_str().unwrap().starts_with("vectorAdd"), "{gap}");
    }
}

#[test]
fn copies_whose_size_is_not_said_are_in_no_sum_of_sizes() {
    let Some(timeline) = timeline_of_case("copies_without_size.json") else {
        return;
    };
    let summary = summarise(&timeline);
    let [row] = summary.memcpy_size.rows.as_slice() else {
        panic!("{:?}", summary.memcpy_size);
    };
    let figures = row.statistics;
    assert_eq!((figures.calls, figures.total, figures.min), (1, 1 << 20, 1 << 20));
    assert!((figures.median - 1_048_576.0).abs() < 0.5 && (figures.avg - 1_048_576.0).abs() < 0.5);
    assert_eq!(summary.memcpy_size.unknown, 3);
    assert_eq!(summary.memcpy_time.rows[0].statistics.calls, 4);
    assert!(summary.render(9).contains("3 of unknown size"));

    let sizes = analyze("cuda_gpu_mem_size_sum", &json!({}), &[&timeline]);
    let known = said(&sizes["rows"][0], &["count", "min_bytes"]);
    assert_eq!(known, json!([1, 1 << 20]));
    assert!(sizes["not_captured"].to_string().contains("3 operations"), "{sizes}");
    let utilization = analyze("utilization", &json!({"bins": 1}), &[&timeline]);
    let copies = &utilization["copies"][0];
    let counts = said(copies, &["copies", "unknown_sizes", "bytes"]);
    assert_eq!(counts, json!([4, 3, 1 << 20]));
    // One copy of 400 us tells the rate.
    let rate = copies["bytes_per_second"].as_f64().unwrap();
    assert!((rate / (1_048_576.0 / 400e-6) - 1.0).abs() < 1e-9, "{rate}");
    let compared = analyze("compare", &Value::Null, &[&timeline, &timeline]);
    assert_eq!(compared["copies"][0]["before_bytes"], Value::Null);
    let events = analyze("events", &json!({"category": "cuda_memcpy_d2d"}), &[&timeline]);
    let of_known_size = events.to_string().matches("\"bytes\"").count();
    assert_eq!(of_known_size, 1, "{events}");
    let advice = analyze("advice", &Value::Null, &[&timeline]);
    let told = finding(&advice, "device-copies").unwrap()["sentence"].to_string();
    assert!(told.contains("moved 1.05 MB without 3 of unknown size"), "{told}");
}
