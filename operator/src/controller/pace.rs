//! How often statuses are written: those of captures by their agents, those of sessions by this controller.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flopwatch_api::capture::Capture;
use flopwatch_api::phase::Phase;
use kube::runtime::reflector::{ObjectRef, Store};
use tokio::time::Instant;

use crate::session::budget::Budget;
use crate::session::plan::Plan;

/// Writes of captures' statuses per second in the whole cluster, where nothing else is said.
pub const STATUS_WRITES: u32 = 50;

/// How long captures count that were to be made and that no watch has shown: those that could not be made count no longer.
const UNSEEN: Duration = Duration::from_mins(1);

/// What was promised and written.
#[derive(Debug)]
pub struct Pace {
    bound: u32,
    /// What was made last for each session, by UID.
    made: Mutex<BTreeMap<String, Made>>,
    /// When sessions may be written again whose captures merely go on, by UID.
    due: Mutex<BTreeMap<String, Instant>>,
}

/// Captures that were made in one pass, with their intervals.
#[derive(Debug)]
struct Made {
    at: Instant,
    captures: Vec<(ObjectRef<Capture>, i32)>,
}

impl Pace {
    /// Lets agents write captures' statuses so often per second in the whole cluster.
    pub fn new(bound: u32) -> Self {
        Self {
            bound,
            made: Mutex::default(),
            due: Mutex::default(),
        }
    }

    /// What captures leave of the bound that nobody has made yet.
    pub fn whole(&self) -> Budget {
        Budget::new(self.bound, [])
    }

    /// Plans with what the captures of the cluster leave of the bound. What the plan of that session makes counts from here on,
    /// for all passes, though no watch has shown it: plans that are made side by side would each take what is left.
    pub fn plan(&self, session: &str, captures: &Store<Capture>, plan: impl FnOnce(Budget) -> Plan) -> Plan {
        let mut made = self.made();
        let now = Instant::now();
        // What an earlier pass over the session could not make is planned anew.
        made.remove(session);
        made.retain(|_, made| {
            made.captures.retain(|(capture, _)| captures.get(capture).is_none());
            !made.captures.is_empty() && now.duration_since(made.at) < UNSEEN
        });
        let seen = captures.state_filter(|capture| !Phase::of(capture).has_ended());
        let seen = seen.iter().map(|capture| capture.spec.status_interval_seconds);
        let unseen = made.values().flat_map(|made| &made.captures);
        let budget = Budget::new(self.bound, seen.chain(unseen.map(|(_, interval)| *interval)));
        let plan = plan(budget);
        if !plan.create.is_empty() {
            let interval = |capture: &Capture| (ObjectRef::from_obj(capture), capture.spec.status_interval_seconds);
            let captures = plan.create.iter().map(interval).collect();
            made.insert(session.to_owned(), Made { at: now, captures });
        }
        plan
    }

    /// How long the session's status is not to be written yet. None: it may be now, and is taken to be.
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

    fn made(&self) -> MutexGuard<'_, BTreeMap<String, Made>> {
        // A plan that was not noted is one that was not carried out either.
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self::new(STATUS_WRITES)
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
    async fn m5_captures_count_from_when_they_are_planned_until_they_end_and_once() {
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
        sleep(UNSEEN).await;
        assert!(taken(&pace) == 3 && pace.made().is_empty(), "what never came does too");
    }

    #[tokio::test(start_paused = true)]
    async fn m5_a_session_may_be_written_once_in_its_interval() {
        let (pace, interval) = (Pace::default(), Duration::from_secs(20));
        assert_eq!(pace.wait("a", interval), None);
        sleep(Duration::from_secs(5)).await;
        assert_eq!(pace.wait("a", interval), Some(Duration::from_secs(15)));
        assert_eq!(pace.wait("b", interval), None, "each has its own");
        sleep(Duration::from_secs(15)).await;
        assert_eq!(pace.wait("a", interval), None);
    }
}
