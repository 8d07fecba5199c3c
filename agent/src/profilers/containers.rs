//! Where the captures of a node touch its containers and its GPUs. Everything else of theirs is files and the API server, so
//! tests put doubles here.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use flopwatch_attach::process::{Mapped, ProcessId, Procfs};
use flopwatch_attach::usage::memory::MemoryUsage;
use flopwatch_nvml::ContainerIdentity;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::gpus::Sampling;
use flopwatch_pipeline::transform::Samples;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::profilers::facts::Facts;
use crate::profilers::ncu::launched::Launched;
use crate::profilers::nsys::collector::Collector;

/// What the probe of a container found.
#[derive(Clone, Debug)]
pub struct Probed {
    /// What every profiler decides from whether it is open.
    pub facts: Facts,
    /// The container's first process.
    pub process: ProcessId,
    /// Whether any of its processes has mapped libcuda.
    pub uses_cuda: bool,
    /// Version of the tools in it; empty where none were asked.
    pub tools: String,
}

/// The containers of a node.
pub trait Containers: fmt::Debug + Send + Sync {
    /// Looks at a running container, without touching it where it was not prepared.
    fn probe<'a>(&'a self, container_id: &'a str, prepared: bool) -> BoxFuture<'a, Result<Probed, Failure>>;

    /// Looks at a container that is held before its first instruction.
    fn probe_held<'a>(&'a self, container_id: &'a str) -> BoxFuture<'a, Result<Probed, Failure>>;

    /// Whether any process of the container has mapped libcuda.
    fn uses_cuda<'a>(&'a self, container_id: &'a str) -> BoxFuture<'a, bool>;

    /// The ids of the GPUs that the kubelet gave the container; empty where it cannot be asked.
    fn assigned<'a>(&'a self, _container: &'a ContainerIdentity) -> BoxFuture<'a, Vec<String>> {
        async { Vec::new() }.boxed()
    }

    /// Processor time that its processes have used so far; none where that cannot be read. Reads procfs.
    fn processor_time(&self, container_id: &str) -> Option<Duration>;

    /// The container's memory; none where nobody counts it.
    fn memory(&self, _container_id: &str) -> Option<MemoryUsage> {
        None
    }

    /// The container's first process; none when it ended.
    fn first_process(&self, container_id: &str) -> Option<ProcessId>;

    /// Whether that process still runs.
    fn is_alive(&self, process: ProcessId) -> bool;

    /// Whether the process with that PID is in a container.
    fn includes(&self, container_id: &str, pid: i32) -> bool {
        let container = self.procfs().container(pid);
        container.is_some_and(|container| container.container_id == container_id)
    }

    /// The way to Nsight Systems' session in a prepared container, through one of its processes.
    fn collector(&self, container_id: &str, process: ProcessId) -> Arc<dyn Collector>;

    /// The way to a program that its profiler started, through one of its container's processes.
    fn launched(&self, container_id: &str, process: ProcessId) -> Arc<dyn Launched>;

    /// What the processes of a container have mapped by now.
    fn mapped(&self, container_id: &str) -> Mapped;

    /// Where its processes are looked at.
    fn procfs(&self) -> Procfs;

    /// Whether GPUs can be sampled.
    fn has_gpus(&self) -> bool;

    /// Samples the GPUs that a container's processes use.
    fn sample(&self, container_id: &str, interval: Duration) -> Box<dyn Sampler>;
}

/// GPU samples under way; thrown away when dropped.
pub trait Sampler: Send {
    /// Ends it. The window's times are the caller's to fill in.
    fn finish(self: Box<Self>) -> Samples;
}

impl Sampler for Sampling {
    fn finish(self: Box<Self>) -> Samples {
        (*self).finish()
    }
}
