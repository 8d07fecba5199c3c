//! Starts the profiler's session in prepared containers while their launcher waits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use flopwatch_api::pod;
use flopwatch_api::preparation::{NSYS_SESSION, NSYS_TRACE_ANNOTATION, START_ANNOTATION};
use flopwatch_api::profiler::TraceCategory;
use flopwatch_api::session::StartMode;
use flopwatch_attach::bounded::Late;
use flopwatch_attach::cgroup::ContainerCgroup;
use flopwatch_attach::graft::{Candidate, GraftError, LauncherScan, LauncherState, Target, can_hold, speaks, waits};
use flopwatch_attach::nsys::LaunchOptions;
use flopwatch_attach::own_cgroup;
use flopwatch_attach::process::ProcessId;
use flopwatch_launcher::needed::Outdated;
use flopwatch_pipeline::failure::chain;
use flopwatch_pipeline::nsys_options::cuda_graph_trace;
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use crate::metrics::GraftOutcome;
use crate::node::entering::CGROUP;
use crate::node::{Node, memory, pods};
use crate::observability::Health;
use crate::profilers::nsys::categories::traced_categories;
use crate::profilers::nsys::options::Fixed;

/// Time between two looks for waiting launchers, where a container of a prepared pod may start or
/// start again.
const SCAN_INTERVAL: Duration = Duration::from_millis(250);
/// The same where the node has no prepared pod; a change of its pods ends it.
const IDLE_SCAN_INTERVAL: Duration = Duration::from_secs(10);
/// Grafts at once; a node that starts many pods does not start as many sessions in the same moment.
const CONCURRENCY: usize = 8;
/// Longest graft; a launcher waits no longer.
const GRAFT_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest wait of a held launcher for its collection.
const HELD_TIMEOUT: Duration = Duration::from_secs(25);
/// How long a pod that is not in the store yet is waited for: less than a launcher waits to be
/// claimed.
const UNKNOWN_POD_TIMEOUT: Duration = Duration::from_millis(2_500);
/// How long a container's files are waited for, to see whether its launcher waits.
const FILES_TIMEOUT: Duration = Duration::from_secs(2);
/// Looks into one container at once, those that do not come back included.
const MAX_CONCURRENT_INSPECTIONS: u32 = 4;
/// How long one look for launchers may take; it opens no file of a container.
const SCAN_TIMEOUT: Duration = Duration::from_secs(30);
/// Time between two removals of empty cgroups, and their least age.
const CGROUP_SWEEP_INTERVAL: Duration = Duration::from_mins(1);

/// Makes the folders of our cgroups in each hierarchy: of sessions in containers, and of the
/// agent's own children. The roots of cgroup file systems are closed even to their owner, so this
/// takes CAP_DAC_OVERRIDE; safe to repeat.
pub fn prepare_node(root: &Path) -> Result<(), String> {
    own_cgroup::make_parent(root, CGROUP)?;
    own_cgroup::make_parent(root, memory::CGROUP)
}

/// A session to start.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Graft {
    options: LaunchOptions,
    /// Whether a collection is to run before the launcher goes on: the pod's UID, by which its
    /// capture finds it.
    held_for: Option<String>,
}

/// What to do with a process that bears a launcher's name.
#[derive(Debug, Clone)]
enum Decision {
    /// Its container was prepared: it may be looked at.
    Look(Arc<Pod>),
    Leave(GraftOutcome),
    /// The pod is not known yet.
    Wait,
}

/// What is known of a process that bears a launcher's name.
struct LauncherProgress {
    first: Instant,
    done: bool,
}

/// What a look at a container found.
struct InspectedContainer {
    candidate: Candidate,
    pod: Arc<Pod>,
    /// The launcher's protocol where it waits.
    found: Result<Option<u32>, Late>,
}

