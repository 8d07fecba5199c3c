//! How many captures a namespace and a node may have at once, and how long a session waits.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace, eventually};
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::sessions::{capture_condition, condition_of};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

/// `controller.maxCapturesPerNamespace` of the release under test.
const PER_NAMESPACE: usize = 3;
/// `agent.maxCaptures` of the release under test.
const PER_NODE: usize = 2;

fn spec(pod: &str, seconds: u32) -> Value {
    json!({
        "target": { "podName": pod, "containerNames": ["main"] }, "durationSeconds": seconds,
        "profiler": { "type": "Metrics" }
    })
}

/// Pods that run, so many of them, all on the node of the first.
async fn pods_on_one_node(namespace: &TestNamespace, count: usize) -> Result<Vec<String>> {
    let names: Vec<String> = (0..count).map(|at| format!("plain-{at}")).collect();
    let mut node = None;
    for name in &names {
        let mut pod = workload(name, false, &["--quiet"]);
        if let Some(node) = &node {
            pod["spec"]["nodeSelector"] = json!({ "kubernetes.io/hostname": node });
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

async fn discard(namespace: &TestNamespace, session: &str) -> Result<()> {
    let stop = Patch::Merge(json!({ "spec": { "stop": "Discard" } }));
    let sessions = namespace.api::<ProfilingSession>();
    sessions.patch(session, &PatchParams::default(), &stop).await?;
    Ok(())
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
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("limit").await?;
    let pods = pods_on_one_node(&namespace, PER_NAMESPACE + 1).await?;
    let (last, others) = pods.split_last().context("no pods")?;
    for pod in others {
        namespace.create_session(pod, spec(pod, 300)).await?;
    }
    eventually("the namespace to be full", || async {
        let mut made = 0;
        for pod in others {
            made += namespace.captures(pod).await?.len();
        }
        Ok((made == PER_NAMESPACE).then_some(()))
    })
    .await?;
    namespace.create_session(last, spec(last, 1)).await?;
    let sessions = namespace.api::<ProfilingSession>();
    eventually("the last session to wait for its namespace", || async {
        let session = sessions.get(last).await?;
        Ok(condition_of(&session, "TargetsFound")
            .is_some_and(|found| {
                found.reason == "NamespaceLimit" && found.message.contains("may have 3 captures at once")
            })
            .then_some(()))
    })
    .await?;
    ensure!(namespace.captures(last).await?.is_empty(), "a capture beyond the limit");
    // The node takes two of the three at a time, so one of them waits there.
    eventually("a capture to wait for its turn on the node", || async {
        let mut waiting = 0;
        for pod in others {
            let capture = namespace.only_capture(pod).await?;
            waiting +=
                usize::from(capture_condition(&capture, "Accepted").is_some_and(|one| one.reason == "WaitingForTurn"));
        }
        Ok((waiting >= PER_NAMESPACE - PER_NODE).then_some(()))
    })
    .await?;

    for pod in others {
        discard(&namespace, pod).await?;
    }
    for pod in others {
        ended_as(&namespace, pod, "False", "Discarded").await?;
    }
    ended_as(&namespace, last, "True", "Succeeded").await?;
    namespace.delete().await
}

#[tokio::test]
async fn a_capture_whose_turn_does_not_come_in_time_fails_and_says_how_many_the_node_takes() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("turn").await?;
    let pods = pods_on_one_node(&namespace, PER_NODE + 1).await?;
    let (last, others) = pods.split_last().context("no pods")?;
    for pod in others {
        namespace.create_session(pod, spec(pod, 300)).await?;
    }
    for pod in others {
        namespace.attached(pod).await?;
    }
    let mut hasty = spec(last, 1);
    hasty["startDeadlineSeconds"] = json!(1);
    namespace.create_session("hasty", hasty).await?;
    ended_as(&namespace, "hasty", "False", "Failed").await?;
    let capture = namespace.only_capture("hasty").await?;
    let failed = capture_condition(&capture, "Succeeded").context("no condition")?;
    ensure!(
        failed.reason == "DeadlineExceeded" && failed.message.contains("2 at a time"),
        "{failed:?}"
    );
    for pod in others {
        discard(&namespace, pod).await?;
    }
    namespace.delete().await
}

#[tokio::test]
async fn a_session_that_comes_before_its_pod_waits_for_it() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("early").await?;
    namespace.create_session("early", spec("later", 1)).await?;
    let sessions = namespace.api::<ProfilingSession>();
    eventually("the session to wait for its pod", || async {
        let session = sessions.get("early").await?;
        Ok(condition_of(&session, "TargetsFound")
            .is_some_and(|found| found.reason == "WaitingForTargets")
            .then_some(()))
    })
    .await?;
    namespace.create_pod(workload("later", false, &["--quiet"])).await?;
    ended_as(&namespace, "early", "True", "Succeeded").await?;
    ensure!(
        namespace.api::<Pod>().get("later").await?.metadata.uid
            == Some(namespace.only_capture("early").await?.spec.pod_ref.uid),
        "another pod was profiled"
    );
    namespace.delete().await
}
