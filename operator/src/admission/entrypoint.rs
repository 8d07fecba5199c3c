//! Entrypoints of images, looked up at their registries.

mod credentials;

use std::time::Duration;

use clap::ValueEnum;
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Container, Pod, Secret};
use kube::Client;
use kube::api::Api;
use moka::sync::Cache;
use oci_client::Reference;
use oci_client::client::{ClientConfig, ClientProtocol, linux_amd64_resolver};
use oci_client::errors::{OciDistributionError, OciErrorCode};
use oci_client::secrets::RegistryAuth;
use serde::Deserialize;
use tokio::io::AsyncWrite;

use crate::admission::prepare::Entrypoints;
use crate::lru::lru;
use crate::metrics::Metrics;

/// Longest time that the look-ups of one pod may take: admission answers within two seconds.
const LOOKUP_TIMEOUT: Duration = Duration::from_millis(1500);
/// How long the command of an image that is named by digest is cached; it never changes.
const DIGEST_TTL: Duration = Duration::from_hours(24);
/// How long the command of an image that is named by tag is cached.
const TAG_TTL: Duration = Duration::from_mins(1);
/// Most commands that are cached of either kind.
const MAX_CACHED_COMMANDS: u64 = 2048;
/// Largest image configuration that is read.
const MAX_CONFIG_BYTES: usize = 1 << 20;
/// Most pull secrets of a pod that are read.
const MAX_SECRETS: usize = 8;

/// For which containers without a command the entrypoint is looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum EntrypointMode {
    /// Entrypoints are looked up for no image.
    #[default]
    Off,
    /// For those whose node surely runs what the registry shows: named by digest, or pulled always.
    Pinned,
    /// For all; a node that has an older image under the same tag then runs the newer one's
    /// entrypoint.
    All,
}

impl EntrypointMode {
    /// Whether the container's entrypoint may be looked up.
    pub fn admits(self, container: &Container) -> bool {
        let image = container.image.as_deref().unwrap_or_default();
        match self {
            Self::Off => false,
            Self::Pinned => image.contains("@sha256:") || container.image_pull_policy.as_deref() == Some("Always"),
            Self::All => true,
        }
    }
}

/// What an image runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ImageCommand {
    /// ENTRYPOINT of the image.
    #[serde(rename = "Entrypoint", default, deserialize_with = "or_empty")]
    pub entrypoint: Vec<String>,
    /// CMD of the image.
    #[serde(rename = "Cmd", default, deserialize_with = "or_empty")]
    pub cmd: Vec<String>,
}

fn or_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::<Vec<String>>::deserialize(deserializer)?.unwrap_or_default())
}

/// Why an entrypoint is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// The container names no image.
    #[error("the container names no image")]
    NoImage,
    /// The image's name cannot be read.
    #[error("the image's name cannot be read")]
    Name,
    /// The registry did not answer in time.
    #[error("its registry did not answer within {} s", LOOKUP_TIMEOUT.as_secs_f64())]
    Deadline,
    /// The registry does not give the image out, to nobody or not with the pod's pull secrets.
    #[error("its registry does not give it out with the pod's imagePullSecrets")]
    Denied,
    /// The registry has no such image for linux/amd64.
    #[error("its registry has no such image for linux/amd64")]
    Missing,
    /// The registry cannot be reached, or answered what is no image.
    #[error("its registry cannot be reached or answers with no image")]
    Registry,
}

/// Looks entrypoints up and keeps the answers for a while.
pub struct EntrypointLookup {
    insecure_registries: Vec<String>,
    /// Answers for images that are named by digest.
    of_digests: Cache<String, ImageCommand>,
    /// Answers for tags.
    of_tags: Cache<String, ImageCommand>,
    /// [`LOOKUP_TIMEOUT`]; tests on a busy machine wait longer.
    deadline: Duration,
    metrics: Metrics,
}

impl EntrypointLookup {
    /// `insecure_registries` (host and port) are asked over plain HTTP.
    pub fn new(insecure_registries: Vec<String>, metrics: Metrics) -> Self {
        Self {
            insecure_registries,
            of_digests: lru(MAX_CACHED_COMMANDS).time_to_live(DIGEST_TTL).build(),
            of_tags: lru(MAX_CACHED_COMMANDS).time_to_live(TAG_TTL).build(),
            deadline: LOOKUP_TIMEOUT,
            metrics,
        }
    }

    /// Looks up what `needed` (container, image) run, all at once, within the deadline.
    pub async fn of_pod(
        &self,
        client: &Client,
        namespace: &str,
        pod: &Pod,
        needed: Vec<(String, String)>,
    ) -> Entrypoints {
        if needed.is_empty() {
            return Entrypoints::new();
        }
        let ends = tokio::time::Instant::now() + self.deadline;
        let secrets = tokio::time::timeout_at(ends, pull_secrets(client, namespace, pod))
            .await
            .unwrap_or_default();
        let lookups = needed.into_iter().map(|(container, image)| {
            let secrets = &secrets;
            async move {
                let found = tokio::time::timeout_at(ends, self.of_image(&image, secrets)).await;
                let found = found.unwrap_or(Err(LookupError::Deadline));
                if let Err(error) = &found {
                    let outcome = if *error == LookupError::Deadline {
                        "timed_out"
                    } else {
                        "failed"
                    };
                    self.metrics.entrypoint_lookups.with_label_values(&[outcome]).inc();
                    tracing::info!(container, image, %error, "an entrypoint could not be looked up");
                }
                (container, found)
            }
        });
        join_all(lookups).await.into_iter().collect()
    }

