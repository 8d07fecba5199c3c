use serde_json::{Value, json};

use super::*;

/// What a healthy cluster holds around a prepared pod; tests change a part of it.
fn healthy() -> Value {
    let own = |component: &str| {
        json!({
            "metadata": {"name": component, "labels": {"app.kubernetes.io/component": component}},
            "spec": {"nodeName": "n1", "containers": []},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}
        })
    };
    json!({
        "pod": {
            "metadata": {
                "name": "trainer", "namespace": "team", "uid": "uid", "labels": {"flopwatch.dev/prepare": "nsys"},
                "annotations": {"flopwatch.dev/prepared": "main"}
            },
            "spec": {
                "nodeName": "n1",
                "volumes": [],
                "initContainers": [{"name": "flopwatch-launcher"}, {"name": "flopwatch-tools"}],
                "containers": [
                    {"name": "main", "command": ["train"], "resources": {"limits": {"nvidia.com/gpu": "1"}}},
                    {"name": "side", "command": ["log"]}
                ]
            },
            "status": {"phase": "Running"}
        },
        "namespace": {"metadata": {"name": "team", "labels": {"kubernetes.io/metadata.name": "team"}}},
        "node": {
            "metadata": {"name": "n1"},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"nvidia.com/gpu": "1"},
                "nodeInfo": {
                    "architecture": "amd64", "operatingSystem": "linux", "bootID": "", "containerRuntimeVersion": "",
                    "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "", "osImage": "",
                    "systemUUID": ""
                }
            }
        },
        "installation": [own("controller"), own("agent"), own("gateway"), own("admission")],
        "webhooks": {"metadata": {"name": "flopwatch"}, "webhooks": [{
            "name": "pods.flopwatch.dev", "admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig": {},
            "namespaceSelector": {"matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}
            ]}
        }]},
        "settings": {"metadata": {"name": "flopwatch-controller"}, "data": {"capturesSuspended": "false"}},
        "captures": []
    })
}

/// The world that a document describes: null is absent, "hidden" may not be read.
fn world(document: &Value) -> World {
    fn seen<T: serde::de::DeserializeOwned>(value: &Value) -> Lookup<T> {
        match value {
            Value::Null => Lookup::Absent,
            Value::String(_) => Lookup::Hidden,
            value => Lookup::Found(serde_json::from_value(value.clone()).unwrap()),
        }
    }
    World {
        pod: serde_json::from_value(document["pod"].clone()).unwrap(),
        namespace: seen(&document["namespace"]),
        node: seen(&document["node"]),
        installation: seen(&document["installation"]),
        flopwatch_namespace: "flopwatch-system".into(),
        webhooks: seen(&document["webhooks"]),
        settings: seen(&document["settings"]),
        captures: serde_json::from_value(document["captures"].clone()).unwrap(),
    }
}

/// The healthy world with values put at these places.
fn with(changes: &[(&str, Value)]) -> World {
    let mut document = healthy();
    for (place, value) in changes {
        *document.pointer_mut(place).expect(place) = value.clone();
    }
    world(&document)
}

#[test]
fn a_prepared_pod_in_a_healthy_cluster_has_nothing_in_the_way() {
    let report = examine(&with(&[]), None);
    assert!(report.nsys && report.metrics, "{report:?}");
    assert!(
        report.findings.iter().all(|finding| finding.level == Level::Good),
        "{report:?}"
    );
    assert_eq!(report.containers, ["main"]);
    let message = render(&report, Layout::default());
    assert!(
        message.contains("ok    container main is prepared and can trace cuda,nvtx\n"),
        "{message}"
    );
    assert!(
        message.ends_with("\nNsight Systems: open\nNVML metrics:   open\n"),
        "{message}"
    );
}

