//! Removes what captures that are gone left in the object store: after crashes, lost nodes, and a
//! store that was down when they were deleted.

use std::collections::HashSet;
use std::time::Duration;

use flopwatch_api::capture::Capture;
use flopwatch_artifacts::CaptureId;
use flopwatch_artifacts::object_store::{Bucket, Limits, StoreArguments, cluster_name};
use jiff::Timestamp;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use tokio::time::{MissedTickBehavior, interval};

use crate::deadline::{CallError, bounded};
use crate::metrics::Metrics;

/// Time between two sweeps.
const SWEEP_INTERVAL: Duration = Duration::from_mins(15);
/// Captures in one answer of the API server.
const PAGE_SIZE: u32 = 500;

/// Sweeps from time to time, for ever; without an object store it only waits.
pub(super) async fn keep(client: &Client, store: &StoreArguments, metrics: &Metrics) {
    if store.store_url.is_none() {
        return std::future::pending().await;
    }
    let mut ticks = interval(SWEEP_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut opened: Option<Bucket> = None;
    loop {
        ticks.tick().await;
        if opened.is_none() {
            opened = open(client, store).await;
        }
        let swept = match &opened {
            Some(bucket) => sweep(client, bucket, metrics).await,
            None => false,
        };
        if !swept {
            metrics.store.sweeps_failed.inc();
        }
    }
}

async fn open(client: &Client, store: &StoreArguments) -> Option<Bucket> {
    let cluster = cluster_name(client).await.inspect_err(|error| {
        tracing::warn!(%error, "the object store is not swept yet");
    });
    let opened = store.open(&cluster.ok()?, Limits::default()).inspect_err(|error| {
        tracing::warn!(%error, "the object store is not swept yet");
    });
    opened.ok().flatten()
}

/// One sweep; whether it came to its end.
async fn sweep(client: &Client, bucket: &Bucket, metrics: &Metrics) -> bool {
    // Of the API server rather than of the watch: what is missing from the answer is removed.
    let live = match captures(client).await {
        Ok(live) => live,
        Err(error) => {
            tracing::warn!(%error, "the object store is swept later: captures cannot be listed");
            return false;
        }
    };
    match bucket.sweep(&live, Timestamp::now()).await {
        Ok(swept) => {
            metrics.store.swept.inc_by(swept.captures);
            if swept.captures > 0 {
                let (captures, objects, bytes) = (swept.captures, swept.objects, swept.bytes);
                tracing::info!(captures, objects, bytes, "swept the object store");
            }
            true
        }
        Err(error) => {
            tracing::warn!(%error, "the object store is swept later");
            false
        }
    }
}

/// Every capture of the cluster, those that are being deleted included.
async fn captures(client: &Client) -> Result<HashSet<CaptureId>, CallError> {
    let api = Api::<Capture>::all(client.clone());
    let mut live = HashSet::new();
    let mut page = ListParams::default().limit(PAGE_SIZE);
    loop {
        let list = bounded("listing captures", api.list_metadata(&page)).await?;
        live.extend(list.items.iter().map(|capture| CaptureId {
            namespace: capture.namespace().unwrap_or_default(),
            name: capture.name_any(),
            uid: capture.uid().unwrap_or_default(),
        }));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = ListParams::default().limit(PAGE_SIZE).continue_token(&token),
            None => return Ok(live),
        }
    }
}
