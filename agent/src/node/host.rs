//! The containers of this machine, as its captures touch them.

mod gpu;
mod probe;

use std::sync::Arc;
use std::time::Duration;

use flopwatch_attach::graft::Target;
use flopwatch_attach::process::{Mapped, ProcessId, Procfs};
use flopwatch_attach::usage::memory::MemoryUsage;
use flopwatch_nvml::{ContainerIdentity, DeviceSelection, Resolver};
use flopwatch_pipeline::failure::{Failure, chain};
use flopwatch_pipeline::gpus::Gpus;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tracing::{debug, info};

use super::entering::Entering;
use super::pod_resources::PodResources;
use super::{Node, Options};
use crate::nsys_versions::NsysVersions;
use crate::profilers::Registry;
use crate::profilers::containers::{Containers, Probed, Sampler};
use crate::profilers::ncu::launched::Launched;
use crate::profilers::nsys::collector::Collector;

/// The containers of this machine, by its procfs and its NVML.
#[derive(Debug)]
pub struct Host {
    /// The host's processes.
    procfs: Procfs,
    /// How containers are entered.
    entering: Entering,
    /// The versions of the tools that the agent carries.
    nsys_versions: Arc<NsysVersions>,
    /// The node's GPUs.
    gpus: Gpus,
    /// Who knows which container was given which of them; none where nobody is to be asked.
    pod_resources: Option<PodResources>,
    /// What of the node serves its GPUs.
    services: gpu::Services,
    /// Profilers, each of which inspects a container that is probed.
    profilers: Registry,
}

impl Containers for Host {
    fn probe<'a>(&'a self, container_id: &'a str, prepared: bool) -> BoxFuture<'a, Result<Probed, Failure>> {
        probe::probe(self, container_id, prepared).boxed()
    }

    fn probe_held<'a>(&'a self, container_id: &'a str) -> BoxFuture<'a, Result<Probed, Failure>> {
        probe::probe_held(self, container_id).boxed()
    }

    fn uses_cuda<'a>(&'a self, container_id: &'a str) -> BoxFuture<'a, bool> {
        probe::uses_cuda(self, container_id).boxed()
    }

    fn assigned<'a>(&'a self, container: &'a ContainerIdentity) -> BoxFuture<'a, Vec<String>> {
        let asked = async {
            let Some(kubelet) = &self.pod_resources else {
                return Vec::new();
            };
            kubelet.devices(container).await.unwrap_or_else(|error| {
                info!(reason = %chain(&error), "the kubelet does not say which GPUs a container has");
                Vec::new()
            })
        };
        asked.boxed()
    }

    fn processor_time(&self, container_id: &str) -> Option<Duration> {
        let processes = self.processes(container_id).into_iter();
        let times = processes.filter_map(|process| self.procfs.processor_time(process).ok());
        times.reduce(Duration::saturating_add)
    }

    fn memory(&self, container_id: &str) -> Option<MemoryUsage> {
        MemoryUsage::find(&self.entering.cgroup_root, container_id, &self.procfs)
            .inspect_err(|error| debug!(%error, "nobody counts the container's memory"))
            .ok()
    }

    fn is_alive(&self, process: ProcessId) -> bool {
        self.procfs.is_alive(process)
    }

    fn collector(&self, container_id: &str, process: ProcessId) -> Arc<dyn Collector> {
        Arc::new(self.way_in(container_id, process))
    }

    fn launched(&self, container_id: &str, process: ProcessId) -> Arc<dyn Launched> {
        Arc::new(self.way_in(container_id, process))
    }

    fn mapped(&self, container_id: &str) -> Mapped {
        probe::mapped(&self.procfs, container_id)
    }

    fn procfs(&self) -> Procfs {
        self.procfs.clone()
    }

    fn has_gpus(&self) -> bool {
        self.gpus.is_available()
    }

    fn sample(&self, container_id: &str, interval: Duration) -> Box<dyn Sampler> {
        let (procfs, container_id) = (self.procfs.clone(), container_id.to_owned());
        let target = move |pid: u32| i32::try_from(pid).is_ok_and(|pid| procfs.is_in(pid, &container_id));
        let sampling = self.gpus.record(interval, DeviceSelection::OfTarget, Arc::new(target));
        Box::new(sampling)
    }
}

impl Host {
    /// The machine whose processes `procfs` shows, and whose pods `resolver` finds by these.
    pub fn new(
        options: &Options,
        entering: &Entering,
        procfs: &Procfs,
        nsys_versions: &Arc<NsysVersions>,
        gpus: Gpus,
        resolver: Resolver,
        profilers: &Registry,
    ) -> Self {
        Self {
            procfs: procfs.clone(),
            entering: entering.clone(),
            nsys_versions: Arc::clone(nsys_versions),
            gpus,
            pod_resources: options.pod_resources.clone().map(PodResources::new),
            services: gpu::Services::new(options.gpu_service_namespace.clone(), resolver),
            profilers: profilers.clone(),
        }
    }

    /// The way into a prepared container through one of its processes.
    fn way_in(&self, container_id: &str, process: ProcessId) -> Target {
        self.entering.target(container_id, process)
    }
}

/// The way into a prepared container; none when it ended.
pub(super) fn grafted(node: &Node, container_id: &str) -> Option<Target> {
    let process = node.containers.first_process(container_id)?;
    Some(node.entering.target(container_id, process))
}
