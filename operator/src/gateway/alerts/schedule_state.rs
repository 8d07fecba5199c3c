//! The state of a schedule: the schedule, its sessions and its captures, read from the API server
//! when alerts come for it and cached for 2 s, so that a thousand alerts at once cost one read.

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

/// Age from which a cached state is read anew.
const CACHE_TTL: Duration = Duration::from_secs(2);
/// Objects in one page of a list.
const PAGE_SIZE: u32 = 500;

/// A schedule with its sessions and captures, as the API server had them at one time.
pub(super) struct ScheduleState {
    read: Instant,
    pub(super) schedule: ProfilingSchedule,
    sessions: Vec<Arc<ProfilingSession>>,
    captures: Vec<Arc<Capture>>,
    /// The pods that alerts named, by name.
    pod_lookups: HashMap<String, Arc<PodLookup>>,
}

/// A pod that an alert named, as it was looked up, with the facts that a decision about it needs.
pub(super) struct PodLookup {
    pub(super) gathered: Gathered,
    /// Whether the pod runs and is not being deleted.
    runs: bool,
}

impl PodLookup {
    /// The pod, or why the schedule does not profile it.
    pub(super) fn pod(&self) -> AlertedPod<'_> {
        match self.gathered.pods.first() {
            _ if !self.runs => AlertedPod::Absent,
            Some(pod) => AlertedPod::Running(pod),
            None if self.gathered.without_container > 0 => AlertedPod::WithoutContainer,
            None => AlertedPod::NotSelected,
        }
    }
}

/// Why a pod could not be looked up.
#[derive(Debug, thiserror::Error)]
pub(super) enum LookupError {
    /// A call of the API server failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The schedule cannot be followed.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

impl ScheduleState {
    /// Reads the state of the schedule `seen`; None where that schedule is gone.
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
            list_all(Api::namespaced(client.clone(), &namespace), &label),
            list_all(Api::namespaced(client.clone(), &namespace), &label)
        )?;
        Ok(Some(Self {
            read,
            schedule,
            sessions,
            captures,
            pod_lookups: HashMap::new(),
        }))
    }

    /// Whether the state is younger than [`CACHE_TTL`].
    pub(super) fn is_fresh(&self) -> bool {
        self.read.elapsed() < CACHE_TTL
    }

    /// Whether the cluster's captures are suspended, as the controller last said.
    pub(super) fn captures_suspended(&self) -> bool {
        let status = self.schedule.status.as_ref();
        let ready = status.and_then(|status| status.condition(ScheduleCondition::Ready));
        ready.is_some_and(|ready| ready.reason == ScheduleReason::CapturesSuspended.as_str())
    }

    /// Whether the pods lose more than the amortised budget, as the controller last said of this
    /// spec.
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
        self.pod_lookups.clear();
    }

    /// Looks up the pod of that name, and its node; a name that no pod can have is not asked for.
    pub(super) async fn look_up_pod(
        &mut self,
        pod: &str,
        client: &Client,
        now: Timestamp,
    ) -> Result<Arc<PodLookup>, LookupError> {
        if let Some(lookup) = self.pod_lookups.get(pod) {
            return Ok(Arc::clone(lookup));
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
        let lookup = Arc::new(PodLookup { gathered, runs });
        self.pod_lookups.insert(pod.to_owned(), Arc::clone(&lookup));
        Ok(lookup)
    }
}

/// Lists all objects with that label, page by page.
async fn list_all<K>(api: Api<K>, label: &str) -> Result<Vec<Arc<K>>, CallError>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut params = ListParams::default().labels(label).limit(PAGE_SIZE);
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
