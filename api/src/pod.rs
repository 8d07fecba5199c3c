//! What a pod's phase and annotations say of it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, Pod};

use crate::preparation::{
    LAUNCHER_INIT_CONTAINER, PREPARE_LABEL, PREPARED_ANNOTATION, PREPARED_FOR_ANNOTATION, PROFILER_VOLUME, PreparedFor,
    RECORDER_KERNELS_PERCENT_ANNOTATION, TOOLS_INIT_CONTAINER, TOOLS_VOLUME, UNPREPARED_ANNOTATION, split_names,
};

/// What the names of runtime classes say whose pods have a kernel of their own.
const SANDBOXES: [&str; 3] = ["gvisor", "kata", "runsc"];

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

/// The runtime class of a pod whose programs run behind a kernel of their own, as gVisor's and
/// Kata's do, by its name. No agent sees such programs.
pub fn sandbox(pod: &Pod) -> Option<&str> {
    let class = pod.spec.as_ref()?.runtime_class_name.as_deref()?;
    let name = class.to_lowercase();
    SANDBOXES.iter().any(|sandbox| name.contains(sandbox)).then_some(class)
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

/// Whether admission prepared any container of the pod.
pub fn was_prepared(pod: &Pod) -> bool {
    prepared_for_anything(pod).next().is_some()
}

/// What the pod asks to be prepared for; None where it does not ask, or names what there is not.
pub fn asked_for(pod: &Pod) -> Option<PreparedFor> {
    pod.metadata.labels.as_ref()?.get(PREPARE_LABEL)?.parse().ok()
}

/// What admission prepared that container for; empty where it did nothing. A word of a later version counts as nothing.
pub fn prepared_for(pod: &Pod, container: &str) -> PreparedFor {
    let of_it = prepared_lines(pod).find(|(name, _)| *name == container);
    of_it.map(|(_, words)| PreparedFor::known(words)).unwrap_or_default()
}

/// How much of the time kernels of the pod's containers are recorded that ask for it, in percent; None where the pod says
/// no such share.
pub fn kernels_percent(pod: &Pod) -> Option<u32> {
    match annotation(pod, RECORDER_KERNELS_PERCENT_ANNOTATION) {
        None => Some(100),
        Some(text) => text.trim().parse().ok().filter(|percent| (1..=100).contains(percent)),
    }
}

/// Names of the containers that admission prepared for anything.
pub fn prepared_for_anything(pod: &Pod) -> impl Iterator<Item = &str> {
    prepared_lines(pod).map(|(name, _)| name)
}

/// The containers that admission prepared, each with the words of what for.
fn prepared_lines(pod: &Pod) -> impl Iterator<Item = (&str, &str)> {
    let lines = annotation(pod, PREPARED_FOR_ANNOTATION).unwrap_or_default().lines();
    lines.filter_map(|line| line.split_once(": "))
}

/// Names of the containers whose command the launcher starts.
pub fn prepared_containers(pod: &Pod) -> impl Iterator<Item = &str> {
    split_names(annotation(pod, PREPARED_ANNOTATION).unwrap_or_default())
}

/// Whether the launcher starts that container's command.
pub fn is_prepared(pod: &Pod, container: &str) -> bool {
    prepared_containers(pod).any(|name| name == container)
}

/// Whether admission put the launcher into the pod: by an init container, or as a volume of its image.
pub fn has_launcher(pod: &Pod) -> bool {
    let Some(spec) = pod.spec.as_ref() else {
        return false;
    };
    let mut init = spec.init_containers.iter().flatten();
    init.any(|container| container.name == LAUNCHER_INIT_CONTAINER) || mounts_image(pod, TOOLS_VOLUME)
}

/// Whether admission put a profiler's tools into the pod: by an init container, or as a volume of their image.
pub fn has_tools(pod: &Pod) -> bool {
    let Some(spec) = pod.spec.as_ref() else {
        return false;
    };
    let mut init = spec.init_containers.iter().flatten();
    has_launcher(pod)
        && (init.any(|container| container.name == TOOLS_INIT_CONTAINER) || mounts_image(pod, PROFILER_VOLUME))
}

fn mounts_image(pod: &Pod, name: &str) -> bool {
    let mut volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.any(|volume| volume.name == name && volume.image.is_some())
}

/// Containers that run as long as the pod: the ordinary ones, and init containers that are restarted always.
pub fn profilable(pod: &Pod) -> impl Iterator<Item = &Container> {
    let spec = pod.spec.as_ref();
    let sidecars = spec
        .and_then(|spec| spec.init_containers.as_deref())
        .unwrap_or_default();
    let containers = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let always = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    containers.iter().chain(sidecars.iter().filter(always))
}

/// Whether a container asks for an `nvidia.com/*` resource or a resource claim.
pub fn asks_for_gpu(container: &Container) -> bool {
    container.resources.as_ref().is_some_and(|resources| {
        let named = [resources.limits.as_ref(), resources.requests.as_ref()];
        named
            .into_iter()
            .flatten()
            .flat_map(BTreeMap::keys)
            .any(|name| name.starts_with("nvidia.com/"))
            || resources.claims.as_ref().is_some_and(|claims| !claims.is_empty())
    })
}

/// Names of the containers that a session takes which names none: those that ask for a GPU, else those that were prepared.
pub fn default_containers(pod: &Pod) -> Vec<&str> {
    let asking = profilable(pod).filter(|container| asks_for_gpu(container));
    let asking: Vec<&str> = asking.map(|container| container.name.as_str()).collect();
    if !asking.is_empty() {
        return asking;
    }
    let existing: BTreeSet<&str> = profilable(pod).map(|container| container.name.as_str()).collect();
    prepared_for_anything(pod)
        .filter(|name| existing.contains(name))
        .collect()
}

/// What admission wrote about containers that it did not prepare, `name: why` on a line each; None where there are none.
pub fn unprepared(pod: &Pod) -> Option<&str> {
    annotation(pod, UNPREPARED_ANNOTATION)
}

/// The digest in what the kubelet calls an image, such as `registry/llm@sha256:...`; empty where there is none.
pub fn image_digest(image_id: &str) -> &str {
    let digest = image_id.rsplit_once('@').map_or(image_id, |(_, digest)| digest);
    // An image that was never in a registry is `sha256:...` alone, with the runtime before it on
    // old nodes.
    let digest = digest.rsplit_once("://").map_or(digest, |(_, digest)| digest);
    if digest.starts_with("sha256:") || digest.starts_with("sha512:") {
        digest
    } else {
        ""
    }
}

/// Kind and name of the workload that owns a pod; None where nothing does. A Deployment is known by its ReplicaSet, which has its name and the
/// hash of the pods' template.
pub fn workload(pod: &Pod) -> Option<(&str, &str)> {
    let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
    let owner = owners.iter().find(|owner| owner.controller == Some(true))?;
    let labels = pod.metadata.labels.as_ref();
    let hash = labels.and_then(|labels| labels.get("pod-template-hash"));
    let hash = hash.filter(|_| owner.kind == "ReplicaSet");
    let deployment = hash.and_then(|hash| owner.name.strip_suffix(hash)?.strip_suffix('-'));
    Some(match deployment {
        Some(deployment) => ("Deployment", deployment),
        None => (&owner.kind, &owner.name),
    })
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
    fn a_sandbox_is_told_by_the_name_of_its_runtime_class() {
        for (class, is_sandbox) in [
            ("gvisor", true),
            ("Kata-qemu", true),
            ("runsc", true),
            ("nvidia", false),
            ("", false),
        ] {
            let pod = json!({"spec": {"containers": [], "runtimeClassName": class}});
            let pod: Pod = serde_json::from_value(pod).unwrap();
            assert_eq!(sandbox(&pod), is_sandbox.then_some(class));
        }
        assert_eq!(sandbox(&Pod::default()), None);
    }

    #[test]
    fn what_a_container_was_prepared_for_is_read_of_its_own_line() {
        let pod = |annotations: serde_json::Value| -> Pod {
            serde_json::from_value(json!({"metadata": {"annotations": annotations}})).unwrap()
        };
        let both =
            pod(json!({PREPARED_ANNOTATION: "main", PREPARED_FOR_ANNOTATION: "main: nsys.kineto\nside: kineto.later"}));
        for (container, words) in [("main", "nsys.kineto"), ("side", "kineto"), ("mai", "")] {
            assert_eq!(prepared_for(&both, container).to_string(), words);
        }
        assert_eq!(prepared_for_anything(&both).collect::<Vec<_>>(), ["main", "side"]);
        let none = pod(json!({}));
        assert!(prepared_for(&none, "main").is_empty() && !was_prepared(&none));
    }

    #[test]
    fn kernels_are_recorded_for_the_share_of_the_time_that_a_pod_says() {
        let of = |text: &str| {
            let annotations = json!({RECORDER_KERNELS_PERCENT_ANNOTATION: text});
            let pod = json!({"metadata": {"annotations": annotations}});
            kernels_percent(&serde_json::from_value(pod).unwrap())
        };
        assert_eq!(["1", " 25 ", "100"].map(of), [Some(1), Some(25), Some(100)]);
        assert_eq!(["0", "101", "", "a", "-1"].map(of), [None; 5]);
        assert_eq!(kernels_percent(&Pod::default()), Some(100));
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

    #[test]
    fn digests_are_found_in_what_runtimes_call_images() {
        for (image, digest) in [
            ("registry:5000/team/llm@sha256:aa", "sha256:aa"),
            ("docker-pullable://llm@sha256:aa", "sha256:aa"),
            ("docker://sha256:aa", "sha256:aa"),
            ("sha256:aa", "sha256:aa"),
            ("llm:latest", ""),
            ("", ""),
        ] {
            assert_eq!(image_digest(image), digest, "{image}");
        }
    }

    #[test]
    fn a_pod_belongs_to_its_controller_and_that_of_a_replica_set_to_its_deployment() {
        let pod = |kind: &str, name: &str, controller: bool| -> Pod {
            let owner = json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": "u", "controller": controller});
            serde_json::from_value(
                json!({"metadata": {"labels": {"pod-template-hash": "7d4"}, "ownerReferences": [owner]}}),
            )
            .unwrap()
        };
        for (kind, name, expected) in [
            ("ReplicaSet", "llm-7d4", ("Deployment", "llm")),
            ("ReplicaSet", "llm-other", ("ReplicaSet", "llm-other")),
            ("Job", "train-7d4", ("Job", "train-7d4")),
        ] {
            assert_eq!(workload(&pod(kind, name, true)), Some(expected));
        }
        assert_eq!(workload(&pod("Job", "train", false)), None);
        assert_eq!(workload(&Pod::default()), None);
    }
}
