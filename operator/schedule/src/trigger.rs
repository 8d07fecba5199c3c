//! Whether an alert makes a session, and which.
//!
//! The sessions of a trigger are numbered, and the number is in the name. Whoever makes the n-th has decided from the n before it. Where the API
//! server has one of that name already, somebody else decided at the same time: it is added to the history, and the alert is decided anew.
//! So cooldown and daily limit hold however many decide at once.

use std::collections::BTreeMap;

use flopwatch_api::schedule::{ConcurrencyPolicy, ProfilingScheduleSpec, Trigger};
use jiff::Timestamp;

use crate::blackout::Blackouts;
use crate::facts::Facts;
use crate::history::{DAY_SECONDS, Session, Triggered};
use crate::index::Index;
use crate::name::of_trigger;
use crate::pod::Pod;
use crate::random::Draws;
use crate::slot::seconds_later;
use crate::standing::{Standing, standing};
use crate::world::ScheduleError;

/// Label of an alert with its name.
const NAME_LABEL: &str = "alertname";

/// An alert that fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// A hash of them, which tells it from every other.
    pub fingerprint: String,
    /// Since when it fires: with the fingerprint that tells one firing from the next.
    pub started: Timestamp,
}

impl Alert {
    /// Its name.
    pub fn name(&self) -> &str {
        self.labels.get(NAME_LABEL).map_or("", String::as_str)
    }
}

/// What the pod turned out to be that an alert names.
#[derive(Clone, Copy, Debug)]
pub enum AlertedPod<'a> {
    /// No pod of that name runs in the schedule's namespace, or it is being deleted.
    Absent,
    /// The schedule's selector does not match it.
    NotSelected,
    /// A session would find no container in it.
    WithoutContainer,
    /// It can be profiled.
    Running(&'a Pod),
}

/// An alert, with the trigger that it matches and what it names.
#[derive(Clone, Copy, Debug)]
pub struct Alerted<'a> {
    /// The alert.
    pub alert: &'a Alert,
    /// One of the spec's triggers, as [`trigger_of`] finds it.
    pub trigger: &'a Trigger,
    /// The pod.
    pub pod: AlertedPod<'a>,
    /// Whether the schedule's pods lose more than the amortised budget, as its status says. The facts may have the alert's pod alone, and
    /// then say it of that pod.
    pub over_budget: bool,
}

/// What an alert makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<'a> {
    /// A session.
    Make(TriggeredRun<'a>),
    /// None, and why.
    Skip(TriggerSkip),
}

/// A session to make for an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggeredRun<'a> {
    /// Its name.
    pub session_name: String,
    /// How many sessions the trigger had made before.
    pub number: u64,
    /// The pod.
    pub pod: &'a Pod,
}

/// Why an alert makes no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TriggerSkip {
    /// The schedule is suspended.
    Suspended,
    /// No such pod runs.
    NoSuchPod,
    /// The schedule's selector does not match the pod.
    NotSelected,
    /// The pod has no container to profile.
    NoContainer,
    /// The alert has its session since it began to fire.
    AlreadyMade,
    /// The window would be open in one of `blackouts`.
    Blackout,
    /// The trigger made a session of the pod within `cooldownSeconds`.
    Cooldown,
    /// The trigger made `maximumPerDay` sessions in the last 24 hours.
    DailyLimit,
    /// Another session of the schedule profiles the pod, and `concurrencyPolicy` is not Allow.
    StillRunning,
    /// The pod was in windows for `captureSecondsPerPodPerDay` in the last 24 hours, or would be.
    PodDailyLimit,
    /// A window on a pod of its class failed or exceeded the budget: see `backoff`.
    BackedOff,
    /// More than two of the last ten windows on pods of its class failed.
    ClassSuspended,
    /// The pods lose more than the amortised budget.
    OverBudget,
    /// Nothing tells how fast pods of its class are, and `unknown` is Refuse.
    NoSensor,
}

/// Whether a pod can have that name. Labels of alerts are foreign words, and this one becomes a part of a path.
pub fn is_pod_name(name: &str) -> bool {
    let part = |part: &str| {
        let inside = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        !part.is_empty() && !part.starts_with('-') && !part.ends_with('-') && part.chars().all(inside)
    };
    name.len() <= 253 && name.split('.').all(part)
}

/// The first trigger of a schedule in `namespace` that an alert matches. Alerts of other namespaces match none.
pub fn trigger_of<'a>(spec: &'a ProfilingScheduleSpec, namespace: &str, alert: &Alert) -> Option<&'a Trigger> {
    let has = |label: &str, value: &str| alert.labels.get(label).is_some_and(|found| found == value);
    spec.triggers.iter().find(|trigger| {
        let wanted = &trigger.alert;
        has(NAME_LABEL, &wanted.name)
            && has(&trigger.target.namespace_label, namespace)
            && wanted.match_labels.iter().all(|(label, value)| has(label, value))
    })
}

