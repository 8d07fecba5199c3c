//! What a pod's phase and annotations say of it.

use k8s_openapi::api::core::v1::Pod;

use crate::preparation::{PREPARE_LABEL, PREPARED_ANNOTATION, UNPREPARED_ANNOTATION, split_names};

/// The pod's phase; `Unknown` where its status has none.
pub fn phase(pod: &Pod) -> &str {
    pod.status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
        .unwrap_or("Unknown")
}

/// Whether every container of the pod has ended for good.
pub fn has_ended(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether the pod runs and is not being deleted.
pub fn is_running(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none() && phase(pod) == "Running"
}

/// The value of an annotation.
pub fn annotation<'a>(pod: &'a Pod, name: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

/// Whether the pod asks to be prepared.
pub fn asks_for_preparation(pod: &Pod) -> bool {
    let labels = pod.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.contains_key(PREPARE_LABEL))
}

/// Names of the containers that admission prepared.
pub fn prepared_containers(pod: &Pod) -> impl Iterator<Item = &str> {
    split_names(annotation(pod, PREPARED_ANNOTATION).unwrap_or_default())
}

/// Whether admission prepared that container.
pub fn is_prepared(pod: &Pod, container: &str) -> bool {
    prepared_containers(pod).any(|name| name == container)
}

/// What admission wrote about containers that it did not prepare, `name: why` on a line each; None where there are none.
pub fn unprepared(pod: &Pod) -> Option<&str> {
    annotation(pod, UNPREPARED_ANNOTATION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_annotation_names_the_containers_that_were_prepared() {
        let pod = |annotations: serde_json::Value| -> Pod {
            serde_json::from_value(json!({"metadata": {"annotations": annotations}})).unwrap()
        };
        let prepared = pod(json!({PREPARED_ANNOTATION: "main, side"}));
        assert!(is_prepared(&prepared, "side") && !is_prepared(&prepared, "mai"));
        for none in [json!({}), json!({PREPARED_ANNOTATION: ""})] {
            assert_eq!(prepared_containers(&pod(none)).count(), 0);
        }
    }

    #[test]
    fn a_pod_that_is_being_deleted_does_not_run_and_has_not_ended() {
        let pod = |phase: &str, deleted: Option<&str>| -> Pod {
            serde_json::from_value(json!({"metadata": {"deletionTimestamp": deleted}, "status": {"phase": phase}}))
                .unwrap()
        };
        let now = Some("2026-01-01T00:00:00Z");
        let rows = [
            ("Running", None, true, false),
            ("Running", now, false, false),
            ("Pending", None, false, false),
            ("Succeeded", None, false, true),
            ("Failed", now, false, true),
        ];
        for (phase, deleted, running, ended) in rows {
            let pod = pod(phase, deleted);
            assert_eq!(
                (is_running(&pod), has_ended(&pod)),
                (running, ended),
                "{phase} {deleted:?}"
            );
        }
    }
}
