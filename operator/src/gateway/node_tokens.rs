//! The gateway's tokens for the agents: one for each node, which no other node's agent accepts.

use std::time::Duration;

use axum::http::HeaderValue;
use flopwatch_api::agent_audience;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, PostParams};
use moka::sync::Cache;
use tokio::time::timeout;

use crate::deadline::API_DEADLINE;
use crate::gateway::agents::AgentError;
use crate::lru::lru;

/// Requested validity of a token, in seconds: the least that the API server grants.
const TOKEN_LIFETIME_SECONDS: i64 = 600;
/// How long a token is used, so that one that is shown stays valid while its answer is under way.
const TOKEN_TTL: Duration = Duration::from_mins(5);
/// Most nodes whose tokens are cached.
const MAX_CACHED_TOKENS: u64 = 1024;
/// What mends the refusal of a token: the chart gives the right to it.
const LOST_RIGHT: &str = "the chart's Role flopwatch-gateway gives this right, so whoever installed Flopwatch gets it back with `helm upgrade`";

/// The service account and pod that the gateway runs as.
#[derive(Clone, Debug)]
pub struct GatewayIdentity {
    /// Namespace of its service account and of its pod.
    pub namespace: String,
    /// Name of the service account.
    pub account: String,
    /// Name and UID of its pod: tokens are bound to it and end with it. None outside of a pod.
    pub pod: Option<(String, String)>,
}

/// Requests and caches the tokens.
pub(crate) struct NodeTokens {
    accounts: Api<ServiceAccount>,
    identity: GatewayIdentity,
    cached: Cache<String, HeaderValue>,
}

impl NodeTokens {
    /// Requests tokens of `identity` with `client`, the gateway's own.
    pub(crate) fn new(client: Client, identity: GatewayIdentity) -> Self {
        Self {
            accounts: Api::namespaced(client, &identity.namespace),
            identity,
            cached: lru(MAX_CACHED_TOKENS).time_to_live(TOKEN_TTL).build(),
        }
    }

    /// The value of `Authorization` for the agent of a node. The error is `NoToken` where the API
    /// server does not answer within [`API_DEADLINE`], or fails: asking again may help. It is `Own`
    /// where the API server refuses: only whoever runs the gateway can mend that.
    pub(crate) async fn bearer_for(&self, node: &str) -> Result<HeaderValue, AgentError> {
        if let Some(token) = self.cached.get(node) {
            return Ok(token);
        }
        let token = self.request_token(node).await?;
        self.cached.insert(node.to_owned(), token.clone());
        Ok(token)
    }

    async fn request_token(&self, node: &str) -> Result<HeaderValue, AgentError> {
        let failed = |what: String| AgentError::Own(format!("a token for the agent of node {node}: {what}"));
        let pod = self.identity.pod.as_ref().map(|(name, uid)| BoundObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: Some(name.clone()),
            uid: Some(uid.clone()),
        });
        let request = TokenRequest {
            spec: TokenRequestSpec {
                audiences: vec![agent_audience(node)],
                bound_object_ref: pod,
                expiration_seconds: Some(TOKEN_LIFETIME_SECONDS),
            },
            ..TokenRequest::default()
        };
        let params = PostParams::default();
        let made = self
            .accounts
            .create_token_request(&self.identity.account, &params, &request);
        let made = match timeout(API_DEADLINE, made).await {
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
                return Err(failed(format!("{}; {LOST_RIGHT}", status.message)));
            }
            Ok(Err(kube::Error::Api(status))) if (400..500).contains(&status.code) && status.code != 429 => {
                return Err(failed(status.message.clone()));
            }
            Ok(made) => made.map_err(|error| error.to_string()),
            Err(_elapsed) => Err("it did not answer in time".to_owned()),
        };
        let made = made.map_err(|error| {
            tracing::warn!(node, error, "the API server gave no token for a node's agent");
            AgentError::NoToken(node.to_owned())
        })?;
        let token = made.status.map(|status| status.token).unwrap_or_default();
        if token.is_empty() {
            return Err(failed("the API server gave none".to_owned()));
        }
        let mut bearer = HeaderValue::try_from(format!("Bearer {token}")).map_err(|error| failed(error.to_string()))?;
        bearer.set_sensitive(true);
        Ok(bearer)
    }
}

impl std::fmt::Debug for NodeTokens {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("NodeTokens")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}
