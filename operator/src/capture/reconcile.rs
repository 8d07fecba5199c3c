//! Carries out a capture's plan: a capture whose node is lost is declared lost, and the finalizer
//! of one that is deleted is removed once its agent cannot do that.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use flopwatch_api::capture::Capture;
use flopwatch_api::reason::{CaptureCondition, CaptureReason};
use flopwatch_api::{CAPTURE_FINALIZER, OPERATOR_FIELD_MANAGER};
use jiff::Timestamp;
use k8s_controller::events::{Event, EventType};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource as _, ResourceExt};
use serde_json::{Value, json};

use crate::capture::node::NodeHealth;
use crate::capture::plan::{Surroundings, plan};
use crate::controller::context::Context;
use crate::deadline::{CallError, bounded, ignore_not_found, merge};

/// Runs one pass over a capture, and answers when the next one is due.
pub async fn reconcile(capture: Arc<Capture>, context: Arc<Context>) -> Action {
    let pass = Box::pin(pass(&capture, &context));
    context.pass("capture", capture.as_ref(), pass).await
}

async fn pass(capture: &Capture, context: &Context) -> Result<Action, CallError> {
    let step = plan(capture, surroundings(capture, context));
    let api: Api<Capture> = Api::namespaced(context.client.clone(), &capture.namespace().unwrap_or_default());
    if let Some(message) = step.declare_lost {
        declare_lost(capture, message, &api).await?;
        context.metrics.captures_lost.inc();
    }
    if step.release {
        release(capture, &api).await?;
        context.metrics.finalizers_removed.inc();
        if let Some(left) = step.left {
            context.metrics.deletions_overdue.inc();
            publish_artifacts_left(capture, left, context).await;
        }
    }
    Ok(step.again.map_or_else(Action::await_change, Action::requeue))
}

fn surroundings(capture: &Capture, context: &Context) -> Surroundings {
    let name = capture.spec.node_name.as_str();
    let node = context.stores.nodes.get(&ObjectRef::<Node>::new(name));
    let on_node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(name);
    let agents = context.stores.agents.state_filter(|pod| on_node(pod));
    let health = NodeHealth::of(node.as_deref(), agents.iter().map(AsRef::as_ref));
    let now = Timestamp::now();
    let deleting = if is_being_released(capture) {
        let uid = capture.metadata.uid.as_deref().unwrap_or_default();
        context.deletions.observe(uid, now)
    } else {
        Duration::ZERO
    };
    let mut history = context.history.lock().unwrap_or_else(PoisonError::into_inner);
    Surroundings {
        health,
        since: history.observe(name, health, now),
        node_lost: context.node_lost,
        deleting,
    }
}

/// Whether a capture is being deleted and still has the finalizer.
pub(crate) fn is_being_released(capture: &Capture) -> bool {
    let held = capture
        .finalizers()
        .iter()
        .any(|finalizer| finalizer == CAPTURE_FINALIZER);
    held && capture.metadata.deletion_timestamp.is_some()
}

/// Publishes an Event that names the artifacts that a deleted capture left behind; its namespace
/// may refuse the Event.
async fn publish_artifacts_left(capture: &Capture, left: String, context: &Context) {
    tracing::warn!(
        capture = capture.name_any(),
        node = capture.spec.node_name,
        left,
        "released a capture"
    );
    let event = Event {
        type_: EventType::Warning,
        reason: CaptureReason::ArtifactsLeft.as_str().to_owned(),
        action: "Delete".to_owned(),
        note: Some(left),
        related: None,
    };
    if let Err(error) = context.events.publish(capture, &event).await {
        context.metrics.events_failed.inc();
        tracing::warn!(capture = capture.name_any(), %error, "cannot publish an event");
    }
}

/// Sets `Lost`, the one condition of a capture that is the operator's.
async fn declare_lost(capture: &Capture, message: String, api: &Api<Capture>) -> Result<(), CallError> {
    tracing::warn!(
        capture = capture.name_any(),
        node = capture.spec.node_name,
        message,
        "capture is lost"
    );
    let now = Timestamp::now();
    let condition = Condition {
        type_: CaptureCondition::Lost.as_str().to_owned(),
        status: "True".to_owned(),
        reason: CaptureReason::NodeLost.as_str().to_owned(),
        message,
        last_transition_time: Time(Timestamp::from_second(now.as_second()).unwrap_or(now)),
        observed_generation: capture.metadata.generation,
    };
    let patch = json!({
        "apiVersion": Capture::api_version(&()),
        "kind": Capture::kind(&()),
        // The version: an agent that ended the capture meanwhile goes first.
        "metadata": {"resourceVersion": capture.resource_version()},
        "status": {"conditions": [condition]},
    });
    let params = PatchParams::apply(OPERATOR_FIELD_MANAGER).force();
    let name = capture.name_any();
    let patch = Patch::Apply(&patch);
    let declared = api.patch_status(&name, &params, &patch);
    ignore_not_found(bounded("declaring a capture lost", declared).await)
}

/// Removes the capture's finalizer, and leaves other finalizers as they are.
async fn release(capture: &Capture, api: &Api<Capture>) -> Result<(), CallError> {
    let (name, params) = (capture.name_any(), merge());
    let patch = Patch::Merge(without_finalizer(capture));
    let taken = api.patch(&name, &params, &patch);
    ignore_not_found(bounded("taking a capture's finalizer off", taken).await)
}

/// The patch that removes a capture's finalizer from the version that was read.
pub(crate) fn without_finalizer(capture: &impl ResourceExt) -> Value {
    let finalizers = capture.finalizers().iter();
    let kept: Vec<&String> = finalizers.filter(|finalizer| *finalizer != CAPTURE_FINALIZER).collect();
    json!({"metadata": {"resourceVersion": capture.resource_version(), "finalizers": kept}})
}

#[cfg(test)]
mod tests;
