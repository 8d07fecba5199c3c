//! Serves over TLS, with the certificate of a secret that is watched.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use flopwatch_http::Limit;
use futures::StreamExt as _;
use hyper_util::rt::TokioTimer;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;
use kube::runtime::{reflector, watcher};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use x509_parser::pem::parse_x509_pem;

use crate::metrics::Metrics;
use crate::probes::Readiness;
use crate::watch::follow;

/// Longest time for the head of a request, so that slow writers hold no connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time for a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long requests that are under way may take when the process ends.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a secret's certificate cannot be served with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    /// The secret lacks a key.
    #[error("the secret has no {0}")]
    Missing(&'static str),
    /// A key of the secret is not PEM of its kind.
    #[error("{0} is not a PEM file of its kind: {1}")]
    Pem(&'static str, rustls::pki_types::pem::Error),
    /// Certificate and key do not fit.
    #[error("certificate and key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

/// Serves as many connections as `limit` says once there is a certificate, and with each new one
/// from the next connection on.
pub(crate) async fn serve(
    address: SocketAddr,
    router: Router,
    mut certificate: watch::Receiver<Option<Arc<ServerConfig>>>,
    limit: Limit,
    readiness: Readiness,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let first = tokio::select! {
        () = stop.cancelled() => return Ok(()),
        first = certificate.wait_for(Option::is_some) => first.ok().and_then(|config| config.clone()),
    };
    let Some(first) = first else { return Ok(()) };
    let config = RustlsConfig::from_config(first);
    let handle = axum_server::Handle::<SocketAddr>::new();
    let acceptor = RustlsAcceptor::new(config.clone())
        .handshake_timeout(HANDSHAKE_TIMEOUT)
        .acceptor(limit);
    let mut server = axum_server::bind(address).acceptor(acceptor).handle(handle.clone());
    server
        .http_builder()
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT);
    let server = server.serve(router.into_make_service_with_connect_info::<SocketAddr>());
    tokio::pin!(server);
    let reload = async {
        if let Some(address) = handle.listening().await {
            tracing::info!(%address, "serving");
            readiness.set(true);
        }
        while certificate.changed().await.is_ok() {
            if let Some(next) = certificate.borrow_and_update().clone() {
                config.reload_from_config(next);
                tracing::info!("serving with a new certificate");
            }
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        result = &mut server => return result,
        () = reload => {}
        () = stop.cancelled() => {}
    }
    readiness.set(false);
    handle.graceful_shutdown(Some(SHUTDOWN_TIMEOUT));
    server.await
}

/// Sends each certificate that the secret gets; one that is gone or unusable leaves the last one in
/// service.
pub(crate) async fn follow_secret(
    client: &Client,
    namespace: &str,
    name: &str,
    metrics: &Metrics,
    sender: watch::Sender<Option<Arc<ServerConfig>>>,
) {
    let (secrets, writer) = reflector::store::<Secret>();
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let api = Api::namespaced(client.clone(), namespace);
    let mut changes = follow(api, config, std::convert::identity, writer, metrics.clone());
    let mut served = None;
    while changes.next().await.is_some() {
        let Some(secret) = secrets.state().into_iter().next() else {
            tracing::warn!(secret = name, "there is no certificate to serve with yet");
            continue;
        };
        if served.as_ref() == Some(&secret.data) {
            continue;
        }
        match server_config(&secret) {
            Ok((config, expiry)) => {
                metrics.serving_certificate_expiry.set(expiry);
                served = Some(secret.data.clone());
                sender.send_replace(Some(Arc::new(config)));
            }
            Err(error) => tracing::warn!(secret = name, %error, "the certificate cannot be served with"),
        }
    }
}

/// What to serve with, and the end of the certificate's validity in seconds since 1970.
pub(crate) fn server_config(secret: &Secret) -> Result<(ServerConfig, f64), TlsError> {
    let data = |key: &'static str| -> Result<&[u8], TlsError> {
        let found = secret.data.as_ref().and_then(|data| data.get(key));
        found
            .map(|ByteString(value)| value.as_slice())
            .ok_or(TlsError::Missing(key))
    };
    let certificate = data("tls.crt")?;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<_, _>>()
        .map_err(|error| TlsError::Pem("tls.crt", error))?;
    let key = PrivateKeyDer::from_pem_slice(data("tls.key")?).map_err(|error| TlsError::Pem("tls.key", error))?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let expiry = parse_x509_pem(certificate).ok().and_then(|(_, pem)| {
        let seconds = pem.parse_x509().ok()?.validity().not_after.timestamp();
        let end = Timestamp::from_second(seconds).ok()?;
        Some(end.as_duration().as_secs_f64())
    });
    Ok((config, expiry.unwrap_or_default()))
}
