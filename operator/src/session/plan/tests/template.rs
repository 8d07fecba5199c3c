//! Sessions that make their own pod.

use flopwatch_api::preparation::{PREPARED_ANNOTATION, PREPARED_FOR_ANNOTATION, UNPREPARED_ANNOTATION};
use flopwatch_api::session::{PodTemplate, StartMode};

use super::*;
use crate::session::own_pod;
use crate::session::replica::ReplicaError;
use crate::session::top_kernels;

fn spec(start: &str) -> Value {
    json!({
        "target": {"podName": null, "podTemplate": {"spec": {"containers": [{"name": "main", "image": "a"}]}}},
        "start": start
    })
}

/// The session's pod as admission and the scheduler left it.
fn own(session: &ProfilingSession, phase: &str, node: Option<&str>, annotations: &Value) -> Arc<Pod> {
    let pod = json!({
        "metadata": {
            "name": own_pod::name(session), "namespace": "team", "uid": "pod-uid", "annotations": annotations,
            "ownerReferences": [{"apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession", "name": "s", "uid": "session-uid", "controller": true}]
        },
        "spec": {"nodeName": node, "containers": [{"name": "main"}]},
        "status": {"phase": phase}
    });
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn prepared() -> Value {
    json!({PREPARED_ANNOTATION: "main", PREPARED_FOR_ANNOTATION: "main: nsys"})
}

fn with_attempt(session: &ProfilingSession, attempt: &Attempt) -> Plan {
    let tried = World {
        attempt: Some(attempt),
        ..world(&[], &[])
    };
    plan(session, &tried)
}

#[test]
fn the_pod_is_made_once_and_its_name_written_down() {
    let mut session = begun(&spec("Now"));
    let step = plan(&session, &world(&[], &[]));
    assert!(step.decisive && step.create.is_empty());
    assert_eq!(step.create_pod.unwrap().name_any(), own_pod::name(&session));

    let pod = own(&session, "Pending", None, &prepared());
    let made = with_attempt(&session, &Attempt::Made(Arc::clone(&pod)));
    assert_eq!(made.status.pod_name.as_deref(), Some(own_pod::name(&session).as_str()));
    assert!(targets_found(&made).starts_with("False WaitingForTargets"));
    session.status = Some(made.status);
    let waiting = plan(&session, &world(&[pod], &[]));
    assert!(waiting.create_pod.is_none() && waiting.create.is_empty());

    let gone = plan(&session, &world(&[], &[]));
    assert!(gone.create_pod.is_none(), "a pod that was deleted is not made again");
    assert!(targets_found(&gone).starts_with("False PodEnded"));
}

#[test]
fn the_capture_is_there_before_the_container_where_its_start_is_asked_for() {
    for (start, phase, node, made) in [
        ("ContainerStart", "Pending", None, false),
        ("ContainerStart", "Pending", Some("n1"), true),
        ("Now", "Pending", Some("n1"), false),
        ("Now", "Running", Some("n1"), true),
    ] {
        let session = begun(&spec(start));
        let step = plan(&session, &world(&[own(&session, phase, node, &prepared())], &[]));
        assert_eq!(step.create.len(), usize::from(made), "{start} {phase} {node:?}");
        if let [capture] = step.create.as_slice() {
            assert!(capture.spec.ends_with_program);
            assert_eq!(
                capture.spec.start == StartMode::ContainerStart,
                start == "ContainerStart"
            );
        }
    }
}

#[test]
fn a_refused_pod_says_why_and_is_tried_again_only_where_that_may_help() {
    let session = begun(&spec("ContainerStart"));
    let reason = SessionReason::PodRefused;
    let message = "the pod of spec.target.podTemplate is refused: quota".to_owned();
    let text = format!("False PodRefused: {message}");
    let refused = Attempt::Refused {
        reason,
        message: message.clone(),
    };
    let waits = with_attempt(&session, &Attempt::Waits { reason, message });
    assert_eq!(waits.status.completion_time, None);
    let refused = with_attempt(&session, &refused);
    assert!(refused.status.completion_time.is_some());
    for step in [waits, refused] {
        assert_eq!(targets_found(&step), text);
    }
}

#[test]
fn a_pod_that_was_made_unprepared_all_the_same_is_deleted_before_it_runs_for_nothing() {
    let session = begun(&spec("ContainerStart"));
    let unprepared = json!({UNPREPARED_ANNOTATION: "main: no command"});
    let pod = own(&session, "Pending", Some("n1"), &unprepared);
    let step = plan(&session, &world(&[pod], &[]));
    assert_eq!(step.remove_pod, Some((own_pod::name(&session), "pod-uid".to_owned())));
    assert!(targets_found(&step).starts_with("False PodNotPrepared"));
}

#[test]
fn a_session_that_ends_without_a_capture_takes_its_pod_along() {
    let stopped = begun(&json!({"stop": "Discard", "target": spec("Now")["target"]}));
    let pods = [own(&stopped, "Pending", Some("n1"), &prepared())];
    let step = plan(&stopped, &world(&pods, &[]));
    assert!(step.remove_pod.is_some());

    let late = begun(&json!({"startDeadlineSeconds": 60, "target": spec("Now")["target"]}));
    let step = plan(&late, &world(&[own(&late, "Pending", Some("n1"), &prepared())], &[]));
    assert!(step.remove_pod.is_some());

    let ended = begun(&spec("Now"));
    let pods = [own(&ended, "Succeeded", Some("n1"), &prepared())];
    let step = plan(&ended, &world(&pods, &[]));
    assert!(targets_found(&step).starts_with("False PodEnded"));
    assert_eq!(step.remove_pod, None, "its log may say why");
}

#[test]
fn a_pod_that_somebody_else_made_is_neither_profiled_nor_deleted() {
    let session = begun(&spec("Now"));
    let mut pod = Pod::clone(&own(&session, "Running", Some("n1"), &prepared()));
    pod.metadata.owner_references = None;
    let step = plan(&session, &world(&[Arc::new(pod)], &[]));
    assert!(step.create.is_empty() && step.remove_pod.is_none() && step.create_pod.is_none());
    assert!(targets_found(&step).starts_with("False PodRefused"));
}

#[test]
fn a_pod_is_made_neither_while_captures_are_suspended_nor_while_the_namespace_is_full() {
    let session = begun(&spec("Now"));
    let full = World {
        quota: Quota {
            limit: Some(1),
            taken: 1,
        },
        ..world(&[], &[])
    };
    for world in [full, suspended(world(&[], &[]))] {
        assert!(plan(&session, &world).create_pod.is_none());
    }
    // What was admitted goes on: its container may be starting now.
    let pods = [own(&session, "Running", Some("n1"), &prepared())];
    let both = World {
        quota: full.quota,
        ..suspended(world(&pods, &[]))
    };
    assert_eq!(plan(&session, &both).create.len(), 1);
}

/// A session that copies a pod, and what its passes see beside its own pod.
fn copying() -> (ProfilingSession, Result<PodTemplate, ReplicaError>) {
    let session = begun(&json!({"target": {"podName": null, "replicaOf": "train"}, "profiler": {"type": "Ncu"}}));
    let spec = json!({"containers": [{"name": "main", "image": "a"}]});
    let template = PodTemplate {
        metadata: None,
        spec: spec.as_object().unwrap().clone(),
    };
    (session, Ok(template))
}

#[test]
fn a_copy_is_made_of_the_pod_that_is_there_and_one_that_may_come_is_waited_for() {
    let (session, template) = copying();
    let with = |replica: &Result<PodTemplate, ReplicaError>| {
        let seen = World {
            replica: Some(replica),
            ..world(&[], &[])
        };
        plan(&session, &seen)
    };
    let made = with(&template).create_pod.unwrap();
    assert_eq!(made.name_any(), own_pod::name(&session));
    assert_eq!(made.labels()["flopwatch.dev/prepare"], "ncu");
    let (name, namespace) = ("train".to_owned(), "team".to_owned());
    let waits = with(&Err(ReplicaError::Absent { name, namespace }));
    assert!(waits.create_pod.is_none() && waits.status.completion_time.is_none());
    assert!(targets_found(&waits).starts_with("False WaitingForTargets: there is no pod"));
    let refused = with(&Err(ReplicaError::Deleted("train".to_owned())));
    assert!(refused.status.completion_time.is_some());
    assert!(targets_found(&refused).starts_with("False PodRefused"));
}

#[test]
fn a_copy_goes_with_the_end_of_its_session_whatever_that_was() {
    let (mut session, _) = copying();
    let pod = own(&session, "Running", Some("n1"), &prepared());
    let pods = [Arc::clone(&pod)];
    let copy = Some((own_pod::name(&session), "pod-uid".to_owned()));
    let step = plan(&session, &world(&pods, &[]));
    assert_eq!(
        (step.create.len(), &step.remove_pod),
        (1, &None),
        "it is profiled first"
    );
    session.status = Some(step.status);
    let captures: Vec<Arc<Capture>> = step.create.into_iter().map(Arc::new).collect();
    let at_work = plan(&session, &world(&pods, &captures));
    assert_eq!(at_work.remove_pod, None);
    for (status, reason) in [
        ("True", "Succeeded"),
        ("False", "CollectionFailed"),
        ("False", "Discarded"),
    ] {
        let ends = [ended(&captures[0], "Succeeded", status, reason)];
        let over = plan(&session, &world(&pods, &ends));
        assert_eq!(over.remove_pod, copy, "{reason}");
        // The pass may have been cut off between the status and the deletion: the next one deletes.
        let mut next = session.clone();
        next.status = Some(over.status);
        assert_eq!(plan(&next, &world(&pods, &ends)).remove_pod, copy, "{reason}");
        assert_eq!(plan(&next, &world(&[], &ends)).remove_pod, None, "{reason}");
    }
    let lost = [ended(&captures[0], "Lost", "True", "NodeLost")];
    assert_eq!(plan(&session, &world(&pods, &lost)).remove_pod, copy);
}

#[test]
fn a_copy_that_ended_by_itself_goes_too_and_one_that_is_being_deleted_is_left_to_it() {
    let (session, _) = copying();
    let over = [own(&session, "Failed", Some("n1"), &prepared())];
    let step = plan(&session, &world(&over, &[]));
    assert!(targets_found(&step).starts_with("False PodEnded"));
    assert_eq!(step.remove_pod, Some((own_pod::name(&session), "pod-uid".to_owned())));
    let mut going = Pod::clone(&over[0]);
    going.metadata.deletion_timestamp = Some(Time(NOW.parse().unwrap()));
    assert_eq!(plan(&session, &world(&[Arc::new(going)], &[])).remove_pod, None);
}

#[test]
fn a_template_of_a_session_stays_for_its_retention_and_is_not_deleted_at_its_end() {
    let mut session = begun(&spec("Now"));
    let pods = [own(&session, "Running", Some("n1"), &prepared())];
    let step = plan(&session, &world(&pods, &[]));
    session.status = Some(step.status);
    let captures: Vec<Arc<Capture>> = step.create.into_iter().map(Arc::new).collect();
    let ends = [ended(&captures[0], "Succeeded", "True", "Succeeded")];
    assert_eq!(plan(&session, &world(&pods, &ends)).remove_pod, None);
}

#[test]
fn a_pod_that_finds_no_node_says_what_the_scheduler_says() {
    let session = begun(&spec("Now"));
    let mut pod = Pod::clone(&own(&session, "Pending", None, &prepared()));
    let said = json!({"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."});
    pod.status.as_mut().unwrap().conditions = serde_json::from_value(json!([said])).unwrap();
    let step = plan(&session, &world(&[Arc::new(pod)], &[]));
    let found = targets_found(&step);
    assert!(found.contains("the scheduler says: 0/2 nodes are available"), "{found}");
}

#[test]
fn a_session_whose_top_kernels_cannot_be_had_ends_with_that_reason_and_makes_no_pod() {
    let mut asked = spec("Now");
    asked["profiler"] = json!({"type": "Ncu", "ncu": {"topKernelsOf": "before", "topKernels": 3}});
    let session = begun(&asked);
    let options = session.spec.profiler.ncu.as_ref().unwrap();
    let why = top_kernels::resolve(options, None, &[]).unwrap_err();
    let without = World {
        top_kernels: Err(why.as_str()),
        ..world(&[], &[])
    };
    let ended = plan(&session, &without);
    assert!(ended.create_pod.is_none());
    let found = targets_found(&ended);
    assert!(found.starts_with("False NoTopKernels"), "{found}");
    let succeeded = succeeded(&ended);
    let said = "there is no session before in this namespace";
    assert!(succeeded.contains(said), "{succeeded}");
}
