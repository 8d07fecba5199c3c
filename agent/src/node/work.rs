//! One capture from its turn to its end: attach, collect, fetch, transform, publish.
//!
//! Whatever happens, what follows is in this order: the collection is stopped, the capture's files in the container and on
//! the node are removed, and the status says how it ended.

mod collect;
mod probe;
mod produce;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_api::artifact::Artifact;
use flopwatch_api::capture::{Capture, CaptureSummary, Stage};
use flopwatch_api::profiler::ProfilerType;
use flopwatch_api::reason::CaptureReason;
use flopwatch_artifacts::{StoreError, artifacts_path};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::choice::{Choice, choose, traced_categories};
use crate::failure::{Failure, chain};
use crate::node::sweep::remove_folder;
use crate::node::writer::{Target, Writer};
use crate::node::{Node, pods};
use crate::plan::Interrupt;
use crate::status::Draft;
use collect::Collected;
use probe::Probed;

/// What a live capture is told by others.
pub type Interrupts = watch::Receiver<Option<Interrupt>>;

/// Longest clean-up of one container.
const CLEAN_UP: Duration = Duration::from_mins(1);

/// How long a target that is not known yet is waited for, and the pause between two looks.
const KNOWN: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(100);

/// A capture that ended well.
struct Published {
    artifacts: Vec<Artifact>,
    summary: CaptureSummary,
    message: String,
}

/// A capture that did not, and what it held all the same.
struct Failed {
    failure: Failure,
    summary: Option<CaptureSummary>,
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Self { failure, summary: None }
    }
}

/// A capture under way.
struct Work<'a> {
    node: &'a Arc<Node>,
    capture: &'a Capture,
    interrupts: Interrupts,
    draft: Draft,
    writer: Writer,
    stage_since: Instant,
    spool: PathBuf,
}

/// Carries a capture to its end.
pub async fn carry(node: &Arc<Node>, capture: &Capture, interrupts: Interrupts) {
    let mut work = Work::new(node, capture, interrupts);
    let ended = work.through_all_stages().await;
    remove_folder(&work.spool, &node.steps).await;
    work.end(ended).await;
}

/// Ends a capture that an earlier life of this agent began: nothing of it is left running or lying about.
pub async fn recover(node: &Arc<Node>, capture: &Capture) {
    let (_keep, interrupts) = watch::channel(None);
    let mut work = Work::new(node, capture, interrupts);
    if let Err(error) = work.clean_container().await {
        warn!(%error, "what the earlier agent left in the container could not be cleaned up");
    }
    remove_folder(&work.spool, &node.steps).await;
    let namespace = capture.namespace().unwrap_or_default();
    if let Err(error) = node.store.delete(&namespace, &capture.name_any()).await {
        warn!(error = %chain(&error), "artifacts of an unfinished capture stay until the next sweep");
    }
    let message = "the agent of the node restarted in the middle of the capture; create the session anew";
    work.stage_since = Instant::now();
    work.end(Err(Failure::new(CaptureReason::AgentRestarted, message).into()))
        .await;
}

impl<'a> Work<'a> {
    fn new(node: &'a Arc<Node>, capture: &'a Capture, interrupts: Interrupts) -> Self {
        let draft = Draft::new(capture.status.as_ref(), capture.metadata.generation);
        let target = Target::new(node.client.clone(), capture);
        let writer = Writer::start(target, draft.status().clone(), node.give_up.clone());
        let spool = node.spool.join(capture.uid().unwrap_or_default());
        Self {
            node,
            capture,
            interrupts,
            draft,
            writer,
            stage_since: Instant::now(),
            spool,
        }
    }

    async fn through_all_stages(&mut self) -> Result<Published, Failed> {
        self.enter(Stage::Attaching, "looking at the container");
        let (probed, choice) = self.attach().await?;
        let collected = match choice.profiler {
            ProfilerType::Nsys => {
                let collected = self.collect_nsys(&probed).await;
                if collected.is_err() {
                    self.clean_grafted(&probed).await;
                }
                collected?
            }
            _ => self.collect_metrics(&probed).await?,
        };
        self.interrupted()?;
        self.produce(&collected, &choice, &probed).await
    }

