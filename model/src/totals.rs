//! How much a capture holds in all, whatever was read of it.

use crate::{Events, Timeline, count};

/// How much a capture holds in all, read or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Events of all categories.
    pub events: u64,
    /// Samples of all series.
    pub samples: u64,
    /// Launches that a kernel profiler measured.
    pub profiles: u64,
}

impl Totals {
    /// Of a timeline that was read whole.
    pub fn of(timeline: &Timeline) -> Self {
        let capture = &timeline.capture;
        Self {
            events: capture.events.values().map(Events::count).sum(),
            samples: capture.counters.iter().map(|series| count(series.t_ns.len())).sum(),
            profiles: count(capture.profiles.len()),
        }
    }
}
