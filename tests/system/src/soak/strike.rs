//! The fault of a cycle as it strikes.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use flopwatch_api::session::ProfilingSession;
use kube::ResourceExt as _;
use nix::sys::signal::Signal;
use std::sync::atomic::Ordering;
use tokio::time::sleep;

use crate::cluster::eventually;
use crate::node::{self, StoppedProcess};
use crate::parts::Running;
use crate::remains::ENDPOINT;
use crate::sessions::condition_of;
use crate::soak::cycle::{Lane, SESSION_TIMEOUT};
use crate::soak::fault::Fault;
use crate::soak::plan::Plan;
use crate::trainer::Trainer;

/// Time between two looks for what lives for a moment.
const POLL_INTERVAL: Duration = Duration::from_millis(30);

impl Lane {
    /// Lets the fault strike after its delay.
    pub(super) async fn strike(&self, plan: Plan, trainer: &Trainer, session: &str) -> Result<()> {
        sleep(plan.delay).await;
        let client = &self.namespace.client;
        match plan.fault {
            Fault::None => {}
            Fault::Keep | Fault::Discard => {
                let stop = if plan.fault == Fault::Keep { "Keep" } else { "Discard" };
                eventually("the session to be stopped", || async {
                    self.namespace.stop(session, stop).await.map(Some)
                })
                .await?;
            }
            Fault::SessionDeleted => self.forget(session).await?,
            Fault::ToolKilled => self.kill_a_tool(trainer, session).await?,
            Fault::SessionKilled => {
                for process in node::sessions_of(&trainer.pod)? {
                    if !process.runs("launcher") {
                        process.signal(Signal::SIGKILL)?;
                    }
                }
            }
            Fault::EndpointTaken => self.take_endpoint(trainer, session).await,
            Fault::TargetEnded => trainer.process.signal(Signal::SIGTERM)?,
            Fault::TargetDeleted => {
                eventually("the pod to be deleted", || async {
                    self.namespace.delete_pod(&trainer.name, 5).await.map(Some)
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

    /// Kills the first tool of the agent that works on this session's capture, if one comes before
    /// the session ends.
    async fn kill_a_tool(&self, trainer: &Trainer, session: &str) -> Result<()> {
        let agent = trainer.agent().await?;
        let begin = Instant::now();
        let mut uid = String::new();
        while begin.elapsed() < SESSION_TIMEOUT {
            if uid.is_empty() {
                let capture = self.namespace.only_capture(session).await;
                uid = capture.ok().and_then(|capture| capture.uid()).unwrap_or_default();
            } else {
                let at_work = |process: &node::Process| process.words().iter().any(|word| word.contains(&uid));
                if let Some(tool) = agent.children()?.into_iter().find(at_work) {
                    return tool.signal(Signal::SIGKILL);
                }
                if self.has_ended(session).await {
                    return Ok(());
                }
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Takes the name that PyTorch's processes ask at, as soon as the agent does not have it, and
    /// keeps it until the session has ended.
    async fn take_endpoint(&self, trainer: &Trainer, session: &str) {
        let begin = Instant::now();
        let mut taken = None;
        while begin.elapsed() < SESSION_TIMEOUT && !self.has_ended(session).await {
            taken = taken.or_else(|| node::bind_beside(trainer.process, ENDPOINT).ok());
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Whether a session has its end; not where the API server does not say so.
    async fn has_ended(&self, session: &str) -> bool {
        let found = self.namespace.api::<ProfilingSession>().get_opt(session).await;
        let found = found.ok().flatten();
        let end = found.as_ref().and_then(|found| condition_of(found, "Succeeded"));
        end.is_some_and(|one| one.status != "Unknown")
    }
}

async fn stand_still(pause: Duration) -> Result<()> {
    let Some(server) = node::api_server() else {
        bail!("only the local cluster's API server can be stopped");
    };
    let held = StoppedProcess::hold(server)?;
    sleep(pause).await;
    drop(held);
    Ok(())
}
