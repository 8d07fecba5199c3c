//! Decides whether an alert makes a session.
//!
//! The sessions of a trigger are numbered from 0, and the number is in the name. A gateway that
//! creates session n has decided from the n sessions before it. Where the API server has a session
//! of that name already, another gateway decided at the same time: its session is added to the
//! history, and the alert is decided anew. So cooldown and daily limit hold however many gateways
//! decide at once.

use std::collections::BTreeMap;

use flopwatch_api::schedule::{ConcurrencyPolicy, ProfilingScheduleSpec, Trigger};
use jiff::Timestamp;

use crate::blackout::Blackouts;
use crate::eligibility::{Eligibility, eligibility};
use crate::facts::Facts;
use crate::history::{DAY_SECONDS, Session, Triggered};
use crate::index::Index;
use crate::name::triggered_session_name;
use crate::pod::Pod;
use crate::random::Draws;
use crate::slot::seconds_later;
use crate::world::ScheduleError;

/// Label of an alert with its name.
const NAME_LABEL: &str = "alertname";

/// An alert that fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// Labels of the alert, by name.
    pub labels: BTreeMap<String, String>,
    /// Alertmanager's hash of the labels, which identifies the alert.
    pub fingerprint: String,
    /// When the alert began to fire; together with the fingerprint this identifies one firing.
    pub started: Timestamp,
}

impl Alert {
    /// Name of the alert, from its label `alertname`; empty where that label is missing.
    pub fn name(&self) -> &str {
        self.labels.get(NAME_LABEL).map_or("", String::as_str)
    }
}

/// The pod that an alert names, as it was looked up.
#[derive(Clone, Copy, Debug)]
pub enum AlertedPod<'a> {
    /// No pod of that name runs in the schedule's namespace, or it is being deleted.
    Absent,
    /// The schedule's selector does not match the pod.
    NotSelected,
    /// The pod has no container that a session would profile.
    WithoutContainer,
    /// The pod runs and can be profiled.
    Running(&'a Pod),
}

/// An alert, with the trigger that it matches and the pod that it names.
#[derive(Clone, Copy, Debug)]
pub struct Alerted<'a> {
    /// The alert that fires.
    pub alert: &'a Alert,
    /// The trigger of the schedule's spec that [`trigger_of`] found for the alert.
    pub trigger: &'a Trigger,
    /// The pod that the alert names.
    pub pod: AlertedPod<'a>,
    /// Whether the schedule's pods lose more than the amortised budget, from the schedule's status:
    /// the facts may hold the alert's pod alone, and then show only that pod's loss.
    pub over_budget: bool,
}

/// The decision about an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<'a> {
    /// The alert makes a session.
    Make(TriggeredRun<'a>),
    /// The alert makes no session, for this reason.
    Skip(TriggerSkip),
}

/// A session to make for an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggeredRun<'a> {
    /// Name of the session.
    pub session_name: String,
    /// Number of the session among those of its trigger, from 0 on.
    pub number: u64,
    /// The pod that the session profiles.
    pub pod: &'a Pod,
}

/// Why an alert makes no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TriggerSkip {
    /// The schedule is suspended.
    Suspended,
    /// No pod of the alert's name runs in the schedule's namespace.
    NoSuchPod,
    /// The schedule's selector does not match the pod.
    NotSelected,
    /// The pod has no container to profile.
    NoContainer,
    /// The alert has made a session of the pod since it began to fire.
    AlreadyMade,
    /// The window would be open in one of the schedule's `blackouts`.
    Blackout,
    /// The trigger made a session of the pod within `cooldownSeconds`.
    Cooldown,
    /// The trigger made `maximumPerDay` sessions in the last 24 hours.
    DailyLimit,
    /// Another session of the schedule profiles the pod, and `concurrencyPolicy` is not Allow.
    StillRunning,
    /// The pod was in windows for `captureSecondsPerPodPerDay` in the last 24 hours, or would be.
    PodDailyLimit,
    /// A window on a pod of the same class failed or exceeded the budget, and the time that
    /// `backoff` sets is not over.
    BackedOff,
    /// More than two of the last ten windows on pods of the same class failed.
    ClassSuspended,
    /// The pods of the class, or of the schedule, lose more than the amortised budget.
    OverBudget,
    /// No window of the class had a signal of how fast its pods are, and `unknown` is Refuse.
    NoSensor,
}

