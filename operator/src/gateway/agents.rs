//! The client of the agents: reads artifacts over TLS, with tokens that are valid for one node's
//! agent and for nothing else.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{
    ACCEPT_RANGES, AUTHORIZATION, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    ETAG, HOST, IF_NONE_MATCH, IF_RANGE, RANGE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use flopwatch_api::agent_server_name;
use flopwatch_api::reason::ArtifactReason;
use futures::TryStreamExt as _;
use http_body_util::BodyDataStream;
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use kube::Client;
use moka::sync::Cache;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::gateway::directory::{AgentAddress, Directory};
use crate::gateway::node_tokens::{GatewayIdentity, NodeTokens};
use crate::lru::lru;

/// Longest time until a connection is open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for the head of an answer.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest pause between two pieces of a body.
const STALL_TIMEOUT: Duration = Duration::from_mins(1);
/// Longest upload of a timeline; the agent that receives it gives up after the same time.
const UPLOAD_TIMEOUT: Duration = Duration::from_mins(10);
/// Longest wait for a transfer permit.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// How agents are reached.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// DNS name in every agent's certificate; the name of one node's agent is a subdomain of it.
    pub server_name: String,
    /// PEM file with the authorities that signed the agents' certificates; it is read for each
    /// connection, so that it may be rotated.
    pub authority: PathBuf,
    /// The gateway's service account, which the tokens for the agents are of.
    pub identity: GatewayIdentity,
    /// Most transfers at once.
    pub transfers: usize,
    /// Name of the agents' Service, in the gateway's namespace; its endpoints are the agents that
    /// may run an analysis of a copy in the object store.
    pub service: String,
}

/// Why an agent gave nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentError {
    /// The gateway's own files cannot be used.
    #[error("the gateway cannot identify itself or the agents: {0}")]
    Own(String),
    /// The API server gave no token for the agent of this node: it did not answer, or failed.
    #[error("the Kubernetes API gave no token for the agent of node {0}; try again")]
    NoToken(String),
    /// The agent cannot be reached.
    #[error("the node's agent at {address} cannot be reached: {reason}")]
    Unreachable {
        /// Address of the agent.
        address: SocketAddr,
        /// Error of the connection.
        reason: String,
    },
    /// No agent can be reached.
    #[error("no node's agent can be reached to make it of the copy in the object store: {0}")]
    Nobody(String),
    /// The agent did not answer in time.
    #[error("the node's agent at {0} did not answer in time")]
    Slow(SocketAddr),
    /// The agent holds the artifact no longer.
    #[error("the node's agent holds this artifact no longer")]
    Gone,
    /// The capture holds nothing of what was asked for.
    #[error("{0}")]
    NotCaptured(String),
    /// The agent answers with an error.
    #[error("the node's agent answers {status}: {}", reason.map_or("no reason", ArtifactReason::as_str))]
    Failed {
        /// HTTP status of the answer.
        status: StatusCode,
        /// Reason in the problem details, where this version knows it.
        reason: Option<ArtifactReason>,
    },
    /// The agent lacks these captures of other nodes, by their UIDs.
    #[error("captures of other nodes are on their way; ask again")]
    MissingInputs(Vec<String>),
    /// A capture of another node could not be transferred to the agent.
    #[error("a capture of another node cannot be brought to the one that runs the analysis: {0}")]
    NotTransferred(String),
    /// The agent is making the requested result.
    #[error("it is being made; ask again")]
    Converting,
    /// As many conversions as may be are waiting at the agent.
    #[error("as many conversions as may be are waiting on the node; try again")]
    Conversions,
    /// The result that was asked for cannot be made.
    #[error("{0}")]
    Unconvertible(String),
    /// As many transfers as may be are under way.
    #[error("as many transfers as may be are under way; try again")]
    Busy,
}

