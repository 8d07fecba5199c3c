//! What to do about one session: a function of the session and of what is seen around it.

mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use flopwatch_api::capture::{Capture, CaptureSpec, CaptureTarget, PodReference, SessionReference};
use flopwatch_api::phase::Phase;
use flopwatch_api::reason::{SessionCondition, SessionReason};
use flopwatch_api::schedule::{
    HARDWARE_ANNOTATION, IMAGE_DIGEST_ANNOTATION, PROBABILITY_ANNOTATION, SCHEDULE_LABEL, SLOT_ANNOTATION,
    TRIGGER_ANNOTATION,
};
use flopwatch_api::session::{
    CaptureReference, MAX_CAPTURE_REFERENCES, PodTemplate, ProfilingSession, ProfilingSessionStatus, StopMode,
};
use flopwatch_api::{CAPTURE_FINALIZER, REQUESTED_BY_ANNOTATION, SESSION_ID_LABEL, SESSION_LABEL};
use jiff::Timestamp;
use k8s_controller::conditions::{self, ConditionStatus, DesiredCondition};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::core::DynamicObject;
use kube::{Resource as _, ResourceExt as _};
use sha2::{Digest as _, Sha256};

use crate::session::budget::Budget;
use crate::session::own_pod::{self, Attempt};
use crate::session::quota::Quota;
use crate::session::replica::ReplicaError;
use crate::session::summary::{Summary, shorten};
use crate::session::targets::{Lives, Selection, Target, left_out, not_prepared, select};
use crate::session::triggered::Forged;

/// Longest time between two looks at a session that has not ended: heals an event that a watch
/// missed.
const RESYNC_INTERVAL: Duration = Duration::from_mins(1);
/// Longest wait for the end of a retention, so that a changed clock does no harm for longer.
const MAX_WAIT: Duration = Duration::from_hours(1);

/// Annotations that captures have of sessions that a schedule made.
const OF_SCHEDULE: [&str; 5] = [
    SLOT_ANNOTATION,
    PROBABILITY_ANNOTATION,
    TRIGGER_ANNOTATION,
    IMAGE_DIGEST_ANNOTATION,
    HARDWARE_ANNOTATION,
];

/// What is seen around a session.
#[derive(Clone, Copy, Debug)]
pub struct World<'a> {
    /// Time of the API server.
    pub now: Timestamp,
    /// Pods of the session's namespace.
    pub pods: &'a [Arc<Pod>],
    /// The session's captures.
    pub captures: &'a [Arc<Capture>],
    /// Whether new captures are suspended.
    pub suspended: bool,
    /// What the namespace may have at once, and has.
    pub quota: Quota,
    /// What the captures of the cluster leave of the writes of statuses that it allows.
    pub budget: Budget,
    /// The result of creating the session's own pod in this pass.
    pub attempt: Option<&'a Attempt>,
    /// The template of a copy, for a session that makes one; or why there is none. None where the
    /// copy is there, or none is made.
    pub replica: Option<&'a Result<PodTemplate, ReplicaError>>,
    /// The kernels that another session found, for one that asks for them; or why there are none.
    pub top_kernels: Result<&'a [String], &'a str>,
    /// What speaks against a session that says that an alert made it; None where nothing does.
    pub forged: Option<&'a Forged>,
    /// An id that no session of the cluster has.
    pub fresh_id: &'a str,
}

/// What to do, in this order: create, stop, write the status, delete.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The session's own pod to make. What came of it ([`World::attempt`]) decides how the pass
    /// goes on.
    pub create_pod: Option<Box<DynamicObject>>,
    /// The session's own pod to delete: name and UID.
    pub remove_pod: Option<(String, String)>,
    /// Captures to make.
    pub create: Vec<Capture>,
    /// Captures to tell to stop.
    pub stop: Vec<(Arc<Capture>, StopMode)>,
    /// The status as it should be.
    pub status: ProfilingSessionStatus,
    /// Shortest time since the last such status, where it only tells how captures go on: it may
    /// wait, and be merged with what comes meanwhile. None: it is written at once.
    pub merge: Option<Duration>,
    /// Whether the retention is over.
    pub expired: bool,
    /// Whether this step cannot be taken back (captures are made, the session ends): it must rest
    /// on what the API server says now, not on a cache that may lag.
    pub decisive: bool,
    /// Look again after this long even if nothing changes.
    pub again: Option<Duration>,
}

