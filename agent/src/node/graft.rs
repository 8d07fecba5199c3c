//! Starts the profiler's session in prepared containers while their launcher waits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use flopwatch_api::preparation::{
    NSYS_CUDA_GRAPH_ANNOTATION, NSYS_SESSION, NSYS_TRACE_ANNOTATION, NSYS_TRACE_DEFAULT, PREPARED_ANNOTATION,
    START_ANNOTATION, split_names,
};
use flopwatch_api::profiler::TraceCategory;
use flopwatch_api::session::StartMode;
use flopwatch_attach::enter::{OwnCgroup, make_cgroup, remove_cgroup};
use flopwatch_attach::graft::{GraftError, LauncherScan, LauncherState, Target, WaitingLauncher, can_hold, speaks};
use flopwatch_attach::nsys::{CudaGraphTrace, LaunchOptions};
use flopwatch_attach::process::ProcessId;
use flopwatch_attach::reexec::ReexecError;
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::{debug, info, warn};

use crate::failure::chain;
use crate::metrics::GraftOutcome;
use crate::node::{Node, pods};

/// Time between two looks for waiting launchers.
const SCAN: Duration = Duration::from_millis(250);
/// Grafts at once; a node that starts many pods does not start as many sessions in the same moment.
const CONCURRENCY: usize = 8;
/// Longest graft; a launcher waits no longer.
const GRAFT: Duration = Duration::from_secs(30);
/// Longest wait of a held launcher for its collection.
const HELD: Duration = Duration::from_secs(25);
/// How long a pod that is not in the store yet is waited for: less than a launcher waits to be claimed.
const UNKNOWN: Duration = Duration::from_millis(2_500);
/// Folder of our cgroups in each hierarchy.
const CGROUP: &str = "flopwatch";
/// Time between two removals of empty cgroups, and their least age.
const CGROUPS: Duration = Duration::from_mins(1);

/// The cgroup of a container's session: outside the container's, so that its memory limit stays the workload's.
pub fn own_cgroup(root: &Path, container_id: &str) -> OwnCgroup {
    let short: String = container_id.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    OwnCgroup {
        root: root.to_owned(),
        name: format!("{CGROUP}/{short}"),
    }
}

/// Makes the folder of our cgroups in each hierarchy. The roots of cgroup file systems are closed even to their owner, so
/// this takes CAP_DAC_OVERRIDE; safe to repeat.
pub fn prepare_node(root: &Path) -> Result<(), String> {
    make_cgroup(&OwnCgroup {
        root: root.to_owned(),
        name: CGROUP.to_owned(),
    })
}

/// A session to start.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Graft {
    options: LaunchOptions,
    /// Whether a collection is to run before the launcher goes on: the pod's UID, by which its capture finds it.
    held_for: Option<String>,
}

/// What to do with a waiting launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Decision {
    Graft(Graft),
    Leave(GraftOutcome),
    /// The pod is not known yet.
    Wait,
}

