//! Who observes the window of a capture: what was before it is kept, its cost is measured, and its
//! row of the fleet says when it was.

use flopwatch_nvml::utc_ns;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::transform::Samples;

use super::context::Context;
use super::{fleet_row, prelude, window_cost};
use crate::adoption::Attached;
use crate::overhead::Opened;

/// Notifies the observers that this agent opened the window.
pub(super) async fn on_opened(cx: &mut Context<'_>, attached: &Attached, opened: Opened) {
    prelude::on_opened(cx, attached).await;
    window_cost::on_opened(cx, attached, opened);
}

/// Notifies the observers that the window is over in which `samples` were taken.
pub(super) fn on_closed(cx: &mut Context<'_>, samples: &Samples) {
    cx.overhead.on_closed(utc_ns());
    fleet_row::on_closed(cx, samples);
}

/// Notifies the observers that the profiler has left the container.
pub(super) async fn on_detached(cx: &mut Context<'_>, attached: &Attached) -> Result<(), Failure> {
    window_cost::on_detached(cx, attached).await
}
