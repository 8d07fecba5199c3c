//! How many captures a namespace and a node may have at once, and how long a session waits.

use anyhow::{Context as _, Result, ensure};
use flopwatch_system_tests::cluster::{Group, TestNamespace, eventually};
use flopwatch_system_tests::nodes::on_node;
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::sessions::{capture_condition, condition_of, of_main, with};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

/// `controller.maxCapturesPerNamespace` of the release under test.
const PER_NAMESPACE: usize = 3;
/// `agent.maxCaptures` of the release under test.
const PER_NODE: usize = 2;

/// Pods that run, so many of them, all on the node of the first.
async fn pods_on_one_node(namespace: &TestNamespace, count: usize) -> Result<Vec<String>> {
    let names: Vec<String> = (0..count).map(|at| format!("plain-{at}")).collect();
    let mut node: Option<String> = None;
    for name in &names {
        let mut pod = workload(name, false, &["--quiet"]);
        if let Some(node) = &node {
            pod = on_node(pod, node);
        }
        namespace.create_pod(pod).await?;
        if node.is_none() {
            let pod = namespace.running(name).await?;
            node = pod.spec.and_then(|spec| spec.node_name);
        }
    }
    for name in &names {
        namespace.running(name).await?;
    }
    Ok(names)
}

/// Waits until the session has that reason in its summary.
async fn ended_as(namespace: &TestNamespace, session: &str, status: &str, reason: &str) -> Result<()> {
    let ended = namespace.finished(session).await?;
    let succeeded = condition_of(&ended, "Succeeded").context("no condition")?;
    ensure!(
        succeeded.status == status && succeeded.reason == reason,
        "{session}: {succeeded:?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_session_waits_while_its_namespace_has_as_many_captures_as_it_may() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "limit").await? else {
        return Ok(());
    };
    let pods = pods_on_one_node(&namespace, PER_NAMESPACE + 1).await?;
    let (last, others) = pods.split_last().context("no pods")?;
    for pod in others {
        namespace.profile_main(pod, pod, 300, "Metrics").await?;
    }
    eventually("the namespace to be full", || async {
        let mut made = 0;
        for pod in others {
            made += namespace.captures(pod).await?.len();
        }
        Ok((made == PER_NAMESPACE).then_some(()))
    })
    .await?;
    namespace.profile_main(last, last, 1, "Metrics").await?;
    let waits = namespace.targets_found(last, "NamespaceLimit").await?;
    ensure!(waits.message.contains("may have 3 captures at once"), "{waits:?}");
    ensure!(namespace.captures(last).await?.is_empty(), "a capture beyond the limit");
    // The node takes two of the three at a time, so one of them waits there.
    eventually("a capture to wait for its turn on the node", || async {
        let mut waiting = 0;
        for pod in others {
            let capture = namespace.only_capture(pod).await?;
            let accepted = capture_condition(&capture, "Accepted");
            waiting += usize::from(accepted.is_some_and(|one| one.reason == "WaitingForTurn"));
        }
        Ok((waiting >= PER_NAMESPACE - PER_NODE).then_some(()))
    })
    .await?;

    for pod in others {
        namespace.stop(pod, "Discard").await?;
    }
    for pod in others {
        ended_as(&namespace, pod, "False", "Discarded").await?;
    }
    ended_as(&namespace, last, "True", "Succeeded").await?;
    namespace.delete().await
}

#[tokio::test]
async fn a_capture_whose_turn_does_not_come_in_time_fails_and_says_how_many_the_node_takes() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "turn").await? else {
        return Ok(());
    };
    let pods = pods_on_one_node(&namespace, PER_NODE + 1).await?;
    let (last, others) = pods.split_last().context("no pods")?;
    for pod in others {
        namespace.profile_main(pod, pod, 300, "Metrics").await?;
    }
    for pod in others {
        namespace.attached(pod).await?;
    }
    let hasty = with(of_main(last, 1, "Metrics"), json!({ "startDeadlineSeconds": 1 }));
    namespace.create_session("hasty", hasty).await?;
    ended_as(&namespace, "hasty", "False", "Failed").await?;
    namespace
        .fails_with("hasty", "DeadlineExceeded", &["2 at a time"])
        .await?;
    for pod in others {
        namespace.stop(pod, "Discard").await?;
    }
    namespace.delete().await
}

#[tokio::test]
async fn a_session_that_comes_before_its_pod_waits_for_it() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "early").await? else {
        return Ok(());
    };
    namespace.profile_main("early", "later", 1, "Metrics").await?;
    namespace.targets_found("early", "WaitingForTargets").await?;
    namespace.create_pod(workload("later", false, &["--quiet"])).await?;
    ended_as(&namespace, "early", "True", "Succeeded").await?;
    ensure!(
        namespace.api::<Pod>().get("later").await?.metadata.uid
            == Some(namespace.only_capture("early").await?.spec.pod_ref.uid),
        "another pod was profiled"
    );
    namespace.delete().await
}
