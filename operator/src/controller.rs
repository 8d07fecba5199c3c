//! The controller process: watches, the two controllers, certificates, the lease.

pub mod context;
mod prune;

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use flopwatch_api::capture::Capture;
use flopwatch_api::reason::SessionReason;
use flopwatch_api::session::{ProfilingSession, ProfilingSessionStatus};
use futures::{Stream, StreamExt as _, pin_mut, stream};
use k8s_controller::events::{EventRecorder, Reporter};
use k8s_controller::{LeaderElection, conditions};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::Api;
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::{Config as ControllerConfig, Controller, watcher};
use kube::{Client, ResourceExt as _};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::capture::standing::Standing;
use crate::certificates::{self, CertificateOptions};
use crate::controller::context::{Context, Stores, Suspension};
use crate::metrics::Metrics;
use crate::probes::{self, Readiness};
use crate::watch::{Change, follow};

/// Key of the ConfigMap whose value `true` suspends new captures.
pub const SUSPENDED_KEY: &str = "capturesSuspended";
/// Objects to look at that may wait for a controller; more wait in the watches.
const QUEUE: usize = 1024;
/// Changes of one object within this time make one pass.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// How the controller runs.
#[derive(Clone, Debug)]
pub struct ControllerOptions {
    /// Namespace of the operator and of the agents.
    pub namespace: String,
    /// Where metrics and probes are served.
    pub listen_metrics: SocketAddr,
    /// Name of the lease, or None to lead without one.
    pub lease: Option<String>,
    /// Who this process is among the candidates for the lease.
    pub identity: String,
    /// How long a node or its agent may be gone.
    pub node_lost: Duration,
    /// Labels of the agent's pods.
    pub agent_selector: String,
    /// Most passes at once, of each controller.
    pub concurrency: u16,
    /// Suspends new captures whatever the ConfigMap says.
    pub suspended: bool,
    /// Name of the ConfigMap with [`SUSPENDED_KEY`].
    pub config_map: String,
    /// Certificates of admission and agents; None where something else provides them.
    pub certificates: Option<CertificateOptions>,
}

