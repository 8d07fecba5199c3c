//! The captures of this node: watched, planned, and run by one task each.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use flopwatch_api::capture::{Capture, CaptureStatus};
use flopwatch_artifacts::{CaptureId, StoreError};
use flopwatch_pipeline::failure::{Failure, chain};
use futures::{StreamExt, stream};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::Controller;
use kube::runtime::controller::{Action, Config, Error as ControllerError};
use kube::runtime::reflector::Store;
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::task::TaskTracker;
use tracing::{Instrument, info, info_span, warn};

use crate::adoption::Journal;
use crate::node::capture;
use crate::node::capture_id::capture_id;
use crate::node::container_leases::{CaptureLease, ContainerLease, ContainerLeases, Interrupts, Live};
use crate::node::fleet_outbox::noted;
use crate::node::journal;
use crate::node::pace::Pace;
use crate::node::writer::{self, Target};
use crate::node::{Node, watched};
use crate::plan::{CaptureAction, Holder, Interrupt, Observed, interrupt, is_waiting, plan, was_started};
use crate::status::Draft;

/// Reconciliations at once. Each only plans, writes one status, or starts a task.
const CONCURRENCY: u16 = 4;
/// Pause before a reconciliation that failed is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Time between two looks for captures that are gone.
const GONE_CAPTURES_INTERVAL: Duration = Duration::from_secs(5);
/// Longest time that removing a capture's artifacts may take.
const REMOVAL_TIMEOUT: Duration = Duration::from_mins(1);

