//! Calls of the API server in a caller's own name: they may do what the caller may.

use std::time::Duration;

use axum::http::StatusCode;
use kube::config::AuthInfo;
use kube::{Client, Config};
use tokio::time::timeout;

use crate::gateway::problem::Problem;

/// Longest wait for one answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Makes clients with callers' tokens.
#[derive(Clone)]
pub(crate) struct ApiServer {
    config: Config,
}

impl ApiServer {
    /// Keeps the address in `config`, which is the gateway's own, and drops its credentials.
    pub(crate) fn new(mut config: Config) -> Self {
        config.auth_info = AuthInfo::default();
        Self { config }
    }

    /// A client that authenticates with `token` and nothing else.
    pub(crate) fn client(&self, token: &str) -> Result<Client, Problem> {
        let mut config = self.config.clone();
        config.auth_info = serde_json::from_value(serde_json::json!({ "token": token })).map_err(|error| {
            tracing::error!(%error, "a client's credentials cannot be made");
            Problem::ApiServer
        })?;
        Client::try_from(config).map_err(|error| {
            tracing::error!(%error, "a client cannot be made");
            Problem::ApiServer
        })
    }
}

/// Waits for the answer to a call, for [`CALL_TIMEOUT`] at most. The problem is `Unauthenticated`
/// or `Refused` where the API server refuses the call, and `ApiServer` where it fails.
pub(crate) async fn call_api_server<T>(call: impl Future<Output = kube::Result<T>>) -> Result<T, Problem> {
    match timeout(CALL_TIMEOUT, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) => match StatusCode::from_u16(status.code) {
            Ok(StatusCode::UNAUTHORIZED) => Err(Problem::Unauthenticated),
            Ok(code) if code.is_client_error() => Err(Problem::Refused {
                status: code,
                message: status.message.clone(),
            }),
            _ => {
                tracing::warn!(answer = status.message, "the API server failed");
                Err(Problem::ApiServer)
            }
        },
        Ok(Err(error)) => {
            tracing::warn!(%error, "the API server cannot be asked");
            Err(Problem::ApiServer)
        }
        Err(_elapsed) => Err(Problem::ApiServer),
    }
}
