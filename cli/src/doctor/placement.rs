//! Where the pod stands: its phase, its node, and the agent there.

use flopwatch_api::preparation::{
    LAUNCHER_INIT_CONTAINER, PREPARE_LABEL, PROFILER_VOLUME, TOOLS_INIT_CONTAINER, TOOLS_VOLUME,
};
use k8s_openapi::api::core::v1::{ContainerStatus, Node, Pod};
use kube::ResourceExt as _;

use crate::doctor::installation::{is_component, see};
use crate::doctor::{Finding, Level, Lookup, World};
use crate::gateway::is_ready;

pub(super) fn examine(world: &World) -> Vec<Finding> {
    let mut findings = vec![phase(&world.pod)];
    findings.extend(held_up(&world.pod));
    let Some(node) = node_of(&world.pod) else {
        return findings;
    };
    match &world.node {
        Lookup::Found(object) => findings.extend(unready_node(object)),
        Lookup::Absent => {
            let what = format!("node {node} is not in the cluster any more");
            findings.push(Finding::new(Level::BlocksAll, what));
        }
        Lookup::Hidden => {
            let what = format!("whether node {node} is ready: you may not read nodes");
            findings.push(Finding::new(Level::Unchecked, what));
        }
    }
    if let Lookup::Found(pods) = &world.installation {
        findings.push(agent(pods, node, &world.flopwatch_namespace));
    }
    findings
}

/// Name of the node that the pod is on.
fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

fn phase(pod: &Pod) -> Finding {
    if pod.metadata.deletion_timestamp.is_some() {
        return Finding::new(Level::BlocksAll, "the pod is being deleted")
            .remedy("profile the pod that comes after it");
    }
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    match phase.unwrap_or("Unknown") {
        "Running" => {
            let node = node_of(pod).unwrap_or("no node");
            Finding::new(Level::Good, format!("the pod runs on {node}"))
        }
        "Pending" => Finding::new(Level::BlocksAll, "the pod does not run yet (phase Pending)")
            .remedy("a session waits for it, 300 s unless told otherwise; kubectl describe pod says what it waits for"),
        phase => Finding::new(Level::BlocksAll, format!("the pod does not run (phase {phase})"))
            .remedy("profile one that runs, or let the session bring a pod along (spec.target.podTemplate) or copy this one (spec.target.replicaOf)"),
    }
}

/// An init container of ours that keeps the pod from starting, or an image of ours that a container
/// waits for.
fn held_up(pod: &Pod) -> Option<Finding> {
    copied(pod).or_else(|| mounted(pod))
}

fn mounted(pod: &Pod) -> Option<Finding> {
    let statuses = pod.status.as_ref()?.container_statuses.as_deref()?;
    let volumes = pod.spec.as_ref()?.volumes.as_deref()?;
    let ours = volumes
        .iter()
        .filter(|volume| matches!(volume.name.as_str(), TOOLS_VOLUME | PROFILER_VOLUME));
    let images: Vec<&str> = ours
        .filter_map(|volume| volume.image.as_ref()?.reference.as_deref())
        .collect();
    let message = statuses.iter().find_map(|status| {
        stuck(status)?;
        let message = status.state.as_ref()?.waiting.as_ref()?.message.as_deref()?;
        let named = images.iter().any(|image| message.contains(image));
        (!images.is_empty() && (named || message.contains("failed to mount image volume"))).then_some(message)
    })?;
    let what = format!("an image that admission has mounted keeps the pod from starting: {message}");
    Some(Finding::new(Level::BlocksAll, what).remedy(format!(
        "let the pod's service account pull the image, set the chart's value admission.delivery to copy, or remove the label {PREPARE_LABEL}, and create the pod anew"
    )))
}

fn copied(pod: &Pod) -> Option<Finding> {
    let statuses = pod.status.as_ref()?.init_container_statuses.as_deref()?;
    [LAUNCHER_INIT_CONTAINER, TOOLS_INIT_CONTAINER]
        .into_iter()
        .find_map(|name| {
            let status = statuses.iter().find(|status| status.name == name)?;
            let reason = stuck(status)?;
            let image = &status.image;
            let what = format!("init container {name} (image {image}) keeps the pod from starting: {reason}");
            Some(Finding::new(Level::BlocksAll, what).remedy(format!(
            "let the pod's service account pull the image, or remove the label {PREPARE_LABEL}, and create the pod anew"
        )))
        })
}

fn stuck(status: &ContainerStatus) -> Option<String> {
    let state = status.state.as_ref()?;
    if let Some(ended) = &state.terminated {
        return (ended.exit_code != 0).then(|| format!("exit code {}", ended.exit_code));
    }
    let reason = state.waiting.as_ref()?.reason.as_deref()?;
    (!matches!(reason, "PodInitializing" | "ContainerCreating")).then(|| reason.to_owned())
}

fn unready_node(node: &Node) -> Option<Finding> {
    let name = node.name_any();
    let status = node.status.as_ref()?;
    let mut conditions = status.conditions.iter().flatten();
    let ready = conditions.find(|condition| condition.type_ == "Ready");
    if ready.is_none_or(|condition| condition.status != "True") {
        let remedy = format!("kubectl describe node {name}; captures of a lost node fail with NodeLost");
        return Some(Finding::new(Level::BlocksAll, format!("node {name} is not ready")).remedy(remedy));
    }
    let info = status.node_info.as_ref()?;
    let platform = format!("{}/{}", info.operating_system, info.architecture);
    if platform != "linux/amd64" {
        let what = format!("node {name} is {platform}; Flopwatch profiles on linux/amd64");
        return Some(Finding::new(Level::BlocksAll, what));
    }
    let mut resources = status.allocatable.iter().flatten();
    let offers = resources.any(|(resource, _)| resource.starts_with("nvidia.com/"));
    (!offers).then(|| {
        let what = format!("node {name} offers no nvidia.com resource: without an NVIDIA driver there are no metrics");
        Finding::new(Level::Note, what)
    })
}

fn agent(pods: &[Pod], node: &str, namespace: &str) -> Finding {
    let here = |pod: &&Pod| is_component(pod, "agent") && node_of(pod) == Some(node);
    let agents: Vec<&Pod> = pods.iter().filter(here).collect();
    if agents.iter().any(|pod| is_ready(pod)) {
        return Finding::new(Level::Good, format!("the agent of {node} runs"));
    }
    if agents.is_empty() {
        return Finding::new(Level::BlocksAll, format!("no agent runs on {node}"))
            .remedy("the chart's agent.nodeSelector, agent.tolerations or agent.affinity leave the node out");
    }
    Finding::new(Level::BlocksAll, format!("the agent of {node} is not ready")).remedy(see(namespace, "agent"))
}
