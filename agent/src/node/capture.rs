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
mod produced;
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
use kube::ResourceExt;

use crate::adoption::Journal;
use crate::node::container_leases::{CaptureLease, Interrupts};
use crate::node::{Node, journal};
use context::Context;

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
