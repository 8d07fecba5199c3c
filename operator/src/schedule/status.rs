//! The status of a schedule: a function of what was planned and of what came of it.

use std::collections::BTreeSet;

use flopwatch_api::reason::{ScheduleCondition, ScheduleReason};
use flopwatch_api::schedule::{MAX_ACTIVE, ProfilingSchedule, ProfilingScheduleStatus};
use flopwatch_schedule::{Gathered, Plan, ScheduleError, Session};
use jiff::Timestamp;
use k8s_controller::conditions::{self, ConditionStatus, DesiredCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::session::summary::shorten;

/// The result of carrying out a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome<'a> {
    /// What the plan was made of.
    pub(super) gathered: &'a Gathered,
    pub(super) plan: &'a Plan,
    /// Names of its sessions that there are now.
    pub(super) made: &'a [String],
    /// Why the API server refused a session. The plan is then not carried out, and decided again.
    pub(super) refused: Option<&'a str>,
    /// Whether new captures are suspended in the cluster.
    pub(super) captures_suspended: bool,
    /// When it was planned.
    pub(super) now: Timestamp,
}

/// How soon a status is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// The status says nothing new.
    Never,
    /// The write may wait and be merged with later changes: only observations changed.
    Soon,
    /// The write is due at once: something was decided.
    Now,
}

/// The status after a plan was carried out.
pub(super) fn followed(schedule: &ProfilingSchedule, outcome: &Outcome<'_>) -> ProfilingScheduleStatus {
    let Outcome {
        gathered,
        plan,
        made,
        refused,
        now,
        ..
    } = *outcome;
    let mut status = schedule.status.clone().unwrap_or_default();
    status.planned_until = gathered.history.planned_until.map(Time);
    if refused.is_none() {
        status.planned_until = Some(Time(plan.planned_until));
        status.skipped = plan.skipped.added_to(&status.skipped);
        status.next_time = plan.next.map(rounded_up).map(Time);
    }
    if !made.is_empty() {
        status.last_time = Some(Time(now));
    }
    status.observed_generation = schedule.metadata.generation;
    status.ledger_since = Some(Time(gathered.ledger_since));
    let sessions = gathered.history.sessions.iter().filter(|session| session.is_active());
    let active = sessions.map(|session: &Session| session.name.as_str());
    let known: BTreeSet<&str> = gathered
        .history
        .sessions
        .iter()
        .map(|session| session.name.as_str())
        .collect();
    let new = made.iter().map(String::as_str).filter(|name| !known.contains(name));
    let active: BTreeSet<&str> = active.chain(new).collect();
    status.active_count = i32::try_from(active.len()).unwrap_or(i32::MAX);
    status.active = active.into_iter().take(MAX_ACTIVE).map(str::to_owned).collect();
    status.strata.clone_from(&plan.strata);
    status.budget = Some(plan.budget.clone());
    let (ready, reason, message) = verdict(schedule, outcome);
    set(&mut status, schedule, ready, reason, message);
    status
}

/// The status of a schedule that cannot be followed. What was decided before stays decided.
pub(super) fn invalid(schedule: &ProfilingSchedule, error: &ScheduleError) -> ProfilingScheduleStatus {
    let mut status = schedule.status.clone().unwrap_or_default();
    if status.observed_generation != schedule.metadata.generation {
        status.ledger_since = None;
    }
    status.observed_generation = schedule.metadata.generation;
    status.next_time = None;
    set(
        &mut status,
        schedule,
        false,
        ScheduleReason::ScheduleInvalid,
        error.to_string(),
    );
    status
}

