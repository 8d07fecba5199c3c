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

/// What is found in a changed world, a row each: the changes of the healthy one, what the finding
/// means, what is so, and what helps where something does.
const FINDINGS: &str = r#"
/installation=null | BlocksAll | nothing of Flopwatch runs | --flopwatch-namespace
/installation="hidden" | Unchecked | whether Flopwatch runs
/installation/0/status/conditions/0/status="False" | BlocksAll | no controller is ready | component=controller
/installation/2/status={} | Note | no gateway is ready | component=gateway
/installation/1/spec/nodeName="n2" | BlocksAll | no agent runs on n1 | agent.tolerations
/installation/1/status={} | BlocksAll | the agent of n1 is not ready | component=agent
/settings/data/capturesSuspended="true" | BlocksAll | captures are suspended | administrator
/pod/status/phase="Pending" | BlocksAll | does not run yet | describe pod
/pod/status/phase="Succeeded" | BlocksAll | phase Succeeded | podTemplate
init container waits | BlocksAll | flopwatch-tools (image nsys:1) keeps the pod from starting: ImagePullBackOff | pull the image
image volume and container waits | BlocksAll | has mounted keeps the pod from starting: Back-off pulling image "nsys:1" | admission.delivery to copy
/node=null | BlocksAll | n1 is not in the cluster any more
/node="hidden" | Unchecked | whether node n1 is ready
/node/status/conditions/0/status="Unknown" | BlocksAll | n1 is not ready | NodeLost
/node/status/nodeInfo/architecture="arm64" | BlocksAll | n1 is linux/arm64
/node/status/allocatable={} | Note | no nvidia.com resource
unasked and plain and no init | BlocksNsys | main is not prepared: nobody asked for it | flopwatch.dev/prepare: nsys
asked for perf and plain and no init | BlocksNsys | prepare names "perf" | flopwatch.dev/prepare: nsys
asked for kineto and plain and no init | BlocksNsys | prepare is kineto, which leaves Nsight Systems out | flopwatch.dev/prepare: nsys.kineto
plain and no init | BlocksNsys | admission did not see the pod | create the pod anew
no init | BlocksNsys | main is not prepared | name it in annotation
/pod/metadata/annotations={"flopwatch.dev/unprepared": "side: x\nmain: no command"} and no init | BlocksNsys | main was not prepared: no command | change that
/pod/metadata/annotations={"flopwatch.dev/prepare-containers": "side", "flopwatch.dev/prepared": "side"} | BlocksNsys | names side alone | add it there
plain and no init and /webhooks=null | BlocksNsys | admission is not installed | admission.enabled
plain and no init and /webhooks="hidden" | Unchecked | whether admission sees
plain and no init and excluded | BlocksNsys | admission does not look at namespace team | excludedNamespaces
plain and no init and /installation/3/status={} | BlocksNsys | no admission is ready | component=admission
unasked and plain and no init and no command | Note | main has no command of its own | entrypointLookup
unasked and plain and no init and no GPU | BlocksAll | no container asks for a GPU and none was prepared | it has main, side
no GPU | Note | sessions take those that were prepared: main
"#;

/// A change of the healthy world: `PLACE=JSON`, or in words one that rows share or that is long.
fn change(text: &str) -> (&str, Value) {
    match text {
        "unasked" => ("/pod/metadata/labels", json!({})),
        "asked for perf" => ("/pod/metadata/labels", json!({"flopwatch.dev/prepare": "perf"})),
        "asked for kineto" => ("/pod/metadata/labels", json!({"flopwatch.dev/prepare": "kineto"})),
        "plain" => ("/pod/metadata/annotations", json!({})),
        "no init" => ("/pod/spec/initContainers", json!([])),
        "no GPU" => ("/pod/spec/containers/0/resources", json!({})),
        "no command" => {
            let asks = json!({"name": "main", "resources": {"claims": [{"name": "gpu"}]}});
            ("/pod/spec/containers/0", asks)
        }
        "image volume" => {
            let volume = json!({"name": "flopwatch-profiler", "image": {"reference": "nsys:1"}});
            ("/pod/spec/volumes", json!([volume]))
        }
        "container waits" => {
            let why = json!({"reason": "ImagePullBackOff", "message": "Back-off pulling image \"nsys:1\""});
            waiting("containerStatuses", "main", "", &why)
        }
        "init container waits" => {
            let reason = json!({"reason": "ImagePullBackOff"});
            waiting("initContainerStatuses", "flopwatch-tools", "nsys:1", &reason)
        }
        "excluded" => {
            let values = "/webhooks/webhooks/0/namespaceSelector/matchExpressions/0/values";
            (values, json!(["kube-system", "team"]))
        }
        _ => {
            let (place, value) = text.split_once('=').expect(text);
            (place, serde_json::from_str(value).expect(text))
        }
    }
}

/// The status of a pod with a container that waits so.
fn waiting(list: &str, name: &str, image: &str, why: &Value) -> (&'static str, Value) {
    let status = json!({
        "name": name, "image": image, "imageID": "", "ready": false, "restartCount": 0, "state": {"waiting": why}
    });
    ("/pod/status", json!({"phase": "Pending", list: [status]}))
}

#[test]
fn what_is_in_the_way_is_found_with_what_helps() {
    for row in FINDINGS.trim().lines() {
        let mut columns = row.split(" | ");
        let changes: Vec<_> = columns.next().unwrap().split(" and ").map(change).collect();
        let (level, what) = (columns.next().expect(row), columns.next().expect(row));
        let report = examine(&with(&changes), None);
        let found = report.findings.iter().find(|finding| finding.what.contains(what));
        let found = found.unwrap_or_else(|| panic!("{what:?} is not among {:#?}", report.findings));
        assert_eq!(format!("{:?}", found.level), level, "{found:?}");
        let remedy = found.remedy.as_deref().unwrap_or_default();
        assert!(remedy.contains(columns.next().unwrap_or_default()), "{found:?}");
        let is_open = report.findings.iter().all(|finding| finding.level != Level::BlocksAll);
        assert_eq!(report.metrics, is_open, "{what}");
        assert!(!report.nsys || !level.starts_with("Blocks"), "{what}");
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

/// A capture of container `main`.
fn captured(name: &str, created: &str, status: &Value) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "team", "creationTimestamp": created},
        "spec": {
            "sessionRef": {"name": "s", "id": "0badcafe"}, "nodeName": "n1",
            "podRef": {"name": "trainer", "uid": "uid"}, "containerName": "main", "durationSeconds": 5,
            "startDeadlineSeconds": 300, "outputs": ["Timeline"]
        },
        "status": status
    })
}

#[test]
fn the_agents_own_last_finding_is_told() {
    let open = json!({"profiler": "Nsys", "available": true, "reason": "Available"});
    let closed = json!({
        "profiler": "Nsys", "available": false, "reason": "NotGrafted", "remedy": "a glibc of 2.28 or newer"
    });
    let captures = json!([
        captured("old", "2026-01-01T00:00:00Z", &json!({"capabilities": [open]})),
        captured("new", "2026-01-02T00:00:00Z", &json!({"capabilities": [closed]})),
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
    let status = json!({
        "capabilities": [{"profiler": "Nsys", "available": true, "reason": "Available"}],
        "gpus": [{"uuid": "GPU-1", "share": "Container"}, {"uuid": "GPU-2", "share": "Shared"}]
    });
    let captures = json!([captured("last", "2026-01-02T00:00:00Z", &status)]);
    assert_eq!(
        notes(&[("/captures", captures)]),
        ["capture last found for container main: GPU-2 (Shared)"]
    );
}