/// Why a reconciliation failed. It is tried again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The capture could not be read, or its status not written.
    #[error(transparent)]
    Status(#[from] writer::Error),
    /// The store failed.
    #[error("the artifacts of a capture could not be looked up or removed")]
    Store(#[from] StoreError),
    /// The store took too long.
    #[error("removing a capture's artifacts took longer than {REMOVAL_TIMEOUT:?}")]
    StoreTimeout,
}

/// The captures of a node that run now.
#[derive(Debug)]
pub struct Captures {
    node: Arc<Node>,
    /// All captures of the node, as watched.
    watched: Store<Capture>,
    container_leases: Arc<ContainerLeases>,
    /// How often captures that wait are told what for.
    pace: Pace,
    tasks: TaskTracker,
}

impl Captures {
    /// Makes the controller and what it drives. The future runs until the node is told to stop.
    pub fn new(node: Arc<Node>) -> (Arc<Self>, impl Future<Output = ()> + Send) {
        let (watched, changed) = watched::captures(node.client.clone(), &node.name, node.metrics.clone());
        let (freed, looks) = mpsc::channel(1);
        let looks = stream::unfold(
            looks,
            |mut looks| async move { looks.recv().await.map(|()| ((), looks)) },
        );
        let stop = node.stop.clone();
        let controller = Controller::for_stream(changed, watched.clone())
            .with_config(Config::default().concurrency(CONCURRENCY))
            // A turn or a container became free: look at all that wait.
            .reconcile_all_on(looks)
            .graceful_shutdown_on(stop.cancelled_owned());
        let captures = Arc::new(Self {
            container_leases: ContainerLeases::new(node.limits.captures, freed),
            node,
            watched,
            pace: Pace::default(),
            tasks: TaskTracker::new(),
        });
        let context = Arc::clone(&captures);
        let run = async move {
            let metrics = context.node.metrics.clone();
            let results = controller.run(reconcile, retry, context);
            results
                .for_each(|result| {
                    if let Err(ControllerError::QueueError(error)) = &result {
                        metrics.watch_error("captures");
                        warn!(error = %chain(error), "the watch on captures failed and is retried");
                    }
                    std::future::ready(())
                })
                .await;
        };
        (captures, run)
    }

    /// Interrupts all captures and waits until their tasks have ended.
    pub async fn end_all(&self, interrupt: Interrupt) {
        for live in self.live().values() {
            raise(&live.interrupt, interrupt);
        }
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Ends captures that are gone altogether, until the node is told to stop. The watch says
    /// nothing of one that was deleted while this node was cut off, and the operator releases
    /// captures of lost nodes without their agent.
    pub async fn end_gone(self: Arc<Self>) {
        let mut ticks = interval(GONE_CAPTURES_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut due = async || {
            self.container_leases.some().await;
            ticks.tick().await;
        };
        while self.node.stop.run_until_cancelled(due()).await.is_some() {
            for (uid, target) in self.unwatched() {
                match target.exists().await {
                    Ok(false) => self.discard(&uid),
                    // The watch is behind.
                    Ok(true) => {}
                    Err(error) => warn!(error = %chain(&error), "a capture cannot be looked for and is later"),
                }
            }
        }
    }

    /// Captures at work that the watch does not show.
    fn unwatched(&self) -> Vec<(String, Target)> {
        let watched: BTreeSet<String> = self
            .watched
            .state()
            .iter()
            .filter_map(|capture| capture.uid())
            .collect();
        let live = self.live();
        let missing = live.iter().filter(|(uid, _)| !watched.contains(*uid));
        missing.map(|(uid, live)| (uid.clone(), live.target.clone())).collect()
    }

    fn discard(&self, uid: &str) {
        if let Some(live) = self.live().get(uid)
            && raise(&live.interrupt, Interrupt::Deleted)
        {
            info!(capture = live.name, "the capture is gone and ends here too");
        }
    }

    fn live(&self) -> MutexGuard<'_, BTreeMap<String, Live>> {
        self.container_leases.live()
    }

    /// Plans a capture's next action, and leases its container in the same breath when a task is to
    /// carry it out: two reconciliations at once cannot both take the last turn or the same
    /// container. `now` is by the clock that dated the capture.
    fn plan_and_lease(
        &self,
        capture: &Capture,
        stored: bool,
        now: Timestamp,
    ) -> (CaptureAction, Option<(Interrupts, CaptureLease)>) {
        let uid = capture.uid().unwrap_or_default();
        let created = capture.creation_timestamp().map_or(now, |time| time.0);
        let container = (capture.spec.pod_ref.uid.clone(), capture.spec.container_name.clone());
        let ahead = self.ahead(capture);
        let left = self.left_on(&container, &uid);
        let empty = CaptureStatus::default();
        let status = capture.status.as_ref().unwrap_or(&empty);
        let journal = self.journal(&uid);
        let container_lease = if journal.as_ref().is_some_and(|journal| journal.stage.has_recorded()) {
            ContainerLease::Released
        } else {
            ContainerLease::Recording
        };
        let mut live = self.live();
        let recording = live
            .values()
            .filter(|live| live.lease != ContainerLease::Released)
            .count();
        let observed = Observed {
            now,
            created,
            deleting: capture.metadata.deletion_timestamp.is_some(),
            live: live.contains_key(&uid),
            begun: journal.as_ref().is_some_and(Journal::has_begun),
            stored,
            recording,
            recorded: live.len().saturating_sub(recording),
            at_once: self.node.limits.captures,
            ahead,
            holder: live
                .iter()
                .find(|(_, other)| other.container == container && other.lease != ContainerLease::Released)
                .map(|(uid, other)| Holder {
                    name: &other.name,
                    is_ending: other.lease == ContainerLease::Draining || self.is_ending(uid, other),
                })
                .or(left.as_deref().map(|name| Holder { name, is_ending: false })),
        };
        let step = plan(&capture.spec, status, &observed);
        if let CaptureAction::Interrupt(interrupt) = step
            && let Some(own) = live.get(&uid)
        {
            raise(&own.interrupt, interrupt);
        }
        if !matches!(step, CaptureAction::Start | CaptureAction::Adopt) {
            return (step, None);
        }
        // One that is adopted may have been ended while no agent was there.
        let (interrupt, interrupts) = watch::channel(interrupt(&capture.spec, status, observed.deleting));
        let lease = CaptureLease::new(Arc::clone(&self.container_leases), uid.clone());
        live.insert(
            uid,
            Live {
                name: display_name(capture),
                container,
                target: Target::new(self.node.client.clone(), capture),
                interrupt,
                lease: container_lease,
            },
        );
        self.node.metrics.live(live.len());
        self.container_leases.begin();
        (step, Some((interrupts, lease)))
    }

    /// What is written down of a capture; none where nothing is.
    fn journal(&self, uid: &str) -> Option<Journal> {
        journal::read(&journal::path(&self.node.spool, uid))
    }

    /// Whether the task of a live capture has but its last steps to do: it throws its data away, it
    /// has told its end, or there is no such capture any more.
    fn is_ending(&self, uid: &str, live: &Live) -> bool {
        let thrown_away = |interrupt: Option<Interrupt>| interrupt.is_some_and(|interrupt| interrupt > Interrupt::Keep);
        let empty = CaptureStatus::default();
        let all = self.watched.state();
        let own = all.iter().find(|capture| capture.uid().as_deref() == Some(uid));
        thrown_away(*live.interrupt.borrow())
            || own.is_none_or(|capture| {
                let status = capture.status.as_ref().unwrap_or(&empty);
                let deleting = capture.metadata.deletion_timestamp.is_some();
                status.is_decided() || thrown_away(interrupt(&capture.spec, status, deleting))
            })
    }

    /// Another capture that an earlier agent left in the container and that is to be adopted.
    fn left_on(&self, container: &(String, String), uid: &str) -> Option<String> {
        let left = |other: &&Arc<Capture>| {
            let spec = &other.spec;
            let same = (&spec.pod_ref.uid, &spec.container_name) == (&container.0, &container.1);
            let empty = CaptureStatus::default();
            let status = other.status.as_ref().unwrap_or(&empty);
            let other = other.uid().unwrap_or_default();
            let may_record = || {
                let journal = self.journal(&other).unwrap_or_default();
                (was_started(status) || journal.has_begun()) && !journal.stage.has_recorded()
            };
            same && other != uid && !status.is_decided() && !self.live().contains_key(&other) && may_record()
        };
        self.watched.state().iter().find(left).map(|other| display_name(other))
    }

    /// Whether a task of this process runs the capture of that UID.
    pub fn is_live(&self, uid: &str) -> bool {
        self.live().contains_key(uid)
    }

    /// Captures that ended and are not being deleted.
    pub fn ended(&self) -> Vec<Arc<Capture>> {
        let mut all = self.watched.state();
        all.retain(|capture| {
            let ended = capture.is_decided();
            ended && capture.metadata.deletion_timestamp.is_none() && !self.is_live(&capture.uid().unwrap_or_default())
        });
        all
    }

    /// Captures of this node that have not ended, or whose task has not.
    pub fn busy(&self) -> HashSet<CaptureId> {
        let all = self.watched.state();
        let busy = all.iter().filter(|capture| {
            let ended = capture.is_decided();
            !ended || self.is_live(&capture.uid().unwrap_or_default())
        });
        busy.map(|capture| capture_id(capture.as_ref())).collect()
    }

    /// Captures that wait and are older than this one; equally old ones go by name.
    fn ahead(&self, capture: &Capture) -> usize {
        let age = |capture: &Capture| (capture.creation_timestamp().map(|time| time.0), display_name(capture));
        let own = age(capture);
        let empty = CaptureStatus::default();
        let live = self.live();
        let waits = |other: &Capture| {
            is_waiting(
                other.status.as_ref().unwrap_or(&empty),
                other.metadata.deletion_timestamp.is_some(),
            ) && other.uid().is_some_and(|uid| !live.contains_key(&uid))
        };
        self.watched
            .state()
            .iter()
            .filter(|other| waits(other) && age(other) < own)
            .count()
    }

    /// Starts the task that runs a claimed capture to its end.
    fn spawn(self: &Arc<Self>, capture: Capture, step: &CaptureAction, interrupts: Interrupts, lease: CaptureLease) {
        // It outlives the reconciliation that starts it.
        let span = info_span!(
            parent: None, "capture",
            namespace = capture.namespace().unwrap_or_default(),
            name = capture.name_any()
        );
        let uid = capture.uid().unwrap_or_default();
        let node = Arc::clone(&self.node);
        let adopt = *step == CaptureAction::Adopt;
        let work = async move {
            if adopt {
                capture::adopt(&node, &capture, interrupts, lease).await;
            } else {
                capture::run(&node, &capture, interrupts, lease).await;
            }
        };
        // A task of its own, so that a panic in it is seen here and the claim is given back.
        let work = tokio::spawn(work.instrument(span.clone()));
        let captures = Arc::clone(self);
        let watch_over = async move {
            if let Err(error) = work.await {
                warn!(%error, "the task of a capture failed; the capture is adopted");
            }
            captures.node.metrics.live(captures.container_leases.end(&uid));
        };
        self.tasks.spawn(watch_over.instrument(span));
    }
}

/// Raises an interrupt; a weaker one does not replace a stronger one. Whether it did.
fn raise(sender: &watch::Sender<Option<Interrupt>>, interrupt: Interrupt) -> bool {
    sender.send_if_modified(|current| {
        let stronger = current.is_none_or(|current| current < interrupt);
        if stronger {
            *current = Some(interrupt);
        }
        stronger
    })
}

fn display_name(capture: &Capture) -> String {
    format!("{}/{}", capture.namespace().unwrap_or_default(), capture.name_any())
}

async fn reconcile(capture: Arc<Capture>, captures: Arc<Captures>) -> Result<Action, Error> {
    let node = &captures.node;
    if node.stop.is_cancelled() {
        return Ok(Action::await_change());
    }
    let target = Target::new(node.client.clone(), &capture);
    let deleting = capture.metadata.deletion_timestamp.is_some();
    let decided = capture.is_decided();
    if decided && !deleting {
        return Ok(Action::await_change());
    }
    if captures.live().contains_key(&capture.uid().unwrap_or_default()) {
        // No deadline is left to hold it against.
        drop(captures.plan_and_lease(&capture, false, Timestamp::now()));
        return Ok(Action::await_change());
    }
    // The cache may be older than the end of this capture's own task: decide on what the API server
    // holds now.
    let Some(capture) = target.read().await? else {
        return Ok(Action::await_change());
    };
    let stored = deleting && is_stored(node, &capture).await?;
    let now = node.clock.now(&node.client).await;
    let (step, claimed) = captures.plan_and_lease(&capture, stored, now);
    match step {
        CaptureAction::Nothing | CaptureAction::Interrupt(_) => Ok(Action::await_change()),
        CaptureAction::Start | CaptureAction::Adopt => {
            if let Some((interrupts, lease)) = claimed {
                captures.spawn(capture, &step, interrupts, lease);
            }
            Ok(Action::await_change())
        }
        CaptureAction::Wait { message, recheck } => {
            let mut draft = Draft::new(capture.status.as_ref(), capture.metadata.generation);
            draft.queue(&message);
            // Whatever ends on the node changes what all that wait there are told.
            if is_changed(&capture, &draft) && captures.pace.take(&capture) {
                target.apply(draft.status()).await?;
            }
            Ok(Action::requeue(recheck))
        }
        CaptureAction::Refuse(failure) => {
            refuse(node, &target, &capture, &failure).await?;
            Ok(Action::await_change())
        }
        CaptureAction::Release => {
            release(node, &target, &capture).await?;
            Ok(Action::await_change())
        }
    }
}

async fn is_stored(node: &Node, capture: &Capture) -> Result<bool, Error> {
    let namespace = capture.namespace().unwrap_or_default();
    match node.store.get(&namespace, &capture.name_any()).await {
        Ok(manifest) => Ok(manifest.is_some_and(|manifest| Some(manifest.capture.uid) == capture.uid())),
        Err(StoreError::Unreadable { .. }) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

async fn refuse(node: &Node, target: &Target, capture: &Capture, failure: &Failure) -> Result<(), Error> {
    let mut draft = Draft::new(capture.status.as_ref(), capture.metadata.generation);
    draft.fail(failure, None, Timestamp::now());
    let row = noted::note(node, capture).await;
    apply_if_changed(target, capture, &draft).await?;
    noted::settle(node, capture, row, draft.status()).await;
    node.metrics.capture_ended(failure.reason);
    info!(capture = display_name(capture), reason = %failure.reason, why = failure.message, "refused");
    Ok(())
}

/// Removes what is stored, and says that nothing is left. Safe to repeat.
async fn release(node: &Node, target: &Target, capture: &Capture) -> Result<(), Error> {
    let namespace = capture.namespace().unwrap_or_default();
    let name = capture.name_any();
    node.storage.forget(&capture_id(capture)).await;
    let removal = node.store.delete(&namespace, &name);
    timeout(REMOVAL_TIMEOUT, removal)
        .await
        .map_err(|_elapsed| Error::StoreTimeout)??;
    let mut draft = Draft::new(capture.status.as_ref(), capture.metadata.generation);
    if capture.is_decided() {
        draft.release();
        apply_if_changed(target, capture, &draft).await?;
    } else if let Some(failure) = Interrupt::Deleted.failure() {
        refuse(node, target, capture, &failure).await?;
    }
    info!(capture = display_name(capture), "released");
    Ok(())
}

async fn apply_if_changed(target: &Target, capture: &Capture, draft: &Draft) -> Result<(), Error> {
    if is_changed(capture, draft) {
        target.apply(draft.status()).await?;
    }
    Ok(())
}

fn is_changed(capture: &Capture, draft: &Draft) -> bool {
    Draft::new(capture.status.as_ref(), capture.metadata.generation) != *draft
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature that the controller asks for"
)]
fn retry(capture: Arc<Capture>, error: &Error, _: Arc<Captures>) -> Action {
    warn!(capture = display_name(&capture), error = %chain(error), "reconciling a capture failed and is retried");
    Action::requeue(RETRY_INTERVAL)
}
