//! The cluster of the kubeconfig, and its refusals in words that help.

use std::time::Duration;

use flopwatch_api::GROUP;
use kube::api::{Api, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::core::Status;
use kube::{Client, Config};
use serde::de::DeserializeOwned;

use crate::arguments::ConnectionArguments;

/// Longest wait for an answer of the API server.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Why the cluster did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// There is no usable kubeconfig.
    #[error("no cluster is configured: {0}; set KUBECONFIG, or give --kubeconfig and --context")]
    Kubeconfig(#[source] KubeconfigError),
    /// The configured cluster cannot be called: certificates, proxies or credential programs.
    #[error("the kubeconfig cannot be used: {0}")]
    Client(#[source] Box<kube::Error>),
    /// Flopwatch's custom resources are not in the cluster.
    #[error(
        "this cluster has no such resource: Flopwatch is not installed, or an older version of it (helm install flopwatch charts/flopwatch --namespace flopwatch-system), or --context names another cluster"
    )]
    NotInstalled,
    /// The API server does not know the caller.
    #[error(
        "the API server does not accept the kubeconfig's credentials ({message}): log in anew, or choose another --context"
    )]
    Unauthenticated {
        /// Message of the API server.
        message: String,
    },
    /// The caller may not.
    #[error("you may not {doing}: {message}")]
    Forbidden {
        /// What was tried.
        doing: String,
        /// What the API server says.
        message: String,
    },
    /// There is no such object.
    #[error("cannot {doing}: {message}")]
    NotFound {
        /// What was tried.
        doing: String,
        /// What the API server says.
        message: String,
    },
    /// The API server refuses the request for what is in it.
    #[error("the API server refuses to {doing}: {message}")]
    Refused {
        /// What was tried.
        doing: String,
        /// Message of the API server.
        message: String,
    },
    /// The API server cannot be reached, or broke off.
    #[error("the API server at {server} cannot be asked to {doing}: {reason}")]
    Unreachable {
        /// Address of the API server.
        server: String,
        /// What was tried.
        doing: String,
        /// Error of the connection.
        reason: String,
    },
}

/// The cluster of the kubeconfig.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    /// How it is reached, and who asks.
    pub config: Config,
    /// The namespace that is asked about.
    pub namespace: String,
    /// The namespace that Flopwatch is installed in.
    pub flopwatch_namespace: String,
}

