//! What the API server would say to a schedule: the same CEL rules and bounds, run here.

use flopwatch_api::artifact::Output;
use flopwatch_api::schedule::{
    BudgetState, ConcurrencyPolicy, ProfilingSchedule, ProfilingScheduleStatus, SkipReason, SkippedCount, Stratum,
};
use kube::core::CustomResourceExt as _;
use kube::core::cel::validate_cel;
use serde_json::{Value, json};

fn schedule(spec: Value) -> ProfilingSchedule {
    serde_json::from_value(json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSchedule",
        "metadata": { "name": "always" }, "spec": spec
    }))
    .unwrap()
}

fn minimal() -> Value {
    json!({ "when": { "interval": { "seconds": 900 } }, "select": { "podSelector": { "matchLabels": { "app": "llm" } } } })
}

fn with(name: &str, value: Value) -> Value {
    let mut spec = minimal();
    spec[name] = value;
    spec
}

#[test]
fn the_smallest_schedule_gets_sane_defaults() {
    let schedule = schedule(minimal());
    validate_cel(&schedule).unwrap();
    let spec = &schedule.spec;
    assert!(!spec.suspend);
    assert_eq!((spec.jitter_seconds, spec.starting_deadline_seconds), (120, 60));
    assert_eq!(spec.concurrency_policy, ConcurrencyPolicy::Forbid);
    assert_eq!(spec.select.stratify_by, [Stratum::ImageDigest]);
    assert_eq!(
        (
            spec.select.per_run.percent,
            spec.select.per_run.minimum,
            spec.select.per_run.maximum
        ),
        (1, 1, 10)
    );
    assert_eq!(
        (spec.session.duration_seconds, spec.session.outputs.as_slice()),
        (10, &[Output::Summary][..])
    );
    assert_eq!(
        (spec.budget.amortized_basis_points, spec.budget.during_basis_points),
        (100, 1_000)
    );
    assert_eq!(
        (spec.backoff.initial_seconds, spec.backoff.maximum_seconds),
        (3_600, 86_400)
    );
    assert_eq!((spec.history.succeeded, spec.history.failed), (20, 5));
}

#[test]
fn a_schedule_with_every_member_is_accepted() {
    let schedule = schedule(json!({
        "suspend": true,
        "when": { "cron": { "expression": "*/15 8-18 * * 1-5", "timeZone": "Europe/Berlin" } },
        "jitterSeconds": 60, "startingDeadlineSeconds": 30, "concurrencyPolicy": "Replace",
        "blackouts": [{ "cron": "0 8 * * 1-5", "timeZone": "Europe/Berlin", "durationSeconds": 7200 }],
        "select": {
            "podSelector": { "matchLabels": { "app": "llm" } }, "stratifyBy": ["ImageDigest", "Node", "Workload"],
            "perRun": { "percent": 1, "minimum": 1, "maximum": 10 }, "minPodAgeSeconds": 300, "restSeconds": 3600,
        },
        "session": { "profiler": { "type": "Nsys" }, "durationSeconds": 10, "require": ["cuda_kernel"], "outputs": ["Summary"] },
        "budget": {
            "amortizedBasisPoints": 100, "duringBasisPoints": 1000, "unknown": "Refuse", "captureSecondsPerPodPerDay": 300,
            "signal": { "prometheus": { "port": 8000, "path": "/metrics", "counter": "vllm:generation_tokens_total", "labels": { "model": "m" } } },
        },
        "backoff": { "initialSeconds": 60, "maximumSeconds": 600 },
        "history": { "succeeded": 1, "failed": 0 },
        "triggers": [{
            "alert": { "name": "Slow", "matchLabels": { "severity": "page" } },
            "target": { "namespaceLabel": "namespace", "podLabel": "pod" },
            "cooldownSeconds": 600, "maximumPerDay": 5, "ignoreBlackouts": true,
        }],
    }));
    validate_cel(&schedule).unwrap();
}