/// Whether a pod can have the name `name`: at most 253 characters, in parts of lower-case letters,
/// digits and hyphens, divided by dots. Labels of alerts are untrusted text, and this one becomes a
/// part of a URL path.
pub fn is_pod_name(name: &str) -> bool {
    let part = |part: &str| {
        let inside = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        !part.is_empty() && !part.starts_with('-') && !part.ends_with('-') && part.chars().all(inside)
    };
    name.len() <= 253 && name.split('.').all(part)
}

/// The first trigger of a schedule in `namespace` that an alert matches; None for alerts of other
/// namespaces.
pub fn trigger_of<'a>(spec: &'a ProfilingScheduleSpec, namespace: &str, alert: &Alert) -> Option<&'a Trigger> {
    let has = |label: &str, value: &str| alert.labels.get(label).is_some_and(|found| found == value);
    spec.triggers.iter().find(|trigger| {
        let wanted = &trigger.alert;
        has(NAME_LABEL, &wanted.name)
            && has(&trigger.target.namespace_label, namespace)
            && wanted.match_labels.iter().all(|(label, value)| has(label, value))
    })
}

/// Decides whether an alert makes a session. Suspended schedules, blackouts, limits and the
/// [`Eligibility`] of the pod's class hold for alerts too. The rules that spread windows over pods
/// and time do not: the least age of a pod, its rest after a window, and a rate that is halved. The
/// error is that of a blackout that cannot be read.
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
    if let Some(skip) = skip_by_trigger(facts, alerted, pod, &made)? {
        return Ok(Decision::Skip(skip));
    }
    if let Some(skip) = skip_by_pod(facts, alerted.over_budget, pod) {
        return Ok(Decision::Skip(skip));
    }
    let last = made.iter().map(|(_, triggered)| triggered.number).max();
    let number = last.map_or(0, |last| last.saturating_add(1));
    Ok(Decision::Make(TriggeredRun {
        session_name: triggered_session_name(identity, &Draws::of(&identity.uid), alerted.trigger, number),
        number,
        pod,
    }))
}

/// The sessions that a trigger made, counted from those that still exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerHistory {
    /// The trigger, from the schedule's spec.
    pub trigger: Trigger,
    /// Number of sessions that the trigger made in the last 24 hours.
    pub of_day: usize,
    /// When the trigger made its latest session; None where it made none.
    pub last: Option<Timestamp>,
}

/// The history of each trigger, in the order of the spec.
pub(crate) fn histories(facts: &Facts<'_>) -> Vec<TriggerHistory> {
    let triggers = facts.spec.triggers.iter();
    triggers
        .map(|trigger| {
            let made = made_by(facts, trigger);
            TriggerHistory {
                trigger: trigger.clone(),
                of_day: count_of_day(&made, facts.now),
                last: made.iter().map(|(_, of)| of.made).max(),
            }
        })
        .collect()
}

/// The sessions that a trigger made, of those in the history.
fn made_by<'a>(facts: &Facts<'a>, trigger: &Trigger) -> Vec<(&'a Session, &'a Triggered)> {
    let draws = Draws::of(&facts.identity.uid);
    let sessions = facts.history.sessions.iter();
    sessions
        .filter_map(|session| Some((session, session.trigger.as_ref()?)))
        .filter(|(session, of)| session.name == triggered_session_name(facts.identity, &draws, trigger, of.number))
        .collect()
}

fn is_within(triggered: &Triggered, seconds: i64, now: Timestamp) -> bool {
    seconds_later(triggered.made, seconds) > now
}

fn count_of_day(made: &[(&Session, &Triggered)], now: Timestamp) -> usize {
    made.iter().filter(|(_, of)| is_within(of, DAY_SECONDS, now)).count()
}

/// Why the trigger's own rules make no session, given the sessions that it `made`.
fn skip_by_trigger(
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
    Ok((count_of_day(made, facts.now) >= limit).then_some(TriggerSkip::DailyLimit))
}

/// Why the rules for the pod and its class make no session.
fn skip_by_pod(facts: &Facts<'_>, over_budget: bool, pod: &Pod) -> Option<TriggerSkip> {
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
    match eligibility(spec, facts.ledger.classes.get(&pod.class), now) {
        Eligibility::Suspended => Some(TriggerSkip::ClassSuspended),
        Eligibility::BackedOff { .. } => Some(TriggerSkip::BackedOff),
        Eligibility::NoSensor => Some(TriggerSkip::NoSensor),
        Eligibility::OverBudget => Some(TriggerSkip::OverBudget),
        Eligibility::Open | Eligibility::Halved => over_budget.then_some(TriggerSkip::OverBudget),
    }
}

#[cfg(test)]
mod tests;
