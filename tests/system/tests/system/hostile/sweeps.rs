//! The agent's sweeps of containers: nothing of the workload goes by its name.

use anyhow::{Result, ensure};
use flopwatch_api::capture::Stage;
use flopwatch_system_tests::cluster::{Cluster, Group, eventually};
use flopwatch_system_tests::node;
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::trainer::Trainer;
use nix::sys::signal::Signal;
use serde_json::json;

/// The folder of a capture of another node, where a volume for temporary files is shared.
const OF_ANOTHER_NODE: &str = "flopwatch-0a1b2c3d-1111-2222-3333-444455556666";
/// What a workload calls its own.
const RESULTS: &str = "flopwatch-results";

#[tokio::test]
async fn a_sweep_takes_what_a_capture_of_its_node_left_and_nothing_of_others() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Hostile).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("sweeps").await?;
    let trainer = Trainer::start_frameworks(&namespace, "trainer").await?;
    let kineto = json!({ "profiler": { "type": "Kineto" } });
    trainer.profile_with(&namespace, "ended", 1, kineto).await?;
    let end = namespace.end_of("ended").await?;
    ensure!(end.succeeded, "{end:?}");
    // As its agent would have left it that was killed.
    let ours = format!("flopwatch-{}", end.uid);
    let folders = format!("{ours} {OF_ANOTHER_NODE} {RESULTS}");
    let plant = format!("cd /tmp && for folder in {folders}; do mkdir $folder && echo x >$folder/x || exit 1; done");
    namespace.shell(&trainer.name, &plant).await?;

    // What ends in a capture has its node swept soon after.
    let beside = namespace
        .on_kept_node(workload("beside", false, &["--range-micros", "2000"]))
        .await?;
    namespace.create_pod(beside).await?;
    let beside = namespace.running("beside").await?;
    let metrics = json!({
        "target": { "podName": "beside", "containerNames": ["main"] }, "durationSeconds": 120,
        "profiler": { "type": "Metrics" }
    });
    namespace.create_session("struck", metrics).await?;
    namespace.in_stage("struck", Stage::Collecting).await?;
    node::first_process(&beside)?.signal(Signal::SIGKILL)?;
    let struck = namespace.end_of("struck").await?;
    ensure!(
        ["ContainerRestarted", "TargetNotRunning"].contains(&struck.reason.as_str()),
        "{struck:?}"
    );
    eventually("the sweep to take what the capture left", || async {
        Ok((!trainer.path("/tmp").join(&ours).exists()).then_some(()))
    })
    .await?;
    for kept in [OF_ANOTHER_NODE, RESULTS] {
        let file = trainer.path("/tmp").join(kept).join("x");
        ensure!(file.exists(), "{} is gone", file.display());
    }
    trainer.is_unharmed(&namespace).await?;
    namespace.delete().await
}
