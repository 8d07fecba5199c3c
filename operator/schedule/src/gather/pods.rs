//! The pods that a schedule can profile.

use flopwatch_api::pod;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Node, Pod as RunningPod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use kube::core::{Selector, SelectorExt as _};

use crate::gather::Objects;
use crate::pod::{Class, Pod};
use crate::world::ScheduleError;

/// Labels of nodes that say what hardware they have, the first that is there: NVIDIA's feature
/// discovery, then the cloud's type of machine.
const HARDWARE_LABELS: [&str; 2] = ["nvidia.com/gpu.product", "node.kubernetes.io/instance-type"];
/// What stands for a digest or for hardware that nothing tells.
const UNKNOWN_PART: &str = "unknown";
/// Longest part of a class, in characters.
const MAX_PART_CHARS: usize = 128;

/// What was found.
pub(super) struct MatchingPods {
    pub(super) pods: Vec<Pod>,
    /// Pods that match and have no container to profile.
    pub(super) without_container: usize,
}

/// The running pods that the selector matches.
pub(super) fn matching(objects: &Objects<'_>) -> Result<MatchingPods, ScheduleError> {
    let schedule = objects.schedule;
    let selector: Selector = schedule
        .spec
        .pod_selector()
        .clone()
        .try_into()
        .map_err(|error: kube::core::ParseExpressionError| ScheduleError::Selector(error.to_string()))?;
    let mut found = MatchingPods {
        pods: Vec::new(),
        without_container: 0,
    };
    for pod in objects.pods {
        let own = pod.metadata.namespace == schedule.metadata.namespace;
        if !own || pod::phase(pod) != "Running" || !selector.matches(pod.labels()) {
            continue;
        }
        match read(pod, objects.hardware) {
            Some(pod) => found.pods.push(pod),
            None => found.without_container += 1,
        }
    }
    Ok(found)
}

/// A running pod; None where a session would find no container in it.
fn read(pod: &RunningPod, hardware: &dyn Fn(&str) -> Option<String>) -> Option<Pod> {
    let node = pod.spec.as_ref()?.node_name.clone()?;
    let containers = pod::default_containers(pod);
    let first = containers.first()?;
    let status = pod.status.as_ref();
    let statuses = status
        .and_then(|status| status.container_statuses.as_deref())
        .unwrap_or_default();
    let statuses = || {
        statuses
            .iter()
            .filter(|status| containers.contains(&status.name.as_str()))
    };
    let image = statuses().find(|status| status.name == *first);
    let digest = image.map_or("", |status| pod::image_digest(&status.image_id));
    let began = status.and_then(|status| status.start_time.as_ref()).map(|Time(at)| *at);
    let began = began.or_else(|| pod.creation_timestamp().map(|Time(at)| at))?;
    // A container that restarted says nothing of when the pod began to run.
    let steady = statuses().filter(|status| status.restart_count == 0);
    Some(Pod {
        name: pod.name_any(),
        uid: pod.uid()?,
        started: steady.filter_map(started).chain([began]).max()?,
        restarted: statuses()
            .filter(|status| status.restart_count > 0)
            .filter_map(restarted)
            .max(),
        terminating: pod.metadata.deletion_timestamp.is_some(),
        workload: pod::workload(pod).map_or_else(|| pod.name_any(), |(kind, name)| format!("{kind}/{name}")),
        class: Class {
            image_digest: known(digest),
            hardware: known(&hardware(&node).unwrap_or_default()),
        },
        node,
    })
}

/// When the container that runs began to.
fn started(status: &ContainerStatus) -> Option<Timestamp> {
    let running = status.state.as_ref()?.running.as_ref()?;
    running.started_at.as_ref().map(|Time(at)| *at)
}

/// When a container that restarted last began or ended.
fn restarted(status: &ContainerStatus) -> Option<Timestamp> {
    let ended = status.last_state.as_ref().and_then(|state| state.terminated.as_ref());
    let ended = ended.and_then(|ended| ended.finished_at.as_ref()).map(|Time(at)| *at);
    started(status).max(ended)
}

/// What hardware a node has, as its labels say: the model of its GPUs, else the type of the
/// machine.
pub fn hardware(node: &Node) -> Option<String> {
    let labels = node.labels();
    HARDWARE_LABELS.iter().find_map(|label| labels.get(*label)).cloned()
}

fn known(part: &str) -> String {
    let part = if part.is_empty() { UNKNOWN_PART } else { part };
    part.chars().take(MAX_PART_CHARS).collect()
}
