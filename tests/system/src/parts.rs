//! The release's parts as processes of the node: found, killed, waited for.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::capture::Capture;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use nix::sys::signal::Signal;

use crate::chart;
use crate::cluster::eventually;
use crate::node::{self, Process};
use crate::pods::first_status;

/// Where the agent keeps captures under way, as it sees it.
pub const SPOOL: &str = "/var/lib/flopwatch/spool";

/// Where the agent keeps what it published, as it sees it.
pub const ARTIFACTS: &str = "/var/lib/flopwatch/artifacts";

/// A part of the release that runs once, or once per node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The agent, which runs once per node.
    Agent,
    /// The session controller.
    Controller,
    /// The gateway, which serves captures over HTTP.
    Gateway,
}

impl Part {
    const fn component(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Controller => "controller",
            Self::Gateway => "gateway",
        }
    }

    /// The subcommand that its process runs.
    const fn verb(self) -> &'static str {
        match self {
            Self::Agent => "run",
            Self::Controller | Self::Gateway => self.component(),
        }
    }

    const fn program(self) -> &'static str {
        match self {
            Self::Agent => "flopwatch-agent",
            Self::Controller | Self::Gateway => "flopwatch-operator",
        }
    }
}

/// A part of the release that runs: its pod and its process.
#[derive(Clone, Debug)]
pub struct Running {
    part: Part,
    /// Pod of the part.
    pub pod: Pod,
    /// First process of the part's container.
    pub process: Process,
}

impl Running {
    /// The agent of the node that a pod runs on.
    ///
    /// # Errors
    /// When there is none.
    pub async fn agent_of(client: &Client, target: &Pod) -> Result<Self> {
        let node = target.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let node = node.context("the pod is on no node yet")?;
        Self::find(client, Part::Agent, Some(node)).await
    }

    /// The agents of all nodes.
    ///
    /// # Errors
    /// When one is not ready in time.
    pub async fn agents(client: &Client) -> Result<Vec<Self>> {
        let nodes: Api<Node> = Api::all(client.clone());
        let mut agents = Vec::new();
        for node in nodes.list(&ListParams::default()).await? {
            agents.push(Self::find(client, Part::Agent, Some(node.name_any())).await?);
        }
        Ok(agents)
    }

    /// The session controller.
    ///
    /// # Errors
    /// When there is none.
    pub async fn controller(client: &Client) -> Result<Self> {
        Self::find(client, Part::Controller, None).await
    }

    /// The gateway of the release, once it is ready.
    ///
    /// # Errors
    /// When there is none.
    pub async fn gateway(client: &Client) -> Result<Self> {
        Self::find(client, Part::Gateway, None).await
    }

    /// Waits until the part is ready.
    async fn find(client: &Client, part: Part, node: Option<String>) -> Result<Self> {
        let pods: Api<Pod> = Api::namespaced(client.clone(), chart::NAMESPACE);
        let parameters = ListParams::default().labels(&format!("app.kubernetes.io/component={}", part.component()));
        eventually(&format!("the {} to be ready", part.component()), || async {
            let found = pods.list(&parameters).await?.items.into_iter().find(|pod| {
                let on = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
                let wanted = node.as_deref().is_none_or(|node| on == Some(node));
                wanted && pod.metadata.deletion_timestamp.is_none() && first_status(pod).is_some_and(|one| one.ready)
            });
            let Some(pod) = found else { return Ok(None) };
            let process = process_of(part, &pod)?;
            Ok(Some(Self { part, pod, process }))
        })
        .await
    }

    /// Kills its process as the kernel does when memory runs out, and waits until the kubelet has
    /// started another that is ready.
    ///
    /// # Errors
    /// When none comes.
    pub async fn killed(&self, client: &Client) -> Result<Self> {
        self.process.signal(Signal::SIGKILL)?;
        self.restarted(client).await
    }

    /// Waits until another process has taken its place and is ready.
    ///
    /// # Errors
    /// When none comes.
    pub async fn restarted(&self, client: &Client) -> Result<Self> {
        let name = self.pod.metadata.name.clone().context("a pod without a name")?;
        let before = first_status(&self.pod).map_or(0, |one| one.restart_count);
        let pods: Api<Pod> = Api::namespaced(client.clone(), chart::NAMESPACE);
        eventually(&format!("{name} to be ready again"), || async {
            let pod = pods.get(&name).await?;
            let again = first_status(&pod).is_some_and(|one| one.restart_count > before && one.ready);
            if !again {
                return Ok(None);
            }
            let process = process_of(self.part, &pod)?;
            ensure!(process != self.process, "it was not restarted");
            Ok(Some(Self {
                part: self.part,
                pod,
                process,
            }))
        })
        .await
    }

    /// Path on the node of a folder or file that the part's process sees at `inside`.
    pub fn path(&self, inside: &str) -> PathBuf {
        self.process.root().join(inside.trim_start_matches('/'))
    }

    /// The manifest of a capture that the agent published, on the node.
    pub fn manifest(&self, capture: &Capture) -> PathBuf {
        let namespace = capture.namespace().unwrap_or_default();
        self.path(&format!("{ARTIFACTS}/captures/{namespace}/{}.json", capture.name_any()))
    }

    /// Processes of its pod beside itself, and its children in cgroups of their own: the tools that
    /// it runs on captures. Those of the pod's sandbox do not count.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn children(&self) -> Result<Vec<Process>> {
        let mut all = node::of_pod(&self.pod)?;
        all.retain(|process| *process != self.process && !process.runs("pause"));
        // Where cgroups are of version 2, the agent's children are in none of its pod.
        let is_own = |process: &Process| {
            let mut above = std::iter::successors(process.parent(), |process| process.parent());
            above.any(|process| process == self.process)
        };
        all.extend(node::in_cgroup("/flopwatch-children/")?.into_iter().filter(is_own));
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }
}

fn process_of(part: Part, pod: &Pod) -> Result<Process> {
    node::of_pod(pod)?
        .into_iter()
        .find(|process| {
            let words = process.words();
            let first = words.first().is_some_and(|word| word.ends_with(part.program()));
            first && words.get(1).map(String::as_str) == Some(part.verb())
        })
        .with_context(|| {
            format!(
                "no process of the {} is on this machine: these tests need the local cluster",
                part.component()
            )
        })
}
