//! The agent is killed in each stage of a capture of the CUDA tracer, whose window goes on without
//! it, and stands still while kernels are recorded all the time, which ends without it.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::artifact::{CUDA_TRACE, TIMELINE};
use flopwatch_api::capture::Stage;
use flopwatch_api::preparation::{CUDA_DIR, CUDA_FILE};
use flopwatch_system_tests::cluster::{Group, TestNamespace, eventually_each};
use flopwatch_system_tests::gate::Gate;
use flopwatch_system_tests::node::StoppedProcess;
use flopwatch_system_tests::nodes::on_node;
use flopwatch_system_tests::parts::{Running, SPOOL};
use flopwatch_system_tests::simulated_gpu::{Program, told};
use flopwatch_system_tests::trainer::End;
use flopwatch_tracer_file::wanted::Mode;
use kube::ResourceExt as _;
use nix::sys::signal::Signal;

use super::super::release::{self, Alone, Place};
use super::{comes_to_its_end, ends_as_it_may};

/// Pause between two looks at what is wanted: a window ends within three seconds.
const WANTED_INTERVAL: Duration = Duration::from_millis(5);

/// A program, its agent, and the right to take that away.
struct Victims {
    namespace: TestNamespace,
    program: Program,
    agent: Running,
    alone: Alone,
}

impl Victims {
    async fn begun(name: &str, words: &str) -> Result<Option<Self>> {
        let Some(namespace) = TestNamespace::begin(Group::Faults, name).await? else {
            return Ok(None);
        };
        let (node, alone) = release::agent(&namespace, Place::Other).await?;
        namespace.create_pod(on_node(told("trainer", words), &node)).await?;
        let program = Program::begun(&namespace, "trainer").await?;
        let agent = Running::agent_of(&namespace.client, &program.pod).await?;
        Ok(Some(Self {
            namespace,
            program,
            agent,
            alone,
        }))
    }

    /// A window that is open, of which the program has had so many records.
    async fn in_a_window(&mut self) -> Result<u64> {
        self.namespace.profile_main("struck", "trainer", 280, "Cuda").await?;
        self.namespace.in_stage("struck", Stage::Collecting).await?;
        self.program.launched(1000).await
    }

    /// The next agent has ended the capture, which holds as many records where it has any, and the
    /// program goes on.
    async fn recover(mut self, end: &End, recorded: u64) -> Result<()> {
        let _shared = self.alone.downgrade();
        if end.succeeded {
            let capture = self.namespace.only_capture("struck").await?;
            self.namespace.holds(&capture, TIMELINE, recorded).await?;
        }
        self.program.goes_on_alone().await?;
        self.namespace.delete().await
    }
}

#[tokio::test]
async fn a_window_goes_on_without_its_agent_and_the_next_one_has_what_was_launched_meanwhile() -> Result<()> {
    let Some(mut victims) = Victims::begun("kill-cuda", "cuda").await? else {
        return Ok(());
    };
    let before = victims.in_a_window().await?;
    victims.agent.process.signal(Signal::SIGKILL)?;
    let meanwhile = victims.program.recorded("launch 500").await?;
    ensure!(meanwhile >= 500, "{meanwhile} records without an agent");
    let end = comes_to_its_end(&victims.namespace, &victims.agent, "struck").await?;
    ensure!(end.succeeded, "{end:?}");
    victims.recover(&end, before + meanwhile).await
}

#[tokio::test]
async fn an_agent_killed_before_it_reads_the_tracers_file_leaves_the_capture_to_the_next() -> Result<()> {
    let Some(victims) = Victims::begun("kill-cuda-attaching", "cuda").await? else {
        return Ok(());
    };
    let (namespace, agent) = (&victims.namespace, &victims.agent);
    let own = agent.process;
    let folder = victims.program.path(CUDA_DIR);
    let mut gate = Gate::before(&folder, CUDA_FILE, move |opener| opener == own)?;
    namespace.profile_main("struck", "trainer", 3, "Cuda").await?;
    gate.reached().await?;
    own.signal(Signal::SIGKILL)?;
    drop(gate);
    // Longer than until the window that comes is over.
    victims.program.tell("pace 1000 300000")?;
    let next = agent.restarted(&namespace.client).await?;
    let end = ends_as_it_may(namespace, &next, "struck").await?;
    let _shared = victims.alone.downgrade();
    ensure!(victims.program.process.is_alive(), "the program ended: {end:?}");
    victims.namespace.delete().await
}

