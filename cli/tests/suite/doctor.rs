//! The doctor looks at what the caller may see, and says what it could not.

use flopwatch_test_harness::Right;
use serde_json::{Value, json};

use crate::cluster::Cluster;

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "trainer", "namespace": "team", "uid": "uid"},
        "spec": {"nodeName": "n1", "containers": [{
            "name": "main", "image": "i", "command": ["train"], "resources": {"limits": {"nvidia.com/gpu": "1"}}
        }]},
        "status": {"phase": "Running"}
    })
}

fn own(component: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": component, "namespace": "flopwatch-system",
            "labels": {"app.kubernetes.io/name": "flopwatch", "app.kubernetes.io/component": component}
        },
        "spec": {"nodeName": "n1", "containers": []},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_nobody_prepared_is_told_how_and_ends_with_a_code_of_its_own() {
    let cluster = Cluster::start().await;
    cluster.api.put(&pod());
    for component in ["controller", "agent", "gateway", "admission"] {
        cluster.api.put(&own(component));
    }
    // Neither nodes nor the webhook configuration.
    let core = ["pods", "namespaces", "configmaps"].map(|resource| Right::resource("*", "", resource));
    cluster.allow_only(core.into_iter().chain([Right::resource("*", "flopwatch.dev", "*")]));
    let ran = cluster.run("doctor pod/trainer").await;
    assert_eq!(ran.code, 4, "{ran:?}");
    assert_eq!(
        ran.out,
        "Pod team/trainer

ok    the controller runs
ok    the pod runs on n1
?     whether node n1 is ready: you may not read nodes
ok    the agent of n1 runs
ok    asks for a GPU: main
no    container main is not prepared: nobody asked for it
      -> put the label flopwatch.dev/prepare: nsys on the pod, delete it and create it anew
?     whether admission sees pods of this namespace: you may not read the webhook configuration

Nsight Systems: closed
NVML metrics:   open
"
    );
    let ran = cluster.run("doctor trainer -o json").await;
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&report["nsys"], &report["metrics"]), (&json!(false), &json!(true)));
    let mut kineto = pod();
    kineto["metadata"]["labels"] = json!({"flopwatch.dev/prepare": "kineto"});
    kineto["metadata"]["annotations"] = json!({"flopwatch.dev/prepared-for": "main: kineto"});
    cluster.api.put(&kineto);
    let ran = cluster.run("doctor trainer").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = cluster.run("doctor gone").await;
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (1, "error: cannot read pod gone: pods \"gone\" not found\n")
    );
}
