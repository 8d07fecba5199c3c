//! A session and its captures in words.

use flopwatch_api::capture::{Capture, CaptureSummary, TraceOutcome};
use flopwatch_api::overhead::CaptureProcessorTime;
use flopwatch_api::phase::Phase;
use flopwatch_api::reason::{CaptureCondition, SessionCondition};
use flopwatch_api::session::ProfilingSession;
use flopwatch_report::page::figure::count;
use flopwatch_report::{Layout, Tone};
use jiff::Timestamp;
use kube::ResourceExt as _;

use crate::print::{age, bytes, line};
use crate::sessions::{seconds_since, target, tone};

/// What became of a session, for people.
pub fn render(session: &ProfilingSession, captures: &[Capture], now: Timestamp, layout: Layout) -> String {
    let mut text = String::new();
    let status = session.status.clone().unwrap_or_default();
    let mut field = |name: &str, value: &str| {
        if !value.is_empty() {
            put(&mut text, 0, name, value);
        }
    };
    field("Name:", &session.name_any());
    field("Namespace:", &session.namespace().unwrap_or_default());
    field("Id:", status.id.as_deref().unwrap_or_default());
    field("Target:", &line(&target(session)));
    field("Profiler:", session.spec.profiler.type_.as_str());
    field("Window:", &format!("{} s", session.spec.duration_seconds));
    field(
        "Requested by:",
        &line(status.requested_by.as_deref().unwrap_or_default()),
    );
    let created = seconds_since(session.creation_timestamp().map(|time| time.0), now);
    field("Age:", &created.map_or_else(String::new, age));
    if let Some(stop) = session.spec.stop {
        field("Stopped by user:", stop.as_str());
    }
    let verdict = session.condition(SessionCondition::Succeeded);
    let (succeeded, reason, message) = verdict.map_or(("Unknown", "", ""), |verdict| {
        (
            verdict.status.as_str(),
            verdict.reason.as_str(),
            verdict.message.as_str(),
        )
    });
    let reply = match reason {
        "" => succeeded.to_owned(),
        reason => format!("{succeeded} ({})", line(reason)),
    };
    field("Succeeded:", &layout.paint(tone(succeeded), &reply));
    field("", &line(message));
    let found = session.condition(SessionCondition::TargetsFound);
    if let Some(found) = found.filter(|found| found.status != "True") {
        field(
            "Targets:",
            &format!("{}: {}", line(&found.reason), line(&found.message)),
        );
    }
    for capture in captures {
        render_capture(&mut text, capture, layout);
    }
    if let Some(hint) = hint(session, captures) {
        put_line(&mut text, &format!("\n{hint}"));
    }
    text
}

fn render_capture(text: &mut String, capture: &Capture, layout: Layout) {
    put_line(text, &format!("\nCapture {}", line(&capture.name_any())));
    let spec = &capture.spec;
    let container = format!("{}/{} on {}", spec.pod_ref.name, spec.container_name, spec.node_name);
    put(text, 2, "Container:", &line(&container));
    let Some(status) = &capture.status else {
        put(text, 2, "Stage:", "not taken up yet");
        return;
    };
    if let Some(profiler) = status.profiler {
        put(text, 2, "Profiler:", profiler.as_str());
    }
    let verdict = capture.condition(CaptureCondition::Succeeded);
    let ended = Phase::of(capture).has_ended();
    if let Some(progress) = status.progress.as_ref().filter(|_| !ended) {
        let reply = format!(
            "{} {} % {}",
            progress.stage.as_str(),
            progress.percent,
            line(&progress.message)
        );
        put(text, 2, "Stage:", reply.trim_end());
    }
    if let Some(verdict) = verdict.filter(|_| ended) {
        let reply = format!("{} ({})", verdict.status, line(&verdict.reason));
        put(text, 2, "Succeeded:", &layout.paint(tone(&verdict.status), &reply));
        if !verdict.message.is_empty() {
            put(text, 2, "", &line(&verdict.message));
        }
    }
    if let Some(summary) = &status.summary {
        render_summary(text, summary);
    }
    if let Some(overhead) = &status.overhead {
        let reply = format!("{}: {}", overhead.verdict.as_str(), line(&overhead.message));
        put(text, 2, "Cost:", &reply);
    }
    if let Some(time) = &status.processor_time {
        let name = if status.overhead.is_some() { "" } else { "Cost:" };
        put(text, 2, name, &processor_time(time));
    }
    for (place, artifact) in status.artifacts.iter().enumerate() {
        let size = u64::try_from(artifact.bytes).unwrap_or_default();
        let raw = if artifact.sensitive {
            ", holds process environments"
        } else {
            ""
        };
        let reply = format!("{} ({}{raw})", line(&artifact.name), bytes(size));
        put(text, 2, if place == 0 { "Artifacts:" } else { "" }, &reply);
    }
    let mut first = true;
    for closed in status.capabilities.iter().filter(|capability| !capability.available) {
        let mut reply = format!("{} is closed: {}", closed.profiler.as_str(), line(&closed.reason));
        if !closed.remedy.is_empty() {
            reply.push_str(". ");
            reply.push_str(&line(&closed.remedy));
        }
        let name = if std::mem::take(&mut first) { "Closed ways:" } else { "" };
        put(text, 2, name, &layout.paint(Tone::Note, &reply));
    }
}

