//! Limits on how often statuses are written: those of captures by their agents, and those of
//! sessions and schedules by this controller.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flopwatch_api::capture::Capture;
use flopwatch_api::phase::Phase;
use kube::runtime::reflector::{ObjectRef, Store};
use tokio::time::Instant;

use crate::session::budget::Budget;
use crate::session::plan::Plan;

/// Writes of captures' statuses per second in the whole cluster, where no flag sets another number.
pub const DEFAULT_STATUS_WRITES_PER_SECOND: u32 = 50;

/// How long a planned capture that no watch has shown counts towards the bound: one that could not
/// be created counts no longer.
const UNSEEN_TTL: Duration = Duration::from_mins(1);

/// The captures that were planned, and the times at which statuses may be written again.
#[derive(Debug)]
pub struct Pace {
    bound: u32,
    /// The captures that the last pass over each session planned, by the session's UID.
    planned: Mutex<BTreeMap<String, PlannedCaptures>>,
    /// The time at which the status of each object may be written again, by UID.
    due: Mutex<BTreeMap<String, Instant>>,
}

/// Captures that one pass planned, with their status intervals in seconds.
#[derive(Debug)]
struct PlannedCaptures {
    at: Instant,
    captures: Vec<(ObjectRef<Capture>, i32)>,
}

impl Pace {
    /// Limits agents to `bound` writes of captures' statuses per second in the whole cluster.
    pub fn new(bound: u32) -> Self {
        Self {
            bound,
            planned: Mutex::default(),
            due: Mutex::default(),
        }
    }

    /// The budget of a cluster without captures.
    pub fn full_budget(&self) -> Budget {
        Budget::new(self.bound, [])
    }

    /// Runs `plan` with the part of the bound that the cluster's captures leave. The captures that
    /// it plans for the session with the UID `session` count from here on, for all passes, though
    /// no watch has shown them: passes that plan at the same time would each take what is left.
    pub fn plan(&self, session: &str, captures: &Store<Capture>, plan: impl FnOnce(Budget) -> Plan) -> Plan {
        let mut planned = self.planned();
        let now = Instant::now();
        // What an earlier pass over the session could not make is planned anew.
        planned.remove(session);
        planned.retain(|_, planned| {
            planned.captures.retain(|(capture, _)| captures.get(capture).is_none());
            !planned.captures.is_empty() && now.duration_since(planned.at) < UNSEEN_TTL
        });
        let seen = captures.state_filter(|capture| !Phase::of(capture).has_ended());
        let seen = seen.iter().map(|capture| capture.spec.status_interval_seconds);
        let unseen = planned.values().flat_map(|planned| &planned.captures);
        let budget = Budget::new(self.bound, seen.chain(unseen.map(|(_, interval)| *interval)));
        let plan = plan(budget);
        if !plan.create.is_empty() {
            let interval = |capture: &Capture| (ObjectRef::from_obj(capture), capture.spec.status_interval_seconds);
            let captures = plan.create.iter().map(interval).collect();
            planned.insert(session.to_owned(), PlannedCaptures { at: now, captures });
        }
        plan
    }

    /// Time until the status of the object with the UID `session` may be written. None: it may be
    /// written now, and the next write may follow after `interval`.
    pub fn wait(&self, session: &str, interval: Duration) -> Option<Duration> {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        due.retain(|_, at| *at > now);
        if let Some(at) = due.get(session) {
            return Some(at.duration_since(now));
        }
        due.insert(session.to_owned(), now + interval);
        None
    }

    fn planned(&self) -> MutexGuard<'_, BTreeMap<String, PlannedCaptures>> {
        // A plan that was not noted is one that was not carried out either.
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self::new(DEFAULT_STATUS_WRITES_PER_SECOND)
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::reflector;
    use kube::runtime::watcher::Event as WatchEvent;
    use serde_json::json;
    use tokio::time::sleep;

    use super::*;

    fn capture(name: &str, interval: i32, succeeded: &str) -> Capture {
        serde_json::from_value(json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "Capture", "metadata": {"name": name, "namespace": "team"},
            "spec": {
                "sessionRef": {"name": "s", "id": "00000001"}, "nodeName": "n1", "podRef": {"name": "p", "uid": "u"},
                "containerName": "c", "durationSeconds": 10, "startDeadlineSeconds": 60, "outputs": ["Timeline"],
                "statusIntervalSeconds": interval
            },
            "status": {"conditions": [{
                "type": "Succeeded", "status": succeeded, "reason": "Succeeded", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"
            }]}
        }))
        .unwrap()
    }

    /// The interval of the one capture that a pass over a session makes.
    fn make(pace: &Pace, seen: &Store<Capture>, session: &str) -> i32 {
        let make = |mut budget: Budget| Plan {
            create: vec![capture(session, budget.take(), "Unknown")],
            ..Plan::default()
        };
        pace.plan(session, seen, make).create[0].spec.status_interval_seconds
    }

    #[tokio::test(start_paused = true)]
    async fn captures_count_from_when_they_are_planned_until_they_end_and_once() {
        let (seen, mut watch) = reflector::store();
        let pace = Pace::new(1);
        let taken = |pace: &Pace| {
            let mut interval = 0;
            pace.plan("looks", &seen, |mut budget| {
                interval = budget.take();
                Plan::default()
            });
            interval
        };
        assert_eq!(make(&pace, &seen, "a"), 3);
        assert_eq!(make(&pace, &seen, "b"), 10, "no watch has shown the first yet");
        assert_eq!(make(&pace, &seen, "b"), 10, "what was not made is planned anew");
        assert_eq!(taken(&pace), 16);
        watch.apply_watcher_event(&WatchEvent::Apply(capture("a", 3, "Unknown")));
        assert_eq!(taken(&pace), 16, "what is seen counts once");
        watch.apply_watcher_event(&WatchEvent::Apply(capture("a", 3, "True")));
        assert_eq!(taken(&pace), 4, "what ended makes room");
        sleep(UNSEEN_TTL).await;
        assert!(
            taken(&pace) == 3 && pace.planned().is_empty(),
            "what never came does too"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_may_be_written_once_in_its_interval() {
        let (pace, interval) = (Pace::default(), Duration::from_secs(20));
        assert_eq!(pace.wait("a", interval), None);
        sleep(Duration::from_secs(5)).await;
        assert_eq!(pace.wait("a", interval), Some(Duration::from_secs(15)));
        assert_eq!(pace.wait("b", interval), None, "each has its own");
        sleep(Duration::from_secs(15)).await;
        assert_eq!(pace.wait("a", interval), None);
    }
}
