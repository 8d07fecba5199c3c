//! The session of a run.

use flopwatch_api::overhead::{OverheadAction, OverheadSpec};
use flopwatch_api::schedule::{
    HARDWARE_ANNOTATION, IMAGE_DIGEST_ANNOTATION, PROBABILITY_ANNOTATION, ProfilingSchedule, SCHEDULE_LABEL,
    SLOT_ANNOTATION, TARGET_UID_ANNOTATION,
};
use flopwatch_api::session::{ProfilingSession, ProfilingSessionSpec, StartMode, TargetSpec, TransformSpec};
use flopwatch_schedule::{Class, Run};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource as _, ResourceExt as _};

/// How long the target is measured once the profiler is gone: nobody waits for these captures, and a change of load is not to be held
/// against a class of pods.
const AFTER_SECONDS: i32 = 10;

/// Longest that a session may wait for its turn, as its schema has it.
const LONGEST_WAIT: i64 = 86_400;

/// The session of a run on a pod of that class.
pub(super) fn session(schedule: &ProfilingSchedule, run: &Run, class: &Class, now: Timestamp) -> ProfilingSession {
    let spec = &schedule.spec;
    let wanted = &spec.session;
    // A window that opens later than that would be one of another time.
    let patience = run.deadline.duration_since(now).as_secs().clamp(1, LONGEST_WAIT);
    let mut session = ProfilingSession::new(
        &run.session_name,
        ProfilingSessionSpec {
            target: TargetSpec {
                pod_name: Some(run.pod_name.clone()),
                max_pods: 1,
                ..TargetSpec::default()
            },
            profiler: wanted.profiler.clone(),
            start: StartMode::Now,
            duration_seconds: wanted.duration_seconds,
            require: wanted.require.clone(),
            start_deadline_seconds: i32::try_from(patience).unwrap_or(i32::MAX),
            metrics: wanted.metrics.clone(),
            overhead: OverheadSpec {
                during_basis_points: spec.budget.during_basis_points,
                action: OverheadAction::Stop,
                after_seconds: AFTER_SECONDS,
                signal: spec.budget.signal.clone(),
            },
            transform: TransformSpec::default(),
            outputs: wanted.outputs.clone(),
            retention: wanted.retention.clone(),
            stop: None,
        },
    );
    let labels = [
        (SCHEDULE_LABEL, schedule.name_any()),
        ("app.kubernetes.io/managed-by", "flopwatch".to_owned()),
    ];
    let annotations = [
        (SLOT_ANNOTATION, run.slot.to_string()),
        (TARGET_UID_ANNOTATION, run.pod_uid.clone()),
        (PROBABILITY_ANNOTATION, run.probability_per_billion.to_string()),
        (IMAGE_DIGEST_ANNOTATION, class.image_digest.clone()),
        (HARDWARE_ANNOTATION, class.hardware.clone()),
    ];
    session.metadata = ObjectMeta {
        namespace: schedule.namespace(),
        labels: Some(labels.map(|(key, value)| (key.to_owned(), value)).into()),
        annotations: Some(annotations.map(|(key, value)| (key.to_owned(), value)).into()),
        owner_references: schedule.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..session.metadata
    };
    session
}
