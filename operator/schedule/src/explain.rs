//! What a schedule will do next, and why it leaves pods out.

use std::collections::BTreeMap;

use flopwatch_api::schedule::{ConcurrencyPolicy, SkipReason};
use jiff::Timestamp;

use crate::draw::{Candidate, Verdict};
use crate::facts::Facts;
use crate::index::Index;
use crate::plan::Run;
use crate::slot::Slot;
use crate::trigger::{TriggerHistory, histories};
use crate::world::{ScheduleError, World};

/// Most slots that are looked at for runs to come.
const MAX_SLOTS_AHEAD: usize = 200;

/// What a schedule will do next, as far as it can be known: pods come and go, and windows fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Whether it does nothing, because it is suspended. The rest says what it would do.
    pub suspended: bool,
    /// The next runs, soonest first.
    pub runs: Vec<Run>,
    /// Verdicts on the pods of the schedule's next slot, in the order of the pods' names.
    pub pods: Vec<PodVerdict>,
    /// Histories of the schedule's triggers.
    pub triggers: Vec<TriggerHistory>,
}

/// Whether, and when, a slot of a schedule opens a window of one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodVerdict {
    /// Name of the pod.
    pub pod_name: String,
    /// UID of the pod.
    pub pod_uid: String,
    /// Slot that the verdict is of.
    pub slot: Slot,
    /// When the pod's window opens in the slot.
    pub opens: Timestamp,
    /// Whether it is drawn or, if not, why.
    pub verdict: Verdict,
}

/// Says what a schedule will do next, up to so many runs.
pub fn explain(facts: &Facts<'_>, count: usize) -> Result<Explanation, ScheduleError> {
    let world = World::new(facts)?;
    let Facts { spec, history, now, .. } = *facts;
    let mut index = Index::new(&history.sessions, world.window_seconds());
    let mut runs: Vec<Run> = Vec::new();
    let mut verdicts: BTreeMap<String, PodVerdict> = BTreeMap::new();
    let current = world.timing.current(now);
    let mut slots = current.map_or_else(Vec::new, |current| world.open_slots(current, now, now));
    slots.reverse();
    let last = slots.last().copied();
    let ahead = std::iter::successors(last.and_then(|slot| world.timing.after(slot)), |slot| {
        world.timing.after(*slot)
    });
    for slot in slots.into_iter().chain(ahead.take(MAX_SLOTS_AHEAD)) {
        // A later slot has no run before its start.
        let known = runs.iter().filter(|run| run.opens <= slot.start()).count();
        if known >= count && verdicts.len() == world.targets.len() {
            break;
        }
        for candidate in world.draw(slot, &index).candidates {
            let pod = candidate.target.pod;
            if candidate.opens <= now {
                continue;
            }
            let verdict = world.foreseen(slot, &candidate, &index);
            if let Verdict::Drawn {
                probability_per_billion,
            } = verdict
            {
                index.foresee(&pod.uid, slot, candidate.opens);
                runs.push(world.run(slot, &candidate, probability_per_billion));
            }
            verdicts.entry(pod.uid.clone()).or_insert_with(|| PodVerdict {
                pod_name: pod.name.clone(),
                pod_uid: pod.uid.clone(),
                slot,
                opens: candidate.opens,
                verdict,
            });
        }
    }
    runs.sort_by(|one, other| (one.opens, &one.session_name).cmp(&(other.opens, &other.session_name)));
    runs.truncate(count);
    let mut pods: Vec<PodVerdict> = verdicts.into_values().collect();
    pods.sort_by(|one, other| (&one.pod_name, &one.pod_uid).cmp(&(&other.pod_name, &other.pod_uid)));
    Ok(Explanation {
        suspended: spec.suspend,
        runs,
        pods,
        triggers: histories(facts),
    })
}

impl World<'_> {
    /// What will be decided for a pod when its time comes, if its open windows close by then as
    /// they should.
    fn foreseen(&self, slot: Slot, candidate: &Candidate<'_>, index: &Index<'_>) -> Verdict {
        if !matches!(candidate.verdict, Verdict::Drawn { .. }) {
            return candidate.verdict;
        }
        let window = self.window_seconds();
        if self.blackouts.hold(candidate.opens, window) {
            return Verdict::Skipped(SkipReason::Blackout);
        }
        let forbids = self.spec.concurrency_policy == ConcurrencyPolicy::Forbid;
        if forbids && index.is_open(&candidate.target.pod.uid, slot, candidate.opens) {
            return Verdict::Skipped(SkipReason::StillRunning);
        }
        candidate.verdict
    }
}
