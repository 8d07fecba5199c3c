//! Reads artifacts from the agents, over TLS, with tokens that are good for nothing else, each for one node's agent.

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

/// Until there is a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Until the answer's head is there.
const HEAD: Duration = Duration::from_secs(30);
/// Between two pieces of a body.
const STALL: Duration = Duration::from_mins(1);
/// Longest hand-over of a timeline; an agent that waits for one gives up as late.
const GIVE: Duration = Duration::from_mins(10);
/// Longest wait for a free transfer.
const TURN: Duration = Duration::from_secs(10);

/// How agents are reached.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// Name in every agent's certificate; that of a node's own is below it.
    pub server_name: String,
    /// PEM file with the authorities that signed them; read anew for each connection, so that it may be rotated.
    pub authority: PathBuf,
    /// Who the gateway is: the tokens for the agents are its own.
    pub identity: GatewayIdentity,
    /// Most transfers at once.
    pub transfers: usize,
    /// The agents' Service, in the gateway's namespace: any of them runs analyses of replicas in the object store.
    pub service: String,
}

/// Why an agent gave nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentError {
    /// The gateway's own files cannot be used.
    #[error("the gateway cannot identify itself or the agents: {0}")]
    Own(String),
    /// The agent cannot be reached.
    #[error("the node's agent at {address} cannot be reached: {reason}")]
    Unreachable {
        /// Address of the agent.
        address: SocketAddr,
        /// What the connection said.
        reason: String,
    },
    /// No agent can be reached.
    #[error("no node's agent can be reached to make it of the copy in the object store: {0}")]
    Nobody(String),
    /// It did not answer in time.
    #[error("the node's agent at {0} did not answer in time")]
    Slow(SocketAddr),
    /// It holds no such artifact any more.
    #[error("the node's agent holds this artifact no longer")]
    Gone,
    /// The capture holds nothing of what was asked for.
    #[error("{0}")]
    NotCaptured(String),
    /// It answers with an error.
    #[error("the node's agent answers {status}: {}", reason.map_or("no reason", ArtifactReason::as_str))]
    Failed {
        /// HTTP status of its answer.
        status: StatusCode,
        /// The reason in its problem details, where it is one that this version knows.
        reason: Option<ArtifactReason>,
    },
    /// It lacks these captures of other nodes, by their UIDs.
    #[error("captures of other nodes are on their way; ask again")]
    MissingInputs(Vec<String>),
    /// A capture of another node could not be handed to it.
    #[error("a capture of another node cannot be brought to the one that runs the analysis: {0}")]
    NotBrought(String),
    /// It is making the result that was asked for.
    #[error("it is being made; ask again")]
    Converting,
    /// As many conversions as may be are waiting there.
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
            Self::Unreachable { .. }
            | Self::Nobody(_)
            | Self::Busy
            | Self::Converting
            | Self::Conversions
            | Self::MissingInputs(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Slow(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Gone | Self::NotCaptured(_) => StatusCode::NOT_FOUND,
            Self::Failed { .. } | Self::Unconvertible(_) | Self::NotBrought(_) => StatusCode::BAD_GATEWAY,
        }
    }

    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Own(_) => "Gateway",
            Self::Unreachable { .. } | Self::Nobody(_) => "AgentUnreachable",
            Self::Slow(_) => "AgentSlow",
            Self::Gone => "NotFound",
            Self::NotCaptured(_) => "NotCaptured",
            Self::Failed { .. } => "Agent",
            Self::Busy | Self::Conversions => "Busy",
            Self::Converting | Self::MissingInputs(_) => "Converting",
            Self::NotBrought(_) => "NotBrought",
            Self::Unconvertible(_) => "ConversionFailed",
        }
    }
}

/// The way to the agents.
#[derive(Debug)]
pub(crate) struct Agents {
    options: AgentOptions,
    tokens: NodeTokens,
    directory: Directory,
    transfers: Arc<Semaphore>,
    /// Agents that could not be reached a moment ago.
    missed: Cache<SocketAddr, ()>,
}

