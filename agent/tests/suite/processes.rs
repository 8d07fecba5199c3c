//! A container that is nothing but its processes, for profilers that a test drives itself.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flopwatch_agent::profilers::containers::{Containers, Probed, Sampler};
use flopwatch_agent::profilers::ncu::launched::Launched;
use flopwatch_agent::profilers::nsys::collector::Collector;
use flopwatch_agent::profilers::{Limits, Site};
use flopwatch_attach::process::{Mapped, ProcessId, Procfs};
use flopwatch_pipeline::disk::Floor;
use flopwatch_pipeline::failure::Failure;
use futures::future::BoxFuture;

/// The processes of the one container: those that were added, and those of a PID namespace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processes {
    added: Arc<Mutex<BTreeSet<i32>>>,
    namespace: Option<PathBuf>,
}

impl Processes {
    /// Those of the PID namespace of a process.
    pub(crate) fn beside(process: ProcessId) -> Self {
        Self {
            namespace: namespace(process.pid),
            ..Self::default()
        }
    }

    /// A process of the container has started.
    pub(crate) fn add(&self, pid: i32) {
        self.added.lock().unwrap().insert(pid);
    }

    /// What a profiler is given of a capture in that folder, which reaches the container through
    /// `process`.
    pub(crate) fn site(&self, process: ProcessId, folder: &Path, length: Duration) -> Site {
        Site {
            containers: Arc::new(self.clone()),
            container_id: "c".to_owned(),
            process,
            capture: "0-1".to_owned(),
            folder: folder.to_owned(),
            limits: Limits {
                captures: 1,
                capture_bytes: 64 << 20,
                window_memory_bytes: 32 << 30,
                floor: Floor::default(),
            },
            pod_room: None,
            length,
        }
    }
}

fn namespace(pid: i32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok()
}

impl Containers for Processes {
    fn probe<'a>(&'a self, _: &'a str, _: bool) -> BoxFuture<'a, Result<Probed, Failure>> {
        unreachable!("the test says itself what a probe would find")
    }

    fn probe_held<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Probed, Failure>> {
        unreachable!("nothing is held")
    }

    fn uses_cuda<'a>(&'a self, _: &'a str) -> BoxFuture<'a, bool> {
        unreachable!("only captures ask, and there is none")
    }

    fn is_alive(&self, process: ProcessId) -> bool {
        self.procfs().is_alive(process)
    }

    fn includes(&self, _: &str, pid: i32) -> bool {
        let is_beside = self.namespace.is_some() && self.namespace == namespace(pid);
        is_beside || self.added.lock().unwrap().contains(&pid)
    }

    fn collector(&self, _: &str, _: ProcessId) -> Arc<dyn Collector> {
        unreachable!("there is no session of Nsight Systems")
    }

    fn launched(&self, _: &str, _: ProcessId) -> Arc<dyn Launched> {
        unreachable!("the program is not a profiler's")
    }

    fn mapped(&self, _: &str) -> Mapped {
        Mapped::default()
    }

    fn procfs(&self) -> Procfs {
        Procfs::default()
    }

    fn processor_time(&self, _: &str) -> Option<Duration> {
        None
    }

    fn has_gpus(&self) -> bool {
        false
    }

    fn sample(&self, _: &str, _: Duration) -> Box<dyn Sampler> {
        unreachable!("there are no GPUs")
    }
}
