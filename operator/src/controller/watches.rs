//! What the controllers watch, and whom each change concerns.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use flopwatch_api::capture::Capture;
use flopwatch_api::phase::Phase;
use flopwatch_api::schedule::{ProfilingSchedule, SCHEDULE_LABEL};
use flopwatch_api::session::ProfilingSession;
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::Api;
use kube::core::{Selector, SelectorExt as _};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use tokio::sync::{Notify, mpsc};

use crate::capture::reconcile::is_being_released;
use crate::controller::context::{Context, Stores};
use crate::controller::{ControllerOptions, SUSPENDED_KEY, prune};
use crate::preparation_failure::preparation_failure;
use crate::preparation_failure::unprepared::unprepared;
use crate::session::plan::is_choosing;
use crate::watch::{Change, follow};

/// Objects to look at that may wait for a controller; more wait in the watches.
const MAX_QUEUED_OBJECTS: usize = 1024;

/// Where the watches put what is to be looked at. While this process does not lead nobody looks,
/// and nothing is put: the first thing that a leader does is to look at everything.
pub(super) struct Queues {
    leading: AtomicBool,
    schedules: mpsc::Sender<ObjectRef<ProfilingSchedule>>,
    sessions: mpsc::Sender<ObjectRef<ProfilingSession>>,
    captures: mpsc::Sender<ObjectRef<Capture>>,
    every_schedule: Arc<Notify>,
    every_session: Arc<Notify>,
    every_capture: Arc<Notify>,
    failed_preparations: Arc<Notify>,
}

/// The other end of [`Queues`].
pub(super) struct Receivers {
    pub(super) schedules: mpsc::Receiver<ObjectRef<ProfilingSchedule>>,
    pub(super) every_schedule: Arc<Notify>,
    pub(super) sessions: mpsc::Receiver<ObjectRef<ProfilingSession>>,
    pub(super) captures: mpsc::Receiver<ObjectRef<Capture>>,
    pub(super) every_session: Arc<Notify>,
    pub(super) every_capture: Arc<Notify>,
    pub(super) failed_preparations: Arc<Notify>,
}

impl Queues {
    pub(super) fn new() -> (Self, Receivers) {
        let (schedules, schedule_queue) = mpsc::channel(MAX_QUEUED_OBJECTS);
        let (sessions, session_queue) = mpsc::channel(MAX_QUEUED_OBJECTS);
        let (captures, capture_queue) = mpsc::channel(MAX_QUEUED_OBJECTS);
        let queues = Self {
            leading: AtomicBool::new(false),
            schedules,
            sessions,
            captures,
            every_schedule: Arc::default(),
            every_session: Arc::default(),
            every_capture: Arc::default(),
            failed_preparations: Arc::default(),
        };
        let receivers = Receivers {
            schedules: schedule_queue,
            every_schedule: Arc::clone(&queues.every_schedule),
            sessions: session_queue,
            captures: capture_queue,
            every_session: Arc::clone(&queues.every_session),
            every_capture: Arc::clone(&queues.every_capture),
            failed_preparations: Arc::clone(&queues.failed_preparations),
        };
        (queues, receivers)
    }

    /// From now on somebody looks; first at everything.
    pub(super) fn lead(&self) {
        self.leading.store(true, Ordering::Release);
        self.all();
    }

    async fn schedule(&self, schedule: ObjectRef<ProfilingSchedule>) {
        if self.leading.load(Ordering::Acquire) && self.schedules.send(schedule).await.is_err() {
            tracing::debug!("the schedule controller has ended");
        }
    }

    async fn session(&self, session: ObjectRef<ProfilingSession>) {
        if self.leading.load(Ordering::Acquire) && self.sessions.send(session).await.is_err() {
            tracing::debug!("the session controller has ended");
        }
    }

    async fn capture(&self, capture: ObjectRef<Capture>) {
        if self.leading.load(Ordering::Acquire) && self.captures.send(capture).await.is_err() {
            tracing::debug!("the capture controller has ended");
        }
    }

    /// A watch read everything anew: what it missed is healed by looking at everything.
    fn all(&self) {
        self.every_schedule.notify_one();
        self.every_session.notify_one();
        self.every_capture.notify_one();
        self.failed_preparations.notify_one();
    }
}

pub(super) struct Writers {
    schedules: Writer<ProfilingSchedule>,
    sessions: Writer<ProfilingSession>,
    captures: Writer<Capture>,
    pods: Writer<Pod>,
    nodes: Writer<Node>,
    agents: Writer<Pod>,
}

