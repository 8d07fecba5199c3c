//! Which containers of which pods a session means. Only pods of the session's own namespace are
//! ever looked at.

use std::collections::BTreeSet;
use std::sync::Arc;

use flopwatch_api::pod;
use flopwatch_api::profiler::ProfilerType;
use flopwatch_api::reason::SessionReason;
use flopwatch_api::session::TargetSpec;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt as _;
use kube::core::{ParseExpressionError, Selector, SelectorExt as _};

use crate::preparation_failure::preparation_failure;
use crate::preparation_failure::unprepared::{self, unprepared};

/// One container to profile.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Name of the pod.
    pub pod_name: String,
    /// UID of the pod.
    pub pod_uid: String,
    /// Node that the pod runs on.
    pub node_name: String,
    /// Name of the container.
    pub container: String,
}

/// The result of selecting targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The containers to profile.
    Found(Vec<Target>),
    /// Nothing yet; the message says what is waited for.
    Waiting(String),
    /// Nothing, and waiting does not help.
    Impossible {
        /// `NoSuchContainer` or `NoDefaultContainer`.
        reason: SessionReason,
        /// What to do about it.
        message: String,
    },
}

/// Which pods a session can have for targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lives {
    /// Pods that run.
    Running,
    /// And those that have ended: what was recorded in them may be kept on the node.
    RunningOrEnded,
}

impl Lives {
    /// The pods that a session with this profiler may select.
    pub fn of(profiler: ProfilerType) -> Self {
        if profiler.outlives_pod() {
            Self::RunningOrEnded
        } else {
            Self::Running
        }
    }

    fn include(self, pod: &Pod) -> bool {
        let may_have_ended = self == Self::RunningOrEnded && pod::has_ended(pod);
        (pod::is_running(pod) || may_have_ended) && pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
    }
}

/// Chooses targets among `pods`, all of the session's namespace. Pods in `kept` have captures
/// already (a pass was cut off between two of them): they keep their places.
pub fn select(
    target: &TargetSpec,
    lives: Lives,
    namespace: &str,
    pods: &[Arc<Pod>],
    kept: &BTreeSet<String>,
) -> Selection {
    let running: Vec<&Pod> = match (&target.pod_name, &target.pod_selector) {
        (Some(name), _) => {
            let Some(pod) = pods.iter().find(|pod| pod.name_any() == *name) else {
                return Selection::Waiting(format!(
                    "there is no pod {name} in namespace {namespace}; a session targets pods of its own namespace only"
                ));
            };
            if !lives.include(pod) {
                let why = preparation_failure(pod).map_or_else(String::new, |failure| format!("; {}", failure.note()));
                return Selection::Waiting(format!("pod {name} is not running (phase {}){why}", pod::phase(pod)));
            }
            vec![pod.as_ref()]
        }
        (None, Some(selector)) => {
            let matching = match matching(selector, pods) {
                Ok(matching) => matching,
                Err(error) => return Selection::Waiting(format!("spec.target.podSelector cannot be used: {error}")),
            };
            let count = matching.len();
            let held_up = held_up(&matching);
            let running: Vec<&Pod> = matching.into_iter().filter(|pod| lives.include(pod)).collect();
            if running.is_empty() && kept.is_empty() {
                return Selection::Waiting(if count == 0 {
                    format!(
                        "no pod in namespace {namespace} matches spec.target.podSelector; a session targets pods of its own namespace only"
                    )
                } else {
                    let why = held_up.map_or_else(String::new, |why| format!("; {why}"));
                    format!("{count} pods match spec.target.podSelector and none of them is running{why}")
                });
            }
            running
        }
        (None, None) => return Selection::Waiting("spec.target names no pods".to_owned()),
    };
    choose_among(target, running, kept)
}

