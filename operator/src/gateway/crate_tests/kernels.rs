//! Counters of kernels, of what Nsight Compute wrote.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flopwatch_artifacts::ConversionLimits;
use flopwatch_trace::ReadLimits;
use flopwatch_trace::convert::{ConvertOptions, convert};
use serde_json::{Value, json};

use super::engine::Engine;
use super::rig::Rig;

const PATH: &str = "/api/profiling/kernels/0badcafe";

/// A details page as ncu writes it.
const PAGE: &str = r#""ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"
"3","77","a.out","host","axpy(int)","1","7","(128, 1, 1)","(40, 2, 1)","0","9.0","GPU Speed Of Light Throughput","Duration","us","6.50"
"3","77","a.out","host","axpy(int)","1","7","(128, 1, 1)","(40, 2, 1)","0","9.0","GPU Speed Of Light Throughput","DRAM Throughput","%","50"
"3","77","a.out","host","axpy(int)","1","7","(128, 1, 1)","(40, 2, 1)","0","9.0","Occupancy","Achieved Occupancy","%","25"
"#;

/// The gateway with the timeline file that such a file becomes.
async fn rig(report: &Path) -> Rig {
    let folder = tempfile::tempdir().unwrap();
    let timeline = folder.path().join("timeline.h5");
    let options = ConvertOptions {
        session_id: Some("0badcafe".to_owned()),
        limits: ReadLimits::default(),
        overwrite: false,
    };
    convert(report, &timeline, &options, |_stage| {}).unwrap();
    Rig::converting(
        &std::fs::read(timeline).unwrap(),
        Engine::converter,
        ConversionLimits::default(),
    )
    .await
}

async fn kernels(rig: &Rig) -> Value {
    let mut answer = rig.get(PATH, "reader").await;
    let until = Instant::now() + Duration::from_mins(1);
    while answer.status == 503 && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(50)).await;
        answer = rig.get(PATH, "reader").await;
    }
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "application/json"),
        "{answer:?}"
    );
    answer.json()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_come_with_the_figures_that_most_ask_for() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("details.csv");
    std::fs::write(&page, PAGE).unwrap();
    let rig = rig(&page).await;
    let found = kernels(&rig).await;
    assert_eq!(found["launches_left_out"], 0);
    let kernel = &found["launches"][0];
    assert_eq!(
        json!([kernel["name"], kernel["grid"]]),
        json!(["axpy(int)", [40, 2, 1]])
    );
    let figures = &kernel["figures"];
    assert_eq!(
        json!([
            figures["duration_ns"],
            figures["bandwidth_share"],
            figures["achieved_occupancy"]
        ]),
        json!([6500.0, 0.5, 0.25])
    );
    assert_eq!(figures["flop_per_second"], Value::Null, "not measured is not zero");
    let duration = "GPU Speed Of Light Throughput: Duration";
    assert_eq!(
        (&kernel["metrics"][duration], &kernel["units"][duration]),
        (&json!(6.5), &json!("us"))
    );
    assert_eq!(rig.status(PATH, "stranger").await, 403);
    let named = rig
        .get("/api/profiling/session/0badcafe/analyses/kernel-counters", "reader")
        .await;
    assert_eq!(named.json(), found);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_a_real_report_is_served() {
    let corpus = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../shared/corpus/llm-perf-opt-ncu/kernel_0001.details.csv"
    );
    let page = PathBuf::from(corpus);
    if !page.exists() {
        println!("skipped (corpus): ../shared/corpus/llm-perf-opt-ncu is not there");
        return;
    }
    let found = kernels(&rig(&page).await).await;
    let figures = &found["launches"][0]["figures"];
    for (figure, expected) in [
        ("duration_ns", 6750.0),
        ("bandwidth_bytes_per_second", 345.14e9),
        ("bandwidth_share", 0.1966),
        ("compute_share", 0.0915),
        ("l1_hit_rate", 0.4073),
        ("l2_hit_rate", 0.2766),
        ("theoretical_occupancy", 0.1667),
        ("achieved_occupancy", 0.1132),
    ] {
        let value = figures[figure].as_f64().unwrap();
        assert!((value / expected - 1.0).abs() < 1e-9, "{figure}: {value}");
    }
}

#[tokio::test]
async fn a_capture_without_counters_says_so() {
    let rig = Rig::new().await;
    for _ in 0..2 {
        let answer = rig.get(PATH, "reader").await;
        assert_eq!(answer.told(), "404 NotCaptured", "{answer:?}");
        assert!(answer.detail().contains("Nsight Compute"), "{answer:?}");
    }
}
