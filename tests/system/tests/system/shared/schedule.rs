//! Schedules: what the API server takes, and sessions that come by themselves.

use anyhow::{Context as _, Result, bail, ensure};
use flopwatch_api::capture::Capture;
use flopwatch_api::phase::Phase;
use flopwatch_api::schedule::{PROBABILITY_ANNOTATION, ProfilingSchedule, SCHEDULE_LABEL, SkipReason};
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::cluster::{Group, TestNamespace, dry_run, eventually};
use flopwatch_system_tests::pods::{restarts, workload};
use flopwatch_system_tests::sessions::{session, with};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

/// Windows that a schedule must have made before the test looks at them.
const MIN_WINDOWS: usize = 3;

fn minimal() -> Value {
    json!({ "when": { "interval": { "seconds": 60 } }, "select": { "podSelector": { "matchLabels": { "app": "llm" } } } })
}

/// What the API server says to a schedule that is not made; None where it takes it. It is sent as
/// it is: a type of ours would fill it up.
async fn refusal(namespace: &TestNamespace, name: &str, spec: Value) -> Result<Option<String>> {
    let resource = ApiResource::erase::<ProfilingSchedule>(&());
    let schedules: Api<DynamicObject> = Api::namespaced_with(namespace.client.clone(), &namespace.name, &resource);
    let schedule: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSchedule", "metadata": { "name": name }, "spec": spec
    }))?;
    match schedules.create(&dry_run(), &schedule).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 422 => Ok(Some(status.message)),
        Err(error) => Err(error.into()),
    }
}

fn of(schedule: &str) -> ListParams {
    ListParams::default().labels(&format!("{SCHEDULE_LABEL}={schedule}"))
}

fn cron(expression: &str) -> Value {
    json!({ "when": { "cron": { "expression": expression } } })
}

/// Specs that are taken.
fn accepted() -> Vec<(&'static str, Value)> {
    let every = json!({
        "suspend": true, "jitterSeconds": 0, "startingDeadlineSeconds": 30, "concurrencyPolicy": "Replace",
        "blackouts": [{ "cron": "0 8 * * 1-5", "timeZone": "Europe/Berlin", "durationSeconds": 7200 }],
        "select": {
            "podSelector": { "matchExpressions": [{ "key": "app", "operator": "In", "values": ["llm"] }] },
            "stratifyBy": ["ImageDigest", "Node"], "perRun": { "percent": 10, "minimum": 1, "maximum": 5 },
            "minPodAgeSeconds": 60, "restSeconds": 600
        },
        "session": { "profiler": { "type": "Metrics" }, "durationSeconds": 5, "outputs": ["Summary", "Timeline"] },
        "budget": {
            "amortizedBasisPoints": 50, "duringBasisPoints": 500, "unknown": "Refuse", "captureSecondsPerPodPerDay": 300,
            "signal": { "prometheus": { "port": 8000, "counter": "vllm:generation_tokens_total" } }
        },
        "backoff": { "initialSeconds": 60, "maximumSeconds": 600 }, "history": { "succeeded": 1, "failed": 0 },
        "triggers": [{ "alert": { "name": "Slow", "matchLabels": { "severity": "page" } }, "cooldownSeconds": 600 }]
    });
    vec![
        ("the smallest", minimal()),
        ("times of the clock", with(minimal(), cron("*/15 8-18 * * 1-5"))),
        ("every member", with(minimal(), every)),
    ]
}

