//! Decides what a schedule does now.

use std::collections::HashSet;

use flopwatch_api::schedule::{BudgetStatus, ConcurrencyPolicy, MAX_STRATA, SkipReason, StratumStatus};
use jiff::Timestamp;

use crate::draw::{Candidate, Verdict};
use crate::eligibility::budget_status;
use crate::facts::Facts;
use crate::index::Index;
use crate::name::named;
use crate::skipped::Skipped;
use crate::slot::{Slot, seconds_later};
use crate::world::{ScheduleError, World};

/// The actions of a schedule at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Sessions to make, in the order of their times.
    pub runs: Vec<Run>,
    /// Names of sessions to stop, keeping what they recorded, before the sessions are made.
    pub stops: Vec<String>,
    /// What was left out since [`History::planned_until`](crate::History::planned_until).
    pub skipped: Skipped,
    /// Until when slots are decided now. It is to be written to the status once the sessions were
    /// made, with the counts. Nothing is lost where it is written later than that, or by the next
    /// controller: the same windows are decided again, and those made already are known.
    pub planned_until: Timestamp,
    /// When there may be something to do next: a window of a pod that was drawn, or the next slot.
    /// None while the schedule is suspended. Whoever sees pods come and go asks again then too.
    pub next: Option<Timestamp>,
    /// The strata as the current slot draws from them, largest first, at most [`MAX_STRATA`].
    pub strata: Vec<StratumStatus>,
    /// The measured loss of the schedule's pods, for its status.
    pub budget: BudgetStatus,
}

/// A session to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its name. Where the API server has it already, another controller made it, and nothing is
    /// left to do.
    pub session_name: String,
    /// The slot that the session is for.
    pub slot: Slot,
    /// Name of the pod that is profiled.
    pub pod_name: String,
    /// UID of the pod that is profiled.
    pub pod_uid: String,
    /// When the window is to open.
    pub opens: Timestamp,
    /// When it is too late to open the window.
    pub deadline: Timestamp,
    /// How probable it is at any time of the period that the pod is in a window, in billionths.
    pub probability_per_billion: i32,
}

/// Decides what a schedule does now.
pub fn plan(facts: &Facts<'_>) -> Result<Plan, ScheduleError> {
    let world = World::new(facts)?;
    let Facts {
        spec,
        identity,
        history,
        ledger,
        now,
        ..
    } = *facts;
    let decided = history.planned_until.unwrap_or(identity.created).max(identity.created);
    let mut plan = Plan {
        runs: Vec::new(),
        stops: Vec::new(),
        skipped: Skipped::default(),
        planned_until: decided.max(now),
        next: None,
        strata: Vec::new(),
        budget: budget_status(spec, ledger),
    };
    if spec.suspend {
        return Ok(plan);
    }
    let mut index = Index::new(&history.sessions, world.window_seconds());
    let Some(current) = world.timing.current(now) else {
        return Ok(plan);
    };
    plan.next = world.timing.after(current).map(Slot::start);
    let slots = world.open_slots(current, now, decided);
    let mut draws = Vec::new();
    for slot in slots.iter().rev() {
        let draw = world.draw(*slot, &index);
        for candidate in draw.to_come(now) {
            plan.next = plan.next.into_iter().chain([candidate.opens]).min();
            index.foresee(&candidate.target.pod.uid, *slot, candidate.opens);
        }
        draws.push(draw);
    }
    // Pods whose time has come in a later slot: an earlier one is never caught up.
    let mut overtaken: HashSet<&str> = HashSet::new();
    for draw in draws.iter().rev() {
        for candidate in draw.candidates.iter().filter(|candidate| candidate.opens <= now) {
            let latest = overtaken.insert(&candidate.target.pod.uid);
            if candidate.opens > decided {
                plan.decide(&world, &index, draw.slot, candidate, latest, now);
            }
        }
    }
    plan.strata = draws.pop().map(|draw| draw.strata).unwrap_or_default();
    if let Some(oldest) = slots.last() {
        world.count_missed(*oldest, decided, &index, &mut plan.skipped);
    }
    plan.runs
        .sort_by(|one, other| (one.opens, &one.session_name).cmp(&(other.opens, &other.session_name)));
    plan.strata
        .sort_by(|one, other| other.pods.cmp(&one.pods).then_with(|| one.key.cmp(&other.key)));
    plan.strata.dedup_by(|one, other| one.key == other.key);
    plan.strata.truncate(MAX_STRATA);
    Ok(plan)
}

impl Plan {
    /// Decides for a pod whose time in a slot has come.
    fn decide(
        &mut self,
        world: &World<'_>,
        index: &Index<'_>,
        slot: Slot,
        candidate: &Candidate<'_>,
        latest: bool,
        now: Timestamp,
    ) {
        let probability_per_billion = match candidate.verdict {
            Verdict::Drawn {
                probability_per_billion,
            } => probability_per_billion,
            Verdict::Skipped(reason) => return self.skipped.add(reason, 1),
            Verdict::Made | Verdict::NotDrawn => return,
        };
        let run = world.run(slot, candidate, probability_per_billion);
        if world.blackouts.hold(run.opens, world.window_seconds()) {
            return self.skipped.add(SkipReason::Blackout, 1);
        }
        // A window that opens late must be outside of blackouts too.
        if !latest || run.deadline < now {
            return self.skipped.add(SkipReason::Missed, 1);
        }
        if world.blackouts.hold(now, world.window_seconds()) {
            return self.skipped.add(SkipReason::Blackout, 1);
        }
        let active = index.active(&run.pod_uid, Some(slot));
        match world.spec.concurrency_policy {
            ConcurrencyPolicy::Forbid if !active.is_empty() => return self.skipped.add(SkipReason::StillRunning, 1),
            ConcurrencyPolicy::Replace => self.stops.extend(active.into_iter().map(str::to_owned)),
            ConcurrencyPolicy::Forbid | ConcurrencyPolicy::Allow => {}
        }
        self.runs.push(run);
    }
}

impl World<'_> {
    /// The current slot and those before it in which a pod's latest time may be, newest first: down
    /// to the first whose times have all come, and without those that were decided altogether.
    pub(crate) fn open_slots(&self, current: Slot, now: Timestamp, decided: Timestamp) -> Vec<Slot> {
        let mut slots = vec![current];
        let mut slot = current;
        while self.timing.end(slot) > now {
            let earlier = self.timing.before(slot);
            let Some(earlier) = earlier.filter(|slot| self.timing.end(*slot) > decided) else {
                break;
            };
            slot = earlier;
            slots.push(slot);
        }
        slots
    }

    /// The session of a pod that was drawn.
    pub(crate) fn run(&self, slot: Slot, candidate: &Candidate<'_>, probability_per_billion: i32) -> Run {
        let pod = candidate.target.pod;
        Run {
            session_name: named(self.identity, &self.draws, slot, &pod.uid),
            slot,
            pod_name: pod.name.clone(),
            pod_uid: pod.uid.clone(),
            opens: candidate.opens,
            deadline: seconds_later(candidate.opens, i64::from(self.spec.starting_deadline_seconds)),
            probability_per_billion,
        }
    }
}
