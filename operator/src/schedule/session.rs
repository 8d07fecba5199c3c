//! The session of a run, and that of an alert.

use flopwatch_api::REQUESTED_BY_ANNOTATION;
use flopwatch_api::overhead::{OverheadAction, OverheadSpec};
use flopwatch_api::schedule::{
    ALERT_STARTED_ANNOTATION, HARDWARE_ANNOTATION, IMAGE_DIGEST_ANNOTATION, PROBABILITY_ANNOTATION, ProfilingSchedule,
    SCHEDULE_LABEL, SLOT_ANNOTATION, TARGET_UID_ANNOTATION, TRIGGER_ANNOTATION, TRIGGER_NUMBER_ANNOTATION,
};
use flopwatch_api::session::{ProfilingSession, ProfilingSessionSpec, TargetSpec};
use flopwatch_schedule::{Alert, Class, Run, TriggeredRun};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource as _, ResourceExt as _};

/// How long the target is measured once the profiler is gone: nobody waits for these captures, and
/// a change of load is not to be held against a class of pods.
const AFTER_SECONDS: i32 = 10;

/// Longest that a session may wait for its turn, as its schema has it.
const MAX_WAIT_SECONDS: i64 = 86_400;

/// The session of a run on a pod of that class.
pub(super) fn session(schedule: &ProfilingSchedule, run: &Run, class: &Class, now: Timestamp) -> ProfilingSession {
    // A window that opens later than that would be one of another time.
    let patience = run.deadline.duration_since(now).as_secs().clamp(1, MAX_WAIT_SECONDS);
    let patience = i32::try_from(patience).unwrap_or(i32::MAX);
    let annotations = [
        (SLOT_ANNOTATION, run.slot.to_string()),
        (TARGET_UID_ANNOTATION, run.pod_uid.clone()),
        (PROBABILITY_ANNOTATION, run.probability_per_billion.to_string()),
        (IMAGE_DIGEST_ANNOTATION, class.image_digest.clone()),
        (HARDWARE_ANNOTATION, class.hardware.clone()),
    ];
    let owner = schedule.controller_owner_ref(&());
    let spec = spec(schedule, &run.pod_name, patience);
    made(schedule, &run.session_name, spec, &annotations, owner)
}

/// The session of an alert that `user` told of.
pub(crate) fn triggered(
    schedule: &ProfilingSchedule,
    run: &TriggeredRun<'_>,
    alert: &Alert,
    user: &str,
) -> ProfilingSession {
    let pod = run.pod;
    let annotations = [
        (TRIGGER_ANNOTATION, format!("{}/{}", alert.name(), alert.fingerprint)),
        (ALERT_STARTED_ANNOTATION, alert.started.to_string()),
        (TRIGGER_NUMBER_ANNOTATION, run.number.to_string()),
        (TARGET_UID_ANNOTATION, pod.uid.clone()),
        (IMAGE_DIGEST_ANNOTATION, pod.class.image_digest.clone()),
        (HARDWARE_ANNOTATION, pod.class.hardware.clone()),
        (REQUESTED_BY_ANNOTATION, user.to_owned()),
    ];
    // Holding up the deletion of a schedule takes a right over its finalizers, which the gateway
    // does not have.
    let owner = schedule.controller_owner_ref(&()).map(|owner| OwnerReference {
        block_owner_deletion: None,
        ..owner
    });
    let spec = triggered_spec(schedule, &pod.name);
    made(schedule, &run.session_name, spec, &annotations, owner)
}

/// What a schedule asks for when an alert is about that pod.
pub(crate) fn triggered_spec(schedule: &ProfilingSchedule, pod: &str) -> ProfilingSessionSpec {
    spec(schedule, pod, schedule.spec.starting_deadline_seconds)
}

/// What a schedule asks for of a pod, to begin within `patience` seconds.
fn spec(schedule: &ProfilingSchedule, pod: &str, patience: i32) -> ProfilingSessionSpec {
    let spec = &schedule.spec;
    ProfilingSessionSpec {
        start_deadline_seconds: patience,
        overhead: OverheadSpec {
            during_basis_points: spec.budget.during_basis_points,
            action: OverheadAction::Stop,
            after_seconds: AFTER_SECONDS,
            signal: spec.budget.signal.clone(),
        },
        ..spec.session.of(TargetSpec::pod(pod))
    }
}

/// A session of a schedule.
fn made(
    schedule: &ProfilingSchedule,
    name: &str,
    spec: ProfilingSessionSpec,
    annotations: &[(&str, String)],
    owner: Option<OwnerReference>,
) -> ProfilingSession {
    let mut session = ProfilingSession::new(name, spec);
    let labels = [
        (SCHEDULE_LABEL, schedule.name_any()),
        ("app.kubernetes.io/managed-by", "flopwatch".to_owned()),
    ];
    let annotations = annotations
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.clone()));
    session.metadata = ObjectMeta {
        namespace: schedule.namespace(),
        labels: Some(labels.map(|(key, value)| (key.to_owned(), value)).into()),
        annotations: Some(annotations.collect()),
        owner_references: owner.map(|owner| vec![owner]),
        ..session.metadata
    };
    session
}
