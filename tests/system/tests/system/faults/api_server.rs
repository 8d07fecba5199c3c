//! The API server stands still for longer than anything of ours waits for it.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use flopwatch_api::capture::Stage;
use flopwatch_system_tests::cluster::{Group, TestNamespace, eventually};
use flopwatch_system_tests::node::{self, StoppedProcess};
use flopwatch_system_tests::trainer::Trainer;

/// Longer than a call of the agent's waits (10 s), than the controller's lease lives (15 s), and
/// than the cluster (15 s) and then the controller (20 s) take to give a node up whose word they
/// miss.
const ABSENCE_DURATION: Duration = Duration::from_secs(40);

#[tokio::test]
async fn a_capture_outlives_an_api_server_that_is_away() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::ApiServer, "api-away").await? else {
        return Ok(());
    };
    let trainer = Trainer::start(&namespace, "trainer").await?;
    let agent = trainer.agent().await?;
    trainer.profile(&namespace, "struck", 15).await?;
    let capture = namespace.in_stage("struck", Stage::Collecting).await?;
    let manifest = agent.manifest(&capture);
    let Some(server) = node::api_server() else {
        println!("skipped: only the local cluster's API server can be stopped");
        return namespace.delete().await;
    };
    let held = StoppedProcess::hold(server)?;
    let since = Instant::now();
    ensure!(
        !manifest.exists(),
        "the capture ended before the API server stood still"
    );
    // The window closes, the importer works, the artifacts are stored: all of it without anybody to
    // tell.
    eventually("the agent to have done all but tell", || async {
        Ok((manifest.exists() && since.elapsed() >= ABSENCE_DURATION).then_some(()))
    })
    .await?;
    ensure!(trainer.process.is_alive(), "the workload ended");
    drop(held);
    let end = namespace.success_of("struck").await?;
    trainer.recovers(&namespace, &end).await?;
    // Who comes next wants prepared pods.
    namespace.prepares_pods().await?;
    namespace.delete().await
}