/// Plans one step.
pub fn plan(session: &ProfilingSession, world: &World<'_>) -> Plan {
    let old = session.status.clone().unwrap_or_default();
    let mut step = PlanBuilder {
        session,
        world,
        status: old,
    };
    step.status.observed_generation = session.metadata.generation;
    if let Some(Time(completed)) = step.status.completion_time {
        return step.retain(completed);
    }
    if step.status.requested_by.is_none() {
        step.status.requested_by = session
            .annotations()
            .get(REQUESTED_BY_ANNOTATION)
            .map(|user| user.chars().take(512).collect());
    }
    if step.status.id.is_none() {
        return match world.forged {
            Some(forged) => step.refuse(forged),
            None => step.begin(),
        };
    }
    let chosen = is_true(&step.status, SessionCondition::TargetsFound);
    if chosen || (session.spec.stop.is_some() && !world.captures.is_empty()) {
        step.follow()
    } else if let Some(stop) = session.spec.stop {
        let reason = if stop == StopMode::Discard {
            SessionReason::Discarded
        } else {
            SessionReason::Failed
        };
        step.end_without_captures(
            SessionReason::WaitingForTargets,
            reason,
            "the session was stopped before a capture was made",
        )
    } else if world.suspended && step.own_pod().is_none() {
        step.wait(
            SessionReason::CapturesSuspended,
            "new captures are suspended in this cluster".to_owned(),
        )
    } else if session.spec.target.makes_pod() {
        step.take_own_pod()
    } else {
        step.choose()
    }
}

struct PlanBuilder<'a> {
    session: &'a ProfilingSession,
    world: &'a World<'a>,
    status: ProfilingSessionStatus,
}