/// Looks for waiting launchers until the node is told to stop. Each look at the processes is a
/// heartbeat.
pub async fn run(node: Arc<Node>, health: Health) {
    let mut scan = LauncherScan::new(node.procfs.clone());
    let mut seen: BTreeMap<ProcessId, LauncherProgress> = BTreeMap::new();
    let mut looks: JoinSet<InspectedContainer> = JoinSet::new();
    let turns = Arc::new(Semaphore::new(CONCURRENCY));
    let mut cgroups_due = Instant::now();
    let mut pods_changed = node.pods_changed.subscribe();
    loop {
        let expected = node
            .pods
            .find(|pod| pod::prepared_containers(pod).next().is_some())
            .is_some();
        tokio::select! {
            () = node.stop.cancelled() => return,
            Some(looked) = looks.join_next() => {
                match looked {
                    Ok(looked) => take(&node, &turns, &mut seen, looked),
                    Err(error) => warn!(%error, "the look into a container ended early"),
                }
                continue;
            }
            () = sleep(if expected { SCAN_INTERVAL } else { IDLE_SCAN_INTERVAL }) => {}
            Ok(()) = pods_changed.changed(), if !expected => {}
        }
        let candidates;
        (scan, candidates) = scanned(&node, scan, &health).await;
        let Some(candidates) = candidates else { continue };
        seen.retain(|process, _| node.procfs.is_alive(*process));
        for candidate in candidates {
            // Any program of the host may have that name.
            let Some(container) = candidate.container.clone() else {
                continue;
            };
            let known = seen.entry(candidate.process).or_insert_with(|| LauncherProgress {
                first: Instant::now(),
                done: false,
            });
            if known.done {
                continue;
            }
            match decide(&node, &container) {
                Decision::Look(pod) => inspect(&node, &mut looks, candidate, container.container_id, pod),
                Decision::Wait if known.first.elapsed() < UNKNOWN_POD_TIMEOUT => {}
                Decision::Wait => {
                    known.done = true;
                    leave(&node, &candidate, GraftOutcome::UnknownPod);
                }
                Decision::Leave(outcome) => {
                    known.done = true;
                    leave(&node, &candidate, outcome);
                }
            }
        }
        if cgroups_due <= Instant::now() {
            cgroups_due = Instant::now() + CGROUP_SWEEP_INTERVAL;
            let root = node.entering.cgroup_root.clone();
            drop(tokio::task::spawn_blocking(move || remove_empty_cgroups(&root)));
        }
    }
}

/// The processes that bear a launcher's name; none when they could not be listed.
async fn scanned(node: &Node, mut scan: LauncherScan, health: &Health) -> (LauncherScan, Option<Vec<Candidate>>) {
    let listing = tokio::task::spawn_blocking(move || {
        let found = scan.scan();
        (scan, found)
    });
    let anew = || LauncherScan::new(node.procfs.clone());
    match timeout(SCAN_TIMEOUT, listing).await {
        Ok(Ok((scan, Ok(found)))) => {
            health.beat();
            (scan, Some(found))
        }
        Ok(Ok((scan, Err(error)))) => {
            warn!(%error, "looking for waiting launchers failed");
            (scan, None)
        }
        Ok(Err(error)) => {
            warn!(%error, "the look for waiting launchers ended early");
            (anew(), None)
        }
        Err(_) => {
            warn!("the look for waiting launchers does not come back");
            (anew(), None)
        }
    }
}

/// Looks whether a prepared container's launcher waits, on a thread of its own: its files may lie
/// on a file system that does not answer. A few looks for each container, however long they take.
fn inspect(
    node: &Node,
    looks: &mut JoinSet<InspectedContainer>,
    candidate: Candidate,
    container_id: String,
    pod: Arc<Pod>,
) {
    let (gate, procfs, volumes) = (
        node.entering.gate.clone(),
        node.procfs.clone(),
        node.entering.kubelet.clone(),
    );
    looks.spawn_blocking(move || {
        let looked = candidate.clone();
        let found = gate.among(&container_id, MAX_CONCURRENT_INSPECTIONS, FILES_TIMEOUT, move || {
            waits(&procfs, &looked, Some(&volumes))
        });
        InspectedContainer { candidate, pod, found }
    });
}

