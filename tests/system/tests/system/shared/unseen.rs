//! A pod that asked to be prepared where admission did not see it: it runs as it is, and everybody
//! is told.

use anyhow::{Context as _, Result, ensure};
use flopwatch_system_tests::cluster::{Cluster, Group};
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::sessions::condition_of;

/// A namespace of `admission.excludedNamespaces` of the release under test: pods there are as those
/// that were created while admission was away.
const UNSEEN: &str = "flopwatch-unseen";

#[tokio::test]
async fn a_pod_that_admission_did_not_see_is_told_so_and_so_is_the_session_that_targets_it() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace_called(UNSEEN).await?;
    let pod = namespace.create_pod(workload("trainer", true, &["--quiet"])).await?;
    let annotations = pod.metadata.annotations.unwrap_or_default();
    ensure!(annotations.is_empty(), "admission saw it: {annotations:?}");
    namespace.running("trainer").await?;
    let (type_, told) = namespace.event("trainer", "AdmissionMissed").await?;
    ensure!(
        type_ == "Warning" && told.contains("Create the pod anew"),
        "{type_} {told:?}"
    );

    namespace.profile_main("late", "trainer", 1, "Nsys").await?;
    let end = namespace
        .fails_with("late", "NotPrepared", &["admission did not see it"])
        .await?;
    ensure!(!end.message.contains("Label the pod"), "{end:?}");
    let session = namespace.finished("late").await?;
    let found = condition_of(&session, "TargetsFound").context("no condition")?;
    ensure!(
        found.status == "True" && found.message.contains("pod trainer: the pod asks to be prepared"),
        "{found:?}"
    );
    namespace.delete_whole().await
}
