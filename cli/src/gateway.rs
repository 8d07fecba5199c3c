//! The client of the gateway: it connects by a port-forward to one of the gateway's pods, or to an
//! address that the gateway has outside of the cluster.
//!
//! Either way TLS is checked against the authority that signed the gateway's certificate, under the
//! name of its Service, and the caller's own token is shown to the gateway alone.

mod connections;
mod polling;
mod token;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, HOST};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use kube::client::{ConfigExt as _, UpgradeConnectionError};
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower::BoxError;

use crate::arguments::GatewayArguments;
use crate::cluster::{Cluster, ClusterError, with_causes};

/// Longest time until a connection is open, through however many programs it goes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest wait for the head of an answer.
const HEAD_TIMEOUT: Duration = Duration::from_mins(1);
/// Largest body with problem details that is read.
const MAX_PROBLEM_BYTES: usize = 64 << 10;
/// Labels of the gateway's pods.
const PODS: &str = "app.kubernetes.io/name=flopwatch,app.kubernetes.io/component=gateway";
/// Name of the port that the gateway's pods serve on.
const PORT_NAME: &str = "https";
/// Number of that port, where a pod does not name it.
const PORT: u16 = 8443;
/// Name of the gateway's Service.
const SERVICE: &str = "flopwatch-gateway";
/// Name of the ConfigMap with the authority of the gateway's certificate.
const AUTHORITY: &str = "flopwatch-gateway-ca";

/// Why a request to the gateway failed.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The cluster could not be asked for the gateway's pods.
    #[error(
        "cannot find the gateway: {0}. With an address that it has outside of the cluster no right in its namespace is needed: --gateway URL"
    )]
    Cluster(#[from] ClusterError),
    /// The namespace has no pod of the gateway.
    #[error(
        "no gateway runs in namespace {0}: is Flopwatch installed in another one (--flopwatch-namespace), or with gateway.enabled=false?"
    )]
    Absent(String),
    /// The caller may not forward ports to the gateway's pods.
    #[error(
        "you may not forward ports to pods in namespace {0}: Role flopwatch-gateway-caller there allows it (value access.gatewayCallers of the chart). With an address that the gateway has outside of the cluster it needs nothing: --gateway URL"
    )]
    NoForward(String),
    /// The value of `--gateway` is not the URL of a gateway.
    #[error("--gateway {given}: {reason}")]
    Address {
        /// The value of `--gateway`.
        given: String,
        /// Why the value cannot be used.
        reason: String,
    },
    /// The authority of the gateway's certificate could not be read.
    #[error(
        "the authority of the gateway's certificate cannot be read ({reason}): Role flopwatch-gateway-caller allows it (value access.gatewayCallers of the chart); or ask for ca.crt of that ConfigMap and give it as --gateway-ca FILE"
    )]
    Authority {
        /// The error of the API server, or of the file.
        reason: String,
        /// Whether the API server refused because the caller lacks the right.
        forbidden: bool,
    },
    /// The caller has no token that could be shown to the gateway.
    #[error(
        "the kubeconfig's user has no token ({how}), and the gateway takes nothing else: give --token, such as --token \"$(kubectl create token SERVICEACCOUNT)\" of a service account that may get and list sessions (ClusterRole flopwatch-viewer)"
    )]
    NoToken {
        /// How the kubeconfig's user authenticates instead.
        how: &'static str,
    },
    /// The gateway cannot be reached.
    #[error("the gateway ({address}) cannot be reached: {reason}")]
    Unreachable {
        /// Host and port, or the namespace of the port-forward.
        address: String,
        /// Error of the connection.
        reason: String,
    },
    /// The server at the address did not prove to be the gateway.
    #[error(
        "what answers at {address} is not the gateway, or --gateway-ca is another's ({reason}); no token was shown to it"
    )]
    Untrusted {
        /// Host and port, or the namespace of the port-forward.
        address: String,
        /// What is wrong with the server's certificate.
        reason: String,
    },
    /// The gateway refuses the request.
    #[error("the gateway answers {status}: {detail}")]
    Refused {
        /// HTTP status of the answer.
        status: StatusCode,
        /// Reason in its problem details.
        reason: String,
        /// Detail of the problem details: what is wrong, and the remedy.
        detail: String,
    },
}

impl GatewayError {
    /// Whether trying again later may help without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => {
                status.is_server_error()
                    || matches!(*status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
            }
            _ => false,
        }
    }
}

/// The network route to the gateway.
enum Route {
    /// A port-forward through the API server to one of the gateway's pods.
    Forward { pods: Box<Api<Pod>>, namespace: String },
    /// A connection to an address that the gateway has outside of the cluster.
    Direct { host: String, port: u16 },
}