fn processor_time(time: &CaptureProcessorTime) -> String {
    let seconds = |milliseconds: i64| format!("{}.{:02} s", milliseconds / 1000, milliseconds % 1000 / 10);
    let known = [
        ("of the profiler's own processes", time.profiler_milliseconds),
        ("of import and transform", time.processing_milliseconds),
    ];
    let known = known
        .into_iter()
        .filter_map(|(whose, milliseconds)| Some(format!("{} {whose}", seconds(milliseconds?))));
    format!("processor time: {}", known.collect::<Vec<_>>().join(", "))
}

fn render_summary(text: &mut String, summary: &CaptureSummary) {
    let events = format!("{} in {}", summary.events, seconds(summary.window_nanoseconds));
    put(text, 2, "Events:", &events);
    let categories: Vec<String> = summary
        .categories
        .iter()
        .filter(|category| category.events > 0)
        .map(|category| format!("{} {}", line(&category.category), category.events))
        .collect();
    if !categories.is_empty() {
        put(text, 2, "", &categories.join(", "));
    }
    let empty: Vec<&str> = summary
        .traced
        .iter()
        .filter(|traced| traced.outcome == TraceOutcome::Empty)
        .map(|traced| traced.category.as_str())
        .collect();
    if !empty.is_empty() {
        put(
            text,
            2,
            "",
            &format!("traced, and nothing happened: {}", empty.join(", ")),
        );
    }
    if let Some(busy) = summary.gpu_busy_percent {
        put(text, 2, "GPU busy:", &format!("{busy} % of the window"));
    }
    for (place, kernel) in summary.top_kernels.iter().enumerate() {
        let reply = format!(
            "{} in {} calls  {}",
            seconds(kernel.total_nanoseconds),
            kernel.calls,
            line(&kernel.name)
        );
        put(text, 2, if place == 0 { "Kernels:" } else { "" }, &reply);
    }
    if summary.dropped > 0 {
        let dropped = count(summary.dropped.unsigned_abs(), "event is", "events are");
        let reply = format!("{dropped} not in it; summary.json says which");
        put(text, 2, "Dropped:", &reply);
    }
}

/// What to do next.
fn hint(session: &ProfilingSession, captures: &[Capture]) -> Option<String> {
    let name = session.name_any();
    let published = captures.iter().any(|capture| {
        capture
            .status
            .as_ref()
            .is_some_and(|status| !status.artifacts.is_empty())
    });
    if published {
        return Some(format!("Look at it: kubectl flopwatch open {name}"));
    }
    let verdict = session.condition(SessionCondition::Succeeded);
    let failed = verdict.is_some_and(|verdict| verdict.status == "False");
    let pod = session.spec.target.pod_name.as_deref().filter(|_| failed)?;
    Some(format!(
        "What keeps the pod from being profiled: kubectl flopwatch doctor pod/{pod}"
    ))
}

/// Nanoseconds as seconds, to the millisecond.
fn seconds(nanoseconds: i64) -> String {
    let milliseconds = nanoseconds / 1_000_000;
    format!("{}.{:03} s", milliseconds / 1_000, milliseconds % 1_000)
}

fn put(text: &mut String, indent: usize, name: &str, value: &str) {
    text.extend([format!("{:indent$}{name:<17}{value}", ""), "\n".to_owned()]);
}