impl AgentError {
    /// Whether somebody else may have what this agent does not give.
    pub(crate) fn is_absence(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Slow(_) | Self::Gone => true,
            Self::Failed { reason, .. } => reason.is_some_and(ArtifactReason::is_of_this_copy),
            _ => false,
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Own(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NoToken(_)
            | Self::Unreachable { .. }
            | Self::Nobody(_)
            | Self::Busy
            | Self::Converting
            | Self::Conversions
            | Self::MissingInputs(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Slow(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Gone | Self::NotCaptured(_) => StatusCode::NOT_FOUND,
            Self::Failed { .. } | Self::Unconvertible(_) | Self::NotTransferred(_) => StatusCode::BAD_GATEWAY,
        }
    }

    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Own(_) => "Gateway",
            Self::NoToken(_) => "ApiServer",
            Self::Unreachable { .. } | Self::Nobody(_) => "AgentUnreachable",
            Self::Slow(_) => "AgentSlow",
            Self::Gone => "NotFound",
            Self::NotCaptured(_) => "NotCaptured",
            Self::Failed { .. } => "Agent",
            Self::Busy | Self::Conversions => "Busy",
            Self::Converting | Self::MissingInputs(_) => "Converting",
            Self::NotTransferred(_) => "NotBrought",
            Self::Unconvertible(_) => "ConversionFailed",
        }
    }
}

/// The client of all agents.
#[derive(Debug)]
pub(crate) struct Agents {
    options: AgentOptions,
    tokens: NodeTokens,
    directory: Directory,
    transfers: Arc<Semaphore>,
    /// Agents that could not be reached within the last [`UNREACHABLE_TTL`].
    unreachable: Cache<SocketAddr, ()>,
}

/// How long an agent that could not be reached is skipped where another source has the same.
const UNREACHABLE_TTL: Duration = Duration::from_secs(30);
/// Most agents that are remembered as unreachable.
const MAX_UNREACHABLE_AGENTS: u64 = 1024;
/// Longest look-up of the agents' addresses.
const DIRECTORY_TIMEOUT: Duration = Duration::from_secs(5);
/// Most agents that are asked for one result.
const MAX_AGENTS_TRIED: usize = 3;

/// Headers of a request that the agent decides on.
const REQUEST_HEADERS: [HeaderName; 3] = [RANGE, IF_RANGE, IF_NONE_MATCH];
/// Headers of an agent's answer that are passed on: those that say what an artifact is, and which
/// part of it came. With any other, such as `Set-Cookie`, a node would speak to browsers in the
/// gateway's name.
const RESPONSE_HEADERS: [HeaderName; 8] = [
    ACCEPT_RANGES,
    CACHE_CONTROL,
    CONTENT_DISPOSITION,
    CONTENT_LENGTH,
    CONTENT_RANGE,
    CONTENT_TYPE,
    ETAG,
    HeaderName::from_static("repr-digest"),
];

impl Agents {
    /// A client of the agents; `client` is the gateway's own connection to the API server.
    pub(crate) fn new(client: Client, options: AgentOptions) -> Self {
        let transfers = Arc::new(Semaphore::new(options.transfers));
        let identity = options.identity.clone();
        Self {
            directory: Directory::new(client.clone(), &identity.namespace, options.service.clone()),
            tokens: NodeTokens::new(client, identity),
            options,
            transfers,
            unreachable: lru(MAX_UNREACHABLE_AGENTS).time_to_live(UNREACHABLE_TTL).build(),
        }
    }

    /// Requests `path` from an agent. The answer has the agent's headers in [`RESPONSE_HEADERS`],
    /// and its body is streamed; `asked` are the headers of the caller's own request.
    pub(crate) async fn fetch(
        &self,
        agent: &AgentAddress,
        method: Method,
        path: &str,
        asked: &HeaderMap,
    ) -> Result<Response<Body>, AgentError> {
        let address = agent.address;
        let permit = self.permit().await?;
        let answer = self.ask(agent, method, path, asked, permit).await;
        if matches!(answer, Err(AgentError::Unreachable { .. } | AgentError::Slow(_))) {
            self.unreachable.insert(address, ());
        } else {
            self.unreachable.invalidate(&address);
        }
        answer
    }

    /// Whether an agent could not be reached within the last [`UNREACHABLE_TTL`].
    pub(crate) fn is_unreachable(&self, address: SocketAddr) -> bool {
        self.unreachable.contains_key(&address)
    }

    /// A permit for one transfer, which is released when it is dropped. The error is `Busy` after
    /// [`PERMIT_TIMEOUT`].
    pub(crate) async fn permit(&self) -> Result<OwnedSemaphorePermit, AgentError> {
        match timeout(PERMIT_TIMEOUT, Arc::clone(&self.transfers).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(AgentError::Busy),
        }
    }

