//! Why there are no sums of the fleet.

use axum::http::StatusCode;
use flopwatch_artifacts::object_store::ObjectStoreError;

use crate::gateway::problem::Problem;
use crate::gateway::slots::Full;

/// Why there are none.
#[derive(Debug)]
pub(crate) enum FleetProblem {
    /// There is no object store that could hold rows of the fleet.
    NoObjectStore,
    /// As many requests as may be have rows of the fleet read.
    Busy,
    /// The caller has some read already.
    BusyCaller,
    /// The rows were not read in time.
    Slow,
    /// The rows cannot be listed.
    Store(ObjectStoreError),
}

impl From<FleetProblem> for Problem {
    fn from(problem: FleetProblem) -> Self {
        Self::Fleet(problem)
    }
}

impl From<Full> for FleetProblem {
    fn from(full: Full) -> Self {
        match full {
            Full::All => Self::Busy,
            Full::Own => Self::BusyCaller,
        }
    }
}

impl FleetProblem {
    /// Status, reason and detail.
    pub(crate) fn describe(&self) -> (StatusCode, &'static str, String) {
        let slow = (StatusCode::GATEWAY_TIMEOUT, "ObjectStoreSlow");
        let ((status, reason), detail) = match self {
            Self::NoObjectStore => (
                (StatusCode::NOT_FOUND, "NoObjectStore"),
                "Rows of the fleet are kept in an object store, and this cluster has none: its administrator names one (chart value \
                 store.url)."
                    .to_owned(),
            ),
            Self::Busy => (
                (StatusCode::SERVICE_UNAVAILABLE, "Busy"),
                "As many requests as may be have rows of the fleet read; try again in a moment.".to_owned(),
            ),
            Self::BusyCaller => (
                (StatusCode::SERVICE_UNAVAILABLE, "Busy"),
                "You have rows of the fleet read already; try again when that is answered. The service accounts of a namespace count as one user."
                    .to_owned(),
            ),
            Self::Slow => (
                slow,
                "The rows of that time were not read in time; ask for a shorter one.".to_owned(),
            ),
            Self::Store(error) => {
                let kind = match error {
                    ObjectStoreError::Slow { .. } => slow,
                    _ => (StatusCode::SERVICE_UNAVAILABLE, "ObjectStore"),
                };
                (kind, format!("The rows of the fleet cannot be listed: {error}."))
            }
        };
        (status, reason, detail)
    }
}
