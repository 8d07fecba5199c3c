//! Carries out a session's plan.

use std::sync::Arc;

use flopwatch_api::capture::Capture;
use flopwatch_api::preparation::REPLICA_OF_ANNOTATION;
use flopwatch_api::reason::{SessionCondition, SessionReason};
use flopwatch_api::schedule::SCHEDULE_LABEL;
use flopwatch_api::session::{PodTemplate, ProfilingSession, ProfilingSessionStatus, StopMode};
use flopwatch_api::{OPERATOR_FIELD_MANAGER, SESSION_ID_LABEL, SESSION_LABEL};
use jiff::Timestamp;
use k8s_controller::events::{Event, EventType};
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource as _, ResourceExt as _};

use crate::controller::context::Context;
use crate::controller::namespace_queues;
use crate::deadline::{CallError, bounded, ignore_not_found, merge};
use crate::session::own_pod::{self, Attempt};
use crate::session::plan::{Plan, World, is_choosing, plan};
use crate::session::quota::Quota;
use crate::session::replica::{self, ReplicaError};
use crate::session::{claims, top_kernels, triggered};

/// One pass over a session.
pub async fn reconcile(session: Arc<ProfilingSession>, context: Arc<Context>) -> Action {
    if session.metadata.deletion_timestamp.is_some() {
        return Action::await_change();
    }
    let pass = Box::pin(pass(&session, &context));
    context.pass("session", session.as_ref(), pass).await
}

async fn pass(session: &ProfilingSession, context: &Context) -> Result<Action, CallError> {
    let namespace = session.namespace().unwrap_or_default();
    let around = context
        .stores
        .pods
        .state_filter(|pod| pod.metadata.namespace.as_deref() == Some(&namespace));
    let mut pods = candidates(session, &around);
    let makes_pod = session.spec.target.makes_pod();
    if pods.is_empty() && makes_pod && is_choosing(session) {
        // Whether there is one decides whether one is made: the cache may lag behind that.
        pods.extend(own_pod::find(session, context).await?);
    }
    let forged = triggered::forged(session, &pods, context).await?;
    let replica = if pods.is_empty() && is_choosing(session) {
        replica(session, context).await?
    } else {
        None
    };
    let all = context
        .stores
        .captures
        .state_filter(|capture| capture.metadata.namespace.as_deref() == Some(&namespace));
    let quota = Quota::of(session, &all, &around, context);
    let top_kernels = kernels_of_another(session, &all, context);
    let captures = owned(session, all);
    let fresh_id = fresh_id(context);
    let world = World {
        now: Timestamp::now(),
        pods: &pods,
        captures: &captures,
        suspended: context.suspension.get(),
        quota,
        // Nothing is made of what is planned here.
        budget: context.pace.full_budget(),
        attempt: None,
        replica: replica.as_ref(),
        top_kernels: top_kernels.as_deref().map_err(String::as_str),
        forged: forged.as_ref(),
        fresh_id: &fresh_id,
    };
    let step = plan(session, &world);
    if !step.decisive {
        return carry_out(session, step, context).await;
    }
    // The following calls cannot be undone, so they rest on what the API server has now. One
    // session of a namespace at a time creates captures: two that count at once would both take the
    // last place. Nothing is counted across namespaces, so a namespace that hangs holds up no
    // other.
    let _lock = if context.namespace_limit.is_some() && is_choosing(session) {
        let Some(lock) = context.namespace_queues.lock(&namespace).await else {
            return Ok(Action::requeue(namespace_queues::RETRY_INTERVAL));
        };
        Some(lock)
    } else {
        None
    };
    let sessions: Api<ProfilingSession> = Api::namespaced(context.client.clone(), &namespace);
    let Some(fresh) = bounded("reading the session", sessions.get_opt(&session.name_any())).await? else {
        return Ok(Action::await_change());
    };
    if fresh.metadata.uid != session.metadata.uid || fresh.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let counts = context.namespace_limit.is_some() && is_choosing(&fresh);
    let of_session = ListParams::default().labels(&format!("{SESSION_LABEL}={}", session.name_any()));
    let selector = if counts { ListParams::default() } else { of_session };
    let api: Api<Capture> = Api::namespaced(context.client.clone(), &namespace);
    let listed = bounded("listing captures", api.list(&selector)).await?;
    let all: Vec<Arc<Capture>> = listed.items.into_iter().map(Arc::new).collect();
    let quota = if counts {
        let made = own_pod::list(&namespace, context).await?;
        Quota::of(&fresh, &all, &made, context)
    } else {
        Quota::default()
    };
    let captures = owned(&fresh, all);
    let world = World {
        captures: &captures,
        quota,
        ..world
    };
    let step = paced(&fresh, world, context);
    let Some(pod) = &step.create_pod else {
        return carry_out(&fresh, step, context).await;
    };
    let attempt = own_pod::make(&fresh, pod, context).await?;
    if let Attempt::Made(made) = &attempt {
        tell_original(&fresh, made, context).await;
    }
    let world = World {
        attempt: Some(&attempt),
        ..world
    };
    carry_out(&fresh, paced(&fresh, world, context), context).await
}

