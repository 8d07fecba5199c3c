//! What the watches keep of an object: only what somebody reads, so that a cluster of 150,000 pods fits into memory.

use k8s_openapi::api::core::v1::{Container, Node, NodeStatus, Pod, PodSpec, PodStatus};
use kube::{Resource, ResourceExt as _};

/// Drops who manages which field.
pub(super) fn unmanaged<K: Resource>(mut object: K) -> K {
    object.managed_fields_mut().clear();
    object
}

/// Keeps identity, labels, our annotations, containers' names and resources, phase and conditions.
pub(super) fn pod(pod: Pod) -> Pod {
    let mut pod = unmanaged(pod);
    pod.annotations_mut().retain(|key, _| key.starts_with("flopwatch.dev/"));
    let container = |container: Container| Container {
        name: container.name,
        resources: container.resources,
        restart_policy: container.restart_policy,
        ..Container::default()
    };
    let spec = pod.spec.map(|spec| PodSpec {
        node_name: spec.node_name,
        containers: spec.containers.into_iter().map(container).collect(),
        init_containers: spec
            .init_containers
            .map(|containers| containers.into_iter().map(container).collect()),
        ..PodSpec::default()
    });
    let status = pod.status.map(|status| PodStatus {
        phase: status.phase,
        conditions: status.conditions.map(|conditions| {
            conditions
                .into_iter()
                .filter(|condition| condition.type_ == "Ready")
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

/// Keeps identity and the Ready condition.
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