/// A client of one gateway, with the certificate that the gateway must show and the token that it
/// is shown.
pub struct Gateway {
    route: Route,
    tls: Arc<ClientConfig>,
    name: ServerName<'static>,
    host: String,
    bearer: HeaderValue,
    connections: connections::ConnectionPool,
}

/// An answer's problem details, as far as they are read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ProblemDetails {
    reason: String,
    detail: String,
}

impl Gateway {
    /// A client of the cluster's gateway, or of the one that the arguments name. Nothing is sent to
    /// the gateway yet.
    pub async fn find(cluster: &Cluster, arguments: &GatewayArguments) -> Result<Self, GatewayError> {
        let bearer = token::bearer(cluster, arguments.token.as_deref()).await?;
        let given = match &arguments.gateway_ca {
            Some(path) => Some(tokio::fs::read(path).await.map_err(|error| GatewayError::Authority {
                reason: format!("{}: {error}", path.display()),
                forbidden: false,
            })?),
            None => None,
        };
        let (route, host, authority) = if let Some(url) = &arguments.gateway {
            let (host, port) = address(url)?;
            let route = Route::Direct {
                host: host.clone(),
                port,
            };
            (route, host, given)
        } else {
            let namespace = cluster.flopwatch_namespace.clone();
            let authority = match given {
                Some(pem) => pem,
                None => authority(cluster).await?,
            };
            let host = format!("{SERVICE}.{namespace}.svc");
            let pods = Box::new(cluster.own());
            (Route::Forward { pods, namespace }, host, Some(authority))
        };
        let tls = tls(authority.as_deref())?;
        let name =
            ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).map_err(|error| GatewayError::Address {
                given: host.clone(),
                reason: error.to_string(),
            })?;
        Ok(Self {
            route,
            tls: Arc::new(tls),
            name,
            host,
            bearer,
            connections: connections::ConnectionPool::default(),
        })
    }

    /// Sends a request with the caller's token over a new connection, and gives the answer whatever
    /// its status.
    pub async fn send<B>(&self, request: Request<B>) -> Result<Response<Incoming>, GatewayError>
    where
        B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        let request = self.with_credentials(request)?;
        let mut sender = self.open_connection().await?;
        self.send_over(&mut sender, request).await
    }

    /// Sends a request over a connection, and gives the answer within [`HEAD_TIMEOUT`].
    async fn send_over<B>(
        &self,
        sender: &mut SendRequest<B>,
        request: Request<B>,
    ) -> Result<Response<Incoming>, GatewayError>
    where
        B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        match timeout(HEAD_TIMEOUT, sender.send_request(request)).await {
            Ok(answer) => answer.map_err(|error| self.unreachable_by(&error)),
            Err(_elapsed) => Err(self.unreachable(format!("no answer within {} s", HEAD_TIMEOUT.as_secs()))),
        }
    }

    /// The request with the gateway's host and the caller's token.
    fn with_credentials<B>(&self, mut request: Request<B>) -> Result<Request<B>, GatewayError> {
        let host = HeaderValue::try_from(&self.host).map_err(|error| self.unreachable(error.to_string()))?;
        request.headers_mut().insert(HOST, host);
        request.headers_mut().insert(AUTHORIZATION, self.bearer.clone());
        Ok(request)
    }

    /// Opens a new connection within [`CONNECT_TIMEOUT`].
    async fn open_connection<B>(&self) -> Result<SendRequest<B>, GatewayError>
    where
        B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        let opened = timeout(CONNECT_TIMEOUT, self.connect()).await;
        let seconds = CONNECT_TIMEOUT.as_secs();
        opened.map_err(|_elapsed| self.unreachable(format!("no connection within {seconds} s")))?
    }

    /// Requests `path` with these further headers. An answer whose status is no success is the
    /// error `Refused`.
    pub async fn get(&self, path: &str, headers: HeaderMap) -> Result<Response<Incoming>, GatewayError> {
        let request = Request::builder()
            .uri(path)
            .header(ACCEPT, "*/*")
            .body(Empty::<Bytes>::new());
        let mut request = request.map_err(|error| self.unreachable(error.to_string()))?;
        request.headers_mut().extend(headers);
        let answer = self.send_pooled(request).await?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let body = Limited::new(answer.into_body(), MAX_PROBLEM_BYTES).collect();
        let body = timeout(HEAD_TIMEOUT, body).await.ok().and_then(Result::ok);
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let problem: ProblemDetails = serde_json::from_slice(&body).unwrap_or_default();
        Err(GatewayError::Refused {
            status,
            reason: problem.reason,
            detail: match problem.detail.as_str() {
                "" => "it does not say why; is it a gateway of Flopwatch?".to_owned(),
                detail => detail.to_owned(),
            },
        })
    }

    /// The address in messages.
    fn address(&self) -> String {
        match &self.route {
            Route::Forward { namespace, .. } => format!("port-forward in namespace {namespace}"),
            Route::Direct { host, port } => format!("{host}:{port}"),
        }
    }

    async fn connect<B>(&self) -> Result<SendRequest<B>, GatewayError>
    where
        B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        match &self.route {
            Route::Direct { host, port } => {
                let target = (host.trim_matches(['[', ']']), *port);
                let stream = TcpStream::connect(target).await;
                let stream = stream.map_err(|error| self.unreachable_by(&error))?;
                self.handshake_over(stream, async {}).await
            }
            Route::Forward { pods, namespace } => {
                let (pod, port) = find_serving_pod(pods, namespace).await?;
                let forward = pods.portforward(&pod, &[port]).await;
                let mut forward = forward.map_err(|error| match error {
                    kube::Error::UpgradeConnection(UpgradeConnectionError::ProtocolSwitch(StatusCode::FORBIDDEN)) => {
                        GatewayError::NoForward(namespace.clone())
                    }
                    kube::Error::Api(status) if status.code == 403 => GatewayError::NoForward(namespace.clone()),
                    kube::Error::Api(status) => self.unreachable(status.message.trim()),
                    other => self.unreachable_by(&other),
                })?;
                let stream = forward.take_stream(port);
                let stream = stream.ok_or_else(|| self.unreachable("the port-forward has no stream"))?;
                let refused = forward.take_error(port);
                let handshaken = self
                    .handshake_over(stream, async move { drop(forward.join().await) })
                    .await;
                match (handshaken, refused) {
                    // What the kubelet says of the port explains more than the end of the stream.
                    (Err(error), Some(refused)) => match timeout(Duration::from_secs(1), refused).await {
                        Ok(Some(text)) => Err(self.unreachable(text.trim())),
                        _ => Err(error),
                    },
                    (handshaken, _) => handshaken,
                }
            }
        }
    }

    /// Negotiates TLS and HTTP over a stream; `after` is awaited when the connection has ended.
    async fn handshake_over<S, B>(
        &self,
        stream: S,
        after: impl Future<Output = ()> + Send + 'static,
    ) -> Result<SendRequest<B>, GatewayError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        let connecting = connector.connect(self.name.clone(), stream);
        let stream = connecting.await.map_err(|error| {
            let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
            match tls {
                Some(rustls::Error::InvalidCertificate(_)) => GatewayError::Untrusted {
                    address: self.address(),
                    reason: with_causes(&error),
                },
                _ => self.unreachable_by(&error),
            }
        })?;
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.unreachable_by(&error))?;
        // The connection ends when nobody sends requests or reads answers any more; its errors
        // reach the reader.
        tokio::spawn(async move {
            drop(connection.with_upgrades().await);
            after.await;
        });
        Ok(sender)
    }

    fn unreachable(&self, reason: impl Into<String>) -> GatewayError {
        GatewayError::Unreachable {
            address: self.address(),
            reason: reason.into(),
        }
    }

    fn unreachable_by(&self, error: &(dyn std::error::Error + 'static)) -> GatewayError {
        self.unreachable(with_causes(error))
    }
}