/// Acts on what a look found.
fn take(
    node: &Arc<Node>,
    turns: &Arc<Semaphore>,
    seen: &mut BTreeMap<ProcessId, LauncherProgress>,
    looked: InspectedContainer,
) {
    let InspectedContainer { candidate, pod, found } = looked;
    let Some(known) = seen.get_mut(&candidate.process).filter(|known| !known.done) else {
        return;
    };
    let protocol = match found {
        Ok(Some(protocol)) => protocol,
        // Nothing, or what was said before: its files do not answer.
        Ok(None) | Err(Late::Busy) => return,
        Err(error) => {
            warn!(pid = candidate.process.pid, container = ?candidate.container, %error, "a container's files do not answer");
            return;
        }
    };
    known.done = true;
    if speaks(protocol) {
        tokio::spawn(graft(
            Arc::clone(node),
            Arc::clone(turns),
            candidate,
            wanted(&pod, protocol, node.nsys_versions.outdated()),
        ));
    } else {
        leave(node, &candidate, GraftOutcome::OtherVersion);
    }
}

fn leave(node: &Node, launcher: &Candidate, outcome: GraftOutcome) {
    info!(pid = launcher.process.pid, container = ?launcher.container, outcome = outcome.as_str(), "left a launcher alone");
    node.metrics.graft(outcome);
}

/// Only what admission prepared is touched, and no file of a container is opened before that is
/// known.
fn decide(node: &Node, container: &ContainerCgroup) -> Decision {
    match pods::by_uid(&node.pods, &container.pod_uid) {
        None => Decision::Wait,
        Some(pod) if is_prepared(&pod, &container.container_id) => Decision::Look(pod),
        Some(_) => Decision::Leave(GraftOutcome::NotPrepared),
    }
}

fn is_prepared(pod: &Pod, container_id: &str) -> bool {
    match pods::container_of_id(pod, container_id) {
        Some(name) => pod::is_prepared(pod, &name),
        // The kubelet says which container it is only after its start; its mounts tell meanwhile.
        None => pod::prepared_containers(pod).next().is_some(),
    }
}

/// The session that a prepared container gets.
fn wanted(pod: &Pod, protocol: u32, outdated: Option<Outdated>) -> Graft {
    let at_start = pod::annotation(pod, START_ANNOTATION) == Some(StartMode::ContainerStart.as_str());
    Graft {
        options: launch_options(pod, outdated),
        held_for: pod.metadata.uid.clone().filter(|_| at_start && can_hold(protocol)),
    }
}

/// What is fixed with the container's start, from the pod's annotations; without CUDA where the
/// tools are too old for the driver.
fn launch_options(pod: &Pod, outdated: Option<Outdated>) -> LaunchOptions {
    let trace = traced_categories(pod::annotation(pod, NSYS_TRACE_ANNOTATION), outdated);
    let fixed = Fixed::of(pod);
    let cuda_graph_trace = trace
        .contains(&TraceCategory::Cuda)
        .then_some(cuda_graph_trace(fixed.cuda_graph_trace));
    let nvtx_capture = fixed.nvtx_capture.filter(|_| trace.contains(&TraceCategory::Nvtx));
    LaunchOptions {
        session: NSYS_SESSION.to_owned(),
        trace: trace.into_iter().map(|category| category.as_str().to_owned()).collect(),
        cuda_graph_trace,
        nvtx_capture,
        trace_fork_before_exec: false,
    }
}

