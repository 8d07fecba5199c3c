//! What the watches keep of an object: only what somebody reads, so that a cluster of 150,000 pods
//! fits into memory.

use flopwatch_api::pod::image_digest;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus, Node, NodeStatus, Pod,
    PodSpec, PodStatus, Volume,
};
use kube::{Resource, ResourceExt as _};

use crate::preparation_failure::InjectedComponent;

/// Longest of what the kubelet says of a container, in characters: the image that it names comes
/// first.
const MAX_MESSAGE: usize = 512;

/// Drops who manages which field.
pub(super) fn unmanaged<K: Resource>(mut object: K) -> K {
    object.managed_fields_mut().clear();
    object
}

/// Keeps identity, labels, our annotations, containers' names and resources, phase, readiness, when
/// it started and why there is no node for it; of containers the digest of the image and when they
/// started and ended; and of what admission adds the image and what holds it up: an init container,
/// or a container that waits for a volume of ours.
pub(super) fn pod(pod: Pod) -> Pod {
    let mut pod = unmanaged(pod);
    pod.annotations_mut().retain(|key, _| key.starts_with("flopwatch.dev/"));
    let container = |container: Container| Container {
        image: container
            .image
            .filter(|_| InjectedComponent::named(&container.name).is_some()),
        name: container.name,
        resources: container.resources,
        restart_policy: container.restart_policy,
        ..Container::default()
    };
    let volumes = pod.spec.iter_mut().filter_map(|spec| spec.volumes.take()).flatten();
    let images = |volume: &Volume| volume.image.is_some() && InjectedComponent::is_volume(&volume.name);
    let volumes: Vec<Volume> = volumes.filter(images).collect();
    let mounts = !volumes.is_empty();
    let spec = pod.spec.map(|spec| PodSpec {
        volumes: mounts.then_some(volumes),
        node_name: spec.node_name,
        containers: spec.containers.into_iter().map(container).collect(),
        init_containers: spec
            .init_containers
            .map(|containers| containers.into_iter().map(container).collect()),
        ..PodSpec::default()
    });
    let status = pod.status.map(|status| PodStatus {
        phase: status.phase,
        reason: status.reason,
        start_time: status.start_time,
        container_statuses: status.container_statuses.map(|statuses| {
            statuses
                .into_iter()
                .map(|status| container_status(status, mounts))
                .collect()
        }),
        init_container_statuses: status.init_container_statuses.map(|statuses| {
            statuses
                .into_iter()
                .filter(|status| InjectedComponent::named(&status.name).is_some())
                .map(init_container)
                .collect()
        }),
        conditions: status.conditions.map(|conditions| {
            conditions
                .into_iter()
                .filter(|condition| {
                    condition.type_ == "Ready" || (condition.type_ == "PodScheduled" && condition.status == "False")
                })
                .collect()
        }),
        ..PodStatus::default()
    });
    Pod {
        metadata: pod.metadata,
        spec,
        status,
    }
}

fn container_status(status: ContainerStatus, mounts: bool) -> ContainerStatus {
    let waits = |waiting: ContainerStateWaiting| ContainerStateWaiting {
        reason: waiting.reason,
        message: waiting.message.map(|text| text.chars().take(MAX_MESSAGE).collect()),
    };
    let started = |state: ContainerState| ContainerState {
        running: state.running,
        waiting: state.waiting.filter(|_| mounts).map(waits),
        ..ContainerState::default()
    };
    let ended = |state: ContainerState| ContainerState {
        terminated: state.terminated.map(|terminated| ContainerStateTerminated {
            finished_at: terminated.finished_at,
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    };
    ContainerStatus {
        name: status.name,
        image_id: image_digest(&status.image_id).to_owned(),
        restart_count: status.restart_count,
        state: status.state.map(started),
        last_state: status.last_state.map(ended),
        ..ContainerStatus::default()
    }
}

fn init_container(status: ContainerStatus) -> ContainerStatus {
    ContainerStatus {
        name: status.name,
        state: status.state.map(state),
        last_state: status.last_state.map(state),
        ..ContainerStatus::default()
    }
}

/// Why it waits; with what and when it ended.
fn state(state: ContainerState) -> ContainerState {
    ContainerState {
        running: None,
        waiting: state.waiting.map(|waiting| ContainerStateWaiting {
            reason: waiting.reason,
            message: None,
        }),
        terminated: state.terminated.map(|terminated| ContainerStateTerminated {
            exit_code: terminated.exit_code,
            finished_at: terminated.finished_at,
            ..ContainerStateTerminated::default()
        }),
    }
}

/// Keeps identity, labels and the Ready condition.
pub(super) fn node(node: Node) -> Node {
    let mut node = unmanaged(node);
    node.annotations_mut().clear();
    let status = node.status.map(|status| NodeStatus {
        conditions: status.conditions.map(|conditions| {
            conditions
                .into_iter()
                .filter(|condition| condition.type_ == "Ready")
                .collect()
        }),
        ..NodeStatus::default()
    });
    Node {
        metadata: node.metadata,
        spec: None,
        status,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::preparation_failure::preparation_failure;
    use crate::preparation_failure::tests::{exited, mounting, parsed, prepared, waiting};

    #[test]
    fn a_pruned_pod_is_in_the_same_trouble_as_the_whole_one_and_no_larger_than_needed() {
        let crashing = json!({
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 3}}
        });
        for tools in [exited(0), exited(1), waiting("ErrImagePull"), crashing] {
            for phase in ["Pending", "Failed"] {
                for reason in [None, Some("Evicted")] {
                    let mut whole = prepared("p", &exited(0), &tools);
                    whole["status"]["phase"] = json!(phase);
                    whole["status"]["reason"] = json!(reason);
                    let whole = parsed(&whole);
                    assert_eq!(
                        preparation_failure(&pod(whole.clone())),
                        preparation_failure(&whole),
                        "{tools} {phase} {reason:?}"
                    );
                }
            }
        }
        let whole = parsed(&mounting(
            "ErrImagePull",
            "failed to pull and unpack image \"registry/nsys:1\"",
        ));
        assert!(preparation_failure(&whole).is_some());
        assert_eq!(preparation_failure(&pod(whole.clone())), preparation_failure(&whole));
        let kept = serde_json::to_string(&pod(parsed(&prepared("p", &exited(0), &waiting("ErrImagePull"))))).unwrap();
        for dropped in ["registry/own", "as the kubelet says", "resolved"] {
            assert!(!kept.contains(dropped), "{kept}");
        }
    }
}
