//! Pods that asked to be prepared and were created as they are: admission was away, or refused.

use flopwatch_api::pod;
use flopwatch_api::preparation::PREPARE_LABEL;
use k8s_openapi::api::core::v1::Pod;

/// Closed set of reasons for metrics and, by its words, for Events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnpreparedReason {
    /// Admission did not see the pod: it was away, or does not look at the namespace.
    AdmissionMissed,
    /// Admission saw the pod and wrote down why a container cannot be prepared.
    Refused,
}

impl UnpreparedReason {
    /// Every reason, in the order of declaration.
    pub const ALL: [Self; 2] = [Self::AdmissionMissed, Self::Refused];

    /// Reason of the Event.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AdmissionMissed => "AdmissionMissed",
            Self::Refused => "PreparationRefused",
        }
    }

    /// Value of the metrics label `reason`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::AdmissionMissed => "admission_missed",
            Self::Refused => "refused",
        }
    }
}

/// Why a pod that asked for it is not prepared, or not in every container; None for one that is or
/// did not ask, and for one that has ended.
pub fn unprepared(pod: &Pod) -> Option<UnpreparedReason> {
    if !pod::asks_for_preparation(pod) || pod.metadata.deletion_timestamp.is_some() || pod::has_ended(pod) {
        return None;
    }
    if pod::unprepared(pod).is_some() {
        return Some(UnpreparedReason::Refused);
    }
    (!pod::was_prepared(pod)).then_some(UnpreparedReason::AdmissionMissed)
}

/// What happened and what to do about it.
pub fn note(pod: &Pod, reason: UnpreparedReason) -> String {
    match (reason, pod::unprepared(pod)) {
        (UnpreparedReason::Refused, Some(why)) => {
            let why: String = why.replace('\n', "; ").chars().take(700).collect();
            format!("not prepared for profiling: {why}")
        }
        _ => format!(
            "the pod asks to be prepared for profiling (label {PREPARE_LABEL}), and Flopwatch's admission did not see it: it was away, or does not look at this namespace. Create the pod anew"
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use flopwatch_api::preparation::{PREPARED_ANNOTATION, PREPARED_FOR_ANNOTATION, UNPREPARED_ANNOTATION};

    #[test]
    fn a_pod_that_asked_and_was_not_seen_is_told_from_one_that_was_refused() {
        let pod = |labels: Value, annotations: Value, phase: &str| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"name": "p", "labels": labels, "annotations": annotations}, "status": {"phase": phase}
            }))
            .unwrap()
        };
        let asked = || json!({PREPARE_LABEL: "nsys"});
        let refused = json!({UNPREPARED_ANNOTATION: "a: no command\nb: windows", PREPARED_ANNOTATION: "c"});
        let rows = [
            (pod(json!({}), json!({}), "Running"), None),
            (
                pod(asked(), json!({}), "Running"),
                Some(UnpreparedReason::AdmissionMissed),
            ),
            (pod(asked(), json!({}), "Succeeded"), None),
            (
                pod(asked(), json!({PREPARED_FOR_ANNOTATION: "c: kineto"}), "Running"),
                None,
            ),
            (
                pod(asked(), refused.clone(), "Pending"),
                Some(UnpreparedReason::Refused),
            ),
        ];
        for (pod, expected) in rows {
            assert_eq!(unprepared(&pod), expected, "{pod:?}");
        }
        let note = note(&pod(asked(), refused, "Running"), UnpreparedReason::Refused);
        assert_eq!(note, "not prepared for profiling: a: no command; b: windows");
    }
}
