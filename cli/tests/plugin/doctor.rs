//! The doctor looks at what the caller may see, and says what it could not.

use serde_json::{Value, json};

use crate::api_server::ApiServer;
use crate::run;

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
        "metadata": {"name": component, "namespace": "flopwatch-system", "labels": {"app.kubernetes.io/component": component}},
        "spec": {"nodeName": "n1", "containers": []},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_nobody_prepared_is_told_how_and_ends_with_a_code_of_its_own() {
    let api = ApiServer::start().await;
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = api.kubeconfig(folder.path(), &json!({"token": "of-ada"}));
    api.put("/api/v1/namespaces/team/pods/trainer", pod());
    for component in ["controller", "agent", "gateway", "admission"] {
        api.put(
            &format!("/api/v1/namespaces/flopwatch-system/pods/{component}"),
            own(component),
        );
    }
    for hidden in [
        "/api/v1/nodes",
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    ] {
        api.forbid(hidden);
    }
    let ran = run(&kubeconfig, folder.path(), "doctor pod/trainer").await;
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
    let ran = run(&kubeconfig, folder.path(), "doctor trainer -o json").await;
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&report["nsys"], &report["metrics"]), (&json!(false), &json!(true)));
    let ran = run(&kubeconfig, folder.path(), "doctor gone").await;
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (1, "error: cannot read pod gone: \"gone\" not found\n")
    );
}