/// Why the controller ended though nobody asked it to.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The port of metrics and probes could not be served.
    #[error("cannot serve metrics and probes: {0}")]
    Probes(#[from] std::io::Error),
    /// Another process took the lease, or it could not be renewed in time. The process ends, so that nothing it had
    /// begun outlives its leadership.
    #[error("leadership was lost")]
    LeadershipLost,
    /// A loop that runs for ever ended.
    #[error("the {0} ended")]
    Ended(&'static str),
}

/// Runs until `stop`.
pub async fn run(
    client: Client,
    options: ControllerOptions,
    metrics: Metrics,
    stop: CancellationToken,
) -> Result<(), ControllerError> {
    let readiness = Readiness::default();
    let (stores, writers) = stores();
    let suspension = Suspension::new(options.suspended);
    let refresh = {
        let (stores, suspension) = (stores.clone(), suspension.clone());
        Arc::new(move |metrics: &Metrics| gauge(metrics, &stores, &suspension))
    };
    let probes = probes::serve(
        options.listen_metrics,
        metrics.clone(),
        readiness.clone(),
        refresh,
        stop.clone(),
    );
    let reporter = Reporter {
        controller: "flopwatch.dev/controller".to_owned(),
        instance: Some(options.identity.clone()),
    };
    let events = EventRecorder::new(client.clone(), reporter);
    let context = Arc::new(Context::new(
        client.clone(),
        stores,
        metrics.clone(),
        events,
        suspension,
        options.node_lost,
    ));

    let (sessions, session_queue) = mpsc::channel(QUEUE);
    let (captures, capture_queue) = mpsc::channel(QUEUE);
    let queues = Queues {
        sessions,
        captures,
        everything: Arc::new(Notify::new()),
        every_capture: Arc::new(Notify::new()),
    };
    // A candidate watches too: it takes over with what it knows, at once.
    let watches = watches(&client, &options, writers, &context, &queues);
    let lead = lead(&client, &options, &context, &queues, session_queue, capture_queue);
    let election = options
        .lease
        .as_ref()
        .map(|lease| LeaderElection::new(client.clone(), &options.namespace, lease, &options.identity));
    let elected = async {
        match &election {
            Some(election) => election
                .with_lease(lead)
                .await
                .unwrap_or(ControllerError::LeadershipLost),
            None => lead.await,
        }
    };
    let ready = async {
        synced(&context.stores).await;
        tracing::info!("watches are in step");
        readiness.set(true);
        std::future::pending::<()>().await;
    };
    let result = tokio::select! {
        () = stop.cancelled() => Ok(()),
        result = probes => result.map_err(ControllerError::Probes).and(Err(ControllerError::Ended("probe server"))),
        () = watches => Err(ControllerError::Ended("watches")),
        () = ready => Err(ControllerError::Ended("readiness watch")),
        error = elected => Err(error),
    };
    context.metrics.leader.set(0);
    if let Some(election) = &election {
        // Best effort, bounded: the lease runs out by itself.
        if tokio::time::timeout(Duration::from_secs(3), election.release())
            .await
            .is_err()
        {
            tracing::warn!("the lease could not be released in time and will run out");
        }
    }
    result
}

/// The work of the leader.
async fn lead(
    client: &Client,
    options: &ControllerOptions,
    context: &Arc<Context>,
    queues: &Queues,
    session_queue: mpsc::Receiver<ObjectRef<ProfilingSession>>,
    capture_queue: mpsc::Receiver<ObjectRef<Capture>>,
) -> ControllerError {
    synced(&context.stores).await;
    context.metrics.leader.set(1);
    tracing::info!("leading");
    let config = || {
        ControllerConfig::default()
            .concurrency(options.concurrency.max(1))
            .debounce(DEBOUNCE)
    };
    let never = |_: Arc<ProfilingSession>, error: &std::convert::Infallible, _: Arc<Context>| match *error {};
    let sessions = Controller::for_stream(stream::pending(), context.stores.sessions.clone())
        .with_config(config())
        .reconcile_on(receive(session_queue))
        .reconcile_all_on(notified(Arc::clone(&queues.everything)))
        .run(
            |session, context| async { Ok(crate::session::reconcile::reconcile(session, context).await) },
            never,
            Arc::clone(context),
        )
        .for_each(log_skipped);
    let never = |_: Arc<Capture>, error: &std::convert::Infallible, _: Arc<Context>| match *error {};
    let captures = Controller::for_stream(stream::pending(), context.stores.captures.clone())
        .with_config(config())
        .reconcile_on(receive(capture_queue))
        .reconcile_all_on(notified(Arc::clone(&queues.every_capture)))
        .run(
            |capture, context| async { Ok(crate::capture::reconcile::reconcile(capture, context).await) },
            never,
            Arc::clone(context),
        )
        .for_each(log_skipped);
    queues.everything.notify_one();
    queues.every_capture.notify_one();
    let certificates = async {
        match &options.certificates {
            Some(certificates) => certificates::keep(client, certificates, &context.metrics).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = sessions => ControllerError::Ended("session controller"),
        () = captures => ControllerError::Ended("capture controller"),
        () = certificates => ControllerError::Ended("certificate loop"),
    }
}

/// An object that went between its event and its pass is no error; anything else is worth a line.
async fn log_skipped<K: kube::Resource, E: std::error::Error + 'static>(
    result: Result<
        (ObjectRef<K>, kube::runtime::controller::Action),
        kube::runtime::controller::Error<E, watcher::Error>,
    >,
) where
    K::DynamicType: std::fmt::Debug,
{
    match result {
        Ok(_) | Err(kube::runtime::controller::Error::ObjectNotFound(_)) => {}
        Err(error) => tracing::warn!(%error, "controller queue"),
    }
}

fn receive<T: Send + 'static>(queue: mpsc::Receiver<T>) -> impl Stream<Item = T> + Send + 'static {
    stream::unfold(queue, |mut queue| async move {
        queue.recv().await.map(|item| (item, queue))
    })
    .chain(stream::pending())
}

fn notified(notify: Arc<Notify>) -> impl Stream<Item = ()> + Send + 'static {
    stream::unfold(notify, |notify| async move {
        notify.notified().await;
        Some(((), notify))
    })
}

