//! What the API server would say to a manifest: the same CEL rules and bounds, run here.

use flopwatch_api::session::{ProfilingSession, ProfilingSessionSpec, TargetSpec};
use flopwatch_model::Category;
use kube::core::cel::{validate_cel, validate_cel_update};
use serde_json::{Value, json};

fn session(spec: Value) -> ProfilingSession {
    serde_json::from_value(json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession",
        "metadata": { "name": "first" }, "spec": spec
    }))
    .unwrap()
}

fn minimal() -> Value {
    json!({ "target": { "podName": "trainer" } })
}

fn with(pointer: &[&str], value: Value) -> Value {
    let mut spec = minimal();
    let mut place = &mut spec;
    for key in pointer {
        place = &mut place[*key];
    }
    *place = value;
    spec
}

#[test]
fn the_smallest_session_gets_sane_defaults() {
    let session = session(minimal());
    validate_cel(&session).unwrap();
    assert_eq!(session.spec.duration_seconds, 10);
    assert_eq!(session.spec.profiler.type_.as_str(), "Auto");
    assert_eq!(session.spec.metrics.interval_milliseconds, 100);
    assert_eq!(session.spec.outputs.len(), 2);
    assert_eq!(session.spec, ProfilingSessionSpec::of(TargetSpec::pod("trainer")));
}

#[test]
fn a_wrong_spec_is_refused_with_a_sentence() {
    let cases = [
        ("no target", json!({ "target": {} }), "exactly one of podName"),
        (
            "two targets",
            json!({ "target": { "podName": "a", "podSelector": { "matchLabels": { "app": "a" } } } }),
            "exactly one of podName",
        ),
        (
            "options of a profiler that is not asked for",
            with(
                &["profiler"],
                json!({ "type": "Metrics", "nsys": { "trace": ["cuda"] } }),
            ),
            "spec.profiler.type must be Nsys or Auto",
        ),
        (
            "options of JAX for another profiler",
            with(&["profiler"], json!({ "type": "Nsys", "jax": { "port": 9012 } })),
            "spec.profiler.type must be Jax or Auto",
        ),
        (
            "options of the CUDA tracer for another profiler",
            with(
                &["profiler"],
                json!({ "type": "Kineto", "cuda": { "graphs": "Nodes" } }),
            ),
            "spec.profiler.type must be Cuda or Auto",
        ),
        (
            "a pod by name and one to create",
            json!({ "target": { "podName": "a", "podTemplate": template() } }),
            "exactly one of podName",
        ),
        (
            "the start of a container that runs already",
            json!({ "target": { "podName": "a" }, "start": "ContainerStart" }),
            "needs spec.target.podTemplate or replicaOf",
        ),
        (
            "a pod by name and one to copy",
            json!({ "target": { "podName": "a", "replicaOf": "b" } }),
            "exactly one of podName",
        ),
        (
            "several copies of one pod",
            json!({ "target": { "replicaOf": "a", "maxPods": 2 } }),
            "make one pod",
        ),
        (
            "the start with a profiler that cannot",
            json!({ "target": { "podTemplate": template() }, "start": "ContainerStart", "profiler": { "type": "Metrics" } }),
            "must be Auto or Nsys",
        ),
        (
            "several pods of one template",
            json!({ "target": { "podTemplate": template(), "maxPods": 2 } }),
            "make one pod",
        ),
    ];
    for (name, spec, sentence) in cases {
        let errors = validate_cel(&session(spec)).expect_err(name).to_string();
        assert!(errors.contains(sentence), "{name}: {errors}");
    }
}

fn template() -> Value {
    json!({ "spec": { "containers": [{ "name": "main", "image": "a", "fieldOfTomorrow": { "kept": true } }] } })
}

#[test]
fn a_pod_template_is_kept_as_it_is_written_and_fixed() {
    let written = json!({ "target": { "podTemplate": template() }, "start": "ContainerStart" });
    let old = session(written.clone());
    validate_cel(&old).unwrap();
    let kept = serde_json::to_value(&old.spec.target.pod_template).unwrap();
    assert_eq!(kept, template());
    let mut changed = written;
    changed["target"]["podTemplate"]["spec"]["containers"][0]["fieldOfTomorrow"]["kept"] = json!(false);
    let errors = validate_cel_update(&session(changed), &old)
        .expect_err("changed")
        .to_string();
    assert!(errors.contains("fixed once it is created"), "{errors}");
}

#[test]
fn a_copy_of_a_pod_can_be_profiled_from_its_first_instruction() {
    validate_cel(&session(
        json!({ "target": { "replicaOf": "a" }, "start": "ContainerStart" }),
    ))
    .unwrap();
}

#[test]
fn every_category_of_the_timeline_can_be_required() {
    let names: Vec<&str> = Category::ALL.iter().map(|category| category.name()).collect();
    validate_cel(&session(with(&["require"], json!(names)))).unwrap();
}

#[test]
fn a_session_is_fixed_but_for_stop() {
    let old = session(minimal());
    for changed in [
        with(&["durationSeconds"], json!(20)),
        with(&["target", "podName"], json!("other")),
        with(&["profiler"], json!({ "type": "Nsys" })),
        with(&["require"], json!(["nvtx_range"])),
        with(&["retention"], json!({ "ttlSecondsAfterFinished": 1 })),
        with(&["outputs"], json!(["Summary"])),
        with(&["metrics"], json!({ "intervalMilliseconds": 20 })),
        with(&["startDeadlineSeconds"], json!(1)),
        with(&["start"], json!("ContainerStart")),
    ] {
        let errors = validate_cel_update(&session(changed.clone()), &old)
            .expect_err(&changed.to_string())
            .to_string();
        assert!(errors.contains("fixed once it is created"), "{changed}: {errors}");
    }
    validate_cel_update(&session(with(&["stop"], json!("Keep"))), &old).unwrap();
}

#[test]
fn stop_is_not_taken_back_but_may_become_stricter() {
    let keep = session(with(&["stop"], json!("Keep")));
    let discard = session(with(&["stop"], json!("Discard")));
    validate_cel_update(&discard, &keep).unwrap();
    for (new, old) in [(&keep, &discard), (&session(minimal()), &keep)] {
        let errors = validate_cel_update(new, old)
            .expect_err("stop was taken back")
            .to_string();
        assert!(errors.contains("cannot be taken back"), "{errors}");
    }
}
