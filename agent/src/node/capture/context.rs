//! What every stage of a capture has at hand: the node, what others tell the capture, its journal
//! and its status.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_api::capture::{Capture, LiveFigures, Stage as StatusStage};
use flopwatch_api::pod;
use flopwatch_api::preparation::CAPTURE_BYTES_ANNOTATION;
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::process::ProcessId;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::sandbox_dir::SandboxDir;
use flopwatch_pipeline::transform::Samples;
use kube::ResourceExt;
use tracing::info;

use super::prelude::PendingPrelude;
use super::produced::Produced;
use super::window_cost::Overhead;
use crate::adoption::{Attached, Journal};
use crate::node::container_leases::{CaptureLease, Interrupts};
use crate::node::starts::PendingStart;
use crate::node::writer::{Target, Writer};
use crate::node::{Node, journal, pods};
use crate::plan::Interrupt;
use crate::profilers::{AnyProfiler, Site, State};
use crate::status::Draft;

/// A capture under way.
pub(super) struct Context<'a> {
    pub(super) node: &'a Arc<Node>,
    pub(super) capture: &'a Capture,
    pub(super) interrupts: Interrupts,
    pub(super) lease: CaptureLease,
    pub(super) draft: Draft,
    pub(super) writer: Writer,
    status_stage_since: Instant,
    /// The capture's folder.
    pub(super) spool: PathBuf,
    /// What was written down last, but for what the stage at work has changed since.
    pub(super) journal: Journal,
    pub(super) journal_file: PathBuf,
    pub(super) overhead: Overhead,
    pub(super) unwritten: Unwritten,
}

