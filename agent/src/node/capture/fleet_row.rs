//! What a capture leaves for the rows of the fleet.

use std::fs::File;
use std::path::{Path, PathBuf};

use flopwatch_api::capture::CaptureStatus;
use flopwatch_fleet::CaptureRow;
use flopwatch_pipeline::failure::chain;
use flopwatch_pipeline::fleet_rows::ROWS;
use flopwatch_pipeline::products::Products;
use flopwatch_pipeline::transform::Samples;

use super::context::Context;
use crate::adoption::Journal;
use crate::fleet_rows::{CAPTURE, described, take};
use crate::node::Node;
use crate::node::journal::replace;

/// Finds out who the capture is, for the journal that is written next.
pub(super) fn identify(cx: &mut Context<'_>) {
    if let Some(fleet) = &cx.node.fleet {
        let row = fleet.identity(
            (cx.node.name.as_str(), &cx.node.pods),
            cx.capture,
            cx.journal.fleet.as_deref(),
        );
        cx.journal.fleet = Some(Box::new(row));
    }
}

/// Says in the row when the window was, by the agent's own clock, for the journal that is written
/// next.
pub(super) fn on_closed(cx: &mut Context<'_>, samples: &Samples) {
    identify(cx);
    if let Some(row) = &mut cx.journal.fleet {
        row.window_start = i64::try_from(samples.window_start_utc_ns).unwrap_or(i64::MAX);
        row.window_ns = i64::try_from(samples.window_ns).unwrap_or(i64::MAX);
    }
}

/// The row of the capture as a file for the child that makes its rows; none where there is no
/// fleet, or it cannot be written.
pub(super) fn row_for_child(cx: &Context<'_>) -> Option<PathBuf> {
    let (fleet, row) = (cx.node.fleet.as_ref()?, cx.journal.fleet.as_ref()?);
    let path = cx.spool.join(CAPTURE);
    let text = serde_json::to_vec(row).map_err(std::io::Error::from);
    match text.and_then(|text| std::fs::write(&path, text)) {
        Ok(()) => Some(path),
        Err(error) => {
            fleet.without_rows(&error.to_string());
            None
        }
    }
}

/// Keeps the rows that the child made in the capture's folder until the capture has its end, and
/// gives the capture's row with what was measured. They never fail a capture: what is not taken is
/// said and counted.
pub(super) async fn take_rows(cx: &Context<'_>, products: &Products<'_>) -> Option<Box<CaptureRow>> {
    let (fleet, row) = (cx.node.fleet.as_ref()?, cx.journal.fleet.as_deref()?);
    let path = cx.spool.join(ROWS);
    // Those of an earlier try, of which nobody knows whether they are the same.
    drop(std::fs::remove_file(&path));
    let kept = match products.open(ROWS) {
        Ok(file) => keep_rows(file, row.clone(), path).await,
        Err(error) => Err(format!("the transform made none: {}", chain(&error))),
    };
    if let Err(why) = kept {
        fleet.without_rows(&why);
    }
    Some(Box::new(described(row.clone(), &products.summary)))
}

/// Checks the rows and writes them where the agent alone can.
async fn keep_rows(file: File, row: CaptureRow, path: PathBuf) -> Result<(), String> {
    let kept = tokio::task::spawn_blocking(move || {
        let content = take(file, &row).map_err(|refusal| chain(&refusal))?;
        replace(&path, &content, File::sync_all).map_err(|error| error.to_string())
    });
    kept.await.map_err(|error| error.to_string())?
}

/// Keeps the row of a capture whose last status the API server has.
pub(super) async fn settle(node: &Node, journal: &Journal, status: &CaptureStatus, folder: &Path) {
    if let (Some(fleet), Some(row)) = (&node.fleet, &journal.fleet) {
        fleet.settle(row.as_ref().clone(), status, folder).await;
    }
}