/// The template of the copy that a session makes; None for one that makes none.
async fn replica(
    session: &ProfilingSession,
    context: &Context,
) -> Result<Option<Result<PodTemplate, ReplicaError>>, CallError> {
    let Some(name) = &session.spec.target.replica_of else {
        return Ok(None);
    };
    let original = own_pod::original(session, name, context).await?;
    let namespace = session.namespace().unwrap_or_default();
    let mounted = original.as_ref().map(replica::claims_of).unwrap_or_default();
    let claims = claims::read(&mounted, &namespace, context).await?;
    Ok(Some(replica::of(name, &namespace, original.as_ref(), &claims)))
}

/// The kernels of another session of the namespace, whose captures are all here.
fn kernels_of_another(
    session: &ProfilingSession,
    all: &[Arc<Capture>],
    context: &Context,
) -> Result<Vec<String>, String> {
    let options = session.spec.profiler.ncu.clone().unwrap_or_default();
    let Some(name) = &options.top_kernels_of else {
        return Ok(Vec::new());
    };
    let namespace = session.namespace().unwrap_or_default();
    let of = context.stores.sessions.get(&ObjectRef::new(name).within(&namespace));
    let captures = of.as_deref().map_or_else(Vec::new, |of| owned(of, all.to_vec()));
    top_kernels::resolve(&options, of.as_deref(), &captures)
}

/// Plans with what the captures of the cluster leave of the writes of statuses that it allows.
fn paced(session: &ProfilingSession, world: World<'_>, context: &Context) -> Plan {
    let uid = session.metadata.uid.as_deref().unwrap_or_default();
    let captures = &context.stores.captures;
    context
        .pace
        .plan(uid, captures, |budget| plan(session, &World { budget, ..world }))
}

/// Pods that the session can mean: by name one, otherwise the namespace's.
fn candidates(session: &ProfilingSession, pods: &[Arc<Pod>]) -> Vec<Arc<Pod>> {
    let target = &session.spec.target;
    let own = target.makes_pod().then(|| own_pod::name(session));
    let name = target.pod_name.as_deref().or(own.as_deref());
    let uid = triggered::pod_uid(session);
    pods.iter()
        .filter(|pod| name.is_none_or(|name| pod.metadata.name.as_deref() == Some(name)))
        .filter(|pod| uid.is_none_or(|uid| pod.metadata.uid.as_deref() == Some(uid)))
        .cloned()
        .collect()
}

/// Captures that this very session controls; one of the same name that was deleted and made anew
/// has another UID.
fn owned(session: &ProfilingSession, captures: Vec<Arc<Capture>>) -> Vec<Arc<Capture>> {
    let Some(uid) = session.metadata.uid.as_deref() else {
        return Vec::new();
    };
    let controls = |capture: &Arc<Capture>| {
        capture
            .owner_references()
            .iter()
            .any(|owner| owner.controller == Some(true) && owner.uid == uid)
    };
    captures.into_iter().filter(controls).collect()
}

/// Eight hexadecimal digits that no session and no capture of the cluster carries.
fn fresh_id(context: &Context) -> String {
    loop {
        let id = format!("{:08x}", fastrand::u32(..));
        let in_sessions = context
            .stores
            .sessions
            .find(|session| session.status.as_ref().and_then(|status| status.id.as_deref()) == Some(id.as_str()));
        let in_captures = context
            .stores
            .captures
            .find(|capture| capture.labels().get(SESSION_ID_LABEL) == Some(&id));
        if in_sessions.is_none() && in_captures.is_none() {
            return id;
        }
    }
}

