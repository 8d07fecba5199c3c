//! One capture from its turn to its end: attach, collect, fetch, transform, publish.
//!
//! A capture is in one [`Stage`](crate::adoption::Stage) at a time. Its task is a loop that writes
//! the stage to the journal and then takes it, which gives the next one: an agent that comes after
//! this one goes on where this one ended ([`crate::adoption`]). A start, an adoption and a second
//! window enter that loop.
//!
//! Whatever happens, what follows is in this order: the collection is stopped and the capture's
//! files in the container are removed, the status says how it ended, and the capture's files on the
//! node are removed.

mod attach;
mod context;
mod fetch;
mod finish;
mod fleet_row;
mod memory;
mod observers;
mod open;
mod outcome;
mod prelude;
mod produce;
mod publish;
mod raw;
mod resume;
mod retry;
mod sandbox;
mod scrape;
mod start;
mod store;
mod task;
mod unprepared;
mod window;
mod window_cost;

use std::sync::Arc;

use flopwatch_api::capture::Capture;
use flopwatch_api::reason::CaptureReason;
use flopwatch_pipeline::failure::Failure;
use kube::ResourceExt;
use tokio::sync::watch;

use crate::adoption::Journal;
use crate::node::container_leases::CaptureLease;
use crate::node::{Node, journal};
use crate::plan::Interrupt;
use context::Context;

/// What a live capture is told by others.
pub type Interrupts = watch::Receiver<Option<Interrupt>>;

/// Carries a new capture to its end.
pub async fn run(node: &Arc<Node>, capture: &Capture, interrupts: Interrupts, lease: CaptureLease) {
    let mut cx = Context::new(node, capture, (interrupts, lease), Journal::default());
    let ended = match task::begin(&mut cx) {
        Ok(first) => task::run_stages(&mut cx, first).await,
        Err(failure) => Err(failure.into()),
    };
    finish::finish(cx, ended).await;
}

/// Runs a capture to its end that an earlier agent process began.
pub async fn adopt(node: &Arc<Node>, capture: &Capture, interrupts: Interrupts, lease: CaptureLease) {
    let kept = journal::read(&journal::path(&node.spool, &capture.uid().unwrap_or_default()));
    let journal = kept.clone().unwrap_or_default();
    let mut cx = Context::new(node, capture, (interrupts, lease), journal);
    let ended = match resume::resume(&mut cx, kept.as_ref()).await {
        Ok(next) => task::run_stages(&mut cx, next).await,
        Err(failed) => Err(failed),
    };
    finish::finish(cx, ended).await;
}

/// Runs what blocks on a thread of its own.
async fn blocking<T: Send + 'static>(
    reason: CaptureReason,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(Failure::because(reason))?
}
