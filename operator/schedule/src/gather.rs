//! What a plan is made of, out of what the API server has.

mod pods;
mod sessions;
mod windows;

use std::collections::BTreeMap;
use std::sync::Arc;

use flopwatch_api::capture::Capture;
use flopwatch_api::reason::{ScheduleCondition, ScheduleReason};
use flopwatch_api::schedule::{ProfilingSchedule, ProfilingScheduleSpec, SCHEDULE_LABEL, TRIGGER_ANNOTATION, Trigger};
use flopwatch_api::session::ProfilingSession;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod as RunningPod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;

use crate::facts::Facts;
use crate::history::History;
use crate::identity::Identity;
use crate::ledger::Ledger;
use crate::name::triggered_session_name;
use crate::pod::Pod;
use crate::random::Draws;
use crate::slot::seconds_later;
use crate::world::ScheduleError;

pub use pods::hardware;

/// What the API server has of a schedule and its surroundings. Objects of other namespaces, and of
/// other schedules, are left out.
#[derive(Clone, Copy)]
pub struct Objects<'a> {
    /// Schedule that is planned.
    pub schedule: &'a ProfilingSchedule,
    /// Pods of its namespace.
    pub pods: &'a [Arc<RunningPod>],
    /// Sessions of its namespace.
    pub sessions: &'a [Arc<ProfilingSession>],
    /// Captures of its namespace.
    pub captures: &'a [Arc<Capture>],
    /// The [`hardware`] of a node, by its name; None where it is not known.
    pub hardware: &'a dyn Fn(&str) -> Option<String>,
}

/// What a plan is made of.
#[derive(Clone, Debug)]
pub struct Gathered {
    /// Which schedule it is.
    pub identity: Identity,
    /// The pods that can be profiled.
    pub pods: Vec<Pod>,
    /// How many more pods run that the selector matches, and have no container to profile: none
    /// asks for a GPU, and none was prepared.
    pub without_container: usize,
    /// What the schedule did so far.
    pub history: History,
    /// What that cost.
    pub ledger: Ledger,
    /// `status.ledgerSince`, as it is to be.
    pub ledger_since: Timestamp,
}

impl Gathered {
    /// Reads the objects. `now` is when the plan is made.
    pub fn new(objects: &Objects<'_>, now: Timestamp) -> Result<Self, ScheduleError> {
        let schedule = objects.schedule;
        let identity = identity(schedule, now);
        let ledger_since = ledger_since(schedule, identity.created, now);
        let found = pods::matching(objects)?;
        let sessions = objects.sessions.iter().map(AsRef::as_ref);
        let own: BTreeMap<String, &ProfilingSession> = sessions
            .filter(|session| is_of(schedule, session))
            .filter_map(|session| Some((session.uid()?, session)))
            .collect();
        let captures = sessions::captures_of(&own, objects.captures);
        let windows = windows::of(&own, &captures);
        // What the sessions' own retention has deleted is not there to be counted.
        let retention = i64::from(schedule.spec.session.retention.ttl_seconds_after_finished);
        let remembered = seconds_later(now, -retention);
        let ledger = Ledger::new(windows.values(), &found.pods, ledger_since.max(remembered), now);
        let history = History {
            planned_until: planned_until(schedule, now),
            sessions: sessions::read(&own, &captures, &windows),
        };
        Ok(Self {
            identity,
            pods: found.pods,
            without_container: found.without_container,
            history,
            ledger,
            ledger_since,
        })
    }

    /// The facts that a plan is made from, with this spec and time.
    pub fn facts<'a>(&'a self, spec: &'a ProfilingScheduleSpec, now: Timestamp) -> Facts<'a> {
        Facts {
            spec,
            identity: &self.identity,
            pods: &self.pods,
            history: &self.history,
            ledger: &self.ledger,
            now,
        }
    }
}

/// Which schedule it is. One without a time of its creation is taken for one of `now`.
fn identity(schedule: &ProfilingSchedule, now: Timestamp) -> Identity {
    Identity {
        name: schedule.name_any(),
        uid: schedule.uid().unwrap_or_default(),
        created: schedule.creation_timestamp().map_or(now, |Time(created)| created),
    }
}

/// Until when slots are decided. While no sessions are made nobody writes it, and what passes then
/// is not caught up.
fn planned_until(schedule: &ProfilingSchedule, now: Timestamp) -> Option<Timestamp> {
    let status = schedule.status.as_ref()?;
    let ready = status.condition(ScheduleCondition::Ready);
    let suspended = [ScheduleReason::Suspended, ScheduleReason::CapturesSuspended];
    if ready.is_some_and(|ready| suspended.iter().any(|reason| reason.as_str() == ready.reason)) {
        return Some(now);
    }
    status.planned_until.as_ref().map(|Time(at)| *at)
}

/// Since when windows are accounted: the status says it of the spec that it was determined from.
fn ledger_since(schedule: &ProfilingSchedule, created: Timestamp, now: Timestamp) -> Timestamp {
    let Some(status) = &schedule.status else {
        return created;
    };
    match &status.ledger_since {
        Some(Time(since)) if status.observed_generation == schedule.metadata.generation => *since,
        _ => now,
    }
}

/// The trigger of a schedule that made a session, by what the session says of itself: its alert has
/// the trigger's name, and its own name is that of the trigger's session of its number. None where
/// the schedule has no such trigger, or the session is not its own.
pub fn trigger_of_session<'a>(schedule: &'a ProfilingSchedule, session: &ProfilingSession) -> Option<&'a Trigger> {
    let (alert, _) = session.annotations().get(TRIGGER_ANNOTATION)?.rsplit_once('/')?;
    let now = Timestamp::UNIX_EPOCH;
    let number = sessions::triggered(session, now)?.number;
    let identity = identity(schedule, now);
    let draws = Draws::of(&identity.uid);
    let name = session.name_any();
    let made = |trigger: &&Trigger| {
        trigger.alert.name == alert && triggered_session_name(&identity, &draws, trigger, number) == name
    };
    schedule
        .spec
        .triggers
        .iter()
        .find(made)
        .filter(|_| is_of(schedule, session))
}

/// Whether that very schedule made a session; one of the same name that was deleted had another
/// UID.
pub fn is_of(schedule: &ProfilingSchedule, session: &ProfilingSession) -> bool {
    let named = session.labels().get(SCHEDULE_LABEL) == schedule.metadata.name.as_ref();
    let uid = schedule.metadata.uid.as_deref();
    let owned = || {
        session
            .owner_references()
            .iter()
            .any(|owner| Some(owner.uid.as_str()) == uid)
    };
    named && session.metadata.namespace == schedule.metadata.namespace && owned()
}

#[cfg(test)]
mod tests;