async fn carry_out(session: &ProfilingSession, step: Plan, context: &Context) -> Result<Action, CallError> {
    let namespace = session.namespace().unwrap_or_default();
    let sessions: Api<ProfilingSession> = Api::namespaced(context.client.clone(), &namespace);
    let captures: Api<Capture> = Api::namespaced(context.client.clone(), &namespace);
    for capture in &step.create {
        create(session, capture, &captures, context).await?;
    }
    for (capture, mode) in &step.stop {
        stop(capture, *mode, &captures).await?;
    }
    if session.status.as_ref() != Some(&step.status) {
        let uid = session.metadata.uid.as_deref().unwrap_or_default();
        if let Some(wait) = step.merge.and_then(|interval| context.pace.wait(uid, interval)) {
            return Ok(Action::requeue(wait));
        }
        write_status(session, &step.status, &sessions).await?;
        announce(session, &step.status, context).await;
    }
    if let Some((name, uid)) = &step.remove_pod {
        own_pod::remove(session, name, uid, context).await?;
    }
    if step.expired {
        let preconditions = Preconditions {
            uid: session.metadata.uid.clone(),
            resource_version: None,
        };
        let params = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::background()
        };
        match bounded(
            "deleting an expired session",
            sessions.delete(&session.name_any(), &params),
        )
        .await
        {
            Ok(_) => {
                context.metrics.sessions_expired.inc();
                tracing::info!(
                    namespace,
                    name = session.name_any(),
                    "deleted the session at the end of its retention"
                );
            }
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        return Ok(Action::await_change());
    }
    Ok(step.again.map_or_else(Action::await_change, Action::requeue))
}

/// Makes a capture and says so on the target pod. One that is there already was made by an earlier
/// pass, unless somebody else made it: that one is not ours to use.
async fn create(
    session: &ProfilingSession,
    capture: &Capture,
    captures: &Api<Capture>,
    context: &Context,
) -> Result<(), CallError> {
    let params = PostParams {
        field_manager: Some(OPERATOR_FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    };
    match bounded("creating a capture", captures.create(&params, capture)).await {
        Ok(created) => {
            context.metrics.captures_created.inc();
            tracing::info!(
                session = session.name_any(),
                capture = created.name_any(),
                node = capture.spec.node_name,
                pod = capture.spec.pod_ref.name,
                container = capture.spec.container_name,
                "created a capture"
            );
            tell_pod(session, &created, context).await;
            Ok(())
        }
        Err(error) if error.already_exists() => {
            let existing = bounded("reading a capture", captures.get(&capture.name_any())).await?;
            if owned(session, vec![Arc::new(existing)]).is_empty() {
                Err(error)
            } else {
                Ok(())
            }
        }
        Err(error) => Err(error),
    }
}

async fn stop(capture: &Capture, mode: StopMode, captures: &Api<Capture>) -> Result<(), CallError> {
    let patch = serde_json::json!({
        "metadata": {"resourceVersion": capture.resource_version()},
        "spec": {"stop": mode},
    });
    let (name, patch, params) = (capture.name_any(), Patch::Merge(&patch), merge());
    let stopped = captures.patch(&name, &params, &patch);
    ignore_not_found(bounded("stopping a capture", stopped).await)
}

/// Writes the status by server-side apply, and only onto the version that it was planned from.
async fn write_status(
    session: &ProfilingSession,
    status: &ProfilingSessionStatus,
    sessions: &Api<ProfilingSession>,
) -> Result<(), CallError> {
    let patch = serde_json::json!({
        "apiVersion": ProfilingSession::api_version(&()),
        "kind": ProfilingSession::kind(&()),
        "metadata": {"resourceVersion": session.resource_version()},
        "status": status,
    });
    let params = PatchParams::apply(OPERATOR_FIELD_MANAGER).force();
    let (name, patch) = (session.name_any(), Patch::Apply(&patch));
    let written = sessions.patch_status(&name, &params, &patch);
    ignore_not_found(bounded("writing a session's status", written).await)
}

async fn announce(session: &ProfilingSession, status: &ProfilingSessionStatus, context: &Context) {
    for event in news(session.status.as_ref(), status) {
        if let Err(error) = context.events.publish(session, &event).await {
            context.metrics.events_failed.inc();
            tracing::warn!(session = session.name_any(), reason = event.reason, %error, "cannot publish an event");
        }
    }
}

/// What a person would act on or wait for: targets found or not, and the end. A session that ends
/// for want of targets says so once.
fn news(before: Option<&ProfilingSessionStatus>, now: &ProfilingSessionStatus) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for (type_, action) in [
        (SessionCondition::TargetsFound, "SelectTargets"),
        (SessionCondition::Succeeded, "Profile"),
    ] {
        let find = |status: &ProfilingSessionStatus| status.condition(type_).cloned();
        let Some(condition) = find(now).filter(|condition| condition.status != "Unknown") else {
            continue;
        };
        let known = before
            .and_then(find)
            .is_some_and(|old| old.status == condition.status && old.reason == condition.reason);
        let text = events
            .iter()
            .any(|event| event.note.as_deref() == Some(condition.message.as_str()));
        if known || text {
            continue;
        }
        let patient = [SessionReason::WaitingForTargets, SessionReason::NamespaceLimit];
        let undecided = now.completion_time.is_none();
        let waits = undecided && patient.iter().any(|reason| condition.reason == reason.as_str());
        events.push(Event {
            type_: if condition.status == "True" || waits {
                EventType::Normal
            } else {
                EventType::Warning
            },
            reason: condition.reason,
            action: action.to_owned(),
            note: Some(condition.message),
            related: None,
        });
    }
    events
}

