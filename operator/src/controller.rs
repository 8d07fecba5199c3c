//! The controller process: watches, the three controllers, certificates, the lease.

pub mod context;
mod gauges;
mod lease;
pub mod namespace_queues;
pub mod pace;
mod prune;
mod results;
#[cfg(test)]
pub(crate) mod rig;
mod sweep;
mod watches;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use flopwatch_api::capture::Capture;
use flopwatch_api::schedule::ProfilingSchedule;
use flopwatch_api::session::ProfilingSession;
use flopwatch_artifacts::object_store::StoreArguments;
use futures::{Stream, StreamExt as _, stream};
use k8s_controller::LeaderElection;
use k8s_controller::events::Reporter;
use kube::Client;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Config as ControllerConfig, Controller, watcher};
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::certificates::{self, CertificateOptions};
use crate::controller::context::{Context, Suspension};
use crate::controller::pace::Pace;
use crate::controller::watches::{Queues, Receivers};
use crate::metrics::Metrics;
use crate::preparation_failure::announce;
use crate::probes::{Listen, Probes, Readiness};
use crate::serve::follow_secret;

/// Key of the ConfigMap whose value `true` suspends new captures.
pub const SUSPENDED_KEY: &str = "capturesSuspended";
/// Changes of one object within this time make one pass, which begins that much later: a session
/// waits for it once before its capture is made, and once before it says that it is done.
const DEBOUNCE_INTERVAL: Duration = Duration::from_millis(10);

/// How the controller runs.
#[derive(Clone, Debug)]
pub struct ControllerOptions {
    /// Namespace of the operator and of the agents.
    pub namespace: String,
    /// Where metrics and probes are served.
    pub probes: Listen,
    /// Secret with the certificate that metrics are served with; it is watched.
    pub tls_secret: String,
    /// Name of the lease, or None to lead without one.
    pub lease: Option<String>,
    /// Unique replica identity for leader election.
    pub identity: String,
    /// How long a node or its agent may be gone.
    pub node_lost: Duration,
    /// Labels of the agent's pods.
    pub agent_selector: String,
    /// Most captures at once in one namespace; None: no limit.
    pub namespace_limit: Option<NonZeroUsize>,
    /// Most writes of captures' statuses per second by all agents together, but for the first and
    /// the last of each capture.
    pub status_writes: u32,
    /// Most passes at once, of each controller.
    pub concurrency: u16,
    /// Suspends new captures whatever the ConfigMap says.
    pub suspended: bool,
    /// Name of the ConfigMap with [`SUSPENDED_KEY`].
    pub config_map: String,
    /// Where the object store is.
    pub store: StoreArguments,
    /// Certificates of admission and agents; None where something else provides them.
    pub certificates: Option<CertificateOptions>,
}

