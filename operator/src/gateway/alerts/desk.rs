//! Decides about alerts, schedule by schedule, and makes the sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as BlockingMutex, PoisonError};

use flopwatch_api::schedule::{ProfilingSchedule, Trigger};
use flopwatch_api::session::ProfilingSession;
use flopwatch_schedule::{Alert, Alerted, Decision, decide, trigger_of};
use jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::runtime::reflector::Store;
use kube::{Client, ResourceExt as _};
use prometheus::IntCounterVec;
use tokio::sync::Mutex;

use crate::deadline::{CallError, bounded};
use crate::gateway::alerts::known::{Known, LookError};
use crate::gateway::alerts::outcome::{AlertResult, Outcome};
use crate::gateway::alerts::places;
use crate::gateway::slots::Slots;
use crate::schedule::session::triggered;

/// How often an alert is decided anew because somebody else made a session meanwhile.
const TRIES: usize = 32;
/// Schedules whose turns are kept without a look at whether they are needed.
const TURNS: usize = 256;

/// What is known of a schedule; whoever holds it decides for that schedule alone.
type Turn = Arc<Mutex<Option<Known>>>;

/// Decides about alerts.
pub(crate) struct Desk {
    client: Client,
    schedules: Store<ProfilingSchedule>,
    turns: BlockingMutex<HashMap<String, Turn>>,
    /// Places for bodies that are answered.
    pub(crate) places: Slots,
    /// `flopwatch_alerts_total`.
    pub(crate) results: IntCounterVec,
}

impl Desk {
    /// `client` is the gateway's own; `schedules` is what the watch holds.
    pub(crate) fn new(client: Client, schedules: Store<ProfilingSchedule>, results: IntCounterVec) -> Self {
        Self {
            client,
            schedules,
            turns: BlockingMutex::default(),
            places: places(),
            results,
        }
    }

    /// The schedules that alerts may be for.
    pub(crate) fn schedules(&self) -> Vec<Arc<ProfilingSchedule>> {
        self.schedules
            .state_filter(|schedule| !schedule.spec.triggers.is_empty())
    }

    /// What a schedule makes of alerts that match one of its triggers, one after the other. `user` told of them.
    pub(crate) async fn take(
        &self,
        schedule: &ProfilingSchedule,
        alerts: &[&Alert],
        user: &str,
    ) -> Result<Vec<Outcome>, CallError> {
        let turn = self.turn(&schedule.uid().unwrap_or_default());
        let mut turn = turn.lock().await;
        let mut outcomes = Vec::with_capacity(alerts.len());
        for alert in alerts {
            if !turn.as_ref().is_some_and(Known::is_fresh) {
                *turn = Known::read(schedule, &self.client).await?;
            }
            let outcome = match turn.as_mut() {
                Some(known) => self.one(known, alert, user).await?,
                None => Outcome::of(AlertResult::NoTrigger),
            };
            outcomes.push(outcome);
        }
        drop(turn);
        Ok(outcomes)
    }

    fn turn(&self, uid: &str) -> Turn {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() > TURNS {
            turns.retain(|_, turn| {
                let is_fresh = |known: &Option<Known>| known.as_ref().is_some_and(Known::is_fresh);
                Arc::strong_count(turn) > 1 || turn.try_lock().is_ok_and(|known| is_fresh(&known))
            });
        }
        Arc::clone(turns.entry(uid.to_owned()).or_default())
    }

    async fn one(&self, known: &mut Known, alert: &Alert, user: &str) -> Result<Outcome, CallError> {
        let namespace = known.schedule.namespace().unwrap_or_default();
        let sessions: Api<ProfilingSession> = Api::namespaced(self.client.clone(), &namespace);
        // The watch may have been behind what was read since.
        let Some(trigger) = trigger_of(&known.schedule.spec, &namespace, alert).cloned() else {
            return Ok(Outcome::of(AlertResult::NoTrigger));
        };
        for _ in 0..TRIES {
            let made = match self.decided(known, &trigger, alert, user).await {
                Ok(Ok(session)) => session,
                Ok(Err(result)) => return Ok(Outcome::of(result)),
                Err(LookError::Call(error)) => return Err(error),
                Err(LookError::Schedule(error)) => {
                    return Ok(Outcome::because(AlertResult::ScheduleInvalid, error.to_string()));
                }
            };
            let name = made.name_any();
            match bounded("creating a session", sessions.create(&PostParams::default(), &made)).await {
                Ok(made) => {
                    let schedule = known.schedule.name_any();
                    tracing::info!(namespace, schedule, session = name, user, "made a session for an alert");
                    known.add(made);
                    return Ok(Outcome {
                        session: Some(name),
                        ..Outcome::of(AlertResult::Made)
                    });
                }
                Err(error) if error.already_exists() && !known.has(&name) => {
                    // Another gateway was quicker. What it made counts.
                    if let Some(there) = bounded("reading a session", sessions.get_opt(&name)).await? {
                        known.add(there);
                    }
                }
                Err(error) => match error.refusal() {
                    Some((400..500, message)) => {
                        return Ok(Outcome::because(AlertResult::Refused, message.to_owned()));
                    }
                    _ => return Err(error),
                },
            }
        }
        let message = "others made sessions at the same time, again and again".to_owned();
        Ok(Outcome::because(AlertResult::Refused, message))
    }

    /// The session to make, or why none is.
    async fn decided(
        &self,
        known: &mut Known,
        trigger: &Trigger,
        alert: &Alert,
        user: &str,
    ) -> Result<Result<ProfilingSession, AlertResult>, LookError> {
        let mut spec = known.schedule.spec.clone();
        spec.suspend |= known.captures_suspended();
        if spec.suspend {
            return Ok(Err(AlertResult::Suspended));
        }
        let now = Timestamp::now();
        let pod = alert.labels.get(&trigger.target.pod_label).map_or("", String::as_str);
        let look = known.look(pod, &self.client, now).await?;
        let alerted = Alerted {
            alert,
            trigger,
            pod: look.pod(),
            over_budget: known.over_budget(),
        };
        Ok(match decide(&look.gathered.facts(&spec, now), &alerted)? {
            Decision::Make(run) => Ok(triggered(&known.schedule, &run, alert, user)),
            Decision::Skip(skip) => Err(skip.into()),
        })
    }
}
