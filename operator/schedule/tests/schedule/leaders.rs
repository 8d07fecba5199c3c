//! A day of a thousand pods, with leaders that are killed and overlap.

use std::collections::{BTreeMap, BTreeSet};

use flopwatch_api::schedule::{ProfilingScheduleSpec, SkipReason};
use flopwatch_schedule::{History, Ledger, Pod, Session, SessionState, Slot, surplus};
use jiff::Timestamp;
use serde_json::json;

use crate::fleet::{after, noon, open_session, planned, pods, spec, with_facts};

const DAY: i64 = 86_400;
/// Seconds between two looks of a leader; windows may open 60 s late.
const CHECK_INTERVAL: i64 = 20;
/// Seconds until a leader is killed.
const TERM: i64 = 600;

/// What the API server has.
#[derive(Default)]
struct Store {
    history: History,
    names: BTreeSet<String>,
    /// Every window that was ever made, and how many sessions it was made with.
    windows: BTreeMap<(Slot, String), usize>,
    /// Sessions that a second leader tried to make and was refused.
    refused: usize,
    missed: i64,
}

impl Store {
    /// Makes the sessions that a leader planned from what it saw, but for those after the
    /// `dies_after`th, which it did not live to make.
    fn follow(
        &mut self,
        spec: &ProfilingScheduleSpec,
        pods: &[Pod],
        seen: &History,
        now: Timestamp,
        dies_after: Option<usize>,
    ) {
        let plan = planned(spec, pods, seen, now);
        let made = dies_after.unwrap_or(usize::MAX);
        for run in plan.runs.iter().take(made) {
            if self.names.insert(run.session_name.clone()) {
                *self.windows.entry((run.slot, run.pod_uid.clone())).or_default() += 1;
                self.history.sessions.push(open_session(run));
            } else {
                self.refused += 1;
            }
        }
        if dies_after.is_none() {
            self.missed += plan.skipped.of(SkipReason::Missed);
            self.history.planned_until = Some(plan.planned_until);
        }
    }

    fn end_windows(&mut self, spec: &ProfilingScheduleSpec, now: Timestamp) {
        for session in &mut self.history.sessions {
            let closed = after(session.opened, 10);
            if session.is_active() && closed <= now {
                session.state = SessionState::Succeeded { closed };
            }
        }
        let surplus = with_facts(&Ledger::default(), spec, &[], &self.history, now, surplus);
        let surplus: BTreeSet<String> = surplus.into_iter().collect();
        let kept = |session: &Session| !surplus.contains(&session.name);
        self.history.sessions.retain(kept);
        self.names.retain(|name| !surplus.contains(name));
    }
}

fn day(spec: &ProfilingScheduleSpec, pods: &[Pod], unsteady: bool) -> Store {
    let mut store = Store::default();
    store.history.planned_until = Some(noon());
    let mut stale = History::default();
    let mut second = 0;
    while second <= DAY {
        let now = after(noon(), second);
        let of_term = second % TERM;
        store.end_windows(spec, now);
        let even = (second / TERM) % 2 == 0;
        if !unsteady || of_term < TERM - CHECK_INTERVAL {
            let seen = store.history.clone();
            store.follow(spec, pods, &seen, now, None);
        } else if even {
            // It dies with a part of its sessions made, and nothing written of it.
            let seen = store.history.clone();
            store.follow(spec, pods, &seen, now, Some(1));
        } else {
            // For five seconds there are two: the old one sees what there was when the new one
            // began.
            stale.clone_from(&store.history);
            for second in 0..5 {
                let now = after(now, second);
                let seen = store.history.clone();
                store.follow(spec, pods, &seen, now, None);
                store.follow(spec, pods, &stale, now, None);
            }
        }
        second += CHECK_INTERVAL;
    }
    store
}

#[test]
fn a_day_of_killed_and_overlapping_leaders_has_every_window_once_and_none_is_lost() {
    let spec = spec(json!({
        "jitterSeconds": 120,
        "select": { "perRun": { "percent": 10, "minimum": 1, "maximum": 1000 } },
        "history": { "succeeded": 20, "failed": 5 },
    }));
    let pods = pods(1_000);
    let steady = day(&spec, &pods, false);
    let unsteady = day(&spec, &pods, true);

    let twice = unsteady.windows.values().filter(|sessions| **sessions > 1).count();
    let missing_in = |other: &Store, of: &Store| {
        let windows = of.windows.keys();
        windows.filter(|window| !other.windows.contains_key(*window)).count()
    };
    let (lost, added) = (missing_in(&unsteady, &steady), missing_in(&steady, &unsteady));
    println!(
        "{} windows, {twice} twice, {} lost, {added} more than there should be, {} refused by name, {} kept at the end",
        unsteady.windows.len(),
        lost,
        unsteady.refused,
        unsteady.history.sessions.len(),
    );
    assert_eq!((twice, lost, added), (0, 0, 0));
    assert_eq!((steady.missed, unsteady.missed), (0, 0));
    assert!(unsteady.refused > 0, "the leaders overlapped");

    // A hundred pods in each slot but the last one, which the day ends in.
    let mut slots: BTreeMap<Slot, usize> = BTreeMap::new();
    for (slot, _) in unsteady.windows.keys() {
        *slots.entry(*slot).or_default() += 1;
    }
    let whole = slots
        .iter()
        .filter(|(slot, _)| after(slot.start(), 900 + 120) <= after(noon(), DAY));
    let whole: Vec<usize> = whole
        .filter(|(slot, _)| slot.start() >= noon())
        .map(|(_, windows)| *windows)
        .collect();
    assert_eq!(whole, vec![100; 95]);
}
