//! What a pod that asked to be prepared, and is not, is told in place of the usual remedy.

use flopwatch_api::capability::Capability;
use flopwatch_api::pod;
use flopwatch_api::preparation::{PREPARE_CONTAINERS_ANNOTATION, PreparationWord};
use flopwatch_api::reason::CaptureReason;
use k8s_openapi::api::core::v1::Pod;

/// Says of a pod that asked to be prepared why it is not: that it should ask is no remedy. What it
/// did not ask for, and what it was prepared for all the same, keeps its own remedy.
pub(super) fn explain(capabilities: &mut [Capability], pod: &Pod, container: &str) {
    if !pod::asks_for_preparation(pod) {
        return;
    }
    // A label that cannot be read asked for something, and admission wrote down what is wrong with
    // it.
    let asked = pod::asked_for(pod);
    let prepared = pod::prepared_for(pod, container);
    let is_missing = |capability: &Capability| {
        PreparationWord::of(capability.profiler)
            .is_some_and(|word| asked.as_ref().is_none_or(|asked| asked.contains(word)) && !prepared.contains(word))
    };
    let refused = pod::unprepared(pod).unwrap_or_default();
    let why = refused
        .lines()
        .find_map(|line| line.strip_prefix(container)?.strip_prefix(": "));
    let remedy = match why {
        Some(why) => format!("The pod asks to be prepared, and this container cannot be: {why}"),
        None if refused.is_empty() => {
            "The pod asks to be prepared, and Flopwatch's admission did not see it when it was created. Create it anew."
                .to_owned()
        }
        None => format!(
            "The pod's preparation chose other containers: name {container} in the annotation {PREPARE_CONTAINERS_ANNOTATION} and create the pod anew."
        ),
    };
    let unprepared = |one: &&mut Capability| one.reason == CaptureReason::NotPrepared.as_str() && is_missing(one);
    for capability in capabilities.iter_mut().filter(unprepared) {
        capability.remedy.clone_from(&remedy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profilers::Registry;
    use crate::profilers::facts::Facts;
    use flopwatch_api::preparation::{PREPARE_LABEL, PREPARED_FOR_ANNOTATION, UNPREPARED_ANNOTATION};

    #[test]
    fn a_pod_that_asked_to_be_prepared_is_not_told_to_ask() {
        let closed = Facts {
            nvml: true,
            ..Facts::default()
        };
        let remedy = |labels: serde_json::Value, annotations: serde_json::Value| {
            let pod: Pod = serde_json::from_value(serde_json::json!({
                "metadata": {"name": "p", "labels": labels, "annotations": annotations}
            }))
            .unwrap();
            let mut capabilities = Registry::default().capabilities(&closed);
            explain(&mut capabilities, &pod, "main");
            capabilities[0].remedy.clone()
        };
        let asked = || serde_json::json!({PREPARE_LABEL: "nsys"});
        let rows = [
            (serde_json::json!({}), serde_json::json!({}), "Label the pod"),
            (
                serde_json::json!({PREPARE_LABEL: "kineto"}),
                serde_json::json!({PREPARED_FOR_ANNOTATION: "main: kineto"}),
                "Label the pod",
            ),
            (
                serde_json::json!({PREPARE_LABEL: "nsys,kineto"}),
                serde_json::json!({UNPREPARED_ANNOTATION: "main: label flopwatch.dev/prepare names \"nsys,kineto\""}),
                "cannot be: label flopwatch.dev/prepare names",
            ),
            (asked(), serde_json::json!({}), "admission did not see it"),
            (
                asked(),
                serde_json::json!({UNPREPARED_ANNOTATION: "side: windows\nmain: the container has no command"}),
                "cannot be: the container has no command",
            ),
            (
                asked(),
                serde_json::json!({UNPREPARED_ANNOTATION: "side: windows"}),
                "flopwatch.dev/prepare-containers",
            ),
        ];
        for (labels, annotations, expected) in rows {
            let text = remedy(labels, annotations);
            assert!(text.contains(expected), "{text}");
        }
    }
}