/// Looks for waiting launchers until the node is told to stop.
pub async fn run(node: Arc<Node>) {
    let mut scan = LauncherScan::new(node.procfs.clone());
    let mut seen: BTreeMap<(i32, u64), (Instant, bool)> = BTreeMap::new();
    let turns = Arc::new(Semaphore::new(CONCURRENCY));
    let mut ticks = interval(SCAN);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut cgroups_due = Instant::now();
    while node.stop.run_until_cancelled(ticks.tick()).await.is_some() {
        let scanned = tokio::task::spawn_blocking(move || {
            let found = scan.scan();
            (scan, found)
        });
        let waiting = match scanned.await {
            Ok((back, Ok(waiting))) => {
                scan = back;
                waiting
            }
            Ok((back, Err(error))) => {
                warn!(%error, "looking for waiting launchers failed");
                scan = back;
                continue;
            }
            Err(error) => {
                warn!(%error, "the look for waiting launchers ended early");
                scan = LauncherScan::new(node.procfs.clone());
                continue;
            }
        };
        seen.retain(|key, _| waiting.iter().any(|launcher| identity(launcher.process) == *key));
        for launcher in waiting {
            let (first, done) = seen
                .entry(identity(launcher.process))
                .or_insert_with(|| (Instant::now(), false));
            if *done {
                continue;
            }
            let decision = decide(&node, &launcher);
            if decision == Decision::Wait && first.elapsed() < UNKNOWN {
                continue;
            }
            *done = true;
            match decision {
                Decision::Graft(wanted) => {
                    let (node, turns) = (Arc::clone(&node), Arc::clone(&turns));
                    tokio::spawn(graft(node, turns, launcher, wanted));
                }
                Decision::Leave(outcome) => leave(&node, &launcher, outcome),
                Decision::Wait => leave(&node, &launcher, GraftOutcome::UnknownPod),
            }
        }
        if cgroups_due <= Instant::now() {
            cgroups_due = Instant::now() + CGROUPS;
            let root = node.cgroup_root.clone();
            drop(tokio::task::spawn_blocking(move || remove_empty_cgroups(&root)));
        }
    }
}

const fn identity(process: ProcessId) -> (i32, u64) {
    (process.pid, process.start_time)
}

fn leave(node: &Node, launcher: &WaitingLauncher, outcome: GraftOutcome) {
    info!(pid = launcher.process.pid, container = ?launcher.container, outcome = outcome.as_str(), "left a launcher alone");
    node.metrics.graft(outcome);
}

/// Only what admission prepared is touched.
fn decide(node: &Node, launcher: &WaitingLauncher) -> Decision {
    let Some(container) = &launcher.container else {
        return Decision::Leave(GraftOutcome::NotPrepared);
    };
    match pods::by_uid(&node.pods, &container.pod_uid) {
        None => Decision::Wait,
        Some(pod) => decide_for(&pod, &container.container_id, launcher.protocol),
    }
}

fn decide_for(pod: &Pod, container_id: &str, protocol: u32) -> Decision {
    if !speaks(protocol) {
        return Decision::Leave(GraftOutcome::OtherVersion);
    }
    let prepared: Vec<_> = split_names(pods::annotation(pod, PREPARED_ANNOTATION).unwrap_or_default()).collect();
    let is_prepared = match pods::container_of_id(pod, container_id) {
        Some(name) => prepared.contains(&name.as_str()),
        // The kubelet says which container it is only after its start; admission alone wraps commands, so any will do.
        None => !prepared.is_empty(),
    };
    if is_prepared {
        let at_start = pods::annotation(pod, START_ANNOTATION) == Some(StartMode::ContainerStart.as_str());
        Decision::Graft(Graft {
            options: launch_options(pod),
            held_for: pod.metadata.uid.clone().filter(|_| at_start && can_hold(protocol)),
        })
    } else {
        Decision::Leave(GraftOutcome::NotPrepared)
    }
}

/// What is fixed with the container's start, from the pod's annotations.
fn launch_options(pod: &Pod) -> LaunchOptions {
    let listed = pods::annotation(pod, NSYS_TRACE_ANNOTATION).unwrap_or(NSYS_TRACE_DEFAULT);
    let mut trace: Vec<_> = split_names(listed).filter_map(TraceCategory::from_name).collect();
    if trace.is_empty() {
        trace = split_names(NSYS_TRACE_DEFAULT)
            .filter_map(TraceCategory::from_name)
            .collect();
    }
    trace.sort_unstable();
    trace.dedup();
    let node_level = pods::annotation(pod, NSYS_CUDA_GRAPH_ANNOTATION) == Some("node");
    let cuda_graph_trace = trace.contains(&TraceCategory::Cuda).then_some(if node_level {
        CudaGraphTrace::Node
    } else {
        CudaGraphTrace::Graph
    });
    LaunchOptions {
        session: NSYS_SESSION.to_owned(),
        trace: trace.into_iter().map(|category| category.as_str().to_owned()).collect(),
        cuda_graph_trace,
        trace_fork_before_exec: false,
    }
}