/// Where the watches put what is to be looked at.
#[derive(Clone)]
struct Queues {
    sessions: mpsc::Sender<ObjectRef<ProfilingSession>>,
    captures: mpsc::Sender<ObjectRef<Capture>>,
    everything: Arc<Notify>,
    every_capture: Arc<Notify>,
}

impl Queues {
    async fn session(&self, session: ObjectRef<ProfilingSession>) {
        if self.sessions.send(session).await.is_err() {
            tracing::debug!("the session controller has ended");
        }
    }

    async fn capture(&self, capture: ObjectRef<Capture>) {
        if self.captures.send(capture).await.is_err() {
            tracing::debug!("the capture controller has ended");
        }
    }

    /// A watch read everything anew: what it missed is healed by looking at everything.
    fn all(&self) {
        self.everything.notify_one();
        self.every_capture.notify_one();
    }
}

struct Writers {
    sessions: reflector::store::Writer<ProfilingSession>,
    captures: reflector::store::Writer<Capture>,
    pods: reflector::store::Writer<Pod>,
    nodes: reflector::store::Writer<Node>,
    agents: reflector::store::Writer<Pod>,
}

fn stores() -> (Stores, Writers) {
    let (sessions, sessions_writer) = reflector::store();
    let (captures, captures_writer) = reflector::store();
    let (pods, pods_writer) = reflector::store();
    let (nodes, nodes_writer) = reflector::store();
    let (agents, agents_writer) = reflector::store();
    let writers = Writers {
        sessions: sessions_writer,
        captures: captures_writer,
        pods: pods_writer,
        nodes: nodes_writer,
        agents: agents_writer,
    };
    (
        Stores {
            sessions,
            captures,
            pods,
            nodes,
            agents,
        },
        writers,
    )
}

async fn synced(stores: &Stores) {
    let ready = tokio::join!(
        stores.sessions.wait_until_ready(),
        stores.captures.wait_until_ready(),
        stores.pods.wait_until_ready(),
        stores.nodes.wait_until_ready(),
        stores.agents.wait_until_ready(),
    );
    if ready.0.is_err() || ready.1.is_err() || ready.2.is_err() || ready.3.is_err() || ready.4.is_err() {
        tracing::error!("a watch ended before it was in step");
        std::future::pending::<()>().await;
    }
}

/// Follows everything and queues what each change concerns.
async fn watches(client: &Client, options: &ControllerOptions, writers: Writers, context: &Context, queues: &Queues) {
    let metrics = &context.metrics;
    let stores = &context.stores;
    let config = || watcher::Config::default().any_semantic();
    let sessions = follow(
        Api::all(client.clone()),
        config(),
        prune::unmanaged,
        writers.sessions,
        metrics.clone(),
    );
    let captures = follow(
        Api::all(client.clone()),
        config(),
        prune::unmanaged,
        writers.captures,
        metrics.clone(),
    );
    let pods = follow(
        Api::all(client.clone()),
        config(),
        prune::pod,
        writers.pods,
        metrics.clone(),
    );
    let nodes = follow(
        Api::all(client.clone()),
        config(),
        prune::node,
        writers.nodes,
        metrics.clone(),
    );
    let agents = follow(
        Api::namespaced(client.clone(), &options.namespace),
        config().labels(&options.agent_selector),
        prune::pod,
        writers.agents,
        metrics.clone(),
    );
    let (config_maps, config_map_writer) = reflector::store();
    let config_map = follow(
        Api::<kube::core::DeserializeGuard<ConfigMap>>::namespaced(client.clone(), &options.namespace),
        config().fields(&format!("metadata.name={}", options.config_map)),
        std::convert::identity,
        config_map_writer,
        metrics.clone(),
    );

    let sessions = each(sessions, queues, async |session: ProfilingSession| {
        queues.session(ObjectRef::from_obj(&session)).await;
    });
    let captures = each(captures, queues, async |capture: Capture| {
        queues.capture(ObjectRef::from_obj(&capture)).await;
        let namespace = capture.namespace().unwrap_or_default();
        queues
            .session(ObjectRef::new(&capture.spec.session_ref.name).within(&namespace))
            .await;
    });
    let pods = each(pods, queues, async |pod: Pod| {
        let waiting = stores
            .sessions
            .state_filter(|session| session.metadata.namespace == pod.metadata.namespace && is_choosing(session));
        for session in waiting {
            queues.session(ObjectRef::from_obj(&session)).await;
        }
    });
    let on_node = async |node: Option<String>| {
        let Some(node) = node else { return };
        for capture in stores
            .captures
            .state_filter(|capture| capture.spec.node_name == node && is_held(capture))
        {
            queues.capture(ObjectRef::from_obj(&capture)).await;
        }
    };
    let nodes = each(nodes, queues, async |node: Node| {
        on_node(node.metadata.name).await;
        let mut history = context.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.retain(|name| {
            stores
                .captures
                .find(|capture| capture.spec.node_name == name && is_held(capture))
                .is_some()
        });
    });
    let agents = each(agents, queues, async |pod: Pod| {
        on_node(pod.spec.and_then(|spec| spec.node_name)).await
    });
    let suspension = async {
        pin_mut!(config_map);
        while config_map.next().await.is_some() {
            let suspended = config_maps.state().iter().any(|map| {
                map.data
                    .as_ref()
                    .and_then(|data| data.get(SUSPENDED_KEY))
                    .is_some_and(|value| value.trim() == "true")
            });
            if context.suspension.set(suspended) {
                tracing::warn!(suspended, "new captures were switched");
                queues.everything.notify_one();
            }
        }
    };
    tokio::join!(sessions, captures, pods, nodes, agents, suspension);
}

