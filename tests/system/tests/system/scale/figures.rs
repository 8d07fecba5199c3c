//! What is measured: requests that the API server took, and series of the release.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use flopwatch_system_tests::parts::Running;
use flopwatch_system_tests::prometheus::Prometheus;
use kube::Client;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Time between two looks at a process's memory.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Requests that the API server has answered since it began, by verb and resource: those of our
/// group, and Events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests(BTreeMap<(String, String), u64>);

impl Requests {
    pub(crate) async fn read(client: &Client) -> Result<Self> {
        let text = client
            .request_text(http::Request::get("/metrics").body(Vec::new())?)
            .await?;
        let mut all = BTreeMap::new();
        for line in text.lines() {
            let Some(rest) = line.strip_prefix("apiserver_request_total{") else {
                continue;
            };
            let (labels, count) = rest.rsplit_once("} ").context("a series without a value")?;
            let label = |name: &str| {
                let (_, rest) = labels.split_once(&format!("{name}=\""))?;
                rest.split_once('"').map(|(value, _)| value.to_owned())
            };
            if label("group").as_deref() == Some("flopwatch.dev") || label("resource").as_deref() == Some("events") {
                let key = (label("verb").unwrap_or_default(), label("resource").unwrap_or_default());
                // It is a float, which Prometheus writes with an exponent above some size.
                let count: f64 = count.parse()?;
                let count: u64 = format!("{count:.0}").parse()?;
                *all.entry(key).or_default() += count;
            }
        }
        Ok(Self(all))
    }

    /// Those that came after `before`. The API server began anew between them where it has fewer
    /// now.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let since = |(key, count): (&(String, String), &u64)| {
            let earlier = before.0.get(key).copied().unwrap_or_default();
            (key.clone(), count.checked_sub(earlier).unwrap_or(*count))
        };
        Self(self.0.iter().map(since).collect())
    }

    /// Of these verbs, on this resource.
    pub(crate) fn of(&self, verbs: &[&str], resource: &str) -> u64 {
        let these = self
            .0
            .iter()
            .filter(|((verb, of), _)| verbs.contains(&verb.as_str()) && of == resource);
        these.map(|(_, count)| count).sum()
    }

    /// That change something.
    pub(crate) fn writes(&self, resource: &str) -> u64 {
        self.of(&["POST", "PUT", "PATCH", "APPLY", "DELETE"], resource)
    }
}

/// Series of the release, once all of its parts were read, less those of GPUs.
pub(crate) async fn series(prometheus: &Prometheus) -> Result<u64> {
    prometheus.eventually("min(up) == 1").await?;
    let found = prometheus
        .eventually("count({__name__=~\"flopwatch_.+\", __name__!~\"flopwatch_gpu.+\"})")
        .await?;
    Ok(found.first().context("no series")?.value.1.parse()?)
}

/// The most memory that processes were seen with, of those that are theirs alone, until the value
/// ends.
pub(crate) struct Peaks(Vec<Arc<AtomicU64>>, CancellationToken);

impl Peaks {
    pub(crate) fn watch(parts: &[&Running]) -> Self {
        let stop = CancellationToken::new();
        let watch = |part: &&Running| {
            let (most, stop, process) = (Arc::new(AtomicU64::new(0)), stop.clone(), part.process);
            let seen = Arc::clone(&most);
            tokio::spawn(async move {
                while stop.run_until_cancelled(sleep(POLL_INTERVAL)).await.is_some() {
                    // One that has ended has no more.
                    seen.fetch_max(process.own_bytes().unwrap_or_default(), Ordering::Relaxed);
                }
            });
            most
        };
        Self(parts.iter().map(watch).collect(), stop)
    }

    /// Bytes, in the order of the processes.
    pub(crate) fn bytes(&self) -> Vec<u64> {
        self.0.iter().map(|most| most.load(Ordering::Relaxed)).collect()
    }
}

impl Drop for Peaks {
    fn drop(&mut self) {
        self.1.cancel();
    }
}
