//! The traits through which captures reach the containers and the GPUs of their node. A test
//! implements them by a double and runs captures on a machine without containers or GPUs: all else
//! that a capture needs is files and the API server.

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
    /// What each profiler decides from whether it can be used on the container.
    pub facts: Facts,
    /// The container's first process.
    pub process: ProcessId,
    /// Whether any process of the container has mapped libcuda.
    pub uses_cuda: bool,
    /// Version of the Nsight Systems in a prepared container; empty where it was not asked for.
    pub tools: String,
}

impl Probed {
    /// A container in which no Nsight Systems was asked for.
    pub fn of(facts: Facts, process: ProcessId) -> Self {
        Self {
            uses_cuda: facts.mapped.cuda,
            tools: String::new(),
            facts,
            process,
        }
    }
}

/// The containers of a node.
pub trait Containers: fmt::Debug + Send + Sync {
    /// Probes a running container. Nothing enters it unless it was `prepared`.
    fn probe<'a>(&'a self, container_id: &'a str, prepared: bool) -> BoxFuture<'a, Result<Probed, Failure>>;

    /// Probes a container whose launcher holds the program back before its first instruction.
    fn probe_held<'a>(&'a self, container_id: &'a str) -> BoxFuture<'a, Result<Probed, Failure>>;

    /// Whether any process of the container has mapped libcuda.
    fn uses_cuda<'a>(&'a self, container_id: &'a str) -> BoxFuture<'a, bool>;

    /// Ids of the GPUs that the kubelet gave the container; empty where the kubelet does not
    /// answer.
    fn assigned<'a>(&'a self, _container: &'a ContainerIdentity) -> BoxFuture<'a, Vec<String>> {
        async { Vec::new() }.boxed()
    }

    /// Processor time that the container's processes have used so far; none where procfs does not
    /// say.
    fn processor_time(&self, container_id: &str) -> Option<Duration>;

    /// Memory that the container's cgroup counts; none where no cgroup counts it.
    fn memory(&self, _container_id: &str) -> Option<MemoryUsage> {
        None
    }

    /// The container's first process; none where the container has ended.
    fn first_process(&self, container_id: &str) -> Option<ProcessId> {
        self.processes(container_id).first().copied()
    }

    /// Whether `process` still runs.
    fn is_alive(&self, process: ProcessId) -> bool;

    /// Whether the process `pid` is in the container.
    fn includes(&self, container_id: &str, pid: i32) -> bool {
        self.procfs().is_in(pid, container_id)
    }

    /// The processes of the container, in the order of their pids in it; empty where procfs cannot
    /// be read.
    fn processes(&self, container_id: &str) -> Vec<ProcessId> {
        let processes = self.procfs().processes(|pid| self.includes(container_id, pid));
        processes.unwrap_or_default()
    }

    /// The [`Collector`] of the Nsight Systems session in a prepared container, which reaches the
    /// session through `process`, one of the container's.
    fn collector(&self, container_id: &str, process: ProcessId) -> Arc<dyn Collector>;

    /// The [`Launched`] program of a container, which Nsight Compute started; it is reached through
    /// `process`, one of the container's.
    fn launched(&self, container_id: &str, process: ProcessId) -> Arc<dyn Launched>;

    /// Libraries that the processes of the container have mapped so far.
    fn mapped(&self, container_id: &str) -> Mapped;

    /// The procfs that shows the processes of the node's containers.
    fn procfs(&self) -> Procfs;

    /// Whether the node has GPUs that can be sampled.
    fn has_gpus(&self) -> bool;

    /// Begins to sample the GPUs that the container's processes use, once in each `interval`.
    fn sample(&self, container_id: &str, interval: Duration) -> Box<dyn Sampler>;
}

/// Samples of GPUs that are being taken. Dropping it throws them away.
pub trait Sampler: Send {
    /// Ends the sampling and returns the samples. The caller fills in the times of the window.
    fn finish(self: Box<Self>) -> Samples;
}

impl Sampler for Sampling {
    fn finish(self: Box<Self>) -> Samples {
        (*self).finish()
    }
}
