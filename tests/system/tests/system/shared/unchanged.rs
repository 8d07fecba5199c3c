//! A prepared pod stays what it was to the cluster: its class, its share of a quota, its volumes,
//! and how it fails to start.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::pod;
use flopwatch_api::preparation::{PREPARED_ANNOTATION, UNPREPARED_ANNOTATION};
use flopwatch_system_tests::cluster::{Group, TestNamespace, eventually};
use flopwatch_system_tests::pods::workload;
use k8s_openapi::api::core::v1::{LimitRange, Pod, ResourceQuota};
use kube::ResourceExt as _;
use kube::api::PostParams;
use serde_json::{Value, json};

fn with_resources(name: &str, prepared: bool, resources: &Value) -> Value {
    let mut pod = workload(name, prepared, &[]);
    pod["spec"]["containers"][0]["resources"] = resources.clone();
    pod
}

fn class(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.qos_class.as_deref()
}

#[tokio::test]
async fn a_prepared_pod_keeps_its_class_and_one_without_room_for_the_tools_is_left_alone() -> Result<()> {
    // The namespace's level is "restricted": that the API server takes the pods at all shows that
    // preparation asks for no right.
    let Some(namespace) = TestNamespace::begin(Group::Shared, "class").await? else {
        return Ok(());
    };
    let some = json!({ "cpu": "50m", "memory": "64Mi" });
    let cases = [
        ("guaranteed", json!({ "requests": some, "limits": some }), "Guaranteed"),
        ("burstable", json!({ "requests": { "memory": "64Mi" } }), "Burstable"),
        ("best-effort", json!({}), "BestEffort"),
    ];
    for (name, resources, expected) in cases {
        for prepared in [false, true] {
            let pod = with_resources(name, prepared, &resources);
            let pod = namespace.admitted(pod).await?;
            let found = class(&pod);
            ensure!(found == Some(expected), "{name}, prepared {prepared}: {found:?}");
            let is_prepared = pod.annotations().contains_key(PREPARED_ANNOTATION);
            ensure!(is_prepared == prepared, "{pod:?}");
        }
    }
    let tight = json!({ "limits": { "ephemeral-storage": "90Mi" } });
    let pod = namespace.admitted(with_resources("tight", true, &tight)).await?;
    let why = pod.annotations().get(UNPREPARED_ANNOTATION).context("no reason")?;
    ensure!(
        why.contains("ephemeral-storage limit of 94371840 bytes is too small"),
        "{why}"
    );
    ensure!(!pod::has_launcher(&pod), "{pod:?}");
    namespace.delete().await
}

#[tokio::test]
async fn a_prepared_pod_takes_no_more_of_a_quota_and_cannot_write_to_its_tools() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "quota").await? else {
        return Ok(());
    };
    let one = json!({ "cpu": "50m", "memory": "64Mi", "ephemeral-storage": "2Gi" });
    // Room for two such pods and nothing more; whoever says nothing about a resource is refused.
    let quota: ResourceQuota = serde_json::from_value(json!({
        "metadata": { "name": "two" },
        "spec": { "hard": {
            "pods": "2",
            "requests.cpu": "100m", "requests.memory": "128Mi", "requests.ephemeral-storage": "4Gi",
            "limits.cpu": "100m", "limits.memory": "128Mi", "limits.ephemeral-storage": "4Gi",
        } }
    }))?;
    let range: LimitRange = serde_json::from_value(json!({
        "metadata": { "name": "exactly" },
        "spec": { "limits": [{ "type": "Container", "min": one, "max": one }] }
    }))?;
    let quotas = namespace.api::<ResourceQuota>();
    quotas.create(&PostParams::default(), &quota).await?;
    namespace.api().create(&PostParams::default(), &range).await?;
    eventually("the quota to be counted", || async {
        let status = quotas.get("two").await?.status;
        Ok(status.and_then(|status| status.used).filter(|used| !used.is_empty()))
    })
    .await?;
    let resources = json!({ "requests": one, "limits": one });
    for (name, prepared) in [("plain", false), ("prepared", true)] {
        namespace.create_pod(with_resources(name, prepared, &resources)).await?;
    }
    let used = eventually("both pods to be counted", || async {
        let status = quotas.get("two").await?.status;
        let used = status.and_then(|status| status.used).context("no status")?;
        Ok(used.get("pods").is_some_and(|pods| pods.0 == "2").then_some(used))
    })
    .await?;
    ensure!(
        used["requests.memory"].0 == "128Mi" && used["limits.cpu"].0 == "100m",
        "{used:?}"
    );

    namespace.grafted("prepared").await?;
    let message = namespace
        .shell("prepared", "touch /flopwatch/tools/x 2>&1 || true")
        .await?;
    ensure!(message.contains("Read-only file system"), "{message}");
    namespace.delete().await
}
