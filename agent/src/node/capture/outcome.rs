//! How a capture ends: with what it published, or with a failure and what it held all the same.

use flopwatch_api::artifact::Artifact;
use flopwatch_api::capture::CaptureSummary;
use flopwatch_pipeline::failure::Failure;

/// A capture that ended well.
pub(super) struct Published {
    pub(super) artifacts: Vec<Artifact>,
    /// What they hold; none where an agent's record of it is lost.
    pub(super) summary: Option<CaptureSummary>,
    pub(super) message: String,
    /// Whether it has replicas in the object store, or is to have.
    pub(super) storage: Replication,
}

/// Copies of a capture's artifacts in the object store.
pub(super) enum Replication {
    /// There are to be none.
    None,
    /// There are to be some, by and by.
    Due,
    /// They are there: where, and the SHA-256 of their manifest.
    Stored { url: String, sha256: String },
}

/// A capture that did not, and what it held all the same.
pub(super) struct Failed {
    pub(super) failure: Failure,
    pub(super) summary: Option<CaptureSummary>,
    /// What is on the node all the same.
    pub(super) kept: Vec<Artifact>,
    /// Whether that has replicas in the object store, or is to have; none where it was to have some
    /// and has not.
    pub(super) storage: Option<Replication>,
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            summary: None,
            kept: Vec::new(),
            storage: None,
        }
    }
}
