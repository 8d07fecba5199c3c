//! The agent is killed while containers have flight recorders.

use anyhow::{Result, ensure};
use flopwatch_system_tests::cluster::{Group, TestNamespace};
use flopwatch_system_tests::nodes::on_node;
use flopwatch_system_tests::parts::Running;
use flopwatch_system_tests::pods::{labelled, workload};
use flopwatch_system_tests::recordings::ends_with_its_programs_last_line;

use super::release::{self, Place};

#[tokio::test]
async fn the_next_agent_keeps_what_a_container_recorded_before_and_after_its_agent_was_killed() -> Result<()> {
    let Some(namespace) = TestNamespace::begin_first(Group::Faults, "recorder-agent").await? else {
        return Ok(());
    };
    let words = ["--range-micros", "3000", "--seconds", "30", "--exhaust-memory"];
    let greedy = labelled(workload("trainer", false, &words), "recorder");
    let (node, alone) = release::agent(&namespace, Place::Other).await?;
    let pod = namespace.run(on_node(greedy, &node)).await?;
    let agent = Running::agent_of(&namespace.client, &pod).await?;
    agent.killed(&namespace.client).await?;
    // Nobody ends the next agent while the container ends and its recording is kept.
    let _shared = alone.downgrade();
    let code = namespace.exit_code("trainer").await?;
    ensure!(code == 137, "{code}");
    ends_with_its_programs_last_line(&namespace).await?;
    namespace.delete().await
}
