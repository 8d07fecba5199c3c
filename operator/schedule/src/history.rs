//! What a schedule did so far.

use std::cmp::Reverse;
use std::collections::HashMap;

use jiff::Timestamp;

use crate::facts::Facts;
use crate::ledger::KEPT_WINDOWS;
use crate::pod::Class;
use crate::slot::{Slot, seconds_later};

/// Seconds over which a pod's time in windows is limited.
pub(crate) const DAY_SECONDS: i64 = 86_400;

/// The decisions of a schedule so far, from its status and its sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// `status.plannedUntil`: until when slots have been decided. It is written only after the
    /// sessions of the plan were made and with its counts, in one write, so that a controller that
    /// dies before leaves all of it to the next one.
    pub planned_until: Option<Timestamp>,
    /// The sessions of the schedule that the API server has, those of triggers included.
    pub sessions: Vec<Session>,
}

/// A session of the schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// `metadata.name`.
    pub name: String,
    /// The slot that it was made for; None where an alert made it.
    pub slot: Option<Slot>,
    /// What made it, where that was an alert.
    pub trigger: Option<Triggered>,
    /// UID of its pod.
    pub pod_uid: String,
    /// The class whose account its window is in; None where it ended without one, or has not ended.
    pub class: Option<Class>,
    /// When its window opened; where it has not, when the session was made, and where it never did,
    /// when the session ended.
    pub opened: Timestamp,
    /// State of the session.
    pub state: SessionState,
}

/// The alert that made a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Triggered {
    /// Alertmanager's hash of the alert's labels.
    pub fingerprint: String,
    /// When the alert began to fire.
    pub started: Timestamp,
    /// How many sessions the trigger had made before.
    pub number: u64,
    /// When the session was made.
    pub made: Timestamp,
}

/// The state of a session of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// The session has not ended.
    Active,
    /// The session ended with success.
    Succeeded {
        /// When its window closed.
        closed: Timestamp,
    },
    /// The session ended without success.
    Failed {
        /// When its window closed, or when it failed where none had opened.
        closed: Timestamp,
    },
}

impl Session {
    /// Whether it has not ended.
    pub const fn is_active(&self) -> bool {
        matches!(self.state, SessionState::Active)
    }

    /// Whether it ended with what was asked for.
    pub const fn has_succeeded(&self) -> bool {
        matches!(self.state, SessionState::Succeeded { .. })
    }

    /// When its window closed, or will have where it is open for that many seconds.
    pub(crate) fn closes(&self, window_seconds: i64) -> Timestamp {
        match self.state {
            SessionState::Active => seconds_later(self.opened, window_seconds),
            SessionState::Succeeded { closed } | SessionState::Failed { closed } => closed,
        }
    }
}

/// Names of the sessions that `spec.history` no longer keeps, oldest first. None of them could
/// change a plan: a session is kept while it has not ended, while its slot may be decided again,
/// for as long as its pod rests from it or has it counted against its day, for as long as a trigger
/// counts it, and while its window is among the last of a class that pods run of.
pub fn surplus(facts: &Facts<'_>) -> Vec<String> {
    let Facts { spec, history, now, .. } = *facts;
    let mut accounted: HashMap<&Class, usize> = facts.pods.iter().map(|pod| (&pod.class, KEPT_WINDOWS)).collect();
    let mut remembered = i64::from(spec.select.rest_seconds);
    if spec.budget.capture_seconds_per_pod_per_day.is_some() {
        remembered = remembered.max(DAY_SECONDS);
    }
    let cooldowns = spec.triggers.iter().map(|trigger| i64::from(trigger.cooldown_seconds));
    let counted = cooldowns.max().map(|longest| longest.max(DAY_SECONDS));
    // Slots are drawn anew until the last pod had its time in them: two intervals, since a time is
    // in the first and may be delayed by the second.
    let interval = spec
        .when
        .interval
        .as_ref()
        .map_or(0, |interval| i64::from(interval.seconds));
    let drawn = 2 * interval + i64::from(spec.jitter_seconds) + i64::from(spec.starting_deadline_seconds);
    let decided = history.planned_until.unwrap_or(Timestamp::MIN).min(now);
    let window = i64::from(spec.session.duration_seconds);

    let mut ended: Vec<&Session> = history.sessions.iter().filter(|session| !session.is_active()).collect();
    ended.sort_by_key(|session| Reverse((session.closes(window), session.name.as_str())));
    let mut left = HashMap::from([
        (true, usize::try_from(spec.history.succeeded).unwrap_or_default()),
        (false, usize::try_from(spec.history.failed).unwrap_or_default()),
    ]);
    let mut names = Vec::new();
    for session in ended {
        let windows = session.class.as_ref().and_then(|class| accounted.get_mut(class));
        let of_ledger = windows.is_some_and(take);
        let of_history = take(left.entry(session.has_succeeded()).or_default());
        let remembered = match &session.trigger {
            Some(_) => remembered.max(counted.unwrap_or_default()),
            None => remembered,
        };
        let rested = seconds_later(session.closes(window), remembered) <= now;
        let over = session
            .slot
            .is_none_or(|slot| seconds_later(slot.start(), drawn) < decided);
        if rested && over && !of_ledger && !of_history {
            names.push(session.name.clone());
        }
    }
    names.reverse();
    names
}

/// Takes one of what is left; whether there was one.
fn take(left: &mut usize) -> bool {
    let had = *left > 0;
    *left = left.saturating_sub(1);
    had
}
