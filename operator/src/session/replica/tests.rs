//! What a copy keeps of its original, and which pods are not copied.

use flopwatch_api::preparation::{PREPARE_LABEL, PREPARED_ANNOTATION};

use super::*;

fn source(metadata: &Value, spec: &Value) -> DynamicObject {
    let mut full = json!({"name": "train", "namespace": "team", "uid": "u-1"});
    json_patch::merge(&mut full, metadata);
    serde_json::from_value(json!({"metadata": full, "spec": spec, "status": {"phase": "Running"}})).unwrap()
}

fn copied(metadata: &Value, spec: &Value) -> Result<Value, ReplicaError> {
    let claims = Claims::from([("c".to_owned(), Access::ManyNodes)]);
    of("train", "team", Some(&source(metadata, spec)), &claims).map(|copy| json!(copy))
}

#[test]
fn a_copy_runs_the_same_and_takes_nothing_of_the_originals_place() {
    let spec = json!({
        "nodeName": "n1", "hostname": "train-0", "subdomain": "train", "priority": 1000, "priorityClassName": "high",
        "preemptionPolicy": "PreemptLowerPriority", "restartPolicy": "Always", "serviceAccountName": "trainer",
        "nodeSelector": {"gpu": "h100"}, "tolerations": [{"key": "gpu"}], "fieldOfTomorrow": 1,
        "topologySpreadConstraints": [{"maxSkew": 1}],
        "affinity": {"nodeAffinity": {"a": 1}, "podAntiAffinity": {"b": 2}},
        "containers": [{
            "name": "main", "image": "train:1", "command": ["python", "train.py"], "env": [{"name": "A", "value": "1"}],
            "resources": {"limits": {"nvidia.com/gpu": "2"}}, "ports": [{"containerPort": 80, "hostPort": 80}],
            "livenessProbe": {"tcpSocket": {"port": 80}}, "readinessProbe": {}, "startupProbe": {}, "lifecycle": {"preStop": {}}
        }]
    });
    let labels = json!({"labels": {"app": "train"}, "annotations": {"a": "b", "flopwatch.dev/jax-port": "9012"}});
    let copy = copied(&labels, &spec).unwrap();
    assert_eq!(
        copy,
        json!({
            "metadata": {"annotations": {
                "flopwatch.dev/replica-of": "train/u-1", "flopwatch.dev/jax-port": "9012"
            }},
            "spec": {
                "serviceAccountName": "trainer", "nodeSelector": {"gpu": "h100"}, "tolerations": [{"key": "gpu"}],
                "fieldOfTomorrow": 1, "affinity": {"nodeAffinity": {"a": 1}},
                "containers": [{
                    "name": "main", "image": "train:1", "command": ["python", "train.py"],
                    "env": [{"name": "A", "value": "1"}], "resources": {"limits": {"nvidia.com/gpu": "2"}}
                }]
            }
        })
    );
}

#[test]
fn what_outlives_the_original_can_be_read_and_the_accounts_token_is_given_anew() {
    let mount = |name: &str| json!({"name": name, "mountPath": format!("/{name}")});
    let mut shared = mount("checkpoints");
    shared["mountPropagation"] = json!("Bidirectional");
    let token = "kube-api-access-x7k2p";
    let spec = json!({
        "volumes": [
            {"name": "checkpoints", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "data", "hostPath": {"path": "/data"}},
            {"name": "lustre", "csi": {"driver": "lustre"}},
            {"name": "scratch", "emptyDir": {}},
            {"name": "work", "ephemeral": {"volumeClaimTemplate": {}}},
            {"name": token, "projected": {"sources": []}}
        ],
        "initContainers": [{"name": "fetch", "volumeMounts": [mount("data")]}],
        "containers": [{
            "name": "main",
            "volumeMounts": [shared, mount("lustre"), mount("scratch"), mount("work"), mount(token)]
        }]
    });
    let copy = copied(&json!({}), &spec).unwrap();
    let mounts = &copy["spec"]["containers"][0]["volumeMounts"];
    let of = |name: &str| mounts.as_array().unwrap().iter().find(|mount| mount["name"] == name);
    for name in ["checkpoints", "lustre"] {
        assert_eq!(of(name).unwrap()["readOnly"], true, "{name}");
    }
    for name in ["scratch", "work"] {
        assert_eq!(of(name).unwrap().get("readOnly"), None, "{name}");
    }
    assert_eq!(of("checkpoints").unwrap().get("mountPropagation"), None);
    assert_eq!(of(token), None);
    assert_eq!(copy["spec"]["initContainers"][0]["volumeMounts"][0]["readOnly"], true);
    assert_eq!(
        copy["spec"]["volumes"].as_array().unwrap().len(),
        5,
        "all but the token"
    );
}