/// Name and port of a pod of the gateway that is ready.
async fn find_serving_pod(pods: &Api<Pod>, namespace: &str) -> Result<(String, u16), GatewayError> {
    let unreachable = |reason: String| GatewayError::Unreachable {
        address: format!("pods in namespace {namespace}"),
        reason,
    };
    let found = match pods.list(&ListParams::default().labels(PODS)).await {
        Ok(found) => found.items,
        Err(kube::Error::Api(status)) => {
            return Err(crate::cluster::of_status(&format!("list pods in namespace {namespace}"), &status).into());
        }
        Err(error) => return Err(unreachable(with_causes(&error))),
    };
    match choose_pod(&found) {
        Some(chosen) => Ok(chosen),
        None if found.is_empty() => Err(GatewayError::Absent(namespace.to_owned())),
        None => Err(unreachable("none of its pods is ready".to_owned())),
    }
}

/// Name and port of the first pod by name that is ready.
fn choose_pod(pods: &[Pod]) -> Option<(String, u16)> {
    let pod = pods
        .iter()
        .filter(|pod| is_ready(pod))
        .min_by_key(|pod| pod.name_any())?;
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let ports = containers.flat_map(|container| container.ports.iter().flatten());
    let port = ports
        .filter(|port| port.name.as_deref() == Some(PORT_NAME))
        .find_map(|port| u16::try_from(port.container_port).ok());
    Some((pod.name_any(), port.unwrap_or(PORT)))
}

