//! From what was collected to what is published.

use flopwatch_api::artifact::Output;
use flopwatch_api::capture::CaptureSummary;
use flopwatch_api::reason::CaptureReason;
use flopwatch_artifacts::{Manifest, Publication, SourceFile};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use tracing::warn;

use super::{Failed, Work, store_failure};
use crate::adoption::Attached;
use crate::digest::digest;
use crate::failure::{Failure, chain};
use crate::node::sweep::{capture_id, remove_folder};
use crate::profilers::Recipe;
use crate::serve::source_file;
use crate::steps;
use crate::transform::{Job, SAMPLES, read_summary};
use crate::verify::{holds_cuda, required, verify};
use crate::workplace::{self, Workplace};

/// Files to publish and what they hold.
pub(super) struct Produced {
    files: Vec<SourceFile>,
    pub(super) summary: CaptureSummary,
}

/// Imports, exports, transforms; checks that what was asked for is there. Whoever ends the capture meanwhile ends the child
/// that is at work.
pub(super) async fn produce(work: &Work<'_>, attached: &Attached) -> Result<Produced, Failed> {
    let profiler = work.profiler(attached)?;
    let place = make_place(work).await?;
    let raw = profiler.raw_files(&work.spool).ok_or_else(|| {
        let message = "the raw files are gone from the capture's folder";
        Failure::new(CaptureReason::CollectionFailed, message)
    })?;
    let Recipe {
        tools,
        steps: recipe,
        export,
        report,
        captured,
    } = profiler.steps(&attached.profiler, &raw, &place, &work.node.toolbox)?;
    let steps = match tools {
        Some(tools) => &work.node.steps.with_tools(tools),
        None => &work.node.steps,
    };
    // A child that was killed because the capture was ended is no reason of its own.
    let failed = |reason: CaptureReason| {
        move |error: steps::Error| match work.interrupted() {
            Err(ended) => ended,
            Ok(()) if error.is_want_of_space() => Failure::new(CaptureReason::DiskSpace, chain(&error)),
            Ok(()) => Failure::new(reason, chain(&error)),
        }
    };
    for step in &recipe {
        let ran = steps.tool(&place, step, work.aborted()).await;
        ran.map_err(failed(CaptureReason::ImportFailed))?;
    }
    let spec = &work.capture.spec;
    let job = Job {
        export,
        samples: Some(work.spool.join(SAMPLES)),
        session_id: Some(spec.session_ref.id.clone()),
        captured,
        timeline: Some(place.at("timeline.h5")),
        device: spec.transform.device,
        others: 0,
        summary: place.at("summary.json"),
    };
    let transformed = steps.transform(&place, &job, work.aborted()).await;
    transformed.map_err(failed(CaptureReason::TransformFailed))?;
    let open = |name: &str| {
        place
            .open(name)
            .map_err(Failure::because(CaptureReason::TransformFailed))
    };
    let summary = read_summary(open("summary.json")?, &job.summary);
    let summary = summary.map_err(Failure::because(CaptureReason::TransformFailed))?;
    let mut summary = digest(&summary);
    summary.traced = profiler.outcomes(&attached.profiler, &summary.categories)?;
    if profiler.records_events() {
        let required = required(&spec.require, attached.uses_cuda || holds_cuda(&summary.categories));
        verify(&required, &summary.categories).map_err(|failure| Failed {
            failure,
            summary: Some(summary.clone()),
            kept: Vec::new(),
        })?;
    }
    let made = [
        (Output::Timeline, Some("timeline.h5")),
        (Output::Summary, Some("summary.json")),
        (Output::Raw, report),
    ];
    let wanted = made
        .into_iter()
        .filter(|(output, _)| spec.outputs.contains(output))
        .filter_map(|(_, name)| name);
    let mut files = Vec::new();
    for name in wanted {
        files.extend(source_file(name, open(name)?));
    }
    Ok(Produced { files, summary })
}

/// The children's folder in the capture's own, without what the children of an earlier agent left.
async fn make_place(work: &Work<'_>) -> Result<Workplace, Failure> {
    let folder = work.spool.join(workplace::NAME);
    remove_folder(&folder, &work.node.steps).await;
    Workplace::make(folder, &work.node.steps.limits().users).map_err(Failure::because(CaptureReason::StoreFailed))
}

/// Stores the files on the node.
pub(super) async fn publish(work: &Work<'_>, produced: &Produced) -> Result<Manifest, Failure> {
    let publication = Publication {
        capture: capture_id(work.capture),
        session: work.capture.spec.session_ref.clone(),
        created: Timestamp::now(),
    };
    let published = work.node.store.publish(publication, &produced.files).await;
    published.map_err(|error| store_failure(&error))
}

/// What the store holds of the capture.
pub(super) async fn stored(work: &Work<'_>) -> Option<Manifest> {
    let id = capture_id(work.capture);
    match work.node.store.get(&id.namespace, &id.name).await {
        Ok(manifest) => manifest.filter(|manifest| manifest.capture == id),
        Err(error) => {
            warn!(error = %chain(&error), "what the store holds of the capture cannot be told");
            None
        }
    }
}

/// Takes back what was just stored: nobody wants it any more.
pub(super) async fn withdraw(work: &Work<'_>) {
    let namespace = work.capture.namespace().unwrap_or_default();
    work.node.storage.forget(&capture_id(work.capture)).await;
    if let Err(error) = work.node.store.delete(&namespace, &work.capture.name_any()).await {
        warn!(error = %chain(&error), "artifacts of a discarded capture stay until it is deleted");
    }
}
