//! The flight recorders' files of the node's containers: each goes with its pod, so it is held open while the container runs. Its heartbeat is read
//! meanwhile, and it is copied when the container ended abnormally.

mod shelf;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_api::pod;
use flopwatch_api::preparation::{PreparationWord, RECORDER_BYTES, RECORDER_DIR, RECORDER_FILE};
use flopwatch_attach::rootfs::ContainerRoot;
use flopwatch_nvml::ContainerIdentity;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use kube::ResourceExt as _;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::{info, warn};

use super::Node;
use super::heartbeats::BEAT;
use super::work::utc_ns;
use crate::failure::chain;
pub(crate) use shelf::Ended;
pub use shelf::Recordings;

/// Time between two looks at the node's pods.
const LOOK: Duration = Duration::from_secs(1);
/// Time until a container's file is looked for again that was not there.
const AGAIN: Duration = Duration::from_secs(5);
/// Longest time between two sweeps of what is kept, which is swept too when something was added.
const SWEEP: Duration = Duration::from_mins(1);
/// How long a container's files are waited for.
const FILES: Duration = Duration::from_secs(5);
/// Most files that are held open.
const MOST: usize = 256;
/// How the agent is named on Events.
const CONTROLLER: &str = "flopwatch-agent";
/// Their reason.
const KEPT: &str = "RecordingKept";

/// What is to be done about a container, by the ID that the runtime gave it.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// It runs, and its file is not held.
    Open(ContainerIdentity),
    /// It ended abnormally.
    Keep(Ended),
    /// It ended as it should, or its pod is gone.
    Forget,
}

/// What the node's pods ask for, of which the files in `held` are held.
fn steps(pods: &[Arc<Pod>], held: &BTreeSet<String>) -> Vec<(String, Step)> {
    let mut steps = Vec::new();
    let mut known = BTreeSet::new();
    for pod in pods {
        let statuses = pod
            .status
            .as_ref()
            .and_then(|status| status.container_statuses.as_ref());
        for status in statuses.into_iter().flatten() {
            if !pod::prepared_for(pod, &status.name).contains(PreparationWord::Recorder) {
                continue;
            }
            let state = status.state.as_ref();
            if state.is_some_and(|state| state.running.is_some())
                && let Some(id) = status.container_id.as_deref().map(bare)
            {
                known.insert(id.to_owned());
                if !held.contains(id) {
                    let whose = ContainerIdentity {
                        namespace: pod.namespace().unwrap_or_default(),
                        pod: pod.name_any(),
                        container: status.name.clone(),
                    };
                    steps.push((id.to_owned(), Step::Open(whose)));
                }
            }
            let states = [state, status.last_state.as_ref()];
            for terminated in states
                .into_iter()
                .flatten()
                .filter_map(|state| state.terminated.as_ref())
            {
                let id = terminated.container_id.as_deref().map(bare).unwrap_or_default();
                if held.contains(id) && known.insert(id.to_owned()) {
                    steps.push((id.to_owned(), ended(pod, &status.name, id, terminated)));
                }
            }
        }
    }
    let gone = held.difference(&known);
    steps.extend(gone.map(|id| (id.clone(), Step::Forget)));
    steps
}

/// Without the name of the runtime.
fn bare(id: &str) -> &str {
    id.split_once("://").map_or(id, |(_, id)| id)
}

/// What to do about a container that has ended. One whose pod is deleted ends as it should, whatever its code.
fn ended(pod: &Pod, container: &str, id: &str, terminated: &ContainerStateTerminated) -> Step {
    if terminated.exit_code == 0 || pod.metadata.deletion_timestamp.is_some() {
        return Step::Forget;
    }
    let finished = terminated.finished_at.as_ref().map(|time| time.0.as_nanosecond());
    // The kubelet tells whole seconds: the next one is no earlier than the end.
    let second_after = finished
        .and_then(|time| u64::try_from(time).ok())
        .map(|time| time.saturating_add(1_000_000_000));
    Step::Keep(Ended {
        namespace: pod.namespace().unwrap_or_default(),
        pod: pod.name_any(),
        pod_uid: pod.uid().unwrap_or_default(),
        container: container.to_owned(),
        container_id: id.to_owned(),
        exit_code: terminated.exit_code,
        reason: terminated.reason.clone().unwrap_or_default(),
        at_utc_ns: second_after.unwrap_or_else(utc_ns),
    })
}

