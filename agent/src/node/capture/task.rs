//! The task of a capture: a loop that writes each stage to the journal and then carries it out.
//!
//! A new capture enters the loop at the first stage, and an adopted one at the stage in which it
//! goes on. A capture whose collection missed what it was to record goes back in the loop for a
//! second window.

use std::ops::ControlFlow;

use flopwatch_pipeline::failure::Failure;

use super::context::{Context, Unwritten};
use super::outcome::{Failed, Published};
use super::{attach, fetch, fleet_row, open, produce, publish, retry, window};
use crate::adoption::{Journal, Stage};

/// Resets the journal of a capture that begins, or that its adoption begins anew, leases the
/// container and returns the first stage. Fails where another capture has the lease.
pub(super) fn begin(cx: &mut Context<'_>) -> Result<Stage, Failure> {
    // What an earlier collection of the capture is attached to, which may still be at work.
    let earlier = cx.journal.stage.left_behind().cloned();
    cx.journal = Journal {
        adoptions: cx.journal.adoptions,
        missed: cx.journal.missed.take(),
        fleet: cx.journal.fleet.take(),
        stage: Stage::Attach { earlier },
        failed: None,
    };
    fleet_row::identify(cx);
    cx.lease.acquire()?;
    Ok(cx.journal.stage.clone())
}

/// Carries a capture through `stage` and all that follow. Each stage is in the journal before it
/// begins.
pub(super) async fn run_stages(cx: &mut Context<'_>, mut stage: Stage) -> Result<Published, Failed> {
    loop {
        cx.journal.stage = stage.clone();
        let outcome = match cx.note().await {
            // The future of all stages is large.
            Ok(()) => Box::pin(run_stage(cx, stage)).await,
            Err(failure) => Err(failure.into()),
        };
        let mut failed = match outcome {
            Ok(ControlFlow::Continue(next)) => {
                stage = next;
                continue;
            }
            Ok(ControlFlow::Break(published)) => return Ok(published),
            Err(failed) => failed,
        };
        // A container that was held back for its collection is released by this.
        let Unwritten { prelude, .. } = std::mem::take(&mut cx.unwritten);
        // Before the capture's folder is emptied, in which its child writes.
        if let Some(prelude) = prelude {
            prelude.end().await;
        }
        match retry::after(cx, &mut failed) {
            Some(retry_stage) => stage = retry_stage,
            None => return Err(failed),
        }
    }
}

/// Carries out a stage. Returns the next stage, or what the last stage has published.
async fn run_stage(cx: &mut Context<'_>, stage: Stage) -> Result<ControlFlow<Published, Stage>, Failed> {
    let next = match stage {
        Stage::Attach { earlier } => attach::step(cx, earlier).await?,
        Stage::Again(attached) => retry::step(cx, attached).await,
        Stage::Prepare(attached) => open::prepare(cx, attached).await?,
        Stage::Start {
            attached,
            unprepared,
            again,
        } => open::start(cx, attached, unprepared, again).await?,
        Stage::Window(collection) => window::step(cx, collection).await?,
        Stage::Fetch(collection) => fetch::step(cx, collection).await?,
        Stage::Produce(collection) => produce::step(cx, collection).await?,
        Stage::Publish { collection, made } => {
            let published = publish::step(cx, collection, made).await?;
            return Ok(ControlFlow::Break(published));
        }
    };
    Ok(ControlFlow::Continue(next))
}