#[test]
fn a_wrong_schedule_is_refused_with_a_sentence() {
    let cron = json!({ "expression": "0 0 * * *" });
    let cases = [
        ("no slots", with("when", json!({})), "exactly one of interval"),
        (
            "slots of two kinds",
            with("when", json!({ "interval": { "seconds": 900 }, "cron": cron })),
            "exactly one of interval",
        ),
        (
            "windows longer than slots",
            json!({ "when": { "interval": { "seconds": 20 } }, "select": minimal()["select"], "session": { "durationSeconds": 30 } }),
            "must not be longer than spec.when.interval.seconds",
        ),
        (
            "bounds the wrong way round",
            with(
                "select",
                json!({ "podSelector": { "matchLabels": { "a": "b" } }, "perRun": { "minimum": 5, "maximum": 4 } }),
            ),
            "minimum must not be above maximum",
        ),
        (
            "a backoff the wrong way round",
            with("backoff", json!({ "initialSeconds": 10, "maximumSeconds": 5 })),
            "initialSeconds must not be above maximumSeconds",
        ),
        (
            "Nsight Compute, which needs a pod of its own",
            with("session", json!({ "profiler": { "type": "Ncu" } })),
            "Ncu profiles pods that a session makes",
        ),
        (
            "options of another profiler",
            with(
                "session",
                json!({ "profiler": { "type": "Metrics", "nsys": { "trace": ["cuda"] } } }),
            ),
            "spec.profiler.type must be Nsys or Auto",
        ),
        (
            "dumps that are not published",
            with(
                "session",
                json!({ "profiler": { "type": "Jax", "jax": { "dumps": true } } }),
            ),
            "add Raw to spec.session.outputs",
        ),
        (
            "sessions that are forgotten within the day in which triggers count",
            json!({
                "when": minimal()["when"], "select": minimal()["select"],
                "session": { "retention": { "ttlSecondsAfterFinished": 86_399 } }, "triggers": [{ "alert": { "name": "Slow" } }]
            }),
            "spec.triggers needs a spec.session.retention",
        ),
        (
            "sessions that are forgotten while their trigger cools down",
            json!({
                "when": minimal()["when"], "select": minimal()["select"],
                "session": { "retention": { "ttlSecondsAfterFinished": 86_400 } },
                "triggers": [{ "alert": { "name": "Slow" } }, { "alert": { "name": "Slow" }, "cooldownSeconds": 86_401 }]
            }),
            "spec.triggers needs a spec.session.retention",
        ),
        (
            "sessions that are forgotten while their pods rest",
            json!({
                "when": minimal()["when"], "session": { "retention": { "ttlSecondsAfterFinished": 60 } },
                "select": { "podSelector": { "matchLabels": { "a": "b" } }, "restSeconds": 61 },
            }),
            "must not be below spec.select.restSeconds",
        ),
        (
            "sessions that are forgotten within the day that counts",
            json!({
                "when": minimal()["when"], "select": minimal()["select"],
                "session": { "retention": { "ttlSecondsAfterFinished": 86_399 } }, "budget": { "captureSecondsPerPodPerDay": 60 },
            }),
            "of a day (86400) or more",
        ),
        (
            "all pods",
            with("select", json!({ "podSelector": {} })),
            "would select every pod",
        ),
    ];
    for (name, spec, expected) in cases {
        let errors = validate_cel(&schedule(spec)).expect_err(name).to_string();
        assert!(errors.contains(expected), "{name}: {errors}");
    }
}

#[test]
fn a_status_is_read_as_it_was_written_and_its_reasons_are_a_closed_set() {
    let skipped = SkipReason::ALL.iter().copied();
    let skipped = skipped.map(|reason| SkippedCount { reason, count: 1 });
    let status = ProfilingScheduleStatus {
        skipped: skipped.collect(),
        ..ProfilingScheduleStatus::default()
    };
    let written = serde_json::to_value(&status).unwrap();
    assert_eq!(
        serde_json::from_value::<ProfilingScheduleStatus>(written).unwrap(),
        status
    );
    for reason in SkipReason::ALL {
        assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
    }
    for state in [BudgetState::Blind, BudgetState::Inconclusive] {
        assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
    }
}

#[test]
fn the_schema_has_no_floats_and_no_unsigned_formats() {
    let crd = serde_json::to_string(&ProfilingSchedule::crd()).unwrap();
    for format in ["\"number\"", "\"uint", "\"float\"", "\"double\""] {
        assert!(!crd.contains(format), "{format}");
    }
}
