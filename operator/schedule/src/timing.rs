//! When the slots are, and where in them each pod has its time.

use flopwatch_api::schedule::When;
use jiff::Timestamp;
use thiserror::Error;

use crate::cron::{Clock, CronError};
use crate::random::{Ticket, below};
use crate::slot::Slot;

/// Why there are no slots.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum TimingError {
    /// Neither an interval nor times of the clock are given, or both.
    #[error("spec.when needs exactly one of interval and cron")]
    Ambiguous,
    /// The interval is not positive.
    #[error("spec.when.interval.seconds is {0}: it must be positive")]
    Interval(i32),
    /// The times of the clock cannot be followed.
    #[error("spec.when.cron: {0}")]
    Cron(#[from] CronError),
}

/// When the slots are.
#[derive(Clone, Debug)]
pub(crate) struct Timing {
    slots: Slots,
    jitter_seconds: i64,
}

#[derive(Clone, Debug)]
enum Slots {
    /// Of equal length in seconds, the first at the start of 1970. Each pod has a time of its own
    /// in them.
    Every(i64),
    /// At times of the clock, each until the next one.
    At(Box<Clock>),
}

impl Timing {
    pub(crate) fn new(when: &When, jitter_seconds: i32) -> Result<Self, TimingError> {
        let slots = match (&when.interval, &when.cron) {
            (Some(interval), None) if interval.seconds > 0 => Slots::Every(i64::from(interval.seconds)),
            (Some(interval), None) => return Err(TimingError::Interval(interval.seconds)),
            (None, Some(cron)) => Slots::At(Box::new(Clock::new(&cron.expression, &cron.time_zone)?)),
            _ => return Err(TimingError::Ambiguous),
        };
        Ok(Self {
            slots,
            jitter_seconds: i64::from(jitter_seconds.max(0)),
        })
    }

    /// The last slot that has started by then.
    pub(crate) fn current(&self, instant: Timestamp) -> Option<Slot> {
        match &self.slots {
            Slots::Every(seconds) => {
                let start = floor_second(instant).div_euclid(*seconds).checked_mul(*seconds)?;
                Timestamp::from_second(start).ok().map(Slot::starting)
            }
            Slots::At(clock) => clock.until(instant).map(Slot::starting),
        }
    }

    /// The slot after that one.
    pub(crate) fn after(&self, slot: Slot) -> Option<Slot> {
        match &self.slots {
            Slots::Every(seconds) => shifted(slot, *seconds),
            Slots::At(clock) => clock.after(slot.start()).map(Slot::starting),
        }
    }

    /// The slot before that one.
    pub(crate) fn before(&self, slot: Slot) -> Option<Slot> {
        match &self.slots {
            Slots::Every(seconds) => shifted(slot, -seconds),
            Slots::At(clock) => clock.before(slot.start()).map(Slot::starting),
        }
    }

    /// How many slots start after the first one and not after the second, where that can be told
    /// without looking at each.
    pub(crate) fn count_between(&self, first: Slot, second: Slot) -> Option<i64> {
        match &self.slots {
            Slots::Every(seconds) => Some(((second.seconds() - first.seconds()) / seconds).max(0)),
            Slots::At(_) => None,
        }
    }

    /// Seconds from the slot to the next one.
    pub(crate) fn period_seconds(&self, slot: Slot) -> i64 {
        match &self.slots {
            Slots::Every(seconds) => *seconds,
            Slots::At(_) => match self.after(slot) {
                Some(next) => (next.seconds() - slot.seconds()).max(1),
                None => i64::from(i32::MAX),
            },
        }
    }

    /// Longest delay in that slot, in milliseconds.
    fn jitter_milliseconds(&self, period_seconds: i64) -> i64 {
        1000 * self.jitter_seconds.min(period_seconds)
    }

    /// When all pods have had their times of a slot.
    pub(crate) fn end(&self, slot: Slot) -> Timestamp {
        let period = self.period_seconds(slot);
        let phase = match self.slots {
            Slots::Every(_) => 1000 * period,
            Slots::At(_) => 0,
        };
        slot.plus_milliseconds(phase + self.jitter_milliseconds(period))
    }

    /// When the window of a pod opens in a slot whose period is given: at its own time of slots of
    /// equal length, or at the slot's start, and after its delay.
    pub(crate) fn opens(&self, slot: Slot, period_seconds: i64, phase: u64, ticket: Ticket) -> Timestamp {
        let phase = match self.slots {
            Slots::Every(_) => below(1000 * period_seconds, phase),
            Slots::At(_) => 0,
        };
        slot.plus_milliseconds(phase + below(self.jitter_milliseconds(period_seconds), ticket.jitter))
    }
}

fn shifted(slot: Slot, seconds: i64) -> Option<Slot> {
    let start = slot.seconds().checked_add(seconds)?;
    Timestamp::from_second(start).ok().map(Slot::starting)
}

fn floor_second(instant: Timestamp) -> i64 {
    let second = instant.as_second();
    if instant.subsec_nanosecond() < 0 {
        second - 1
    } else {
        second
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Draws;
    use flopwatch_api::schedule::{Cron, Interval};

    fn every(seconds: i32, jitter: i32) -> Timing {
        let when = When {
            interval: Some(Interval { seconds }),
            cron: None,
        };
        Timing::new(&when, jitter).unwrap()
    }

    fn at(expression: &str, jitter: i32) -> Timing {
        let cron = Cron {
            expression: expression.to_owned(),
            time_zone: "Etc/UTC".to_owned(),
        };
        let when = When {
            interval: None,
            cron: Some(cron),
        };
        Timing::new(&when, jitter).unwrap()
    }

    #[test]
    fn both_and_neither_are_refused() {
        assert_eq!(Timing::new(&When::default(), 0).unwrap_err(), TimingError::Ambiguous);
    }

    #[test]
    fn times_of_pods_spread_evenly_over_a_slot() {
        let timing = every(900, 0);
        let draws = Draws::of("schedule");
        let slot = timing.current("2026-11-25T08:20:00Z".parse().unwrap()).unwrap();
        let mut quarters = [0_usize; 4];
        for pod in 0..4000 {
            let uid = format!("pod-{pod}");
            let opens = timing.opens(slot, 900, draws.phase(&uid), draws.ticket(slot, &uid));
            let offset = opens.duration_since(slot.start()).as_millis();
            quarters[usize::try_from(offset / 225_000).unwrap()] += 1;
        }
        assert!(quarters.iter().all(|count| (900..1100).contains(count)), "{quarters:?}");
    }

    #[test]
    fn times_of_the_clock_are_never_delayed_beyond_the_next_one() {
        let timing = at("*/5 * * * *", 86_400);
        let draws = Draws::of("schedule");
        let slot = timing.current("2026-11-25T08:22:00Z".parse().unwrap()).unwrap();
        let next = timing.after(slot).unwrap();
        for pod in 0..1000 {
            let opens = timing.opens(slot, 300, pod, draws.ticket(slot, &pod.to_string()));
            assert!(opens >= slot.start() && opens < next.start());
        }
        assert_eq!(timing.end(slot), next.start());
    }

    #[test]
    fn slots_follow_each_other_both_ways() {
        for timing in [every(900, 0), at("7 8,20 * * *", 0)] {
            let now = "1969-12-31T23:50:00.5Z".parse().unwrap();
            let slot = timing.current(now).unwrap();
            assert!(slot.start() <= now && timing.after(slot).unwrap().start() > now);
            assert_eq!(timing.before(timing.after(slot).unwrap()), Some(slot));
        }
    }
}
