//! An agent without a node: the real agent's watch, status and writer, and nothing that touches a
//! container.

use std::collections::HashSet;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context as _, Result};
use flopwatch_agent::metrics::Metrics;
use flopwatch_agent::node::watched;
use flopwatch_agent::node::writer::{Target, Writer};
use flopwatch_agent::status::Draft;
use flopwatch_api::artifact::Artifact;
use flopwatch_api::capture::{Capture, CaptureSummary, Stage};
use flopwatch_api::profiler::ProfilerType;
use flopwatch_system_tests::chart;
use futures::StreamExt as _;
use k8s_openapi::jiff::Timestamp;
use kube::runtime::WatchStreamExt as _;
use kube::{Client, Config, ResourceExt as _};
use prometheus::Registry;
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What the stages of a session of 5 s took on the local cluster: `cargo xtask bench stages`.
const ATTACH_DURATION: Duration = Duration::from_millis(300);
const FETCH_DURATION: Duration = Duration::from_millis(1100);
const TRANSFORM_DURATION: Duration = Duration::from_millis(420);
const PUBLISH_DURATION: Duration = Duration::from_millis(60);
/// Time between two words of how far a window is.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Pause after a call that failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// A client with the rights of the agent on that node, as its token gives them.
pub(crate) async fn client(node: &str) -> Result<Client> {
    let mut config = Config::infer().await?;
    config.auth_info.impersonate = Some(format!("system:serviceaccount:{}:flopwatch-agent", chart::NAMESPACE));
    config.auth_info.impersonate_groups = Some(vec![
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{}", chart::NAMESPACE),
        "system:authenticated".to_owned(),
    ]);
    // Which node a token is bound to, by which the policy of the release holds an agent to its own
    // captures.
    let extra = "impersonate-extra-authentication.kubernetes.io%2fnode-name";
    config.headers.push((extra.parse()?, node.parse()?));
    Ok(Client::try_from(config)?)
}

/// Carries the node's captures out, until told to stop.
pub(crate) async fn run(client: Client, node: String, stop: CancellationToken) -> Result<()> {
    let metrics = Metrics::register(&Registry::new())?;
    let (_, changed) = watched::captures(client.clone(), &node, metrics);
    let mut changed = pin!(changed.default_backoff());
    let (mut known, tasks) = (HashSet::new(), TaskTracker::new());
    while let Some(Some(event)) = stop.run_until_cancelled(changed.next()).await {
        // The watch tries again by itself.
        let Ok(capture) = event else { continue };
        let deleting = capture.metadata.deletion_timestamp.is_some();
        let uid = capture.uid().context("a capture without UID")?;
        if (deleting || !capture.is_decided()) && known.insert((uid, deleting)) {
            let target = Target::new(client.clone(), &capture);
            let stop = stop.clone();
            if deleting {
                tasks.spawn(async move { release(&target, &capture, &stop).await });
            } else {
                tasks.spawn(carry_out(target, stop));
            }
        }
    }
    tasks.close();
    tasks.wait().await;
    Ok(())
}

/// Says that nothing is left of it, as often as that takes.
async fn release(target: &Target, capture: &Capture, stop: &CancellationToken) {
    let mut draft = Draft::new(capture.status.as_ref(), capture.metadata.generation);
    draft.release();
    while target.apply(draft.status()).await.is_err() && matches!(target.exists().await, Ok(true) | Err(_)) {
        if stop.run_until_cancelled(sleep(RETRY_INTERVAL)).await.is_none() {
            return;
        }
    }
}

/// All stages of a capture, as long as each takes.
async fn carry_out(target: Target, stop: CancellationToken) -> Result<()> {
    let capture = loop {
        match target.read().await {
            Ok(Some(capture)) => break capture,
            Ok(None) => return Ok(()),
            // As the real agent: a reconciliation that failed is tried again.
            Err(_) => sleep(RETRY_INTERVAL).await,
        }
        if stop.is_cancelled() {
            return Ok(());
        }
    };
    let (name, namespace) = (capture.name_any(), capture.namespace().unwrap_or_default());
    let mut draft = Draft::new(capture.status.as_ref(), capture.metadata.generation);
    let interval = capture.spec.status_interval();
    let writer = Writer::start(target, draft.status().clone(), interval, stop);
    let enter = |draft: &mut Draft, stage: Stage, message: &str| {
        draft.enter(stage, message);
        writer.write(draft.status().clone());
    };
    enter(&mut draft, Stage::Attaching, "looking at the container");
    sleep(ATTACH_DURATION).await;
    draft.attach_to(ProfilerType::Nsys, &capture.spec.pod_ref.uid);
    enter(&mut draft, Stage::Collecting, "collecting");
    draft.window_opened(Timestamp::now());
    let seconds = u64::try_from(capture.spec.duration_seconds)?;
    let (begin, length) = (Instant::now(), Duration::from_secs(seconds));
    while begin.elapsed() < length {
        sleep_until((begin + length).min(Instant::now() + REPORT_INTERVAL)).await;
        let share = (begin.elapsed().as_millis(), length.as_millis());
        draft.advance(share, &format!("{} of {seconds} s", begin.elapsed().as_secs()));
        writer.write(draft.status().clone());
    }
    for (stage, took) in [
        (Stage::Fetching, FETCH_DURATION),
        (Stage::Transforming, TRANSFORM_DURATION),
        (Stage::Publishing, PUBLISH_DURATION),
    ] {
        draft.enter(stage, "");
        writer.write(draft.status().clone());
        sleep(took).await;
    }
    let url = format!("https://127.0.0.1:8443/v1/captures/{namespace}/{name}");
    let (artifacts, summary) = published(seconds)?;
    draft.succeed(
        artifacts,
        Some(summary),
        Some(url),
        "236000 events in 5.0 s with Nsys",
        Timestamp::now(),
    );
    writer.write(draft.status().clone());
    writer.finish().await;
    Ok(())
}

/// What a capture of a usual size says of its files and of what is in them.
fn published(seconds: u64) -> Result<(Vec<Artifact>, CaptureSummary)> {
    let artifact = |(name, output): (&str, &str)| {
        json!({
            "name": name, "type": output, "mediaType": "application/octet-stream", "bytes": 1_500_000,
            "sha256": "0123456789abcdef".repeat(4)
        })
    };
    let artifacts = [("timeline.h5", "Timeline"), ("summary.json", "Summary")].map(artifact);
    let categories = ["cuda_api", "cuda_kernel", "cuda_memcpy", "nvtx_range", "os_runtime"]
        .map(|category| json!({ "category": category, "events": 47_200 }));
    let kernels = ["a", "b", "c", "d", "e"]
        .map(|name| json!({ "name": name.repeat(120), "totalNanoseconds": 1_000_000_000, "calls": 10_000 }));
    let summary = json!({
        "events": 236_000, "windowNanoseconds": seconds * 1_000_000_000, "categories": categories, "topKernels": kernels,
        "dropped": 0
    });
    Ok((
        serde_json::from_value(json!(artifacts))?,
        serde_json::from_value(summary)?,
    ))
}