/// Members that are refused, and what the refusal says.
fn refused() -> Vec<(&'static str, Value, &'static str)> {
    let selected =
        |per_run: Value| json!({ "select": { "podSelector": { "matchLabels": { "app": "llm" } }, "perRun": per_run } });
    let session = |session: Value| json!({ "session": session });
    vec![
        ("no slots", json!({ "when": {} }), "exactly one of interval"),
        (
            "slots of two kinds",
            json!({ "when": { "interval": { "seconds": 60 }, "cron": { "expression": "0 0 * * *" } } }),
            "exactly one of interval",
        ),
        (
            "a slot that is too short",
            json!({ "when": { "interval": { "seconds": 9 } } }),
            "seconds",
        ),
        ("a name for a time", cron("@daily"), "expression"),
        (
            "windows longer than slots",
            session(json!({ "durationSeconds": 61 })),
            "must not be longer than spec.when.interval.seconds",
        ),
        (
            "all pods",
            json!({ "select": { "podSelector": {} } }),
            "would select every pod",
        ),
        (
            "bounds the wrong way round",
            selected(json!({ "minimum": 5, "maximum": 4 })),
            "minimum must not be above maximum",
        ),
        (
            "a backoff the wrong way round",
            json!({ "backoff": { "initialSeconds": 10, "maximumSeconds": 5 } }),
            "initialSeconds must not be above maximumSeconds",
        ),
        (
            "Nsight Compute, which needs a pod of its own",
            session(json!({ "profiler": { "type": "Ncu" } })),
            "Ncu profiles pods that a session makes",
        ),
        (
            "dumps that are not published",
            session(json!({ "profiler": { "type": "Jax", "jax": { "dumps": true } } })),
            "add Raw to spec.session.outputs",
        ),
        (
            "sessions that are forgotten while their pods rest",
            json!({
                "session": { "retention": { "ttlSecondsAfterFinished": 60 } },
                "select": { "podSelector": { "matchLabels": { "app": "llm" } }, "restSeconds": 61 }
            }),
            "must not be below spec.select.restSeconds",
        ),
        (
            "sessions that are forgotten within the day in which triggers count",
            json!({
                "session": { "retention": { "ttlSecondsAfterFinished": 86_399 } }, "triggers": [{ "alert": { "name": "Slow" } }]
            }),
            "spec.triggers needs a spec.session.retention",
        ),
        (
            "sessions that are forgotten within the day that counts",
            json!({
                "session": { "retention": { "ttlSecondsAfterFinished": 86_399 } }, "budget": { "captureSecondsPerPodPerDay": 60 }
            }),
            "of a day (86400) or more",
        ),
    ]
}

#[tokio::test]
async fn the_api_server_holds_schedules_to_their_rules() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "schedule-rules").await? else {
        return Ok(());
    };
    for (what, spec) in accepted() {
        let refused = refusal(&namespace, "always", spec).await?;
        ensure!(refused.is_none(), "{what}: {refused:?}");
    }
    for (what, members, expected) in refused() {
        let Some(message) = refusal(&namespace, "always", with(minimal(), members)).await? else {
            bail!("{what} was accepted");
        };
        ensure!(message.contains(expected), "{what}: {message}");
    }
    let long = refusal(&namespace, &"x".repeat(64), minimal()).await?;
    ensure!(
        long.as_deref()
            .is_some_and(|message| message.contains("at most 63 characters")),
        "{long:?}"
    );
    namespace.delete().await
}

/// The captures of a schedule that succeeded.
async fn succeeded(namespace: &TestNamespace, schedule: &str) -> Result<Vec<Capture>> {
    let captures = namespace.api::<Capture>().list(&of(schedule)).await?.items;
    for capture in &captures {
        if let Phase::Failed { reason, message } = Phase::of(capture) {
            bail!("capture {} failed: {reason}: {message}", capture.name_any());
        }
    }
    let succeeded = |capture: &Capture| Phase::of(capture) == Phase::Succeeded;
    Ok(captures.into_iter().filter(succeeded).collect())
}

