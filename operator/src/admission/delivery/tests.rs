#![expect(
    clippy::needless_pass_by_value,
    reason = "`json!` values read better given than lent"
)]

use serde_json::{Value, json};

use super::*;

fn node(kubelet: &str, runtime: &str) -> Value {
    json!({
        "metadata": {"name": format!("{kubelet}-{runtime}"), "labels": {"pool": "a"}},
        "status": {
            "allocatable": {"cpu": "2"},
            "nodeInfo": {
                "kubeletVersion": kubelet, "containerRuntimeVersion": runtime, "operatingSystem": "linux", "architecture": "amd64",
                "bootID": "", "kernelVersion": "", "kubeProxyVersion": "", "machineID": "", "osImage": "", "systemUUID": ""
            }
        }
    })
}

fn able() -> Value {
    node("v1.35.4", "containerd://2.2.9")
}

/// What is known of a cluster with these nodes, whose API server keeps volumes of images or does
/// not.
fn cluster(nodes: &[Value], keeps: bool) -> Delivering {
    let (store, mut writer) = reflector::store();
    writer.apply_watcher_event(&watcher::Event::Init);
    for node in nodes {
        let node: Node = serde_json::from_value(node.clone()).unwrap();
        writer.apply_watcher_event(&watcher::Event::InitApply(prune(node)));
    }
    writer.apply_watcher_event(&watcher::Event::InitDone);
    Delivering {
        mode: DeliveryMode::Auto,
        nodes: store,
        kept: Arc::new(AtomicBool::new(keeps)),
    }
}

fn pod(spec: Value) -> Pod {
    let mut whole = json!({"containers": [{"name": "c"}]});
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    serde_json::from_value(json!({"spec": whole})).unwrap()
}

#[test]
fn images_are_mounted_where_every_node_is_known_to_mount_their_folders() {
    let plain = pod(json!({}));
    let rows = [
        (vec![able()], Delivery::Mount),
        (
            vec![able(), node("v1.36.0-gke.100", "containerd://2.3.0-rc.1")],
            Delivery::Mount,
        ),
        (vec![able(), node("v1.35.0", "containerd://v2.2.0")], Delivery::Mount),
        (vec![], Delivery::Copy),
        (vec![able(), node("v1.34.9", "containerd://2.2.9")], Delivery::Copy),
        // It mounts an image, and all of it in the place of the folder.
        (vec![able(), node("v1.35.4", "containerd://2.1.5")], Delivery::Copy),
        (vec![able(), node("v1.35.4", "containerd://1.7.27")], Delivery::Copy),
        (vec![able(), node("v1.35.4", "cri-o://1.35.0")], Delivery::Copy),
        (vec![able(), node("v1.35.4", "docker://28.0")], Delivery::Copy),
        (vec![able(), node("", "")], Delivery::Copy),
        (
            vec![able(), json!({"metadata": {"name": "without a status"}})],
            Delivery::Copy,
        ),
    ];
    for (nodes, expected) in rows {
        assert_eq!(cluster(&nodes, true).to(&plain), expected, "{nodes:?}");
        assert_eq!(cluster(&nodes, false).to(&plain), Delivery::Copy, "{nodes:?}");
    }
}

#[test]
fn a_pod_that_no_present_node_takes_is_copied_into() {
    let mut gpu = able();
    gpu["metadata"] = json!({"name": "gpu", "labels": {"pool": "gpu"}});
    gpu["status"]["allocatable"]["nvidia.com/gpu"] = json!("8");
    let asks = || json!([{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]);
    let (without, with) = (cluster(&[able()], true), cluster(&[able(), gpu], true));
    assert_eq!(without.to(&pod(json!({"containers": asks()}))), Delivery::Copy);
    assert_eq!(with.to(&pod(json!({"containers": asks()}))), Delivery::Mount);
    let of_pool = |pool: &str| pod(json!({"containers": asks(), "nodeSelector": {"pool": pool}}));
    assert_eq!(with.to(&of_pool("gpu")), Delivery::Mount);
    assert_eq!(with.to(&of_pool("a")), Delivery::Copy);
    assert_eq!(with.to(&pod(json!({"nodeSelector": {"pool": "new"}}))), Delivery::Copy);
    for (operator, values, expected) in [
        ("In", json!(["new", "a"]), Delivery::Mount),
        ("In", json!(["new"]), Delivery::Copy),
        ("NotIn", json!(["gpu"]), Delivery::Mount),
        ("NotIn", json!(["gpu", "a"]), Delivery::Copy),
        ("Exists", json!([]), Delivery::Mount),
        ("DoesNotExist", json!([]), Delivery::Copy),
        ("Gt", json!(["0"]), Delivery::Copy),
    ] {
        let term = json!({"matchExpressions": [{"key": "pool", "operator": operator, "values": values}]});
        let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}});
        let pod = pod(json!({"affinity": {"nodeAffinity": required}}));
        assert_eq!(with.to(&pod), expected, "{operator} {values}");
    }
}

#[test]
fn pods_in_sandboxes_of_another_kind_are_copied_into_whatever_is_asked_for() {
    let told = Delivering {
        mode: DeliveryMode::Mount,
        ..cluster(&[], false)
    };
    for (spec, expected) in [
        (json!({}), Delivery::Mount),
        (json!({"runtimeClassName": "nvidia"}), Delivery::Mount),
        (json!({"hostUsers": true}), Delivery::Mount),
        (json!({"runtimeClassName": "kata"}), Delivery::Copy),
        (json!({"hostUsers": false}), Delivery::Copy),
    ] {
        assert_eq!(told.to(&pod(spec.clone())), expected, "{spec}");
        assert_eq!(cluster(&[able()], true).to(&pod(spec)), expected);
    }
    assert_eq!(Delivering::copying().to(&pod(json!({}))), Delivery::Copy);
}
