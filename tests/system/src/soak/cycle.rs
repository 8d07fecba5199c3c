//! One workload and the cycles that it goes through.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use flopwatch_api::artifact::TIMELINE;
use flopwatch_api::profiler::ProfilerType;
use flopwatch_api::session::ProfilingSession;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use nix::sys::signal::Signal;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::sleep;

use crate::cluster::{Cluster, TestNamespace, eventually};
use crate::recordings::begins;
use crate::sessions::{capture_condition, condition_of};
use crate::soak::aftermath::nothing_runs;
use crate::soak::both::{Counted, Ring, alike};
use crate::soak::ends::{GONE, by_others, reasons};
use crate::soak::fault::Fault;
use crate::soak::ground::Ground;
use crate::soak::inspection::Output;
use crate::soak::ledger::Record;
use crate::soak::plan::Plan;
use crate::trainer::Trainer;

/// Exit code of the workload when it is told to end, so that it cannot be mistaken for another's.
pub(super) const OWN_CODE: i32 = 7;
/// Longest wait for a session's end.
pub(super) const SESSION_TIMEOUT: Duration = Duration::from_mins(4);
/// How long a session waits for its target, in seconds: one whose pod is deleted at once waits in
/// vain.
const START_DEADLINE_SECONDS: u32 = 90;
/// Time between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(400);
/// Why a session has no capture, where it ends before it makes one.
const WITHOUT_CAPTURE: [&str; 2] = ["NoTargets", "PodNotPrepared"];

/// What all workloads share.
#[derive(Default)]
pub(super) struct Shared {
    /// Held while a shared part is away.
    pub(super) alone: Mutex<()>,
    /// Held by a session with Nsight Compute: the counters of a node are one session's.
    pub(super) counters: Mutex<()>,
    pub(super) begun: AtomicU64,
    pub(super) over: AtomicU64,
}

/// One workload after the other under one name.
pub(super) struct Lane {
    pub(super) namespace: Arc<TestNamespace>,
    pub(super) shared: Arc<Shared>,
    pub(super) ground: Ground,
    pub(super) index: usize,
    pub(super) trainer: Option<Trainer>,
    pub(super) generation: u32,
    pub(super) outputs: Vec<Output>,
    /// The flight recorder of the workload.
    pub(super) ring: Option<Ring>,
    pub(super) counted: Counted,
    /// Recorders that missed ranges.
    pub(super) miscounted: Vec<String>,
}

impl Lane {
    /// Goes through one cycle. What keeps it from its end is a surprise too, and the next has
    /// another workload.
    pub(super) async fn cycle(&mut self, cluster: &Cluster, plan: Plan) -> Record {
        let begin = Instant::now();
        let mut record = Record {
            started: self.trainer.is_none(),
            ..Record::of(plan.cycle, plan.profiler, plan.fault)
        };
        if let Err(error) = self.attempt(cluster, plan, &mut record).await {
            record.surprise = Some(format!("cut off: {error:#}"));
        }
        record.seconds = begin.elapsed().as_secs_f64();
        record
    }

    async fn attempt(&mut self, cluster: &Cluster, plan: Plan, record: &mut Record) -> Result<()> {
        let over = self.shared.over.load(Ordering::SeqCst);
        let trainer = if let Some(trainer) = self.trainer.take() {
            trainer
        } else {
            let started = self.start().await?;
            self.ring = Ring::of(&started).filter(|_| self.ground.counts_ranges());
            started
        };
        let session = format!("cycle-{}", plan.cycle);
        let shared = Arc::clone(&self.shared);
        let _counters = match plan.profiler {
            ProfilerType::Ncu => Some(shared.counters.lock().await),
            _ => None,
        };
        self.ask(&plan, &trainer, &session).await?;
        let since = Instant::now();
        let mut uid = None;
        let (struck, ended) = tokio::join!(self.strike(plan, &trainer, &session), async {
            self.ended(&session, plan.fault, &mut uid).await
        });
        struck?;
        let (reason, message) = ended;
        record.reason = reason;
        let own = u64::from(plan.fault.is_shared());
        record.struck_by_others = self.shared.begun.load(Ordering::SeqCst) > over + own;
        let also = record.struck_by_others && by_others(plan.profiler).contains(&record.reason.as_str());
        if !reasons(plan.profiler, plan.fault).contains(&record.reason.as_str()) && !also {
            record.surprise = Some(format!("ended with {}: {message}", record.reason));
        }
        record.harm = self.is_harmed(plan.fault, &trainer).await;
        record.orphan = self.leaves(plan.fault, &trainer, &session, uid.as_deref()).await;
        // Of a program that ended in its window the last launches are not all recorded.
        let is_whole = record.reason == "Succeeded" && !plan.fault.takes_target();
        if plan.profiler == ProfilerType::Cuda && is_whole {
            match self.has_every_launch(cluster, &trainer, &session).await {
                Ok(launches) => record.launches = Some(launches),
                Err(error) => record.miscount = Some(format!("{error:#}")),
            }
        }
        // What was found once is not found again and again.
        if plan.fault.takes_target() || record.harm.is_some() || record.orphan.is_some() {
            self.retire(trainer).await?;
        } else {
            self.trainer = Some(trainer);
            sleep(plan.busy().saturating_sub(since.elapsed())).await;
        }
        self.forget(&session).await
    }

