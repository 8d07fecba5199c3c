//! Keeps what containers recorded that ended abnormally, one after the other, and says on their
//! pods how to get it.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use flopwatch_attach::bounded::Gate;
use flopwatch_pipeline::failure::chain;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tracing::{info, warn};

use super::{EndedContainer, Node, utc_ns, within};
use crate::node::writer::CALL_TIMEOUT;

/// Longest time between two sweeps of what is kept, which is swept too when something was added.
const MAX_SWEEP_INTERVAL: Duration = Duration::from_mins(1);
/// How long a copy of a file is waited for.
const COPY_TIMEOUT: Duration = Duration::from_mins(1);
/// How the agent is named on Events.
const REPORTING_CONTROLLER: &str = "flopwatch-agent";
/// Reason of the Event that tells of a recording that was kept.
const RECORDING_KEPT: &str = "RecordingKept";

/// What a container recorded that ended abnormally.
#[derive(Debug)]
pub(super) struct Recorded {
    /// The flight recorder's file.
    pub(super) ring: Option<Arc<File>>,
    /// The CUDA tracer's file, where kernels were recorded all the time.
    pub(super) kernels: Option<File>,
    pub(super) ended: EndedContainer,
}

/// Keeps what comes until the node is told to stop, and sweeps.
pub(super) async fn run(node: &Arc<Node>, gate: &Gate, mut ended: mpsc::Receiver<Recorded>) {
    loop {
        sweep(node).await;
        let next = timeout(MAX_SWEEP_INTERVAL, ended.recv());
        match node.stop.run_until_cancelled(next).await {
            Some(Ok(Some(recorded))) => keep(node, gate, recorded).await,
            // It is time to sweep.
            Some(Err(_elapsed)) => {}
            Some(Ok(None)) | None => return,
        }
    }
}

async fn sweep(node: &Arc<Node>) {
    let recordings = node.recordings.clone();
    let swept = tokio::task::spawn_blocking(move || recordings.sweep(utc_ns()));
    if let Err(error) = swept.await {
        warn!(%error, "a sweep of kept recordings ended early");
    }
}

/// Copies a file, and says on the pod how to get it.
async fn keep(node: &Node, gate: &Gate, remains: Recorded) {
    let Recorded { ring, kernels, ended } = remains;
    let (recordings, of) = (node.recordings.clone(), ended.clone());
    let copied = within(gate, &ended.container_id, COPY_TIMEOUT, move || {
        recordings.keep(&of, ring.as_deref(), kernels)
    })
    .await;
    let why = match copied {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(chain(&error)),
        Err(late) => Some(chain(&late)),
    };
    let (pod, container) = (&ended.pod, &ended.container);
    if let Some(why) = why {
        warn!(pod, container, why, "what the flight recorder held is not kept");
        return;
    }
    info!(
        pod,
        container,
        code = ended.exit_code,
        "kept what the flight recorder held"
    );
    let reason = if ended.reason.is_empty() {
        String::new()
    } else {
        format!(" ({})", ended.reason)
    };
    let event = Event {
        type_: EventType::Normal,
        reason: RECORDING_KEPT.to_owned(),
        note: Some(format!(
            "container {container} ended with code {}{reason}; what its flight recorder held is kept on the node for {} h: kubectl flopwatch \
             recent pod/{pod} -n {} -c {container}",
            ended.exit_code,
            node.recordings.hours(),
            ended.namespace
        )),
        action: "Record".to_owned(),
        secondary: None,
    };
    let reporter = Reporter {
        controller: REPORTING_CONTROLLER.to_owned(),
        instance: Some(node.name.clone()),
    };
    let about = k8s_openapi::api::core::v1::ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(ended.pod.clone()),
        namespace: Some(ended.namespace.clone()),
        uid: Some(ended.pod_uid.clone()),
        ..k8s_openapi::api::core::v1::ObjectReference::default()
    };
    let recorder = Recorder::new(node.client.clone(), reporter);
    let published = timeout(CALL_TIMEOUT, recorder.publish(&event, &about)).await;
    let why = match published {
        Ok(Ok(())) => return,
        Ok(Err(error)) => chain(&error),
        Err(late) => chain(&late),
    };
    warn!(why, pod, "the pod has no Event of what is kept");
}
