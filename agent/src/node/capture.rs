//! One capture from its turn to its end: attach, collect, fetch, transform, publish.
//!
//! Whatever happens, what follows is in this order: the collection is stopped and the capture's files in the container are
//! removed, the status says how it ended, and the capture's files on the node are removed. Each step is written to the journal
//! before it is taken: an agent that comes after this one goes on where this one ended ([`crate::adoption`]).

mod again;
mod attribute;
mod collect;
mod finish;
mod fleet;
mod memory;
mod overhead;
mod prelude;
mod probe;
mod produce;
mod raw;
mod resume;
mod scrape;
mod start;
mod store;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_api::artifact::Artifact;
use flopwatch_api::capability::Capability;
use flopwatch_api::capture::{Capture, CaptureSummary, Stage};
use flopwatch_api::overhead::CaptureOverhead;
use flopwatch_api::pod;
use flopwatch_api::preparation::CAPTURE_BYTES_ANNOTATION;
use flopwatch_api::reason::CaptureReason;
use flopwatch_api::session::StartMode;
use flopwatch_artifacts::{Manifest, StoreError};
use flopwatch_attach::process::ProcessId;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use crate::adoption::{Attached, Journal, Made};
use crate::choice::{Candidate, choose};
use crate::failure::{Failure, chain};
use crate::node::claims::Claim;
use crate::node::writer::{Target, Writer};
use crate::node::{Node, journal, pods};
use crate::plan::Interrupt;
use crate::profilers::containers::Probed;
use crate::profilers::{Profiler, Site};
use crate::status::Draft;
use memory::MemoryWatch;
use overhead::{Pace, ProfilerTime};
use produce::Produced;

pub(crate) use collect::utc_ns;
pub use probe::Host;
pub(super) use probe::grafted;

/// What a live capture is told by others.
pub type Interrupts = watch::Receiver<Option<Interrupt>>;

/// Longest clean-up of one container.
const CLEAN_UP: Duration = Duration::from_mins(1);

/// How long a target that is not known yet is waited for, and the pause between two looks.
const KNOWN: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(100);

/// Pause before a capture is taken up again whose end the API server refused.
const REFUSED: Duration = Duration::from_secs(30);

/// A capture that ended well.
struct Published {
    artifacts: Vec<Artifact>,
    /// What they hold; none where an agent's record of it is lost.
    summary: Option<CaptureSummary>,
    message: String,
    /// Whether it has replicas in the object store, or is to have.
    storage: Replication,
}

/// Copies of a capture's artifacts in the object store.
enum Replication {
    /// There are to be none.
    None,
    /// There are to be some, by and by.
    Due,
    /// They are there: where, and the SHA-256 of their manifest.
    Stored { url: String, sha256: String },
}

/// A capture that did not, and what it held all the same.
struct Failed {
    failure: Failure,
    summary: Option<CaptureSummary>,
    /// What is on the node all the same.
    kept: Vec<Artifact>,
    /// Whether that has replicas in the object store, or is to have; none where it was to have some and has not.
    storage: Option<Replication>,
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            summary: None,
            kept: Vec::new(),
            storage: None,
        }
    }
}

/// A capture under way.
struct Work<'a> {
    node: &'a Arc<Node>,
    capture: &'a Capture,
    interrupts: Interrupts,
    claim: Claim,
    draft: Draft,
    writer: Writer,
    stage_since: Instant,
    spool: PathBuf,
    journal: Journal,
    journal_file: PathBuf,
    pace: Pace,
    /// None while no window is open, and where it is not to be ended for memory.
    memory: Option<MemoryWatch>,
    profiler_time: ProfilerTime,
}

/// Carries a new capture to its end.
pub async fn run(node: &Arc<Node>, capture: &Capture, interrupts: Interrupts, claim: Claim) {
    let mut work = Work::new(node, capture, (interrupts, claim), None);
    let ended = work.begin().await;
    work.finish(ended).await;
}

/// Runs a capture to its end that an earlier agent process began.
pub async fn adopt(node: &Arc<Node>, capture: &Capture, interrupts: Interrupts, claim: Claim) {
    let kept = journal::read(&journal::path(&node.spool, &capture.uid().unwrap_or_default()));
    let mut work = Work::new(node, capture, (interrupts, claim), kept.clone());
    let open = kept
        .as_ref()
        .filter(|kept| kept.opened_utc_ns.is_some() && !kept.recorded);
    if let Some(attached) = open.and_then(|kept| kept.attached.as_ref()) {
        work.watch_memory(attached).await;
    }
    let ended = work.resume(kept.as_ref()).await;
    work.finish(ended).await;
}

