//! The cluster that the program is led to.

use std::net::SocketAddr;
use std::path::PathBuf;

use flopwatch_test_harness::{ApiServer, Identity, Right};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Ran, run};

/// A cluster whose API server is on loopback, and the folder that the program runs in. Its user
/// `ada` has the token `of-ada` and may do everything.
pub(crate) struct Cluster {
    pub(crate) api: ApiServer,
    pub(crate) folder: TempDir,
    address: SocketAddr,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let api = ApiServer::new();
        api.add_token("of-ada", Identity::new("ada"));
        api.allow("ada", everything());
        let address = api.listen().await;
        let folder = tempfile::tempdir().unwrap();
        Self { api, folder, address }
    }

    /// Takes all rights from `ada` but these.
    pub(crate) fn allow_only(&self, rights: impl IntoIterator<Item = Right>) {
        self.api.disallow("ada", &everything());
        for right in rights {
            self.api.allow("ada", right);
        }
    }

    /// Runs the program with these words as `ada`.
    pub(crate) async fn run(&self, words: &str) -> Ran {
        self.run_heard(words, |_line| {}).await
    }

    /// The same. `hear` is told each line that the program writes to standard error, as it comes.
    pub(crate) async fn run_heard(&self, words: &str, hear: impl FnMut(&str)) -> Ran {
        run(&self.kubeconfig(&of_ada()), self.folder.path(), words, hear).await
    }

    /// A kubeconfig whose user authenticates so, with `team` as its namespace.
    pub(crate) fn kubeconfig(&self, user: &Value) -> PathBuf {
        let path = self.folder.path().join("kubeconfig");
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

/// How `ada` authenticates.
pub(crate) fn of_ada() -> Value {
    json!({"token": "of-ada"})
}

/// The right to everything.
pub(crate) fn everything() -> Right {
    Right::resource("*", "*", "*")
}
