//! A container that plays the launcher: its own program in a launcher's place, folders of its own.

use std::time::Duration;

use anyhow::{Result, ensure};
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace, eventually};
use flopwatch_system_tests::node;
use flopwatch_system_tests::nodes::on_node;
use flopwatch_system_tests::pods::{shell, workload};

/// How long an agent is given to fall for it: it looks four times a second, and has seen the real
/// launcher beside it.
const OBSERVATION_DURATION: Duration = Duration::from_secs(6);

/// Two processes that wait for a session as launchers do: one names tools of its own, one the
/// folders that are allowed. Neither of their programs may run by an agent's hand.
const FORGER: &str = r"
mkdir -p /tmp/evil/target-linux-x64; cp /bin/sh /tmp/launcher; cd /tmp
printf '#!/bin/sh\necho forged >>/tmp/forged\n' >/tmp/evil/launcher; cp /tmp/evil/launcher /tmp/evil/target-linux-x64/nsys
chmod -R 755 /tmp/evil
echo 'rm -f /flopwatch/run/claimed /flopwatch/run/env /flopwatch/run/failed; echo pid=$$ >/flopwatch/run/waiting; touch /tmp/waits; while :; do sleep 1; done' >run
/tmp/launcher run --tools-dir /tmp/evil -- &
wait
";

async fn forge(namespace: &TestNamespace, name: &str, node: &str) -> Result<()> {
    // The agent of that node serves the real launcher of this pod, so it sees the forged one too.
    namespace.launch(on_node(shell(name, true, FORGER), node)).await?;
    eventually("the forged launcher to wait", || async {
        namespace.shell(name, "test -e /tmp/waits").await.map(Some)
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn an_agent_executes_nothing_that_a_container_names() -> Result<()> {
    let Some((cluster, nodes)) = Cluster::with_two_nodes(Group::Hostile).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("forged").await?;
    for node in &nodes {
        forge(&namespace, &format!("on-{node}"), node).await?;
    }
    tokio::time::sleep(OBSERVATION_DURATION).await;
    for node in &nodes {
        let name = format!("on-{node}");
        let message = namespace
            .shell(&name, "cat /tmp/forged 2>/dev/null || echo nothing")
            .await?;
        ensure!(message.trim() == "nothing", "{name}: {message}");
    }
    namespace.delete().await
}

#[tokio::test]
async fn a_session_in_a_container_is_bounded_and_filtered() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Hostile, "bounded").await? else {
        return Ok(());
    };
    namespace.graft(workload("trainer", true, &[])).await?;
    let pod = namespace.running("trainer").await?;
    let session = node::sessions_of(&pod)?;
    ensure!(!session.is_empty(), "no session in a cgroup of its own");
    for process in session {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", process.pid)).unwrap_or_default();
        let status = read("status");
        ensure!(status.is_empty() || status.contains("Seccomp:\t2\n"), "{status}");
        for line in read("cgroup").lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
                continue;
            };
            let folder = std::path::Path::new("/sys/fs/cgroup");
            let file = |name: &str| {
                let places = [controllers, ""]
                    .map(|hierarchy| folder.join(hierarchy).join(path.trim_start_matches('/')).join(name));
                places.iter().find_map(|place| std::fs::read_to_string(place).ok())
            };
            for (controller, bound, unbounded) in [
                ("memory", "memory.limit_in_bytes", "9223372036854771712"),
                ("pids", "pids.max", "max"),
                ("cpu", "cpu.cfs_quota_us", "-1"),
                ("devices", "devices.list", "a *:* rwm"),
                ("", "memory.max", "max"),
            ] {
                if controllers.split(',').any(|name| name == controller) {
                    let set = file(bound).unwrap_or_default();
                    ensure!(set.trim() != unbounded, "{path}: {bound} is not set");
                }
            }
        }
    }
    namespace.delete().await
}