/// Decides about an alert. Suspended schedules, blackouts, limits and the standing of the pod's class hold for alerts too. What spreads windows
/// over pods and time does not: neither the age of the pod nor its rest, nor a rate that is halved.
pub fn decide<'a>(facts: &Facts<'_>, alerted: &Alerted<'a>) -> Result<Decision<'a>, ScheduleError> {
    let Facts { spec, identity, .. } = *facts;
    if spec.suspend {
        return Ok(Decision::Skip(TriggerSkip::Suspended));
    }
    let pod = match alerted.pod {
        AlertedPod::Absent => return Ok(Decision::Skip(TriggerSkip::NoSuchPod)),
        AlertedPod::NotSelected => return Ok(Decision::Skip(TriggerSkip::NotSelected)),
        AlertedPod::WithoutContainer => return Ok(Decision::Skip(TriggerSkip::NoContainer)),
        AlertedPod::Running(pod) => pod,
    };
    let made = made_by(facts, alerted.trigger);
    if let Some(skip) = of_trigger_itself(facts, alerted, pod, &made)? {
        return Ok(Decision::Skip(skip));
    }
    if let Some(skip) = of_pod(facts, alerted.over_budget, pod) {
        return Ok(Decision::Skip(skip));
    }
    let last = made.iter().map(|(_, triggered)| triggered.number).max();
    let number = last.map_or(0, |last| last.saturating_add(1));
    Ok(Decision::Make(TriggeredRun {
        session_name: of_trigger(identity, &Draws::of(&identity.uid), alerted.trigger, number),
        number,
        pod,
    }))
}

/// What a trigger has done, as far as sessions that are still there tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerHistory {
    /// The trigger.
    pub trigger: Trigger,
    /// Sessions that it made in the last 24 hours.
    pub of_day: usize,
    /// When it made the last one.
    pub last: Option<Timestamp>,
}

/// What each trigger of the spec has done, in its order.
pub(crate) fn histories(facts: &Facts<'_>) -> Vec<TriggerHistory> {
    let triggers = facts.spec.triggers.iter();
    triggers
        .map(|trigger| {
            let made = made_by(facts, trigger);
            TriggerHistory {
                trigger: trigger.clone(),
                of_day: of_day(&made, facts.now),
                last: made.iter().map(|(_, of)| of.made).max(),
            }
        })
        .collect()
}

/// The sessions that a trigger made.
fn made_by<'a>(facts: &Facts<'a>, trigger: &Trigger) -> Vec<(&'a Session, &'a Triggered)> {
    let draws = Draws::of(&facts.identity.uid);
    let sessions = facts.history.sessions.iter();
    sessions
        .filter_map(|session| Some((session, session.trigger.as_ref()?)))
        .filter(|(session, of)| session.name == of_trigger(facts.identity, &draws, trigger, of.number))
        .collect()
}

fn is_within(triggered: &Triggered, seconds: i64, now: Timestamp) -> bool {
    seconds_later(triggered.made, seconds) > now
}

fn of_day(made: &[(&Session, &Triggered)], now: Timestamp) -> usize {
    made.iter().filter(|(_, of)| is_within(of, DAY_SECONDS, now)).count()
}

/// What the trigger itself says against a session, of what it `made`.
fn of_trigger_itself(
    facts: &Facts<'_>,
    alerted: &Alerted<'_>,
    pod: &Pod,
    made: &[(&Session, &Triggered)],
) -> Result<Option<TriggerSkip>, ScheduleError> {
    let Alerted { alert, trigger, .. } = *alerted;
    let window = i64::from(facts.spec.session.duration_seconds);
    let of_pod = || made.iter().filter(|(session, _)| session.pod_uid == pod.uid);
    if of_pod().any(|(_, of)| of.fingerprint == alert.fingerprint && of.started == alert.started) {
        return Ok(Some(TriggerSkip::AlreadyMade));
    }
    let blackouts = Blackouts::new(&facts.spec.blackouts).map_err(ScheduleError::Blackout)?;
    if !trigger.ignore_blackouts && blackouts.hold(facts.now, window) {
        return Ok(Some(TriggerSkip::Blackout));
    }
    if of_pod().any(|(_, of)| is_within(of, i64::from(trigger.cooldown_seconds), facts.now)) {
        return Ok(Some(TriggerSkip::Cooldown));
    }
    let limit = usize::try_from(trigger.maximum_per_day).unwrap_or_default();
    Ok((of_day(made, facts.now) >= limit).then_some(TriggerSkip::DailyLimit))
}

/// What the pod and its class say against a session.
fn of_pod(facts: &Facts<'_>, over_budget: bool, pod: &Pod) -> Option<TriggerSkip> {
    let Facts { spec, now, .. } = *facts;
    let window = i64::from(spec.session.duration_seconds);
    let index = Index::new(&facts.history.sessions, window);
    // An open window is of now already, so that nothing is won by another one in its place.
    if spec.concurrency_policy != ConcurrencyPolicy::Allow && !index.active(&pod.uid, None).is_empty() {
        return Some(TriggerSkip::StillRunning);
    }
    if let Some(limit) = spec.budget.capture_seconds_per_pod_per_day {
        let spent = index.seconds_of_day(&pod.uid, None, now).saturating_add(window);
        if spent > i64::from(limit) {
            return Some(TriggerSkip::PodDailyLimit);
        }
    }
    match standing(spec, facts.ledger.classes.get(&pod.class), now) {
        Standing::Suspended => Some(TriggerSkip::ClassSuspended),
        Standing::BackedOff { .. } => Some(TriggerSkip::BackedOff),
        Standing::NoSensor => Some(TriggerSkip::NoSensor),
        Standing::OverBudget => Some(TriggerSkip::OverBudget),
        Standing::Open | Standing::Halved => over_budget.then_some(TriggerSkip::OverBudget),
    }
}

#[cfg(test)]
mod tests;