/// Changes of the healthy world, and what is found then: what it means, what is so, what helps.
type Row = (Vec<(&'static str, Value)>, Level, &'static str, &'static str);

#[test]
#[allow(clippy::too_many_lines, reason = "a table of cases")]
fn what_is_in_the_way_is_found_with_what_helps() {
    use Level::{BlocksAll, BlocksNsys, Note, Unchecked};
    let unasked = || ("/pod/metadata/labels", json!({}));
    let plain = || ("/pod/metadata/annotations", json!({}));
    let no_init = || ("/pod/spec/initContainers", json!([]));
    let rows: Vec<Row> = vec![
        (
            vec![("/installation", json!(null))],
            BlocksAll,
            "nothing of Flopwatch runs",
            "--flopwatch-namespace",
        ),
        (
            vec![("/installation", json!("hidden"))],
            Unchecked,
            "whether Flopwatch runs",
            "",
        ),
        (
            vec![("/installation/0/status/conditions/0/status", json!("False"))],
            BlocksAll,
            "no controller is ready",
            "component=controller",
        ),
        (
            vec![("/installation/2/status", json!({}))],
            Note,
            "no gateway is ready",
            "component=gateway",
        ),
        (
            vec![("/installation/1/spec/nodeName", json!("n2"))],
            BlocksAll,
            "no agent runs on n1",
            "agent.tolerations",
        ),
        (
            vec![("/installation/1/status", json!({}))],
            BlocksAll,
            "the agent of n1 is not ready",
            "component=agent",
        ),
        (
            vec![("/settings/data/capturesSuspended", json!("true"))],
            BlocksAll,
            "captures are suspended",
            "administrator",
        ),
        (
            vec![("/pod/status/phase", json!("Pending"))],
            BlocksAll,
            "does not run yet",
            "describe pod",
        ),
        (
            vec![("/pod/status/phase", json!("Succeeded"))],
            BlocksAll,
            "phase Succeeded",
            "podTemplate",
        ),
        (
            vec![(
                "/pod/status",
                json!({"phase": "Pending", "initContainerStatuses": [{
                    "name": "flopwatch-tools", "image": "nsys:1", "imageID": "", "ready": false, "restartCount": 0,
                    "state": {"waiting": {"reason": "ImagePullBackOff"}}
                }]}),
            )],
            BlocksAll,
            "flopwatch-tools (image nsys:1) keeps the pod from starting: ImagePullBackOff",
            "pull the image",
        ),
        (
            vec![
                (
                    "/pod/spec/volumes",
                    json!([{"name": "flopwatch-profiler", "image": {"reference": "nsys:1"}}]),
                ),
                (
                    "/pod/status",
                    json!({"phase": "Pending", "containerStatuses": [{
                        "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"nsys:1\""}}
                    }]}),
                ),
            ],
            BlocksAll,
            "has mounted keeps the pod from starting: Back-off pulling image \"nsys:1\"",
            "admission.delivery to copy",
        ),
        (
            vec![("/node", json!(null))],
            BlocksAll,
            "n1 is not in the cluster any more",
            "",
        ),
        (
            vec![("/node", json!("hidden"))],
            Unchecked,
            "whether node n1 is ready",
            "",
        ),
        (
            vec![("/node/status/conditions/0/status", json!("Unknown"))],
            BlocksAll,
            "n1 is not ready",
            "NodeLost",
        ),
        (
            vec![("/node/status/nodeInfo/architecture", json!("arm64"))],
            BlocksAll,
            "n1 is linux/arm64",
            "",
        ),
        (
            vec![("/node/status/allocatable", json!({}))],
            Note,
            "no nvidia.com resource",
            "",
        ),
        (
            vec![unasked(), plain(), no_init()],
            BlocksNsys,
            "main is not prepared: nobody asked for it",
            "flopwatch.dev/prepare: nsys",
        ),
        (
            vec![
                ("/pod/metadata/labels", json!({"flopwatch.dev/prepare": "perf"})),
                plain(),
                no_init(),
            ],
            BlocksNsys,
            "prepare names \"perf\"",
            "flopwatch.dev/prepare: nsys",
        ),
        (
            vec![
                ("/pod/metadata/labels", json!({"flopwatch.dev/prepare": "kineto"})),
                plain(),
                no_init(),
            ],
            BlocksNsys,
            "prepare is kineto, which leaves Nsight Systems out",
            "flopwatch.dev/prepare: nsys.kineto",
        ),
        (
            vec![plain(), no_init()],
            BlocksNsys,
            "admission did not see the pod",
            "create the pod anew",
        ),
        (
            vec![no_init()],
            BlocksNsys,
            "main is not prepared",
            "name it in annotation",
        ),
        (
            vec![
                (
                    "/pod/metadata/annotations",
                    json!({"flopwatch.dev/unprepared": "side: x\nmain: no command"}),
                ),
                no_init(),
            ],
            BlocksNsys,
            "main was not prepared: no command",
            "change that",
        ),
        (
            vec![(
                "/pod/metadata/annotations",
                json!({"flopwatch.dev/prepare-containers": "side", "flopwatch.dev/prepared": "side"}),
            )],
            BlocksNsys,
            "names side alone",
            "add it there",
        ),
        (
            vec![plain(), no_init(), ("/webhooks", json!(null))],
            BlocksNsys,
            "admission is not installed",
            "admission.enabled",
        ),
        (
            vec![plain(), no_init(), ("/webhooks", json!("hidden"))],
            Unchecked,
            "whether admission sees",
            "",
        ),
        (
            vec![
                plain(),
                no_init(),
                (
                    "/webhooks/webhooks/0/namespaceSelector/matchExpressions/0/values",
                    json!(["kube-system", "team"]),
                ),
            ],
            BlocksNsys,
            "admission does not look at namespace team",
            "excludedNamespaces",
        ),
        (
            vec![plain(), no_init(), ("/installation/3/status", json!({}))],
            BlocksNsys,
            "no admission is ready",
            "component=admission",
        ),
        (
            vec![
                unasked(),
                plain(),
                no_init(),
                (
                    "/pod/spec/containers/0",
                    json!({"name": "main", "resources": {"claims": [{"name": "gpu"}]}}),
                ),
            ],
            Note,
            "main has no command of its own",
            "entrypointLookup",
        ),
        (
            vec![
                unasked(),
                plain(),
                no_init(),
                ("/pod/spec/containers/0/resources", json!({})),
            ],
            BlocksAll,
            "no container asks for a GPU and none was prepared",
            "it has main, side",
        ),
        (
            vec![("/pod/spec/containers/0/resources", json!({}))],
            Note,
            "sessions take those that were prepared: main",
            "",
        ),
    ];
    for (changes, level, what, remedy) in rows {
        let report = examine(&with(&changes), None);
        let found = report.findings.iter().find(|finding| finding.what.contains(what));
        let found = found.unwrap_or_else(|| panic!("{what:?} is not among {:#?}", report.findings));
        assert_eq!(found.level, level, "{found:?}");
        assert!(
            found.remedy.as_deref().unwrap_or_default().contains(remedy),
            "{found:?}"
        );
        assert_eq!(
            report.metrics,
            report.findings.iter().all(|finding| finding.level != BlocksAll),
            "{what}"
        );
        if level == BlocksNsys || level == BlocksAll {
            assert!(!report.nsys, "{what}");
        }
    }
}

