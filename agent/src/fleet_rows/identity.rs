//! Who a capture is, and how it ended: by what the API server and the node's pods say, never by
//! what a child says.

use flopwatch_api::capture::{Capture, CaptureStatus};
use flopwatch_api::pod::{image_digest, workload};
use flopwatch_api::reason::CaptureCondition;
use flopwatch_api::schedule::{IMAGE_DIGEST_ANNOTATION, PROBABILITY_ANNOTATION, SCHEDULE_LABEL, TRIGGER_ANNOTATION};
use flopwatch_fleet::{CERTAIN_PER_BILLION, CaptureRow, Trigger};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

/// Label of pods that says their workload's version.
const VERSION_LABEL: &str = "app.kubernetes.io/version";

/// What identifies a capture of `node` in `cluster`. Without its pod, image and workload are not
/// known.
pub fn identity(cluster: &str, node: &str, capture: &Capture, pod: Option<&Pod>) -> CaptureRow {
    let spec = &capture.spec;
    let annotation = |name: &str| capture.annotations().get(name).cloned();
    let (trigger, probability_per_billion) = drawn(capture);
    let mut row = CaptureRow {
        cluster: cluster.to_owned(),
        namespace: capture.namespace().unwrap_or_default(),
        schedule: capture.labels().get(SCHEDULE_LABEL).cloned(),
        session: spec.session_ref.name.clone(),
        session_id: spec.session_ref.id.clone(),
        capture: capture.name_any(),
        capture_uid: capture.uid().unwrap_or_default(),
        trigger: trigger.as_str().to_owned(),
        node: node.to_owned(),
        pod: spec.pod_ref.name.clone(),
        container: spec.container_name.clone(),
        image_digest: annotation(IMAGE_DIGEST_ANNOTATION).filter(|digest| !image_digest(digest).is_empty()),
        probability_per_billion,
        ..CaptureRow::default()
    };
    if let Some(pod) = pod {
        add_pod(&mut row, pod);
    }
    row
}

/// What made the capture's session, and how probable that was in billionths. Nobody drew what has
/// no probability that makes sense.
fn drawn(capture: &Capture) -> (Trigger, i64) {
    let annotations = capture.annotations();
    let probability = annotations.get(PROBABILITY_ANNOTATION);
    let probability = probability.and_then(|text| text.parse().ok());
    match probability.filter(|probability| (1..=CERTAIN_PER_BILLION).contains(probability)) {
        Some(probability) => (Trigger::Schedule, probability),
        None if annotations.contains_key(TRIGGER_ANNOTATION) => (Trigger::Alert, CERTAIN_PER_BILLION),
        None => (Trigger::Manual, CERTAIN_PER_BILLION),
    }
}

fn add_pod(row: &mut CaptureRow, pod: &Pod) {
    if let Some((kind, name)) = workload(pod) {
        (row.workload_kind, row.workload) = (Some(kind.to_owned()), Some(name.to_owned()));
    }
    row.version = pod
        .labels()
        .get(VERSION_LABEL)
        .filter(|version| !version.is_empty())
        .cloned();
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut image = containers.filter(|container| container.name == row.container);
    row.image = image.find_map(|container| container.image.clone()).unwrap_or_default();
    let statuses = pod
        .status
        .iter()
        .filter_map(|status| status.container_statuses.as_ref());
    let status = statuses.flatten().find(|status| status.name == row.container);
    let digest = status.map_or("", |status| image_digest(&status.image_id));
    if !digest.is_empty() {
        row.image_digest = Some(digest.to_owned());
    }
}