/// Chooses containers of pods that may be profiled.
pub fn choose_among(target: &TargetSpec, mut running: Vec<&Pod>, kept: &BTreeSet<String>) -> Selection {
    let key = |pod: &Pod| (!kept.contains(&uid(pod)), pod.creation_timestamp(), pod.name_any());
    running.sort_by_cached_key(|pod| key(pod));

    let mut targets = Vec::new();
    let gone = kept
        .iter()
        .filter(|kept| !running.iter().any(|pod| uid(pod) == **kept))
        .count();
    let mut places = usize::try_from(target.max_pods).unwrap_or(1).saturating_sub(gone);
    for pod in &running {
        if places == 0 {
            break;
        }
        let names: Vec<String> = if target.container_names.is_empty() {
            pod::default_containers(pod).into_iter().map(str::to_owned).collect()
        } else {
            let existing: BTreeSet<&str> = pod::profilable(pod).map(|container| container.name.as_str()).collect();
            target
                .container_names
                .iter()
                .filter(|name| existing.contains(name.as_str()))
                .cloned()
                .collect()
        };
        if names.is_empty() {
            continue;
        }
        places -= 1;
        targets.extend(names.into_iter().map(|container| {
            Target {
                pod_name: pod.name_any(),
                pod_uid: uid(pod),
                node_name: pod
                    .spec
                    .as_ref()
                    .and_then(|spec| spec.node_name.clone())
                    .unwrap_or_default(),
                container,
            }
        }));
    }
    refuse(target, &running, &targets).unwrap_or(Selection::Found(targets))
}

/// Matching pods that would have been chosen too, had their preparation not held them up; in words.
pub fn left_out(target: &TargetSpec, pods: &[Arc<Pod>], targets: &[Target]) -> Option<String> {
    let chosen: BTreeSet<&str> = targets.iter().map(|target| target.pod_uid.as_str()).collect();
    let places = usize::try_from(target.max_pods).unwrap_or(1);
    let selector = target.pod_selector.as_ref().filter(|_| target.pod_name.is_none())?;
    (chosen.len() < places)
        .then(|| matching(selector, pods).ok())
        .flatten()
        .and_then(|pods| held_up(&pods))
}

/// Which of the chosen pods asked to be prepared and are not, and why; of the first by name, in
/// words.
pub fn not_prepared(pods: &[Arc<Pod>], targets: &[Target]) -> Option<String> {
    let chosen: BTreeSet<&str> = targets.iter().map(|target| target.pod_uid.as_str()).collect();
    let mut found: Vec<(String, String)> = pods
        .iter()
        .filter(|pod| chosen.contains(uid(pod).as_str()))
        .filter_map(|pod| Some((pod.name_any(), unprepared::note(pod, unprepared(pod)?))))
        .collect();
    found.sort();
    let (name, note) = found.into_iter().next()?;
    Some(format!("pod {name}: {note}"))
}

fn matching<'a>(selector: &LabelSelector, pods: &'a [Arc<Pod>]) -> Result<Vec<&'a Pod>, ParseExpressionError> {
    let selector: Selector = selector.clone().try_into()?;
    let matches = |pod: &&Pod| selector.matches(pod.labels());
    Ok(pods.iter().map(AsRef::as_ref).filter(matches).collect())
}

/// What keeps prepared pods from starting: of the first by name, and who shares it, so that it
/// reads the same in each pass.
fn held_up(pods: &[&Pod]) -> Option<String> {
    let mut held_up: Vec<(&Pod, String)> = pods
        .iter()
        .filter_map(|pod| Some((*pod, preparation_failure(pod)?.note())))
        .collect();
    held_up.sort_by_cached_key(|(pod, _)| pod.name_any());
    let (_, note) = held_up.first()?;
    let alike = held_up.iter().filter(|(_, other)| other == note);
    let alike: Vec<&Pod> = alike.map(|(pod, _)| *pod).collect();
    Some(format!("{}: {note}", pod_names(&alike)))
}