    async fn of_image(&self, image: &str, secrets: &[Secret]) -> Result<ImageCommand, LookupError> {
        let reference: Reference = image.parse().map_err(|_unreadable| LookupError::Name)?;
        let auth = credentials::choose(secrets, reference.registry(), reference.repository());
        // An answer that needed credentials is given only to those who have the same.
        let key = format!("{} {}", credentials::fingerprint(&auth), reference.whole());
        let kept = if reference.digest().is_some() {
            &self.of_digests
        } else {
            &self.of_tags
        };
        if let Some(found) = kept.get(&key) {
            self.metrics.entrypoint_lookups.with_label_values(&["cached"]).inc();
            return Ok(found);
        }
        let found = self.fetch(&reference, &auth).await?;
        self.metrics.entrypoint_lookups.with_label_values(&["found"]).inc();
        kept.insert(key, found.clone());
        Ok(found)
    }

    async fn fetch(&self, reference: &Reference, auth: &RegistryAuth) -> Result<ImageCommand, LookupError> {
        // A client of its own for each look-up: a client remembers credentials by registry, and so
        // would lend them to the next pod.
        let config = ClientConfig {
            protocol: ClientProtocol::HttpsExcept(self.insecure_registries.clone()),
            platform_resolver: Some(Box::new(linux_amd64_resolver)),
            connect_timeout: Some(self.deadline),
            read_timeout: Some(self.deadline),
            ..ClientConfig::default()
        };
        let client = oci_client::Client::try_from(config).map_err(|error| translate(&error))?;
        let (manifest, _digest) = client
            .pull_image_manifest(reference, auth)
            .await
            .map_err(|error| translate(&error))?;
        let mut config = Bounded(Vec::new());
        client
            .pull_blob(reference, &manifest.config, &mut config)
            .await
            .map_err(|error| translate(&error))?;
        parse(&config.0)
    }
}

/// Reads an image configuration.
fn parse(config: &[u8]) -> Result<ImageCommand, LookupError> {
    #[derive(Deserialize)]
    struct File {
        #[serde(default)]
        config: Option<ImageCommand>,
    }
    let file: File = serde_json::from_slice(config).map_err(|_malformed| LookupError::Registry)?;
    Ok(file.config.unwrap_or_default())
}

fn translate(error: &OciDistributionError) -> LookupError {
    use OciDistributionError as E;
    use OciErrorCode as Code;
    tracing::debug!(%error, "registry");
    match error {
        E::AuthenticationFailure(_) | E::UnauthorizedError { .. } | E::ServerError { code: 401 | 403, .. } => {
            LookupError::Denied
        }
        E::ImageManifestNotFoundError(_) | E::ServerError { code: 404, .. } => LookupError::Missing,
        E::RegistryError { envelope, .. } => {
            let any = |wanted: &[Code]| envelope.errors.iter().any(|error| wanted.contains(&error.code));
            if any(&[
                Code::ManifestUnknown,
                Code::NameUnknown,
                Code::NotFound,
                Code::BlobUnknown,
            ]) {
                LookupError::Missing
            } else if any(&[Code::Unauthorized, Code::Denied]) {
                LookupError::Denied
            } else {
                LookupError::Registry
            }
        }
        _ => LookupError::Registry,
    }
}

/// The pod's pull secrets, as far as they can be read.
async fn pull_secrets(client: &Client, namespace: &str, pod: &Pod) -> Vec<Secret> {
    let names = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.image_pull_secrets.as_deref())
        .unwrap_or_default();
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let reads = names.iter().take(MAX_SECRETS).map(|secret| {
        let api = &api;
        async move {
            match api.get_opt(&secret.name).await {
                Ok(secret) => secret,
                Err(error) => {
                    tracing::debug!(namespace, secret = secret.name, %error, "cannot read a pull secret");
                    None
                }
            }
        }
    });
    join_all(reads).await.into_iter().flatten().collect()
}

/// A sink that refuses more than [`MAX_CONFIG_BYTES`].
struct Bounded(Vec<u8>);

impl AsyncWrite for Bounded {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<std::io::Result<usize>> {
        if self.0.len() + bytes.len() > MAX_CONFIG_BYTES {
            let error = std::io::Error::new(std::io::ErrorKind::FileTooLarge, "the image configuration is too large");
            return std::task::Poll::Ready(Err(error));
        }
        self.0.extend_from_slice(bytes);
        std::task::Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn poll_shutdown(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod crate_tests;
