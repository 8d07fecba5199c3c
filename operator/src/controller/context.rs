//! What the controllers share: the client, what the watches hold, and how passes are counted and
//! retried.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flopwatch_api::capture::Capture;
use flopwatch_api::schedule::ProfilingSchedule;
use flopwatch_api::session::ProfilingSession;
use k8s_controller::events::{EventRecorder, Reporter};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::controller::Action;
use kube::runtime::reflector::Store;
use kube::{Client, Resource, ResourceExt as _};
use moka::sync::Cache;

use crate::capture::deletions::Deletions;
use crate::capture::node::NodeHistory;
use crate::controller::namespace_queues::NamespaceQueues;
use crate::controller::pace::Pace;
use crate::deadline::CallError;
use crate::lru::lru;
use crate::metrics::Metrics;
use crate::schedule::announced_classes::AnnouncedClasses;

/// Shortest and longest wait before a pass that failed is tried again.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(4));

/// Most objects whose failures are remembered. Those that were deleted meanwhile go as the oldest.
const MAX_FAILING: u64 = 10_000;

/// The objects that the watches hold.
#[derive(Clone, Debug)]
pub struct Stores {
    /// Every schedule of the cluster.
    pub schedules: Store<ProfilingSchedule>,
    /// Every session of the cluster.
    pub sessions: Store<ProfilingSession>,
    /// Every capture of the cluster.
    pub captures: Store<Capture>,
    /// Every pod of the cluster, pruned.
    pub pods: Store<Pod>,
    /// Every node of the cluster, pruned.
    pub nodes: Store<Node>,
    /// The agent's pods, pruned.
    pub agents: Store<Pod>,
}

/// Whether new captures are suspended: by the flag, or by the ConfigMap.
#[derive(Clone, Debug, Default)]
pub struct Suspension {
    by_flag: bool,
    by_config: Arc<AtomicBool>,
}

impl Suspension {
    /// A switch that the flag holds down, if it is given.
    pub fn new(by_flag: bool) -> Self {
        Self {
            by_flag,
            by_config: Arc::default(),
        }
    }

    /// Sets what the ConfigMap says and answers whether that changed anything.
    pub fn set(&self, suspended: bool) -> bool {
        self.by_config.swap(suspended, Ordering::AcqRel) != suspended
    }

    /// Whether new captures are suspended.
    pub fn get(&self) -> bool {
        self.by_flag || self.by_config.load(Ordering::Acquire)
    }
}

/// The state that the passes of every controller share.
pub struct Context {
    /// Connection to the API server.
    pub client: Client,
    /// The objects that the watches hold.
    pub stores: Stores,
    /// Counters and gauges of the controller.
    pub metrics: Metrics,
    /// Publishes Events.
    pub events: EventRecorder,
    /// Name of this controller and process in the Events that it publishes.
    pub reporter: Reporter,
    /// The switch that stops new captures.
    pub suspension: Suspension,
    /// How long a node may be gone.
    pub node_lost: Duration,
    /// Most captures at once in one namespace; None: no limit.
    pub namespace_limit: Option<NonZeroUsize>,
    /// Locks of namespaces with a limit on captures.
    pub namespace_queues: NamespaceQueues,
    /// How often statuses are written.
    pub pace: Pace,
    /// Classes of pods that schedules do not profile, as far as that was announced.
    pub announced_classes: AnnouncedClasses,
    /// Since when nodes have been in trouble.
    pub history: Mutex<NodeHistory>,
    /// Since when captures have been seen being deleted.
    pub deletions: Deletions,
    /// Failed passes in a row, by UID.
    failures: Cache<String, u32>,
}

impl Context {
    /// A context with nothing seen yet, no limit on namespaces and the default bound on writes of
    /// statuses.
    pub fn new(
        client: Client,
        stores: Stores,
        metrics: Metrics,
        reporter: Reporter,
        suspension: Suspension,
        node_lost: Duration,
    ) -> Self {
        Self {
            events: EventRecorder::new(client.clone(), reporter.clone()),
            reporter,
            client,
            stores,
            metrics,
            suspension,
            node_lost,
            namespace_limit: None,
            namespace_queues: NamespaceQueues::default(),
            pace: Pace::default(),
            announced_classes: AnnouncedClasses::default(),
            deletions: Deletions::default(),
            history: Mutex::default(),
            failures: lru(MAX_FAILING).build(),
        }
    }

    /// Runs one pass: times and counts it, and turns an error into a wait that doubles with each
    /// failure in a row, with up to half of it jitter.
    pub async fn pass<K>(
        &self,
        controller: &'static str,
        object: &K,
        pass: impl Future<Output = Result<Action, CallError>>,
    ) -> Action
    where
        K: Resource,
    {
        let started = Instant::now();
        let result = pass.await;
        self.metrics
            .reconciliation_duration
            .with_label_values(&[controller])
            .observe(started.elapsed().as_secs_f64());
        let outcome = result.as_ref().map_or_else(CallError::outcome, |_| "completed");
        self.metrics
            .reconciliations
            .with_label_values(&[controller, outcome])
            .inc();
        let uid = object.meta().uid.clone().unwrap_or_default();
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        match result {
            Ok(action) => {
                self.failures.invalidate(&uid);
                tracing::debug!(controller, namespace, name, "reconciled");
                action
            }
            Err(error) if error.is_conflict() => {
                tracing::info!(controller, namespace, name, %error, "the object changed meanwhile; trying again");
                Action::requeue(jittered(BACKOFF.0))
            }
            Err(error) => {
                let count = self.failures.get(&uid).unwrap_or_default();
                self.failures.insert(uid, count.saturating_add(1));
                let wait = BACKOFF.0.saturating_mul(1 << count.min(8)).min(BACKOFF.1);
                tracing::error!(controller, namespace, name, %error, wait_seconds = wait.as_secs(), "pass failed");
                Action::requeue(jittered(wait))
            }
        }
    }
}

fn jittered(wait: Duration) -> Duration {
    wait.mul_f64(1.0 + fastrand::f64() / 2.0)
}
