//! A copy that would hold what its original must take along to another node.

use anyhow::{Result, ensure};
use flopwatch_system_tests::cluster::{Group, TestNamespace};
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::sessions::of_copy;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{ListParams, PostParams};
use serde_json::json;

#[tokio::test]
async fn a_pod_with_a_claim_of_one_node_is_not_copied() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Hostile, "claims").await? else {
        return Ok(());
    };
    namespace.allow_pod_templates().await?;
    // No volume ever comes, and none is needed: what the claim asks for is what counts.
    let claim: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": { "name": "data" },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "",
            "resources": { "requests": { "storage": "1Mi" } }
        }
    }))?;
    namespace.api().create(&PostParams::default(), &claim).await?;
    let mut pod = workload("trainer", false, &[]);
    pod["spec"]["volumes"] = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
    namespace.create_pod(pod).await?;
    namespace
        .create_session("copied", of_copy("trainer", 1, "Nsys"))
        .await?;
    namespace
        .ends_without_targets("copied", "PodRefused", "claim data (ReadWriteOnce)")
        .await?;
    let pods = namespace.api::<Pod>().list(&ListParams::default()).await?.items;
    ensure!(pods.len() == 1, "{} pods", pods.len());
    namespace.delete().await
}