impl PlanBuilder<'_> {
    /// The first step: an id, and every condition.
    fn begin(mut self) -> Plan {
        self.status.id = Some(self.world.fresh_id.to_owned());
        self.set(
            SessionCondition::Accepted,
            ConditionStatus::True,
            SessionReason::Accepted,
            "the request is understood".to_owned(),
        );
        self.set(
            SessionCondition::TargetsFound,
            ConditionStatus::Unknown,
            SessionReason::Progressing,
            String::new(),
        );
        self.set(
            SessionCondition::Capturing,
            ConditionStatus::False,
            SessionReason::Pending,
            String::new(),
        );
        self.set(
            SessionCondition::Succeeded,
            ConditionStatus::Unknown,
            SessionReason::Progressing,
            String::new(),
        );
        Plan {
            status: self.status,
            again: Some(RESYNC_INTERVAL),
            ..Plan::default()
        }
    }

    /// Ends a session that is not what it says it is.
    fn refuse(mut self, forged: &Forged) -> Plan {
        self.status.id = Some(self.world.fresh_id.to_owned());
        let (reason, message) = (SessionReason::Refused, forged.to_string());
        self.set(
            SessionCondition::Accepted,
            ConditionStatus::False,
            reason,
            message.clone(),
        );
        self.end_without_captures(reason, SessionReason::Failed, &message)
    }

    /// Looks for targets.
    fn choose(self) -> Plan {
        let namespace = self.session.namespace().unwrap_or_default();
        let kept: BTreeSet<String> = self
            .world
            .captures
            .iter()
            .map(|capture| capture.spec.pod_ref.uid.clone())
            .collect();
        let targets = match select(
            &self.session.spec.target,
            Lives::of(self.session.spec.profiler.type_),
            &namespace,
            self.world.pods,
            &kept,
        ) {
            Selection::Found(targets) => targets,
            // A pass was cut off after it made captures: they are the choice.
            _ if !kept.is_empty() => Vec::new(),
            Selection::Waiting(message) => return self.wait(SessionReason::WaitingForTargets, message),
            Selection::Impossible { reason, message } => {
                return self.end_without_captures(reason, SessionReason::Failed, &message);
            }
        };
        // What a pass that was cut off had begun was admitted as a whole.
        if kept.is_empty()
            && let Err(over) = admit(self.world.quota, targets.len())
        {
            return match over {
                Over::Now(message) => self.wait(SessionReason::NamespaceLimit, message),
                Over::Ever(message) => {
                    self.end_without_captures(SessionReason::NamespaceLimit, SessionReason::Failed, &message)
                }
            };
        }
        let note = left_out(&self.session.spec.target, self.world.pods, &targets)
            .filter(|_| !targets.is_empty())
            .or_else(|| not_prepared(self.world.pods, &targets));
        self.make_captures(&targets, note)
    }

    /// Makes captures of what was chosen.
    fn make_captures(mut self, targets: &[Target], note: Option<String>) -> Plan {
        let existing: BTreeSet<String> = self.world.captures.iter().map(|capture| capture.name_any()).collect();
        let session = self.session.name_any();
        let mut budget = self.world.budget;
        let create: Vec<Capture> = targets
            .iter()
            .map(|target| (capture_name(&session, target), target))
            .filter(|(name, _)| !existing.contains(name))
            .map(|(name, target)| self.capture(&name, target, budget.take()))
            .collect();
        let mut summary = Summary::of(self.world.captures, 0);
        let made = i32::try_from(create.len()).unwrap_or(i32::MAX);
        summary.counts.captures = summary.counts.captures.saturating_add(made);
        summary.counts.active = summary.counts.active.saturating_add(made);
        for capture in &create {
            if summary.references.len() < MAX_CAPTURE_REFERENCES {
                summary.references.push(CaptureReference {
                    name: capture.name_any(),
                    pod_name: capture.spec.pod_ref.name.clone(),
                    container_name: capture.spec.container_name.clone(),
                    succeeded: "Unknown".to_owned(),
                    reason: SessionReason::Pending.to_string(),
                });
            }
        }
        let count = summary.counts.captures;
        let mut message = if count == 1 {
            "1 container".to_owned()
        } else {
            format!("{count} containers")
        };
        if let Some(why) = note {
            message = format!("{message}; {why}");
        }
        self.set(
            SessionCondition::TargetsFound,
            ConditionStatus::True,
            SessionReason::TargetsFound,
            message,
        );
        self.show(&summary);
        Plan {
            create,
            status: self.status,
            decisive: true,
            again: Some(RESYNC_INTERVAL),
            ..Plan::default()
        }
    }

    /// Follows the captures there are.
    fn follow(mut self) -> Plan {
        let summary = Summary::of(self.world.captures, self.status.counts.captures);
        let stop = self.session.spec.stop.map(|mode| {
            let live = self
                .world
                .captures
                .iter()
                .filter(|capture| !Phase::of(capture).has_ended() && capture.spec.stop != Some(mode));
            live.map(|capture| (Arc::clone(capture), mode)).collect()
        });
        let follows = is_true(&self.status, SessionCondition::TargetsFound);
        if !follows {
            let message = format!("{} containers", summary.counts.captures);
            self.set(
                SessionCondition::TargetsFound,
                ConditionStatus::True,
                SessionReason::TargetsFound,
                message,
            );
        }
        self.show(&summary);
        let ended = summary.has_ended();
        if ended {
            let (reason, message) = summary.verdict(self.session.spec.stop);
            self.end(reason, message);
        }
        Plan {
            remove_pod: self.replica().filter(|_| ended),
            merge: self.slowest().filter(|_| follows && !ended && self.has_seen_request()),
            stop: stop.unwrap_or_default(),
            decisive: ended,
            again: Some(if ended { self.retention() } else { RESYNC_INTERVAL }),
            status: self.status,
            ..Plan::default()
        }
    }

    /// The longest time between two writes of the status of a capture that has not ended: so
    /// sessions are never written more often than their captures.
    fn slowest(&self) -> Option<Duration> {
        let live = self
            .world
            .captures
            .iter()
            .filter(|capture| !Phase::of(capture).has_ended());
        live.map(|capture| capture.spec.status_interval()).max()
    }

    /// Whether the status that is there was determined from the request as it is now.
    fn has_seen_request(&self) -> bool {
        let old = self.session.status.as_ref();
        old.is_some_and(|old| old.observed_generation == self.session.metadata.generation)
    }

    /// Waits for targets until the deadline.
    fn wait(mut self, reason: SessionReason, message: String) -> Plan {
        let waited = self
            .session
            .creation_timestamp()
            .map_or(Duration::ZERO, |Time(created)| since(created, self.world.now));
        let patience = Duration::from_secs(u64::try_from(self.session.spec.start_deadline_seconds).unwrap_or(0));
        if waited >= patience {
            let message = format!("{message}; waited {} s (spec.startDeadlineSeconds)", patience.as_secs());
            let found = if reason == SessionReason::WaitingForTargets {
                SessionReason::NoTargets
            } else {
                reason
            };
            return self.end_without_captures(found, SessionReason::Failed, &message);
        }
        self.set(SessionCondition::TargetsFound, ConditionStatus::False, reason, message);
        let again = patience.saturating_sub(waited).min(RESYNC_INTERVAL) + Duration::from_secs(1);
        Plan {
            status: self.status,
            again: Some(again),
            ..Plan::default()
        }
    }

    /// Ends. A pod of the session's own that did not run to its end goes: nobody will look at it.
    fn end_without_captures(mut self, found: SessionReason, reason: SessionReason, message: &str) -> Plan {
        let unfinished = || self.own_pod().and_then(|pod| own_pod::unfinished(pod));
        let remove_pod = self.replica().or_else(unfinished);
        self.set(
            SessionCondition::TargetsFound,
            ConditionStatus::False,
            found,
            message.to_owned(),
        );
        self.end(reason, message.to_owned());
        Plan {
            remove_pod,
            decisive: true,
            again: Some(self.retention()),
            status: self.status,
            ..Plan::default()
        }
    }

    fn end(&mut self, reason: SessionReason, message: String) {
        let now = Timestamp::from_second(self.world.now.as_second()).unwrap_or(self.world.now);
        self.status.completion_time = Some(Time(now));
        self.set(
            SessionCondition::Capturing,
            ConditionStatus::False,
            SessionReason::Finished,
            String::new(),
        );
        let succeeded = ConditionStatus::from(reason == SessionReason::Succeeded);
        self.set(SessionCondition::Succeeded, succeeded, reason, message);
    }

    /// Shows how the captures stand.
    fn show(&mut self, summary: &Summary) {
        self.status.counts = summary.counts;
        self.status.captures.clone_from(&summary.references);
        if summary.url.is_some() {
            self.status.url.clone_from(&summary.url);
        }
        if summary.started > 0 {
            let message = format!(
                "{} of {} captures are at work",
                summary.started, summary.counts.captures
            );
            self.set(
                SessionCondition::Capturing,
                ConditionStatus::True,
                SessionReason::Capturing,
                message,
            );
        } else if !summary.has_ended() {
            self.set(
                SessionCondition::Capturing,
                ConditionStatus::False,
                SessionReason::Pending,
                String::new(),
            );
        }
        if !summary.has_ended() {
            let ended = summary.counts.captures - summary.counts.active;
            let message = format!("{ended} of {} captures have ended", summary.counts.captures);
            self.set(
                SessionCondition::Succeeded,
                ConditionStatus::Unknown,
                SessionReason::Progressing,
                message,
            );
        }
    }

    /// Keeps an ended session until its retention is over. Its status stays as it ended.
    fn retain(self, completed: Timestamp) -> Plan {
        let kept = since(completed, self.world.now);
        let retention = self.retention_seconds();
        let expired = kept >= retention;
        let again = (!expired).then(|| (retention.saturating_sub(kept) + Duration::from_secs(1)).min(MAX_WAIT));
        Plan {
            // The pass that ended the session may have been cut off before it deleted the copy.
            remove_pod: self.replica(),
            status: self.status,
            expired,
            again,
            ..Plan::default()
        }
    }

    fn retention(&self) -> Duration {
        (self.retention_seconds() + Duration::from_secs(1)).min(MAX_WAIT)
    }

    fn retention_seconds(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.session.spec.retention.ttl_seconds_after_finished).unwrap_or(0))
    }

    fn set(&mut self, condition: SessionCondition, status: ConditionStatus, reason: SessionReason, message: String) {
        let desired = DesiredCondition::new(condition.as_str(), status, reason.as_str(), shorten(message))
            .observed_generation(self.session.metadata.generation);
        // Whether the status as a whole changed is what decides about writing it.
        let _change = conditions::set(&mut self.status.conditions, desired);
    }

    fn capture(&self, name: &str, target: &Target, status_interval_seconds: i32) -> Capture {
        let id = self.status.id.clone().unwrap_or_default();
        let session_name = self.session.name_any();
        let captured = CaptureTarget {
            session_ref: SessionReference {
                name: session_name.clone(),
                id: id.clone(),
            },
            node_name: target.node_name.clone(),
            pod_ref: PodReference {
                name: target.pod_name.clone(),
                uid: target.pod_uid.clone(),
            },
            container_name: target.container.clone(),
        };
        let spec = CaptureSpec::of(&self.session.spec, captured, status_interval_seconds);
        let mut capture = Capture::new(name, spec);
        let schedule = self.session.labels().get(SCHEDULE_LABEL);
        let labels = [
            (SESSION_LABEL, session_name.as_str()),
            (SESSION_ID_LABEL, id.as_str()),
            ("app.kubernetes.io/managed-by", "flopwatch"),
        ];
        let labels = labels
            .into_iter()
            .chain(schedule.map(|schedule| (SCHEDULE_LABEL, schedule.as_str())));
        // Whoever sums captures up divides by the probability, and needs no session for it.
        let of_schedule = OF_SCHEDULE.iter().filter_map(|key| {
            let value = self.session.annotations().get(*key)?;
            Some(((*key).to_owned(), value.clone()))
        });
        let annotations: BTreeMap<String, String> = of_schedule.collect();
        capture.metadata = ObjectMeta {
            namespace: self.session.namespace(),
            annotations: (!annotations.is_empty()).then_some(annotations),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()),
            finalizers: Some(vec![CAPTURE_FINALIZER.to_owned()]),
            owner_references: self.session.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..capture.metadata
        };
        capture
    }
}

