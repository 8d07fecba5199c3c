//! Carries out a schedule's plan: sessions are stopped, created, counted in one write of the
//! status, and deleted once the schedule keeps them no more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use flopwatch_api::reason::ScheduleCondition;
use flopwatch_api::schedule::{ProfilingSchedule, ProfilingScheduleSpec, ProfilingScheduleStatus, SCHEDULE_LABEL};
use flopwatch_api::session::ProfilingSession;
use flopwatch_schedule::{Class, Gathered, Objects, Plan, Run, ScheduleError, hardware, plan, surplus};
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use k8s_controller::events::{Event, EventType};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use kube::api::Api;
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;

use crate::controller::context::Context;
use crate::deadline::{CallError, bounded};
use crate::schedule::calls::{create, delete, stop, write};
use crate::schedule::series::RunResult;
use crate::schedule::session::session;
use crate::schedule::status::{self, Outcome, Urgency};

/// Longest time between two looks at a schedule: heals an event that a watch missed.
const RESYNC_INTERVAL: Duration = Duration::from_mins(1);
/// Shortest time between two writes of a status that change only what was observed.
const STATUS_INTERVAL: Duration = Duration::from_secs(10);
/// Time after which a pass that had more to do than one may do is followed by the next.
const NEXT_PASS_DELAY: Duration = Duration::from_millis(200);
/// Most sessions that one pass creates; also the most that it stops, and the most that it deletes.
const MAX_SESSIONS_PER_PASS: usize = 500;
/// Most calls of the API server that one pass has under way at once.
const MAX_CONCURRENT_CALLS: usize = 8;

/// One pass over a schedule.
pub async fn reconcile(schedule: Arc<ProfilingSchedule>, context: Arc<Context>) -> Action {
    if schedule.metadata.deletion_timestamp.is_some() {
        return Action::await_change();
    }
    // Times are written in whole seconds, so they are decided in whole seconds.
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap_or(Timestamp::UNIX_EPOCH);
    let pass = Box::pin(pass(&schedule, &context, now));
    context.pass("schedule", schedule.as_ref(), pass).await
}

/// The plan of a pass, with the facts that it was made from.
struct PlannedPass {
    /// The spec that was planned by: suspended where the cluster's captures are.
    spec: ProfilingScheduleSpec,
    gathered: Gathered,
    plan: Plan,
}

impl PlannedPass {
    /// Plans from what the watches hold.
    fn new(schedule: &ProfilingSchedule, context: &Context, now: Timestamp) -> Result<Self, ScheduleError> {
        let stores = &context.stores;
        let namespace = schedule.metadata.namespace.as_deref();
        let pods = stores
            .pods
            .state_filter(|pod| pod.metadata.namespace.as_deref() == namespace);
        let of_schedule = |meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta| {
            let labels = meta.labels.as_ref();
            meta.namespace.as_deref() == namespace
                && labels.and_then(|labels| labels.get(SCHEDULE_LABEL)) == schedule.metadata.name.as_ref()
        };
        let sessions = stores.sessions.state_filter(|session| of_schedule(&session.metadata));
        let captures = stores.captures.state_filter(|capture| of_schedule(&capture.metadata));
        let hardware = |node: &str| {
            stores
                .nodes
                .get(&ObjectRef::<Node>::new(node))
                .and_then(|node| hardware(&node))
        };
        let gathered = Gathered::new(
            &Objects {
                schedule,
                pods: &pods,
                sessions: &sessions,
                captures: &captures,
                hardware: &hardware,
            },
            now,
        )?;
        let mut spec = schedule.spec.clone();
        spec.suspend |= context.suspension.get();
        let plan = plan(&gathered.facts(&spec, now))?;
        Ok(Self { spec, gathered, plan })
    }

    /// Whether the plan does or counts something that must be done or counted once.
    fn decides(&self) -> bool {
        !self.plan.runs.is_empty() || !self.plan.stops.is_empty() || !self.plan.skipped.is_empty()
    }

    /// The class of the pod of each run, by the pod's UID.
    fn classes(&self) -> BTreeMap<&str, &Class> {
        let pods = self.gathered.pods.iter();
        pods.map(|pod| (pod.uid.as_str(), &pod.class)).collect()
    }
}