    /// At most [`MAX_AGENTS_TRIED`] agents that may run an analysis of the capture of that UID, `but`
    /// not among them. The order is the same for every request for a capture, so that a request
    /// that is repeated reaches the agent that has the result by then.
    pub(crate) async fn other_agents(
        &self,
        uid: &str,
        but: Option<&AgentAddress>,
    ) -> Result<Vec<AgentAddress>, AgentError> {
        let nobody = |reason: String| AgentError::Nobody(reason);
        let found = timeout(DIRECTORY_TIMEOUT, self.directory.agents()).await;
        let found = found.map_err(|_elapsed| nobody("their addresses cannot be looked up in time".to_owned()))?;
        let mut agents = found.map_err(|error| nobody(format!("their addresses cannot be looked up: {error}")))?;
        agents.retain(|agent| but.is_none_or(|but| agent.address != but.address));
        agents.sort_by_cached_key(|AgentAddress { node, address }| {
            (
                self.is_unreachable(*address),
                Sha256::digest(format!("{uid} {node} {address}")).to_vec(),
            )
        });
        agents.dedup();
        agents.truncate(MAX_AGENTS_TRIED);
        Ok(agents)
    }

    /// Uploads a timeline of `bytes` bytes to an agent, within [`UPLOAD_TIMEOUT`].
    pub(crate) async fn upload_timeline(
        &self,
        agent: &AgentAddress,
        path: &str,
        bytes: u64,
        content: Body,
    ) -> Result<(), AgentError> {
        let sending = async {
            let mut request = self.request(agent, Method::PUT, path, content).await?;
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(bytes));
            let mut sender = self.connect(agent).await?;
            let failed = |error: hyper::Error| AgentError::NotTransferred(error.to_string());
            sender.send_request(request).await.map_err(failed)
        };
        let answer = timeout(UPLOAD_TIMEOUT, sending)
            .await
            .map_err(|_elapsed| AgentError::Slow(agent.address))??;
        if answer.status().is_success() {
            return Ok(());
        }
        let status = answer.status();
        let details = details_of(answer).await;
        let message = details["detail"].as_str().unwrap_or("no reason");
        Err(AgentError::NotTransferred(format!(
            "the agent answers {status}: {message}"
        )))
    }

    async fn ask(
        &self,
        agent: &AgentAddress,
        method: Method,
        path: &str,
        asked: &HeaderMap,
        permit: OwnedSemaphorePermit,
    ) -> Result<Response<Body>, AgentError> {
        let address = agent.address;
        let mut request = self.request(agent, method, path, Body::empty()).await?;
        for name in REQUEST_HEADERS {
            for value in asked.get_all(&name) {
                request.headers_mut().append(name.clone(), value.clone());
            }
        }
        let mut sender = self.connect(agent).await?;
        let answer = timeout(HEAD_TIMEOUT, sender.send_request(request))
            .await
            .map_err(|_elapsed| AgentError::Slow(address))?
            .map_err(|error| AgentError::Unreachable {
                address,
                reason: error.to_string(),
            })?;
        judge(answer, permit).await
    }

    /// A request with the token for the agent's node.
    async fn request(
        &self,
        agent: &AgentAddress,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<Request<Body>, AgentError> {
        let bearer = self.tokens.bearer_for(&agent.node).await?;
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.options.server_name)
            .body(body)
            .map_err(|error| AgentError::Own(error.to_string()))?;
        request.headers_mut().insert(AUTHORIZATION, bearer);
        Ok(request)
    }

    /// Opens a connection to an agent that proves to hold its node's certificate. The connection
    /// ends with the answer's body, or when that is dropped.
    async fn connect(&self, agent: &AgentAddress) -> Result<SendRequest<Body>, AgentError> {
        let (name, connector) = self.identity(&agent.node).await?;
        let address = agent.address;
        let unreachable = |reason: String| AgentError::Unreachable { address, reason };
        let connect = async {
            let stream = TcpStream::connect(address).await?;
            connector.connect(name, stream).await
        };
        let stream = timeout(CONNECT_TIMEOUT, connect)
            .await
            .map_err(|_elapsed| AgentError::Slow(address))?
            .map_err(|error| unreachable(error.to_string()))?;
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| unreachable(error.to_string()))?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to an agent broke");
            }
        });
        Ok(sender)
    }

    /// The name in the certificate that the agent of a node must show, and a connector that trusts
    /// the agents' authorities alone.
    async fn identity(&self, node: &str) -> Result<(ServerName<'static>, TlsConnector), AgentError> {
        let own = |what: String| AgentError::Own(what);
        let pem = tokio::fs::read(&self.options.authority)
            .await
            .map_err(|error| own(format!("the agents' authority: {error}")))?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let certificate = certificate.map_err(|error| own(format!("the agents' authority: {error}")))?;
            roots
                .add(certificate)
                .map_err(|error| own(format!("the agents' authority: {error}")))?;
        }
        let name = agent_server_name(node, &self.options.server_name);
        let name = ServerName::try_from(name).map_err(|error| own(error.to_string()))?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| own(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok((name, TlsConnector::from(Arc::new(config))))
    }
}

