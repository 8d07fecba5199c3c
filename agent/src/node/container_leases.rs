//! Leases of containers: which capture of the node may record in which container.
//!
//! A capture leases its container, and occupies one of the node's turns to record, until all that
//! it recorded lies in its folder and the work of its target was counted for as long as the
//! overhead's verdict needs. From then on another capture may record in that container, while the
//! first one's recording waits to be processed, is processed and is published.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flopwatch_api::reason::CaptureReason;
use flopwatch_pipeline::failure::Failure;
use tokio::sync::{Notify, Semaphore, SemaphorePermit, mpsc, watch};

use super::writer::Target;
use crate::plan::Interrupt;

/// What a live capture is told by others.
pub type Interrupts = watch::Receiver<Option<Interrupt>>;

/// A capture whose task runs.
#[derive(Debug)]
pub(super) struct Live {
    /// Namespace and name of the capture, as messages show them.
    pub(super) name: String,
    /// Pod UID and container name.
    pub(super) container: (String, String),
    /// The capture whose status the task writes.
    pub(super) target: Target,
    /// Sends the task why it is to end early.
    pub(super) interrupt: watch::Sender<Option<Interrupt>>,
    /// How far the capture has its container.
    pub(super) lease: ContainerLease,
}

/// How far a capture has its container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContainerLease {
    /// The capture alone records in the container.
    Recording,
    /// The window is over, and what was recorded is still fetched: the container is free in
    /// moments.
    Draining,
    /// All that was recorded lies on the node: another capture may have the container.
    Released,
}

/// The leases of all captures whose tasks run, and the turns to process recordings.
#[derive(Debug)]
pub struct ContainerLeases {
    live: Mutex<BTreeMap<String, Live>>,
    /// Turns to process what was recorded, in the order in which they are asked for.
    processing: Semaphore,
    /// Wakes the reconciler of waiting captures when a container or a turn is free.
    freed: mpsc::Sender<()>,
    /// Wakes who waits for the first capture.
    begun: Notify,
}

impl ContainerLeases {
    /// No leases, with turns for `at_once` recordings to be processed beside each other.
    pub(super) fn new(at_once: usize, freed: mpsc::Sender<()>) -> Arc<Self> {
        Arc::new(Self {
            live: Mutex::default(),
            processing: Semaphore::new(at_once.min(Semaphore::MAX_PERMITS)),
            freed,
            begun: Notify::new(),
        })
    }

    /// Wakes who waits in [`ContainerLeases::some`] after a lease was added.
    pub(super) fn begin(&self) {
        self.begun.notify_one();
    }

    /// Waits until a capture has a lease; serves one caller at a time.
    pub(super) async fn some(&self) {
        while self.live().is_empty() {
            self.begun.notified().await;
        }
    }

    /// The captures whose tasks run, by UID.
    pub(super) fn live(&self) -> MutexGuard<'_, BTreeMap<String, Live>> {
        // The map stays consistent whatever happens between two of its own calls.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the lease of the capture `uid`; returns how many leases are left.
    pub(super) fn end(&self, uid: &str) -> usize {
        let left = {
            let mut live = self.live();
            live.remove(uid);
            live.len()
        };
        self.wake_waiting();
        left
    }

    fn wake_waiting(&self) {
        // A full channel means that a look at everything is due already.
        self.freed.try_send(()).ok();
    }
}

/// The lease of one capture, in the hands of its task.
#[derive(Clone, Debug)]
pub struct CaptureLease {
    container_leases: Arc<ContainerLeases>,
    uid: String,
}

impl CaptureLease {
    /// The lease of the capture `uid`, which is among the live ones.
    pub(super) const fn new(container_leases: Arc<ContainerLeases>, uid: String) -> Self {
        Self { container_leases, uid }
    }

    /// Whether no other capture may record in the container.
    pub(super) fn holds(&self) -> bool {
        self.container_leases
            .live()
            .get(&self.uid)
            .is_some_and(|own| own.lease != ContainerLease::Released)
    }

    /// Marks the window as over: a capture that wants the container waits for it.
    pub(super) fn begin_draining(&self) {
        self.set(ContainerLease::Recording, ContainerLease::Draining);
    }

    /// Releases the container and the turn to record.
    pub(super) fn release(&self) {
        self.set(ContainerLease::Draining, ContainerLease::Released);
        self.container_leases.wake_waiting();
    }

    fn set(&self, from: ContainerLease, to: ContainerLease) {
        if let Some(own) = self
            .container_leases
            .live()
            .get_mut(&self.uid)
            .filter(|own| own.lease == from)
        {
            own.lease = to;
        }
    }

    /// Leases the container to record in it. Fails with `ContainerBusy` where another capture
    /// records there, which only happens after this one had released it.
    pub(super) fn acquire(&self) -> Result<(), Failure> {
        let mut live = self.container_leases.live();
        let Some(own) = live.get(&self.uid) else { return Ok(()) };
        let container = &own.container;
        let other = live.iter().find(|(uid, other)| {
            **uid != self.uid && other.container == *container && other.lease != ContainerLease::Released
        });
        if let Some((_, other)) = other.filter(|_| own.lease == ContainerLease::Released) {
            let message = format!("capture {} records in container {} now", other.name, container.1);
            return Err(Failure::new(CaptureReason::ContainerBusy, message));
        }
        if let Some(own) = live.get_mut(&self.uid) {
            own.lease = ContainerLease::Recording;
        }
        Ok(())
    }

    /// A turn to process what was recorded, where one is free.
    pub(super) fn try_processing_turn(&self) -> Option<SemaphorePermit<'_>> {
        self.container_leases.processing.try_acquire().ok()
    }

    /// Waits for a turn to process what was recorded; none where there are no turns any more.
    pub(super) async fn processing_turn(&self) -> Option<SemaphorePermit<'_>> {
        self.container_leases.processing.acquire().await.ok()
    }
}