    /// Creates the session.
    async fn ask(&self, plan: &Plan, trainer: &Trainer, session: &str) -> Result<()> {
        let mut more = json!({
            "startDeadlineSeconds": START_DEADLINE_SECONDS, "profiler": { "type": plan.profiler },
            // What slows a workload here is the machine and the faults.
            "overhead": { "action": "Report" },
        });
        if let Some(require) = self.ground.require(plan.profiler) {
            more["require"] = require;
        }
        if plan.profiler == ProfilerType::Cuda {
            more["outputs"] = json!(["Timeline", "Summary", "Raw"]);
        }
        if plan.profiler == ProfilerType::Ncu {
            more["target"] = json!({ "replicaOf": trainer.name });
        }
        eventually("the session to be created", || async {
            let asked = trainer.profile_with(&self.namespace, session, plan.seconds, more.clone());
            match asked.await {
                Ok(()) => Ok(Some(())),
                // The API server may have taken it and died before it said so.
                Err(error) if format!("{error:#}").contains("already exists") => Ok(Some(())),
                Err(error) => Err(error),
            }
        })
        .await
    }

    /// Name of the lane.
    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.ground.lane(), self.index)
    }

    async fn start(&mut self) -> Result<Trainer> {
        self.generation += 1;
        let name = format!("{}-{}", self.name(), self.generation);
        let pod = self.ground.pod(&name, true, OWN_CODE)?;
        let pods = self.namespace.api::<Pod>();
        let created = eventually("the pod to be created", || async {
            match self.namespace.create_pod(pod.clone()).await {
                Ok(created) => Ok(Some(created)),
                Err(error) if format!("{error:#}").contains("already exists") => Ok(Some(pods.get(&name).await?)),
                Err(error) => Err(error),
            }
        })
        .await?;
        // An API server that was stopped may not have reached admission, which lets the pod be
        // created as it is (Event `AdmissionMissed`); an agent that is away when the container
        // starts leaves it plain. Both are as they should be: the next pod.
        if created.annotations().contains_key(self.ground.prepared_annotation()) {
            let started = if self.ground.has_launcher() {
                Trainer::started(&self.namespace, &name).await
            } else {
                Trainer::counting(&self.namespace, &name).await
            };
            match started {
                Err(error) if format!("{error:#}").contains("not grafted") => {}
                other => return other,
            }
        }
        self.namespace.delete_pod(&name, 1).await?;
        Box::pin(self.start()).await
    }

    /// Waits for the session's end and says which it was, and in its own words; `Never` when there
    /// is none in time.
    async fn ended(&self, session: &str, fault: Fault, uid: &mut Option<String>) -> (String, String) {
        let begin = Instant::now();
        while begin.elapsed() < SESSION_TIMEOUT {
            // The API server may be away.
            if let Ok(Some(end)) = self.look(session, fault, uid).await {
                return end;
            }
            sleep(POLL_INTERVAL).await;
        }
        ("Never".to_owned(), String::new())
    }

    async fn look(&self, session: &str, fault: Fault, uid: &mut Option<String>) -> Result<Option<(String, String)>> {
        let captures = self.namespace.captures(session).await?;
        if let Some(capture) = captures.first() {
            *uid = capture.uid();
        }
        let found = self.namespace.api::<ProfilingSession>().get_opt(session).await?;
        let Some(found) = found else {
            // One may have been made meanwhile, and goes with the session that is gone.
            let left = self.namespace.captures(session).await?;
            if let Some(capture) = left.first() {
                *uid = capture.uid();
            }
            return Ok(left.is_empty().then(|| (GONE.to_owned(), String::new())));
        };
        let Some(end) = condition_of(&found, "Succeeded").filter(|one| one.status != "Unknown") else {
            return Ok(None);
        };
        if fault == Fault::SessionDeleted {
            // It ended before it was deleted; what counts is that it goes.
            return Ok(None);
        }
        if let Some(capture) = captures.first() {
            // It was read before the session, and may have been at work then.
            let decided = capture_condition(capture, "Succeeded").filter(|one| one.status != "Unknown");
            return Ok(decided.map(|one| (one.reason.clone(), one.message.clone())));
        }
        let without = condition_of(&found, "TargetsFound").filter(|one| WITHOUT_CAPTURE.contains(&one.reason.as_str()));
        let end = without.unwrap_or(end);
        Ok(Some((end.reason.clone(), end.message.clone())))
    }

    /// Reads a workload's output and removes it.
    async fn retire(&mut self, trainer: Trainer) -> Result<()> {
        let pods = self.namespace.api::<Pod>();
        if pods.get_opt(&trainer.name).await?.is_some() {
            let log = self.namespace.logs(&trainer.name).await?;
            if let Some(ring) = self.ring.take()
                && let Err(error) = self.counted.compare(&ring, &log)
            {
                self.miscounted.push(format!("{}: {error:#}", trainer.name));
            }
            self.outputs.push(Output::of(self.ground, &trainer.name, &log));
            self.namespace.delete_pod(&trainer.name, 1).await?;
        }
        Ok(())
    }

    /// Compares a last window of Nsight Systems with what the recorder has of the same time.
    async fn both_see_the_same(&self, trainer: &Trainer) -> Result<u64> {
        let namespace = &self.namespace;
        let (mut found, begun) = (Vec::new(), Instant::now());
        for profiler in ["Nsys", "Recorder"] {
            // The recorder's session reaches back to before the window, however long its import
            // took and it has to wait itself.
            let waited = u32::try_from(begun.elapsed().as_secs())?;
            let seconds = if profiler == "Nsys" { 2 } else { waited + 60 };
            let session = format!("{}-{}", trainer.name, profiler.to_lowercase());
            namespace.profile(&session, &trainer.name, seconds, profiler).await?;
            namespace.success_of(&session).await?;
            let capture = namespace.only_capture(&session).await?;
            found.push(begins(&namespace.timeline(&capture, TIMELINE).await?)?);
            self.forget(&session).await?;
        }
        let [window, recorded] = found.as_slice() else {
            bail!("two sessions have {} timelines", found.len());
        };
        alike(window, recorded)
    }

    /// Ends the workload as the kubelet does, reads it to its end and removes it.
    pub(super) async fn finish(&mut self) -> Result<Option<String>> {
        let Some(trainer) = self.trainer.take() else {
            return Ok(None);
        };
        if self.ring.is_some() {
            match self.both_see_the_same(&trainer).await {
                Ok(ranges) => self.counted.seen_by_both += ranges,
                Err(error) => self.miscounted.push(format!("{}: {error:#}", trainer.name)),
            }
        }
        trainer.process.signal(Signal::SIGTERM)?;
        let harm = self.ended_by_itself(&trainer).await.err();
        let orphan = nothing_runs(&trainer).await.err();
        self.retire(trainer).await?;
        match (harm, orphan) {
            (None, None) => Ok(None),
            (Some(error), _) | (None, Some(error)) => Ok(Some(format!("{}: {error:#}", self.name()))),
        }
    }

    /// Deletes a session, whose artifacts go too.
    pub(super) async fn forget(&self, session: &str) -> Result<()> {
        let sessions = self.namespace.api::<ProfilingSession>();
        eventually("the session to be deleted", || async {
            match sessions.delete(session, &DeleteParams::background()).await {
                Ok(_) => Ok(Some(())),
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(Some(())),
                Err(error) => Err(error.into()),
            }
        })
        .await
    }
}