async fn graft(node: Arc<Node>, turns: Arc<Semaphore>, launcher: Candidate, wanted: Graft) {
    let Ok(_turn) = turns.acquire_owned().await else { return };
    let pid = launcher.process.pid;
    let Some(container) = launcher.container else { return };
    let container = container.container_id;
    let target = node.entering.target(&container, launcher.process);
    let work = work(&node, target, wanted, &container);
    let outcome = match timeout(GRAFT_TIMEOUT + HELD_TIMEOUT + Duration::from_secs(20), work).await {
        Ok(Ok(Ok((state, _)))) if state.grafted => {
            info!(pid, container, waited_ms = state.waited_ms, kept = ?state.kept, "grafted");
            GraftOutcome::Grafted
        }
        Ok(Ok(Ok((state, failure)))) => {
            warn!(
                pid,
                container,
                reason = state.reason,
                failure,
                "the launcher went on plainly"
            );
            GraftOutcome::Failed
        }
        Ok(Ok(Err(error))) => {
            warn!(pid, container, error = %chain(&error), "the session was not started; the launcher goes on plainly");
            GraftOutcome::Failed
        }
        Ok(Err(error)) => {
            warn!(pid, container, %error, "the graft ended early");
            GraftOutcome::Failed
        }
        Err(_) => {
            warn!(pid, container, "the graft took too long; the launcher goes on plainly");
            GraftOutcome::Failed
        }
    };
    node.metrics.graft(outcome);
}

/// Starts the session, and a collection before the launcher goes on where that is wanted; returns
/// what the launcher did.
async fn work(
    node: &Node,
    target: Target,
    wanted: Graft,
    container: &str,
) -> Result<Result<(LauncherState, Option<String>), GraftError>, tokio::task::JoinError> {
    let Some(pod_uid) = wanted.held_for else {
        return tokio::task::spawn_blocking(move || {
            start(&target, |target| target.start_session(&wanted.options))?;
            settle(&target)
        })
        .await;
    };
    let starting = target.clone();
    let held = tokio::task::spawn_blocking(move || {
        start(&starting, |target| target.start_session_held(&wanted.options))?;
        starting.await_held(GRAFT_TIMEOUT)
    });
    match held.await? {
        Ok(true) => {
            let answer = node.starts.offer(&pod_uid, container).await;
            info!(container, ?answer, "a container waited for its collection");
        }
        Ok(false) => {}
        Err(error) => return Ok(Err(error)),
    }
    tokio::task::spawn_blocking(move || {
        // Whatever came of it: the program starts now.
        if let Err(error) = target.release() {
            debug!(error = %chain(&error), "the launcher was not released; it goes on by itself");
        }
        settle(&target)
    })
    .await
}

/// What the launcher did, and why there is no session if there is none.
fn settle(target: &Target) -> Result<(LauncherState, Option<String>), GraftError> {
    let state = target.await_state(GRAFT_TIMEOUT)?;
    Ok((state, target.failure()))
}

/// Starts the session, or tells the launcher why there is none.
fn start(target: &Target, session: impl Fn(&Target) -> Result<(), GraftError>) -> Result<(), GraftError> {
    session(target).inspect_err(|error| {
        let told = target.refuse(&chain(error));
        debug!(told = told.is_ok(), "told the launcher that there is no session");
    })
}

