//! The agent from its start to its end: what it opens, what runs beside each other, and in which
//! order it ends.

use std::fs::{File, TryLockError};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flopwatch_artifacts::ArtifactMetrics;
use flopwatch_attach::process::Procfs;
use flopwatch_attach::reexec::Reexec;
use flopwatch_nvml::{ContainerIdentity, Resolver};
use flopwatch_pipeline::failure::chain;
use flopwatch_pipeline::gpus::Gpus;
use flopwatch_pipeline::steps::{self, ChildRunner};
use futures::StreamExt;
use kube::{Client, ResourceExt};
use prometheus::Registry;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::captures::Captures;
use super::entering::Entering;
use super::error::{ended_early, io_error};
use super::heartbeats::Heartbeats;
use super::host::Host;
use super::kernels::{self, Kernels};
use super::pods::{self, Pods};
use super::storage::{self, Storage, replication};
use super::{Error, Node, Options, certificate, clock, graft, leases, recordings, serving, starts, sweep};
use crate::metrics::Metrics;
use crate::metrics_ring::{self, MetricsRing};
use crate::nsys_versions::NsysVersions;
use crate::observability::{self, Health, start_logging};
use crate::plan::Interrupt;

/// How long captures may take to clean up when the agent is asked to exit: below the 30 s that
/// Kubernetes allows by default.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(25);

/// Name of the file in the data folder that one agent at a time has locked.
const LOCK_FILE: &str = "agent.lock";
/// Pause before a lock that another agent has is tried again.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two sweeps of the store.
const SWEEP_INTERVAL: Duration = Duration::from_mins(10);
/// Longest wait for the first certificate before the agent says that it is ready.
const CERTIFICATE_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause before the first list of captures is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// Runs the agent until it is told to stop.
pub async fn run(options: Options) -> Result<(), Error> {
    start(&options);
    let [stop, give_up, pods_known] = [(); 3].map(|()| CancellationToken::new());

    let (registry, health) = (Registry::new(), Health::default());
    let metrics = Metrics::register(&registry)?;
    let artifact_metrics = ArtifactMetrics::register(&registry)?;
    let listener = listen(options.listen_health).await?;
    let router = observability::probes(health.clone());
    let mut observing = tokio::spawn(observability::serve(listener, router, give_up.clone()));

    // Held until this process ends, however it ends.
    let _lock = lock(&options.data_dir).await?;
    let children = options.children();
    let (steps, nsys_versions) = make_steps(&options, children.clone()).await?;
    let spool = make_spool(&options).await?;
    let store = serving::open_store(&options, artifact_metrics.clone()).await?;

    let client = Client::try_default().await?;
    let (pods, pod_watch) = pods::watch(client.clone(), &options.node_name);
    let procfs = Procfs::new(&options.proc);
    let (gpus, metrics_ring) = start_sampling(&options, &procfs, &pods, &registry)?;

    let heartbeats = Heartbeats::new(options.metrics_ring().unwrap_or_default());
    heartbeats.publish(options.range_metrics, &registry)?;
    let (certifying, certified) = certify(&options, &client, &metrics, &give_up).await?;
    let (bucket, fleet) = storage::open(&options, &client, &metrics).await?;
    let derived = serving::open_derived(&options, children, steps.clone()).await?;
    let server = serving::bind(
        &options,
        &client,
        &store,
        derived,
        bucket.clone(),
        artifact_metrics,
        serving::series(registry, &client, &metrics),
    )
    .await?;
    let address = SocketAddr::new(options.advertise_address, server.local_addr().port());
    let mut serving = tokio::spawn(server.run(give_up.clone()));

    let entering = Entering::new(&options, procfs.clone(), Reexec::default());
    let pod_of = resolver(procfs.clone(), pods.clone());
    let profilers = leases::profilers(&options, &stop)?;
    let host = Host::new(&options, &entering, &procfs, &nsys_versions, gpus, pod_of, &profilers);
    let node = Arc::new(Node {
        name: options.node_name.clone(),
        client,
        clock: clock::ServerClock::default(),
        pods: pods.clone(),
        pods_changed: watch::Sender::new(()),
        store,
        metrics,
        limits: options.limits(),
        steps,
        nsys_versions,
        spool,
        entering,
        procfs,
        starts: starts::Starts::default(),
        profilers,
        metrics_ring,
        containers: Arc::new(host),
        storage: Storage::new(bucket, &options),
        fleet,
        url: format!("https://{address}"),
        heartbeats,
        kernels: Kernels::new(options.allow_unproven_cuda),
        recordings: options.recordings(),
        left_behind: Notify::new(),
        stop: stop.clone(),
        give_up: give_up.clone(),
    });
    let watching = [
        tokio::spawn(watch_pods(pod_watch, Arc::clone(&node))),
        tokio::spawn(graft::run(Arc::clone(&node), health.clone())),
        tokio::spawn(recordings::run(Arc::clone(&node))),
        tokio::spawn(kernels::run(Arc::clone(&node))),
    ];
    let (captures, control) = Captures::new(Arc::clone(&node));
    let controlling = tokio::spawn(control_once_known(pods, pods_known.clone(), control));
    let keeping = tokio::spawn(keep_stored(Arc::clone(&node), Arc::clone(&captures)));
    let forgetting = tokio::spawn(Arc::clone(&captures).end_gone());
    let sweeping = tokio::spawn(ready_and_sweep(
        Arc::clone(&node),
        Arc::clone(&captures),
        (pods_known, certified),
        health,
    ));

    let ended = tokio::select! {
        () = asked_to_stop() => Ok(()),
        ended = &mut serving => ended.map_or_else(|error| Err(ended_early("the artifact service", error)), |result| Ok(result?)),
        ended = &mut observing => ended.map_or_else(
            |error| Err(ended_early("the service of probes", error)),
            |result| result.map_err(io_error("the service of probes ended")),
        ),
    };
    wind_down(&stop, &give_up, &captures).await;
    for task in watching
        .into_iter()
        .chain([certifying, controlling, keeping, forgetting, sweeping])
    {
        task.abort();
    }
    ended
}

