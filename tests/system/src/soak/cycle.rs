//! One workload and the cycles that it goes through.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use flopwatch_api::preparation::PREPARED_ANNOTATION;
use flopwatch_api::session::ProfilingSession;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, LogParams};
use nix::sys::signal::Signal;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::sleep;

use crate::cluster::{TestNamespace, eventually};
use crate::node::{self, Held};
use crate::parts::Running;
use crate::pods::workload;
use crate::sessions::{capture_condition, condition_of};
use crate::soak::inspection::Output;
use crate::soak::ledger::Record;
use crate::soak::plan::{Fault, Plan};
use crate::trainer::Trainer;
use crate::workload::counts;

/// Exit code of the workload when it is told to end, so that it cannot be mistaken for another's.
pub(super) const OWN_CODE: i32 = 7;
/// Longest wait for a session's end.
const END: Duration = Duration::from_mins(4);
/// How long a session waits for its target, in seconds: one whose pod is deleted at once waits in vain.
const START: u32 = 90;
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(400);
/// Oldest last line of a workload that runs.
const FRESH: Duration = Duration::from_secs(10);

/// What all workloads share.
#[derive(Default)]
pub(super) struct Shared {
    /// Held while a shared part is away.
    alone: Mutex<()>,
    begun: AtomicU64,
    over: AtomicU64,
}

/// One workload after the other under one name.
pub(super) struct Lane {
    pub(super) namespace: Arc<TestNamespace>,
    pub(super) shared: Arc<Shared>,
    pub(super) index: usize,
    pub(super) trainer: Option<Trainer>,
    pub(super) generation: u32,
    pub(super) outputs: Vec<Output>,
}

impl Lane {
    /// Goes through one cycle. What keeps it from its end is a surprise too, and the next has another workload.
    pub(super) async fn cycle(&mut self, plan: Plan) -> Record {
        let begin = Instant::now();
        let mut record = Record {
            cycle: plan.cycle,
            fault: plan.fault,
            struck_by_others: false,
            reason: String::new(),
            harm: None,
            orphan: None,
            surprise: None,
            seconds: 0.0,
            started: self.trainer.is_none(),
        };
        if let Err(error) = self.attempt(plan, &mut record).await {
            record.surprise = Some(format!("cut off: {error:#}"));
        }
        record.seconds = begin.elapsed().as_secs_f64();
        record
    }

    async fn attempt(&mut self, plan: Plan, record: &mut Record) -> Result<()> {
        let over = self.shared.over.load(Ordering::SeqCst);
        let trainer = match self.trainer.take() {
            Some(trainer) => trainer,
            None => self.start().await?,
        };
        let session = format!("cycle-{}", plan.cycle);
        eventually("the session to be created", || async {
            let patience = json!({ "startDeadlineSeconds": START });
            match trainer
                .profile_with(&self.namespace, &session, plan.seconds, patience)
                .await
            {
                Ok(()) => Ok(Some(())),
                // The API server may have taken it and died before it said so.
                Err(error) if format!("{error:#}").contains("already exists") => Ok(Some(())),
                Err(error) => Err(error),
            }
        })
        .await?;
        let mut uid = None;
        let (struck, ended) = tokio::join!(self.strike(plan, &trainer, &session), async {
            self.ended(&session, plan.fault, &mut uid).await
        });
        struck?;
        record.reason = ended;
        let own = u64::from(plan.fault.is_shared());
        record.struck_by_others = self.shared.begun.load(Ordering::SeqCst) > over + own;
        let also = if record.struck_by_others { "AgentRestarted" } else { "" };
        if !plan.fault.reasons().contains(&record.reason.as_str()) && record.reason != also {
            record.surprise = Some(format!("ended with {}", record.reason));
        }
        record.harm = self.is_harmed(plan.fault, &trainer).await;
        record.orphan = self.leaves(plan.fault, &trainer, uid.as_deref()).await;
        // What was found once is not found again and again.
        if plan.fault.takes_target() || record.harm.is_some() || record.orphan.is_some() {
            self.retire(trainer).await?;
        } else {
            self.trainer = Some(trainer);
        }
        self.forget(&session).await
    }

    async fn start(&mut self) -> Result<Trainer> {
        self.generation += 1;
        let name = format!("lane-{}-{}", self.index, self.generation);
        let code = OWN_CODE.to_string();
        let pod = workload(&name, true, &["--range-micros", "2000", "--fail-code", &code]);
        let pods = self.namespace.api::<Pod>();
        let created = eventually("the pod to be created", || async {
            match self.namespace.create_pod(pod.clone()).await {
                Ok(created) => Ok(Some(created)),
                Err(error) if format!("{error:#}").contains("already exists") => Ok(Some(pods.get(&name).await?)),
                Err(error) => Err(error),
            }
        })
        .await?;
        // An API server that was stopped may not have reached admission, which lets the pod be created as it is (Event
        // `AdmissionMissed`); an agent that is away when the container starts leaves it plain. Both are as they should be: the next pod.
        if created.annotations().contains_key(PREPARED_ANNOTATION) {
            match Trainer::started(&self.namespace, &name).await {
                Err(error) if format!("{error:#}").contains("not grafted") => {}
                other => return other,
            }
        }
        pods.delete(&name, &DeleteParams::default().grace_period(1)).await?;
        Box::pin(self.start()).await
    }

