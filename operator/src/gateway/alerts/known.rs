//! What the API server has of a schedule, read when alerts come for it and kept for a moment, so that a thousand alerts at once cost one read.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_api::capture::Capture;
use flopwatch_api::reason::{ScheduleCondition, ScheduleReason};
use flopwatch_api::schedule::{BudgetState, ProfilingSchedule, SCHEDULE_LABEL};
use flopwatch_api::session::ProfilingSession;
use flopwatch_schedule::{AlertedPod, Gathered, Objects, ScheduleError, hardware, is_pod_name};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams};
use kube::{Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use crate::deadline::{CallError, bounded};

/// How long it is kept.
const LIFETIME: Duration = Duration::from_secs(2);
/// Objects of one list.
const PAGE: u32 = 500;

/// What the API server has of a schedule.
pub(super) struct Known {
    read: Instant,
    pub(super) schedule: ProfilingSchedule,
    sessions: Vec<Arc<ProfilingSession>>,
    captures: Vec<Arc<Capture>>,
    /// What each pod that an alert named turned out to be, with all that is decided from.
    looks: HashMap<String, Arc<Look>>,
}

/// A pod that an alert named, and what is decided from.
pub(super) struct Look {
    pub(super) gathered: Gathered,
    /// Whether it runs and stays.
    runs: bool,
}

impl Look {
    /// What the pod turned out to be.
    pub(super) fn pod(&self) -> AlertedPod<'_> {
        match self.gathered.pods.first() {
            _ if !self.runs => AlertedPod::Absent,
            Some(pod) => AlertedPod::Running(pod),
            None if self.gathered.without_container > 0 => AlertedPod::WithoutContainer,
            None => AlertedPod::NotSelected,
        }
    }
}

/// Why nothing can be decided.
#[derive(Debug, thiserror::Error)]
pub(super) enum LookError {
    /// The API server was asked in vain.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The schedule cannot be followed.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

impl Known {
    /// Reads it; None where that schedule is gone.
    pub(super) async fn read(seen: &ProfilingSchedule, client: &Client) -> Result<Option<Self>, CallError> {
        let read = Instant::now();
        let namespace = seen.namespace().unwrap_or_default();
        let schedules: Api<ProfilingSchedule> = Api::namespaced(client.clone(), &namespace);
        let schedule = bounded("reading a schedule", schedules.get_opt(&seen.name_any())).await?;
        let schedule = schedule.filter(|schedule| schedule.metadata.uid == seen.metadata.uid);
        let Some(schedule) = schedule.filter(|schedule| schedule.metadata.deletion_timestamp.is_none()) else {
            return Ok(None);
        };
        let label = format!("{SCHEDULE_LABEL}={}", schedule.name_any());
        let (sessions, captures) = tokio::try_join!(
            all(Api::namespaced(client.clone(), &namespace), &label),
            all(Api::namespaced(client.clone(), &namespace), &label)
        )?;
        Ok(Some(Self {
            read,
            schedule,
            sessions,
            captures,
            looks: HashMap::new(),
        }))
    }

    /// Whether it is of this moment.
    pub(super) fn is_fresh(&self) -> bool {
        self.read.elapsed() < LIFETIME
    }

    /// Whether the cluster's captures are suspended, as the controller last said.
    pub(super) fn captures_suspended(&self) -> bool {
        let status = self.schedule.status.as_ref();
        let ready = status.and_then(|status| status.condition(ScheduleCondition::Ready));
        ready.is_some_and(|ready| ready.reason == ScheduleReason::CapturesSuspended.as_str())
    }

    /// Whether the pods lose more than the amortised budget, as the controller last said of this spec.
    pub(super) fn over_budget(&self) -> bool {
        let status = self.schedule.status.as_ref();
        let status = status.filter(|status| status.observed_generation == self.schedule.metadata.generation);
        let budget = status.and_then(|status| status.budget.as_ref());
        budget.is_some_and(|budget| budget.state == BudgetState::Exceeded)
    }

    /// Whether a session of that name is known.
    pub(super) fn has(&self, name: &str) -> bool {
        self.sessions.iter().any(|session| session.name_any() == name)
    }

    /// Adds a session that was made since.
    pub(super) fn add(&mut self, session: ProfilingSession) {
        self.sessions.push(Arc::new(session));
        self.looks.clear();
    }

    /// What is decided from about the pod of that name; a name that no pod can have is never asked for.
    pub(super) async fn look(&mut self, pod: &str, client: &Client, now: Timestamp) -> Result<Arc<Look>, LookError> {
        if let Some(look) = self.looks.get(pod) {
            return Ok(Arc::clone(look));
        }
        let namespace = self.schedule.namespace().unwrap_or_default();
        let found = if is_pod_name(pod) {
            let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
            bounded("reading a pod", pods.get_opt(pod)).await?
        } else {
            None
        };
        let runs = |pod: &Pod| flopwatch_api::pod::phase(pod) == "Running" && pod.metadata.deletion_timestamp.is_none();
        let runs = found.as_ref().is_some_and(runs);
        let node = found.as_ref().and_then(|pod| pod.spec.as_ref()?.node_name.clone());
        let of_node = match node {
            Some(node) if runs => {
                let nodes: Api<Node> = Api::all(client.clone());
                let node = bounded("reading a node", nodes.get_opt(&node)).await?;
                node.as_ref().and_then(hardware)
            }
            _ => None,
        };
        let pods: Vec<Arc<Pod>> = found.into_iter().map(Arc::new).collect();
        let gathered = Gathered::new(
            &Objects {
                schedule: &self.schedule,
                pods: &pods,
                sessions: &self.sessions,
                captures: &self.captures,
                hardware: &|_| of_node.clone(),
            },
            now,
        )?;
        let look = Arc::new(Look { gathered, runs });
        self.looks.insert(pod.to_owned(), Arc::clone(&look));
        Ok(look)
    }
}

/// All objects with that label, page by page.
async fn all<K>(api: Api<K>, label: &str) -> Result<Vec<Arc<K>>, CallError>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut params = ListParams::default().labels(label).limit(PAGE);
    let mut found = Vec::new();
    loop {
        let page = bounded("reading what a schedule made", api.list(&params)).await?;
        found.extend(page.items.into_iter().map(Arc::new));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(found),
        }
    }
}