async fn graft(node: Arc<Node>, turns: Arc<Semaphore>, launcher: WaitingLauncher, wanted: Graft) {
    let Ok(_turn) = turns.acquire_owned().await else { return };
    let pid = launcher.process.pid;
    let container = launcher
        .container
        .as_ref()
        .map(|container| container.container_id.clone())
        .unwrap_or_default();
    let cgroup = own_cgroup(&node.cgroup_root, &container);
    let target = Target::of(&launcher, node.reexec.clone(), node.procfs.clone(), Some(cgroup));
    let work = work(&node, target, wanted, &container);
    let outcome = match timeout(GRAFT + HELD + Duration::from_secs(20), work).await {
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

/// Starts the session, and a collection before the launcher goes on where that is wanted; returns what the launcher did.
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
        starting.await_held(GRAFT)
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
    let state = target.await_state(GRAFT)?;
    Ok((state, target.failure()))
}

/// Starts the session; in the agent's own cgroup where the node's cannot be used, so that it lives no longer than the agent.
fn start(target: &Target, session: impl Fn(&Target) -> Result<(), GraftError>) -> Result<(), GraftError> {
    match session(target) {
        Err(GraftError::Enter(ReexecError::Stage { stage, message })) if stage == "join the cgroup" => {
            warn!(
                message,
                "the session gets no cgroup of its own: it ends with this agent"
            );
            session(&Target {
                cgroup: None,
                ..target.clone()
            })
        }
        other => {
            if let Err(error) = &other {
                let told = target.refuse(&chain(error));
                debug!(told = told.is_ok(), "told the launcher that there is no session");
            }
            other
        }
    }
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
        matches!(age, Ok(Ok(age)) if age > CGROUPS)
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
        let cgroup = OwnCgroup {
            root: root.to_owned(),
            name: format!("{CGROUP}/{name}"),
        };
        match remove_cgroup(&cgroup) {
            Ok(removed) => debug!(name, removed, "looked at a session's cgroup"),
            Err(error) => debug!(name, error, "a session's cgroup cannot be removed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt;

    use super::*;

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
            let decision = decide_for(&pod, "abc", 1);
            assert_eq!(
                matches!(decision, Decision::Graft(_)),
                grafted,
                "{:?}",
                pod.annotations()
            );
        }
    }

    #[test]
    fn launchers_of_older_versions_are_served_and_those_of_later_ones_left_alone() {
        let prepared = |start: &str| {
            let annotations = [(PREPARED_ANNOTATION, "main"), (START_ANNOTATION, start)];
            pod(&annotations, Some("abc"))
        };
        let held = |start: &str, protocol: u32| match decide_for(&prepared(start), "abc", protocol) {
            Decision::Graft(graft) => Some(graft.held_for.is_some()),
            _ => None,
        };
        assert_eq!(held("Now", 1), Some(false));
        assert_eq!(
            held("ContainerStart", 1),
            Some(false),
            "it would not wait for its collection"
        );
        assert_eq!(held("Now", 2), Some(false));
        assert_eq!(held("ContainerStart", 2), Some(true));
        let later = decide_for(&prepared("Now"), "abc", 99);
        assert_eq!(later, Decision::Leave(GraftOutcome::OtherVersion));
    }

    #[test]
    fn the_pods_annotations_fix_what_is_traced() {
        let trace = |annotations: &[(&str, &str)]| {
            let options = launch_options(&pod(annotations, None));
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
    fn a_cgroup_is_named_after_its_container() {
        let cgroup = own_cgroup(Path::new("/sys/fs/cgroup"), "0123456789abcdef0123/../x");
        assert_eq!(cgroup.name, "flopwatch/0123456789abcdef");
    }
}
