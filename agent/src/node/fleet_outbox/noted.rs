//! Rows of captures that ended without a task, or whose agent ended with them: until the capture's
//! end is told, its journal alone has its row.

use std::collections::HashSet;
use std::path::Path;

use flopwatch_api::capture::{Capture, CaptureStatus};
use flopwatch_fleet::CaptureRow;
use flopwatch_pipeline::failure::chain;
use kube::{Api, ResourceExt as _};
use tracing::{info, warn};

use super::blocking;
use crate::adoption::Journal;
use crate::metrics::FleetResult;
use crate::node::writer::Target;
use crate::node::{Node, journal};

/// Writes down a capture that ends without having begun, so that its row is not lost with this
/// process.
pub(in crate::node) async fn note(node: &Node, capture: &Capture) -> Option<CaptureRow> {
    let fleet = node.fleet.as_ref()?;
    let row = fleet.identity((node.name.as_str(), &node.pods), capture, None);
    let journal = Journal {
        fleet: Some(Box::new(row.clone())),
        ..Journal::default()
    };
    let file = journal::path(&node.spool, &capture.uid().unwrap_or_default());
    let written = blocking(move || journal::write(&file, &journal)).await;
    if let Ok(Err(failure)) = written {
        warn!(
            why = failure.message,
            "a restart now would lose the capture's row of the fleet"
        );
    }
    Some(row)
}

/// Keeps the row of a capture that was [noted](note) and has its end.
pub(in crate::node) async fn settle(node: &Node, capture: &Capture, row: Option<CaptureRow>, status: &CaptureStatus) {
    let (Some(fleet), Some(row)) = (&node.fleet, row) else {
        return;
    };
    let uid = capture.uid().unwrap_or_default();
    fleet.settle(row, status, &node.spool.join(&uid)).await;
    journal::remove(&journal::path(&node.spool, &uid));
}

/// Keeps the rows of captures that ended while their agent did: their journals are there, and
/// `keep` does not name them as under way. Gives those whose end is not known yet, which are to be
/// kept.
pub async fn recover(node: &Node, keep: impl Fn(&str) -> bool) -> HashSet<String> {
    let mut unknown = HashSet::new();
    let Some(fleet) = &node.fleet else { return unknown };
    for uid in ended(&node.spool, keep).await {
        let kept = journal::read(&journal::path(&node.spool, &uid));
        let Some(row) = kept.and_then(|journal| journal.fleet) else {
            continue;
        };
        let api: Api<Capture> = Api::namespaced(node.client.clone(), &row.namespace);
        match Target::named(api, &row.capture, &uid).read().await {
            Ok(Some(capture)) if capture.is_decided() => {
                info!(
                    capture = row.capture,
                    "kept the row of a capture whose agent ended with it"
                );
                let status = capture.status.unwrap_or_default();
                fleet.settle(*row, &status, &node.spool.join(&uid)).await;
            }
            Ok(Some(_)) => drop(unknown.insert(uid)),
            Ok(None) => {
                warn!(
                    capture = row.capture,
                    "a capture is gone before its row of the fleet was kept"
                );
                fleet.metrics.files(FleetResult::Dropped, 1);
            }
            Err(error) => {
                warn!(capture = row.capture, error = %chain(&error), "whether a capture ended is not known; its row is kept later");
                unknown.insert(uid);
            }
        }
    }
    unknown
}

/// UIDs of the spool's journals whose captures are not under way.
async fn ended(spool: &Path, keep: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    // The sweep that follows says that it cannot be read.
    let Ok(mut entries) = tokio::fs::read_dir(spool).await else {
        return found;
    };
    while let Ok(Some(entry)) = entries.next_entry().await {
        let name = entry.file_name();
        let uid = name.to_str().and_then(|name| name.strip_suffix(".json"));
        found.extend(uid.filter(|uid| !keep(uid)).map(str::to_owned));
    }
    found
}
