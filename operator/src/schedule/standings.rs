//! What is told of classes of pods that a schedule leaves alone.

use std::collections::BTreeMap;

use flopwatch_api::reason::ScheduleReason;
use flopwatch_api::schedule::ProfilingScheduleSpec;
use flopwatch_schedule::{Class, Ledger, Standing, standing};
use jiff::Timestamp;
use moka::sync::Cache;

use crate::lru::lru;

/// Most classes of one schedule that are told of.
const MOST_CLASSES: usize = 50;
/// Most schedules that are remembered. Beyond it, what was told of the oldest is told again.
const MOST_SCHEDULES: u64 = 10_000;

/// What was told of each schedule, by its UID. It is remembered by this process alone: the next leader says it once more.
#[derive(Debug)]
pub struct Standings(Cache<String, BTreeMap<Class, Standing>>);

/// A class that is left alone, and was not before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// What it is left alone for.
    pub reason: ScheduleReason,
    /// The same in a sentence, with what helps.
    pub note: String,
}

impl Default for Standings {
    fn default() -> Self {
        Self(lru(MOST_SCHEDULES).build())
    }
}

impl Standings {
    /// What is new of a schedule's classes.
    pub fn news(&self, uid: &str, spec: &ProfilingScheduleSpec, ledger: &Ledger, now: Timestamp) -> Vec<News> {
        let accounts = ledger.classes.iter().take(MOST_CLASSES);
        let standings = accounts.map(|(class, account)| (class, standing(spec, Some(account), now)));
        let alone: BTreeMap<Class, Standing> = standings
            .filter(|(_, standing)| reason(*standing).is_some())
            .map(|(class, standing)| (class.clone(), standing))
            .collect();
        let before = self.0.get(uid).unwrap_or_default();
        self.0.insert(uid.to_owned(), alone.clone());
        let is_new = |(class, standing): &(Class, Standing)| before.get(class) != Some(standing);
        let news = |(class, standing): (Class, Standing)| {
            Some(News {
                reason: reason(standing)?,
                note: note(&class, standing),
            })
        };
        alone.into_iter().filter(is_new).filter_map(news).collect()
    }

    /// Forgets a schedule that is gone.
    pub fn forget(&self, uid: &str) {
        self.0.invalidate(uid);
    }
}

const fn reason(standing: Standing) -> Option<ScheduleReason> {
    match standing {
        Standing::Open | Standing::Halved => None,
        Standing::BackedOff { .. } => Some(ScheduleReason::BackedOff),
        Standing::Suspended => Some(ScheduleReason::ClassSuspended),
        Standing::OverBudget => Some(ScheduleReason::OverBudget),
        Standing::NoSensor => Some(ScheduleReason::NoSensor),
    }
}

fn note(class: &Class, standing: Standing) -> String {
    let pods = format!("pods of image {} on {}", class.image_digest, class.hardware);
    match standing {
        Standing::Open | Standing::Halved => pods,
        Standing::BackedOff { until } => {
            format!("the last window on {pods} failed or exceeded the budget: they are left alone until {until:.0}")
        }
        Standing::Suspended => {
            format!(
                "more than two of the last ten windows on {pods} failed: they are left alone until the schedule is changed"
            )
        }
        Standing::OverBudget => {
            format!(
                "{pods} lose more than spec.budget.amortizedBasisPoints: they are left alone until that is no longer so"
            )
        }
        Standing::NoSensor => format!(
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
        let standings = Standings::default();
        let told = |failures: &[i64], now| -> Vec<(ScheduleReason, bool)> {
            let news = standings.news("uid", &spec, &ledger(failures), at(now));
            news.iter()
                .map(|one| (one.reason, one.note.contains("sha256:11 on H100")))
                .collect()
        };
        assert_eq!(told(&[], 0), []);
        assert_eq!(told(&[0], 1), [(ScheduleReason::BackedOff, true)]);
        assert_eq!(told(&[0], 2), []);
        assert_eq!(told(&[0], 3_601), [], "it is over");
        assert_eq!(told(&[0, 3_610], 3_611), [(ScheduleReason::BackedOff, true)]);
        assert_eq!(
            told(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 10),
            [(ScheduleReason::ClassSuspended, true)]
        );
        standings.forget("uid");
        assert_eq!(told(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 11).len(), 1);
    }
}
