//! What a trace of ours in the format of another program says beside its events.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Category, Device, Loss, Source};

/// What the format of Chrome traces has no place for, as our writer puts it into `otherData`: with
/// it and with the [`super::Row`] of each track, a reader has the capture as it was.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceAbout {
    /// [`TraceAbout::WRITER`].
    pub writer: String,
    /// Version of the writer's tracks and members.
    pub schema_version: u32,
    /// The session's identifier.
    pub session_id: String,
    /// The session's start in ns since the Unix epoch as a text, since readers of JSON in browsers
    /// have 53 bits for a number; null where it is not known.
    pub session_start_utc_ns: Option<String>,
    /// Length of the capture in ns.
    pub total_duration_ns: u64,
    /// Where the capture came from.
    pub source: Source,
    /// Categories that were recorded, with or without events.
    pub captured: BTreeSet<Category>,
    /// GPUs that events refer to.
    pub devices: Vec<Device>,
    /// What did not make it from the source into the events unchanged.
    pub drops: Vec<Loss>,
    /// Secrets that were replaced in strings.
    pub redactions: u64,
}

impl TraceAbout {
    /// The writer that a trace of ours names.
    pub const WRITER: &str = "flopwatch";
}