/// Stops what begins anything new, gives captures time to hand over, and ends what serves them.
async fn wind_down(stop: &CancellationToken, give_up: &CancellationToken, captures: &Captures) {
    info!("stopping");
    stop.cancel();
    if timeout(DRAIN_TIMEOUT, captures.end_all(Interrupt::Shutdown))
        .await
        .is_err()
    {
        warn!("drain timeout passed; the next agent resumes the remaining captures");
    }
    give_up.cancel();
}

/// Controls captures once the node's pods are known: a capture that is planned before its pod would
/// be refused as not running. A store wakes only the last of those that wait for its first list, so
/// this is the one place that does.
async fn control_once_known(pods: Pods, known: CancellationToken, control: impl Future<Output = ()>) {
    if pods.wait_until_ready().await.is_ok() {
        known.cancel();
        control.await;
    }
}

/// Copies to the object store what is to be there, until the node is told to stop.
async fn keep_stored(node: Arc<Node>, captures: Arc<Captures>) {
    let copying = async {
        if let Some(fleet) = &node.fleet {
            fleet.keep_copying(&node.stop).await;
        }
    };
    tokio::join!(replication::keep(Arc::clone(&node), captures), copying);
}

/// Makes the folder of captures under way.
async fn make_spool(options: &Options) -> Result<PathBuf, Error> {
    let spool = options.spool();
    let made = tokio::fs::create_dir_all(&spool).await;
    made.map_err(io_error(format!("cannot make {}", spool.display())))?;
    Ok(spool)
}

/// Starts the log, with who this is.
fn start(options: &Options) {
    start_logging(options.log_format, &options.log_level);
    info!(
        version = env!("CARGO_PKG_VERSION"),
        node = options.node_name,
        pod = options.pod_name,
        "starting"
    );
}

/// Waits until no other agent has the data folder: one that is being replaced may still be
/// releasing its captures.
async fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join(LOCK_FILE);
    let failed = || format!("cannot lock {}", path.display());
    tokio::fs::create_dir_all(folder).await.map_err(io_error(failed()))?;
    let file = File::create(&path).map_err(io_error(failed()))?;
    let mut told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(io_error(failed())(error)),
            Err(TryLockError::WouldBlock) if !told => {
                info!("waiting for the earlier agent of this node to end");
                told = true;
            }
            Err(TryLockError::WouldBlock) => sleep(LOCK_RETRY_INTERVAL).await,
        }
    }
}

