//! A second collection, where the first one missed what it was to record.

use flopwatch_api::capture::Stage as StatusStage;
use flopwatch_pipeline::folder;
use tracing::warn;

use super::context::Context;
use super::finish::clean_container;
use super::outcome::Failed;
use crate::adoption::{Attached, RetryRecord, Stage};
use crate::plan::tries_again;

/// The stage after a failure with which the capture is recorded once more; none where the failure
/// stands, which then says what became of the collection before.
pub(super) fn after(cx: &mut Context<'_>, failed: &mut Failed) -> Option<Stage> {
    let attached = cx.journal.stage.reattached()?;
    let tries = cx.journal.missed.as_ref().map_or(0, |missed| missed.tries);
    let (interrupt, reason) = (*cx.interrupts.borrow(), failed.failure.reason);
    let collection = cx.journal.stage.collection();
    // Whoever was slowed too much by one window is not given another.
    let costly = collection.is_some_and(|collection| collection.over_budget.is_some());
    if costly || !tries_again(&cx.capture.spec, tries, interrupt, reason) {
        append_first_failure(cx, failed);
        return None;
    }
    if let Err(busy) = cx.lease.acquire() {
        append_first_failure(cx, failed);
        let why = format!(" (no further window was recorded: {})", busy.message);
        failed.failure.message.push_str(&why);
        return None;
    }
    warn!(reason = %reason, why = failed.failure.message, "the collection is tried once more");
    cx.journal.missed = Some(RetryRecord {
        tries: tries.saturating_add(1),
        reason: reason.as_str().to_owned(),
    });
    Some(Stage::Again(attached))
}

/// Says of a failure of a second collection what became of the first.
fn append_first_failure(cx: &Context<'_>, failed: &mut Failed) {
    if let Some(missed) = &cx.journal.missed {
        let first = format!(" (a second window was recorded, after {} of the first)", missed.reason);
        failed.failure.message.push_str(&first);
    }
}

/// Removes what the collection before left in its container and on the node.
pub(super) async fn step(cx: &mut Context<'_>, attached: Attached) -> Stage {
    clean_container(cx).await;
    folder::remove(&cx.spool, &cx.node.steps).await;
    let missed = cx.journal.missed.as_ref();
    let reason = missed.map(|missed| missed.reason.clone()).unwrap_or_default();
    cx.enter(StatusStage::Attaching, &format!("recording once more after {reason}"));
    Stage::Prepare(attached)
}