    /// Lets the fault strike after its delay.
    async fn strike(&self, plan: Plan, trainer: &Trainer, session: &str) -> Result<()> {
        sleep(plan.delay).await;
        let sessions = self.namespace.api::<ProfilingSession>();
        let client = &self.namespace.client;
        match plan.fault {
            Fault::None => {}
            Fault::Keep | Fault::Discard => {
                let stop = if plan.fault == Fault::Keep { "Keep" } else { "Discard" };
                eventually("the session to be stopped", || async {
                    self.namespace.stop(session, stop).await?;
                    Ok(Some(()))
                })
                .await?;
            }
            Fault::SessionDeleted => {
                eventually("the session to be deleted", || async {
                    match sessions.delete(session, &DeleteParams::background()).await {
                        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Some(())),
                        other => Ok(other.map(|_| Some(()))?),
                    }
                })
                .await?;
            }
            Fault::ToolKilled => self.kill_a_tool(trainer, session).await?,
            Fault::SessionKilled => {
                for process in node::sessions_of(&trainer.pod)? {
                    if !process.runs("launcher") {
                        process.signal(Signal::SIGKILL)?;
                    }
                }
            }
            Fault::TargetEnded => trainer.process.signal(Signal::SIGTERM)?,
            Fault::TargetDeleted => {
                let pods = self.namespace.api::<Pod>();
                eventually("the pod to be deleted", || async {
                    pods.delete(&trainer.name, &DeleteParams::default().grace_period(5))
                        .await?;
                    Ok(Some(()))
                })
                .await?;
            }
            Fault::AgentKilled | Fault::ControllerKilled | Fault::ApiServerAway => {
                let _alone = self.shared.alone.lock().await;
                self.shared.begun.fetch_add(1, Ordering::SeqCst);
                let outcome = match plan.fault {
                    Fault::AgentKilled => trainer.agent().await?.killed(client).await.map(drop),
                    Fault::ControllerKilled => Running::controller(client).await?.killed(client).await.map(drop),
                    _ => stand_still(plan.pause).await,
                };
                self.shared.over.fetch_add(1, Ordering::SeqCst);
                outcome?;
            }
        }
        Ok(())
    }

    /// Kills the first tool of the agent that works on this session's capture, if one comes before the session ends.
    async fn kill_a_tool(&self, trainer: &Trainer, session: &str) -> Result<()> {
        let agent = trainer.agent().await?;
        let begin = Instant::now();
        let mut uid = String::new();
        while begin.elapsed() < END {
            if uid.is_empty() {
                let capture = self.namespace.only_capture(session).await;
                uid = capture.ok().and_then(|capture| capture.uid()).unwrap_or_default();
            } else {
                let at_work = |process: &node::Process| process.words().iter().any(|word| word.contains(&uid));
                if let Some(tool) = agent.children()?.into_iter().find(at_work) {
                    return tool.signal(Signal::SIGKILL);
                }
                let found = self.namespace.api::<ProfilingSession>().get_opt(session).await;
                let end = found
                    .as_ref()
                    .ok()
                    .and_then(|found| condition_of(found.as_ref()?, "Succeeded"));
                if end.is_some_and(|one| one.status != "Unknown") {
                    return Ok(());
                }
            }
            sleep(Duration::from_millis(30)).await;
        }
        Ok(())
    }

    /// Waits for the session's end and says which it was; `Never` when there is none in time.
    async fn ended(&self, session: &str, fault: Fault, uid: &mut Option<String>) -> String {
        let begin = Instant::now();
        while begin.elapsed() < END {
            // The API server may be away.
            if let Ok(Some(reason)) = self.look(session, fault, uid).await {
                return reason;
            }
            sleep(LOOK).await;
        }
        "Never".to_owned()
    }

    async fn look(&self, session: &str, fault: Fault, uid: &mut Option<String>) -> Result<Option<String>> {
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
            return Ok(left.is_empty().then(|| "Gone".to_owned()));
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
            return Ok(decided.map(|one| one.reason.clone()));
        }
        let without_targets = condition_of(&found, "TargetsFound").filter(|one| one.reason == "NoTargets");
        Ok(Some(without_targets.unwrap_or(end).reason.clone()))
    }

    /// How the workload was harmed, if it was.
    async fn is_harmed(&self, fault: Fault, trainer: &Trainer) -> Option<String> {
        let outcome = match fault {
            Fault::TargetEnded => self.ended_by_itself(trainer).await,
            Fault::TargetDeleted => self.is_gone(trainer).await,
            _ => self.runs_on(trainer).await,
        };
        outcome.err().map(|error| format!("{error:#}"))
    }

    async fn runs_on(&self, trainer: &Trainer) -> Result<()> {
        ensure!(trainer.process.is_alive(), "PID 1 ended");
        let pods = self.namespace.api::<Pod>();
        let last = LogParams {
            container: Some("main".into()),
            tail_lines: Some(5),
            ..LogParams::default()
        };
        eventually("the workload to run on", || async {
            let pod = pods.get(&trainer.name).await?;
            let statuses = pod
                .status
                .as_ref()
                .and_then(|status| status.container_statuses.as_ref());
            let restarts: i32 = statuses.into_iter().flatten().map(|one| one.restart_count).sum();
            ensure!(restarts == 0, "{restarts} restarts");
            ensure!(
                node::container_id(&pod)? == node::container_id(&trainer.pod)?,
                "another container"
            );
            let log = pods.logs(&trainer.name, &last).await?;
            let by_process = counts(&log);
            let line = by_process.values().flatten().last().context("it says nothing")?;
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
            let age = now.saturating_sub(Duration::from_nanos(line.unix_ns));
            ensure!(age < FRESH, "it said its last word {age:?} ago");
            Ok(Some(()))
        })
        .await
    }

    /// It ended with its own exit code and its last words.
    pub(super) async fn ended_by_itself(&self, trainer: &Trainer) -> Result<()> {
        let code = self.namespace.exit_code(&trainer.name).await?;
        ensure!(code == OWN_CODE, "exit code {code}");
        let log = self.namespace.logs(&trainer.name).await?;
        let words = log.lines().last().unwrap_or_default();
        ensure!(words.starts_with("total "), "its last words: {words}");
        Ok(())
    }

    async fn is_gone(&self, trainer: &Trainer) -> Result<()> {
        eventually("the pod to be gone", || async {
            let pod = self.namespace.api::<Pod>().get_opt(&trainer.name).await?;
            Ok(pod.is_none().then_some(()))
        })
        .await
    }

    /// What stays behind, if anything does.
    async fn leaves(&self, fault: Fault, trainer: &Trainer, uid: Option<&str>) -> Option<String> {
        let outcome = match fault {
            Fault::TargetEnded | Fault::TargetDeleted => nothing_runs(trainer).await,
            Fault::SessionKilled => nothing_beside(trainer).await,
            _ => {
                async {
                    if let Some(uid) = uid {
                        trainer.nothing_stays_of(uid).await?;
                    }
                    trainer.session_is_as_it_was().await
                }
                .await
            }
        };
        outcome.err().map(|error| format!("{error:#}"))
    }

    /// Reads a workload's output and removes it.
    async fn retire(&mut self, trainer: Trainer) -> Result<()> {
        let pods = self.namespace.api::<Pod>();
        if pods.get_opt(&trainer.name).await?.is_some() {
            let log = self.namespace.logs(&trainer.name).await?;
            self.outputs.push(Output::of(&trainer.name, &log));
            pods.delete(&trainer.name, &DeleteParams::default().grace_period(1))
                .await?;
        }
        Ok(())
    }

    /// Ends the workload as the kubelet does, reads it to its end and removes it.
    pub(super) async fn finish(&mut self) -> Result<Option<String>> {
        let Some(trainer) = self.trainer.take() else {
            return Ok(None);
        };
        trainer.process.signal(Signal::SIGTERM)?;
        let harm = self.ended_by_itself(&trainer).await.err();
        let orphan = nothing_runs(&trainer).await.err();
        self.retire(trainer).await?;
        match (harm, orphan) {
            (None, None) => Ok(None),
            (Some(error), _) | (None, Some(error)) => Ok(Some(format!("lane {}: {error:#}", self.index))),
        }
    }

    /// Deletes a session that ended, so that its artifacts go too.
    async fn forget(&self, session: &str) -> Result<()> {
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

async fn stand_still(pause: Duration) -> Result<()> {
    let Some(server) = node::api_server() else {
        bail!("only the local cluster's API server can be stopped");
    };
    let held = Held::hold(server)?;
    sleep(pause).await;
    drop(held);
    Ok(())
}

/// Neither a process of the pod nor of its session is there.
async fn nothing_runs(trainer: &Trainer) -> Result<()> {
    eventually("nothing of the pod's session to run", || async {
        let left = node::sessions_of(&trainer.pod)?;
        ensure!(left.is_empty(), "{left:?}");
        ensure!(!trainer.process.is_alive(), "PID 1 runs on");
        Ok(Some(()))
    })
    .await
}

/// Nothing of ours runs beside the workload.
async fn nothing_beside(trainer: &Trainer) -> Result<()> {
    eventually("nothing of ours to run beside the workload", || async {
        let left = node::sessions_of(&trainer.pod)?;
        ensure!(left.is_empty(), "{left:?}");
        let out = std::fs::read_dir(trainer.path("/flopwatch/run/out"))?.count();
        ensure!(out == 0, "{out} files");
        Ok(Some(()))
    })
    .await
}