#[tokio::test]
async fn a_schedule_profiles_a_workload_again_and_again_and_leaves_it_as_it_was() -> Result<()> {
    let Some(namespace) = TestNamespace::begin_first(Group::Shared, "schedule").await? else {
        return Ok(());
    };
    namespace.launch(workload("trainer", true, &[])).await?;
    let always = json!({
        "when": { "interval": { "seconds": 30 } }, "jitterSeconds": 5,
        "select": {
            "podSelector": { "matchLabels": { "app": "trainer" } }, "perRun": { "percent": 100 }, "minPodAgeSeconds": 0
        },
        "session": { "profiler": { "type": "Nsys" }, "durationSeconds": 3, "require": ["nvtx_range"] }
    });
    namespace.create_schedule("always", always).await?;
    let captures = eventually("three windows to succeed", || async {
        let captures = succeeded(&namespace, "always").await?;
        Ok((captures.len() >= MIN_WINDOWS).then_some(captures))
    })
    .await?;
    for capture in &captures {
        let probability = capture.annotations().get(PROBABILITY_ANNOTATION);
        // Three seconds of thirty.
        ensure!(probability.is_some_and(|text| text == "100000000"), "{probability:?}");
    }
    nobody_but_the_controller_says_how_probable_it_was(&namespace).await?;
    let pod = namespace.api::<Pod>().get("trainer").await?;
    ensure!(restarts(&pod) == 0, "{:?}", pod.status);

    let schedules = namespace.api::<ProfilingSchedule>();
    let schedule = schedules.get("always").await?;
    let status = schedule.status.context("no status")?;
    ensure!(
        status.planned_until.is_some() && status.next_time.is_some(),
        "{status:?}"
    );
    let mut skipped = status.skipped.iter();
    let missed = skipped.find(|skipped| skipped.reason == SkipReason::Missed);
    ensure!(missed.is_none(), "{missed:?}");

    // Suspended, it makes no more; deleted, it takes its sessions with it.
    let suspend = Patch::Merge(json!({ "spec": { "suspend": true } }));
    schedules.patch("always", &PatchParams::default(), &suspend).await?;
    eventually("the schedule to be suspended", || async {
        let status = schedules.get("always").await?.status.context("no status")?;
        let is_suspended = status.conditions.iter().any(|ready| ready.reason == "Suspended");
        Ok(is_suspended.then_some(()))
    })
    .await?;
    schedules.delete("always", &DeleteParams::default()).await?;
    eventually("the sessions of the schedule to be gone", || async {
        let left = namespace.api::<ProfilingSession>().list(&of("always")).await?.items;
        Ok(left.is_empty().then_some(()))
    })
    .await?;
    namespace.delete().await
}

/// Sums over the fleet are divided by it: not even an administrator of the cluster writes it, on a
/// session of their own or on one of a schedule.
async fn nobody_but_the_controller_says_how_probable_it_was(namespace: &TestNamespace) -> Result<()> {
    let sessions = namespace.api::<ProfilingSession>();
    let asked = json!({ "target": { "podName": "trainer" }, "durationSeconds": 1 });
    let session = |annotations: Value| session(&json!({ "name": "forged", "annotations": annotations }), &asked);
    sessions.create(&dry_run(), &session(json!({ "a": "b" }))?).await?;
    let forged = session(json!({ PROBABILITY_ANNOTATION: "1" }))?;
    let forged = sessions.create(&dry_run(), &forged).await;
    let mut attempts = vec![("a session of one's own", forged.map(drop))];
    let of_schedule = sessions.list(&of("always")).await?.items;
    let name = of_schedule.first().context("no session")?.name_any();
    let change = async |annotations: Value| {
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
        sessions.patch(&name, &PatchParams::default(), &patch).await.map(drop)
    };
    change(json!({ "a": "b" })).await?;
    attempts.push(("another figure", change(json!({ PROBABILITY_ANNOTATION: "1" })).await));
    attempts.push(("no figure", change(json!({ PROBABILITY_ANNOTATION: null })).await));
    for (what, result) in attempts {
        match result {
            Err(kube::Error::Api(status)) if status.message.contains("is written by the controller") => {}
            other => bail!("{what}: {other:?}"),
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_schedule_that_cannot_be_followed_says_so() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "schedule-never").await? else {
        return Ok(());
    };
    let never = with(minimal(), cron("0 0 30 2 *"));
    namespace.create_schedule("never", never).await?;
    let message = eventually("the schedule to be judged", || async {
        let status = namespace.api::<ProfilingSchedule>().get("never").await?.status;
        let mut conditions = status.into_iter().flat_map(|status| status.conditions);
        let invalid = conditions.find(|ready| ready.type_ == "Ready" && ready.reason == "ScheduleInvalid");
        Ok(invalid.map(|ready| ready.message))
    })
    .await?;
    ensure!(message.contains("no day that there is"), "{message}");
    namespace.delete().await
}
