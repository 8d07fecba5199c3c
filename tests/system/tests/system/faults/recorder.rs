//! The agent is killed while containers have flight recorders.

use anyhow::{Result, ensure};
use flopwatch_api::preparation::PREPARE_LABEL;
use flopwatch_system_tests::cluster::{Cluster, Group};
use flopwatch_system_tests::nodes::on_node;
use flopwatch_system_tests::parts::Running;
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::recordings::ends_with_its_programs_last_line;
use serde_json::json;

use super::release::{self, Place};

#[tokio::test]
async fn the_next_agent_keeps_what_a_container_recorded_before_and_after_its_agent_was_killed() -> Result<()> {
    let Some(cluster) = Cluster::connect_first(Group::Faults).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("recorder-agent").await?;
    let words = ["--range-micros", "3000", "--seconds", "30", "--exhaust-memory"];
    let mut greedy = workload("trainer", false, &words);
    greedy["metadata"]["labels"][PREPARE_LABEL] = json!("recorder");
    let (node, alone) = release::agent(&namespace, Place::Other).await?;
    namespace.create_pod(on_node(greedy, &node)).await?;
    let pod = namespace.running("trainer").await?;
    let agent = Running::agent_of(&namespace.client, &pod).await?;
    agent.killed(&namespace.client).await?;
    // Nobody ends the next agent while the container ends and its recording is kept.
    let _shared = alone.downgrade();
    let code = namespace.exit_code("trainer").await?;
    ensure!(code == 137, "{code}");
    ends_with_its_programs_last_line(&cluster, &namespace).await?;
    namespace.delete().await
}