pub(super) fn stores() -> (Stores, Writers) {
    let (schedules, schedules_writer) = reflector::store();
    let (sessions, sessions_writer) = reflector::store();
    let (captures, captures_writer) = reflector::store();
    let (pods, pods_writer) = reflector::store();
    let (nodes, nodes_writer) = reflector::store();
    let (agents, agents_writer) = reflector::store();
    let writers = Writers {
        schedules: schedules_writer,
        sessions: sessions_writer,
        captures: captures_writer,
        pods: pods_writer,
        nodes: nodes_writer,
        agents: agents_writer,
    };
    (
        Stores {
            schedules,
            sessions,
            captures,
            pods,
            nodes,
            agents,
        },
        writers,
    )
}

/// Waits for what sessions and captures need. Schedules wait for their own: where their definition
/// was not installed, sessions work all the same.
pub(super) async fn synced(stores: &Stores) {
    let ready = tokio::join!(
        stores.sessions.wait_until_ready(),
        stores.captures.wait_until_ready(),
        stores.pods.wait_until_ready(),
        stores.nodes.wait_until_ready(),
        stores.agents.wait_until_ready(),
    );
    if ready.0.is_err() || ready.1.is_err() || ready.2.is_err() || ready.3.is_err() || ready.4.is_err() {
        tracing::error!("a watch ended before its cache was synced");
        std::future::pending::<()>().await;
    }
}

/// Follows everything for ever and queues what each change concerns.
pub(super) async fn watch(
    client: &Client,
    options: &ControllerOptions,
    writers: Writers,
    context: &Context,
    queues: &Queues,
) {
    let requests = async {
        tokio::join!(
            watch_schedules(client, writers.schedules, context, queues),
            watch_sessions(client, writers.sessions, context, queues),
            watch_captures(client, writers.captures, context, queues),
        )
    };
    let surroundings = async {
        tokio::join!(
            watch_pods(client, writers.pods, context, queues),
            watch_nodes(client, writers.nodes, context, queues),
            watch_agents(client, options, writers.agents, context, queues),
            watch_switch(client, options, context, queues),
        )
    };
    tokio::join!(Box::pin(requests), Box::pin(surroundings));
}

/// Lists from the API server's cache. Pages would be read from etcd while that cache is being
/// filled.
fn config() -> watcher::Config {
    watcher::Config {
        page_size: None,
        ..watcher::Config::default().any_semantic()
    }
}

async fn watch_schedules(client: &Client, writer: Writer<ProfilingSchedule>, context: &Context, queues: &Queues) {
    let api = Api::all(client.clone());
    let mut changes = follow(api, config(), prune::unmanaged, writer, context.metrics.clone());
    while let Some(change) = changes.next().await {
        match change {
            Change::Applied(schedule) => queues.schedule(ObjectRef::from_obj(&schedule)).await,
            Change::Deleted(schedule) => forget_schedule(&schedule, context),
            Change::Relisted => queues.all(),
        }
    }
}

/// Drops what is remembered of a schedule that is gone.
fn forget_schedule(schedule: &ProfilingSchedule, context: &Context) {
    context
        .announced_classes
        .forget(schedule.metadata.uid.as_deref().unwrap_or_default());
    let namespace = schedule.namespace().unwrap_or_default();
    context.metrics.schedules.forget(&namespace, &schedule.name_any());
}

async fn watch_sessions(client: &Client, writer: Writer<ProfilingSession>, context: &Context, queues: &Queues) {
    let api = Api::all(client.clone());
    let changes = follow(api, config(), prune::unmanaged, writer, context.metrics.clone());
    each(changes, queues, async |session: ProfilingSession| {
        queues.session(ObjectRef::from_obj(&session)).await;
        if let Some(schedule) = session.labels().get(SCHEDULE_LABEL) {
            let namespace = session.namespace().unwrap_or_default();
            queues.schedule(ObjectRef::new(schedule).within(&namespace)).await;
        }
    })
    .await;
}

async fn watch_captures(client: &Client, writer: Writer<Capture>, context: &Context, queues: &Queues) {
    let api = Api::all(client.clone());
    let changes = follow(api, config(), prune::unmanaged, writer, context.metrics.clone());
    each(changes, queues, async |capture: Capture| {
        if !is_being_released(&capture) {
            let uid = capture.metadata.uid.as_deref().unwrap_or_default();
            context.deletions.forget(uid);
        }
        queues.capture(ObjectRef::from_obj(&capture)).await;
        let namespace = capture.namespace().unwrap_or_default();
        let session = ObjectRef::new(&capture.spec.session_ref.name);
        queues.session(session.within(&namespace)).await;
        if context.namespace_limit.is_some() && Phase::of(&capture).has_ended() {
            // It may have left its place to a session that waits for one.
            queue_choosing(capture.metadata.namespace.as_deref(), context, queues).await;
        }
    })
    .await;
}

