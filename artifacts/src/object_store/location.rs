//! Where the object store is.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{BackoffConfig, Certificate, ClientOptions, RetryConfig};
use url::Url;

use super::credentials::from_environment;
use super::{Bucket, Limits};

/// Longest time until a connection is open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest request, its body included: a part of an upload, or a download of one artifact, which is
/// read on where it broke.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(5);
/// Longest pause between two pieces of an answer.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How often one request is tried again, and for how long.
const MAX_RETRIES: usize = 3;
const RETRY_TIMEOUT: Duration = Duration::from_secs(20);

/// Flags that say where the object store is; the same for agents, controller and gateway.
/// Credentials come from the environment, under the names that AWS's own tools read.
#[derive(Clone, Debug, Default, Args)]
pub struct StoreArguments {
    /// Object store for artifacts that are to outlive their node, such as s3://BUCKET/PREFIX. The
    /// environment holds the credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, ...).
    #[arg(long, value_name = "URL", value_parser = store_url)]
    pub store_url: Option<Location>,
    /// Its server, where that is not Amazon's, such as `https://minio.example:9000`.
    #[arg(long, value_name = "URL", requires = "store_url", value_parser = endpoint)]
    pub store_endpoint: Option<Url>,
    /// Region of the bucket.
    #[arg(long, value_name = "NAME", requires = "store_url", default_value = "us-east-1")]
    pub store_region: String,
    /// Name the bucket in the host, as Amazon's servers want it, also where --store-endpoint names
    /// another.
    #[arg(long, requires = "store_endpoint")]
    pub store_virtual_hosts: bool,
    /// PEM file with the authority of its certificate, where the system's do not have it.
    #[arg(long, value_name = "FILE", requires = "store_url")]
    pub store_authority: Option<PathBuf>,
}

/// A bucket and a prefix in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    bucket: String,
    prefix: Path,
}

/// Why a location cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LocationError {
    /// The text is not such a URL.
    #[error("{0}")]
    Url(String),
    /// The authority's file cannot be used.
    #[error("{path}: {reason}")]
    Authority {
        /// The file that the URL or the flag names.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The client cannot be made of it.
    #[error("no client of the object store can be made: {0}")]
    Client(String),
}

impl Location {
    /// Reads `s3://BUCKET/PREFIX`.
    pub fn parse(text: &str) -> Result<Self, LocationError> {
        let refuse = |what: &str| Err(LocationError::Url(what.to_owned()));
        // The text itself is not repeated: it may hold what it should not.
        let Ok(url) = Url::parse(text) else {
            return refuse("must be a URL such as s3://BUCKET/PREFIX");
        };
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
            return refuse("must name a bucket and a prefix alone: credentials belong into the environment");
        }
        let bucket = url.host_str().unwrap_or_default();
        let named = (3..=63).contains(&bucket.len())
            && bucket
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte));
        if url.scheme() != "s3" || url.port().is_some() || !named {
            return refuse("must be s3://BUCKET/PREFIX, with the name of a bucket in lower case");
        }
        let Ok(prefix) = Path::from_url_path(url.path()) else {
            return refuse("has a prefix that no object can have");
        };
        Ok(Self {
            bucket: bucket.to_owned(),
            prefix,
        })
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "s3://{}", self.bucket)?;
        if self.prefix.as_ref().is_empty() {
            return Ok(());
        }
        write!(f, "/{}", self.prefix)
    }
}

impl StoreArguments {
    /// The bucket, with the credentials of this process's environment; None where no store is
    /// named. `cluster` is this cluster's own name in it. Nothing is asked of the store yet.
    pub fn open(&self, cluster: &str, limits: Limits) -> Result<Option<Bucket>, LocationError> {
        self.open_with(cluster, limits, |name| std::env::var(name).ok())
    }

    /// Likewise, with the variables that `variable` knows in place of the environment.
    pub fn open_with(
        &self,
        cluster: &str,
        limits: Limits,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Bucket>, LocationError> {
        let Some(location) = &self.store_url else {
            return Ok(None);
        };
        let mut client = ClientOptions::new()
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_timeout(REQUEST_TIMEOUT)
            .with_read_timeout(STALL_TIMEOUT);
        if let Some(path) = &self.store_authority {
            let failed = |reason: String| LocationError::Authority {
                path: path.clone(),
                reason,
            };
            let pem = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
            let authorities = Certificate::from_pem_bundle(&pem).map_err(|error| failed(error.to_string()))?;
            for authority in authorities {
                client = client.with_root_certificate(authority);
            }
        }
        let retry = RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: MAX_RETRIES,
            retry_timeout: RETRY_TIMEOUT,
        };
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&location.bucket)
            .with_region(&self.store_region)
            .with_virtual_hosted_style_request(self.store_endpoint.is_none() || self.store_virtual_hosts)
            .with_retry(retry);
        if let Some(endpoint) = &self.store_endpoint {
            client = client.with_allow_http(endpoint.scheme() == "http");
            builder = builder.with_endpoint(endpoint.as_str().trim_end_matches('/'));
        }
        let builder = from_environment(builder, variable);
        let build = |client| builder.clone().with_client_options(client).build();
        // A client needs an authority, even one that will speak without TLS; images have none of a
        // system.
        let objects = build(client.clone())
            .or_else(|_| build(with_public_authorities(client)))
            .map_err(|error| LocationError::Client(error.to_string()))?;
        let root = location.prefix.clone().join(cluster);
        Ok(Some(Bucket::new(
            std::sync::Arc::new(objects),
            &location.bucket,
            root,
            limits,
        )))
    }
}

/// Trusts the authorities that Mozilla does.
fn with_public_authorities(client: ClientOptions) -> ClientOptions {
    let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
    roots
        .filter_map(|root| Certificate::from_der(root).ok())
        .fold(client, ClientOptions::with_root_certificate)
}

fn store_url(text: &str) -> Result<Location, LocationError> {
    Location::parse(text)
}

fn endpoint(text: &str) -> Result<Url, LocationError> {
    let refused = || LocationError::Url("must be http:// or https://, a host and perhaps a port".to_owned());
    let url = Url::parse(text).map_err(|_odd| refused())?;
    let plain =
        url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.fragment().is_none();
    let served = matches!(url.scheme(), "http" | "https") && url.has_host();
    if plain && served { Ok(url) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_bucket_and_a_prefix() {
        for (text, shown) in [
            ("s3://profiles", "s3://profiles"),
            ("s3://profiles/", "s3://profiles"),
            ("s3://profiles/team/a", "s3://profiles/team/a"),
        ] {
            assert_eq!(Location::parse(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn a_url_that_holds_credentials_is_refused_and_not_repeated() {
        for text in [
            "s3://AKIAKEY:hunter2@profiles/x",
            "s3://AKIAKEY@profiles",
            "s3://profiles/x?AWSAccessKeyId=hunter2",
            "s3://profiles#hunter2",
            "https://profiles",
            "s3://Profiles/x",
            "s3://a",
            "s3://profiles:9000/x",
            "profiles",
            "",
        ] {
            let error = Location::parse(text).unwrap_err().to_string();
            assert!(!error.contains("hunter2") && !error.contains("AKIA"), "{error}");
        }
        for text in [
            "https://key:hunter2@host",
            "ftp://host",
            "host:9000",
            "https://host?x=hunter2",
        ] {
            assert!(!endpoint(text).unwrap_err().to_string().contains("hunter2"), "{text}");
        }
        assert!(endpoint("http://127.0.0.1:9000").is_ok());
    }
}
