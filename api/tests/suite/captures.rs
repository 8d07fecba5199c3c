//! What the API server would say to a change of a capture: the same CEL rules, run here.

use flopwatch_api::capture::{Capture, CaptureSpec, CaptureTarget, PodReference, SessionReference};
use flopwatch_api::session::{ProfilingSessionSpec, StorageMode, TargetSpec, TransformDevice};
use kube::core::cel::validate_cel_update;
use serde_json::{Value, json};

fn target() -> CaptureTarget {
    CaptureTarget {
        session_ref: SessionReference {
            name: "first".to_owned(),
            id: "0a1b2c3d".to_owned(),
        },
        node_name: "node-1".to_owned(),
        pod_ref: PodReference {
            name: "trainer".to_owned(),
            uid: "u".to_owned(),
        },
        container_name: "main".to_owned(),
    }
}

fn capture(spec: CaptureSpec) -> Capture {
    Capture::new("first-0", spec)
}

fn of_session(session: &ProfilingSessionSpec) -> Capture {
    capture(CaptureSpec::of(session, target(), 2))
}

fn changed(old: &Capture, field: &str, value: Value) -> Capture {
    let mut spec = serde_json::to_value(&old.spec).unwrap();
    spec[field] = value;
    capture(serde_json::from_value(spec).unwrap())
}

#[test]
fn a_capture_is_fixed_but_for_stop() {
    let old = of_session(&ProfilingSessionSpec::of(TargetSpec::pod("trainer")));
    for (field, value) in [
        ("sessionRef", json!({ "name": "second", "id": "0a1b2c3d" })),
        ("nodeName", json!("node-2")),
        ("podRef", json!({ "name": "trainer", "uid": "v" })),
        ("containerName", json!("side")),
        ("profiler", json!({ "type": "Nsys" })),
        ("start", json!("ContainerStart")),
        ("endsWithProgram", json!(true)),
        ("durationSeconds", json!(20)),
        ("require", json!(["nvtx_range"])),
        ("startDeadlineSeconds", json!(1)),
        ("metrics", json!({ "intervalMilliseconds": 20 })),
        ("overhead", json!({ "action": "Report" })),
        ("transform", json!({ "device": "Cpu" })),
        ("outputs", json!(["Summary"])),
        ("storage", json!("Node")),
        ("statusIntervalSeconds", json!(60)),
    ] {
        let errors = validate_cel_update(&changed(&old, field, value), &old)
            .expect_err(field)
            .to_string();
        assert!(errors.contains("fixed once it is created"), "{field}: {errors}");
    }
    validate_cel_update(&changed(&old, "stop", json!("Keep")), &old).unwrap();
}

#[test]
fn a_capture_has_the_options_of_its_session() {
    let mut session = ProfilingSessionSpec::of(TargetSpec {
        replica_of: Some("trainer".to_owned()),
        ..TargetSpec::default()
    });
    session.duration_seconds = 20;
    session.transform.device = TransformDevice::Cpu;
    session.retention.storage = Some(StorageMode::Durable);
    let spec = of_session(&session).spec;
    assert_eq!((spec.duration_seconds, &spec.transform), (20, &session.transform));
    assert_eq!(spec.storage, Some(StorageMode::Durable));
    assert!(spec.ends_with_program, "the session makes the pod");
}