/// Removes the cgroups of sessions that ended; one with a process in it stays.
fn remove_empty_cgroups(root: &Path) {
    let joint = root.join("cgroup.controllers").exists();
    let hierarchies: Vec<PathBuf> = if joint {
        vec![root.to_owned()]
    } else {
        std::fs::read_dir(root)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect()
    };
    let old = |path: &Path| {
        let age = std::fs::metadata(path)
            .and_then(|facts| facts.modified())
            .map(|time| SystemTime::now().duration_since(time));
        matches!(age, Ok(Ok(age)) if age > CGROUP_SWEEP_INTERVAL)
    };
    let names = hierarchies
        .iter()
        .flat_map(|hierarchy| {
            std::fs::read_dir(hierarchy.join(CGROUP))
                .into_iter()
                .flatten()
                .flatten()
        })
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()) && old(&entry.path()))
        .filter_map(|entry| entry.file_name().into_string().ok());
    for name in names.collect::<std::collections::BTreeSet<_>>() {
        match own_cgroup::remove(root, &format!("{CGROUP}/{name}")) {
            Ok(removed) => debug!(name, removed, "looked at a session's cgroup"),
            Err(error) => debug!(name, error, "a session's cgroup cannot be removed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt;

    use super::*;
    use flopwatch_api::preparation::{NSYS_CUDA_GRAPH_ANNOTATION, NSYS_NVTX_CAPTURE_ANNOTATION, PREPARED_ANNOTATION};
    use flopwatch_attach::nsys::CudaGraphTrace;

    fn pod(annotations: &[(&str, &str)], container_id: Option<&str>) -> Pod {
        let statuses = container_id.map_or_else(Vec::new, |id| {
            vec![
                serde_json::json!({"name": "main", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                "containerID": format!("containerd://{id}"), "state": {"running": {}}}),
            ]
        });
        let annotations: BTreeMap<_, _> = annotations.iter().copied().collect();
        serde_json::from_value(serde_json::json!({
            "metadata": {"name": "p", "uid": "u", "annotations": annotations}, "status": {"containerStatuses": statuses},
        }))
        .unwrap()
    }

    #[test]
    fn only_a_prepared_container_is_grafted() {
        let rows = [
            (pod(&[(PREPARED_ANNOTATION, "main")], Some("abc")), true),
            (pod(&[(PREPARED_ANNOTATION, "main")], None), true),
            (pod(&[(PREPARED_ANNOTATION, "side")], Some("abc")), false),
            (pod(&[(PREPARED_ANNOTATION, "")], None), false),
            (pod(&[], None), false),
        ];
        for (pod, grafted) in rows {
            assert_eq!(is_prepared(&pod, "abc"), grafted, "{:?}", pod.annotations());
        }
    }

    #[test]
    fn launchers_of_older_versions_are_served_and_those_of_later_ones_left_alone() {
        let held = |start: &str, protocol: u32| {
            let annotations = [(PREPARED_ANNOTATION, "main"), (START_ANNOTATION, start)];
            wanted(&pod(&annotations, Some("abc")), protocol, None)
                .held_for
                .is_some()
        };
        assert!(!held("Now", 1));
        assert!(!held("ContainerStart", 1), "it would not wait for its collection");
        assert!(!held("Now", 2));
        assert!(held("ContainerStart", 2));
        assert!(speaks(1) && speaks(2) && !speaks(99));
    }

    #[test]
    fn the_pods_annotations_fix_what_is_traced() {
        let trace = |annotations: &[(&str, &str)]| {
            let options = launch_options(&pod(annotations, None), None);
            (options.trace.join(","), options.cuda_graph_trace)
        };
        assert_eq!(trace(&[]), ("cuda,nvtx".to_owned(), Some(CudaGraphTrace::Graph)));
        let node = (NSYS_CUDA_GRAPH_ANNOTATION, "node");
        assert_eq!(trace(&[node]), ("cuda,nvtx".to_owned(), Some(CudaGraphTrace::Node)));
        assert_eq!(
            trace(&[(NSYS_TRACE_ANNOTATION, "osrt, nvtx"), node]),
            ("nvtx,osrt".to_owned(), None)
        );
        assert_eq!(
            trace(&[(NSYS_TRACE_ANNOTATION, "--evil")]),
            ("cuda,nvtx".to_owned(), Some(CudaGraphTrace::Graph))
        );
    }

    #[test]
    fn a_range_to_capture_is_fixed_where_ranges_are_traced() {
        let range = (NSYS_NVTX_CAPTURE_ANNOTATION, "train step@torch");
        let captures = |annotations: &[(&str, &str)]| launch_options(&pod(annotations, None), None).nvtx_capture;
        assert_eq!(captures(&[range]).as_deref(), Some("train step@torch"));
        assert_eq!(captures(&[range, (NSYS_TRACE_ANNOTATION, "cuda")]), None);
        assert_eq!(captures(&[]), None);
    }
}