#[test]
fn a_prepared_pod_is_copied_as_it_was_before_its_preparation() {
    let metadata = json!({"labels": {PREPARE_LABEL: "nsys"}, "annotations": {PREPARED_ANNOTATION: "main"}});
    let spec = json!({
        "volumes": [{"name": "flopwatch-tools", "emptyDir": {}}, {"name": "flopwatch-run-0", "emptyDir": {}}],
        "initContainers": [{"name": "flopwatch-launcher"}, {"name": "flopwatch-tools"}],
        "containers": [{
            "name": "main", "command": ["/flopwatch/tools/launcher", "run", "--", "python", "train.py"],
            "volumeMounts": [{"name": "flopwatch-tools", "mountPath": "/flopwatch/tools"}]
        }]
    });
    let copy = copied(&metadata, &spec).unwrap();
    assert_eq!(
        copy["spec"],
        json!({"containers": [{"name": "main", "command": ["python", "train.py"]}]})
    );
    assert_eq!(copy["metadata"].get("labels"), None);
}

#[test]
fn a_pod_whose_copy_would_meet_it_is_refused_and_only_an_absent_one_is_waited_for() {
    let main = json!([{"name": "main"}]);
    let block = json!([{"name": "main", "volumeDevices": [{"name": "d", "devicePath": "/dev/d"}]}]);
    let claim = json!([{"name": "gpu", "resourceClaimName": "shared"}]);
    let templated = json!([{"name": "gpu", "resourceClaimTemplateName": "own"}]);
    let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    let rows = [
        (
            json!({}),
            json!({"containers": main, "hostNetwork": true}),
            "hostNetwork",
        ),
        (json!({}), json!({"containers": main, "hostPID": true}), "hostPID"),
        (json!({}), json!({"containers": main, "hostIPC": true}), "hostIPC"),
        (
            json!({}),
            json!({"containers": main, "resourceClaims": claim}),
            "resourceClaimTemplateName",
        ),
        (json!({}), json!({"containers": block}), "block devices"),
        (
            json!({"labels": {SESSION_LABEL: "first"}}),
            json!({"containers": main}),
            "made by a session",
        ),
        (deleted, json!({"containers": main}), "being deleted"),
        (json!({}), json!({"containers": 7}), "cannot be read"),
    ];
    for (metadata, spec, words) in rows {
        let error = copied(&metadata, &spec).unwrap_err();
        assert!(
            error.to_string().contains(words) && error.waiting_reason().is_none(),
            "{error}"
        );
    }
    let absent = of("train", "team", None, &Claims::new()).unwrap_err();
    assert_eq!(absent.waiting_reason(), Some(SessionReason::WaitingForTargets));
    assert!(absent.to_string().contains("no pod train in namespace team"));
    copied(
        &json!({}),
        &json!({"containers": main, "hostNetwork": false, "resourceClaims": templated}),
    )
    .unwrap();
}

#[test]
fn a_pod_whose_copy_would_hold_what_one_node_may_have_is_refused() {
    let mounting = |volume: &Value| json!({"containers": [{"name": "main"}], "volumes": [volume]});
    let claim = |name: &str| json!({"name": "data", "persistentVolumeClaim": {"claimName": name}});
    let held = |access: Access, volume: &Value| {
        let claims = Claims::from([("data-train-0".to_owned(), access)]);
        of("train", "team", Some(&source(&json!({}), &mounting(volume))), &claims)
    };
    let mounted = claim("data-train-0");
    held(Access::ManyNodes, &mounted).unwrap();
    for modes in ["ReadWriteOnce", "ReadWriteOncePod"] {
        let modes = modes.to_owned();
        let error = held(Access::OneNode { modes: modes.clone() }, &mounted).unwrap_err();
        let words = format!("pod train mounts claim data-train-0 ({modes})");
        assert!(
            error.to_string().starts_with(&words) && error.waiting_reason().is_none(),
            "{error}"
        );
    }
    let unread = held(Access::Unread, &mounted).unwrap_err();
    assert_eq!(unread.waiting_reason(), Some(SessionReason::PodsNotAllowed));
    assert!(unread.to_string().contains("flopwatch-pod-templates"), "{unread}");
    held(Access::Unread, &claim("another")).unwrap();
    let disk = json!({"name": "data", "awsElasticBlockStore": {"volumeID": "v"}});
    let error = held(Access::ManyNodes, &disk).unwrap_err();
    assert!(
        error.to_string().contains("volume data of pod train is a disk"),
        "{error}"
    );
    let many: Vec<Value> = (0..=MAX_CLAIMS).map(|number| claim(&format!("c-{number}"))).collect();
    let spec = json!({"containers": [{"name": "main"}], "volumes": many});
    let error = copied(&json!({}), &spec).unwrap_err();
    assert!(error.to_string().contains("mounts 33 claims"), "{error}");
}
