//! Who observes the window of a capture: what was before it is kept, its cost is measured, and its
//! row of the fleet says when it was.

use flopwatch_nvml::utc_ns;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::transform::Samples;

use super::context::Context;
use super::{fleet, overhead, prelude};
use crate::adoption::Attached;
use crate::overhead::Opened;

/// Tells them that this agent opened the window.
pub(super) async fn on_opened(cx: &mut Context<'_>, attached: &Attached, opened: Opened) {
    prelude::on_opened(cx, attached).await;
    overhead::on_opened(cx, attached, opened);
}

/// Tells them that the window is over in which those samples were taken.
pub(super) fn on_closed(cx: &mut Context<'_>, samples: &Samples) {
    cx.overhead.on_closed(utc_ns());
    fleet::on_closed(cx, samples);
}

/// Tells them that the profiler has left the container.
pub(super) async fn on_detached(cx: &mut Context<'_>, attached: &Attached) -> Result<(), Failure> {
    overhead::on_detached(cx, attached).await
}
