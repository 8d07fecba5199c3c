//! What captures hold, in the words of tests, and the timelines that are made of them.

use std::path::Path;

use flopwatch_model::{Capture, Events, LossReason, Timeline};
use flopwatch_trace::transform::{TransformOptions, transform};

/// What `read` makes of a file of that name with that content.
pub(crate) fn read_as<E: ToString, T>(
    name: &str,
    content: impl AsRef<[u8]>,
    read: impl FnOnce(&Path) -> Result<T, E>,
) -> Result<T, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    read(&path).map_err(|error| error.to_string())
}

/// What was lost: why, what, and how often.
pub(crate) fn lost(capture: &Capture) -> Vec<(LossReason, String, u64)> {
    let losses = capture.losses.list().into_iter();
    losses.map(|loss| (loss.reason, loss.what, loss.count)).collect()
}

/// What was lost, whyever, and how often.
pub(crate) fn counted(capture: &Capture) -> Vec<(String, u64)> {
    let losses = lost(capture).into_iter();
    losses.map(|(_, what, count)| (what, count)).collect()
}

/// The names of events, in their order.
pub(crate) fn names(events: &Events) -> Vec<&str> {
    (0..events.len()).map(|at| events.name_of(at)).collect()
}

/// Name, start and length of events, in their order.
pub(crate) fn spans(events: &Events) -> Vec<(&str, u64, u64)> {
    let span = |at| (events.name_of(at), events.start_ns[at], events.duration_ns[at]);
    (0..events.len()).map(span).collect()
}

/// The timeline of a capture of no session.
pub(crate) fn timeline_of(capture: Capture) -> Timeline {
    transform(capture, TransformOptions::default())
}

/// A capture as it is published.
pub(crate) fn published(capture: Capture) -> Timeline {
    of_session(capture, "c0ffee00")
}

/// The timeline of a capture of a session.
pub(crate) fn of_session(capture: Capture, session_id: &str) -> Timeline {
    let session_id = session_id.to_owned();
    transform(capture, TransformOptions { session_id })
}