/// Has this node's certificate asked for, now and every day; the token says when there is one.
async fn certify(
    options: &Options,
    client: &Client,
    metrics: &Metrics,
    stop: &CancellationToken,
) -> Result<(JoinHandle<()>, CancellationToken), Error> {
    let identity = certificate::Identity {
        node: options.node_name.clone(),
        server_name: options.server_name.clone(),
        folder: options.tls_dir.clone(),
        metrics: metrics.clone(),
    };
    identity.prepare().await?;
    let certified = CancellationToken::new();
    let keeping = identity.keep(client.clone(), certified.clone(), stop.clone());
    Ok((tokio::spawn(keeping), certified))
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address)
        .await
        .map_err(io_error(format!("cannot listen on {address} for probes")))
}

/// Import and transform with the tools that are there.
async fn make_steps(options: &Options, limits: steps::Limits) -> Result<(ChildRunner, Arc<NsysVersions>), Error> {
    let own = std::env::current_exe().map_err(io_error("the path of this program cannot be found"))?;
    let folders = std::iter::once(&options.tools_dir).chain(&options.older_tools_dir);
    let nsys_versions = NsysVersions::open(folders, &own, &limits).await;
    if nsys_versions.is_empty() {
        warn!("no Nsight Systems beside this agent: captures give metrics only");
    }
    Ok((
        ChildRunner::new(own, nsys_versions.first().cloned(), limits),
        Arc::new(nsys_versions),
    ))
}

/// Finds the container of a process on a GPU.
fn resolver(procfs: Procfs, pods: Pods) -> Resolver {
    Arc::new(move |pid| {
        let cgroup = procfs.container(i32::try_from(pid).ok()?)?;
        let pod = pods::by_uid(&pods, &cgroup.pod_uid)?;
        let container = pods::container_of_id(&pod, &cgroup.container_id)?;
        Some(ContainerIdentity {
            namespace: pod.namespace()?,
            pod: pod.name_any(),
            container,
        })
    })
}

async fn watch_pods<E: std::error::Error>(events: impl futures::Stream<Item = Result<(), E>>, node: Arc<Node>) {
    let mut events = std::pin::pin!(events.take_until(node.stop.clone().cancelled_owned()));
    while let Some(event) = events.next().await {
        match event {
            Ok(()) => node.pods_changed.send_replace(()),
            Err(error) => {
                node.metrics.watch_error("pods");
                warn!(error = %chain(&error), "the watch on pods failed and is retried");
            }
        }
    }
}

/// Opens NVML, and starts to keep the samples of the last minutes, unless that is switched off.
fn start_sampling(
    options: &Options,
    procfs: &Procfs,
    pods: &Pods,
    registry: &Registry,
) -> Result<(Gpus, Option<MetricsRing>), Error> {
    let gpus = Gpus::open(options.nvml_library.clone(), resolver(procfs.clone(), pods.clone()));
    gpus.register(registry)?;
    let Some(length) = options.metrics_ring() else {
        return Ok((gpus, None));
    };
    let pods = pods.clone();
    let sources = metrics_ring::Sources {
        length,
        gpus: &gpus,
        procfs: procfs.clone(),
        cgroup_root: options.cgroup_root.clone(),
        running: Box::new(move || pods::running_container_ids(&pods)),
    };
    let ring = MetricsRing::start(sources, registry)?;
    Ok((gpus, Some(ring)))
}

/// Says that the node is ready once its pods are known and its captures can be listed; then sweeps
/// from time to time.
async fn ready_and_sweep(
    node: Arc<Node>,
    captures: Arc<Captures>,
    (pods_known, certified): (CancellationToken, CancellationToken),
    health: Health,
) {
    pods_known.cancelled().await;
    // Captures are carried out without it, so it is not waited for for ever.
    drop(timeout(CERTIFICATE_TIMEOUT, certified.cancelled()).await);
    let mut ticks = interval(SWEEP_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while node
        .stop
        .run_until_cancelled(sweep::due(&mut ticks, &node.left_behind))
        .await
        .is_some()
    {
        match sweep::list_captures(&node.client, &node.name).await {
            Ok(listed) => {
                if !health.is_ready() {
                    info!("ready");
                    health.ready();
                }
                sweep::sweep(&node, &captures, listed).await;
            }
            Err(error) => {
                warn!(error = %chain(&error), "the node's captures cannot be listed");
                if !health.is_ready() {
                    ticks.reset_after(RETRY_INTERVAL);
                }
            }
        }
    }
}

async fn asked_to_stop() {
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    match signals {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
        }
        // Without them the default action ends the process; there is nothing to wait for here.
        _ => std::future::pending().await,
    }
}
