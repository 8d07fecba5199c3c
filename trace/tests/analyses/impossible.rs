//! Times that cannot be: what analyses say of captures whose profiler gives some.

use flopwatch_model::{LossReason, Timeline};
use flopwatch_summary::summarise;
use serde_json::Value;

use crate::captures::{analyze, timeline_of_case};
use crate::result::find;

fn losses(timeline: &Timeline) -> Vec<(LossReason, String, u64)> {
    let list = timeline.capture.losses.list().into_iter();
    list.map(|loss| (loss.reason, loss.what, loss.count)).collect()
}

/// No rule may advise on the GPU's work, and the loss is told.
fn is_advised_on_the_loss_alone(timeline: &Timeline) {
    let advice = analyze("advice", &Value::Null, &[timeline]);
    let lost = find(&advice["findings"], "rule", "events-lost");
    assert_eq!(lost["severity"], "high", "{lost}");
    assert!(lost["sentence"].as_str().unwrap().contains("cannot be"), "{lost}");
    for rule in ["gpu-idle", "launch-bound", "dominant-kernel"] {
        let told = find(&advice["rules"], "rule", rule);
        assert_eq!(told["outcome"], "abstained", "{told}");
    }
}

#[test]
fn a_kernel_of_236_years_is_left_out_and_counted() {
    let Some(timeline) = timeline_of_case("kernel_of_236_years.json") else {
        return;
    };
    let what = "cuda_kernel: lengths that reach out of the capture".to_owned();
    assert_eq!(losses(&timeline), [(LossReason::Skipped, what, 1)]);
    let summary = summarise(&timeline);
    assert_eq!(summary.gpus[0].busy_ns, 150_000);
    // The last call that was recorded ends it.
    assert_eq!(summary.window_ns, 306_000);
    let time = analyze("gpu-time", &Value::Null, &[&timeline]);
    assert_eq!(time["gpus"][0]["busy_ns"], 150_000);
    is_advised_on_the_loss_alone(&timeline);
}

#[test]
fn a_kernel_that_could_not_be_timed_moves_no_session_to_1970() {
    let Some(timeline) = timeline_of_case("kernel_with_ts_0.json") else {
        return;
    };
    let what = "cuda_kernel: no times".to_owned();
    assert_eq!(losses(&timeline), [(LossReason::Skipped, what, 1)]);
    let summary = summarise(&timeline);
    assert_eq!((summary.window_ns, summary.gpus[0].busy_ns), (206_000, 100_000));
    assert_eq!(timeline.capture.session_start_utc_ns, Some(1_615_207_264_505_000_000));
    is_advised_on_the_loss_alone(&timeline);
}

#[test]
fn a_kernel_that_runs_on_behind_later_ones_of_its_stream_is_cut_and_counted() {
    let Some(timeline) = timeline_of_case("rocm_duration_overflows_next.json") else {
        return;
    };
    let what = "cuda_kernel: ends behind later work of its stream".to_owned();
    assert_eq!(losses(&timeline), [(LossReason::Truncated, what, 1)]);
    let summary = summarise(&timeline);
    let kernels = &summary.kernels.rows[0].statistics;
    assert_eq!((kernels.calls, kernels.max), (4, 50_000));
    assert_eq!(summary.gpus[0].busy_ns, 140_000);
    is_advised_on_the_loss_alone(&timeline);
}
