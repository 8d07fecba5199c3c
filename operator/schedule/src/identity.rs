//! Which schedule it is.

use jiff::Timestamp;

/// What tells a schedule from every other, and from one of the same name that was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`: the key of every draw.
    pub uid: String,
    /// `metadata.creationTimestamp`: no slot is decided before it.
    pub created: Timestamp,
}
