//! Calls of the API server with a deadline of 10 s, and the error of one that fails.

use std::time::Duration;

use flopwatch_api::OPERATOR_FIELD_MANAGER;
use kube::api::PatchParams;
use kube::core::Status;

/// Longest time that one call to the API server may take.
pub const API_DEADLINE: Duration = Duration::from_secs(10);

/// The failure of a call to the API server.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The API server refused the call, or it could not be reached.
    #[error("{call}: {source}")]
    Api {
        /// The call, as a phrase such as "creating a session".
        call: &'static str,
        /// The refusal, or the error of the connection.
        source: Box<kube::Error>,
    },
    /// The API server did not answer within [`API_DEADLINE`].
    #[error("{call}: no answer from the API server within {} s", API_DEADLINE.as_secs())]
    Deadline {
        /// The call, as a phrase such as "creating a session".
        call: &'static str,
    },
}

impl CallError {
    /// Whether somebody else changed the object since it was read; the next pass sees the change.
    pub fn is_conflict(&self) -> bool {
        self.status() == Some((409, "Conflict"))
    }

    /// Whether the API server refused to create the object because one of its name exists.
    pub fn already_exists(&self) -> bool {
        self.status() == Some((409, "AlreadyExists"))
    }

    /// Whether the API server answered that the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.status().is_some_and(|(code, _)| code == 404)
    }

    /// Value of the metrics label `outcome`: `conflict`, `failed` or `timed_out`.
    pub fn outcome(&self) -> &'static str {
        match self {
            Self::Api { .. } if self.is_conflict() => "conflict",
            Self::Api { .. } => "failed",
            Self::Deadline { .. } => "timed_out",
        }
    }

    /// HTTP status and message of the API server's refusal; None where the server was not reached
    /// or did not answer.
    pub fn refusal(&self) -> Option<(u16, &str)> {
        self.answer().map(|status| (status.code, status.message.as_str()))
    }

    fn status(&self) -> Option<(u16, &str)> {
        self.answer().map(|status| (status.code, status.reason.as_str()))
    }

    /// What the API server answered, where it did.
    fn answer(&self) -> Option<&Status> {
        match self {
            Self::Api { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => Some(status.as_ref()),
                _ => None,
            },
            Self::Deadline { .. } => None,
        }
    }
}

/// Waits for a call for at most [`API_DEADLINE`]; `call` names it in the error, as a phrase such as
/// "creating a session".
pub async fn bounded<T>(call: &'static str, future: impl Future<Output = kube::Result<T>>) -> Result<T, CallError> {
    match tokio::time::timeout(API_DEADLINE, future).await {
        Ok(result) => result.map_err(|source| CallError::Api {
            call,
            source: Box::new(source),
        }),
        Err(_elapsed) => Err(CallError::Deadline { call }),
    }
}

/// Treats the error that the object is gone as success.
pub fn ignore_not_found<T>(result: Result<T, CallError>) -> Result<(), CallError> {
    match result {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Parameters of a merge patch in the operator's name.
pub fn merge() -> PatchParams {
    PatchParams {
        field_manager: Some(OPERATOR_FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_without_an_answer_ends_at_the_deadline() {
        let error = bounded("reading a pod", std::future::pending::<kube::Result<()>>())
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "reading a pod: no answer from the API server within 10 s"
        );
        assert_eq!(error.outcome(), "timed_out");
    }
}
