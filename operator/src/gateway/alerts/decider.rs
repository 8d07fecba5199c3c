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
use crate::gateway::alerts::outcome::{AlertResult, Outcome};
use crate::gateway::alerts::request_slots;
use crate::gateway::alerts::schedule_state::{LookupError, ScheduleState};
use crate::gateway::slots::Slots;
use crate::schedule::session::triggered;

/// Most attempts to create a session for one alert: each further one follows another gateway's
/// session of the same name.
const MAX_CREATE_ATTEMPTS: usize = 32;
/// Number of schedules from which on locks that nobody holds and whose state is stale are removed.
const LOCK_PRUNE_THRESHOLD: usize = 256;

/// The cached state of one schedule; the task that holds the lock decides for that schedule alone.
type ScheduleLock = Arc<Mutex<Option<ScheduleState>>>;

/// Decides, for each schedule, which alerts make a session, and creates the sessions.
pub(crate) struct AlertDecider {
    client: Client,
    schedules: Store<ProfilingSchedule>,
    locks: BlockingMutex<HashMap<String, ScheduleLock>>,
    /// Slots for requests that are being answered, by user.
    pub(crate) request_slots: Slots,
    /// The counter `flopwatch_alerts_total`, by result.
    pub(crate) results: IntCounterVec,
}

impl AlertDecider {
    /// A decider that writes with `client`, the gateway's own, and reads schedules from the store
    /// of their watch.
    pub(crate) fn new(client: Client, schedules: Store<ProfilingSchedule>, results: IntCounterVec) -> Self {
        Self {
            client,
            schedules,
            locks: BlockingMutex::default(),
            request_slots: request_slots(),
            results,
        }
    }

    /// The schedules that have a trigger.
    pub(crate) fn schedules(&self) -> Vec<Arc<ProfilingSchedule>> {
        self.schedules
            .state_filter(|schedule| !schedule.spec.triggers.is_empty())
    }

    /// Decides about alerts that match one of the schedule's triggers, one after the other, and
    /// gives one outcome for each. `user` sent them.
    pub(crate) async fn decide_for_schedule(
        &self,
        schedule: &ProfilingSchedule,
        alerts: &[&Alert],
        user: &str,
    ) -> Result<Vec<Outcome>, CallError> {
        let lock = self.schedule_lock(&schedule.uid().unwrap_or_default());
        let mut cached = lock.lock().await;
        let mut outcomes = Vec::with_capacity(alerts.len());
        for alert in alerts {
            if !cached.as_ref().is_some_and(ScheduleState::is_fresh) {
                *cached = ScheduleState::read(schedule, &self.client).await?;
            }
            let outcome = match cached.as_mut() {
                Some(state) => self.decide_alert(state, alert, user).await?,
                None => Outcome::of(AlertResult::NoTrigger),
            };
            outcomes.push(outcome);
        }
        drop(cached);
        Ok(outcomes)
    }

    fn schedule_lock(&self, uid: &str) -> ScheduleLock {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        if locks.len() > LOCK_PRUNE_THRESHOLD {
            locks.retain(|_, lock| {
                let is_fresh = |cached: &Option<ScheduleState>| cached.as_ref().is_some_and(ScheduleState::is_fresh);
                Arc::strong_count(lock) > 1 || lock.try_lock().is_ok_and(|cached| is_fresh(&cached))
            });
        }
        Arc::clone(locks.entry(uid.to_owned()).or_default())
    }

    async fn decide_alert(&self, state: &mut ScheduleState, alert: &Alert, user: &str) -> Result<Outcome, CallError> {
        let namespace = state.schedule.namespace().unwrap_or_default();
        let sessions: Api<ProfilingSession> = Api::namespaced(self.client.clone(), &namespace);
        // The watch may have been behind what was read since.
        let Some(trigger) = trigger_of(&state.schedule.spec, &namespace, alert).cloned() else {
            return Ok(Outcome::of(AlertResult::NoTrigger));
        };
        for _ in 0..MAX_CREATE_ATTEMPTS {
            let made = match self.plan_session(state, &trigger, alert, user).await {
                Ok(Ok(session)) => session,
                Ok(Err(result)) => return Ok(Outcome::of(result)),
                Err(LookupError::Call(error)) => return Err(error),
                Err(LookupError::Schedule(error)) => {
                    return Ok(Outcome::because(AlertResult::ScheduleInvalid, error.to_string()));
                }
            };
            let name = made.name_any();
            match bounded("creating a session", sessions.create(&PostParams::default(), &made)).await {
                Ok(made) => {
                    let schedule = state.schedule.name_any();
                    tracing::info!(namespace, schedule, session = name, user, "made a session for an alert");
                    state.add(made);
                    return Ok(Outcome {
                        session: Some(name),
                        ..Outcome::of(AlertResult::Made)
                    });
                }
                Err(error) if error.already_exists() && !state.has(&name) => {
                    // Another gateway was quicker. What it made counts.
                    if let Some(there) = bounded("reading a session", sessions.get_opt(&name)).await? {
                        state.add(there);
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

    /// The session that the alert makes, or the result that says why it makes none.
    async fn plan_session(
        &self,
        state: &mut ScheduleState,
        trigger: &Trigger,
        alert: &Alert,
        user: &str,
    ) -> Result<Result<ProfilingSession, AlertResult>, LookupError> {
        let mut spec = state.schedule.spec.clone();
        spec.suspend |= state.captures_suspended();
        if spec.suspend {
            return Ok(Err(AlertResult::Suspended));
        }
        let now = Timestamp::now();
        let pod = alert.labels.get(&trigger.target.pod_label).map_or("", String::as_str);
        let lookup = state.look_up_pod(pod, &self.client, now).await?;
        let alerted = Alerted {
            alert,
            trigger,
            pod: lookup.pod(),
            over_budget: state.over_budget(),
        };
        Ok(match decide(&lookup.gathered.facts(&spec, now), &alerted)? {
            Decision::Make(run) => Ok(triggered(&state.schedule, &run, alert, user)),
            Decision::Skip(skip) => Err(skip.into()),
        })
    }
}