#[tokio::test]
async fn an_agent_killed_while_it_ends_a_window_of_cuda_leaves_its_records_to_the_next() -> Result<()> {
    let Some(mut victims) = Victims::begun("kill-cuda-ending", "cuda").await? else {
        return Ok(());
    };
    let recorded = victims.in_a_window().await?;
    victims.program.has_written(recorded).await?;
    // A program that does not answer is waited for.
    let held = StoppedProcess::hold(victims.program.process)?;
    victims.namespace.stop("struck", "Keep").await?;
    eventually_each(WANTED_INTERVAL, "the agent to end the window", || async {
        let wanted = victims.program.wanted()?;
        Ok(wanted.is_some_and(|wanted| wanted.mode == Mode::Off).then_some(()))
    })
    .await?;
    victims.agent.process.signal(Signal::SIGKILL)?;
    drop(held);
    let next = victims.agent.restarted(&victims.namespace.client).await?;
    let end = ends_as_it_may(&victims.namespace, &next, "struck").await?;
    victims.recover(&end, recorded).await
}

/// Kills the agent when a child of it is about to read what was drained, or where `publishes` says
/// so, when it is itself about to read the timeline.
async fn is_killed_behind_a_window(name: &str, publishes: bool) -> Result<()> {
    let Some(mut victims) = Victims::begun(name, "cuda").await? else {
        return Ok(());
    };
    let recorded = victims.in_a_window().await?;
    let capture = victims.namespace.only_capture("struck").await?;
    let uid = capture.uid().context("a capture without a UID")?;
    let (own, spool) = (victims.agent.process, victims.agent.path(SPOOL).join(uid));
    let mut gate = Gate::before(&spool, CUDA_TRACE, move |opener| opener != own)?;
    victims.namespace.stop("struck", "Keep").await?;
    gate.reached().await?;
    if publishes {
        // While the child is held it has not made the file.
        gate = Gate::before(&spool.join("work"), TIMELINE, move |opener| opener == own)?;
        gate.reached().await?;
    }
    own.signal(Signal::SIGKILL)?;
    drop(gate);
    let next = victims.agent.restarted(&victims.namespace.client).await?;
    let end = ends_as_it_may(&victims.namespace, &next, "struck").await?;
    victims.recover(&end, recorded).await
}

#[tokio::test]
async fn an_agent_killed_while_a_trace_of_cuda_is_transformed_has_it_transformed_by_the_next() -> Result<()> {
    Box::pin(is_killed_behind_a_window("kill-cuda-transform", false)).await
}

#[tokio::test]
async fn an_agent_killed_while_it_publishes_a_trace_of_cuda_shows_all_or_nothing() -> Result<()> {
    Box::pin(is_killed_behind_a_window("kill-cuda-publish", true)).await
}

#[tokio::test]
async fn what_is_recorded_all_the_time_ends_without_an_agent_and_begins_again_with_it() -> Result<()> {
    let Some(mut victims) = Victims::begun("stop-kernels", "cuda.recorder-kernels").await? else {
        return Ok(());
    };
    victims.program.launched(100).await?;
    victims.agent.process.signal(Signal::SIGSTOP)?;
    let ended = victims.program.left_alone().await;
    victims.agent.process.signal(Signal::SIGCONT)?;
    ended?;
    let _shared = victims.alone.downgrade();
    victims.program.launched(100).await?;
    victims.namespace.delete().await
}
