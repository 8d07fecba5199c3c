//! Captures and rows as tests need them.

use flopwatch_fleet::{CERTAIN_PER_BILLION, CaptureRow, Row, Sketch, name_hash};

/// 2026-11-25T00:00:00Z.
pub(crate) const DAY: i64 = 1_795_564_800_000_000_000;

/// A capture that succeeded, of kernels and ranges.
pub(crate) fn capture(uid: &str, probability: f64) -> CaptureRow {
    CaptureRow {
        cluster: "test".to_owned(),
        namespace: "ml".to_owned(),
        schedule: Some("often".to_owned()),
        session: "often-1".to_owned(),
        session_id: "0badcafe".to_owned(),
        capture: uid.to_owned(),
        capture_uid: uid.to_owned(),
        trigger: "Schedule".to_owned(),
        node: "node-1".to_owned(),
        gpu_model: Some("NVIDIA H100".to_owned()),
        gpus: Some(1),
        pod: format!("pod-{uid}"),
        container: "train".to_owned(),
        image: "registry.example/train:1".to_owned(),
        window_start: DAY,
        window_ns: 10_000_000_000,
        probability_per_billion: per_billion(probability),
        succeeded: true,
        reason: Some("Succeeded".to_owned()),
        categories: vec!["cuda_kernel".to_owned(), "nvtx_range".to_owned()],
        gpu_busy_ns: Some(5_000_000_000),
        events: Some(10),
        dropped: Some(0),
        ..CaptureRow::default()
    }
}

#[allow(clippy::cast_possible_truncation, reason = "at most a billion")]
fn per_billion(probability: f64) -> i64 {
    (probability * CERTAIN_PER_BILLION as f64).round() as i64
}

/// A row of a capture: so many calls of equal length.
pub(crate) fn row(capture: &CaptureRow, category: &str, name: &str, calls: i64, each_ns: i64) -> Row {
    let mut sketch = Sketch::default();
    for _ in 0..calls {
        sketch.add(each_ns.unsigned_abs());
    }
    Row {
        capture_uid: capture.capture_uid.clone(),
        namespace: capture.namespace.clone(),
        image: capture.image.clone(),
        node: capture.node.clone(),
        gpu_model: capture.gpu_model.clone(),
        window_start: capture.window_start,
        window_ns: capture.window_ns,
        probability_per_billion: capture.probability_per_billion,
        device: Some(0),
        category: category.to_owned(),
        name: name.to_owned(),
        name_hash: name_hash(name),
        calls,
        total_ns: calls * each_ns,
        min_ns: each_ns,
        max_ns: each_ns,
        median_ns: each_ns,
        sketch: Some(sketch),
        ..Row::default()
    }
}
