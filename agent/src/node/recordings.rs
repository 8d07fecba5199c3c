//! The flight recorders' files of the node's containers: each goes with its pod, so it is held open
//! while the container runs. Its heartbeat is read meanwhile, and it is copied when the container
//! ended abnormally.
//!
//! A file is its container's to write, and so is what lies in its place. It is opened where it lies
//! in memory alone, so that nobody but the kernel answers for it, and every look at one is on a
//! thread that may be left behind: a container whose file does not answer keeps no other waiting.

mod hold;
mod keep;
mod shelf;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use flopwatch_api::pod;
use flopwatch_api::preparation::PreparationWord;
use flopwatch_attach::bounded::{Gate, Late};
use flopwatch_nvml::{ContainerIdentity, utc_ns};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use kube::ResourceExt as _;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::warn;

use super::Node;
use super::heartbeats::HEARTBEAT_INTERVAL;
pub(crate) use shelf::EndedContainer;
pub use shelf::Recordings;

/// Most files that are held open, and most that wait to be kept.
const MAX_FILES: usize = 256;

/// What is to be done about a container, by the ID that the runtime gave it.
#[derive(Clone, Debug, PartialEq)]
enum RecordingStep {
    /// The container runs, and its file is not held.
    Open(ContainerIdentity),
    /// The container ended abnormally.
    Keep(EndedContainer),
    /// The container exited with 0, or its pod is deleted or gone.
    Forget,
}

/// What the node's pods ask for, of which the files in `held` are held.
fn steps(pods: &[Arc<Pod>], held: &BTreeSet<String>) -> Vec<(String, RecordingStep)> {
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
                    steps.push((id.to_owned(), RecordingStep::Open(whose)));
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
    steps.extend(gone.map(|id| (id.clone(), RecordingStep::Forget)));
    steps
}

/// Without the name of the runtime.
fn bare(id: &str) -> &str {
    id.split_once("://").map_or(id, |(_, id)| id)
}

/// What to do about a container that has ended. One whose pod is deleted ends as it should,
/// whatever its code.
fn ended(pod: &Pod, container: &str, id: &str, terminated: &ContainerStateTerminated) -> RecordingStep {
    if terminated.exit_code == 0 || pod.metadata.deletion_timestamp.is_some() {
        return RecordingStep::Forget;
    }
    let finished = terminated.finished_at.as_ref().map(|time| time.0.as_nanosecond());
    // The kubelet tells whole seconds: the next one is no earlier than the end.
    let second_after = finished
        .and_then(|time| u64::try_from(time).ok())
        .map(|time| time.saturating_add(1_000_000_000));
    RecordingStep::Keep(EndedContainer {
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
    // Of its own, so that what is left behind here takes no place of what looks at containers
    // elsewhere.
    let gate = Gate::default();
    let (holds, held) = watch::channel(false);
    let (ended, to_keep) = mpsc::channel(MAX_FILES);
    tokio::join!(
        beat(&node, held),
        hold::run(&node, &gate, &holds, &ended),
        keep::run(&node, &gate, to_keep),
    );
}

/// Reads heartbeats while a file is held.
async fn beat(node: &Arc<Node>, mut held: watch::Receiver<bool>) {
    let mut ticks = interval(HEARTBEAT_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        let due = async {
            let is_held = held.wait_for(|held| *held).await.is_ok();
            ticks.tick().await;
            is_held
        };
        if node.stop.run_until_cancelled(due).await != Some(true) {
            return;
        }
        let heartbeats = node.heartbeats.clone();
        if let Err(error) = tokio::task::spawn_blocking(move || heartbeats.read()).await {
            warn!(%error, "a look at the flight recorders' files ended early");
        }
    }
}

/// Has `work` done on a thread of its own, and waits for it, at most `limit`.
pub(super) async fn within<T: Send + 'static>(
    gate: &Gate,
    key: &str,
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Late> {
    let (told, answer) = oneshot::channel();
    // Nobody listens any more where it came too late.
    gate.begin(key, work, move |found| drop(told.send(found)))?;
    match timeout(limit, answer).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(_ended)) => Err(Late::NoThread),
        Err(_late) => Err(Late::Waited(limit)),
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
        assert_eq!(
            of("nsys.recorder", &[]),
            [("new".to_owned(), RecordingStep::Open(whose))]
        );
        assert_eq!(of("nsys", &[]), []);
        assert_eq!(of("recorder", &["new"]), []);
    }

    #[test]
    fn what_ended_abnormally_is_kept_and_anything_else_forgotten() {
        let running = json!({"running": {}});
        let ended = |step: &[(String, RecordingStep)]| match step {
            [(id, RecordingStep::Keep(ended))] => (id.clone(), ended.exit_code, ended.at_utc_ns % 1_000_000_000),
            other => panic!("{other:?}"),
        };
        let again = steps(
            &[pod("recorder", &running, &terminated("old", 137))],
            &held(&["new", "old"]),
        );
        assert_eq!(ended(&again), ("old".to_owned(), 137, 0));
        let for_good = steps(&[pod("recorder", &terminated("new", 1), &json!({}))], &held(&["new"]));
        assert_eq!(ended(&for_good).1, 1);
        let forgotten = [("new".to_owned(), RecordingStep::Forget)];
        let well = pod("recorder", &terminated("new", 0), &json!({}));
        assert_eq!(steps(&[well], &held(&["new"])), forgotten);
        assert_eq!(steps(&[], &held(&["new"])), forgotten, "its pod is gone");
        let mut deleted = Pod::clone(&pod("recorder", &terminated("new", 137), &json!({})));
        deleted.metadata.deletion_timestamp = serde_json::from_value(json!("2026-11-24T00:00:00Z")).unwrap();
        assert_eq!(steps(&[Arc::new(deleted)], &held(&["new"])), forgotten);
    }

    #[tokio::test]
    async fn a_look_that_never_comes_back_is_waited_for_without_a_thread_of_the_runtime() {
        let gate = Gate::default();
        let (release, held) = std::sync::mpsc::sync_channel::<()>(0);
        let limit = Duration::from_millis(50);
        // There is one thread for all of this.
        let (late, quick) = tokio::join!(
            within(&gate, "hangs", limit, move || held.recv().is_ok()),
            within(&gate, "other", Duration::from_mins(1), || 1),
        );
        assert_eq!((late, quick), (Err(Late::Waited(limit)), Ok(1)));
        let again = within(&gate, "hangs", limit, || true).await;
        assert_eq!(again, Err(Late::Busy));
        release.send(()).unwrap();
        let ended = within(&gate, "ends", Duration::from_mins(1), || panic!("on purpose")).await;
        assert_eq!(ended, Err::<(), _>(Late::NoThread));
    }
}