/// The row of a capture that ended with that status. `has_rows`: its rows are kept too. Without
/// them nothing of it is captured, as far as sums over the fleet go: a category without rows would
/// count as one in which nothing ran.
#[must_use]
pub fn concluded(mut row: CaptureRow, status: &CaptureStatus, has_rows: bool) -> CaptureRow {
    let verdict = status.condition(CaptureCondition::Succeeded);
    row.succeeded = status.has_succeeded();
    row.reason = verdict.map(|verdict| verdict.reason.clone());
    row.profiler = status.profiler.map(|profiler| profiler.as_str().to_owned());
    if !status.gpus.is_empty() {
        row.gpus = i64::try_from(status.gpus.len()).ok();
    }
    if let Some(overhead) = &status.overhead {
        row.overhead_verdict = Some(overhead.verdict.as_str().to_owned());
        row.overhead_slowdown_basis_points = overhead.slowdown_basis_points.map(i64::from);
        row.overhead_low_basis_points = overhead.low.map(i64::from);
        row.overhead_high_basis_points = overhead.high.map(i64::from);
    }
    if row.window_start == 0 {
        let ended = status.completion_time.as_ref().map(|ended| ended.0.as_nanosecond());
        row.window_start = ended.and_then(|ended| i64::try_from(ended).ok()).unwrap_or(0);
    }
    if !has_rows {
        row.categories.clear();
        row.gpu_busy_ns = None;
    }
    row
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn capture(annotations: &Value) -> Capture {
        serde_json::from_value(json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "Capture",
            "metadata": {
                "name": "s-1", "namespace": "team", "uid": "uid-1", "annotations": annotations,
                "labels": {"flopwatch.dev/schedule": "always"}
            },
            "spec": {
                "sessionRef": {"name": "s", "id": "0123abcd"}, "nodeName": "n", "podRef": {"name": "llm-7d4-x", "uid": "u"},
                "containerName": "main", "durationSeconds": 5, "startDeadlineSeconds": 60, "outputs": ["Timeline"]
            }
        }))
        .unwrap()
    }

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "metadata": {
                "name": "llm-7d4-x", "namespace": "team",
                "labels": {"pod-template-hash": "7d4", "app.kubernetes.io/version": "1.2"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "llm-7d4", "uid": "r", "controller": true}]
            },
            "spec": {"containers": [{"name": "side", "image": "s"}, {"name": "main", "image": "registry/llm:v1"}]},
            "status": {"containerStatuses": [
                {"name": "main", "image": "", "imageID": "registry/llm@sha256:aa", "ready": true, "restartCount": 0}
            ]}
        }))
        .unwrap()
    }

    #[test]
    fn a_capture_is_who_its_object_and_its_pod_say() {
        let row = identity("c", "n", &capture(&json!({})), Some(&pod()));
        let expected = CaptureRow {
            cluster: "c".to_owned(),
            namespace: "team".to_owned(),
            schedule: Some("always".to_owned()),
            session: "s".to_owned(),
            session_id: "0123abcd".to_owned(),
            capture: "s-1".to_owned(),
            capture_uid: "uid-1".to_owned(),
            trigger: "Manual".to_owned(),
            node: "n".to_owned(),
            pod: "llm-7d4-x".to_owned(),
            container: "main".to_owned(),
            workload_kind: Some("Deployment".to_owned()),
            workload: Some("llm".to_owned()),
            image: "registry/llm:v1".to_owned(),
            image_digest: Some("sha256:aa".to_owned()),
            version: Some("1.2".to_owned()),
            ..CaptureRow::default()
        };
        assert_eq!(row, expected);
        let gone = identity("c", "n", &capture(&json!({IMAGE_DIGEST_ANNOTATION: "sha256:bb"})), None);
        assert_eq!(
            (gone.image.as_str(), gone.image_digest.as_deref()),
            ("", Some("sha256:bb"))
        );
        let unknown = identity("c", "n", &capture(&json!({IMAGE_DIGEST_ANNOTATION: "unknown"})), None);
        assert_eq!((unknown.image_digest, unknown.workload), (None, None));
    }

    #[test]
    fn only_what_was_drawn_has_a_probability_below_one() {
        let certain = CERTAIN_PER_BILLION;
        for (annotations, trigger, probability) in [
            (json!({PROBABILITY_ANNOTATION: "111111"}), "Schedule", 111_111),
            (json!({TRIGGER_ANNOTATION: "slow/f00"}), "Alert", certain),
            (json!({PROBABILITY_ANNOTATION: "0"}), "Manual", certain),
            (
                json!({PROBABILITY_ANNOTATION: "1000000001", TRIGGER_ANNOTATION: "a/b"}),
                "Alert",
                certain,
            ),
            (json!({PROBABILITY_ANNOTATION: "often"}), "Manual", certain),
        ] {
            let row = identity("c", "n", &capture(&annotations), None);
            assert_eq!(
                (row.trigger.as_str(), row.probability_per_billion),
                (trigger, probability)
            );
        }
    }

    #[test]
    fn what_failed_or_has_no_rows_counts_as_not_captured() {
        let status = |succeeded: &str, reason: &str| -> CaptureStatus {
            serde_json::from_value(json!({
                "profiler": "Nsys", "completionTime": "2026-01-01T00:00:00Z", "gpus": [{"uuid": "GPU-1", "share": "Container"}],
                "conditions": [{
                    "type": "Succeeded", "status": succeeded, "reason": reason, "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"
                }]
            }))
            .unwrap()
        };
        let made = CaptureRow {
            window_start: 7,
            categories: vec!["cuda_kernel".to_owned()],
            gpu_busy_ns: Some(3),
            ..CaptureRow::default()
        };
        let good = concluded(made.clone(), &status("True", "Succeeded"), true);
        assert!(good.succeeded && good.window_start == 7 && good.categories.len() == 1 && good.gpus == Some(1));
        assert_eq!(good.profiler.as_deref(), Some("Nsys"));
        let bare = concluded(made, &status("True", "Succeeded"), false);
        assert!(bare.succeeded && bare.categories.is_empty() && bare.gpu_busy_ns.is_none());
        let failed = concluded(CaptureRow::default(), &status("False", "TargetNotRunning"), false);
        assert_eq!(failed.reason.as_deref(), Some("TargetNotRunning"));
        assert!(!failed.succeeded && failed.window_start == 1_767_225_600_000_000_000);
    }
}
