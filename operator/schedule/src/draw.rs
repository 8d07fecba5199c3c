//! The draw of a slot: which pods have a window in it, and why the others have none.
//!
//! Whether a pod can be drawn is judged as of its own time in the slot and by the sessions of other
//! slots, so that a slot that is drawn again, while its windows open one after the other, has the
//! same answer. A pod that was made a session for has its place, whatever became of it since.

use std::collections::BTreeMap;

use flopwatch_api::schedule::{SkipReason, StratumStatus};
use jiff::Timestamp;

use crate::eligibility::{Eligibility, eligibility};
use crate::index::Index;
use crate::quota::{Pace, quota};
use crate::slot::{Slot, seconds_later};
use crate::strata::Key;
use crate::world::{Target, World};

/// What a slot holds for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The pod's session was made.
    Made,
    /// The pod was drawn.
    Drawn {
        /// How probable it is at any time of the period that it is in a window, in billionths.
        probability_per_billion: i32,
    },
    /// The pod could have been drawn, and others of its stratum were.
    NotDrawn,
    /// The pod was left out, for this reason.
    Skipped(SkipReason),
}

/// The draw of a slot.
#[derive(Debug)]
pub(crate) struct Draw<'w> {
    pub(crate) slot: Slot,
    /// One for each pod that was there at its time.
    pub(crate) candidates: Vec<Candidate<'w>>,
    pub(crate) strata: Vec<StratumStatus>,
}

/// A pod in a slot.
#[derive(Debug)]
pub(crate) struct Candidate<'w> {
    pub(crate) target: &'w Target<'w>,
    /// When its window opens.
    pub(crate) opens: Timestamp,
    pub(crate) verdict: Verdict,
    rank: u128,
    halved: bool,
}

impl<'w> Draw<'w> {
    /// Pods that were drawn and whose time has not come.
    pub(crate) fn to_come(&self, now: Timestamp) -> impl Iterator<Item = &Candidate<'w>> {
        let drawn = |candidate: &&Candidate<'_>| matches!(candidate.verdict, Verdict::Drawn { .. });
        self.candidates
            .iter()
            .filter(move |candidate| candidate.opens > now)
            .filter(drawn)
    }
}

#[derive(Default)]
struct Group<'c, 'w> {
    /// Pods that can be drawn, and those that could be but for their own earlier windows.
    frame: i64,
    made: i64,
    captured: i32,
    open: Vec<&'c mut Candidate<'w>>,
}

