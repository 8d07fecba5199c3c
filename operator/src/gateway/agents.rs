//! Reads artifacts from the agents, over TLS, with a token that is good for nothing else.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, HOST, IF_NONE_MATCH, IF_RANGE, RANGE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use futures::TryStreamExt as _;
use http_body_util::{BodyDataStream, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Until there is a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Until the answer's head is there.
const HEAD: Duration = Duration::from_secs(30);
/// Between two pieces of a body.
const STALL: Duration = Duration::from_mins(1);
/// Longest wait for a free transfer.
const TURN: Duration = Duration::from_secs(10);

/// How agents are reached.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// Name in the agents' certificates.
    pub server_name: String,
    /// PEM file with the authorities that signed them; read anew for each connection, so that it may be rotated.
    pub authority: PathBuf,
    /// File with the token for the agents, likewise.
    pub token: PathBuf,
    /// Most transfers at once.
    pub transfers: usize,
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
        /// The agent.
        address: SocketAddr,
        /// Why.
        reason: String,
    },
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
    #[error("the node's agent answers {status}: {said}")]
    Failed {
        /// Its status.
        status: StatusCode,
        /// The reason in its problem details.
        said: String,
    },
    /// It is making the form that was asked for.
    #[error("it is being made; ask again")]
    Converting,
    /// As many conversions as may be are waiting there.
    #[error("as many conversions as may be are waiting on the node; try again")]
    Conversions,
    /// The form that was asked for cannot be made.
    #[error("{0}")]
    Unconvertible(String),
    /// As many transfers as may be are under way.
    #[error("as many transfers as may be are under way; try again")]
    Busy,
}

impl AgentError {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Own(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unreachable { .. } | Self::Busy | Self::Converting | Self::Conversions => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Slow(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Gone | Self::NotCaptured(_) => StatusCode::NOT_FOUND,
            Self::Failed { .. } | Self::Unconvertible(_) => StatusCode::BAD_GATEWAY,
        }
    }

    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Own(_) => "Gateway",
            Self::Unreachable { .. } => "AgentUnreachable",
            Self::Slow(_) => "AgentSlow",
            Self::Gone => "NotFound",
            Self::NotCaptured(_) => "NotCaptured",
            Self::Failed { .. } => "Agent",
            Self::Busy | Self::Conversions => "Busy",
            Self::Converting => "Converting",
            Self::Unconvertible(_) => "ConversionFailed",
        }
    }
}

/// The way to the agents.
#[derive(Debug)]
pub(crate) struct Agents {
    options: AgentOptions,
    transfers: Arc<Semaphore>,
}

/// Headers of a request that the agent decides on.
const ASKED: [HeaderName; 3] = [RANGE, IF_RANGE, IF_NONE_MATCH];

impl Agents {
    pub(crate) fn new(options: AgentOptions) -> Self {
        let transfers = Arc::new(Semaphore::new(options.transfers));
        Self { options, transfers }
    }

    /// Asks the agent at `address` for `path`; its answer is passed on with its headers, the body as it comes.
    pub(crate) async fn fetch(
        &self,
        address: SocketAddr,
        method: Method,
        path: &str,
        asked: &HeaderMap,
    ) -> Result<Response<Body>, AgentError> {
        let turn = timeout(TURN, Arc::clone(&self.transfers).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else {
            return Err(AgentError::Busy);
        };
        let (name, connector) = self.identity().await?;
        let token = tokio::fs::read_to_string(&self.options.token)
            .await
            .map_err(|error| AgentError::Own(format!("the token for the agents: {error}")))?;
        let unreachable = |reason: String| AgentError::Unreachable { address, reason };
        let connect = async {
            let stream = TcpStream::connect(address).await?;
            connector.connect(name, stream).await
        };
        let stream = timeout(CONNECT, connect)
            .await
            .map_err(|_elapsed| AgentError::Slow(address))?
            .map_err(|error| unreachable(error.to_string()))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| unreachable(error.to_string()))?;
        // It ends with the answer's body, or with whoever reads it.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to an agent broke");
            }
        });
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.options.server_name)
            .body(Empty::<Bytes>::new())
            .map_err(|error| AgentError::Own(error.to_string()))?;
        let mut bearer = HeaderValue::try_from(format!("Bearer {}", token.trim()))
            .map_err(|error| AgentError::Own(format!("the token for the agents: {error}")))?;
        bearer.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, bearer);
        for name in ASKED {
            for value in asked.get_all(&name) {
                request.headers_mut().append(name.clone(), value.clone());
            }
        }
        let answer = timeout(HEAD, sender.send_request(request))
            .await
            .map_err(|_elapsed| AgentError::Slow(address))?
            .map_err(|error| unreachable(error.to_string()))?;
        judge(answer, turn).await
    }

    async fn identity(&self) -> Result<(ServerName<'static>, TlsConnector), AgentError> {
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
        let name = ServerName::try_from(self.options.server_name.clone()).map_err(|error| own(error.to_string()))?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| own(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok((name, TlsConnector::from(Arc::new(config))))
    }
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
        let body = http_body_util::Limited::new(answer.into_body(), 16 << 10);
        let said = timeout(HEAD, http_body_util::BodyExt::collect(body)).await;
        let said = said.ok().and_then(Result::ok).map(http_body_util::Collected::to_bytes);
        let details: serde_json::Value = said
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let reason = details["reason"].as_str().unwrap_or("no reason");
        let detail = || details["detail"].as_str().unwrap_or(reason).to_owned();
        return Err(match (status, reason) {
            (StatusCode::NOT_FOUND, "NotCaptured") => AgentError::NotCaptured(detail()),
            (StatusCode::NOT_FOUND, _) => AgentError::Gone,
            (StatusCode::SERVICE_UNAVAILABLE, "Converting") => AgentError::Converting,
            (StatusCode::SERVICE_UNAVAILABLE, "Busy") => AgentError::Conversions,
            (StatusCode::INTERNAL_SERVER_ERROR, "ConversionFailed") => AgentError::Unconvertible(detail()),
            _ => AgentError::Failed {
                status,
                said: reason.to_owned(),
            },
        });
    }
    let (mut head, body) = answer.into_parts();
    for name in ["connection", "transfer-encoding", "keep-alive", "date"] {
        head.headers.remove(name);
    }
    let pieces = BodyDataStream::new(body).map_err(std::io::Error::other);
    let pieces = futures::stream::try_unfold((Box::pin(pieces), turn), async |(mut pieces, turn)| {
        match timeout(STALL, pieces.try_next()).await {
            Ok(Ok(Some(piece))) => Ok(Some((piece, (pieces, turn)))),
            Ok(Ok(None)) => Ok(None),
            Ok(Err(error)) => Err(error),
            Err(_elapsed) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut)),
        }
    });
    Ok(Response::from_parts(head, Body::from_stream(pieces)))
}
