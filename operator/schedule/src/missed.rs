//! Slots that nobody decided in time.

use std::collections::BTreeMap;

use flopwatch_api::schedule::SkipReason;
use jiff::Timestamp;

use crate::draw::Verdict;
use crate::index::Index;
use crate::quota::quota;
use crate::skipped::Skipped;
use crate::slot::{Slot, seconds_later};
use crate::strata::Key;
use crate::world::World;

/// Most slots that are looked at one by one. A schedule of every minute has them in a week.
pub(crate) const MAX_SLOTS: usize = 10_000;

/// How many pods could be drawn from at some time in the past: those that are there now, and were
/// old enough then.
#[derive(Debug)]
struct Frames(Vec<Vec<Timestamp>>);

impl Frames {
    fn new(world: &World<'_>) -> Self {
        let age = i64::from(world.spec.select.min_pod_age_seconds);
        let mut strata: BTreeMap<&Key<'_>, Vec<Timestamp>> = BTreeMap::new();
        for target in world.targets.iter().filter(|target| !target.pod.terminating) {
            let old_enough = seconds_later(target.pod.started, age);
            strata.entry(&target.key).or_default().push(old_enough);
        }
        let mut frames: Vec<Vec<Timestamp>> = strata.into_values().collect();
        for frame in &mut frames {
            frame.sort_unstable();
        }
        Self(frames)
    }

    /// How many windows a slot would have had.
    fn windows(&self, world: &World<'_>, at: Timestamp) -> i64 {
        let pods = |frame: &Vec<Timestamp>| frame.partition_point(|old_enough| *old_enough <= at);
        let quota = |pods: usize| quota(&world.spec.select.per_run, i64::try_from(pods).unwrap_or(i64::MAX));
        self.0.iter().map(pods).map(quota).sum()
    }
}

impl World<'_> {
    /// Counts the windows that nobody opened in the slots before `first`, back to the instant up to
    /// which slots were decided. Who would have had them is drawn only in the slot that was decided
    /// in part: of the others it counts how many there would have been.
    pub(crate) fn count_missed(&self, first: Slot, decided: Timestamp, index: &Index<'_>, skipped: &mut Skipped) {
        let mut frames = None;
        let mut slot = first;
        for _ in 0..MAX_SLOTS {
            let Some(earlier) = self.timing.before(slot).filter(|slot| self.timing.end(*slot) > decided) else {
                return;
            };
            slot = earlier;
            if slot.start() > decided {
                let frames = frames.get_or_insert_with(|| Frames::new(self));
                let windows = frames.windows(self, slot.start()) - index.in_slot(slot);
                skipped.add(self.reason(slot.start()), windows);
            } else {
                self.count_partly_missed(slot, decided, index, skipped);
            }
        }
        let decided = self.timing.current(decided);
        let further = decided.and_then(|decided| self.timing.count_between(decided, slot));
        if let (Some(slots), Some(frames)) = (further, frames) {
            skipped.add(
                SkipReason::Missed,
                frames.windows(self, slot.start()).saturating_mul(slots),
            );
        }
    }

    fn count_partly_missed(&self, slot: Slot, decided: Timestamp, index: &Index<'_>, skipped: &mut Skipped) {
        let draw = self.draw(slot, index);
        let undecided = draw.candidates.iter().filter(|candidate| candidate.opens > decided);
        for candidate in undecided {
            match candidate.verdict {
                Verdict::Drawn { .. } => skipped.add(self.reason(candidate.opens), 1),
                Verdict::Skipped(reason) => skipped.add(reason, 1),
                Verdict::Made | Verdict::NotDrawn => {}
            }
        }
    }

    /// Why a window was not opened then: it was not to be, or nobody did.
    fn reason(&self, opens: Timestamp) -> SkipReason {
        if self.blackouts.hold(opens, self.window_seconds()) {
            SkipReason::Blackout
        } else {
            SkipReason::Missed
        }
    }
}