async fn pass(cached: &ProfilingSchedule, context: &Context, now: Timestamp) -> Result<Action, CallError> {
    let namespace = cached.namespace().unwrap_or_default();
    let schedules: Api<ProfilingSchedule> = Api::namespaced(context.client.clone(), &namespace);
    match PlannedPass::new(cached, context, now) {
        Ok(planned) if !planned.decides() => return carry_out(cached, &planned, &schedules, context, now).await,
        Ok(_) => {}
        Err(error) => return refuse(cached, &error, &schedules, context, now).await,
    }
    // What follows cannot be taken back, so it rests on what the API server says now.
    let fresh = bounded("reading the schedule", schedules.get_opt(&cached.name_any())).await?;
    let Some(fresh) = fresh.filter(|fresh| fresh.metadata.uid == cached.metadata.uid) else {
        return Ok(Action::await_change());
    };
    if fresh.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    match PlannedPass::new(&fresh, context, now) {
        Ok(planned) => carry_out(&fresh, &planned, &schedules, context, now).await,
        Err(error) => refuse(&fresh, &error, &schedules, context, now).await,
    }
}

async fn carry_out(
    schedule: &ProfilingSchedule,
    planned: &PlannedPass,
    schedules: &Api<ProfilingSchedule>,
    context: &Context,
    now: Timestamp,
) -> Result<Action, CallError> {
    let (namespace, name) = (schedule.namespace().unwrap_or_default(), schedule.name_any());
    let sessions: Api<ProfilingSession> = Api::namespaced(context.client.clone(), &namespace);
    for session in planned.plan.stops.iter().take(MAX_SESSIONS_PER_PASS) {
        stop(session, &sessions).await?;
    }
    let (made, failed) = create_sessions(schedule, planned, &sessions, context, now).await;
    let refused = failed
        .as_ref()
        .and_then(CallError::refusal)
        .map(|(_, message)| message.to_owned());
    if planned.plan.runs.len() > MAX_SESSIONS_PER_PASS || (failed.is_some() && refused.is_none()) {
        // Nothing is decided: the next pass knows what this one made.
        return failed.map_or_else(|| Ok(Action::requeue(NEXT_PASS_DELAY)), Err);
    }
    let outcome = Outcome {
        gathered: &planned.gathered,
        plan: &planned.plan,
        made: &made,
        refused: refused.as_deref(),
        captures_suspended: context.suspension.get(),
        now,
    };
    let status = status::followed(schedule, &outcome);
    let wait = match status::urgency(schedule.status.as_ref(), &status, planned.decides(), now) {
        Urgency::Never => None,
        Urgency::Soon => {
            let wait = context.pace.wait(&schedule.uid().unwrap_or_default(), STATUS_INTERVAL);
            if wait.is_none() {
                write(schedule, &status, schedules).await?;
            }
            wait
        }
        Urgency::Now => {
            write(schedule, &status, schedules).await?;
            announce(schedule, &status, context).await;
            None
        }
    };
    context.metrics.schedules.show(&namespace, &name, &status);
    if let Some(failed) = failed {
        return Err(failed);
    }
    context
        .metrics
        .schedules
        .count_skipped(&namespace, &name, &planned.plan.skipped);
    let uid = schedule.uid().unwrap_or_default();
    for news in context
        .announced_classes
        .news(&uid, &planned.spec, &planned.gathered.ledger, now)
    {
        publish(schedule, EventType::Warning, news.reason.as_str(), news.note, context).await;
    }
    let more = delete_surplus(schedule, planned, &sessions, context, now).await?;
    Ok(requeue(planned.plan.next, wait, more))
}

/// Says that a schedule cannot be followed, and waits until it is changed.
async fn refuse(
    schedule: &ProfilingSchedule,
    error: &ScheduleError,
    schedules: &Api<ProfilingSchedule>,
    context: &Context,
    now: Timestamp,
) -> Result<Action, CallError> {
    let status = status::invalid(schedule, error);
    if status::urgency(schedule.status.as_ref(), &status, false, now) != Urgency::Never {
        write(schedule, &status, schedules).await?;
        announce(schedule, &status, context).await;
    }
    Ok(Action::await_change())
}