/// Holds files until the node is told to stop.
pub(crate) async fn run(node: Arc<Node>) {
    let mut held: BTreeMap<String, Arc<File>> = BTreeMap::new();
    let mut absent: BTreeMap<String, Instant> = BTreeMap::new();
    let mut swept: Option<Instant> = None;
    let mut ticks = interval(BEAT);
    let mut looked: Option<Instant> = None;
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut pods_changed = node.pods_changed.subscribe();
    pods_changed.mark_changed();
    loop {
        let reads = !held.is_empty();
        // Without a file there is nothing to read, and a pod that comes brings one.
        let due = async {
            if reads {
                ticks.tick().await;
            } else {
                let pause = if absent.is_empty() { SWEEP } else { AGAIN };
                timeout(pause, pods_changed.changed()).await.ok();
            }
        };
        if node.stop.run_until_cancelled(due).await.is_none() {
            return;
        }
        absent.retain(|_, since| since.elapsed() < AGAIN);
        let steps = if !reads || looked.is_none_or(|then| then.elapsed() >= LOOK) {
            looked = Some(Instant::now());
            let ids = held.keys().cloned().collect();
            steps(&node.pods.state(), &ids)
        } else {
            Vec::new()
        };
        for (id, step) in steps {
            match step {
                Step::Open(_) if absent.contains_key(&id) || held.len() >= MOST => {}
                Step::Open(whose) => match open(&node, id.clone()).await {
                    Some(file) => {
                        let file = Arc::new(file);
                        node.heartbeats.begin(&id, whose, Arc::clone(&file));
                        held.insert(id, file);
                    }
                    None => drop(absent.insert(id, Instant::now())),
                },
                Step::Keep(ended) => {
                    node.heartbeats.end(&id);
                    if let Some(file) = held.remove(&id).filter(|_| node.recordings.is_on()) {
                        keep(&node, file, ended).await;
                        swept = None;
                    }
                }
                Step::Forget => {
                    node.heartbeats.end(&id);
                    held.remove(&id);
                }
            }
        }
        let sweep = swept.is_none_or(|then| then.elapsed() >= SWEEP);
        if sweep {
            swept = Some(Instant::now());
        }
        if !sweep && held.is_empty() {
            continue;
        }
        let of = Arc::clone(&node);
        let looked = tokio::task::spawn_blocking(move || {
            of.heartbeats.read();
            if sweep {
                of.recordings.sweep(utc_ns());
            }
        });
        if let Err(error) = looked.await {
            warn!(%error, "a look at the flight recorders' files ended early");
        }
    }
}

/// The recorder's file of a container that runs; none where it is not there yet.
async fn open(node: &Node, id: String) -> Option<File> {
    let (containers, gate) = (Arc::clone(&node.containers), node.entering.gate.clone());
    let opened = tokio::task::spawn_blocking(move || {
        let process = containers.first_process(&id)?;
        let procfs = containers.procfs();
        let path = Path::new(RECORDER_DIR).join(RECORDER_FILE);
        let opened = gate.within(&id, FILES, move || {
            ContainerRoot::open(&procfs, process)?.open_file(&path, *RECORDER_BYTES.end())
        });
        opened.ok()?.ok()
    });
    opened.await.ok().flatten()
}