fn verdict(schedule: &ProfilingSchedule, outcome: &Outcome<'_>) -> (bool, ScheduleReason, String) {
    if let Some(refused) = outcome.refused {
        let message = format!("the API server refuses a session: {refused}");
        return (false, ScheduleReason::SessionRefused, message);
    }
    if schedule.spec.suspend {
        return (
            true,
            ScheduleReason::Suspended,
            "spec.suspend is set: no sessions are made".to_owned(),
        );
    }
    if outcome.captures_suspended {
        let message = "new captures are suspended in this cluster: no sessions are made".to_owned();
        return (true, ScheduleReason::CapturesSuspended, message);
    }
    let mut message = match outcome.gathered.pods.len() {
        0 => "no pod runs that spec.select.podSelector matches and that can be profiled".to_owned(),
        1 => "1 pod can be profiled".to_owned(),
        count => format!("{count} pods can be profiled"),
    };
    if outcome.gathered.without_container > 0 {
        message = format!(
            "{message}; {} more match and have no container that asks for a GPU or was prepared",
            outcome.gathered.without_container
        );
    }
    if !schedule.spec.triggers.is_empty() {
        message.push_str("; spec.triggers are not acted upon by this version");
    }
    (true, ScheduleReason::Scheduled, message)
}

fn set(
    status: &mut ProfilingScheduleStatus,
    schedule: &ProfilingSchedule,
    ready: bool,
    reason: ScheduleReason,
    message: String,
) {
    let ready = ConditionStatus::from(ready);
    let desired = DesiredCondition::new(
        ScheduleCondition::Ready.as_str(),
        ready,
        reason.as_str(),
        shorten(message),
    )
    .observed_generation(schedule.metadata.generation);
    // Whether the status as a whole changed is what decides about writing it.
    let _change = conditions::set(&mut status.conditions, desired);
}

/// How soon a status is to be written, of a pass in which something was decided or not. Until when
/// slots are decided is no news by itself: the same stretch is decided again, with the same answer.
/// The status is written when the time that was waited for has come.
pub(super) fn urgency(
    before: Option<&ProfilingScheduleStatus>,
    after: &ProfilingScheduleStatus,
    decided: bool,
    now: Timestamp,
) -> Urgency {
    let Some(before) = before else {
        return Urgency::Now;
    };
    if before == after {
        return Urgency::Never;
    }
    let due = before.next_time.as_ref().is_some_and(|Time(next)| *next <= now);
    let ready = |status: &ProfilingScheduleStatus| {
        let condition = status.condition(ScheduleCondition::Ready);
        condition.map(|Condition { status, reason, .. }| (status.clone(), reason.clone()))
    };
    let judged = before.observed_generation != after.observed_generation || ready(before) != ready(after);
    if decided || judged || due {
        return Urgency::Now;
    }
    let seen = ProfilingScheduleStatus {
        planned_until: before.planned_until.clone(),
        ..after.clone()
    };
    if seen == *before { Urgency::Never } else { Urgency::Soon }
}

/// The first whole second that is not before the instant: times are written in whole seconds.
fn rounded_up(at: Timestamp) -> Timestamp {
    let whole = at.as_second() + i64::from(at.subsec_nanosecond() > 0);
    Timestamp::from_second(whole).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn status(planned: i64, next: i64, active: i32) -> ProfilingScheduleStatus {
        serde_json::from_value(json!({
            "plannedUntil": at(planned).to_string(), "nextTime": at(next).to_string(), "activeCount": active,
            "observedGeneration": 1
        }))
        .unwrap()
    }

    #[test]
    fn time_alone_is_no_news_until_it_is_the_time_that_was_waited_for() {
        let before = status(0, 60, 0);
        let of = |after: &ProfilingScheduleStatus, decided, now| urgency(Some(&before), after, decided, at(now));
        assert_eq!(of(&status(30, 60, 0), false, 30), Urgency::Never);
        assert_eq!(of(&status(30, 60, 0), true, 30), Urgency::Now);
        assert_eq!(of(&status(30, 60, 1), false, 30), Urgency::Soon);
        assert_eq!(of(&status(60, 120, 0), false, 60), Urgency::Now);
        assert_eq!(of(&before, false, 61), Urgency::Never, "it is written already");
        let mut changed = status(30, 60, 0);
        changed.observed_generation = Some(2);
        assert_eq!(of(&changed, false, 30), Urgency::Now);
        assert_eq!(urgency(None, &before, false, at(0)), Urgency::Now);
    }

    #[test]
    fn parts_of_a_second_are_rounded_up() {
        let half = at(1).checked_sub(jiff::SignedDuration::from_millis(500)).unwrap();
        assert_eq!((rounded_up(half), rounded_up(at(1))), (at(1), at(1)));
    }
}