impl World<'_> {
    /// Draws a slot.
    pub(crate) fn draw<'w>(&'w self, slot: Slot, index: &Index<'_>) -> Draw<'w> {
        let period = self.timing.period_seconds(slot);
        let candidates = self.targets.iter();
        let candidates = candidates.filter_map(|target| self.candidate(slot, period, target, index));
        let mut candidates: Vec<Candidate<'_>> = candidates.collect();

        let mut groups: BTreeMap<&Key<'_>, Group<'_, '_>> = BTreeMap::new();
        for candidate in &mut candidates {
            if !in_frame(candidate.verdict) {
                continue;
            }
            let group = groups.entry(&candidate.target.key).or_default();
            group.frame += 1;
            group.captured += i32::from(index.captured(&candidate.target.pod.uid));
            match candidate.verdict {
                Verdict::Made => group.made += 1,
                Verdict::NotDrawn => group.open.push(candidate),
                Verdict::Drawn { .. } | Verdict::Skipped(_) => {}
            }
        }
        let mut strata = Vec::new();
        for (key, group) in groups {
            strata.push(self.choose(key, group, period));
        }
        Draw {
            slot,
            candidates,
            strata,
        }
    }

    /// Draws those of the lowest ranks, until the stratum has as many windows as it should.
    /// Probabilities count pods that rest from an earlier window too: it was chance that they had
    /// one, and before it was known each pod of the stratum was as likely as any other.
    fn choose(&self, key: &Key<'_>, mut group: Group<'_, '_>, period: i64) -> StratumStatus {
        let wanted = quota(&self.spec.select.per_run, group.frame);
        let pace = Pace {
            window_seconds: self.window_seconds(),
            period_seconds: period,
            rest_seconds: i64::from(self.spec.select.rest_seconds),
            seconds_per_day: self.spec.budget.capture_seconds_per_pod_per_day.map(i64::from),
        };
        let probability = |halved| pace.probability_per_billion(wanted, group.frame, halved);
        let halved = group.open.first().is_some_and(|candidate| candidate.halved);
        let status = StratumStatus {
            key: key.text(),
            pods: i32::try_from(group.frame).unwrap_or(i32::MAX),
            captured: group.captured,
            probability_per_billion: probability(halved),
        };
        group.open.sort_by_key(|candidate| candidate.rank);
        let left = usize::try_from(wanted - group.made).unwrap_or_default();
        for candidate in group.open.into_iter().take(left) {
            candidate.verdict = Verdict::Drawn {
                probability_per_billion: probability(candidate.halved),
            };
        }
        status
    }

    /// A pod in a slot, not drawn yet; None where it was not there at its time.
    fn candidate<'w>(
        &'w self,
        slot: Slot,
        period: i64,
        target: &'w Target<'w>,
        index: &Index<'_>,
    ) -> Option<Candidate<'w>> {
        let uid = target.pod.uid.as_str();
        let ticket = self.draws.ticket(slot, uid);
        let opens = self.timing.opens(slot, period, target.phase, ticket);
        let eligibility = eligibility(self.spec, target.account, opens);
        let verdict = if index.has(slot, uid) {
            Verdict::Made
        } else if target.pod.started > opens {
            return None;
        } else {
            let barred = self.barred(slot, target, opens, eligibility, index);
            barred.map_or(Verdict::NotDrawn, Verdict::Skipped)
        };
        Some(Candidate {
            target,
            opens,
            verdict,
            rank: ticket.rank,
            halved: eligibility == Eligibility::Halved,
        })
    }

    /// Why a pod cannot be drawn.
    fn barred(
        &self,
        slot: Slot,
        target: &Target<'_>,
        opens: Timestamp,
        eligibility: Eligibility,
        index: &Index<'_>,
    ) -> Option<SkipReason> {
        let pod = target.pod;
        let select = &self.spec.select;
        let calm = seconds_later(opens, -i64::from(select.min_pod_age_seconds));
        if pod.terminating {
            return Some(SkipReason::Terminating);
        }
        if pod.started > calm {
            return Some(SkipReason::TooYoung);
        }
        if pod.restarted.is_some_and(|restarted| restarted > calm) {
            return Some(SkipReason::Restarting);
        }
        let class = [pod.class.image_digest.as_str(), pod.class.hardware.as_str()];
        match eligibility {
            Eligibility::BackedOff { .. } => return Some(SkipReason::BackedOff),
            Eligibility::Suspended => return Some(SkipReason::ClassSuspended),
            Eligibility::OverBudget => return Some(SkipReason::OverBudget),
            Eligibility::NoSensor => return Some(SkipReason::NoSensor),
            Eligibility::Halved if !self.draws.keeps(slot, &class) => return Some(SkipReason::RateHalved),
            Eligibility::Halved | Eligibility::Open => {}
        }
        let rest = i64::from(select.rest_seconds);
        if rest > 0
            && index
                .rested(&pod.uid, slot, opens, rest)
                .is_some_and(|rested| rested > opens)
        {
            return Some(SkipReason::Resting);
        }
        let limit = self.spec.budget.capture_seconds_per_pod_per_day?;
        let spent = index
            .seconds_of_day(&pod.uid, Some(slot), opens)
            .saturating_add(self.window_seconds());
        (spent > i64::from(limit)).then_some(SkipReason::DailyLimit)
    }
}

/// Whether a pod counts among those that are drawn from. Left out are those whose state, or whose
/// class, keeps them out, which no draw brought about.
const fn in_frame(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Made | Verdict::Drawn { .. } | Verdict::NotDrawn => true,
        Verdict::Skipped(reason) => matches!(reason, SkipReason::Resting | SkipReason::DailyLimit),
    }
}
