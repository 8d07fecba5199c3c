//! The processes of a container that were told what to record.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use flopwatch_attach::kineto::Audience;
use flopwatch_attach::process::ProcessId;
use flopwatch_trace::model::count;

use crate::node::containers::Containers;

/// Most processes of a container that record at once.
const MOST: usize = 256;

/// Tells each process of a container what to record, whenever it asks in time.
#[derive(Debug)]
pub(super) struct Recorders {
    containers: Arc<dyn Containers>,
    container_id: String,
    configuration: String,
    /// From then on a process would be told too late.
    latest: Instant,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    /// Each with the PID that it has in its container.
    processes: BTreeMap<ProcessId, i32>,
    /// Those that asked too late, or were too many.
    left_out: BTreeSet<ProcessId>,
}

impl Recorders {
    pub(super) fn new(
        containers: Arc<dyn Containers>,
        container_id: String,
        configuration: String,
        latest: Instant,
    ) -> Self {
        Self {
            containers,
            container_id,
            configuration,
            latest,
            told: Mutex::default(),
        }
    }

    /// The processes that were told, each with the PID that it has in its container.
    pub(super) fn processes(&self) -> BTreeMap<ProcessId, i32> {
        self.told().processes.clone()
    }

    /// How many asked and were not told.
    pub(super) fn left_out(&self) -> u64 {
        count(self.told().left_out.len())
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        // Each change is one insertion.
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Audience for Recorders {
    fn includes(&self, pid: i32) -> bool {
        self.containers.includes(&self.container_id, pid)
    }

    fn configuration(&self, process: ProcessId) -> Option<String> {
        let owner = self.containers.procfs().owner(process).ok()?;
        let mut told = self.told();
        // Who asks again may not have taken the answer. The library keeps one request and passes over another until its window.
        let again = told.processes.contains_key(&process);
        let full = !again && told.processes.len() >= MOST;
        if full || Instant::now() >= self.latest {
            if !again && told.left_out.len() < MOST {
                told.left_out.insert(process);
            }
            return None;
        }
        told.processes.insert(process, owner.inner_pid);
        Some(self.configuration.clone())
    }
}
