//! What captures have of the node: their containers, and their turns.
//!
//! A capture has its container, and one of the node's turns to record, until all that it recorded lies in its folder and its target's work was counted for as long as it
//! is to be. From then on another capture may record there, while what this one recorded waits to be processed, is processed and is published.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flopwatch_api::reason::CaptureReason;
use flopwatch_pipeline::failure::Failure;
use tokio::sync::{Notify, Semaphore, SemaphorePermit, mpsc, watch};

use super::writer::Target;
use crate::plan::Interrupt;

/// A capture that a task carries out.
#[derive(Debug)]
pub(super) struct Live {
    /// Namespace and name, for people.
    pub(super) name: String,
    /// Pod UID and container name.
    pub(super) container: (String, String),
    /// Where its status is.
    pub(super) target: Target,
    /// What its task is told.
    pub(super) interrupt: watch::Sender<Option<Interrupt>>,
    /// What it has of its container.
    pub(super) hold: Hold,
}

/// What a capture has of its container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// The container is its own.
    Whole,
    /// So it is, for a moment: its window is over.
    Leaving,
    /// Nothing: all that it recorded is on the node.
    Left,
}

/// The claims of all captures that are carried out.
#[derive(Debug)]
pub struct Claims {
    live: Mutex<BTreeMap<String, Live>>,
    /// Turns to process what was recorded, in the order in which they are asked for.
    processing: Semaphore,
    /// Told when something is free that others may wait for.
    freed: mpsc::Sender<()>,
    /// Told when a capture begins.
    begun: Notify,
}

impl Claims {
    /// None yet. So many captures at once are processed at most.
    pub(super) fn new(at_once: usize, freed: mpsc::Sender<()>) -> Arc<Self> {
        Arc::new(Self {
            live: Mutex::default(),
            processing: Semaphore::new(at_once.min(Semaphore::MAX_PERMITS)),
            freed,
            begun: Notify::new(),
        })
    }

    /// Says that there is one more.
    pub(super) fn begin(&self) {
        self.begun.notify_one();
    }

    /// Waits until there are any; one caller at a time.
    pub(super) async fn some(&self) {
        while self.live().is_empty() {
            self.begun.notified().await;
        }
    }

    /// The captures that are carried out, by UID.
    pub(super) fn live(&self) -> MutexGuard<'_, BTreeMap<String, Live>> {
        // The map stays consistent whatever happens between two of its own calls.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives back all that a capture has; returns how many are left.
    pub(super) fn end(&self, uid: &str) -> usize {
        let left = {
            let mut live = self.live();
            live.remove(uid);
            live.len()
        };
        self.tell();
        left
    }

    fn tell(&self) {
        // A full channel means that a look at everything is due already.
        self.freed.try_send(()).ok();
    }
}

/// What one capture has of the node.
#[derive(Clone, Debug)]
pub struct Claim {
    claims: Arc<Claims>,
    uid: String,
}

impl Claim {
    /// The claim of a live capture.
    pub(super) const fn new(claims: Arc<Claims>, uid: String) -> Self {
        Self { claims, uid }
    }

    /// Whether the container is this capture's.
    pub(super) fn holds(&self) -> bool {
        self.claims
            .live()
            .get(&self.uid)
            .is_some_and(|own| own.hold != Hold::Left)
    }

    /// Says that the window is over: whoever wants the container waits for it.
    pub(super) fn leaving(&self) {
        self.set(Hold::Whole, Hold::Leaving);
    }

    /// Leaves the container and the turn to record to others.
    pub(super) fn leave(&self) {
        self.set(Hold::Leaving, Hold::Left);
        self.claims.tell();
    }

    fn set(&self, from: Hold, to: Hold) {
        if let Some(own) = self.claims.live().get_mut(&self.uid).filter(|own| own.hold == from) {
            own.hold = to;
        }
    }

    /// Takes the container to record in it. Fails where another capture has it, which is so only where this one had left it.
    pub(super) fn take(&self) -> Result<(), Failure> {
        let mut live = self.claims.live();
        let Some(own) = live.get(&self.uid) else { return Ok(()) };
        let container = &own.container;
        let other = live
            .iter()
            .find(|(uid, other)| **uid != self.uid && other.container == *container && other.hold != Hold::Left);
        if let Some((_, other)) = other.filter(|_| own.hold == Hold::Left) {
            let message = format!("capture {} records in container {} now", other.name, container.1);
            return Err(Failure::new(CaptureReason::ContainerBusy, message));
        }
        if let Some(own) = live.get_mut(&self.uid) {
            own.hold = Hold::Whole;
        }
        Ok(())
    }

    /// A turn to process what was recorded, where one is free.
    pub(super) fn turn_now(&self) -> Option<SemaphorePermit<'_>> {
        self.claims.processing.try_acquire().ok()
    }

    /// Waits for a turn to process what was recorded; none where there are no turns any more.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.claims.processing.acquire().await.ok()
    }
}