/// Why captures have no room in a namespace.
enum Over {
    /// Others must end first.
    Now(String),
    /// There never will be.
    Ever(String),
}

/// Whether `wanted` more captures have room in the namespace.
fn admit(quota: Quota, wanted: usize) -> Result<(), Over> {
    let Some(limit) = quota.limit else { return Ok(()) };
    if wanted > limit {
        return Err(Over::Ever(format!(
            "the session asks for {wanted} captures, and a namespace may have {limit} at once: lower spec.target.maxPods or name fewer containers"
        )));
    }
    if quota.taken.saturating_add(wanted) > limit {
        // Without the number at work: each end would have to be told to all that wait.
        return Err(Over::Now(format!(
            "the namespace may have {limit} captures at once: the session asks for {wanted} and waits until others have ended"
        )));
    }
    Ok(())
}

/// Name of the capture of `target`: the session's name and ten hexadecimal digits of the
/// container's identity, so that a second try to make it meets the first.
fn capture_name(session: &str, target: &Target) -> String {
    let mut digits = hex::encode(Sha256::digest(format!("{}/{}", target.pod_uid, target.container)));
    digits.truncate(10);
    format!("{session}-{digits}")
}

/// Whether a session still looks for targets.
pub fn is_choosing(session: &ProfilingSession) -> bool {
    let Some(status) = &session.status else { return true };
    status.completion_time.is_none() && !is_true(status, SessionCondition::TargetsFound)
}

fn is_true(status: &ProfilingSessionStatus, condition: SessionCondition) -> bool {
    status.condition(condition).is_some_and(|found| found.status == "True")
}

fn since(then: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(then)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
