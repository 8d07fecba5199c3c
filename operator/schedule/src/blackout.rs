//! Times in which no window is open.

use flopwatch_api::schedule::Blackout;
use jiff::Timestamp;

use crate::cron::{Clock, CronError};
use crate::slot::seconds_later;

/// The blackouts of a schedule.
#[derive(Clone, Debug)]
pub(crate) struct Blackouts(Vec<(Clock, i64)>);

impl Blackouts {
    pub(crate) fn new(blackouts: &[Blackout]) -> Result<Self, CronError> {
        let read = |blackout: &Blackout| {
            let clock = Clock::new(&blackout.cron, &blackout.time_zone)?;
            Ok((clock, i64::from(blackout.duration_seconds)))
        };
        blackouts.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a window that opens then, and is open for that many seconds, would be open in a
    /// blackout. A blackout ends before the instant that is its length after its start. Those of
    /// one clock are all of one length, so the last to start is the last to end.
    pub(crate) fn hold(&self, opens: Timestamp, window_seconds: i64) -> bool {
        let closes = seconds_later(opens, window_seconds.max(0));
        self.0.iter().any(|(clock, length)| {
            let last = clock.before(closes).or_else(|| clock.until(opens));
            last.is_some_and(|start| seconds_later(start, *length) > opens)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_in_a_blackout_when_a_part_of_it_is() {
        let blackout = Blackout {
            cron: "0 8 * * 1-5".to_owned(),
            time_zone: "Europe/Berlin".to_owned(),
            duration_seconds: 7200,
        };
        let blackouts = Blackouts::new(&[blackout]).unwrap();
        // A Wednesday in winter: eight in Berlin is seven in UTC.
        for (opens, inside) in [
            ("2026-11-25T06:59:49Z", false),
            ("2026-11-25T06:59:50Z", false),
            ("2026-11-25T06:59:51Z", true),
            ("2026-11-25T08:59:59Z", true),
            ("2026-11-25T09:00:00Z", false),
            ("2026-11-28T07:30:00Z", false),
            ("2026-07-01T06:30:00Z", true),
        ] {
            assert_eq!(blackouts.hold(opens.parse().unwrap(), 10), inside, "{opens}");
        }
    }
}