/// How long an agent that could not be reached is passed by, where another way leads to the same.
const MISSED: Duration = Duration::from_secs(30);
/// Agents that are remembered so.
const REMEMBERED: u64 = 1024;
/// Longest look-up of the agents' addresses.
const LOOK_UP: Duration = Duration::from_secs(5);
/// Agents that are tried for one result.
const TRIED: usize = 3;

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
    /// `client` is the gateway's own.
    pub(crate) fn new(client: Client, options: AgentOptions) -> Self {
        let transfers = Arc::new(Semaphore::new(options.transfers));
        let identity = options.identity.clone();
        Self {
            directory: Directory::new(client.clone(), &identity.namespace, options.service.clone()),
            tokens: NodeTokens::new(client, identity),
            options,
            transfers,
            missed: lru(REMEMBERED).time_to_live(MISSED).build(),
        }
    }

    /// Asks the agent at `place` for `path`; its answer is passed on with its headers, the body as it comes.
    pub(crate) async fn fetch(
        &self,
        place: &AgentAddress,
        method: Method,
        path: &str,
        asked: &HeaderMap,
    ) -> Result<Response<Body>, AgentError> {
        let address = place.address;
        let turn = self.turn().await?;
        let answer = self.ask(place, method, path, asked, turn).await;
        if matches!(answer, Err(AgentError::Unreachable { .. } | AgentError::Slow(_))) {
            self.missed.insert(address, ());
        } else {
            self.missed.invalidate(&address);
        }
        answer
    }

    /// Whether an agent could not be reached a moment ago.
    pub(crate) fn is_missed(&self, address: SocketAddr) -> bool {
        self.missed.contains_key(&address)
    }

    /// A place among the transfers; it is given back when it is dropped.
    pub(crate) async fn turn(&self) -> Result<OwnedSemaphorePermit, AgentError> {
        match timeout(TURN, Arc::clone(&self.transfers).acquire_owned()).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => Err(AgentError::Busy),
        }
    }

    /// Other agents that may run an analysis of the capture of that UID, but for the one that is known not to answer, a few at most.
    /// Whoever asks again comes to the same agent first, which has the result by then.
    pub(crate) async fn others(&self, uid: &str, but: Option<&AgentAddress>) -> Result<Vec<AgentAddress>, AgentError> {
        let nobody = |reason: String| AgentError::Nobody(reason);
        let found = timeout(LOOK_UP, self.directory.agents()).await;
        let found = found.map_err(|_elapsed| nobody("their addresses cannot be looked up in time".to_owned()))?;
        let mut agents = found.map_err(|error| nobody(format!("their addresses cannot be looked up: {error}")))?;
        agents.retain(|agent| but.is_none_or(|but| agent.address != but.address));
        agents.sort_by_cached_key(|AgentAddress { node, address }| {
            (
                self.is_missed(*address),
                Sha256::digest(format!("{uid} {node} {address}")).to_vec(),
            )
        });
        agents.dedup();
        agents.truncate(TRIED);
        Ok(agents)
    }

    /// Hands the agent at `place` a timeline of so many bytes, which must come within [`GIVE`].
    pub(crate) async fn give(
        &self,
        place: &AgentAddress,
        path: &str,
        bytes: u64,
        content: Body,
    ) -> Result<(), AgentError> {
        let sending = async {
            let mut request = self.request(place, Method::PUT, path, content).await?;
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(bytes));
            let mut sender = self.connect(place).await?;
            let failed = |error: hyper::Error| AgentError::NotBrought(error.to_string());
            sender.send_request(request).await.map_err(failed)
        };
        let answer = timeout(GIVE, sending)
            .await
            .map_err(|_elapsed| AgentError::Slow(place.address))??;
        if answer.status().is_success() {
            return Ok(());
        }
        let status = answer.status();
        let details = details_of(answer).await;
        let message = details["detail"].as_str().unwrap_or("no reason");
        Err(AgentError::NotBrought(format!("the agent answers {status}: {message}")))
    }

    async fn ask(
        &self,
        place: &AgentAddress,
        method: Method,
        path: &str,
        asked: &HeaderMap,
        turn: OwnedSemaphorePermit,
    ) -> Result<Response<Body>, AgentError> {
        let address = place.address;
        let mut request = self.request(place, method, path, Body::empty()).await?;
        for name in REQUEST_HEADERS {
            for value in asked.get_all(&name) {
                request.headers_mut().append(name.clone(), value.clone());
            }
        }
        let mut sender = self.connect(place).await?;
        let answer = timeout(HEAD, sender.send_request(request))
            .await
            .map_err(|_elapsed| AgentError::Slow(address))?
            .map_err(|error| AgentError::Unreachable {
                address,
                reason: error.to_string(),
            })?;
        judge(answer, turn).await
    }

    /// A request that shows the agent a token of its node.
    async fn request(
        &self,
        place: &AgentAddress,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<Request<Body>, AgentError> {
        let bearer = self.tokens.of(&place.node).await?;
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.options.server_name)
            .body(body)
            .map_err(|error| AgentError::Own(error.to_string()))?;
        request.headers_mut().insert(AUTHORIZATION, bearer);
        Ok(request)
    }

    /// A connection to an agent that has the certificate of its node. It ends with the answer's body, or with whoever reads it.
    async fn connect(&self, place: &AgentAddress) -> Result<SendRequest<Body>, AgentError> {
        let (name, connector) = self.identity(&place.node).await?;
        let address = place.address;
        let unreachable = |reason: String| AgentError::Unreachable { address, reason };
        let connect = async {
            let stream = TcpStream::connect(address).await?;
            connector.connect(name, stream).await
        };
        let stream = timeout(CONNECT, connect)
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

    /// What the agent of a node must show, and who says so.
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
    let message = timeout(HEAD, http_body_util::BodyExt::collect(body)).await;
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

/// Passes on what a client may see of an agent's answer; the transfer's turn ends with its body.
async fn judge(answer: Response<Incoming>, turn: OwnedSemaphorePermit) -> Result<Response<Body>, AgentError> {
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
    let pieces = futures::stream::try_unfold((Box::pin(pieces), turn), async |(mut pieces, turn)| {
        match timeout(STALL, pieces.try_next()).await {
            Ok(Ok(Some(piece))) => Ok(Some((piece, (pieces, turn)))),
            Ok(Ok(None)) => Ok(None),
            Ok(Err(error)) => Err(error),
            Err(_elapsed) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut)),
        }
    });
    let mut passed = Response::new(Body::from_stream(pieces));
    *passed.status_mut() = status;
    *passed.headers_mut() = headers;
    Ok(passed)
}