/// What a stage leaves to the next one in memory alone. An agent that comes after goes on without.
#[derive(Default)]
pub(super) struct Unwritten {
    /// The container that is held until its collection runs.
    pub(super) held: Option<PendingStart>,
    /// When the profiler began to attach, in ns since the Unix epoch; none for a window that an
    /// earlier agent opened.
    pub(super) attach_ns: Option<u64>,
    /// How much of its window was over when this agent found it open.
    pub(super) done: Duration,
    /// The timeline of what was before the window, as it is made; none where an earlier agent
    /// opened the window.
    pub(super) prelude: Option<PendingPrelude>,
    /// The folder of the children that will make its files, with a sandbox that is made ready for
    /// the first of them; none where an earlier agent opened the window.
    pub(super) sandbox: Option<SandboxDir>,
    /// What was sampled in the window; none where an earlier agent closed it.
    pub(super) samples: Option<Samples>,
    /// The files to publish; none where an earlier agent stored them.
    pub(super) produced: Option<Box<Produced>>,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        node: &'a Arc<Node>,
        capture: &'a Capture,
        (interrupts, lease): (Interrupts, CaptureLease),
        journal: Journal,
    ) -> Self {
        let draft = Draft::new(capture.status.as_ref(), capture.metadata.generation);
        let target = Target::new(node.client.clone(), capture);
        let writer = Writer::start(
            target,
            draft.status().clone(),
            capture.spec.status_interval(),
            node.give_up.clone(),
        );
        let uid = capture.uid().unwrap_or_default();
        Self {
            node,
            capture,
            interrupts,
            lease,
            draft,
            writer,
            status_stage_since: Instant::now(),
            spool: node.spool.join(&uid),
            journal,
            journal_file: journal::path(&node.spool, &uid),
            overhead: Overhead::default(),
            unwritten: Unwritten::default(),
        }
    }

    /// Writes the journal, before what it tells of is done.
    pub(super) async fn note(&self) -> Result<(), Failure> {
        let (file, journal) = (self.journal_file.clone(), self.journal.clone());
        // It waits for the disk.
        blocking(CaptureReason::StoreFailed, move || journal::write(&file, &journal)).await
    }

    /// The profiler that the capture was attached with.
    pub(super) fn profiler(&self, attached: &Attached) -> Result<Arc<AnyProfiler>, Failure> {
        self.node.profilers.of_capture(attached.profiler.type_).cloned()
    }

    /// What a profiler is given of the capture.
    pub(super) fn site(&self, container_id: &str, process: ProcessId) -> Site {
        let namespace = self.capture.namespace().unwrap_or_default();
        let pod = pods::find(&self.node.pods, &namespace, &self.capture.spec.pod_ref);
        // What admission did not write leaves no room.
        let pod_room = pod
            .as_ref()
            .and_then(|pod| pod::annotation(pod, CAPTURE_BYTES_ANNOTATION))
            .map(|room| room.parse().unwrap_or(0));
        Site {
            containers: Arc::clone(&self.node.containers),
            container_id: container_id.to_owned(),
            process,
            capture: self.capture.uid().unwrap_or_default(),
            folder: self.spool.clone(),
            limits: self.node.limits,
            pod_room,
            length: self.length(),
        }
    }

    pub(super) fn site_of(&self, attached: &Attached) -> Site {
        self.site(&attached.container_id, attached.process)
    }

    /// Has the profiler that the capture was attached with do `work`, which may block.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        attached: &Attached,
        reason: CaptureReason,
        work: impl FnOnce(&AnyProfiler, &Site, &State) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (profiler, site) = (self.profiler(attached)?, self.site_of(attached));
        let state = attached.profiler.clone();
        blocking(reason, move || work(profiler.as_ref(), &site, &state)).await
    }

    /// Whether the container still runs under the ID that it had at the start.
    pub(super) fn is_pinned(&self, attached: &Attached) -> bool {
        let spec = &self.capture.spec;
        let namespace = self.capture.namespace().unwrap_or_default();
        let watched = pods::find(&self.node.pods, &namespace, &spec.pod_ref)
            .and_then(|pod| pods::running_container_id(&pod, &spec.container_name));
        let same = match watched.as_deref() {
            Some(id) => id == attached.container_id,
            // It starts once, and the kubelet says so only some time after.
            None => spec.ends_with_program,
        };
        same && self.node.containers.is_alive(attached.process)
    }

    /// The length of the window that was asked for.
    pub(super) fn length(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.capture.spec.duration_seconds).unwrap_or(1))
    }

    /// The time between two samples of the GPUs.
    pub(super) fn sample_interval(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.capture.spec.metrics.interval_milliseconds).unwrap_or(100))
    }

    /// Samples that nobody took because no agent was there.
    pub(super) fn missed_samples(&self, absent: Duration) -> u64 {
        let interval = self.sample_interval().as_millis().max(1);
        if self.node.containers.has_gpus() {
            u64::try_from(absent.as_millis() / interval).unwrap_or(u64::MAX)
        } else {
            0
        }
    }

    /// Fails when someone ended the capture.
    pub(super) fn interrupted(&self) -> Result<(), Failure> {
        self.interrupts
            .borrow()
            .and_then(Interrupt::failure)
            .map_or(Ok(()), Err)
    }

    /// Resolves when someone ends the capture without a result.
    pub(super) fn aborted(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut interrupts = self.interrupts.clone();
        async move {
            let told = interrupts.wait_for(|interrupt| interrupt.and_then(Interrupt::failure).is_some());
            if told.await.is_err() {
                // Nobody is left who could.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Whether the agent is to exit with the capture under way: the next one goes on with it.
    pub(super) fn is_handed_over(&self) -> bool {
        *self.interrupts.borrow() == Some(Interrupt::Shutdown)
    }

    /// Says in the status that the capture enters a stage of it.
    pub(super) fn enter(&mut self, stage: StatusStage, message: &str) {
        if self.draft.stage() != stage {
            self.leave_status_stage();
        }
        info!(stage = stage.as_str(), "{message}");
        self.draft.enter(stage, message);
        self.write();
    }

    /// Measures how long the stage of the status took that ends now.
    pub(super) fn leave_status_stage(&mut self) {
        self.node
            .metrics
            .stage_left(self.draft.stage(), self.status_stage_since.elapsed().as_secs_f64());
        self.status_stage_since = Instant::now();
    }

    /// Says in the status how far its stage is.
    pub(super) fn advance(&mut self, share: (u128, u128), message: &str) {
        self.draft.advance(share, message);
        self.write();
    }

    /// Says in the status how far the window is, and what it has recorded so far.
    pub(super) fn advance_window(&mut self, share: (u128, u128), message: &str, live: Option<LiveFigures>) {
        self.draft.advance(share, message);
        self.draft.live(live);
        self.write();
    }

    /// Hands the status over to be written.
    pub(super) fn write(&self) {
        self.writer.write(self.draft.status().clone());
    }
}

/// Runs what blocks on a thread of its own.
pub(super) async fn blocking<T: Send + 'static>(
    reason: CaptureReason,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(Failure::because(reason))?
}
