//! A collection from the program's first instruction on: the container waits for it.

use std::time::Duration;

use flopwatch_api::pod;
use flopwatch_api::reason::CaptureReason;
use flopwatch_pipeline::failure::{Failure, chain};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tokio::time::{Instant, sleep};

use super::attach::{TARGET_POLL_INTERVAL, TARGET_TIMEOUT, attribute, pick};
use super::context::{Context, blocking};
use crate::adoption::Attached;
use crate::node::pods;
use crate::node::starts::PendingStart;

/// Time between two looks whether the container has started without its collection.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long the launcher may take to become the program once it is released.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);

/// Waits until the container is held for its collection; fails once its program runs without.
pub(super) async fn await_held(cx: &mut Context<'_>) -> Result<PendingStart, Failure> {
    cx.advance((0, 1), "waiting for the container to start");
    let spec = &cx.capture.spec;
    let namespace = cx.capture.namespace().unwrap_or_default();
    let begun = Instant::now();
    let patience = Duration::from_secs(u64::try_from(spec.start_deadline_seconds).unwrap_or(0));
    let now = cx.node.clock.now(&cx.node.client).await;
    let created = cx.capture.creation_timestamp().map_or(now, |time| time.0);
    let waited = Duration::try_from(now.duration_since(created)).unwrap_or_default();
    let deadline = begun + patience.saturating_sub(waited).max(TARGET_TIMEOUT);
    let mut inspect = begun + POLL_INTERVAL;
    loop {
        let pod = pods::find(&cx.node.pods, &namespace, &spec.pod_ref);
        if let Some(pod) = &pod {
            let wants = |id: &str| is_container(pod, &spec.container_name, id);
            if let Some(held) = cx.node.starts.take(&spec.pod_ref.uid, wants) {
                return Ok(held);
            }
        }
        let now = Instant::now();
        match &pod {
            None if now >= begun + TARGET_TIMEOUT => {
                let message = format!("pod {} is gone", spec.pod_ref.name);
                return Err(Failure::new(CaptureReason::TargetNotRunning, message));
            }
            Some(pod) if now >= inspect => {
                missed(cx, pod).await?;
                inspect = Instant::now() + POLL_INTERVAL;
            }
            _ => {}
        }
        if now >= deadline {
            let message = format!(
                "container {} of pod {} did not start within startDeadlineSeconds ({} s)",
                spec.container_name, spec.pod_ref.name, spec.start_deadline_seconds
            );
            return Err(Failure::new(CaptureReason::DeadlineExceeded, message));
        }
        sleep(TARGET_POLL_INTERVAL).await;
        cx.interrupted()?;
    }
}

/// Fails when the program runs, or ran, without its collection.
async fn missed(cx: &Context<'_>, pod: &Pod) -> Result<(), Failure> {
    let container = &cx.capture.spec.container_name;
    let missed = |why: &str| {
        let message = format!("the program began before its collection: {why}; create the session anew");
        Err(Failure::new(CaptureReason::StartMissed, message))
    };
    if pod::has_ended(pod) {
        return missed("its pod has ended");
    }
    let Some(id) = pods::running_container_id(pod, container) else {
        return Ok(());
    };
    if !pod::is_prepared(pod, container) {
        return missed("the container was not prepared");
    }
    let containers = &cx.node.containers;
    let Some(process) = containers.first_process(&id) else {
        return Ok(());
    };
    let collector = containers.collector(&id, process);
    let state = blocking(CaptureReason::AttachFailed, move || {
        collector
            .launcher()
            .map_err(|error| Failure::new(CaptureReason::AttachFailed, chain(&error)))
    })
    .await?;
    match state {
        None => Ok(()),
        Some(state) if state.grafted => {
            missed("the node's agent had no turn for the capture when the container started")
        }
        Some(state) => missed(&format!("the launcher went on without a session ({})", state.reason)),
    }
}

/// Probes a held container and picks the profiler.
pub(super) async fn attach(
    cx: &mut Context<'_>,
    held: &PendingStart,
    earlier: Option<&Attached>,
) -> Result<Attached, Failure> {
    let spec = &cx.capture.spec;
    let namespace = cx.capture.namespace().unwrap_or_default();
    let pod = pods::find(&cx.node.pods, &namespace, &spec.pod_ref);
    let mut probed = cx.node.containers.probe_held(&held.container_id).await?;
    attribute(cx, &mut probed).await;
    let capabilities = cx.node.profilers.capabilities(&probed.facts);
    let attached = pick(cx, &held.container_id, &probed, capabilities, pod.as_deref(), earlier)?;
    if !attached.profiler.type_.needs_launcher() {
        // From the first instruction on there is nothing less: it would be another request.
        return Err(Failure::new(CaptureReason::ProfilerUnavailable, attached.note));
    }
    cx.interrupted()?;
    Ok(attached)
}

/// Lets a held container go now that its collection runs, and makes sure that its program is in it.
pub(super) async fn release(cx: &Context<'_>, held: PendingStart, attached: &Attached) -> Result<(), Failure> {
    held.started();
    let collector = cx.node.containers.collector(&attached.container_id, attached.process);
    let state = blocking(CaptureReason::AttachFailed, move || {
        collector
            .await_launcher(RELEASE_TIMEOUT)
            .map_err(|error| Failure::new(CaptureReason::AttachFailed, chain(&error)))
    })
    .await?;
    if state.grafted {
        return Ok(());
    }
    let message = format!(
        "the launcher started the program without the session ({}), so that nothing of it is recorded",
        state.reason
    );
    Err(Failure::new(CaptureReason::NotGrafted, message))
}

/// Whether a container ID is that of the named container. The kubelet says so only some time after
/// its start: until then it is if the pod has no other prepared one.
fn is_container(pod: &Pod, container: &str, id: &str) -> bool {
    if let Some(name) = pods::container_of_id(pod, id) {
        return name == container;
    }
    pod::prepared_containers(pod).eq([container])
}

#[cfg(test)]
mod tests {
    use super::*;
    use flopwatch_api::preparation::PREPARED_ANNOTATION;

    #[test]
    fn a_container_that_the_kubelet_has_not_named_yet_is_known_where_it_is_the_only_one() {
        let pod = |prepared: &str, statuses: serde_json::Value| -> Pod {
            serde_json::from_value(serde_json::json!({
                "metadata": {"name": "p", "annotations": {PREPARED_ANNOTATION: prepared}},
                "status": {"containerStatuses": statuses}
            }))
            .unwrap()
        };
        let named = serde_json::json!([{"name": "main", "image": "", "imageID": "", "ready": true, "restartCount": 0,
            "containerID": "containerd://abc", "state": {"running": {}}}]);
        let none = serde_json::json!([]);
        let rows = [
            (pod("main", none.clone()), "abc", true),
            (pod("main,side", none.clone()), "abc", false),
            (pod("side", none), "abc", false),
            (pod("main,side", named.clone()), "abc", true),
            (pod("main,side", named), "def", false),
        ];
        for (at, (pod, id, expected)) in rows.into_iter().enumerate() {
            assert_eq!(is_container(&pod, "main", id), expected, "row {at}");
        }
    }
}
