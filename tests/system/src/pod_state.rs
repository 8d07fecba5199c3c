//! How a workload stands: the same process in the same container, counting on.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;

use crate::cluster::{TestNamespace, eventually};
use crate::node;
use crate::pods::first_status;
use crate::workload::{counts, longest_silence, was_given_a_child};

/// Longest time without a line of the workload that does not count as a pause: it writes ten a
/// second, on a machine that the tests may keep busy.
const MAX_SILENCE: Duration = Duration::from_secs(15);

/// How a workload stood at one moment.
#[derive(Clone, Debug)]
pub struct PodState {
    pod: String,
    /// When PID 1 started, in clock ticks since boot.
    start_ticks: String,
    /// Container as the runtime names it.
    container: String,
    restarts: i32,
    ranges: u64,
}

impl PodState {
    /// Looks at the sample workload in a pod.
    ///
    /// # Errors
    /// When it does not run.
    pub async fn of(namespace: &TestNamespace, pod: &str) -> Result<Self> {
        let found = namespace.api::<Pod>().get(pod).await?;
        let process = node::first_process(&found);
        let container = first_status(&found).context("no container")?;
        ensure!(
            container.state.as_ref().is_some_and(|state| state.running.is_some()),
            "the workload does not run: {:?}",
            container.state
        );
        let log = namespace.logs(pod).await?;
        let last = counts(&log).into_values().filter_map(|lines| lines.last().copied());
        let start_ticks = match process {
            Ok(process) => process.start.to_string(),
            // The second field, the name in brackets, holds no space here.
            Err(_) => namespace.shell(pod, "cut -d' ' -f22 /proc/1/stat").await?,
        };
        Ok(Self {
            pod: pod.to_owned(),
            start_ticks: start_ticks.trim().to_owned(),
            container: container.container_id.clone().context("no container ID")?,
            restarts: container.restart_count,
            ranges: last.map(|count| count.ranges).sum(),
        })
    }

    /// Same container, same PID 1, no pause in its output, no child of ours, and it counts on from
    /// here.
    ///
    /// # Errors
    /// When it was harmed.
    pub async fn goes_on(&self, namespace: &TestNamespace) -> Result<()> {
        let now = Self::of(namespace, &self.pod).await?;
        let (before, after) = (&self.container, &now.container);
        ensure!(before == after, "{before} became {after}");
        ensure!(now.restarts == self.restarts, "the workload restarted");
        ensure!(now.start_ticks == self.start_ticks, "PID 1 is another process");
        let log = namespace.logs(&self.pod).await?;
        let silence = longest_silence(&log);
        ensure!(silence < MAX_SILENCE, "the workload said nothing for {silence:?}");
        ensure!(!was_given_a_child(&log), "the workload was given a child");
        eventually("the workload to count on", || async {
            let later = Self::of(namespace, &self.pod).await?;
            Ok((later.ranges > now.ranges).then_some(()))
        })
        .await
    }
}