/// The problem details of an answer; null where there are none.
async fn details_of(answer: Response<Incoming>) -> serde_json::Value {
    let body = http_body_util::Limited::new(answer.into_body(), 16 << 10);
    let message = timeout(HEAD_TIMEOUT, http_body_util::BodyExt::collect(body)).await;
    let message = message
        .ok()
        .and_then(Result::ok)
        .map(http_body_util::Collected::to_bytes);
    message
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

fn texts(list: &serde_json::Value) -> Vec<String> {
    let texts = list.as_array().into_iter().flatten();
    texts.filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

/// The part of an agent's answer that a client may see, or the error that it stands for; `permit`
/// is held until the body ends.
async fn judge(answer: Response<Incoming>, permit: OwnedSemaphorePermit) -> Result<Response<Body>, AgentError> {
    let status = answer.status();
    let fine = [
        StatusCode::OK,
        StatusCode::PARTIAL_CONTENT,
        StatusCode::NOT_MODIFIED,
        StatusCode::RANGE_NOT_SATISFIABLE,
    ];
    if !fine.contains(&status) {
        let details = details_of(answer).await;
        let reason = details["reason"].as_str().and_then(ArtifactReason::from_name);
        let detail = || details["detail"].as_str().unwrap_or("no reason").to_owned();
        return Err(match (status, reason) {
            (StatusCode::NOT_FOUND, Some(ArtifactReason::NotCaptured)) => AgentError::NotCaptured(detail()),
            (StatusCode::NOT_FOUND, _) => AgentError::Gone,
            (StatusCode::CONFLICT, Some(ArtifactReason::MissingInputs)) => {
                AgentError::MissingInputs(texts(&details["missing"]))
            }
            (StatusCode::SERVICE_UNAVAILABLE, Some(ArtifactReason::Converting)) => AgentError::Converting,
            (StatusCode::SERVICE_UNAVAILABLE, Some(ArtifactReason::Busy)) => AgentError::Conversions,
            (StatusCode::INTERNAL_SERVER_ERROR, Some(ArtifactReason::ConversionFailed)) => {
                AgentError::Unconvertible(detail())
            }
            (status, reason) => AgentError::Failed { status, reason },
        });
    }
    let (mut head, body) = answer.into_parts();
    let given = RESPONSE_HEADERS.into_iter();
    let given = given.filter_map(|name| head.headers.remove(&name).map(|value| (name, value)));
    let headers: HeaderMap = given.collect();
    let pieces = BodyDataStream::new(body).map_err(std::io::Error::other);
    let pieces = futures::stream::try_unfold((Box::pin(pieces), permit), async |(mut pieces, permit)| match timeout(
        STALL_TIMEOUT,
        pieces.try_next(),
    )
    .await
    {
        Ok(Ok(Some(piece))) => Ok(Some((piece, (pieces, permit)))),
        Ok(Ok(None)) => Ok(None),
        Ok(Err(error)) => Err(error),
        Err(_elapsed) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut)),
    });
    let mut passed = Response::new(Body::from_stream(pieces));
    *passed.status_mut() = status;
    *passed.headers_mut() = headers;
    Ok(passed)
}
