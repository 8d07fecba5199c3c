//! The certificate that reviews are served with, out of a secret that is watched.

use std::sync::Arc;

use futures::StreamExt as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;
use kube::runtime::{reflector, watcher};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::watch;
use x509_parser::pem::parse_x509_pem;

use crate::metrics::Metrics;
use crate::watch::follow;

/// Why a secret's certificate cannot be served with.
#[derive(Debug, thiserror::Error)]
pub(super) enum TlsError {
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

/// Sends each certificate that the secret gets; one that is gone or unusable leaves the last one in service.
pub(super) async fn follow_secret(
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
            tracing::warn!(secret = name, "there is no certificate to serve reviews with yet");
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
pub(super) fn server_config(secret: &Secret) -> Result<(ServerConfig, f64), TlsError> {
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
        i32::try_from(seconds).ok().map(f64::from)
    });
    Ok((config, expiry.unwrap_or_default()))
}
