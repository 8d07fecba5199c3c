//! Times of the clock in a time zone.

use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use crate::slot::seconds_later;

/// Why times of the clock cannot be followed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum CronError {
    /// The expression does not have five fields of minute, hour, day, month and weekday, or a value
    /// is out of its range.
    #[error(
        "the cron expression \"{expression}\" cannot be read: {problem}; write minute, hour, day, month and weekday, such as \"0 8 * * 1-5\""
    )]
    Expression {
        /// Cron expression that was given.
        expression: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The expression names no day that there is, such as the 30th of February.
    #[error(
        "the cron expression \"{expression}\" names no day that there is: correct its day of the month or its month"
    )]
    Never {
        /// Cron expression that was given.
        expression: String,
    },
    /// The time zone is not in IANA's database.
    #[error("\"{time_zone}\" is no time zone of IANA's database: write a name such as Europe/Berlin or Etc/UTC")]
    TimeZone {
        /// The name, as `timeZone` has it.
        time_zone: String,
    },
}

/// An expression in a time zone.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    cron: croner::Cron,
    zone: TimeZone,
}

impl Clock {
    /// Reads both. The time zones are those that the program was built with, so that two
    /// controllers agree.
    pub(crate) fn new(expression: &str, time_zone: &str) -> Result<Self, CronError> {
        let refuse = |problem: String| CronError::Expression {
            expression: expression.to_owned(),
            problem,
        };
        if expression.contains('@') {
            return Err(refuse("names such as @daily are not taken".to_owned()));
        }
        let parser = CronParser::builder();
        let parser = parser.seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron = parser
            .parse(expression)
            .map_err(|problem| refuse(problem.to_string()))?;
        // The search ends in the year 5000: within a tenth of a second.
        let some_day = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
        if cron.find_next_occurrence(&some_day, true).is_err() {
            return Err(CronError::Never {
                expression: expression.to_owned(),
            });
        }
        let zone = TimeZoneDatabase::bundled().get(time_zone);
        let zone = zone.map_err(|_unknown| CronError::TimeZone {
            time_zone: time_zone.to_owned(),
        })?;
        Ok(Self { cron, zone })
    }

    /// The first time after that instant; None where there is none in the years that jiff knows.
    pub(crate) fn after(&self, instant: Timestamp) -> Option<Timestamp> {
        let from = whole_second(instant).to_zoned(self.zone.clone());
        let found = self.cron.find_next_occurrence(&from, false).ok()?;
        Some(found.timestamp()).filter(|found| *found > instant)
    }

    /// The last time that is not after that instant; None where there is none.
    pub(crate) fn until(&self, instant: Timestamp) -> Option<Timestamp> {
        let from = whole_second(instant).to_zoned(self.zone.clone());
        let found = self.cron.find_previous_occurrence(&from, true).ok()?;
        Some(found.timestamp()).filter(|found| *found <= instant)
    }

    /// The last time before that instant; None where there is none.
    pub(crate) fn before(&self, instant: Timestamp) -> Option<Timestamp> {
        let whole = whole_second(instant);
        self.until(if whole == instant {
            seconds_later(whole, -1)
        } else {
            whole
        })
    }
}

/// The second that holds the instant: expressions know no parts of one.
fn whole_second(instant: Timestamp) -> Timestamp {
    let part = i64::from(instant.subsec_nanosecond());
    let elapsed = if part < 0 { part + 1_000_000_000 } else { part };
    instant
        .saturating_sub(SignedDuration::from_nanos(elapsed))
        .unwrap_or(instant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(expression: &str, time_zone: &str) -> CronError {
        Clock::new(expression, time_zone).unwrap_err()
    }

    #[test]
    fn what_cannot_be_followed_is_refused_with_a_remedy() {
        for expression in ["", "* * * *", "0 * * * * *", "61 * * * *", "@daily", "0 0 * * x"] {
            assert!(
                matches!(refused(expression, "Etc/UTC"), CronError::Expression { .. }),
                "{expression}"
            );
        }
        for expression in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *"] {
            assert!(
                matches!(refused(expression, "Etc/UTC"), CronError::Never { .. }),
                "{expression}"
            );
        }
        for time_zone in ["", "Mars/Olympus", "../etc/passwd"] {
            assert!(
                matches!(refused("0 0 * * *", time_zone), CronError::TimeZone { .. }),
                "{time_zone}"
            );
        }
    }

    #[test]
    fn an_instant_within_a_second_is_after_the_time_that_the_second_starts_with() {
        let clock = Clock::new("0 8 * * *", "Etc/UTC").unwrap();
        let eight: Timestamp = "2026-11-25T08:00:00Z".parse().unwrap();
        let next: Timestamp = "2026-11-26T08:00:00Z".parse().unwrap();
        let last: Timestamp = "2026-11-24T08:00:00Z".parse().unwrap();
        let half_past = eight + SignedDuration::from_millis(500);
        assert_eq!(clock.after(eight), Some(next));
        assert_eq!(clock.after(half_past), Some(next));
        assert_eq!(clock.after(eight - SignedDuration::from_millis(1)), Some(eight));
        assert_eq!(clock.until(eight), Some(eight));
        assert_eq!(clock.before(eight), Some(last));
        assert_eq!(clock.before(half_past), Some(eight));
    }
}
