//! The stage in which the container is found and probed, and a profiler picked for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_api::capability::Capability;
use flopwatch_api::capture::Stage as StatusStage;
use flopwatch_api::pod;
use flopwatch_api::session::StartMode;
use flopwatch_attach::process::ProcessId;
use flopwatch_nvml::ContainerIdentity;
use flopwatch_pipeline::failure::Failure;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tokio::time::sleep;

use super::context::Context;
use super::{fleet_row, sandbox, start, unprepared};
use crate::adoption::{Attached, Stage};
use crate::choice::{Candidate, choose};
use crate::node::pods;
use crate::profilers::containers::Probed;
use crate::profilers::{AnyProfiler, cuda, recorder};

/// How long a target that is not known yet is waited for, and the pause between two looks.
pub(super) const TARGET_TIMEOUT: Duration = Duration::from_secs(3);
pub(super) const TARGET_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Attaches the capture, which may have had an earlier collection.
pub(super) async fn step(cx: &mut Context<'_>, earlier: Option<Attached>) -> Result<Stage, Failure> {
    cx.node.storage.refuse(&cx.capture.spec)?;
    cx.enter(StatusStage::Attaching, "looking at the container");
    let attached = match cx.capture.spec.start {
        StartMode::Now => attach(cx, earlier.as_ref()).await?,
        StartMode::ContainerStart => {
            let held = start::await_held(cx).await?;
            let attached = start::attach(cx, &held, earlier.as_ref()).await?;
            cx.unwritten.held = Some(held);
            attached
        }
    };
    Ok(Stage::Prepare(attached))
}

/// Finds the container, probes it and picks the profiler.
async fn attach(cx: &mut Context<'_>, earlier: Option<&Attached>) -> Result<Attached, Failure> {
    let spec = &cx.capture.spec;
    let namespace = cx.capture.namespace().unwrap_or_default();
    let find = || pods::target(&cx.node.pods, &namespace, &spec.pod_ref, &spec.container_name);
    // The operator's view of the pod may be ahead of this agent's by a moment.
    let known = Instant::now() + TARGET_TIMEOUT;
    while find().is_err() && Instant::now() < known {
        sleep(TARGET_POLL_INTERVAL).await;
        cx.interrupted()?;
    }
    let (pod, container_id) = match find() {
        Ok(found) => found,
        Err(failure) => return attach_to_kept(cx, failure),
    };
    let prepared = pod::is_prepared(&pod, &spec.container_name);
    let probed = cx.node.containers.probe(&container_id, prepared).await;
    let mut probed = probed.map_err(|failure| sandbox::explain(failure, &pod))?;
    attribute(cx, &mut probed).await;
    let mut capabilities = cx.node.profilers.capabilities(&probed.facts);
    unprepared::explain(&mut capabilities, &pod, &spec.container_name);
    let attached = pick(cx, &container_id, &probed, capabilities, Some(&pod), earlier)?;
    cx.interrupted()?;
    Ok(attached)
}

/// Asks the kubelet which GPUs the container has, and keeps what it says beside what the probe saw.
pub(super) async fn attribute(cx: &mut Context<'_>, probed: &mut Probed) {
    let spec = &cx.capture.spec;
    let container = ContainerIdentity {
        namespace: cx.capture.namespace().unwrap_or_default(),
        pod: spec.pod_ref.name.clone(),
        container: spec.container_name.clone(),
    };
    let gpu = &mut probed.facts.gpu;
    gpu.assigned = cx.node.containers.assigned(&container).await;
    cx.draft.gpus(gpu.gpus());
}

/// Picks the profiler for a container that was probed, and says what is open and what is attached
/// to.
pub(super) fn pick(
    cx: &mut Context<'_>,
    container_id: &str,
    probed: &Probed,
    capabilities: Vec<Capability>,
    pod: Option<&Pod>,
    earlier: Option<&Attached>,
) -> Result<Attached, Failure> {
    fleet_row::identify(cx);
    let spec = &cx.capture.spec;
    let candidate = |profiler: &Arc<AnyProfiler>| {
        let state = profiler.attach(&spec.profiler, probed, pod)?;
        Ok(Candidate {
            profiler: Arc::clone(profiler),
            state,
        })
    };
    let candidates: Vec<_> = cx
        .node
        .profilers
        .iter()
        .map(candidate)
        .collect::<Result<_, Failure>>()?;
    let choice = choose(&spec.profiler, &spec.require, &capabilities, &candidates);
    cx.draft.capabilities(capabilities);
    cx.draft.attach_to(
        choice
            .as_ref()
            .map_or(spec.profiler.type_, |choice| choice.profiler.type_),
        container_id,
    );
    cx.write();
    let choice = choice?;
    let earlier = earlier
        .filter(|earlier| earlier.container_id == container_id && earlier.profiler.type_ == choice.profiler.type_);
    let state = match earlier {
        Some(earlier) => cx.profiler(earlier)?.follow(&earlier.profiler, choice.profiler)?,
        None => choice.profiler,
    };
    let records_kernels = pod.is_some_and(|pod| pod::prepared_for(pod, &spec.container_name).records_kernels());
    Ok(Attached {
        container_id: container_id.to_owned(),
        process: probed.process,
        profiler: state,
        note: choice.note,
        uses_cuda: probed.uses_cuda,
        ring: recorder::file(&probed.facts),
        kernels: cuda::file(&probed.facts).filter(|_| records_kernels),
    })
}

/// Attaches to what the node kept of a container that has ended, which is all that there is; else
/// `failure` stands.
fn attach_to_kept(cx: &mut Context<'_>, failure: Failure) -> Result<Attached, Failure> {
    let spec = &cx.capture.spec;
    let recordings = &cx.node.recordings;
    let Some((kept, ended)) = recordings.find(&spec.pod_ref.uid, &spec.container_name) else {
        return Err(failure);
    };
    let profiler = cx.node.profilers.get(spec.profiler.type_);
    let state = profiler.map(|profiler| profiler.attach_to_kept(kept)).transpose()?;
    let Some(state) = state.flatten() else {
        return Err(failure);
    };
    cx.draft.attach_to(state.type_, &ended.container_id);
    cx.write();
    Ok(Attached {
        container_id: ended.container_id,
        process: ProcessId { pid: 0, start_time: 0 },
        profiler: state,
        note: String::new(),
        uses_cuda: false,
        ring: None,
        kernels: None,
    })
}