/// Says on the target pod who profiles it.
async fn tell_pod(session: &ProfilingSession, capture: &Capture, context: &Context) {
    let namespace = session.namespace().unwrap_or_default();
    let by = session.annotations().get(flopwatch_api::REQUESTED_BY_ANNOTATION);
    let schedule = session.labels().get(SCHEDULE_LABEL);
    let of_schedule = schedule.map_or_else(String::new, |schedule| format!(" of schedule {schedule}"));
    let event = Event {
        type_: EventType::Normal,
        reason: "ProfilingRequested".to_owned(),
        action: "Profile".to_owned(),
        note: Some(format!(
            "profiling of container {} requested by {} through session {}{of_schedule}",
            capture.spec.container_name,
            by.map_or("an unknown user", String::as_str),
            session.name_any()
        )),
        related: Some(ObjectReference {
            resource_version: None,
            ..capture.object_ref(&())
        }),
    };
    let pod = &capture.spec.pod_ref;
    publish_on(&namespace, &pod.name, &pod.uid, &event, context).await;
}

/// Says on the pod that a session copies that there is a copy of it, and for whom.
async fn tell_original(session: &ProfilingSession, copy: &Pod, context: &Context) {
    let copies = session.spec.target.replica_of.is_some();
    let of = copy.annotations().get(REPLICA_OF_ANNOTATION).filter(|_| copies);
    let Some((name, uid)) = of.and_then(|of| of.split_once('/')) else {
        return;
    };
    let namespace = session.namespace().unwrap_or_default();
    let by = session.annotations().get(flopwatch_api::REQUESTED_BY_ANNOTATION);
    let event = Event {
        type_: EventType::Normal,
        reason: "ReplicaCreated".to_owned(),
        action: "Profile".to_owned(),
        note: Some(format!(
            "pod {} is a copy of this one to profile, requested by {} through session {}",
            copy.name_any(),
            by.map_or("an unknown user", String::as_str),
            session.name_any()
        )),
        related: Some(ObjectReference {
            resource_version: None,
            ..copy.object_ref(&())
        }),
    };
    publish_on(&namespace, name, uid, &event, context).await;
}

/// Publishes an event on a pod, where that very pod is still there.
async fn publish_on(namespace: &str, name: &str, uid: &str, event: &Event, context: &Context) {
    let key = ObjectRef::<Pod>::new(name).within(namespace);
    let found = context.stores.pods.get(&key);
    let Some(pod) = found.filter(|pod| pod.metadata.uid.as_deref() == Some(uid)) else {
        return;
    };
    if let Err(error) = context.events.publish(pod.as_ref(), event).await {
        context.metrics.events_failed.inc();
        tracing::warn!(pod = pod.name_any(), %error, "cannot publish an event");
    }
}

#[cfg(test)]
pub(crate) mod tests;
