//! Losing a node while it captures: the sessions end with the reason, nothing hangs, and the node
//! comes back clean. The test beside it has its pods on the other node.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::capture::Capture;
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace, eventually};
use flopwatch_system_tests::nodes::{Cable, on_node};
use flopwatch_system_tests::pod_state::PodState;
use flopwatch_system_tests::pods::sample;
use flopwatch_system_tests::sessions::{capture_condition, condition_of};
use flopwatch_system_tests::workload::counts;
use kube::api::DeleteParams;
use serde_json::json;

/// Longer than the cluster and the operator need to give a node up and the test to put it back, so
/// that the captures there collect all the while.
const WINDOW_SECONDS: u32 = 280;

#[tokio::test]
async fn a_lost_nodes_captures_end_with_the_reason_and_the_node_comes_back_clean() -> Result<()> {
    let Some((cluster, [kept, lost])) = Cluster::with_two_nodes(Group::StoreAndNode).await? else {
        return Ok(());
    };
    let Some(mut cable) = Cable::of(&lost) else {
        return Ok(());
    };
    let namespace = cluster.namespace("loss").await?;
    let _release = super::RELEASE.lock().await;
    for (name, job, node) in [
        ("near", "shared", &kept),
        ("far", "shared", &lost),
        ("forgotten", "alone", &lost),
    ] {
        let mut pod = on_node(sample(name), node);
        pod["metadata"]["labels"]["job"] = json!(job);
        namespace.create_pod(pod).await?;
    }
    for name in ["near", "far", "forgotten"] {
        namespace.grafted(name).await?;
    }
    let before = [
        PodState::of(&namespace, "far").await?,
        PodState::of(&namespace, "forgotten").await?,
    ];
    for (name, job) in [("both", "shared"), ("alone", "alone")] {
        let spec = json!({
            "target": { "podSelector": { "matchLabels": { "job": job } }, "maxPods": 2 },
            "durationSeconds": WINDOW_SECONDS, "profiler": { "type": "Nsys" }
        });
        namespace.create_session(name, spec).await?;
    }
    // The agent near by has other tests' captures to carry out first.
    for (session, pod) in [("both", "far"), ("alone", "forgotten")] {
        condition(&namespace, session, pod, "Attached", "True").await?;
    }

    cable.pull()?;
    let cut = unix_ns()?;
    cluster.node_ready(&lost, false).await?;
    for (session, pod) in [("both", "far"), ("alone", "forgotten")] {
        let reason = condition(&namespace, session, pod, "Lost", "True").await?;
        ensure!(reason == "NodeLost", "{pod} is lost with the reason {reason}");
    }
    let alone = namespace.finished("alone").await?;
    let end = condition_of(&alone, "Succeeded").context("no condition")?;
    ensure!(end.status == "False" && end.message.contains("NodeLost"), "{end:?}");
    forget(&namespace, "alone").await?;

    cable.put_back()?;
    let back = unix_ns()?;
    cluster.node_ready(&lost, true).await?;
    let reason = condition(&namespace, "both", "far", "Succeeded", "False").await?;
    ensure!(reason == "NodeLost", "the agent ended its capture with {reason}");
    condition(&namespace, "both", "near", "Attached", "True").await?;
    namespace.stop("both", "Keep").await?;
    let both = namespace.finished("both").await?;
    let end = condition_of(&both, "Succeeded").context("no condition")?;
    ensure!(end.reason == "PartiallySucceeded", "{end:?}");
    let counted = both.status.context("no status")?.counts;
    ensure!(counted.succeeded == 1 && counted.failed == 1, "{counted:?}");

    for (pod, before) in ["far", "forgotten"].into_iter().zip(before) {
        // It would not succeed if a collection still ran there.
        let again = format!("again-{pod}");
        namespace.profile(&again, pod, 1, "Nsys").await?;
        namespace.succeeded(&again).await?;
        left_nothing(&namespace, pod).await?;
        before.goes_on(&namespace).await?;
        let log = namespace.logs(pod).await?;
        let meanwhile = counts(&log).into_values().flatten();
        let lines = meanwhile.filter(|line| (cut..back).contains(&line.unix_ns)).count();
        ensure!(lines > 20, "{pod} counted only {lines} times while its node was lost");
    }
    namespace.delete().await
}

/// Deletes a session whose node is away, and waits until nothing of it is left.
async fn forget(namespace: &TestNamespace, session: &str) -> Result<()> {
    let sessions = namespace.api::<ProfilingSession>();
    sessions.delete(session, &DeleteParams::default()).await?;
    let what = format!("session {session} to be gone though its node is away");
    eventually(&what, || async {
        let captures = namespace.captures(session).await?;
        let gone = sessions.get_opt(session).await?.is_none() && captures.is_empty();
        Ok(gone.then_some(()))
    })
    .await
}

/// Waits until the capture of a session on a pod has a condition, and returns the condition's
/// reason.
async fn condition(namespace: &TestNamespace, session: &str, pod: &str, type_: &str, status: &str) -> Result<String> {
    eventually(&format!("the capture of {pod} to be {type_}: {status}"), || async {
        let captures: Vec<Capture> = namespace.captures(session).await?;
        let capture = captures.iter().find(|one| one.spec.pod_ref.name == pod);
        let found = capture.and_then(|capture| capture_condition(capture, type_));
        Ok(found.filter(|one| one.status == status).map(|one| one.reason.clone()))
    })
    .await
}

/// No capture, half or whole, lies in the container.
async fn left_nothing(namespace: &TestNamespace, pod: &str) -> Result<()> {
    let find =
        "find /flopwatch/run /tmp /dev/shm -type f \\( -name '*.qdstrm*' -o -name '*.nsys-rep' \\) 2>/dev/null; true";
    let files = namespace.shell(pod, find).await?;
    ensure!(files.trim().is_empty(), "in {pod}: {files}");
    Ok(())
}

fn unix_ns() -> Result<u64> {
    Ok(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())?)
}
