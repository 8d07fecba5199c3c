//! Removes what no capture of this node owns: at start, and from time to time.

use std::collections::HashSet;
use std::path::Path;

use flopwatch_api::capture::Capture;
use flopwatch_artifacts::{CaptureId, Store};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use tracing::{info, warn};

use crate::failure::chain;
use crate::steps::Steps;

/// Captures in one answer of the API server.
const PAGE: u32 = 500;

/// The captures of a node that exist now. Asked of the API server rather than of the watch: what is missing from the answer is
/// deleted from the store.
pub(super) async fn live_captures(client: &Client, node: &str) -> Result<HashSet<CaptureId>, kube::Error> {
    let api = Api::<Capture>::all(client.clone());
    let fields = ListParams::default()
        .fields(&format!("spec.nodeName={node}"))
        .limit(PAGE);
    let mut live = HashSet::new();
    let mut page = fields.clone();
    loop {
        let list = api.list_metadata(&page).await?;
        live.extend(list.items.iter().map(capture_id));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = fields.clone().continue_token(&token),
            None => return Ok(live),
        }
    }
}

/// Sweeps the store once; a failure is tried again with the next sweep.
pub(super) async fn sweep_store(store: &Store, live: &HashSet<CaptureId>) {
    match store.sweep(live).await {
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
pub(super) fn capture_id(capture: &impl ResourceExt) -> CaptureId {
    CaptureId {
        namespace: capture.namespace().unwrap_or_default(),
        name: capture.name_any(),
        uid: capture.uid().unwrap_or_default(),
    }
}
