//! What was before a window: the flight recorder of the container's programs. It is taken as the
//! window opens, since the recorder goes on and writes over it, and its timeline is made while the
//! window is open: whoever waits for the picture of the window does not wait for it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flopwatch_api::artifact::{Output, PRELUDE};
use flopwatch_api::reason::CaptureReason;
use flopwatch_api::session::TransformDevice;
use flopwatch_nvml::utc_ns;
use flopwatch_pipeline::failure::{Failure, chain};
use flopwatch_pipeline::folder;
use flopwatch_pipeline::transform::{Job, Samples, read_samples, read_summary};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument, info, warn};

use super::context::{Context, blocking};
use super::produce;
use crate::adoption::Attached;
use crate::node::Node;
use crate::profilers::cuda::recent;
use crate::profilers::recorder::ring::{self, RingError};

/// Longest time before a window that is kept: what a ring of the usual size holds is less.
const MAX_PRELUDE_DURATION: Duration = Duration::from_mins(10);
/// Names in the capture's folder: the recorder's file, the kernels, and the window before as
/// [`Samples`], which is there only where there is a prelude.
const RING_BEFORE: &str = "before.ring";
const KERNELS_BEFORE: &str = "before.cuda-trace";
const SAMPLES_BEFORE: &str = "before.json";
/// The folder, in the capture's, in which its child has its own.
const FOLDER: &str = "before";
/// Tables of the prelude, which nobody reads, in the children's folder.
const SUMMARY: &str = "prelude.json";
/// Why there is none, where there should be one.
const MISSING_REASON_FILE: &str = "before.txt";

/// Takes what was recorded before a window that is open now. What cannot be taken is no reason to
/// lose the window.
pub(super) async fn on_opened(cx: &Context<'_>, attached: &Attached) {
    let samples = before(cx, attached, utc_ns(), MAX_PRELUDE_DURATION).await;
    let taken = match take_ring(cx, attached).await {
        Ok(has_ring) => {
            let kernels = take_kernels(cx, attached, samples.window_start_utc_ns).await;
            kernels.map(|has_kernels| has_ring || has_kernels)
        }
        failed => failed,
    };
    let kept = match taken {
        Ok(false) if samples.series.is_empty() => return,
        Ok(_) => serde_json::to_vec(&samples)
            .map_err(std::io::Error::from)
            .and_then(|text| std::fs::write(cx.spool.join(SAMPLES_BEFORE), text))
            .map_err(Failure::because(CaptureReason::StoreFailed)),
        Err(failure) => Err(failure),
    };
    if let Err(failure) = kept {
        warn!(why = failure.message, "the capture has no prelude");
        if let Err(error) = std::fs::write(cx.spool.join(MISSING_REASON_FILE), &failure.message) {
            warn!(error = %chain(&error), "the capture will not say so");
        }
    }
}

/// The time of `length` before another, with what the metrics ring holds of the container and its
/// devices.
pub(super) async fn before(cx: &Context<'_>, attached: &Attached, end_utc_ns: u64, length: Duration) -> Samples {
    let (node, id) = (Arc::clone(cx.node), attached.container_id.clone());
    let window_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
    let from = end_utc_ns.saturating_sub(window_ns);
    let found = tokio::task::spawn_blocking(move || {
        let ring = node.metrics_ring.as_ref();
        let mut found = ring
            .map(|ring| ring.before(&id, end_utc_ns, length))
            .unwrap_or_default();
        found.series.extend(node.heartbeats.within(&id, from..end_utc_ns));
        found.series.extend(node.kernels.within(&id, &(from..end_utc_ns)));
        found
    });
    let found = found.await.unwrap_or_default();
    Samples {
        window_start_utc_ns: from,
        window_ns,
        series: found.series,
        missed: found.missed,
    }
}

/// Takes the recorder's file; false where there is none.
async fn take_ring(cx: &Context<'_>, attached: &Attached) -> Result<bool, Failure> {
    let Some(path) = attached.ring.clone() else {
        return Ok(false);
    };
    let (site, gate) = (cx.site_of(attached), cx.node.entering.gate.clone());
    let taken = blocking(CaptureReason::AttachFailed, move || {
        match ring::take(&gate, &site, path, RING_BEFORE) {
            Ok(()) => Ok(true),
            Err(RingError::NotThere) => Ok(false),
            Err(error) => Err(error.into()),
        }
    });
    let taken = taken.await?;
    info!(taken, "looked for the flight recorder's file");
    Ok(taken)
}

