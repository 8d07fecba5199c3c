//! The cluster's nodes: pods on a certain one, the agent there, and losing one.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::chart;
use crate::cluster::{Cluster, Group, TestNamespace, eventually, kubectl};
use crate::pods::is_ready;

/// Label that every kubelet gives its node.
const HOSTNAME: &str = "kubernetes.io/hostname";

impl Cluster {
    /// [Connects](Self::connect) to a cluster with two nodes, whose names are given too, the one
    /// that carries the release's parts first; says why the test is skipped where there is one node
    /// only.
    ///
    /// # Errors
    /// Those of connecting, and when the API server does not answer.
    pub async fn with_two_nodes(group: Group) -> Result<Option<(Self, [String; 2])>> {
        match Self::connect(group).await? {
            Some(cluster) => cluster.two_nodes().await,
            None => Ok(None),
        }
    }

    /// The cluster and its first two nodes, as [`Self::with_two_nodes`] gives them.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn two_nodes(self) -> Result<Option<(Self, [String; 2])>> {
        if let [first, second, ..] = names(&self.client).await?.as_slice() {
            let nodes = [first.clone(), second.clone()];
            return Ok(Some((self, nodes)));
        }
        skip("one node only (cargo xtask cluster up --nodes 2)");
        Ok(None)
    }

    /// Whether a node is ready now.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn is_ready(&self, name: &str) -> Result<bool> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let conditions = nodes.get(name).await?.status.and_then(|status| status.conditions);
        let mut conditions = conditions.into_iter().flatten();
        Ok(conditions.any(|one| one.type_ == "Ready" && one.status == "True"))
    }

    /// Waits until a node is ready, or is not.
    ///
    /// # Errors
    /// When it does not change in time.
    pub async fn node_ready(&self, name: &str, ready: bool) -> Result<()> {
        eventually(&format!("node {name} to be ready: {ready}"), || async {
            Ok((self.is_ready(name).await? == ready).then_some(()))
        })
        .await
    }

    /// The ready agent on a node.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn agent_on(&self, node: &str) -> Result<Pod> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), chart::NAMESPACE);
        let agents = ListParams::default()
            .labels("app.kubernetes.io/component=agent")
            .fields(&format!("spec.nodeName={node}"));
        eventually(&format!("the agent on {node} to be ready"), || async {
            let found = pods.list(&agents).await?;
            Ok(found.into_iter().find(is_ready))
        })
        .await
    }

    /// The token that the kubelet gave the agent on a node.
    ///
    /// # Errors
    /// When it cannot be read in the agent's container.
    pub async fn agent_token(&self, node: &str) -> Result<String> {
        let agent = self.agent_on(node).await?.name_any();
        let file = "/var/run/secrets/kubernetes.io/serviceaccount/token";
        let token = kubectl(chart::NAMESPACE, &["exec", &agent, "-c", "agent", "--", "cat", file]).await?;
        Ok(token.trim().to_owned())
    }
}

impl TestNamespace {
    /// A pod that only the node may run that carries the release's parts, and is never lost.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn on_kept_node(&self, pod: Value) -> Result<Value> {
        let names = self.nodes().await?;
        Ok(on_node(pod, names.first().context("a cluster without nodes")?))
    }

    /// Names of all nodes, the one that carries the release's parts first.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn nodes(&self) -> Result<Vec<String>> {
        names(&self.client).await
    }
}

/// Names of all nodes, the one that carries the release's parts first.
async fn names(client: &Client) -> Result<Vec<String>> {
    let nodes: Api<Node> = Api::all(client.clone());
    let mut names: Vec<String> = nodes
        .list(&ListParams::default())
        .await?
        .iter()
        .map(Node::name_any)
        .collect();
    names.sort_unstable();
    Ok(names)
}

/// A pod that only one node may run.
pub fn on_node(mut pod: Value, node: &str) -> Value {
    pod["spec"]["nodeSelector"] = json!({ HOSTNAME: node });
    pod
}

/// The cable of a node of the local cluster. While it is pulled, all on the node runs on and
/// reaches nobody; at its end it is put back.
#[derive(Debug)]
pub struct Cable {
    recipes: PathBuf,
    node: String,
    pulled: bool,
}

impl Cable {
    /// The node's cable; says why the test is skipped where the cluster is not ours.
    pub fn of(node: &str) -> Option<Self> {
        let local = std::env::var_os("FLOPWATCH_USE_KUBECONFIG").is_none();
        let Some(recipes) = std::env::var_os("FLOPWATCH_XTASK").filter(|_| local) else {
            skip("the cluster's nodes are not ours to lose (cargo xtask cluster up --nodes 2)");
            return None;
        };
        Some(Self {
            recipes: recipes.into(),
            node: node.to_owned(),
            pulled: false,
        })
    }

    /// Pulls it.
    ///
    /// # Errors
    /// When the recipe fails.
    pub fn pull(&mut self) -> Result<()> {
        self.pulled = true;
        self.recipe("disconnect")
    }

    /// Puts it back.
    ///
    /// # Errors
    /// When the recipe fails.
    pub fn put_back(&mut self) -> Result<()> {
        self.recipe("connect")?;
        self.pulled = false;
        Ok(())
    }

    fn recipe(&self, verb: &str) -> Result<()> {
        let output = Command::new(&self.recipes)
            .args(["cluster", "node", verb, &self.node])
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("starting {}", self.recipes.display()))?;
        if !output.status.success() {
            bail!("{verb} {}: {}", self.node, String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        if self.pulled
            && let Err(error) = self.put_back()
        {
            report(&format!("{error:#}"));
        }
    }
}

fn skip(why: &str) {
    report(&format!("skipped: {why}"));
}

#[expect(clippy::print_stdout, reason = "the test runner counts and shows these lines")]
fn report(line: &str) {
    println!("{line}");
}
