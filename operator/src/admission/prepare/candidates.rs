//! Which containers are to be prepared, and what speaks against it.

use std::collections::{BTreeMap, BTreeSet};

use flopwatch_api::pod::{asks_for_gpu, sandbox};
use flopwatch_api::preparation::{
    JAX_DIR, JAX_VOLUME_PREFIX, LAUNCHER_INIT_CONTAINER, NSYS_CUDA_GRAPH_ANNOTATION, NSYS_GPU_METRICS_ANNOTATION,
    NSYS_NVTX_CAPTURE_ANNOTATION, NSYS_TRACE_ANNOTATION, PREPARE_CONTAINERS_ANNOTATION, PROFILER_VOLUME,
    RUN_VOLUME_PREFIX, TMP_VOLUME_PREFIX, TOOLS_INIT_CONTAINER, TOOLS_VOLUME, split_names,
};
use flopwatch_api::profiler::{CudaGraphTrace, TraceCategory, is_range_name};
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, VolumeMount};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt as _;

use crate::admission::prepare::{Delivery, PrepareOptions, capture_bytes};
use crate::admission::quantity;
use crate::admission::refusal::Refusal;

/// Bytes of the copies of libcupti, of all major versions.
const CUPTI_BYTES: u64 = 24 << 20;

/// A container that is to be prepared: its place, or why it cannot be.
pub(super) struct Candidate<'a> {
    pub(super) name: String,
    pub(super) container: Result<(usize, &'a Container), Refusal>,
}

/// The containers that the annotation names, else those that ask for a GPU, else all.
pub(super) fn choose(pod: &Pod) -> Vec<Candidate<'_>> {
    let containers = pod
        .spec
        .as_ref()
        .map(|spec| spec.containers.as_slice())
        .unwrap_or_default();
    let named: Vec<&str> = pod
        .annotations()
        .get(PREPARE_CONTAINERS_ANNOTATION)
        .map(|value| split_names(value).collect())
        .unwrap_or_default();
    if !named.is_empty() {
        let mut seen = BTreeSet::new();
        return named
            .into_iter()
            .filter(|name| seen.insert(*name))
            .map(|name| Candidate {
                name: name.to_owned(),
                container: find(pod, containers, name),
            })
            .collect();
    }
    let any_gpu = containers.iter().any(asks_for_gpu);
    containers
        .iter()
        .enumerate()
        .filter(|(_, container)| !any_gpu || asks_for_gpu(container))
        .map(|(index, container)| Candidate {
            name: container.name.clone(),
            container: Ok((index, container)),
        })
        .collect()
}

fn find<'a>(pod: &Pod, containers: &'a [Container], name: &str) -> Result<(usize, &'a Container), Refusal> {
    if let Some(found) = containers
        .iter()
        .enumerate()
        .find(|(_, container)| container.name == name)
    {
        return Ok(found);
    }
    let init = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.init_containers.as_deref())
        .unwrap_or_default();
    if init.iter().any(|container| container.name == name) {
        return Err(Refusal::InitContainer);
    }
    let existing = containers
        .iter()
        .map(|container| container.name.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    Err(Refusal::NoSuchContainer { existing })
}

/// What speaks against putting the tools into the pod.
pub(super) fn refuse_pod(pod: &Pod, options: &PrepareOptions) -> Option<Refusal> {
    let spec = pod.spec.as_ref()?;
    refuse_platform(spec)
        .or_else(|| refuse_annotations(pod))
        .or_else(|| refuse_names(spec))
        .or_else(|| refuse_bytes(spec, options.tools_bytes))
}

/// Why a pod cannot have the launcher's volume and init container.
pub(super) fn refuse_tools(pod: &Pod) -> Option<Refusal> {
    let spec = pod.spec.as_ref()?;
    refuse_platform(spec).or_else(|| refuse_names(spec))
}

/// Why a pod's programs cannot be seen from the node: a sandbox runs them behind a kernel of its
/// own.
pub(super) fn refuse_sandbox(pod: &Pod) -> Option<Refusal> {
    sandbox(pod).map(|class| Refusal::Sandbox(class.to_owned()))
}

/// Too little ephemeral storage for copies of libcupti.
pub(super) fn refuse_cupti(pod: &Pod, options: &PrepareOptions) -> Option<Refusal> {
    let spec = pod.spec.as_ref()?;
    match options.delivery {
        Delivery::Copy => refuse_bytes(spec, CUPTI_BYTES),
        Delivery::Mount => None,
    }
}