impl<'a> Work<'a> {
    fn new(
        node: &'a Arc<Node>,
        capture: &'a Capture,
        (interrupts, claim): (Interrupts, Claim),
        kept: Option<Journal>,
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
            claim,
            draft,
            writer,
            stage_since: Instant::now(),
            spool: node.spool.join(&uid),
            journal: kept.unwrap_or_default(),
            journal_file: journal::path(&node.spool, &uid),
            pace: Pace::default(),
            memory: None,
            profiler_time: ProfilerTime::default(),
        }
    }

    /// Through all stages, from the first.
    async fn begin(&mut self) -> Result<Published, Failed> {
        self.journal = Journal {
            adoptions: self.journal.adoptions,
            earlier: self.journal.attached.take().or_else(|| self.journal.earlier.take()),
            missed: self.journal.missed.take(),
            fleet: self.journal.fleet.take(),
            ..Journal::default()
        };
        self.identify();
        self.claim.take()?;
        self.remember().await?;
        self.node.storage.refuse(&self.capture.spec)?;
        self.enter(Stage::Attaching, "looking at the container");
        let (attached, held) = match self.capture.spec.start {
            StartMode::Now => (self.attach().await?, None),
            StartMode::ContainerStart => {
                let held = self.await_start().await?;
                (self.attach_at_start(&held).await?, Some(held))
            }
        };
        let attached = self.second_try(attached)?;
        self.journal.attached = Some(attached.clone());
        self.remember().await?;
        let ended = match self.collect(&attached, held).await {
            // What the window has shown of the program goes before what the probe saw.
            Ok(()) => {
                self.make(&self.journal.attached.clone().unwrap_or(attached.clone()))
                    .await
            }
            Err(failure) => Err(failure.into()),
        };
        self.or_once_more(&attached, ended).await
    }

    /// Writes the journal, before what it tells of is done.
    async fn remember(&self) -> Result<(), Failure> {
        let (file, journal) = (self.journal_file.clone(), self.journal.clone());
        // It waits for the disk.
        collect::blocking(CaptureReason::StoreFailed, move || journal::write(&file, &journal)).await
    }

    /// Finds the container, probes it and picks the profiler.
    async fn attach(&mut self) -> Result<Attached, Failure> {
        let spec = &self.capture.spec;
        let namespace = self.capture.namespace().unwrap_or_default();
        let find = || pods::target(&self.node.pods, &namespace, &spec.pod_ref, &spec.container_name);
        // The operator's view of the pod may be ahead of this agent's by a moment.
        let known = Instant::now() + KNOWN;
        while find().is_err() && Instant::now() < known {
            sleep(LOOK).await;
            self.interrupted()?;
        }
        let (pod, container_id) = match find() {
            Ok(found) => found,
            Err(failure) => return self.attach_to_kept(failure),
        };
        let prepared = pod::is_prepared(&pod, &spec.container_name);
        let mut probed = self.node.containers.probe(&container_id, prepared).await?;
        self.attribute(&mut probed).await;
        let mut capabilities = self.node.profilers.capabilities(&probed.facts);
        probe::explain_unprepared(&mut capabilities, &pod, &spec.container_name);
        let attached = self.pick(&container_id, &probed, capabilities, Some(&pod))?;
        self.interrupted()?;
        Ok(attached)
    }

    /// Picks the profiler for a container that was probed, and says what is open and what is attached to.
    fn pick(
        &mut self,
        container_id: &str,
        probed: &Probed,
        capabilities: Vec<Capability>,
        pod: Option<&Pod>,
    ) -> Result<Attached, Failure> {
        self.identify();
        let spec = &self.capture.spec;
        let candidate = |profiler: &Arc<dyn Profiler>| {
            let state = profiler.attach(&spec.profiler, probed, pod)?;
            Ok(Candidate {
                profiler: Arc::clone(profiler),
                state,
            })
        };
        let candidates: Vec<_> = self
            .node
            .profilers
            .iter()
            .map(candidate)
            .collect::<Result<_, Failure>>()?;
        let choice = choose(&spec.profiler, &spec.require, &capabilities, &candidates);
        self.draft.capabilities(capabilities);
        self.draft.attach_to(
            choice
                .as_ref()
                .map_or(spec.profiler.type_, |choice| choice.profiler.type_),
            container_id,
        );
        self.write();
        let choice = choice?;
        let earlier = self.journal.earlier.as_ref();
        let earlier = earlier
            .filter(|earlier| earlier.container_id == container_id && earlier.profiler.type_ == choice.profiler.type_);
        let state = match earlier {
            Some(earlier) => self.profiler(earlier)?.follow(&earlier.profiler, choice.profiler)?,
            None => choice.profiler,
        };
        Ok(Attached {
            container_id: container_id.to_owned(),
            process: probed.process,
            profiler: state,
            note: choice.note,
            uses_cuda: probed.uses_cuda,
            ring: probed.facts.ring(),
        })
    }

    /// The profiler that the capture was attached with.
    fn profiler(&self, attached: &Attached) -> Result<Arc<dyn Profiler>, Failure> {
        self.node.profilers.of_capture(attached.profiler.type_).cloned()
    }

    /// What a profiler is given of the capture.
    fn site(&self, container_id: &str, process: ProcessId) -> Site {
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

    fn site_of(&self, attached: &Attached) -> Site {
        self.site(&attached.container_id, attached.process)
    }

    /// Makes, checks and publishes the files of one collection.
    async fn make(&mut self, attached: &Attached) -> Result<Published, Failed> {
        self.interrupted()?;
        let (mut produced, told) = self.process(attached).await?;
        self.journal.fleet = produced.fleet.take();
        self.interrupted()?;
        self.tell_cost(&mut produced, told)?;
        let mut message = format!(
            "{} events in {:.1} s with {}",
            produced.summary.events,
            Duration::from_nanos(u64::try_from(produced.summary.window_nanoseconds).unwrap_or_default()).as_secs_f64(),
            attached.profiler.type_.as_str()
        );
        if !attached.note.is_empty() {
            message.push_str("; not deeper because ");
            message.push_str(&attached.note);
        }
        if let Some(shortened) = self.profiler(attached)?.shortened(&attached.profiler)? {
            message.push_str("; ");
            message.push_str(&shortened.why);
        }
        if let Some(missed) = &self.journal.missed {
            message.push_str("; of a second window, after ");
            message.push_str(&missed.reason);
        }
        if let Some(why) = &produced.without_prelude {
            message.push_str("; without what was before it: ");
            message.push_str(why);
        }
        if let Some(idle) = &produced.idle {
            message.push_str("; ");
            message.push_str(idle);
        }
        // An agent that finds the files in the store has this to tell of them.
        self.journal.made = Some(Made {
            summary: produced.summary.clone(),
            message,
        });
        self.remember().await?;
        self.enter(Stage::Publishing, "storing the artifacts");
        let manifest = produce::publish(self, &produced).await?;
        self.conclude(manifest).await
    }

    /// Makes the files while the target's work is counted for some time after the window. The container is left to others once that is over; what was
    /// recorded waits for its turn.
    async fn process(&mut self, attached: &Attached) -> Result<(Produced, Option<CaptureOverhead>), Failed> {
        let counting = self.counting().until_left(self.claim.clone(), self.aborted());
        let counting = AbortOnDropHandle::new(tokio::spawn(counting));
        let (claim, aborted) = (self.claim.clone(), self.aborted());
        let mut turn = claim.turn_now();
        if turn.is_none() {
            self.enter(
                Stage::Transforming,
                "recorded, and waiting for a turn to be processed on the node",
            );
            turn = tokio::select! {
                turn = claim.turn() => turn,
                () = aborted => None,
            };
        }
        self.interrupted()?;
        self.enter(Stage::Transforming, "making the timeline");
        let produced = produce::produce(self, attached).await?;
        drop(turn);
        if !counting.is_finished() {
            self.advance((9, 10), "counting the target's work after the window");
        }
        let told = counting.await.unwrap_or_else(|error| {
            warn!(%error, "what the window cost cannot be told");
            None
        });
        Ok((produced, told))
    }

    /// Copies what is in the node's store to where else it is to be, and says what it is.
    async fn conclude(&mut self, manifest: Manifest) -> Result<Published, Failed> {
        let (summary, mut message) = match self.journal.made.clone() {
            Some(Made { summary, message }) => (Some(summary), message),
            None => (
                None,
                "stored by an earlier agent of the node, whose record of it is lost".to_owned(),
            ),
        };
        let storage = match self.store(&manifest).await {
            // Whoever ended it wants no replicas either.
            Err(_) if self.interrupted().is_err() => Replication::None,
            Err(failure) => {
                return Err(Failed {
                    failure,
                    summary,
                    kept: manifest.artifacts,
                    storage: None,
                });
            }
            Ok(storage) => storage,
        };
        if let Err(ended) = self.interrupted() {
            // The agent that comes next finds it in the store.
            if !self.is_handed_over() {
                produce::withdraw(self).await;
            }
            return Err(ended.into());
        }
        if self.journal.adoptions > 0 {
            message.push_str("; the node's agent restarted meanwhile");
        }
        if let Some(why) = &self.journal.over_budget {
            return Err(Failed {
                failure: Failure::new(CaptureReason::OverBudget, format!("{why}; {message} are published")),
                summary,
                kept: manifest.artifacts,
                storage: Some(storage),
            });
        }
        Ok(Published {
            artifacts: manifest.artifacts,
            summary,
            message,
            storage,
        })
    }

    /// Fails when someone ended the capture.
    fn interrupted(&self) -> Result<(), Failure> {
        self.interrupts
            .borrow()
            .and_then(Interrupt::failure)
            .map_or(Ok(()), Err)
    }

    /// Resolves when someone ends the capture without a result.
    fn aborted(&self) -> impl Future<Output = ()> + Send + use<> {
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
    fn is_handed_over(&self) -> bool {
        *self.interrupts.borrow() == Some(Interrupt::Shutdown)
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
}

/// What a failure of the store means for a capture.
fn store_failure(error: &StoreError) -> Failure {
    let reason = match error {
        StoreError::NoSpace { .. } => CaptureReason::DiskSpace,
        _ => CaptureReason::StoreFailed,
    };
    Failure::new(reason, chain(error))
}