    /// Finds the container, probes it and picks the profiler.
    async fn attach(&mut self) -> Result<(Probed, Choice), Failure> {
        let spec = &self.capture.spec;
        let namespace = self.capture.namespace().unwrap_or_default();
        let find = || pods::target(&self.node.pods, &namespace, &spec.pod_ref, &spec.container_name);
        // The operator's view of the pod may be ahead of this agent's by a moment.
        let known = Instant::now() + KNOWN;
        while find().is_err() && Instant::now() < known {
            sleep(LOOK).await;
            self.interrupted()?;
        }
        let (pod, container_id) = find()?;
        let prepared = pods::is_prepared(&pod, &spec.container_name);
        let probed = probe::probe(self.node, &container_id, prepared).await?;
        self.draft.capabilities(probed.capabilities.clone());
        let annotation = pods::annotation(&pod, flopwatch_api::preparation::NSYS_TRACE_ANNOTATION);
        let traced = traced_categories(annotation);
        let choice = choose(&spec.profiler, &spec.require, &probed.capabilities, &traced);
        self.draft.attach_to(
            choice.as_ref().map_or(spec.profiler.type_, |choice| choice.profiler),
            &container_id,
        );
        self.write();
        let choice = choice?;
        self.interrupted()?;
        Ok((Probed { traced, ..probed }, choice))
    }

    /// Makes, checks and publishes the files.
    async fn produce(&mut self, collected: &Collected, choice: &Choice, probed: &Probed) -> Result<Published, Failed> {
        self.enter(Stage::Transforming, "making the timeline");
        let produced = produce::produce(self, collected, choice, probed).await?;
        self.interrupted()?;
        self.enter(Stage::Publishing, "storing the artifacts");
        let artifacts = produce::publish(self, &produced).await?;
        let mut message = format!(
            "{} events in {:.1} s with {}",
            produced.summary.events,
            Duration::from_nanos(u64::try_from(produced.summary.window_nanoseconds).unwrap_or_default()).as_secs_f64(),
            choice.profiler.as_str()
        );
        if !choice.note.is_empty() {
            message.push_str("; not deeper because ");
            message.push_str(&choice.note);
        }
        Ok(Published {
            artifacts,
            summary: produced.summary,
            message,
        })
    }

    /// Fails when someone ended the capture.
    fn interrupted(&self) -> Result<(), Failure> {
        self.interrupts
            .borrow()
            .and_then(Interrupt::failure)
            .map_or(Ok(()), Err)
    }

    fn enter(&mut self, stage: Stage, message: &str) {
        if self.draft.stage() != stage {
            self.leave_stage();
        }
        info!(stage = stage.as_str(), "{message}");
        self.draft.enter(stage, message);
        self.write();
    }

    fn leave_stage(&mut self) {
        self.node
            .metrics
            .stage_left(self.draft.stage(), self.stage_since.elapsed().as_secs_f64());
        self.stage_since = Instant::now();
    }

    fn advance(&mut self, share: (u128, u128), message: &str) {
        self.draft.advance(share, message);
        self.write();
    }

    fn write(&self) {
        self.writer.write(self.draft.status().clone());
    }

    /// Says how it ended, and waits until the API server knows.
    async fn end(mut self, ended: Result<Published, Failed>) {
        self.leave_stage();
        let now = Timestamp::now();
        let reason = match ended {
            Ok(Published {
                artifacts,
                summary,
                message,
            }) => {
                let namespace = self.capture.namespace().unwrap_or_default();
                let url = format!(
                    "{}{}",
                    self.node.url,
                    artifacts_path(&namespace, &self.capture.name_any())
                );
                info!(result = message, "succeeded");
                self.draft.succeed(artifacts, summary, Some(url), &message, now);
                CaptureReason::Succeeded
            }
            Err(Failed { failure, summary }) => {
                info!(reason = %failure.reason, why = failure.message, "failed");
                self.draft.fail(&failure, summary, now);
                failure.reason
            }
        };
        self.node.metrics.capture_ended(reason);
        self.write();
        self.writer.finish().await;
    }

    /// Name of the raw capture in the container.
    fn file_name(&self) -> String {
        format!("capture-{}", self.capture.uid().unwrap_or_default())
    }

    /// Ends the collection and removes the raw capture, where there is a container to do it in. Safe to run twice.
    async fn clean_container(&self) -> Result<(), Failure> {
        let Some(container_id) = self
            .capture
            .status
            .as_ref()
            .and_then(|status| status.container_id.clone())
        else {
            return Ok(());
        };
        let probed = probe::probe(self.node, &container_id, true).await?;
        self.clean_grafted(&probed).await;
        Ok(())
    }

    async fn clean_grafted(&self, probed: &Probed) {
        let (grafted, name) = (probed.grafted.clone(), self.file_name());
        let clean = tokio::task::spawn_blocking(move || collect::clean(&grafted, &name));
        match timeout(CLEAN_UP, clean).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "cleaning up in the container failed"),
            Err(_) => {
                warn!(limit = ?CLEAN_UP, "cleaning up in the container takes too long; the session's keeper ends what is left");
            }
        }
    }
}

/// What a failure of the store means for a capture.
fn store_failure(error: &StoreError) -> Failure {
    let reason = match error {
        StoreError::NoSpace { .. } => CaptureReason::DiskSpace,
        _ => CaptureReason::StoreFailed,
    };
    Failure::new(reason, chain(error))
}