/// Creates the planned sessions, and gives the names of those that exist now and the first error. A
/// session that exists already was created by another controller, or by a pass that was cut off:
/// nothing is left to do, since its name is that of this slot and pod alone.
async fn create_sessions(
    schedule: &ProfilingSchedule,
    planned: &PlannedPass,
    sessions: &Api<ProfilingSession>,
    context: &Context,
    now: Timestamp,
) -> (Vec<String>, Option<CallError>) {
    let classes = planned.classes();
    // Each call owns what it sends: the pass is spawned, and borrows in a stream of calls would not
    // live long enough for that.
    let mut calls = Vec::new();
    for run in planned.plan.runs.iter().take(MAX_SESSIONS_PER_PASS) {
        if let Some(class) = classes.get(run.pod_uid.as_str()) {
            calls.push((run.clone(), session(schedule, run, class, now), sessions.clone()));
        }
    }
    let calls = calls
        .into_iter()
        .map(|(run, session, sessions)| async move { (run, create(&session, &sessions).await) });
    let results: Vec<(Run, Result<RunResult, CallError>)> =
        stream::iter(calls).buffered(MAX_CONCURRENT_CALLS).collect().await;
    let (namespace, name) = (schedule.namespace().unwrap_or_default(), schedule.name_any());
    let mut made = Vec::new();
    let mut failed = None;
    for (run, result) in results {
        let counted = *result.as_ref().unwrap_or(&RunResult::Failed);
        context.metrics.schedules.count_run(&namespace, &name, counted);
        match result {
            Ok(result) => {
                let (session, pod) = (&run.session_name, &run.pod_name);
                tracing::info!(namespace, schedule = name, session, pod, slot = %run.slot, ?result, "made a session");
                made.push(session.clone());
            }
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    (made, failed)
}

/// Deletes sessions that the schedule keeps no more, and answers whether there are more of them.
async fn delete_surplus(
    schedule: &ProfilingSchedule,
    planned: &PlannedPass,
    sessions: &Api<ProfilingSession>,
    context: &Context,
    now: Timestamp,
) -> Result<bool, CallError> {
    let names = surplus(&planned.gathered.facts(&planned.spec, now));
    let namespace = schedule.namespace().unwrap_or_default();
    let mut calls = Vec::new();
    for name in names.iter().take(MAX_SESSIONS_PER_PASS) {
        let key = ObjectRef::<ProfilingSession>::new(name).within(&namespace);
        // Only the one that was seen to have ended.
        let seen = context.stores.sessions.get(&key).and_then(|session| session.uid());
        calls.push((name.clone(), seen, sessions.clone()));
    }
    let calls = calls
        .into_iter()
        .map(|(name, uid, sessions)| async move { delete(&name, uid, &sessions).await });
    let results: Vec<Result<(), CallError>> = stream::iter(calls).buffered(MAX_CONCURRENT_CALLS).collect().await;
    results.into_iter().collect::<Result<(), CallError>>()?;
    Ok(names.len() > MAX_SESSIONS_PER_PASS)
}

/// Says on the schedule that it cannot be followed any more.
async fn announce(schedule: &ProfilingSchedule, status: &ProfilingScheduleStatus, context: &Context) {
    let ready = |status: &ProfilingScheduleStatus| status.condition(ScheduleCondition::Ready).cloned();
    let Some(now) = ready(status).filter(|condition| condition.status == "False") else {
        return;
    };
    let before = schedule.status.as_ref().and_then(ready);
    if before.is_some_and(|before| before.status == now.status && before.reason == now.reason) {
        return;
    }
    publish(schedule, EventType::Warning, &now.reason, now.message, context).await;
}

async fn publish(schedule: &ProfilingSchedule, type_: EventType, reason: &str, note: String, context: &Context) {
    let event = Event {
        type_,
        reason: reason.to_owned(),
        action: "Schedule".to_owned(),
        note: Some(note),
        related: None,
    };
    if let Err(error) = context.events.publish(schedule, &event).await {
        context.metrics.events_failed.inc();
        tracing::warn!(schedule = schedule.name_any(), reason, %error, "cannot publish an event");
    }
}

/// When the next pass runs: when there may be something to do, when the status may be written, and
/// after [`RESYNC_INTERVAL`] at the latest.
fn requeue(next: Option<Timestamp>, status: Option<Duration>, more: bool) -> Action {
    if more {
        return Action::requeue(NEXT_PASS_DELAY);
    }
    // The first whole second that is not before it.
    let next = next.map(|next| {
        let until = next.duration_since(Timestamp::now());
        Duration::try_from(until).unwrap_or_default() + Duration::from_secs(1)
    });
    let waits = next.into_iter().chain(status).chain([RESYNC_INTERVAL]);
    waits.min().map_or_else(Action::await_change, Action::requeue)
}

#[cfg(test)]
mod tests;
