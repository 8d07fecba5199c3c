//! From what was collected to what is published.

use std::path::PathBuf;

use flopwatch_api::artifact::Output;
use flopwatch_api::capture::CaptureSummary;
use flopwatch_api::profiler::ProfilerType;
use flopwatch_api::reason::CaptureReason;
use flopwatch_artifacts::{Manifest, Publication, SourceFile};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use tracing::warn;

use super::collect::{RAW, SAMPLES};
use super::{Failed, Work, store_failure};
use crate::adoption::Attached;
use crate::digest::digest;
use crate::failure::{Failure, chain};
use crate::node::sweep::capture_id;
use crate::serve::source_file;
use crate::steps::{self, Steps};
use crate::transform::{Job, read_summary};
use crate::verify::{holds_cuda, outcomes, required, verify};

/// Files to publish and what they hold.
pub(super) struct Produced {
    files: Vec<PathBuf>,
    pub(super) summary: CaptureSummary,
}

/// Imports, exports, transforms; checks that what was asked for is there. Whoever ends the capture meanwhile ends the child
/// that is at work.
pub(super) async fn produce(work: &Work<'_>, attached: &Attached) -> Result<Produced, Failed> {
    let has_raw = attached.profiler == ProfilerType::Nsys;
    let steps = &with_tools(work, attached)?;
    let at = |name: &str| work.spool.join(name);
    let (raw, report, export) = (at(RAW), at("capture.nsys-rep"), at("capture.h5"));
    // A child that was killed because the capture was ended is no reason of its own.
    let failed = |reason: CaptureReason| {
        move |error: steps::Error| match work.interrupted() {
            Err(ended) => ended,
            Ok(()) => Failure::new(reason, chain(&error)),
        }
    };
    if has_raw {
        let import = steps.import(&raw, &report, work.aborted()).await;
        import.map_err(failed(CaptureReason::ImportFailed))?;
        let exported = steps.export(&report, &export, work.aborted()).await;
        exported.map_err(failed(CaptureReason::ImportFailed))?;
    }
    let spec = &work.capture.spec;
    let job = Job {
        export: has_raw.then_some(export),
        samples: Some(at(SAMPLES)),
        session_id: Some(spec.session_ref.id.clone()),
        captured: attached.traced.iter().copied().collect(),
        timeline: Some(at("timeline.h5")),
        device: spec.transform.device,
        summary: at("summary.json"),
        conversion: None,
    };
    let transformed = steps.transform(&job, work.aborted()).await;
    transformed.map_err(failed(CaptureReason::TransformFailed))?;
    let summary = read_summary(&job.summary).map_err(Failure::because(CaptureReason::TransformFailed))?;
    let mut summary = digest(&summary);
    if has_raw {
        summary.traced = outcomes(&attached.traced, &summary.categories);
        let required = required(&spec.require, attached.uses_cuda || holds_cuda(&summary.categories));
        verify(&required, &summary.categories).map_err(|failure| Failed {
            failure,
            summary: Some(summary.clone()),
            kept: Vec::new(),
        })?;
    }
    let made = [
        (Output::Timeline, job.timeline),
        (Output::Summary, Some(job.summary)),
        (Output::Raw, has_raw.then_some(report)),
    ];
    let files = made
        .into_iter()
        .filter(|(output, _)| spec.outputs.contains(output))
        .filter_map(|(_, file)| file)
        .collect();
    Ok(Produced { files, summary })
}

/// The steps with the tools that the capture was made with. An agent that began before versions were written down had one.
fn with_tools(work: &Work<'_>, attached: &Attached) -> Result<Steps, Failure> {
    if attached.tools.is_empty() {
        return Ok(work.node.steps.clone());
    }
    if let Some(tools) = work.node.toolbox.get(&attached.tools) {
        return Ok(work.node.steps.with_tools(tools.clone()));
    }
    let message = format!(
        "the raw capture was made by Nsight Systems {}, and this node's agent carries {} since it restarted",
        attached.tools,
        work.node.toolbox.versions()
    );
    Err(Failure::new(CaptureReason::VersionUnsupported, message))
}

/// Stores the files on the node.
pub(super) async fn publish(work: &Work<'_>, produced: &Produced) -> Result<Manifest, Failure> {
    let publication = Publication {
        capture: capture_id(work.capture),
        session: work.capture.spec.session_ref.clone(),
        created: Timestamp::now(),
    };
    let files: Vec<SourceFile> = produced.files.iter().filter_map(|file| source_file(file)).collect();
    let published = work.node.store.publish(publication, &files).await;
    published.map_err(|error| store_failure(&error))
}

/// Takes back what was just stored: nobody wants it any more.
pub(super) async fn withdraw(work: &Work<'_>) {
    let namespace = work.capture.namespace().unwrap_or_default();
    work.node.storage.forget(&capture_id(work.capture)).await;
    if let Err(error) = work.node.store.delete(&namespace, &work.capture.name_any()).await {
        warn!(error = %chain(&error), "artifacts of a discarded capture stay until it is deleted");
    }
}