/// Copies a file, and says on the pod how to get it.
async fn keep(node: &Node, file: Arc<File>, ended: Ended) {
    let (recordings, of) = (node.recordings.clone(), ended.clone());
    let kept = tokio::task::spawn_blocking(move || recordings.keep(&of, &file)).await;
    let why = match kept {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(chain(&error)),
        Err(error) => Some(chain(&error)),
    };
    let (pod, container) = (&ended.pod, &ended.container);
    if let Some(why) = why {
        warn!(pod, container, why, "what the flight recorder held is not kept");
        return;
    }
    info!(
        pod,
        container,
        code = ended.exit_code,
        "kept what the flight recorder held"
    );
    let reason = if ended.reason.is_empty() {
        String::new()
    } else {
        format!(" ({})", ended.reason)
    };
    let event = Event {
        type_: EventType::Normal,
        reason: KEPT.to_owned(),
        note: Some(format!(
            "container {container} ended with code {}{reason}; what its flight recorder held is kept on the node for {} h: kubectl flopwatch \
             recent pod/{pod} -n {} -c {container}",
            ended.exit_code,
            node.recordings.hours(),
            ended.namespace
        )),
        action: "Record".to_owned(),
        secondary: None,
    };
    let reporter = Reporter {
        controller: CONTROLLER.to_owned(),
        instance: Some(node.name.clone()),
    };
    let about = k8s_openapi::api::core::v1::ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(ended.pod.clone()),
        namespace: Some(ended.namespace.clone()),
        uid: Some(ended.pod_uid.clone()),
        ..k8s_openapi::api::core::v1::ObjectReference::default()
    };
    let published = Recorder::new(node.client.clone(), reporter)
        .publish(&event, &about)
        .await;
    if let Err(error) = published {
        warn!(error = %chain(&error), pod, "the pod has no Event of what is kept");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(words: &str, state: &Value, last: &Value) -> Arc<Pod> {
        Arc::new(
            serde_json::from_value(json!({
                "metadata": {
                    "name": "p", "namespace": "team", "uid": "u",
                    "annotations": {"flopwatch.dev/prepared-for": format!("main: {words}")}
                },
                "status": {"containerStatuses": [{
                    "name": "main", "image": "", "imageID": "", "ready": true, "restartCount": 0, "containerID": "containerd://new",
                    "state": state, "lastState": last
                }]}
            }))
            .unwrap(),
        )
    }

    fn terminated(id: &str, code: i32) -> Value {
        json!({"terminated": {
            "containerID": format!("containerd://{id}"), "exitCode": code, "reason": "OOMKilled", "finishedAt": "2026-11-24T00:00:00Z"
        }})
    }

    fn held(ids: &[&str]) -> BTreeSet<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn a_container_that_runs_is_held_if_its_pod_has_a_recorder() {
        let running = json!({"running": {}});
        let of = |words: &str, ids: &[&str]| steps(&[pod(words, &running, &json!({}))], &held(ids));
        let whose = ContainerIdentity {
            namespace: "team".to_owned(),
            pod: "p".to_owned(),
            container: "main".to_owned(),
        };
        assert_eq!(of("nsys.recorder", &[]), [("new".to_owned(), Step::Open(whose))]);
        assert_eq!(of("nsys", &[]), []);
        assert_eq!(of("recorder", &["new"]), []);
    }

    #[test]
    fn what_ended_abnormally_is_kept_and_anything_else_forgotten() {
        let running = json!({"running": {}});
        let ended = |step: &[(String, Step)]| match step {
            [(id, Step::Keep(ended))] => (id.clone(), ended.exit_code, ended.at_utc_ns % 1_000_000_000),
            other => panic!("{other:?}"),
        };
        let again = steps(
            &[pod("recorder", &running, &terminated("old", 137))],
            &held(&["new", "old"]),
        );
        assert_eq!(ended(&again), ("old".to_owned(), 137, 0));
        let for_good = steps(&[pod("recorder", &terminated("new", 1), &json!({}))], &held(&["new"]));
        assert_eq!(ended(&for_good).1, 1);
        let forgotten = [("new".to_owned(), Step::Forget)];
        let well = pod("recorder", &terminated("new", 0), &json!({}));
        assert_eq!(steps(&[well], &held(&["new"])), forgotten);
        assert_eq!(steps(&[], &held(&["new"])), forgotten, "its pod is gone");
        let mut deleted = Pod::clone(&pod("recorder", &terminated("new", 137), &json!({})));
        deleted.metadata.deletion_timestamp = serde_json::from_value(json!("2026-11-24T00:00:00Z")).unwrap();
        assert_eq!(steps(&[Arc::new(deleted)], &held(&["new"])), forgotten);
    }
}
