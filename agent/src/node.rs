//! The agent of one node: its captures, its pods, its grafts.

pub mod capture;
mod capture_id;
pub mod captures;
pub mod certificate;
pub mod clock;
pub mod container_leases;
pub mod entering;
mod error;
pub mod fleet_outbox;
pub mod graft;
pub mod heartbeats;
pub mod host;
mod journal;
pub mod kernels;
mod leases;
mod memory;
mod options;
mod orphans;
mod pace;
mod pod_resources;
pub mod pods;
pub mod recordings;
mod run;
mod serving;
pub(crate) mod size;
mod spool;
pub mod starts;
pub mod storage;
pub mod sweep;
pub mod watched;
pub mod writer;

use std::path::PathBuf;
use std::sync::Arc;

use flopwatch_api::artifact::artifacts_path;
use flopwatch_api::capture::Capture;
use flopwatch_artifacts::Store;
use flopwatch_attach::process::Procfs;
use flopwatch_pipeline::steps::ChildRunner;
use kube::{Client, ResourceExt};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::metrics_ring::MetricsRing;
use crate::nsys_versions::NsysVersions;
use crate::profilers::containers::Containers;
use crate::profilers::{Limits, Registry as Profilers};
use entering::Entering;
pub use error::Error;
use fleet_outbox::Fleet;
use heartbeats::Heartbeats;
use kernels::Kernels;
pub use options::Options;
use pods::Pods;
pub use run::run;
use storage::Storage;

/// What every capture of the node shares.
pub struct Node {
    /// Name of the node, as the API server knows it.
    pub name: String,
    /// Way to the API server.
    pub client: Client,
    /// Clock of the API server, as far as it is known.
    pub clock: clock::ServerClock,
    /// Pods of the node, kept up to date by a watch.
    pub pods: Pods,
    /// Told when they changed.
    pub pods_changed: watch::Sender<()>,
    /// Store of the published artifacts.
    pub store: Arc<Store>,
    /// What the agent counts.
    pub metrics: Metrics,
    /// Bounds of captures and of their children.
    pub limits: Limits,
    /// Import and transform.
    pub steps: ChildRunner,
    /// The versions of the tools that it carries.
    pub nsys_versions: Arc<NsysVersions>,
    /// Folder of captures under way.
    pub spool: PathBuf,
    /// The host's processes.
    pub procfs: Procfs,
    /// How containers are entered.
    pub entering: Entering,
    /// Containers that are held for their collection.
    pub starts: starts::Starts,
    /// What captures are taken with.
    pub profilers: Profilers,
    /// Samples of the last minutes; none where they are switched off.
    pub metrics_ring: Option<MetricsRing>,
    /// Its containers and GPUs, as captures touch them.
    pub containers: Arc<dyn Containers>,
    /// Where artifacts are kept beside the node's own store.
    pub storage: Storage,
    /// The way of fleet rows to the object store; none where there is no such store, or they are
    /// switched off.
    pub fleet: Option<Fleet>,
    /// Where artifacts are served: scheme, address and port.
    pub url: String,
    /// What the flight recorders of its containers count.
    pub heartbeats: Heartbeats,
    /// The containers whose kernels are recorded all the time.
    pub kernels: Kernels,
    /// What is kept of containers that ended abnormally.
    pub recordings: recordings::Recordings,
    /// Told when a container ended with something of a capture in it, which its next life may still
    /// have in a volume.
    pub left_behind: Notify,
    /// No new work.
    pub stop: CancellationToken,
    /// Not even what is to be written yet.
    pub give_up: CancellationToken,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node")
            .field("name", &self.name)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Node {
    /// Where the artifacts of a capture are served.
    pub fn url_of(&self, capture: &Capture) -> String {
        let namespace = capture.namespace().unwrap_or_default();
        format!("{}{}", self.url, artifacts_path(&namespace, &capture.name_any()))
    }
}
