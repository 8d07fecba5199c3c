//! The session controller is killed while captures stand in every stage.

use anyhow::{Result, ensure};
use flopwatch_api::capture::Capture;
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::cluster::{Group, TestNamespace, eventually};
use flopwatch_system_tests::node::StoppedProcess;
use flopwatch_system_tests::parts::Running;
use flopwatch_system_tests::pod_state::PodState;
use flopwatch_system_tests::pods::{with_ncu_double, workload};
use flopwatch_system_tests::sessions::{capture_condition, of_copy, spec, with};
use flopwatch_system_tests::trainer::Trainer;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams};
use nix::sys::signal::Signal;
use serde_json::json;

use super::release::{Place, shared_by};

#[tokio::test]
async fn a_controller_killed_before_its_session_has_targets_finds_them_later() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Faults, "op-waiting").await? else {
        return Ok(());
    };
    let taken = shared_by(&namespace, Place::Kept).await?.with_controller().await;
    let patient = with(spec("trainer", 1, "Nsys"), json!({ "startDeadlineSeconds": 120 }));
    namespace.create_session("struck", patient).await?;
    namespace.targets_found("struck", "WaitingForTargets").await?;
    let controller = Running::controller(&namespace.client).await?;
    controller.process.signal(Signal::SIGKILL)?;
    // Nothing of the operator's is there when the pod comes.
    let trainer = Trainer::start(&namespace, "trainer").await?;
    let end = namespace.success_of("struck").await?;
    trainer.nothing_stays_of(&end.uid).await?;
    trainer.is_unharmed(&namespace).await?;
    controller.restarted(&namespace.client).await?;
    drop(taken);
    namespace.delete().await
}

#[tokio::test]
async fn a_controller_killed_while_captures_run_loses_none_and_makes_none_twice() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Faults, "op-running").await? else {
        return Ok(());
    };
    let shared = shared_by(&namespace, Place::Kept).await?;
    let (collecting, importing) = tokio::try_join!(
        Trainer::start(&namespace, "collecting"),
        Trainer::start(&namespace, "importing")
    )?;
    let taken = shared.with_controller().await;

    let mut gate = importing.gate_before_import(&namespace).await?;
    collecting.open_window(&namespace, "collecting").await?;
    gate.reached().await?;

    let controller = Running::controller(&namespace.client).await?;
    controller.process.signal(Signal::SIGKILL)?;
    drop(gate);
    controller.restarted(&namespace.client).await?;
    namespace.stop("collecting", "Keep").await?;
    for (session, trainer) in [("struck", &importing), ("collecting", &collecting)] {
        let end = namespace.success_of(session).await?;
        trainer.nothing_stays_of(&end.uid).await?;
        trainer.is_unharmed(&namespace).await?;
    }
    drop(taken);
    let captures = namespace.api::<Capture>().list(&ListParams::default()).await?;
    ensure!(captures.items.len() == 2, "{} captures", captures.items.len());
    namespace.delete().await
}

#[tokio::test]
async fn a_controller_killed_in_the_life_of_a_copy_removes_the_copy_later() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Faults, "op-copy").await? else {
        return Ok(());
    };
    namespace.allow_pod_templates().await?;
    let taken = shared_by(&namespace, Place::Kept).await?.with_controller().await;
    // Its copy goes where it goes.
    let original = with_ncu_double(workload("trainer", false, &[]));
    namespace.create_kept(original).await?;
    namespace.running("trainer").await?;
    let before = PodState::of(&namespace, "trainer").await?;
    namespace
        .create_session("struck", of_copy("trainer", 300, "Ncu"))
        .await?;
    let copy = namespace.own_pod("struck").await?.name_any();
    eventually("the copy's program to run", || async {
        let log = namespace.logs(&copy).await.unwrap_or_default();
        Ok((!log.is_empty()).then_some(()))
    })
    .await?;
    let controller = Running::controller(&namespace.client).await?;
    controller.process.signal(Signal::SIGKILL)?;
    namespace.stop("struck", "Keep").await?;
    namespace.success_of("struck").await?;
    namespace.pod_gone(&copy).await?;
    before.goes_on(&namespace).await?;
    controller.restarted(&namespace.client).await?;
    drop(taken);
    namespace.delete().await
}

#[tokio::test]
async fn a_controller_killed_while_a_session_is_deleted_lets_it_go_later() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Faults, "op-deleting").await? else {
        return Ok(());
    };
    let shared = shared_by(&namespace, Place::Kept).await?;
    let trainer = Trainer::start(&namespace, "trainer").await?;
    let taken = shared.with_controller().await;
    let (capture, _) = trainer.open_window(&namespace, "struck").await?;
    let controller = Running::controller(&namespace.client).await?;
    // It stands still, so that the deletion comes no further than to the agent.
    let held = StoppedProcess::hold(controller.process)?;
    let sessions = namespace.api::<ProfilingSession>();
    sessions.delete("struck", &DeleteParams::background()).await?;
    let (captures, name) = (namespace.api::<Capture>(), capture.name_any());
    eventually("the agent to have discarded the capture", || async {
        let capture = captures.get(&name).await?;
        let end = capture_condition(&capture, "Succeeded");
        Ok(end.is_some_and(|one| one.reason == "Discarded").then_some(()))
    })
    .await?;
    held.process().signal(Signal::SIGKILL)?;
    drop(held);
    controller.restarted(&namespace.client).await?;
    eventually("the capture to be gone", || async {
        Ok(captures.get_opt(&name).await?.is_none().then_some(()))
    })
    .await?;
    trainer.nothing_stays_of(&capture.uid().unwrap_or_default()).await?;
    drop(taken);
    trainer.session_is_as_it_was().await?;
    trainer.is_unharmed(&namespace).await?;
    namespace.delete().await
}