/// The refusal, if what was found is not what was named.
fn refuse(target: &TargetSpec, running: &[&Pod], targets: &[Target]) -> Option<Selection> {
    if target.container_names.is_empty() {
        return targets.is_empty().then(|| Selection::Impossible {
            reason: SessionReason::NoDefaultContainer,
            message: format!(
                "no container of {} asks for a GPU and none was prepared: name one in spec.target.containerNames ({})",
                pod_names(running),
                existing_names(running)
            ),
        });
    }
    let missing: Vec<&str> = target
        .container_names
        .iter()
        .filter(|name| !targets.iter().any(|target| target.container == **name))
        .map(String::as_str)
        .collect();
    (!missing.is_empty()).then(|| Selection::Impossible {
        reason: SessionReason::NoSuchContainer,
        message: format!(
            "{} has no container {}; it has {}",
            pod_names(running),
            missing.join(", "),
            existing_names(running)
        ),
    })
}

fn pod_names(pods: &[&Pod]) -> String {
    let shown: Vec<String> = pods.iter().take(5).map(|pod| pod.name_any()).collect();
    match pods.len() - shown.len() {
        0 if shown.len() == 1 => format!("pod {}", shown.concat()),
        0 => format!("pods {}", shown.join(", ")),
        more => format!("pods {} and {more} more", shown.join(", ")),
    }
}

fn existing_names(pods: &[&Pod]) -> String {
    let names: BTreeSet<&str> = pods
        .iter()
        .flat_map(|pod| pod::profilable(pod))
        .map(|container| container.name.as_str())
        .collect();
    names.into_iter().take(32).collect::<Vec<_>>().join(", ")
}

