//! The processes of a container that were told what to record.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flopwatch_attach::kineto::Audience;
use flopwatch_attach::process::ProcessId;
use flopwatch_model::count;

use super::request::ASK_INTERVAL;
use crate::profilers::containers::Containers;

/// Most processes of a container that record at once.
const MAX_PROCESSES: usize = 256;
/// A process that asks again within this time of an answer has that answer unread, and reads it
/// now. The library counts a request as failed that it could send only at its last try, asks anew
/// at once, and never knows that there are two answers: the second one would stay in its socket and
/// be taken for that of the next window.
/// <https://github.com/pytorch/kineto/blob/main/libkineto/src/IpcFabricConfigClient.cpp>
const MAX_UNREAD_INTERVAL: Duration = Duration::from_millis(ASK_INTERVAL.as_secs() * 500);

/// Tells each process of a container what to record, whenever it asks in time.
#[derive(Debug)]
pub(super) struct Recorders {
    containers: Arc<dyn Containers>,
    container_id: String,
    configuration: String,
    /// From then on a process would be told too late.
    latest: Instant,
    /// Those that are told; none where each is that asks.
    only: Option<BTreeSet<ProcessId>>,
    asked: Mutex<AskedProcesses>,
}

#[derive(Debug, Default)]
struct AskedProcesses {
    processes: BTreeMap<ProcessId, Recorder>,
    /// Processes that asked too late, were too many, or were not to be told.
    left_out: BTreeSet<ProcessId>,
}

/// A process that was answered with a configuration to record.
#[derive(Clone, Copy, Debug)]
struct Recorder {
    /// The PID that it has in its container.
    inner_pid: i32,
    /// When a process was last answered.
    last_reply: Instant,
}

impl Recorders {
    pub(super) fn new(
        containers: Arc<dyn Containers>,
        container_id: String,
        configuration: String,
        latest: Instant,
        only: Option<BTreeSet<ProcessId>>,
    ) -> Self {
        Self {
            containers,
            container_id,
            configuration,
            latest,
            only,
            asked: Mutex::default(),
        }
    }

    /// The processes that were told, each with the PID that it has in its container.
    pub(super) fn processes(&self) -> BTreeMap<ProcessId, i32> {
        let state = self.state();
        let processes = state.processes.iter();
        processes
            .map(|(process, recorder)| (*process, recorder.inner_pid))
            .collect()
    }

    /// How many asked and were not told.
    pub(super) fn left_out(&self) -> u64 {
        count(self.state().left_out.len())
    }

    /// Processes that asked, whether they were told or not.
    pub(super) fn asked(&self) -> BTreeSet<ProcessId> {
        let state = self.state();
        state.processes.keys().chain(&state.left_out).copied().collect()
    }

    fn state(&self) -> MutexGuard<'_, AskedProcesses> {
        // Each change is one insertion.
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Audience for Recorders {
    fn includes(&self, pid: i32) -> bool {
        self.containers.includes(&self.container_id, pid)
    }

    fn configuration(&self, process: ProcessId) -> Option<String> {
        let mut state = self.state();
        let now = Instant::now();
        let before = state.processes.get(&process).copied();
        if before.is_some_and(|before| now.duration_since(before.last_reply) < MAX_UNREAD_INTERVAL) {
            return None;
        }
        // Who asks again later may not have taken the answer. The library keeps one request and
        // passes over another until its window.
        let full = before.is_none() && state.processes.len() >= MAX_PROCESSES;
        let is_other = self.only.as_ref().is_some_and(|only| !only.contains(&process));
        if full || is_other || now >= self.latest {
            if before.is_none() && state.left_out.len() < MAX_PROCESSES {
                state.left_out.insert(process);
            }
            return None;
        }
        Some(self.configuration.clone())
    }

    fn answered(&self, process: ProcessId) {
        // A process that has ended writes no trace.
        let Ok(owner) = self.containers.procfs().owner(process) else {
            return;
        };
        let recorder = Recorder {
            inner_pid: owner.inner_pid,
            last_reply: Instant::now(),
        };
        self.state().processes.insert(process, recorder);
    }
}
