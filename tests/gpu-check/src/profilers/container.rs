//! A program that stands where a node has a container.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flopwatch_agent::profilers::containers::{Containers, Probed, Sampler};
use flopwatch_agent::profilers::ncu::launched::Launched;
use flopwatch_agent::profilers::nsys::collector::Collector;
use flopwatch_agent::profilers::{Limits, Site};
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::graft::Target;
use flopwatch_attach::process::{Mapped, ProcessId, Procfs};
use flopwatch_attach::reexec::Reexec;
use flopwatch_pipeline::disk::Floor;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::transform::Samples;
use futures::FutureExt as _;
use futures::future::BoxFuture;

/// The processes of one PID namespace, which the profilers take for a container.
#[derive(Clone, Debug)]
pub(super) struct Program {
    procfs: Procfs,
    process: ProcessId,
    target: Arc<Target>,
}

/// Nothing is sampled beside these captures.
struct Nothing;

impl Sampler for Nothing {
    fn finish(self: Box<Self>) -> Samples {
        Samples::default()
    }
}

impl Program {
    /// One that no launcher started.
    pub(super) fn plain(process: ProcessId, bundle: &Path) -> Self {
        let procfs = Procfs::default();
        Self::launched_as(Target {
            reexec: Reexec::default(),
            procfs,
            process,
            launcher: bundle.join("launcher"),
            run_dir: bundle.join("run"),
            tools_dir: bundle.to_owned(),
            volumes: None,
            cgroup: None,
        })
    }

    /// One that a launcher started.
    pub(super) fn launched_as(target: Target) -> Self {
        Self {
            procfs: target.procfs.clone(),
            process: target.process,
            target: Arc::new(target),
        }
    }

    /// What a capture of it is given.
    pub(super) fn site(&self, folder: &Path, length: Duration) -> Site {
        Site {
            containers: Arc::new(self.clone()),
            container_id: self.process.pid.to_string(),
            process: self.process,
            capture: "gpu-check".to_owned(),
            folder: folder.to_owned(),
            limits: Limits {
                captures: 1,
                capture_bytes: 2 << 30,
                window_memory_bytes: 32 << 30,
                floor: Floor::default(),
            },
            pod_room: None,
            length,
        }
    }
}

impl Containers for Program {
    fn probe<'a>(&'a self, _: &'a str, _: bool) -> BoxFuture<'a, Result<Probed, Failure>> {
        let failure = Failure::new(
            CaptureReason::AttachFailed,
            "the check says itself what a probe would find",
        );
        async { Err(failure) }.boxed()
    }

    fn probe_held<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Probed, Failure>> {
        self.probe(id, true)
    }

    fn uses_cuda<'a>(&'a self, _: &'a str) -> BoxFuture<'a, bool> {
        async { false }.boxed()
    }

    fn processor_time(&self, _: &str) -> Option<Duration> {
        None
    }

    fn first_process(&self, _: &str) -> Option<ProcessId> {
        self.is_alive(self.process).then_some(self.process)
    }

    fn is_alive(&self, process: ProcessId) -> bool {
        self.procfs.is_alive(process)
    }

    fn includes(&self, _: &str, pid: i32) -> bool {
        let namespace = |pid: i32| std::fs::read_link(self.procfs.folder(pid).join("ns/pid")).ok();
        namespace(pid).is_some() && namespace(pid) == namespace(self.process.pid)
    }

    fn collector(&self, _: &str, _: ProcessId) -> Arc<dyn Collector> {
        Arc::<Target>::clone(&self.target)
    }

    fn launched(&self, _: &str, _: ProcessId) -> Arc<dyn Launched> {
        Arc::<Target>::clone(&self.target)
    }

    fn mapped(&self, _: &str) -> Mapped {
        Mapped::default()
    }

    fn procfs(&self) -> Procfs {
        self.procfs.clone()
    }

    fn has_gpus(&self) -> bool {
        false
    }

    fn sample(&self, _: &str, _: Duration) -> Box<dyn Sampler> {
        Box::new(Nothing)
    }
}