impl Cluster {
    /// The one that the arguments and the kubeconfig name; within a pod without a kubeconfig, its
    /// own.
    pub async fn connect(arguments: &ConnectionArguments) -> Result<Self, ClusterError> {
        let options = KubeConfigOptions {
            context: arguments.context.clone(),
            ..KubeConfigOptions::default()
        };
        let config = match &arguments.kubeconfig {
            Some(path) => match Kubeconfig::read_from(path) {
                Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &options).await,
                Err(error) => Err(error),
            },
            None => Config::from_kubeconfig(&options).await,
        };
        let config = match config {
            Ok(config) => config,
            Err(error) if arguments.kubeconfig.is_none() && arguments.context.is_none() => {
                Config::incluster().map_err(|_outside| ClusterError::Kubeconfig(error))?
            }
            Err(error) => return Err(ClusterError::Kubeconfig(error)),
        };
        Self::of(config, arguments)
    }

    /// The cluster of a configuration.
    pub fn of(config: Config, arguments: &ConnectionArguments) -> Result<Self, ClusterError> {
        let client = Client::try_from(config.clone()).map_err(|error| ClusterError::Client(Box::new(error)))?;
        Ok(Self {
            client,
            namespace: arguments
                .namespace
                .clone()
                .unwrap_or_else(|| config.default_namespace.clone()),
            flopwatch_namespace: arguments.flopwatch_namespace.clone(),
            config,
        })
    }

    /// Objects of the namespace that is asked about.
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Objects of Flopwatch's own namespace.
    pub fn own<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.flopwatch_namespace)
    }

    /// Objects of all namespaces, or of none.
    pub fn all<K>(&self) -> Api<K>
    where
        K: kube::Resource,
        K::DynamicType: Default,
    {
        Api::all(self.client.clone())
    }

    /// An answer of the API server within its time; `doing` says in words what was tried, as in
    /// "list sessions".
    pub async fn call<T>(
        &self,
        doing: &str,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, ClusterError> {
        match tokio::time::timeout(ANSWER_TIMEOUT, call).await {
            Ok(result) => result.map_err(|error| self.explain(doing, error)),
            Err(_elapsed) => Err(ClusterError::Unreachable {
                server: self.config.cluster_url.to_string(),
                doing: doing.to_owned(),
                reason: format!("it did not answer within {} s", ANSWER_TIMEOUT.as_secs()),
            }),
        }
    }

    /// All objects of a kind with these labels, page by page.
    pub async fn list<K>(&self, doing: &str, api: &Api<K>, labels: Option<&str>) -> Result<Vec<K>, ClusterError>
    where
        K: Clone + DeserializeOwned + std::fmt::Debug,
    {
        let mut params = ListParams::default().limit(500);
        if let Some(labels) = labels {
            params = params.labels(labels);
        }
        let mut items = Vec::new();
        loop {
            let page = self.call(doing, api.list(&params)).await?;
            items.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(items),
            }
        }
    }

    /// What an error of the API server means to whoever asked.
    pub fn explain(&self, doing: &str, error: kube::Error) -> ClusterError {
        match error {
            kube::Error::Api(status) => of_status(doing, &status),
            kube::Error::Auth(_) => ClusterError::Unauthenticated {
                message: error.to_string(),
            },
            other => ClusterError::Unreachable {
                server: self.config.cluster_url.to_string(),
                doing: doing.to_owned(),
                reason: with_causes(&other),
            },
        }
    }
}

/// What a status of the API server means to whoever asked.
pub fn of_status(doing: &str, status: &Status) -> ClusterError {
    let (doing, message) = (doing.to_owned(), status.message.trim().to_owned());
    match status.code {
        401 => ClusterError::Unauthenticated { message },
        403 => {
            let of_ours = status.details.as_ref().is_some_and(|details| details.group == GROUP);
            let advice = ". Ask for a role binding: ClusterRole flopwatch-user profiles, flopwatch-viewer reads";
            let message = if of_ours { message + advice } else { message };
            ClusterError::Forbidden { doing, message }
        }
        // Without an object that it speaks of, it is the path that is not there.
        404 if status.details.as_ref().is_none_or(|details| details.name.is_empty()) => ClusterError::NotInstalled,
        404 => ClusterError::NotFound { doing, message },
        _ => ClusterError::Refused { doing, message },
    }
}

/// An error with what it came from; the outermost words alone often say nothing.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn refusals_say_what_to_do() {
        let not_found = json!({"name": "first", "kind": "profilingsessions"});
        let rows: [(u16, Value, &str); 6] = [
            (401, json!(null), "log in anew"),
            (403, json!({"kind": "profilingsessions"}), "you may not list sessions"),
            (
                403,
                json!({"kind": "profilingsessions", "group": "flopwatch.dev"}),
                "flopwatch-user",
            ),
            (404, json!(null), "helm install"),
            (404, not_found, "cannot list sessions: as it says"),
            (422, json!(null), "refuses to list sessions: as it says"),
        ];
        for (code, details, expected) in rows {
            let mut status = json!({"code": code, "message": "as it says\n", "reason": "Any"});
            if !details.is_null() {
                status["details"] = details;
            }
            let status: Status = serde_json::from_value(status).unwrap();
            let reply = of_status("list sessions", &status).to_string();
            assert!(reply.contains(expected), "{code}: {reply}");
        }
    }

    #[test]
    fn causes_are_told_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer")]
        struct Outer(#[source] std::io::Error);
        let inner = std::io::Error::other("refused");
        assert_eq!(with_causes(&Outer(inner)), "outer: refused");
    }
}