#[test]
fn a_pod_is_judged_by_every_profiler_that_it_is_prepared_for() {
    let prepared = |label: &str, launched: &str, words: &str| {
        let changes = [
            ("/pod/metadata/labels", json!({"flopwatch.dev/prepare": label})),
            (
                "/pod/metadata/annotations",
                json!({"flopwatch.dev/prepared": launched, "flopwatch.dev/prepared-for": words}),
            ),
        ];
        let report = examine(&with(&changes), None);
        let judged = report
            .profilers
            .iter()
            .map(|judged| (judged.profiler.as_str(), judged.open));
        (judged.collect::<Vec<_>>(), render(&report, Layout::default()))
    };
    let (judged, text) = prepared("kineto", "", "main: kineto");
    assert_eq!(judged, [("Kineto", true)]);
    assert!(
        text.contains("note  label flopwatch.dev/prepare is kineto, which leaves Nsight Systems out"),
        "{text}"
    );
    assert!(
        text.ends_with("\nNsight Systems: closed\nKineto:         open\nNVML metrics:   open\n"),
        "{text}"
    );
    let (judged, _) = prepared("nsys.kineto", "main", "main: nsys.kineto");
    assert_eq!(judged, [("Nsys", true), ("Kineto", true)]);
    // Admission prepared it for one of the two that were asked for.
    let (judged, _) = prepared("nsys.kineto", "", "main: kineto");
    assert_eq!(judged, [("Nsys", false), ("Kineto", true)]);
    let gone = [
        ("/pod/metadata/labels", json!({"flopwatch.dev/prepare": "kineto"})),
        (
            "/pod/metadata/annotations",
            json!({"flopwatch.dev/prepared-for": "main: kineto"}),
        ),
        ("/installation/1/status", json!({})),
    ];
    let report = examine(&with(&gone), None);
    assert!(report.profilers.iter().all(|judged| !judged.open), "{report:?}");
}

#[test]
fn a_container_is_looked_at_when_it_is_named() {
    let report = examine(&with(&[]), Some("side"));
    assert_eq!(report.containers, ["side"]);
    assert!(!report.nsys && report.metrics, "{report:?}");
    let report = examine(&with(&[]), Some("none"));
    assert!(!report.metrics);
    let found = report
        .findings
        .iter()
        .find(|finding| finding.what == "the pod has no container none");
    assert_eq!(found.unwrap().remedy.as_deref(), Some("it has main, side"));
}

