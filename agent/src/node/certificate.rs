//! The certificate that this node's agent serves with: its own, for its node's name.
//!
//! The key is made here and leaves neither the process nor a folder in memory. The controller signs
//! what the API server says that a token of an agent on this very node asked for
//! (`certificates.k8s.io`), so no node gets the name of another.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flopwatch_api::{AGENT_SIGNER, agent_server_name};
use flopwatch_http::Server;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, ResourceExt as _};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use x509_parser::pem::parse_x509_pem;

use crate::metrics::Metrics;

/// Validity that is asked for, in seconds: a week.
const VALIDITY_SECONDS: i32 = 7 * 24 * 3600;
/// Time until the next is asked for.
const RENEWAL_INTERVAL: Duration = Duration::from_hours(24);
/// Time until the next try after one failed; it doubles up to [`MAX_RETRY_INTERVAL`].
const MIN_RETRY_INTERVAL: Duration = Duration::from_secs(2);
const MAX_RETRY_INTERVAL: Duration = Duration::from_mins(2);
/// Longest wait for one call.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two looks for the certificate, and longest time until it is there.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const SIGNING_TIMEOUT: Duration = Duration::from_mins(1);

/// Why there is no certificate yet.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// Key or request cannot be made.
    #[error("the request cannot be made: {0}")]
    Make(#[from] rcgen::Error),
    /// The API server refuses it or cannot be reached.
    #[error("the API server: {0}")]
    Call(#[from] kube::Error),
    /// The API server does not answer.
    #[error("the API server did not answer within {CALL_TIMEOUT:?}")]
    Slow,
    /// The controller refuses it; says why.
    #[error("the controller refuses it: {0}")]
    Denied(String),
    /// The controller did not sign it.
    #[error("the controller did not sign it within {SIGNING_TIMEOUT:?}")]
    Unsigned,
    /// The certificate's folder, or a file in it, cannot be written.
    #[error("{path}: {source}")]
    Write {
        /// The file that was to be written.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// The agent's names in its certificate, and the folder where that is kept.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Node that the certificate is for.
    pub node: String,
    /// DNS name under which any agent is asked for; the node's own is below it.
    pub server_name: String,
    /// Folder of `tls.crt` and `tls.key`, in memory.
    pub folder: PathBuf,
    /// Where the end of the certificate's validity is told.
    pub metrics: Metrics,
}

impl Identity {
    /// DNS names in the certificate: that of any agent, and that of this node's.
    fn names(&self) -> Vec<String> {
        vec![
            self.server_name.clone(),
            agent_server_name(&self.node, &self.server_name),
        ]
    }

    /// Key and parameters of a certificate or of a request for one.
    fn make(&self) -> Result<(KeyPair, CertificateParams), rcgen::Error> {
        let mut params = CertificateParams::new(self.names())?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "flopwatch agent");
        Ok((KeyPair::generate()?, params))
    }

    /// Closes the folder to other users, and puts a certificate there that nobody trusts, where an
    /// earlier process of this pod left none: what the agent does besides serving need not wait for
    /// the controller.
    pub async fn prepare(&self) -> Result<(), CertificateError> {
        let closed = Permissions::from_mode(0o700);
        let closed = tokio::fs::set_permissions(&self.folder, closed).await;
        closed.map_err(|source| CertificateError::Write {
            path: self.folder.clone(),
            source,
        })?;
        if Server::can_serve_with(&self.folder).await {
            let kept = tokio::fs::read(self.folder.join("tls.crt")).await;
            self.metrics.certified_until(kept.ok().as_deref().and_then(end));
            return Ok(());
        }
        let (key, params) = self.make()?;
        let certificate = params.self_signed(&key)?.pem();
        self.write(certificate.as_bytes(), &key).await
    }

    /// Asks for a certificate, says once that there is one, and asks for the next a day later,
    /// until `stop`.
    pub async fn keep(self, client: Client, certified: CancellationToken, stop: CancellationToken) {
        let mut retry = MIN_RETRY_INTERVAL;
        loop {
            let pause = match stop.run_until_cancelled(self.renew(&client)).await {
                None => return,
                Some(Ok(())) => {
                    info!(node = self.node, "got a certificate for this node");
                    certified.cancel();
                    retry = MIN_RETRY_INTERVAL;
                    RENEWAL_INTERVAL
                }
                Some(Err(error)) => {
                    warn!(%error, "no certificate for this node yet; artifacts cannot be fetched through the gateway without");
                    retry = (retry * 2).min(MAX_RETRY_INTERVAL);
                    retry
                }
            };
            let pause = pause.mul_f64(1.0 - fastrand::f64() / 5.0);
            if stop.run_until_cancelled(sleep(pause)).await.is_none() {
                return;
            }
        }
    }

    async fn renew(&self, client: &Client) -> Result<(), CertificateError> {
        let (key, params) = self.make()?;
        let request = params.serialize_request(&key)?.pem()?;
        let api: Api<CertificateSigningRequest> = Api::all(client.clone());
        let asked = CertificateSigningRequest {
            metadata: ObjectMeta {
                generate_name: Some("flopwatch-agent-".to_owned()),
                ..ObjectMeta::default()
            },
            spec: CertificateSigningRequestSpec {
                expiration_seconds: Some(VALIDITY_SECONDS),
                request: ByteString(request.into_bytes()),
                signer_name: AGENT_SIGNER.to_owned(),
                usages: Some(vec!["digital signature".to_owned(), "server auth".to_owned()]),
                ..CertificateSigningRequestSpec::default()
            },
            status: None,
        };
        let made = call(api.create(&PostParams::default(), &asked)).await?;
        let name = made.name_any();
        let signed = timeout(SIGNING_TIMEOUT, async {
            loop {
                sleep(POLL_INTERVAL).await;
                let status = call(api.get(&name)).await?.status.unwrap_or_default();
                if let Some(ByteString(certificate)) = status.certificate {
                    return Ok(certificate);
                }
                let refused = status.conditions.into_iter().flatten();
                let refused = refused
                    .into_iter()
                    .find(|one| one.type_ == "Denied" || one.type_ == "Failed");
                if let Some(refused) = refused {
                    return Err(CertificateError::Denied(refused.message.unwrap_or_default()));
                }
            }
        });
        let certificate = signed.await.map_err(|_elapsed| CertificateError::Unsigned)??;
        self.write(&certificate, &key).await
    }

    /// The key first: whoever reads between the two finds a pair that does not fit, and keeps what
    /// it has.
    async fn write(&self, certificate: &[u8], key: &KeyPair) -> Result<(), CertificateError> {
        put(&self.folder.join("tls.key"), key.serialize_pem().as_bytes()).await?;
        put(&self.folder.join("tls.crt"), certificate).await?;
        self.metrics.certified_until(end(certificate));
        Ok(())
    }
}

/// End of validity since 1970 of a certificate that somebody else signed: its own signature is
/// trusted by nobody, however long it holds.
fn end(certificate: &[u8]) -> Option<Duration> {
    let (_, block) = parse_x509_pem(certificate).ok()?;
    let certificate = block.parse_x509().ok()?;
    let is_signed = certificate.issuer() != certificate.subject();
    let seconds = u64::try_from(certificate.validity().not_after.timestamp()).ok()?;
    is_signed.then(|| Duration::from_secs(seconds))
}

async fn call<T>(question: impl Future<Output = kube::Result<T>>) -> Result<T, CertificateError> {
    timeout(CALL_TIMEOUT, question)
        .await
        .map_err(|_elapsed| CertificateError::Slow)?
        .map_err(CertificateError::Call)
}

/// Writes a file for this user alone, whole or not at all.
async fn put(path: &Path, content: &[u8]) -> Result<(), CertificateError> {
    let failed = |source| CertificateError::Write {
        path: path.to_path_buf(),
        source,
    };
    let new = path.with_extension("new");
    let write = async {
        let mut options = tokio::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&new).await?;
        tokio::io::AsyncWriteExt::write_all(&mut file, content).await?;
        tokio::io::AsyncWriteExt::flush(&mut file).await?;
        tokio::fs::rename(&new, path).await
    };
    write.await.map_err(failed)
}

