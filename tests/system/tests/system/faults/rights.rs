//! The API server refuses for a while what agents ask of it.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use flopwatch_api::capture::Stage;
use flopwatch_system_tests::cluster::{Group, TestNamespace, eventually};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DeleteParams, PostParams};

use super::release::{recovers, trainer_and_agents};

/// How long agents have no rights.
const REFUSAL_DURATION: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_finished_capture_outlives_an_api_server_that_refuses_its_agent_for_a_while() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Faults, "refused").await? else {
        return Ok(());
    };
    let (trainer, alone) = trainer_and_agents(&namespace, "trainer").await?;
    let agent = trainer.agent().await?;
    trainer.profile(&namespace, "struck", 4).await?;
    let capture = namespace.in_stage("struck", Stage::Collecting).await?;
    let manifest = agent.manifest(&capture);
    let bindings = Api::<ClusterRoleBinding>::all(namespace.client.clone());
    let binding = bindings.get("flopwatch-agent").await?;
    bindings.delete("flopwatch-agent", &DeleteParams::default()).await?;
    let since = Instant::now();
    ensure!(!manifest.exists(), "the capture ended before the rights were gone");
    // The window closes and the artifacts are stored; the API server takes none of it.
    let done = eventually("the agent to have done all but tell", || async {
        Ok((manifest.exists() && since.elapsed() >= REFUSAL_DURATION).then_some(()))
    })
    .await;
    let again = ClusterRoleBinding {
        metadata: ObjectMeta {
            name: binding.metadata.name,
            labels: binding.metadata.labels,
            annotations: binding.metadata.annotations,
            ..ObjectMeta::default()
        },
        ..binding
    };
    bindings.create(&PostParams::default(), &again).await?;
    done?;
    let end = namespace.success_of("struck").await?;
    recovers(namespace, &trainer, &end, alone).await
}
