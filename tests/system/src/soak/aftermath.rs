//! What a cycle did to its workload, and what it left.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{ListParams, LogParams};

use crate::cluster::eventually;
use crate::node;
use crate::pods::restarts;
use crate::soak::cycle::{Lane, OWN_CODE};
use crate::soak::fault::Fault;
use crate::soak::ground::Ground;
use crate::trainer::Trainer;
use crate::workload::counts;

/// Oldest last line of a workload that runs.
const MAX_LINE_AGE: Duration = Duration::from_secs(10);

impl Lane {
    /// How the workload was harmed, if it was.
    pub(super) async fn is_harmed(&self, fault: Fault, trainer: &Trainer) -> Option<String> {
        let outcome = match fault {
            Fault::TargetEnded => self.ended_by_itself(trainer).await,
            Fault::TargetDeleted => self.namespace.pod_gone(&trainer.name).await,
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
            let restarts = restarts(&pod);
            ensure!(restarts == 0, "{restarts} restarts");
            let is_same = node::container_id(&pod)? == node::container_id(&trainer.pod)?;
            ensure!(is_same, "another container");
            let log = pods.logs(&trainer.name, &last).await?;
            let by_process = counts(&log);
            let line = by_process.values().flatten().last().context("it says nothing")?;
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
            let age = now.saturating_sub(Duration::from_nanos(line.unix_ns));
            ensure!(age < MAX_LINE_AGE, "it said its last word {age:?} ago");
            Ok(Some(()))
        })
        .await
    }

    /// Fails unless the workload ended with its own exit code and its last words.
    pub(super) async fn ended_by_itself(&self, trainer: &Trainer) -> Result<()> {
        let code = self.namespace.exit_code(&trainer.name).await?;
        ensure!(code == OWN_CODE, "exit code {code}");
        let log = self.namespace.logs(&trainer.name).await?;
        let words = log.lines().last().unwrap_or_default();
        ensure!(words.starts_with("total "), "its last words: {words}");
        Ok(())
    }

    /// What stays behind, if anything does.
    pub(super) async fn leaves(
        &self,
        fault: Fault,
        trainer: &Trainer,
        session: &str,
        uid: Option<&str>,
    ) -> Option<String> {
        let outcome = match fault {
            Fault::TargetEnded | Fault::TargetDeleted => nothing_runs(trainer).await,
            Fault::SessionKilled => nothing_beside(trainer).await,
            _ => {
                async {
                    if let Some(uid) = uid {
                        trainer.nothing_stays_of(uid).await?;
                    }
                    if self.ground == Ground::SimulatedGpu {
                        self.is_left_alone(trainer).await?;
                    }
                    trainer.session_is_as_it_was().await
                }
                .await
            }
        };
        let outcome = match outcome {
            Ok(()) => self.owns_no_pod(session).await,
            failed => failed,
        };
        outcome.err().map(|error| format!("{error:#}"))
    }

    /// There is no pod that the session made.
    async fn owns_no_pod(&self, session: &str) -> Result<()> {
        eventually("the session's own pod to be gone", || async {
            let pods = self.namespace.api::<Pod>().list(&ListParams::default()).await?;
            let own = pods.iter().filter(|pod| {
                let mut owners = pod.owner_references().iter();
                owners.any(|owner| owner.kind == "ProfilingSession" && owner.name == session)
            });
            let own: Vec<_> = own.map(ResourceExt::name_any).collect();
            ensure!(own.is_empty(), "{own:?} stay");
            Ok(Some(()))
        })
        .await
    }
}

/// Neither a process of the pod nor of its session is there.
pub(super) async fn nothing_runs(trainer: &Trainer) -> Result<()> {
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
