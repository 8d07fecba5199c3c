//! The agent's sweeps of containers: nothing of the workload goes by its name.

use anyhow::{Result, ensure};
use flopwatch_api::capture::Stage;
use flopwatch_system_tests::cluster::{Group, TestNamespace, eventually};
use flopwatch_system_tests::node;
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::trainer::Trainer;
use nix::sys::signal::Signal;

/// The folder of a capture of another node, where a volume for temporary files is shared.
const OF_ANOTHER_NODE: &str = "flopwatch-0a1b2c3d-1111-2222-3333-444455556666";
/// What a workload calls its own.
const RESULTS: &str = "flopwatch-results";

#[tokio::test]
async fn a_sweep_takes_what_a_capture_of_its_node_left_and_nothing_of_others() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Hostile, "sweeps").await? else {
        return Ok(());
    };
    let trainer = Trainer::start_frameworks(&namespace, "trainer").await?;
    namespace.profile("ended", "trainer", 1, "Kineto").await?;
    let end = namespace.success_of("ended").await?;
    // As its agent would have left it that was killed.
    let ours = format!("flopwatch-{}", end.uid);
    let folders = format!("{ours} {OF_ANOTHER_NODE} {RESULTS}");
    let plant = format!("cd /tmp && for folder in {folders}; do mkdir $folder && echo x >$folder/x || exit 1; done");
    namespace.shell(&trainer.name, &plant).await?;

    // What ends in a capture has its node swept soon after.
    let beside = workload("beside", false, &["--range-micros", "2000"]);
    namespace.create_kept(beside).await?;
    let beside = namespace.running("beside").await?;
    namespace.profile_main("struck", "beside", 120, "Metrics").await?;
    namespace.in_stage("struck", Stage::Collecting).await?;
    node::first_process(&beside)?.signal(Signal::SIGKILL)?;
    let gone = ["ContainerRestarted", "TargetNotRunning"];
    namespace.nothing_of("struck", &gone, "").await?;
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
