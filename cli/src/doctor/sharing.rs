//! How the pod's node and the pod's last captures say that its GPUs are had: whole, as MIG devices,
//! or with others.

use flopwatch_api::capture::{Capture, GpuShare};
use k8s_openapi::api::core::v1::{Container, Node};
use kube::ResourceExt as _;

use crate::doctor::{Finding, Level, Lookup, World, last_probed};

/// Labels that NVIDIA's GPU feature discovery puts on nodes.
const STRATEGY: &str = "nvidia.com/gpu.sharing-strategy";
const REPLICAS: &str = "nvidia.com/gpu.replicas";
/// Beginning of the names of resources that are MIG devices.
const MIG: &str = "nvidia.com/mig-";

pub(super) fn examine(world: &World, containers: &[&Container]) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Lookup::Found(node) = &world.node {
        findings.extend(strategy(node));
    }
    for container in containers {
        findings.extend(mig(container));
        findings.extend(last_probed(&world.captures, &container.name).and_then(shared));
    }
    findings
}

/// What the node's labels say.
fn strategy(node: &Node) -> Option<Finding> {
    let (name, labels) = (node.name_any(), node.labels());
    let replicas = labels.get(REPLICAS).map_or("several", String::as_str);
    let (what, remedy) = match labels.get(STRATEGY)?.as_str() {
        "mps" => (
            "through the Multi-Process Service",
            "traces and metrics work; what reads hardware counters is refused (MultiProcessService)",
        ),
        "time-slicing" => (
            "by time-slicing",
            "what is measured of a device is of all who share it; the pod's part is known where the driver keeps an account of processes",
        ),
        _ => return None,
    };
    let what = format!("node {name} gives each GPU to {replicas} containers {what}");
    Some(Finding::new(Level::Note, what).remedy(remedy))
}

/// What the container asks for.
fn mig(container: &Container) -> Option<Finding> {
    let resources = container.resources.as_ref()?;
    let mut asked = resources.limits.iter().chain(&resources.requests).flatten();
    let (resource, _) = asked.find(|(resource, _)| resource.starts_with(MIG))?;
    let what = format!("container {} asks for a MIG device ({resource})", container.name);
    Some(Finding::new(Level::Note, what).remedy(
        "memory and processes are measured of the device, power and clocks of the whole GPU; the driver keeps no account of its processes",
    ))
}

/// What the agent found when the container was profiled last.
fn shared(last: &Capture) -> Option<Finding> {
    let gpus = last.status.iter().flat_map(|status| &status.gpus);
    let shared: Vec<_> = gpus
        .filter(|gpu| gpu.share != GpuShare::Container)
        .map(|gpu| format!("{} ({})", gpu.uuid, gpu.share.as_str()))
        .collect();
    (!shared.is_empty()).then(|| {
        let what = format!(
            "capture {} found for container {}: {}",
            last.name_any(),
            last.spec.container_name,
            shared.join(", ")
        );
        Finding::new(Level::Note, what)
    })
}
