//! The certificate, and its rotation.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum_server::tls_rustls::RustlsConfig;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_util::sync::CancellationToken;

use crate::changes::Changes;
use crate::server::ServeError;

/// Longest time between two looks at the files where nothing is told of them.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(10);
/// Time between a change and the look, in which the other file of the pair comes too.
const PAIR_DELAY: Duration = Duration::from_millis(100);

/// Certificate and key as they were read.
#[derive(Clone, PartialEq, Eq)]
struct Pem {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// The files of a directory, and the configuration made of them.
pub(crate) struct Certificates {
    directory: PathBuf,
    current: Pem,
    config: RustlsConfig,
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificates")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl Certificates {
    pub(crate) async fn load(directory: &Path) -> Result<Self, ServeError> {
        let current = read(directory).await?;
        let config = RustlsConfig::from_config(configure(directory, &current)?);
        Ok(Self {
            directory: directory.to_path_buf(),
            current,
            config,
        })
    }

    pub(crate) fn config(&self) -> RustlsConfig {
        self.config.clone()
    }

    /// Takes new files into use until `shutdown`. Files that cannot be used are reported and change
    /// nothing.
    pub(crate) async fn keep_current(mut self, shutdown: CancellationToken) {
        let changes = Changes::of(&self.directory);
        if let Err(error) = &changes {
            tracing::info!(%error, "changes of the certificate are looked for, as the kernel does not tell of them");
        }
        let due = async || {
            let notified = async {
                if let Ok(changes) = &changes
                    && changes.next().await.is_ok()
                {
                    tokio::time::sleep(PAIR_DELAY).await;
                } else {
                    std::future::pending::<()>().await;
                }
            };
            tokio::time::timeout(MAX_POLL_INTERVAL, notified).await.ok();
        };
        while shutdown.run_until_cancelled(due()).await.is_some() {
            match self.refresh().await {
                Ok(false) => {}
                Ok(true) => tracing::info!(directory = %self.directory.display(), "took the new certificate into use"),
                Err(error) => tracing::warn!(%error, "keeping the certificate in use"),
            }
        }
    }

    async fn refresh(&mut self) -> Result<bool, ServeError> {
        let found = read(&self.directory).await?;
        if found == self.current {
            return Ok(false);
        }
        self.config.reload_from_config(configure(&self.directory, &found)?);
        self.current = found;
        Ok(true)
    }
}

async fn read(directory: &Path) -> Result<Pem, ServeError> {
    let file = async |name| {
        let path = directory.join(name);
        tokio::fs::read(&path)
            .await
            .map_err(|source| ServeError::Read { path, source })
    };
    Ok(Pem {
        certificate: file("tls.crt").await?,
        key: file("tls.key").await?,
    })
}

fn configure(directory: &Path, pem: &Pem) -> Result<Arc<ServerConfig>, ServeError> {
    let unusable = |reason: String| ServeError::Certificate {
        directory: directory.to_path_buf(),
        reason,
    };
    let chain = CertificateDer::pem_slice_iter(&pem.certificate)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| unusable(error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(&pem.key).map_err(|error| unusable(error.to_string()))?;
    // By name: the process has no default provider to rely on.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| unusable(error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(directory: &Path, certificate: &str, key: &str) {
        std::fs::write(directory.join("tls.crt"), certificate).unwrap();
        std::fs::write(directory.join("tls.key"), key).unwrap();
    }

    #[tokio::test]
    async fn a_new_certificate_is_taken_and_a_broken_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let first = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let second = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        put(directory.path(), &first.cert.pem(), &first.signing_key.serialize_pem());
        let mut certificates = Certificates::load(directory.path()).await.unwrap();
        assert!(!certificates.refresh().await.unwrap());
        let before = certificates.config().get_inner();

        put(directory.path(), &second.cert.pem(), &first.signing_key.serialize_pem());
        assert!(matches!(
            certificates.refresh().await.unwrap_err(),
            ServeError::Certificate { .. }
        ));
        assert!(Arc::ptr_eq(&before, &certificates.config().get_inner()));

        put(
            directory.path(),
            &second.cert.pem(),
            &second.signing_key.serialize_pem(),
        );
        assert!(certificates.refresh().await.unwrap());
        assert!(!Arc::ptr_eq(&before, &certificates.config().get_inner()));
    }
}