fn put_line(text: &mut String, value: &str) {
    text.push_str(value);
    text.push('\n');
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::sessions::tests::{CREATED, condition, session, verdict};

    /// A capture of container `main` with this status.
    pub(crate) fn capture(name: &str, status: &Value) -> Capture {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "team", "labels": {"flopwatch.dev/session": "first"}},
            "spec": {
                "sessionRef": {"name": "first", "id": "0badcafe"}, "nodeName": "n1",
                "podRef": {"name": "trainer", "uid": "uid"}, "containerName": "main",
                "durationSeconds": 5, "startDeadlineSeconds": 300, "outputs": ["Timeline", "Summary"]
            },
            "status": status
        }))
        .unwrap()
    }

    /// Status of a capture that published a timeline.
    pub(crate) fn published() -> Value {
        json!({
            "profiler": "Nsys",
            "conditions": [condition("Succeeded", "True", "Succeeded", "")],
            "artifacts": [
                {"name": "timeline.h5", "type": "Timeline", "bytes": 2_048, "sha256": "a".repeat(64), "mediaType": "application/x-hdf5"},
                {"name": "summary.json", "type": "Summary", "bytes": 2, "sha256": "b".repeat(64), "mediaType": "application/json"}
            ],
            "summary": {
                "windowNanoseconds": 5_040_594_538_i64, "events": 7, "dropped": 1, "gpuBusyPercent": 40,
                "categories": [{"category": "cuda_api", "events": 0}, {"category": "nvtx_range", "events": 7}],
                "traced": [{"category": "cuda", "outcome": "Empty"}, {"category": "nvtx", "outcome": "Captured"}],
                "topKernels": [{"name": "gemm", "totalNanoseconds": 2_000_000, "calls": 3}]
            },
            "overhead": {"verdict": "Within", "reason": "UpperEndWithin", "message": "1 % longer"},
            "processorTime": {"profilerMilliseconds": 1234, "processingMilliseconds": 70}
        })
    }

    /// What is said of a session a minute after it was made.
    fn said(status: &Value, captures: &[Capture]) -> String {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        render(&session("first", CREATED, status), captures, now, Layout::default())
    }

    #[test]
    fn a_session_that_succeeded_shows_its_result_and_the_next_step() {
        let captures = [capture("first-1", &published())];
        let text = said(&verdict("True", "Succeeded", "1 of 1"), &captures);
        assert_eq!(
            text,
            "Name:            first
Namespace:       team
Id:              0badcafe
Target:          pod/trainer
Profiler:        Auto
Window:          10 s
Requested by:    ada
Age:             60s
Succeeded:       True (Succeeded)
                 1 of 1

Capture first-1
  Container:       trainer/main on n1
  Profiler:        Nsys
  Succeeded:       True (Succeeded)
  Events:          7 in 5.040 s
                   nvtx_range 7
                   traced, and nothing happened: cuda
  GPU busy:        40 % of the window
  Kernels:         0.002 s in 3 calls  gemm
  Dropped:         1 event is not in it; summary.json says which
  Cost:            Within: 1 % longer
                   processor time: 1.23 s of the profiler's own processes, 0.07 s of import and transform
  Artifacts:       timeline.h5 (2.00 KiB)
                   summary.json (2 B)

Look at it: kubectl flopwatch open first
"
        );
    }

    #[test]
    fn a_session_that_failed_says_why_and_what_opens_the_way() {
        let status = json!({
            "conditions": [condition("Succeeded", "False", "NotPrepared", "add the label")],
            "capabilities": [
                {"profiler": "Metrics", "available": true, "reason": "Available"},
                {"profiler": "Nsys", "available": false, "reason": "NotPrepared", "remedy": "label it"}
            ]
        });
        let failed = verdict("False", "Failed", "none succeeded");
        let text = said(&failed, &[capture("first-1", &status)]);
        for expected in [
            "Succeeded:       False (Failed)\n                 none succeeded\n",
            "  Succeeded:       False (NotPrepared)\n                   add the label\n",
            "  Closed ways:     Nsys is closed: NotPrepared. label it\n",
            "\nWhat keeps the pod from being profiled: kubectl flopwatch doctor pod/trainer\n",
        ] {
            assert!(text.contains(expected), "{expected:?} in {text}");
        }
    }

    #[test]
    fn a_capture_that_runs_shows_its_stage() {
        let waiting = condition("TargetsFound", "False", "WaitingForTargets", "no pod yet");
        let progress = json!({"stage": "Collecting", "percent": 30, "message": "2 s left"});
        let running = capture("first-1", &json!({ "progress": progress }));
        let mut fresh = capture("first-2", &json!(null));
        fresh.status = None;
        let text = said(&json!({"conditions": [waiting]}), &[running, fresh]);
        for expected in [
            "Succeeded:       Unknown\n",
            "Targets:         WaitingForTargets: no pod yet\n",
            "  Stage:           Collecting 30 % 2 s left\n",
            "  Stage:           not taken up yet\n",
        ] {
            assert!(text.contains(expected), "{expected:?} in {text}");
        }
    }
}
