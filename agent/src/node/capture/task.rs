//! The task of a capture: one loop over its stages, which a start, an adoption and a second window
//! enter.

use std::ops::ControlFlow;

use flopwatch_pipeline::failure::Failure;

use super::context::{Context, Unwritten};
use super::outcome::{Failed, Published};
use super::{again, attach, fetch, fleet, open, produce, publish, window};
use crate::adoption::{Journal, Stage};

/// The first stage of a capture that begins, or that begins anew.
pub(super) fn begin(cx: &mut Context<'_>) -> Result<Stage, Failure> {
    let earlier = cx.journal.stage.left_behind().cloned();
    cx.journal = Journal {
        adoptions: cx.journal.adoptions,
        missed: cx.journal.missed.take(),
        fleet: cx.journal.fleet.take(),
        stage: Stage::Attach { earlier },
        failed: None,
    };
    fleet::identify(cx);
    cx.claim.take()?;
    Ok(cx.journal.stage.clone())
}

/// Carries a capture through all stages from that one on. Each is written down before it begins.
pub(super) async fn carry(cx: &mut Context<'_>, mut stage: Stage) -> Result<Published, Failed> {
    loop {
        cx.journal.stage = stage.clone();
        let taken = match cx.note().await {
            // The future of all stages is large.
            Ok(()) => Box::pin(step(cx, stage)).await,
            Err(failure) => Err(failure.into()),
        };
        let mut failed = match taken {
            Ok(ControlFlow::Continue(next)) => {
                stage = next;
                continue;
            }
            Ok(ControlFlow::Break(published)) => return Ok(published),
            Err(failed) => failed,
        };
        // A container that is held is let go.
        cx.unwritten = Unwritten::default();
        match again::after(cx, &mut failed) {
            Some(again) => stage = again,
            None => return Err(failed),
        }
    }
}

/// Takes a stage; gives the next one, or what was published in the end.
async fn step(cx: &mut Context<'_>, stage: Stage) -> Result<ControlFlow<Published, Stage>, Failed> {
    let next = match stage {
        Stage::Attach { earlier } => attach::step(cx, earlier).await?,
        Stage::Again(attached) => again::step(cx, attached).await,
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
