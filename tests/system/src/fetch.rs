//! Reading artifacts as a user does: curl, a bearer token, the agent's certificate.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::Client;
use kube::api::{Api, ListParams};
use serde_json::json;
use tempfile::TempDir;

use crate::chart;
use crate::cluster::{STATE_TIMEOUT, TestNamespace, apply, eventually, kubectl, run};
use crate::pods::is_ready;

/// Bytes of a body that are shown where an answer is not what it should be.
const MAX_SHOWN_BYTES: usize = 1000;
/// Options of curl with which a request changes something: it is sent once.
const CHANGES: [&str; 3] = ["--data", "--request", "--upload-file"];

/// An answer of the artifact service.
pub struct Answer {
    /// HTTP status code.
    pub status: u16,
    /// Header lines, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body of the answer.
    pub body: Vec<u8>,
}

impl Answer {
    /// Value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// How long to wait before the request is sent again, where the service says that it has no
    /// answer at the moment.
    fn retry_after(&self) -> Option<Duration> {
        let seconds = self.header("retry-after").filter(|_| self.status == 503)?;
        seconds.parse().ok().map(Duration::from_secs)
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.body[..self.body.len().min(MAX_SHOWN_BYTES)];
        out.debug_struct("Answer")
            .field("status", &self.status)
            .field("headers", &self.headers)
            .field("bytes", &self.body.len())
            .field("body", &String::from_utf8_lossy(shown))
            .finish()
    }
}

/// A client of the agents' artifact services, or of the gateway.
pub struct ArtifactClient {
    folder: TempDir,
    authority: PathBuf,
    /// Name in the certificate.
    name: String,
}

impl ArtifactClient {
    /// Takes the authority's certificate from the release's secret.
    ///
    /// # Errors
    /// When the secret never comes.
    pub async fn new(client: &Client) -> Result<Self> {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), chart::NAMESPACE);
        let certificate = eventually("the certificate of the agents", || async {
            let secret = secrets.get_opt("flopwatch-controller-tls").await?;
            Ok(secret
                .and_then(|secret| secret.data)
                .and_then(|mut data| data.remove("ca.crt")))
        })
        .await?;
        Self::of("agent", &certificate.0)
    }

    /// The same of the gateway, whose authority a ConfigMap tells.
    ///
    /// # Errors
    /// When the ConfigMap never comes.
    pub async fn of_gateway(client: &Client) -> Result<Self> {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), chart::NAMESPACE);
        let certificate = eventually("the authority of the gateway", || async {
            let map = maps.get_opt("flopwatch-gateway-ca").await?;
            Ok(map.and_then(|map| map.data).and_then(|mut data| data.remove("ca.crt")))
        })
        .await?;
        Self::of("gateway", certificate.as_bytes())
    }

    fn of(component: &str, certificate: &[u8]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let authority = folder.path().join("ca.crt");
        std::fs::write(&authority, certificate)?;
        let name = format!("flopwatch-{component}.{}.svc", chart::NAMESPACE);
        Ok(Self {
            folder,
            authority,
            name,
        })
    }

    /// The file of the authority that it trusts.
    #[must_use]
    pub fn authority(&self) -> &Path {
        &self.authority
    }

    /// The name that the server's certificate must have.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sends a request to `url`, whose host is the agent's address; `arguments` go to curl as they
    /// are. A request that changes nothing is sent again where the answer says when (503 with
    /// `Retry-After`), for [`STATE_TIMEOUT`] at most.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn request(&self, url: &str, token: Option<&str>, arguments: &[&str]) -> Result<Answer> {
        let until = Instant::now() + STATE_TIMEOUT;
        loop {
            let answer = self.request_once(url, token, arguments).await?;
            let changes = arguments.iter().any(|argument| CHANGES.contains(argument));
            match answer.retry_after() {
                Some(pause) if !changes && Instant::now() < until => tokio::time::sleep(pause).await,
                _ => return Ok(answer),
            }
        }
    }

    async fn request_once(&self, url: &str, token: Option<&str>, arguments: &[&str]) -> Result<Answer> {
        let rest = url.strip_prefix("https://").context("artifacts are served over TLS")?;
        let (authority, path) = rest.split_once('/').context("a URL with a path")?;
        let (address, port) = authority.rsplit_once(':').context("a URL with a port")?;
        let name = &self.name;
        let resolve = format!("{name}:{port}:{address}");
        let url = format!("https://{name}:{port}/{path}");
        let (head, body) = (self.folder.path().join("head"), self.folder.path().join("body"));
        let header = token.map(|token| format!("Authorization: Bearer {token}"));
        let text = |path: &PathBuf| path.to_str().map(str::to_owned).context("a path that is not UTF-8");
        let (ca, head_path, body_path) = (text(&self.authority)?, text(&head)?, text(&body)?);
        let mut all = vec![
            "--silent",
            "--show-error",
            "--max-time",
            "60",
            "--path-as-is",
            "--cacert",
            &ca,
            "--resolve",
            &resolve,
            "--dump-header",
            &head_path,
            "--output",
            &body_path,
            "--write-out",
            "%{http_code}",
        ];
        if let Some(header) = &header {
            all.extend(["--header", header]);
        }
        all.extend(arguments);
        all.push(&url);
        std::fs::write(&body, [])?;
        let status = run("curl", &all).await?;
        let headers = std::fs::read_to_string(&head)?
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        Ok(Answer {
            status: status.trim().parse()?,
            headers,
            body: std::fs::read(&body)?,
        })
    }
}

