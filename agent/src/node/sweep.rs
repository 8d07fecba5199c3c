//! Removes what no capture of this node owns: at start, and from time to time.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use flopwatch_api::capture::Capture;
use flopwatch_artifacts::{CaptureId, Store};
use kube::ResourceExt;
use kube::runtime::reflector;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::failure::chain;
use crate::steps::Steps;

/// Time between two sweeps of the store.
const INTERVAL: Duration = Duration::from_mins(10);

/// Sweeps the store until it is told to stop. The watch must have seen its first list, or everything would look abandoned.
pub(super) async fn sweep_store(store: &Store, watched: &reflector::Store<Capture>, stop: CancellationToken) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        let live: HashSet<CaptureId> = watched.state().iter().map(|capture| capture_id(capture)).collect();
        match store.sweep(&live).await {
            Ok(swept) if swept == flopwatch_artifacts::Swept::default() => {}
            Ok(swept) => info!(
                manifests = swept.manifests,
                objects = swept.objects,
                bytes = swept.object_bytes,
                temporary = swept.temporary,
                "swept artifacts that belong to no capture"
            ),
            Err(error) => warn!(error = %chain(&error), "sweeping the store failed and is tried again"),
        }
    }
}

/// Empties the spool of what an earlier agent left.
pub(super) async fn empty_spool(spool: &Path, steps: &Steps) -> std::io::Result<()> {
    let mut entries = tokio::fs::read_dir(spool).await?;
    while let Some(entry) = entries.next_entry().await? {
        remove_folder(&entry.path(), steps).await;
    }
    Ok(())
}

/// Removes a capture's folder: first, as their user, what its children left. Safe to repeat.
pub(super) async fn remove_folder(folder: &Path, steps: &Steps) {
    if !folder.exists() {
        return;
    }
    if let Err(error) = tokio::fs::remove_dir_all(folder).await {
        // Without CAP_DAC_OVERRIDE even root cannot empty a folder that another user made in it.
        if let Err(error) = steps.clear(folder).await {
            warn!(folder = %folder.display(), error = %chain(&error), "clearing a spool folder failed");
        }
        match tokio::fs::remove_dir_all(folder).await {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(second) => warn!(folder = %folder.display(), first = %error, error = %second, "a spool folder stays"),
        }
    }
}

/// How the store names a capture.
pub(super) fn capture_id(capture: &Capture) -> CaptureId {
    CaptureId {
        namespace: capture.namespace().unwrap_or_default(),
        name: capture.name_any(),
        uid: capture.uid().unwrap_or_default(),
    }
}
