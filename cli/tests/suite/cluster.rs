//! The cluster that the program is led to.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use flopwatch_test_harness::{ApiServer, Identity, Right};
use serde_json::{Value, json};

/// A cluster whose API server is on loopback. Its user `ada` has the token `of-ada` and may do
/// everything.
pub(crate) struct Cluster {
    pub(crate) api: ApiServer,
    address: SocketAddr,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let api = ApiServer::new();
        api.add_token("of-ada", Identity::new("ada"));
        api.allow("ada", everything());
        let address = api.listen().await;
        Self { api, address }
    }

    /// Takes all rights from `ada` but these.
    pub(crate) fn allow_only(&self, rights: impl IntoIterator<Item = Right>) {
        self.api.disallow("ada", &everything());
        for right in rights {
            self.api.allow("ada", right);
        }
    }

    /// A kubeconfig whose user authenticates so, with `team` as its namespace.
    pub(crate) fn kubeconfig(&self, folder: &Path, user: &Value) -> PathBuf {
        let path = folder.join("kubeconfig");
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{}", self.address)}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
            "users": [{"name": "u", "user": user}]
        });
        std::fs::write(&path, text.to_string()).unwrap();
        path
    }
}

/// The right to everything.
pub(crate) fn everything() -> Right {
    Right::resource("*", "*", "*")
}
