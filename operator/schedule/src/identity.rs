//! The identity of a schedule.

use jiff::Timestamp;

/// The fields of a schedule's metadata that tell it from every other schedule, and from one of the
/// same name that was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// `metadata.name` of the schedule, which the names of its sessions begin with.
    pub name: String,
    /// `metadata.uid` of the schedule, which is the key of every random draw.
    pub uid: String,
    /// `metadata.creationTimestamp` of the schedule; slots before it are not decided.
    pub created: Timestamp,
}