fn refuse_platform(spec: &PodSpec) -> Option<Refusal> {
    let selected = |key: &str| {
        spec.node_selector
            .as_ref()
            .and_then(|selector| selector.get(key))
            .map(String::as_str)
    };
    if spec.os.as_ref().is_some_and(|os| os.name == "windows") || selected("kubernetes.io/os") == Some("windows") {
        return Some(Refusal::Windows);
    }
    if let Some(arch) = selected("kubernetes.io/arch").filter(|arch| *arch != "amd64") {
        return Some(Refusal::Architecture(arch.to_owned()));
    }
    (spec.host_pid == Some(true)).then_some(Refusal::HostPid)
}

fn refuse_annotations(pod: &Pod) -> Option<Refusal> {
    if let Some(trace) = pod.annotations().get(NSYS_TRACE_ANNOTATION) {
        let mut names = split_names(trace).peekable();
        if names.peek().is_none() {
            return Some(Refusal::UnknownCategory(trace.clone()));
        }
        if let Some(unknown) = names.find(|name| TraceCategory::from_name(name).is_none()) {
            return Some(Refusal::UnknownCategory(unknown.to_owned()));
        }
    }
    if let Some(graph) = pod.annotations().get(NSYS_CUDA_GRAPH_ANNOTATION)
        && CudaGraphTrace::from_name(graph.trim()).is_none()
    {
        return Some(Refusal::UnknownGraphMode(graph.clone()));
    }
    if let Some(metrics) = pod.annotations().get(NSYS_GPU_METRICS_ANNOTATION)
        && !matches!(metrics.trim(), "true" | "false")
    {
        return Some(Refusal::GpuMetrics(metrics.clone()));
    }
    let range = pod.annotations().get(NSYS_NVTX_CAPTURE_ANNOTATION)?;
    (!is_range_name(range.trim())).then(|| Refusal::RangeName(range.clone()))
}

fn refuse_names(spec: &PodSpec) -> Option<Refusal> {
    let volume = spec.volumes.iter().flatten().map(|volume| &volume.name).find(|name| {
        matches!(name.as_str(), TOOLS_VOLUME | PROFILER_VOLUME)
            || name.starts_with(RUN_VOLUME_PREFIX)
            || name.starts_with(TMP_VOLUME_PREFIX)
    });
    let all = spec
        .init_containers
        .iter()
        .flatten()
        .chain(&spec.containers)
        .map(|container| &container.name);
    let container = all
        .into_iter()
        .find(|name| *name == LAUNCHER_INIT_CONTAINER || *name == TOOLS_INIT_CONTAINER);
    volume.or(container).map(|name| Refusal::NameTaken(name.clone()))
}

/// Too little ephemeral storage for copies of so many bytes, and a capture.
fn refuse_bytes(spec: &PodSpec, copied_bytes: u64) -> Option<Refusal> {
    let limit = capture_bytes::limit(spec)?;
    let needed = capture_bytes::needed(copied_bytes);
    (limit < needed).then_some(Refusal::EphemeralStorage { limit, needed })
}

/// What speaks against preparing the container: its mounts.
pub(super) fn refuse_paths(container: &Container) -> Option<Refusal> {
    // A copy of a pod has what its original was prepared with.
    let of_jax = |mount: &&VolumeMount| mount.name.starts_with(JAX_VOLUME_PREFIX) && mount.mount_path == JAX_DIR;
    let mounts = container
        .volume_mounts
        .iter()
        .flatten()
        .filter(|mount| !of_jax(mount))
        .map(|mount| mount.mount_path.as_str());
    let taken = mounts.into_iter().find(|path| {
        let path = path.trim_end_matches('/');
        path == "/flopwatch" || path.starts_with("/flopwatch/")
    });
    taken.map(|path| Refusal::PathTaken(path.to_owned()))
}

/// Too little memory in the container whose resources the init containers take.
pub(super) fn refuse_memory(containers: &[&Container], options: &PrepareOptions) -> Option<Refusal> {
    let limit = limit(roomiest(containers)?, "memory")?;
    let needed = u128::from(options.min_memory_bytes);
    (limit < needed).then_some(Refusal::Memory { limit, needed })
}

/// The container with the most memory: no limit, else the largest.
pub(super) fn roomiest<'a>(containers: &[&'a Container]) -> Option<&'a Container> {
    let mut best: Option<(&Container, Option<u128>)> = None;
    for container in containers {
        let memory = limit(container, "memory");
        let better = match best {
            None => true,
            Some((_, None)) => false,
            Some((_, Some(max_memory))) => memory.is_none_or(|memory| memory > max_memory),
        };
        if better {
            best = Some((container, memory));
        }
    }
    best.map(|(container, _)| container)
}

pub(super) fn limit(container: &Container, resource: &str) -> Option<u128> {
    let limits: &BTreeMap<String, Quantity> = container.resources.as_ref()?.limits.as_ref()?;
    quantity::bytes(&limits.get(resource)?.0)
}