/// A token of a service account of the namespace, made as a user would.
///
/// # Errors
/// When the API server makes none.
pub async fn token(namespace: &str, account: &str) -> Result<String> {
    let token = kubectl(namespace, &["create", "token", account, "--duration=10m"]).await?;
    let token = token.trim().to_owned();
    if token.is_empty() {
        bail!("no token for {account}");
    }
    Ok(token)
}

/// Makes a service account in the namespace, which has no rights, and returns a token of it. Safe
/// to run twice.
///
/// # Errors
/// When the API server refuses one of these.
pub async fn stranger_token(namespace: &TestNamespace, account: &str) -> Result<String> {
    let own = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": account } });
    apply(&namespace.name, &own).await?;
    token(&namespace.name, account).await
}

/// Makes a service account in the namespace, binds a ClusterRole to it there, and returns a token
/// of it. Safe to run twice.
///
/// # Errors
/// When the API server refuses one of these.
pub async fn reader_token(namespace: &TestNamespace, account: &str, role: &str) -> Result<String> {
    namespace.bind(account, role, account).await?;
    stranger_token(namespace, account).await
}

/// Makes a reader as [`reader_token`] does, who may read Raw too.
///
/// # Errors
/// When the API server refuses one of these.
pub async fn raw_reader_token(namespace: &TestNamespace, account: &str) -> Result<String> {
    namespace.bind("raw", "flopwatch-raw-reader", account).await?;
    reader_token(namespace, account, "flopwatch-viewer").await
}

/// Makes a service account in the release's namespace, or takes it where it is, binds a ClusterRole
/// to it in the whole cluster, and returns a token of it for an hour, which is good for `audience`
/// alone where there is one.
///
/// # Errors
/// When the API server refuses one of these.
pub async fn account_token(account: &str, role: &str, audience: Option<&str>) -> Result<String> {
    account_token_in(chart::NAMESPACE, account, role, audience).await
}

/// Makes a token as [`account_token`] does, of an account in the namespace `namespace`.
///
/// # Errors
/// When the API server refuses it.
pub async fn account_token_in(namespace: &str, account: &str, role: &str, audience: Option<&str>) -> Result<String> {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": account },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
        "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": namespace }]
    });
    let own = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": account, "namespace": namespace }
    });
    for manifest in [own, binding] {
        apply(namespace, &manifest).await?;
    }
    let audience = audience.map(|audience| format!("--audience={audience}"));
    let mut arguments = vec!["create", "token", account, "--duration=1h"];
    arguments.extend(audience.as_deref());
    let token = kubectl(namespace, &arguments).await?;
    Ok(token.trim().to_owned())
}

/// Where the gateway's pod listens: the URL below which its paths are.
///
/// # Errors
/// When none is ready in time.
pub async fn gateway(client: &Client) -> Result<String> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), chart::NAMESPACE);
    let labels = ListParams::default().labels("app.kubernetes.io/component=gateway");
    let address = eventually("a ready gateway", || async {
        let mut all = pods.list(&labels).await?.into_iter();
        let ready = all.find(|pod| pod.metadata.deletion_timestamp.is_none() && is_ready(pod));
        Ok(ready.and_then(|pod| pod.status?.pod_ip))
    })
    .await?;
    Ok(format!("https://{address}:8443/api/profiling"))
}