/// Whether a pod takes requests.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut ready = conditions.filter(|condition| condition.type_ == "Ready");
    pod.metadata.deletion_timestamp.is_none() && ready.any(|condition| condition.status == "True")
}

/// Reads the authority that signed the gateway's certificate, in PEM, from the ConfigMap that the
/// controller writes.
async fn authority(cluster: &Cluster) -> Result<Vec<u8>, GatewayError> {
    let maps: Api<ConfigMap> = cluster.own();
    let doing = format!(
        "read ConfigMap {AUTHORITY} in namespace {}",
        cluster.flopwatch_namespace
    );
    let (reason, forbidden) = match cluster.call(&doing, maps.get(AUTHORITY)).await {
        Ok(map) => match map.data.and_then(|mut data| data.remove("ca.crt")) {
            Some(pem) => return Ok(pem.into_bytes()),
            None => (format!("ConfigMap {AUTHORITY} has no ca.crt"), false),
        },
        Err(error @ ClusterError::Unreachable { .. }) => return Err(error.into()),
        Err(error) => (error.to_string(), matches!(error, ClusterError::Forbidden { .. })),
    };
    Err(GatewayError::Authority { reason, forbidden })
}

/// The configuration of TLS that trusts this authority alone, or the system's authorities.
fn tls(authority: Option<&[u8]>) -> Result<ClientConfig, GatewayError> {
    let wrong = |reason: String| GatewayError::Authority {
        reason,
        forbidden: false,
    };
    let mut config = kube::Config::new(Uri::from_static("https://localhost"));
    if let Some(pem) = authority {
        let certificates: Result<Vec<Vec<u8>>, _> = CertificateDer::pem_slice_iter(pem)
            .map(|certificate| certificate.map(|certificate| certificate.to_vec()))
            .collect();
        let certificates = certificates.map_err(|error| wrong(error.to_string()))?;
        if certificates.is_empty() {
            return Err(wrong("there is no certificate in it".to_owned()));
        }
        config.root_cert = Some(certificates);
    }
    let tls = config.rustls_client_config();
    let mut tls = tls.map_err(|error| wrong(with_causes(&error)))?;
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(tls)
}

/// Host and port of the address of a gateway.
fn address(url: &str) -> Result<(String, u16), GatewayError> {
    let wrong = |reason: &str| GatewayError::Address {
        given: url.to_owned(),
        reason: reason.to_owned(),
    };
    let uri: Uri = url
        .parse()
        .map_err(|_not_one| wrong("write it as https://HOST or https://HOST:PORT"))?;
    if uri.scheme_str() != Some("https") {
        return Err(wrong("it must begin with https://, for a token is shown to it"));
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(wrong("it must have no path"));
    }
    let host = uri.host().filter(|host| !host.is_empty());
    let host = host.ok_or_else(|| wrong("it has no host"))?;
    Ok((host.to_owned(), uri.port_u16().unwrap_or(443)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn addresses_are_hosts_reached_by_tls() {
        let of = |url: &str| address(url).map_err(|error| error.to_string());
        assert_eq!(of("https://flopwatch.example"), Ok(("flopwatch.example".into(), 443)));
        assert_eq!(of("https://[::1]:8443/"), Ok(("[::1]".into(), 8443)));
        for wrong in [
            "http://flopwatch.example",
            "flopwatch.example",
            "https://",
            "https://a/b",
            "https://a?b",
            "::",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    fn pod(name: &str, ready: &str, ports: &Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {"containers": [{"name": "gateway", "ports": ports}]},
            "status": {"conditions": [{"type": "Ready", "status": ready}]}
        }))
        .unwrap()
    }

    #[test]
    fn the_first_pod_that_is_ready_is_taken_with_its_own_port() {
        let ports = json!([{"name": "metrics", "containerPort": 9464}, {"name": "https", "containerPort": 9443}]);
        let pods = [
            pod("c", "True", &json!([])),
            pod("a", "False", &ports),
            pod("b", "True", &ports),
        ];
        assert_eq!(choose_pod(&pods), Some(("b".into(), 9443)));
        assert_eq!(choose_pod(&pods[..1]), Some(("c".into(), 8443)));
        assert_eq!(choose_pod(&pods[1..2]), None);
    }

    #[test]
    fn an_authority_is_made_of_certificates() {
        assert!(tls(Some(b"no pem")).is_err());
    }
}
