//! Holds a capture that a child sent against the limits of reading and against itself. Other
//! libraries take the tables that are made of it without looking.

use flopwatch_model::{Capture, Events, index};
use flopwatch_trace::ReadLimits;

/// What contradicts what, if anything does.
pub(super) fn check(capture: &Capture) -> Result<(), String> {
    let limits = ReadLimits::default();
    let rows = capture.rows.len();
    if rows > index(limits.max_rows) {
        return Err(format!("more than {} rows", limits.max_rows));
    }
    let all: u64 = capture.events.values().map(Events::count).sum();
    if all > limits.max_events {
        return Err(format!("more than {} events", limits.max_events));
    }
    capture.check().map_err(|error| error.to_string())
}