#[cfg(test)]
mod tests {
    use prometheus::Registry;
    use rcgen::{CertificateSigningRequestParams, IsCa, Issuer, date_time_ymd};

    use super::*;

    fn identity(folder: &Path, registry: &Registry) -> Identity {
        Identity {
            node: "node-1.example".to_owned(),
            server_name: "flopwatch-agent.ns.svc".to_owned(),
            folder: folder.to_path_buf(),
            metrics: Metrics::register(registry).unwrap(),
        }
    }

    /// Time since 1970 as the series says.
    fn told(registry: &Registry) -> Duration {
        let families = registry.gather();
        let family = families
            .iter()
            .find(|family| family.name() == "flopwatch_agent_certificate_expiry_timestamp_seconds")
            .unwrap();
        Duration::from_secs_f64(family.get_metric()[0].get_gauge().get_value())
    }

    #[tokio::test]
    async fn what_is_prepared_is_for_this_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let identity = identity(folder.path(), &Registry::new());
        identity.prepare().await.unwrap();
        let key = folder.path().join("tls.key");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(folder.path()), mode(&key)), (0o700, 0o600));
        let before = std::fs::read(&key).unwrap();
        identity.prepare().await.unwrap();
        assert_eq!(std::fs::read(&key).unwrap(), before, "what is there is kept");
        let other = KeyPair::generate().unwrap().serialize_pem();
        std::fs::write(&key, other).unwrap();
        identity.prepare().await.unwrap();
        assert!(
            Server::can_serve_with(folder.path()).await,
            "what does not fit is made anew"
        );
        assert_eq!(
            identity.names(),
            ["flopwatch-agent.ns.svc", "node-1.example.flopwatch-agent.ns.svc"]
        );
    }

    #[tokio::test]
    async fn the_end_of_a_signed_certificate_is_told_and_by_the_next_process_too() {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::new();
        let first = identity(folder.path(), &registry);
        first.prepare().await.unwrap();
        assert_eq!(told(&registry), Duration::ZERO, "nobody signed it");

        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "authority");
        let issuer = Issuer::new(authority, KeyPair::generate().unwrap());
        let (key, params) = first.make().unwrap();
        let request = params.serialize_request(&key).unwrap().pem().unwrap();
        let mut request = CertificateSigningRequestParams::from_pem(&request).unwrap();
        request.params.not_after = date_time_ymd(2030, 1, 1);
        let signed = request.signed_by(&issuer).unwrap().pem();
        first.write(signed.as_bytes(), &key).await.unwrap();
        let end = Duration::from_hours(525_960);
        assert_eq!(told(&registry), end);

        let registry = Registry::new();
        identity(folder.path(), &registry).prepare().await.unwrap();
        assert_eq!(told(&registry), end);
    }
}