fn uid(pod: &Pod) -> String {
    pod.uid().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use flopwatch_api::preparation::PREPARED_FOR_ANNOTATION;

    use crate::preparation_failure::tests::{exited, parsed, prepared, waiting};

    fn pod(name: &str, created: &str, phase: &str, containers: &Value) -> Arc<Pod> {
        Arc::new(
            serde_json::from_value(json!({
                "metadata": {
                    "name": name, "namespace": "team", "uid": format!("uid-{name}"), "labels": {"app": "train"},
                    "creationTimestamp": created
                },
                "spec": {"nodeName": "n1", "containers": containers},
                "status": {"phase": phase}
            }))
            .unwrap(),
        )
    }

    #[test]
    fn what_the_preparation_holds_up_is_said_with_the_remedy() {
        let held = |name: &str, reason: &str| Arc::new(parsed(&prepared(name, &exited(0), &waiting(reason))));
        let running = pod("a", "2026-01-01T00:00:00Z", "Running", &json!([gpu("c")]));
        let pods = [
            held("c", "ErrImagePull"),
            held("b", "ImagePullBackOff"),
            held("d", "InvalidImageName"),
        ];
        let waits = |spec: Value| match select(&target(spec), Lives::Running, "team", &pods, &BTreeSet::new()) {
            Selection::Waiting(message) => message,
            other => panic!("{other:?}"),
        };
        let why = "image registry/nsys:1 of init container flopwatch-tools cannot be pulled: give the pod's service account pull secrets for it, or correct images.tools of Flopwatch or remove the label flopwatch.dev/prepare and create the pod anew";
        let selector = json!({"podSelector": {"matchLabels": {"app": "train"}}, "maxPods": 2});
        assert_eq!(
            waits(json!({"podName": "b"})),
            format!("pod b is not running (phase Pending); {why}")
        );
        assert_eq!(
            waits(selector.clone()),
            format!("3 pods match spec.target.podSelector and none of them is running; pods b, c: {why}")
        );

        let some = [Arc::clone(&running), held("b", "ErrImagePull")];
        let left = |spec: &Value, pods: &[Arc<Pod>]| {
            let spec = target(spec.clone());
            match select(&spec, Lives::Running, "team", pods, &BTreeSet::new()) {
                Selection::Found(targets) => left_out(&spec, pods, &targets),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(left(&selector, &some), Some(format!("pod b: {why}")));
        let one = json!({"podSelector": {"matchLabels": {"app": "train"}}, "maxPods": 1});
        assert_eq!(left(&one, &some), None, "as many as were asked for");
        assert_eq!(left(&selector, &[running]), None);
        assert_eq!(left(&json!({"podName": "a"}), &some), None);
    }

    fn gpu(name: &str) -> Value {
        json!({"name": name, "resources": {"limits": {"nvidia.com/gpu": "1"}}})
    }

    fn target(value: Value) -> TargetSpec {
        serde_json::from_value(value).unwrap()
    }

    fn found(spec: &TargetSpec, pods: &[Arc<Pod>], kept: &BTreeSet<String>) -> Vec<String> {
        match select(spec, Lives::Running, "team", pods, kept) {
            Selection::Found(targets) => targets
                .into_iter()
                .map(|target| format!("{}/{}", target.pod_name, target.container))
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_selector_takes_running_pods_oldest_first() {
        let one = json!([gpu("main"), {"name": "side"}]);
        let pods = [
            pod("c", "2026-01-03T00:00:00Z", "Running", &one),
            pod("a", "2026-01-02T00:00:00Z", "Running", &one),
            pod("b", "2026-01-01T00:00:00Z", "Pending", &one),
            pod("d", "2026-01-04T00:00:00Z", "Running", &one),
        ];
        let spec = target(json!({"podSelector": {"matchLabels": {"app": "train"}}, "maxPods": 2}));
        assert_eq!(found(&spec, &pods, &BTreeSet::new()), ["a/main", "c/main"]);
        let kept = BTreeSet::from(["uid-d".to_owned()]);
        assert_eq!(found(&spec, &pods, &kept), ["d/main", "a/main"]);
        let vanished = BTreeSet::from(["uid-x".to_owned(), "uid-y".to_owned()]);
        let nothing = select(&spec, Lives::Running, "team", &pods, &vanished);
        assert!(
            !matches!(nothing, Selection::Found(ref targets) if !targets.is_empty()),
            "{nothing:?}"
        );
    }

    #[test]
    fn default_containers_ask_for_a_gpu_or_a_claim_or_were_prepared() {
        let claim = json!({"name": "dra", "resources": {"claims": [{"name": "gpu"}]}});
        let spec = target(json!({"podName": "p"}));
        let containers = json!([{"name": "x"}, claim, gpu("g")]);
        let pods = [pod("p", "2026-01-01T00:00:00Z", "Running", &containers)];
        assert_eq!(found(&spec, &pods, &BTreeSet::new()), ["p/dra", "p/g"]);

        let plain = json!([{"name": "x"}, {"name": "y"}]);
        let mut prepared = pod("p", "2026-01-01T00:00:00Z", "Running", &plain);
        let annotations = Arc::make_mut(&mut prepared).annotations_mut();
        annotations.insert(PREPARED_FOR_ANNOTATION.to_owned(), "y: nsys\ngone: nsys".to_owned());
        assert_eq!(found(&spec, &[prepared], &BTreeSet::new()), ["p/y"]);
    }

    #[test]
    fn what_cannot_be_met_says_what_there_is() {
        let plain = json!([{"name": "x"}, {"name": "y"}]);
        let pods = [
            pod("p", "2026-01-01T00:00:00Z", "Running", &plain),
            pod("q", "2026-01-01T00:00:00Z", "Pending", &plain),
        ];
        let cases = [
            (
                json!({"podName": "p", "containerNames": ["z", "x"]}),
                "NoSuchContainer: pod p has no container z; it has x, y",
            ),
            (
                json!({"podName": "p"}),
                "NoDefaultContainer: no container of pod p asks for a GPU and none was prepared: name one in spec.target.containerNames (x, y)",
            ),
            (json!({"podName": "q"}), "waiting: pod q is not running (phase Pending)"),
            (
                json!({"podName": "r"}),
                "waiting: there is no pod r in namespace team; a session targets pods of its own namespace only",
            ),
            (
                json!({"podSelector": {"matchLabels": {"app": "other"}}}),
                "waiting: no pod in namespace team matches spec.target.podSelector; a session targets pods of its own namespace only",
            ),
        ];
        for (spec, expected) in cases {
            let text = match select(&target(spec.clone()), Lives::Running, "team", &pods, &BTreeSet::new()) {
                Selection::Found(targets) => panic!("{spec} found {targets:?}"),
                Selection::Waiting(message) => format!("waiting: {message}"),
                Selection::Impossible { reason, message } => format!("{reason}: {message}"),
            };
            assert_eq!(text, expected);
        }
    }
}