/// Why the controller ended though nobody asked it to.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The port of metrics and probes could not be served.
    #[error("cannot serve metrics and probes: {0}")]
    Probes(#[from] std::io::Error),
    /// Two series have one name.
    #[error("series cannot be registered: {0}")]
    Series(#[from] prometheus::Error),
    /// Another process took the lease, or it could not be renewed in time. The process ends, so
    /// that nothing it had begun outlives its leadership.
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
    let (stores, writers) = watches::stores();
    let suspension = Suspension::new(options.suspended);
    let refresh = {
        let (stores, suspension) = (stores.clone(), suspension.clone());
        Arc::new(move |metrics: &Metrics| gauges::refresh(metrics, &stores, &suspension))
    };
    metrics.collect(results::Results::new(stores.captures.clone(), metrics.leader.clone())?)?;
    let (sender, certificate) = watch::channel(None);
    let probes = Probes {
        listen: options.probes,
        metrics: metrics.clone(),
        refresh,
        readiness: readiness.clone(),
        certificate,
    };
    let probes = probes.serve(client.clone(), stop.clone());
    let served = follow_secret(&client, &options.namespace, &options.tls_secret, &metrics, sender);
    let reporter = Reporter {
        controller: "flopwatch.dev/controller".to_owned(),
        instance: Some(options.identity.clone()),
    };
    let mut context = Context::new(
        client.clone(),
        stores,
        metrics.clone(),
        reporter,
        suspension,
        options.node_lost,
    );
    context.namespace_limit = options.namespace_limit;
    context.pace = Pace::new(options.status_writes);
    let context = Arc::new(context);

    let (queues, receivers) = Queues::new();
    // A candidate watches too: it takes over with what it knows, at once.
    let watches = watches::watch(&client, &options, writers, &context, &queues);
    let lead = Box::pin(lead(&client, &options, &context, &queues, receivers));
    let election = options
        .lease
        .as_ref()
        .map(|lease| LeaderElection::new(client.clone(), &options.namespace, lease, &options.identity));
    let elected = async {
        match &election {
            Some(election) => {
                let name = options.lease.as_deref().unwrap_or_default();
                if let Err(error) = lease::free(&client, &options.namespace, name, &options.identity).await {
                    tracing::warn!(%error, "whether the lease is free cannot be told: it is waited for");
                }
                election
                    .with_lease(lead)
                    .await
                    .unwrap_or(ControllerError::LeadershipLost)
            }
            None => lead.await,
        }
    };
    let ready = async {
        watches::synced(&context.stores).await;
        tracing::info!("watch caches synced");
        readiness.set(true);
        std::future::pending::<()>().await;
    };
    let result = tokio::select! {
        // First: the probe server ends at `stop` too, and that is no error.
        biased;
        () = stop.cancelled() => Ok(()),
        result = probes => result.map_err(ControllerError::Probes).and(Err(ControllerError::Ended("probe server"))),
        () = watches => Err(ControllerError::Ended("watches")),
        () = served => Err(ControllerError::Ended("watch of the certificate")),
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
    receivers: Receivers,
) -> ControllerError {
    watches::synced(&context.stores).await;
    context.metrics.leader.set(1);
    tracing::info!("leading");
    let config = || {
        ControllerConfig::default()
            .concurrency(options.concurrency.max(1))
            .debounce(DEBOUNCE_INTERVAL)
    };
    let never = |_: Arc<ProfilingSession>, error: &std::convert::Infallible, _: Arc<Context>| match *error {};
    let sessions = Controller::for_stream(stream::pending(), context.stores.sessions.clone())
        .with_config(config())
        .reconcile_on(receive(receivers.sessions))
        .reconcile_all_on(notified(receivers.every_session))
        .run(
            |session, context| async { Ok(crate::session::reconcile::reconcile(session, context).await) },
            never,
            Arc::clone(context),
        )
        .for_each(log_skipped);
    let never = |_: Arc<ProfilingSchedule>, error: &std::convert::Infallible, _: Arc<Context>| match *error {};
    let schedules = Controller::for_stream(stream::pending(), context.stores.schedules.clone())
        .with_config(config())
        .reconcile_on(receive(receivers.schedules))
        .reconcile_all_on(notified(receivers.every_schedule))
        .run(
            |schedule, context| async { Ok(crate::schedule::reconcile::reconcile(schedule, context).await) },
            never,
            Arc::clone(context),
        )
        .for_each(log_skipped);
    let never = |_: Arc<Capture>, error: &std::convert::Infallible, _: Arc<Context>| match *error {};
    let captures = Controller::for_stream(stream::pending(), context.stores.captures.clone())
        .with_config(config())
        .reconcile_on(receive(receivers.captures))
        .reconcile_all_on(notified(receivers.every_capture))
        .run(
            |capture, context| async { Ok(crate::capture::reconcile::reconcile(capture, context).await) },
            never,
            Arc::clone(context),
        )
        .for_each(log_skipped);
    queues.lead();
    let certificates = async {
        match &options.certificates {
            Some(certificates) => tokio::select! {
                () = certificates::keep(client, certificates, &context.metrics) => {}
                () = certificates::agents::keep(client, certificates, &context.metrics) => {}
            },
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = sweep::keep(client, &options.store, &context.metrics) => ControllerError::Ended("sweep of the object store"),
        () = schedules => ControllerError::Ended("schedule controller"),
        () = sessions => ControllerError::Ended("session controller"),
        () = captures => ControllerError::Ended("capture controller"),
        () = announce::keep(context, &receivers.failed_preparations) => ControllerError::Ended("loop over held-up pods"),
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

#[cfg(test)]
mod crate_tests;