async fn watch_pods(client: &Client, writer: Writer<Pod>, context: &Context, queues: &Queues) {
    let api = Api::all(client.clone());
    let changes = follow(api, config(), prune::pod, writer, context.metrics.clone());
    each(changes, queues, async |pod: Pod| {
        if preparation_failure(&pod).is_some() || unprepared(&pod).is_some() {
            queues.failed_preparations.notify_one();
        }
        queue_choosing(pod.metadata.namespace.as_deref(), context, queues).await;
        let schedules = &context.stores.schedules;
        for schedule in schedules.state_filter(|schedule| concerns(schedule, &pod)) {
            queues.schedule(ObjectRef::from_obj(schedule.as_ref())).await;
        }
    })
    .await;
}

/// Queues the sessions of a namespace that still choose their targets.
async fn queue_choosing(namespace: Option<&str>, context: &Context, queues: &Queues) {
    let waits = |session: &ProfilingSession| session.metadata.namespace.as_deref() == namespace && is_choosing(session);
    for session in context.stores.sessions.state_filter(waits) {
        queues.session(ObjectRef::from_obj(session.as_ref())).await;
    }
}

/// Whether a schedule may profile a pod.
fn concerns(schedule: &ProfilingSchedule, pod: &Pod) -> bool {
    let selector: Result<Selector, _> = schedule.spec.pod_selector().clone().try_into();
    schedule.metadata.namespace == pod.metadata.namespace
        && !schedule.spec.suspend
        && selector.is_ok_and(|selector| selector.matches(pod.labels()))
}

async fn watch_nodes(client: &Client, writer: Writer<Node>, context: &Context, queues: &Queues) {
    let api = Api::all(client.clone());
    let changes = follow(api, config(), prune::node, writer, context.metrics.clone());
    each(changes, queues, async |node: Node| {
        queue_captures_on(node.metadata.name, context, queues).await;
        let captures = &context.stores.captures;
        let mut history = context.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.retain(|name| {
            captures
                .find(|capture| capture.spec.node_name == name && is_held(capture))
                .is_some()
        });
    })
    .await;
}

async fn watch_agents(
    client: &Client,
    options: &ControllerOptions,
    writer: Writer<Pod>,
    context: &Context,
    queues: &Queues,
) {
    let api = Api::namespaced(client.clone(), &options.namespace);
    let agents = config().labels(&options.agent_selector);
    let changes = follow(api, agents, prune::pod, writer, context.metrics.clone());
    each(changes, queues, async |pod: Pod| {
        queue_captures_on(pod.spec.and_then(|spec| spec.node_name), context, queues).await;
    })
    .await;
}

async fn queue_captures_on(node: Option<String>, context: &Context, queues: &Queues) {
    let Some(node) = node else { return };
    let held = |capture: &Capture| capture.spec.node_name == node && is_held(capture);
    for capture in context.stores.captures.state_filter(held) {
        queues.capture(ObjectRef::from_obj(capture.as_ref())).await;
    }
}

async fn watch_switch(client: &Client, options: &ControllerOptions, context: &Context, queues: &Queues) {
    let (maps, writer) = reflector::store::<ConfigMap>();
    let api = Api::namespaced(client.clone(), &options.namespace);
    let named = config().fields(&format!("metadata.name={}", options.config_map));
    let mut changes = follow(api, named, std::convert::identity, writer, context.metrics.clone());
    while changes.next().await.is_some() {
        let says_so = |map: &Arc<ConfigMap>| {
            map.data
                .as_ref()
                .and_then(|data| data.get(SUSPENDED_KEY))
                .is_some_and(|value| value.trim() == "true")
        };
        let suspended = maps.state().iter().any(says_so);
        if context.suspension.set(suspended) {
            tracing::warn!(suspended, "new captures were switched");
            queues.every_session.notify_one();
            queues.every_schedule.notify_one();
        }
    }
}

async fn each<K>(mut changes: impl Stream<Item = Change<K>> + Unpin, queues: &Queues, on_object: impl AsyncFn(K)) {
    while let Some(change) = changes.next().await {
        match change {
            Change::Applied(object) | Change::Deleted(object) => on_object(object).await,
            Change::Relisted => queues.all(),
        }
    }
}

/// Whether a capture still needs its node: it is at work, or being deleted.
fn is_held(capture: &Capture) -> bool {
    capture.metadata.deletion_timestamp.is_some() || !Phase::of(capture).has_ended()
}