#[test]
fn the_remedy_names_what_the_pod_was_made_from() {
    let made_by = |kind: &str, name: &str| {
        json!({
            "name": "trainer", "namespace": "team", "labels": {"pod-template-hash": "5d8f"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": true}]
        })
    };
    let rows = [
        (
            "ReplicaSet",
            "train-5d8f",
            "kubectl -n team patch deployment/train -p '{\"spec\"",
        ),
        ("StatefulSet", "train", "patch statefulset/train -p "),
        ("Job", "train", "pod template of Job train"),
        ("ReplicaSet", "lonely", "pod template of ReplicaSet lonely"),
    ];
    for (kind, name, expected) in rows {
        let changes = [
            ("/pod/metadata", made_by(kind, name)),
            ("/pod/spec/initContainers", json!([])),
        ];
        let report = examine(&with(&changes), None);
        let remedies: Vec<&str> = report
            .findings
            .iter()
            .filter_map(|finding| finding.remedy.as_deref())
            .collect();
        assert!(
            remedies.iter().any(|remedy| remedy.contains(expected)),
            "{expected}: {remedies:?}"
        );
    }
}

#[test]
fn the_agents_own_last_finding_is_told() {
    let capture = |name: &str, created: &str, capabilities: Value| {
        json!({
            "metadata": {"name": name, "namespace": "team", "creationTimestamp": created},
            "spec": {
                "sessionRef": {"name": "s", "id": "0badcafe"}, "nodeName": "n1",
                "podRef": {"name": "trainer", "uid": "uid"}, "containerName": "main", "durationSeconds": 5,
                "startDeadlineSeconds": 300, "outputs": ["Timeline"]
            },
            "status": {"capabilities": capabilities}
        })
    };
    let captures = json!([
        capture(
            "old",
            "2026-01-01T00:00:00Z",
            json!([{"profiler": "Nsys", "available": true, "reason": "Available"}])
        ),
        capture(
            "new",
            "2026-01-02T00:00:00Z",
            json!([
                {"profiler": "Nsys", "available": false, "reason": "NotGrafted", "remedy": "a glibc of 2.28 or newer"}
            ])
        ),
    ]);
    let report = examine(&with(&[("/captures", captures)]), None);
    let notes: Vec<&Finding> = report
        .findings
        .iter()
        .filter(|finding| finding.level == Level::Note)
        .collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert_eq!(
        notes[0].what,
        "capture new of 2026-01-02T00:00:00Z found Nsys closed for container main: NotGrafted"
    );
    assert_eq!(notes[0].remedy.as_deref(), Some("a glibc of 2.28 or newer"));
}

#[test]
fn gpus_that_are_shared_or_parts_are_told_and_whole_ones_are_not() {
    let notes = |changes: &[(&str, Value)]| {
        let findings = examine(&with(changes), None).findings;
        let notes = findings.into_iter().filter(|finding| finding.level == Level::Note);
        notes.map(|finding| finding.what).collect::<Vec<_>>()
    };
    let node = |labels: Value| ("/node/metadata", json!({"name": "n1", "labels": labels}));
    assert!(notes(&[node(json!({"nvidia.com/gpu.sharing-strategy": "none"}))]).is_empty());
    for (strategy, says) in [("mps", "Multi-Process Service"), ("time-slicing", "by time-slicing")] {
        let labels = json!({"nvidia.com/gpu.sharing-strategy": strategy, "nvidia.com/gpu.replicas": "4"});
        let told = notes(&[node(labels)]);
        assert!(
            told.len() == 1 && told[0].contains("to 4 containers") && told[0].contains(says),
            "{told:?}"
        );
    }
    let resources = json!({"limits": {"nvidia.com/mig-1g.10gb": "1"}});
    let told = notes(&[("/pod/spec/containers/0/resources", resources)]);
    assert!(
        told[0].contains("asks for a MIG device (nvidia.com/mig-1g.10gb)"),
        "{told:?}"
    );
    let capture = json!([{
        "metadata": {"name": "last", "namespace": "team", "creationTimestamp": "2026-01-02T00:00:00Z"},
        "spec": {
            "sessionRef": {"name": "s", "id": "0badcafe"}, "nodeName": "n1",
            "podRef": {"name": "trainer", "uid": "uid"}, "containerName": "main", "durationSeconds": 5,
            "startDeadlineSeconds": 300, "outputs": ["Timeline"]
        },
        "status": {
            "capabilities": [{"profiler": "Nsys", "available": true, "reason": "Available"}],
            "gpus": [{"uuid": "GPU-1", "share": "Container"}, {"uuid": "GPU-2", "share": "Shared"}]
        }
    }]);
    assert_eq!(
        notes(&[("/captures", capture)]),
        ["capture last found for container main: GPU-2 (Shared)"]
    );
}
