//! Why a cluster gave nothing, as exceptions.

use flopwatch_cli::cluster::ClusterError;
use flopwatch_cli::error::Error;
use flopwatch_cli::fetch::FetchError;
use flopwatch_cli::gateway::GatewayError;
use pyo3::exceptions::{PyFileExistsError, PyTimeoutError};
use pyo3::prelude::*;

use crate::errors::{
    AnalysisError, ClientError, FlopwatchError, ForbiddenError, NotFoundError, ReadError, RequestError,
    SessionFailedError, WriteError,
};

/// Why there is no result.
#[derive(Debug)]
pub(super) enum Failure {
    /// The plugin's library did not do it.
    Plugin(Error),
    /// What is asked for cannot be.
    Request(String),
    /// The parts of a timeline file that came make none.
    Read(String),
    /// The work here ended without a result.
    Work(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Plugin(error)
    }
}

impl From<ClusterError> for Failure {
    fn from(error: ClusterError) -> Self {
        Self::Plugin(error.into())
    }
}

impl From<GatewayError> for Failure {
    fn from(error: GatewayError) -> Self {
        Self::Plugin(error.into())
    }
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        Self::Plugin(error.into())
    }
}

impl Failure {
    /// Whether the gateway does not take the token, as when it is no longer valid.
    pub(super) fn is_of_token(&self) -> bool {
        let Self::Plugin(error) = self else { return false };
        let (Error::Gateway(gateway) | Error::Fetch(FetchError::Gateway(gateway))) = error else {
            return false;
        };
        matches!(gateway, GatewayError::Refused { status, .. } if status.as_u16() == 401)
    }

    /// The Python exception that tells of the failure.
    pub(super) fn raised(&self, py: Python<'_>) -> PyErr {
        let (kind, reason, text) = match self {
            Self::Request(text) => return RequestError::new_err(text.clone()),
            Self::Read(text) => return ReadError::new_err(text.clone()),
            Self::Work(text) => return FlopwatchError::new_err(text.clone()),
            Self::Plugin(error) => {
                let text = error.to_string();
                let (kind, reason) = of_plugin(error);
                (kind, reason, text)
            }
        };
        let raised = match kind {
            Kind::Client => ClientError::new_err(text),
            Kind::Forbidden => ForbiddenError::new_err(text),
            Kind::NotFound => NotFoundError::new_err(text),
            Kind::SessionFailed => SessionFailedError::new_err(text),
            Kind::Request => return RequestError::new_err(text),
            Kind::Analysis => return AnalysisError::new_err(text),
            Kind::Write => return WriteError::new_err(text),
            Kind::Exists => return PyFileExistsError::new_err(text),
            Kind::Timeout => return PyTimeoutError::new_err(text),
        };
        match raised.value(py).setattr("reason", reason) {
            Ok(()) => raised,
            Err(error) => error,
        }
    }
}

enum Kind {
    Client,
    Forbidden,
    NotFound,
    SessionFailed,
    Request,
    Analysis,
    Write,
    Exists,
    Timeout,
}

fn of_plugin(error: &Error) -> (Kind, &str) {
    match error {
        Error::Cluster(error) => of_cluster(error),
        Error::Gateway(error) => of_gateway(error),
        Error::Fetch(error) => of_fetch(error),
        Error::Usage(_) => (Kind::Request, "Usage"),
        Error::SessionFailed { reason, .. } => (Kind::SessionFailed, reason),
        Error::SessionDeleted(_) => (Kind::NotFound, "SessionDeleted"),
        Error::TimedOut { .. } => (Kind::Timeout, "TimedOut"),
        Error::Io(_) => (Kind::Write, "Io"),
        _ => (Kind::Client, "Other"),
    }
}

fn of_cluster(error: &ClusterError) -> (Kind, &str) {
    match error {
        ClusterError::Kubeconfig(_) | ClusterError::Client(_) => (Kind::Client, "Kubeconfig"),
        ClusterError::NotInstalled => (Kind::Client, "NotInstalled"),
        ClusterError::Unauthenticated { .. } => (Kind::Client, "Unauthenticated"),
        ClusterError::Forbidden { .. } => (Kind::Forbidden, "Forbidden"),
        ClusterError::NotFound { .. } => (Kind::NotFound, "NotFound"),
        ClusterError::Refused { .. } => (Kind::Client, "Refused"),
        ClusterError::Unreachable { .. } => (Kind::Client, "Unreachable"),
    }
}

fn of_gateway(error: &GatewayError) -> (Kind, &str) {
    match error {
        GatewayError::Cluster(error) => of_cluster(error),
        GatewayError::Absent(_) => (Kind::Client, "NoGateway"),
        GatewayError::NoForward(_) | GatewayError::Authority { forbidden: true, .. } => (Kind::Forbidden, "Forbidden"),
        GatewayError::Authority { .. } => (Kind::Client, "Authority"),
        GatewayError::Address { .. } => (Kind::Request, "Address"),
        GatewayError::NoToken { .. } => (Kind::Client, "NoToken"),
        GatewayError::Unreachable { .. } => (Kind::Client, "Unreachable"),
        GatewayError::Untrusted { .. } => (Kind::Client, "Untrusted"),
        GatewayError::Refused { status, reason, .. } => {
            let kind = match (status.as_u16(), reason.as_str()) {
                (_, "ConversionFailed" | "NotCaptured") => Kind::Analysis,
                (403, _) => Kind::Forbidden,
                (404, _) => Kind::NotFound,
                _ => Kind::Client,
            };
            let reason = if reason.is_empty() { "Refused" } else { reason.as_str() };
            (kind, reason)
        }
    }
}

fn of_fetch(error: &FetchError) -> (Kind, &str) {
    match error {
        FetchError::Gateway(error) => of_gateway(error),
        FetchError::NothingPublished { .. } => (Kind::NotFound, "NothingPublished"),
        FetchError::NoSuchCapture { .. } => (Kind::NotFound, "NoSuchCapture"),
        FetchError::NoSuchArtifact { .. } => (Kind::NotFound, "NoSuchArtifact"),
        FetchError::SeveralCaptures { .. } => (Kind::Client, "SeveralCaptures"),
        FetchError::Odd { .. } => (Kind::Client, "Odd"),
        FetchError::Exists(_) => (Kind::Exists, "Exists"),
        FetchError::Io { .. } => (Kind::Write, "Io"),
        FetchError::BrokenOff { .. } => (Kind::Client, "BrokenOff"),
        FetchError::Changed(_) => (Kind::Client, "Changed"),
        FetchError::NoParts(_) => (Kind::Client, "NoParts"),
        FetchError::Corrupt { .. } => (Kind::Client, "Corrupt"),
    }
}
