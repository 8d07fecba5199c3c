//! Announcements of classes of pods that a schedule does not profile.

use std::collections::BTreeMap;

use flopwatch_api::reason::ScheduleReason;
use flopwatch_api::schedule::ProfilingScheduleSpec;
use flopwatch_schedule::{Class, Eligibility, Ledger, eligibility};
use jiff::Timestamp;
use moka::sync::Cache;

use crate::lru::lru;

/// Most classes of one schedule that are announced.
const MAX_CLASSES: usize = 50;
/// Most schedules that are remembered. Beyond it, the classes of the oldest are announced again.
const MAX_SCHEDULES: u64 = 10_000;

/// The classes of each schedule that were announced, by the schedule's UID. Only this process
/// remembers them: the next leader announces them once more.
#[derive(Debug)]
pub struct AnnouncedClasses(Cache<String, BTreeMap<Class, Eligibility>>);

/// The announcement of a class that is not profiled any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassAnnouncement {
    /// Why the class is not profiled.
    pub reason: ScheduleReason,
    /// The reason as a sentence, with the remedy.
    pub note: String,
}

impl Default for AnnouncedClasses {
    fn default() -> Self {
        Self(lru(MAX_SCHEDULES).build())
    }
}

impl AnnouncedClasses {
    /// The announcements that are due for a schedule: of classes that are not profiled now and were
    /// not announced with the same eligibility.
    pub fn news(
        &self,
        uid: &str,
        spec: &ProfilingScheduleSpec,
        ledger: &Ledger,
        now: Timestamp,
    ) -> Vec<ClassAnnouncement> {
        let accounts = ledger.classes.iter().take(MAX_CLASSES);
        let eligibilities = accounts.map(|(class, account)| (class, eligibility(spec, Some(account), now)));
        let alone: BTreeMap<Class, Eligibility> = eligibilities
            .filter(|(_, eligibility)| reason(*eligibility).is_some())
            .map(|(class, eligibility)| (class.clone(), eligibility))
            .collect();
        let before = self.0.get(uid).unwrap_or_default();
        self.0.insert(uid.to_owned(), alone.clone());
        let is_new = |(class, eligibility): &(Class, Eligibility)| before.get(class) != Some(eligibility);
        let news = |(class, eligibility): (Class, Eligibility)| {
            Some(ClassAnnouncement {
                reason: reason(eligibility)?,
                note: note(&class, eligibility),
            })
        };
        alone.into_iter().filter(is_new).filter_map(news).collect()
    }

    /// Forgets a schedule that is gone.
    pub fn forget(&self, uid: &str) {
        self.0.invalidate(uid);
    }
}

const fn reason(eligibility: Eligibility) -> Option<ScheduleReason> {
    match eligibility {
        Eligibility::Open | Eligibility::Halved => None,
        Eligibility::BackedOff { .. } => Some(ScheduleReason::BackedOff),
        Eligibility::Suspended => Some(ScheduleReason::ClassSuspended),
        Eligibility::OverBudget => Some(ScheduleReason::OverBudget),
        Eligibility::NoSensor => Some(ScheduleReason::NoSensor),
    }
}

fn note(class: &Class, eligibility: Eligibility) -> String {
    let pods = format!("pods of image {} on {}", class.image_digest, class.hardware);
    match eligibility {
        Eligibility::Open | Eligibility::Halved => pods,
        Eligibility::BackedOff { until } => {
            format!("the last window on {pods} failed or exceeded the budget: they are left alone until {until:.0}")
        }
        Eligibility::Suspended => {
            format!(
                "more than two of the last ten windows on {pods} failed: they are left alone until the schedule is changed"
            )
        }
        Eligibility::OverBudget => {
            format!(
                "{pods} lose more than spec.budget.amortizedBasisPoints: they are left alone until that is no longer so"
            )
        }
        Eligibility::NoSensor => format!(
            "nothing tells how fast {pods} are, and spec.budget.unknown is Refuse: name a counter in spec.budget.signal, or prepare them for the flight recorder"
        ),
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_schedule::{Account, Outcome};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_class_that_is_left_alone_is_told_of_once_and_again_when_it_fails_again() {
        let spec: ProfilingScheduleSpec = serde_json::from_value(json!({
            "when": {"interval": {"seconds": 900}}, "select": {"podSelector": {}}
        }))
        .unwrap();
        let at = |seconds| Timestamp::from_second(1_000_000 + seconds).unwrap();
        let class = Class {
            image_digest: "sha256:11".to_owned(),
            hardware: "H100".to_owned(),
        };
        let ledger = |failures: &[i64]| {
            let outcomes = failures.iter().map(|failure| Outcome {
                at: at(*failure),
                failed: true,
            });
            let account = Account {
                outcomes: outcomes.collect(),
                ..Account::default()
            };
            Ledger {
                classes: BTreeMap::from([(class.clone(), account)]),
            }
        };
        let announced = AnnouncedClasses::default();
        let news = |failures: &[i64], now| -> Vec<(ScheduleReason, bool)> {
            let news = announced.news("uid", &spec, &ledger(failures), at(now));
            news.iter()
                .map(|one| (one.reason, one.note.contains("sha256:11 on H100")))
                .collect()
        };
        assert_eq!(news(&[], 0), []);
        assert_eq!(news(&[0], 1), [(ScheduleReason::BackedOff, true)]);
        assert_eq!(news(&[0], 2), []);
        assert_eq!(news(&[0], 3_601), [], "it is over");
        assert_eq!(news(&[0, 3_610], 3_611), [(ScheduleReason::BackedOff, true)]);
        assert_eq!(
            news(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 10),
            [(ScheduleReason::ClassSuspended, true)]
        );
        announced.forget("uid");
        assert_eq!(news(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 11).len(), 1);
    }
}
