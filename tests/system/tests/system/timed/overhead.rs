//! What a window costs its target, held against what the target counted itself.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::overhead::{CaptureOverhead, OverheadVerdict, SignalSource};
use flopwatch_system_tests::cluster::{Group, TestNamespace, run};
use flopwatch_system_tests::pods::{prepared_for, workload};
use flopwatch_system_tests::sessions::{of_main, spec, with};
use flopwatch_system_tests::workload::{Count, counts};
use serde_json::{Value, json};

use crate::shared::overhead::{BASELINE_DURATION, overhead};

const SECOND: u64 = 1_000_000_000;
/// How far an estimate may lie from the program's own count, in basis points.
const MAX_DIFFERENCE_BASIS_POINTS: f64 = 200.0;

/// Steps per second of a program between two times, by its own lines: the median from line to line,
/// since what a window costs is told by medians too. Beside other tests a program may stand still
/// for a moment, of which a mean has all and a median nothing.
fn pace(lines: &[Count], from_ns: u64, until_ns: u64) -> Result<f64> {
    let inside = lines.iter().filter(|line| (from_ns..until_ns).contains(&line.unix_ns));
    let inside: Vec<&Count> = inside.collect();
    let mut paces = Vec::new();
    for pair in inside.windows(2) {
        let [one, next] = pair else { continue };
        let seconds = Duration::from_nanos(next.unix_ns - one.unix_ns).as_secs_f64();
        paces.push(f64::from(u32::try_from(next.ranges - one.ranges)?) / seconds);
    }
    paces.sort_by(f64::total_cmp);
    paces.get(paces.len() / 2).copied().context("no lines in that time")
}

#[tokio::test]
async fn what_a_window_costs_is_what_the_program_counted_itself() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Timed, "overhead").await? else {
        return Ok(());
    };
    let _recorded = super::RECORDERS.read().await;
    namespace.create_kept(prepared_for("trainer", "nsys.recorder")).await?;
    namespace.launch_state("trainer").await?;
    namespace.has_run("trainer", BASELINE_DURATION).await?;
    let reported = json!({ "overhead": { "action": "Report", "afterSeconds": 5 } });
    let measured = with(spec("trainer", 10, "Nsys"), reported);
    namespace.create_session("measured", measured).await?;
    let capture = namespace.succeeded("measured").await?;
    let told = overhead(&capture)?;
    let signal = told.signal.as_ref().context("no signal")?;
    ensure!(
        signal.source == SignalSource::Recorder && signal.name == "step",
        "{told:?}"
    );
    let bins = told.bins.context("no bins")?;
    ensure!(bins.before >= 15 && bins.during >= 9 && bins.after >= 4, "{told:?}");
    if let Some(slowdown) = told.slowdown_basis_points {
        let opened = capture.status.as_ref().and_then(|status| status.start_time.as_ref());
        let opened = u64::try_from(opened.context("no start")?.0.as_nanosecond())?;
        let logs = namespace.logs("trainer").await?;
        let lines = counts(&logs).into_values().next().context("no lines")?;
        // The status has whole seconds, and the profiler starts and stops at the window's edges.
        let before = pace(&lines, opened - 12 * SECOND, opened - 3 * SECOND)?;
        let during = pace(&lines, opened + 2 * SECOND, opened + 9 * SECOND)?;
        let own = (before / during - 1.0) * 10_000.0;
        let apart = (f64::from(slowdown) - own).abs();
        // On a machine that is busy with other tests, the interval says how far to trust it.
        let width = f64::from(told.high.unwrap_or(0) - told.low.unwrap_or(0));
        ensure!(
            apart <= MAX_DIFFERENCE_BASIS_POINTS.max(width),
            "{slowdown} and {own:.0} by the program's own lines: {told:?}"
        );
    } else {
        ensure!(told.verdict == OverheadVerdict::Inconclusive, "{told:?}");
    }
    let time = capture.status.as_ref().and_then(|status| status.processor_time);
    ensure!(
        time.is_some_and(|time| time.profiler_milliseconds > Some(0) && time.processing_milliseconds > Some(0)),
        "{time:?}"
    );
    let summary = namespace.artifact(&capture, "summary.json").await?;
    let summary: Value = serde_json::from_slice(&summary)?;
    let overhead = &summary["overhead"];
    ensure!(overhead["signal"] == "Recorder step", "{overhead}");
    let plugin = std::env::var("FLOPWATCH_PLUGIN").context("FLOPWATCH_PLUGIN: cargo xtask test names the program")?;
    let said = run(&plugin, &["describe", "measured", "-n", &namespace.name]).await?;
    ensure!(said.contains("Cost:") && said.contains("the NVTX range"), "{said}");
    namespace.delete().await
}

#[tokio::test]
async fn a_counter_of_the_program_is_read_and_a_port_of_nobody_is_not() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Timed, "overhead-counter").await? else {
        return Ok(());
    };
    let mut pod = workload("counted", false, &["--range-micros", "2000", "--metrics-port", "9400"]);
    pod["spec"]["containers"][0]["ports"] = json!([{ "containerPort": 9400 }]);
    namespace.run(pod).await?;
    let counter = cost_of_window(&namespace, "counter", 9400, 12).await?;
    let signal = counter.signal.as_ref().context("no signal")?;
    ensure!(
        signal.source == SignalSource::Prometheus && signal.name == "sample_steps_total",
        "{counter:?}"
    );
    ensure!(
        counter.verdict != OverheadVerdict::Blind && counter.bins.is_some_and(|bins| bins.during > 8),
        "{counter:?}"
    );
    // The API server's own port, which the program does not listen at.
    let nobody = cost_of_window(&namespace, "nobody", 6443, 3).await?;
    ensure!(nobody.verdict == OverheadVerdict::Blind, "{nobody:?}");
    let message = &nobody.message;
    ensure!(message.contains("no process of the container listens"), "{message}");
    namespace.delete().await
}

/// The cost of a window of `seconds`, and as many before it, by the counter at a port of the
/// program. A program that is slow to answer is read less often: each reading rests fifty times as
/// long as it took.
async fn cost_of_window(namespace: &TestNamespace, name: &str, port: u16, seconds: u32) -> Result<CaptureOverhead> {
    let signal = json!({ "prometheus": {
        "port": port, "counter": "sample_steps_total", "labels": { "worker": "all" }, "baselineSeconds": seconds,
    } });
    let reported = json!({ "overhead": { "action": "Report", "signal": signal } });
    let spec = with(of_main("counted", seconds, "Metrics"), reported);
    namespace.create_session(name, spec).await?;
    let capture = namespace.succeeded(name).await?;
    overhead(&capture).cloned()
}
