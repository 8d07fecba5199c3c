//! Who may say that a pod was prepared: admission, and nobody else.

use anyhow::{Context as _, Result, bail, ensure};
use flopwatch_system_tests::cluster::{Group, TestNamespace, dry_run};
use flopwatch_system_tests::pods::workload;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

const PREPARED: &str = "flopwatch.dev/prepared";

/// The API server refused it, and named the annotation or the volume.
fn is_refused<T>(what: &str, outcome: kube::Result<T>, named: &str) -> Result<()> {
    match outcome {
        Ok(_) => bail!("{what}: admitted"),
        Err(kube::Error::Api(status)) if status.message.contains(named) => Ok(()),
        Err(error) => bail!("{what}: {error}"),
    }
}

fn claiming(name: &str, label: bool, key: &str) -> Result<Pod> {
    let mut pod = workload(name, label, &[]);
    pod["metadata"]["annotations"] = json!({ key: "main" });
    Ok(serde_json::from_value(pod)?)
}

#[tokio::test]
async fn a_new_pod_cannot_say_that_it_was_prepared() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "claims").await? else {
        return Ok(());
    };
    let parameters = PostParams::default();
    let pods = namespace.api::<Pod>();
    for (name, label) in [("bare", false), ("labelled", true)] {
        for end in ["", "-version", "-anything"] {
            let key = format!("{PREPARED}{end}");
            let claims = claiming(name, label, &key)?;
            is_refused(name, pods.create(&parameters, &claims).await, &key)?;
        }
    }
    // A namespace in which nothing is prepared.
    let excluded: Api<Pod> = Api::namespaced(namespace.client.clone(), "kube-system");
    for label in [false, true] {
        let claims = claiming("excluded", label, PREPARED)?;
        let outcome = excluded.create(&dry_run(), &claims).await;
        is_refused("kube-system", outcome, PREPARED)?;
    }
    // Who brings the init containers along too has only named his own.
    let mut copied = workload("copied", true, &[]);
    let init = |name: &str| {
        let mut container = copied["spec"]["containers"][0].clone();
        container["name"] = json!(name);
        container
    };
    copied["spec"]["initContainers"] = json!([init("flopwatch-launcher"), init("flopwatch-tools")]);
    let created = namespace.create_pod(copied).await?;
    let annotations = created.annotations();
    ensure!(!annotations.contains_key(PREPARED), "{annotations:?}");
    namespace.delete().await
}

#[tokio::test]
async fn a_running_pod_cannot_be_said_to_be_prepared() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "changes").await? else {
        return Ok(());
    };
    let pods = namespace.api::<Pod>();
    namespace.create_pod(workload("plain", false, &[])).await?;
    let prepared = namespace.create_pod(workload("prepared", true, &[])).await?;
    ensure!(prepared.annotations().get(PREPARED).map(String::as_str) == Some("main"));
    let parameters = PatchParams::default();
    let annotate = |key: &str, value: &str| Patch::Merge(json!({ "metadata": { "annotations": { key: value } } }));
    for (name, value) in [("plain", "main"), ("prepared", "main,other")] {
        let change = annotate(PREPARED, value);
        is_refused(name, pods.patch(name, &parameters, &change).await, PREPARED)?;
        is_refused(name, pods.patch_status(name, &parameters, &change).await, PREPARED)?;
    }
    let late = annotate("flopwatch.dev/prepared-more", "1");
    is_refused("more", pods.patch("prepared", &parameters, &late).await, PREPARED)?;
    let copied = namespace.copied(workload("copied", true, &[])).await?;
    namespace.create_pod(copied).await?;
    let image = json!({ "spec": { "initContainers": [{ "name": "flopwatch-tools", "image": "localhost/flopwatch/workload:dev" }] } });
    let outcome = pods.patch("copied", &parameters, &Patch::Strategic(image)).await;
    is_refused("another image", outcome, "flopwatch-tools")?;
    // What is none of ours goes on as it did.
    pods.patch("prepared", &parameters, &annotate("example.org/note", "x"))
        .await?;
    pods.patch("plain", &parameters, &annotate("flopwatch.dev/nsys-trace", "nvtx"))
        .await?;
    namespace.running("prepared").await?;
    namespace.delete().await
}

#[tokio::test]
async fn the_tools_of_a_prepared_pod_are_writable_for_nobody() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "tools").await? else {
        return Ok(());
    };
    let pods = namespace.api::<Pod>();
    let mount = |read_only: bool| json!({ "name": "flopwatch-tools", "mountPath": "/x", "readOnly": read_only });
    let sidecar = |pod: &Value, read_only: bool| -> Result<Value> {
        let mut sidecar = pod["spec"]["containers"][0].clone();
        sidecar["name"] = json!("sidecar");
        sidecar["volumeMounts"] = json!([mount(read_only)]);
        Ok(sidecar)
    };
    let mut pod = workload("writes", true, &[]);
    pod["metadata"]["annotations"] = json!({ "flopwatch.dev/prepare-containers": "main" });
    let writer = sidecar(&pod, false)?;
    let containers = pod["spec"]["containers"].as_array_mut();
    containers.context("no containers")?.push(writer);
    let parameters = PostParams::default();
    let outcome = pods.create(&parameters, &serde_json::from_value(pod.clone())?).await;
    is_refused("a sidecar that writes", outcome, "flopwatch-tools")?;
    // Until the kubelet says which container a process is of, what is mounted tells: so nothing
    // else may be mounted there.
    let mut covers = pod.clone();
    covers["metadata"]["name"] = json!("covers");
    covers["spec"]["volumes"] = json!([{ "name": "own", "emptyDir": {} }]);
    covers["spec"]["containers"][1]["volumeMounts"] =
        json!([{ "name": "own", "mountPath": "/flopwatch/tools", "readOnly": true }]);
    let outcome = pods.create(&parameters, &serde_json::from_value(covers)?).await;
    is_refused("a sidecar with tools of its own", outcome, "mount nothing else there")?;
    pod["metadata"]["name"] = json!("reads");
    pod["spec"]["containers"][1] = sidecar(&pod, true)?;
    namespace.create_pod(pod).await?;
    let debugger = |read_only: bool| {
        Patch::Strategic(json!({ "spec": { "ephemeralContainers": [{
            "name": "debugger", "image": "localhost/flopwatch/workload:dev", "imagePullPolicy": "Never", "command": ["/bin/true"],
            "securityContext": { "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } },
            "volumeMounts": [mount(read_only)]
        }] } }))
    };
    let parameters = PatchParams::default();
    let outcome = pods
        .patch_ephemeral_containers("reads", &parameters, &debugger(false))
        .await;
    is_refused("a debugger that writes", outcome, "flopwatch-tools")?;
    pods.patch_ephemeral_containers("reads", &parameters, &debugger(true))
        .await?;
    namespace.delete().await
}
