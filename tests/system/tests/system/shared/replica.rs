//! Sessions that profile a copy of a pod: the original serves on as it was, and the copy is gone
//! with its session.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::cluster::{Group, TestNamespace};
use flopwatch_system_tests::pod_state::PodState;
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::sessions::of_copy;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt as _;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};

/// The original, behind a Service of its label.
pub(super) async fn serving(namespace: &TestNamespace, mut original: Value) -> Result<PodState> {
    original["metadata"]["labels"]["app"] = json!("trainer");
    namespace.create_pod(original).await?;
    let service = json!({
        "metadata": { "name": "trainer" },
        "spec": { "selector": { "app": "trainer" }, "ports": [{ "port": 80 }] }
    });
    let service: Service = serde_json::from_value(service)?;
    namespace.api().create(&PostParams::default(), &service).await?;
    namespace.running("trainer").await?;
    PodState::of(namespace, "trainer").await
}

/// Pods that stand behind the Service.
pub(super) async fn endpoints(namespace: &TestNamespace) -> Result<Vec<String>> {
    let of_service = ListParams::default().labels("kubernetes.io/service-name=trainer");
    let slices = namespace.api::<EndpointSlice>().list(&of_service).await?;
    let endpoints = slices.items.into_iter().flat_map(|slice| slice.endpoints);
    Ok(endpoints.filter_map(|endpoint| endpoint.target_ref?.name).collect())
}

#[tokio::test]
async fn a_copy_of_a_pod_behind_a_service_is_profiled_and_the_pod_itself_serves_on() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "replica").await? else {
        return Ok(());
    };
    namespace.allow_pod_templates().await?;
    let before = serving(&namespace, workload("trainer", true, &[])).await?;
    namespace.launch_state("trainer").await?;
    let asked = |seconds: u32| of_copy("trainer", seconds, "Nsys");

    namespace.create_session("copied", asked(2)).await?;
    let made = namespace.own_pod("copied").await?;
    ensure!(made.labels().get("app").is_none(), "{:?}", made.labels());
    let image = |pod: &Pod| pod.spec.as_ref()?.containers.first()?.image.clone();
    let original = namespace.api::<Pod>().get("trainer").await?;
    ensure!(image(&made) == image(&original), "{:?}", image(&made));
    let behind = endpoints(&namespace).await?;
    ensure!(behind == ["trainer"], "{behind:?}");
    let capture = namespace.succeeded("copied").await?;
    let profiled = capture.spec.pod_ref;
    ensure!(profiled.name == made.name_any(), "{profiled:?}");
    let behind = endpoints(&namespace).await?;
    ensure!(behind == ["trainer"], "{behind:?}");
    namespace.pod_gone(&made.name_any()).await?;
    let kept = namespace.api::<ProfilingSession>().get_opt("copied").await?;
    ensure!(kept.is_some(), "the session outlives its copy");
    before.goes_on(&namespace).await.context("after a capture")?;

    namespace.create_session("discarded", asked(300)).await?;
    let made = namespace.own_pod("discarded").await?;
    namespace.stop("discarded", "Discard").await?;
    namespace.pod_gone(&made.name_any()).await?;

    namespace.create_session("deleted", asked(300)).await?;
    let made = namespace.own_pod("deleted").await?;
    namespace.delete_session("deleted").await?;
    namespace.pod_gone(&made.name_any()).await?;
    before.goes_on(&namespace).await.context("after all")?;
    namespace.delete().await
}
