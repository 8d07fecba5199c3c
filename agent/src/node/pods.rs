//! The pods of this node: a watch that keeps only what the agent reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flopwatch_api::capture::PodReference;
use flopwatch_api::pod;
use flopwatch_pipeline::failure::Failure;
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodSpec, PodStatus};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client, ResourceExt};

use crate::node::watched::from_cache;
use flopwatch_api::reason::CaptureReason;

/// Pods of one node, kept up to date by the stream that [`watch`] returns.
pub type Pods = Store<Pod>;

/// Starts watching. The stream must be polled for the store to be filled.
pub fn watch(client: Client, node: &str) -> (Pods, impl Stream<Item = Result<(), watcher::Error>> + Send + use<>) {
    let (store, writer) = reflector::store();
    let config = from_cache().fields(&format!("spec.nodeName={node}"));
    let events = watcher(Api::<Pod>::all(client), config).modify(prune).default_backoff();
    let stream = reflector(writer, events).map(|event| event.map(|_| ()));
    (store, stream)
}

/// Drops what the agent never reads: environments, volumes and probes do not belong in its memory.
fn prune(pod: &mut Pod) {
    pod.metadata.managed_fields = None;
    if let Some(spec) = pod.spec.take() {
        let names = spec.containers.into_iter().map(|container| Container {
            name: container.name,
            image: container.image,
            ..Container::default()
        });
        pod.spec = Some(PodSpec {
            containers: names.collect(),
            node_name: spec.node_name,
            runtime_class_name: spec.runtime_class_name,
            ..PodSpec::default()
        });
    }
    if let Some(status) = pod.status.take() {
        pod.status = Some(PodStatus {
            phase: status.phase,
            container_statuses: status.container_statuses,
            ..PodStatus::default()
        });
    }
}

/// The pod of a reference: same name, same UID.
pub fn find(pods: &Pods, namespace: &str, reference: &PodReference) -> Option<Arc<Pod>> {
    let pod = pods.get(&ObjectRef::new(&reference.name).within(namespace))?;
    (pod.uid().as_deref() == Some(reference.uid.as_str())).then_some(pod)
}

/// The pod of that UID.
pub fn by_uid(pods: &Pods, uid: &str) -> Option<Arc<Pod>> {
    pods.find(|pod| pod.uid().as_deref() == Some(uid))
}

/// The runtime's ID of a running container, without the runtime's name before it.
pub fn running_container_id(pod: &Pod, container: &str) -> Option<String> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let status = statuses.iter().find(|status| status.name == container)?;
    running_id(status).map(str::to_owned)
}

/// The IDs of all containers of pods that run on the node.
pub fn running_container_ids(pods: &Pods) -> BTreeSet<String> {
    let pods = pods.state();
    let statuses = pods
        .iter()
        .filter_map(|pod| pod.status.as_ref()?.container_statuses.as_ref())
        .flatten();
    statuses.filter_map(running_id).map(str::to_owned).collect()
}

/// The IDs of all containers that run on the node whose kernels are to be recorded all the time,
/// each with the share of the time in percent.
pub fn recording_kernels(pods: &Pods) -> BTreeMap<String, u32> {
    let mut recording = BTreeMap::new();
    for pod in pods.state() {
        let Some(percent) = pod::kernels_percent(&pod) else {
            continue;
        };
        let statuses = pod.status.iter().flat_map(|status| &status.container_statuses);
        let asking = statuses
            .flatten()
            .filter(|status| pod::prepared_for(&pod, &status.name).records_kernels());
        recording.extend(asking.filter_map(running_id).map(|id| (id.to_owned(), percent)));
    }
    recording
}

/// The runtime's ID of a container that runs, without the runtime's name before it.
fn running_id(status: &ContainerStatus) -> Option<&str> {
    status.state.as_ref()?.running.as_ref()?;
    let id = status.container_id.as_deref()?;
    Some(id.split_once("://").map_or(id, |(_, id)| id))
}

/// Name of the container that has this ID.
pub fn container_of_id(pod: &Pod, container_id: &str) -> Option<String> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let found = statuses.iter().find(|status| {
        status
            .container_id
            .as_deref()
            .is_some_and(|id| id.split_once("://").map_or(id, |(_, id)| id) == container_id)
    })?;
    Some(found.name.clone())
}

/// The running container that a capture is about: its pod, and the container's ID.
pub fn target(
    pods: &Pods,
    namespace: &str,
    reference: &PodReference,
    container: &str,
) -> Result<(Arc<Pod>, String), Failure> {
    let not_running = |message: String| Failure::new(CaptureReason::TargetNotRunning, message);
    let pod = find(pods, namespace, reference).ok_or_else(|| {
        not_running(format!(
            "pod {} with UID {} is not on this node; ask for one that runs",
            reference.name, reference.uid
        ))
    })?;
    let id = running_container_id(&pod, container).ok_or_else(|| {
        not_running(format!(
            "container {container} of pod {} does not run; ask for one that runs",
            reference.name
        ))
    })?;
    Ok((pod, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Pod {
        serde_json::from_value(serde_json::json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": "u", "annotations": {"a": "1"}, "managedFields": [{"manager": "x"}]},
            "spec": {"nodeName": "n", "runtimeClassName": "nvidia", "volumes": [{"name": "v"}],
                     "containers": [{"name": "main", "env": [{"name": "TOKEN", "value": "secret"}]}, {"name": "side"}]},
            "status": {"phase": "Running", "containerStatuses": [
                {"name": "main", "image": "", "imageID": "", "ready": true, "restartCount": 0, "containerID": "containerd://abc", "state": {"running": {}}},
                {"name": "side", "image": "", "imageID": "", "ready": false, "restartCount": 1, "containerID": "containerd://def", "state": {"terminated": {"exitCode": 1}}},
            ]},
        }))
        .unwrap()
    }

    #[test]
    fn a_stored_pod_holds_no_environment() {
        let mut pod = pod();
        prune(&mut pod);
        let text = serde_json::to_string(&pod).unwrap();
        assert!(
            !text.contains("secret") && !text.contains("volumes") && !text.contains("manager"),
            "{text}"
        );
        assert!(text.contains("containerd://abc") && text.contains("\"a\":\"1\""));
        assert!(text.contains("nvidia"), "whether a sandbox hides its programs");
    }

    #[test]
    fn only_a_running_container_has_an_id() {
        let pod = pod();
        assert_eq!(running_container_id(&pod, "main").as_deref(), Some("abc"));
        assert_eq!(running_container_id(&pod, "side"), None);
        assert_eq!(running_container_id(&pod, "none"), None);
        assert_eq!(container_of_id(&pod, "abc").as_deref(), Some("main"));
        assert_eq!(container_of_id(&pod, "abcd"), None);
        let (store, mut writer) = reflector::store();
        writer.apply_watcher_event(&watcher::Event::Apply(pod));
        assert_eq!(running_container_ids(&store), BTreeSet::from(["abc".to_owned()]));
    }

    #[test]
    fn a_pod_of_the_same_name_and_another_uid_is_another_pod() {
        let (store, mut writer) = reflector::store();
        writer.apply_watcher_event(&watcher::Event::Apply(pod()));
        let reference = |uid: &str| PodReference {
            name: "p".to_owned(),
            uid: uid.to_owned(),
        };
        assert!(find(&store, "ns", &reference("u")).is_some());
        assert!(find(&store, "ns", &reference("v")).is_none());
        assert!(find(&store, "other", &reference("u")).is_none());
        let failure = target(&store, "ns", &reference("u"), "side").unwrap_err();
        assert_eq!(failure.reason, CaptureReason::TargetNotRunning);
    }
}