/// Takes the kernels that ran since a time, where they are recorded all the time; false where there
/// are none.
async fn take_kernels(cx: &Context<'_>, attached: &Attached, since_utc_ns: u64) -> Result<bool, Failure> {
    let Some(path) = attached.kernels.clone() else {
        return Ok(false);
    };
    let (site, gate) = (cx.site_of(attached), cx.node.entering.gate.clone());
    let taken = blocking(CaptureReason::AttachFailed, move || {
        recent::take(&gate, &site, path, since_utc_ns, KERNELS_BEFORE)
    });
    taken.await
}

/// Why a capture has no prelude that should have one; none where it has one, or nothing to have one
/// of.
pub(super) fn without(folder: &Path) -> Option<String> {
    std::fs::read_to_string(folder.join(MISSING_REASON_FILE)).ok()
}

/// The timeline of what was before the window.
pub(super) struct Prelude {
    /// The file; none where there was nothing.
    pub(super) content: Option<File>,
    /// Processor time that it took to make; none where that is not known.
    pub(super) processor_time: Option<Duration>,
}

/// A prelude that is being made, beside whatever else its capture does. Where it is dropped its
/// child is ended.
pub(super) struct PendingPrelude {
    made: AbortOnDropHandle<Result<Prelude, Failure>>,
    in_vain: CancellationToken,
}

impl PendingPrelude {
    /// Begins to make the prelude of a window of which what was before it is in the capture's
    /// folder. Whoever ends the capture ends its child.
    pub(super) fn begin(cx: &Context<'_>) -> Self {
        let in_vain = CancellationToken::new();
        let (aborted, given_up) = (cx.aborted(), in_vain.clone());
        let until = async move {
            tokio::select! {
                () = aborted => {}
                () = given_up.cancelled() => {}
            }
        };
        let source = Source {
            node: Arc::clone(cx.node),
            spool: cx.spool.clone(),
            session_id: cx.capture.spec.session_ref.id.clone(),
            is_published: cx.capture.spec.outputs.contains(&Output::Timeline),
        };
        let made = tokio::spawn(async move { make(&source, until).await }.in_current_span());
        Self {
            made: AbortOnDropHandle::new(made),
            in_vain,
        }
    }

    /// Cancel it where nobody will look at what was before the window.
    pub(super) fn in_vain(&self) -> CancellationToken {
        self.in_vain.clone()
    }

    /// The prelude, once it is made.
    pub(super) async fn finish(self) -> Result<Prelude, Failure> {
        self.made
            .await
            .map_err(Failure::because(CaptureReason::TransformFailed))?
    }

    /// Ends its child, and waits until that is gone.
    pub(super) async fn end(self) {
        self.in_vain.cancel();
        drop(self.made.await);
    }
}

/// What a prelude is made of, and where.
struct Source {
    node: Arc<Node>,
    /// The capture's folder.
    spool: PathBuf,
    session_id: String,
    /// Whether timelines are published.
    is_published: bool,
}

/// Makes the timeline of what was before the window, where timelines are published, in a folder of
/// its own: another child of the capture may be at work. Its child is ended when `until` resolves.
async fn make(source: &Source, until: impl Future<Output = ()>) -> Result<Prelude, Failure> {
    let samples = source.spool.join(SAMPLES_BEFORE);
    if !source.is_published || !samples.is_file() {
        return Ok(Prelude {
            content: None,
            processor_time: Some(Duration::ZERO),
        });
    }
    let own = source.spool.join(FOLDER);
    folder::make(&own)?;
    let sandbox = produce::make_sandbox(&source.node, &own).await?;
    let inputs = [RING_BEFORE, KERNELS_BEFORE].map(|name| source.spool.join(name));
    let inputs: Vec<_> = inputs.into_iter().filter(|input| input.is_file()).collect();
    let samples_alone = inputs.is_empty();
    let job = Job {
        inputs,
        samples: Some(samples.clone()),
        session_id: Some(source.session_id.clone()),
        trim: true,
        captured: Vec::new(),
        device: TransformDevice::Cpu,
        others: 0,
        timeline: Some(sandbox.at(PRELUDE)),
        summary: sandbox.at(SUMMARY),
        fleet: None,
    };
    let failed = |error: &dyn std::error::Error| Failure::new(CaptureReason::TransformFailed, chain(error));
    let transformed = source.node.steps.transform(&sandbox, &job, until).await;
    let processor_time = transformed.map_err(|error| failed(&error))?;
    let summary = sandbox.open(SUMMARY).map_err(|error| failed(&error))?;
    let summary = read_summary(summary, &job.summary).map_err(|error| failed(&error))?;
    // Where there is nothing else there are series, or there would be no samples.
    let holds_something = summary.total_events > 0 || samples_alone || {
        let samples = read_samples(&samples).map_err(|error| failed(&error))?;
        !samples.series.is_empty()
    };
    let content = holds_something.then(|| sandbox.open(PRELUDE)).transpose();
    Ok(Prelude {
        content: content.map_err(|error| failed(&error))?,
        processor_time,
    })
}