async fn each<K>(changes: impl Stream<Item = Change<K>>, queues: &Queues, on_object: impl AsyncFn(K)) {
    pin_mut!(changes);
    while let Some(change) = changes.next().await {
        match change {
            Change::Applied(object) | Change::Deleted(object) => on_object(object).await,
            Change::Relisted => queues.all(),
        }
    }
}

/// Whether a session still looks for targets.
fn is_choosing(session: &ProfilingSession) -> bool {
    let Some(status) = &session.status else { return true };
    let found =
        conditions::find(&status.conditions, "TargetsFound").is_some_and(|condition| condition.status == "True");
    status.completion_time.is_none() && !found
}

/// Whether a capture still needs its node: it is at work, or being deleted.
fn is_held(capture: &Capture) -> bool {
    capture.metadata.deletion_timestamp.is_some() || !Standing::of(capture).has_ended()
}

/// States of sessions, for the gauge.
fn state(status: Option<&ProfilingSessionStatus>) -> &'static str {
    let Some(status) = status else { return "pending" };
    let find = |type_: &str| conditions::find(&status.conditions, type_);
    let reason = find("Succeeded").and_then(|condition| SessionReason::from_name(&condition.reason));
    match reason {
        Some(SessionReason::Succeeded) => "succeeded",
        Some(SessionReason::PartiallySucceeded) => "partially_succeeded",
        Some(SessionReason::Failed) => "failed",
        Some(SessionReason::Discarded) => "discarded",
        _ if find("Capturing").is_some_and(|condition| condition.status == "True") => "capturing",
        _ if find("TargetsFound").is_some_and(|condition| condition.status == "True") => "pending",
        _ => "waiting_for_targets",
    }
}

fn gauge(metrics: &Metrics, stores: &Stores, suspension: &Suspension) {
    const STATES: [&str; 7] = [
        "pending",
        "waiting_for_targets",
        "capturing",
        "succeeded",
        "partially_succeeded",
        "failed",
        "discarded",
    ];
    metrics.suspended.set(i64::from(suspension.get()));
    for name in STATES {
        metrics.sessions.with_label_values(&[name]).set(0);
    }
    for session in stores.sessions.state() {
        metrics
            .sessions
            .with_label_values(&[state(session.status.as_ref())])
            .inc();
    }
    for name in Standing::NAMES {
        metrics.captures.with_label_values(&[name]).set(0);
    }
    for capture in stores.captures.state() {
        metrics
            .captures
            .with_label_values(&[Standing::of(&capture).as_str()])
            .inc();
    }
}
