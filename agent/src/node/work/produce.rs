//! From what was collected to what is published.

use std::path::{Path, PathBuf};

use flopwatch_api::artifact::{Artifact, Output};
use flopwatch_api::capture::CaptureSummary;
use flopwatch_api::profiler::ProfilerType;
use flopwatch_api::reason::CaptureReason;
use flopwatch_artifacts::{Publication, SourceFile};
use k8s_openapi::jiff::Timestamp;

use super::collect::Collected;
use super::probe::Probed;
use super::{Failed, Work, store_failure};
use crate::choice::Choice;
use crate::digest::digest;
use crate::failure::{Failure, chain};
use crate::node::sweep::capture_id;
use crate::serve::source_file;
use crate::transform::{Job, read_summary};
use crate::verify::{required, verify};

/// Files to publish and what they hold.
pub(super) struct Produced {
    files: Vec<PathBuf>,
    pub(super) summary: CaptureSummary,
}

/// Imports, exports, transforms; checks that what was asked for is there.
pub(super) async fn produce(
    work: &mut Work<'_>,
    collected: &Collected,
    choice: &Choice,
    probed: &Probed,
) -> Result<Produced, Failed> {
    let steps = &work.node.steps;
    let at = |name: &str| work.spool.join(name);
    let (report, export, samples) = (at("capture.nsys-rep"), at("capture.h5"), at("samples.json"));
    write_samples(&samples, collected)?;
    let export = match &collected.raw {
        Some(raw) => {
            let failed = |error| Failure::new(CaptureReason::ImportFailed, chain(&error));
            steps.import(raw, &report).await.map_err(failed)?;
            work.interrupted()?;
            let failed = |error| Failure::new(CaptureReason::ImportFailed, chain(&error));
            steps.export(&report, &export).await.map_err(failed)?;
            Some(export)
        }
        None => None,
    };
    work.interrupted()?;
    let spec = &work.capture.spec;
    let job = Job {
        export,
        samples: Some(samples),
        session_id: spec.session_ref.id.clone(),
        captured: probed.traced.iter().copied().collect(),
        timeline: at("timeline.h5"),
        summary: at("summary.json"),
    };
    let failed = |error| Failure::new(CaptureReason::TransformFailed, chain(&error));
    steps.transform(&job).await.map_err(failed)?;
    let summary = read_summary(&job.summary).map_err(Failure::because(CaptureReason::TransformFailed))?;
    let summary = digest(&summary);
    if choice.profiler == ProfilerType::Nsys {
        let required = required(&spec.require, probed.uses_cuda);
        verify(&required, &summary.categories).map_err(|failure| Failed {
            failure,
            summary: Some(summary.clone()),
        })?;
    }
    let made = [
        (Output::Timeline, Some(job.timeline)),
        (Output::Summary, Some(job.summary)),
        (Output::Raw, collected.raw.as_ref().map(|_| report)),
    ];
    let files = made
        .into_iter()
        .filter(|(output, _)| spec.outputs.contains(output))
        .filter_map(|(_, file)| file)
        .collect();
    Ok(Produced { files, summary })
}

fn write_samples(to: &Path, collected: &Collected) -> Result<(), Failure> {
    let text = serde_json::to_vec(&collected.samples).map_err(Failure::because(CaptureReason::TransformFailed))?;
    std::fs::write(to, text).map_err(Failure::because(CaptureReason::TransformFailed))
}

/// Stores the files.
pub(super) async fn publish(work: &Work<'_>, produced: &Produced) -> Result<Vec<Artifact>, Failure> {
    let publication = Publication {
        capture: capture_id(work.capture),
        session: work.capture.spec.session_ref.clone(),
        created: Timestamp::now(),
    };
    let files: Vec<SourceFile> = produced.files.iter().filter_map(|file| source_file(file)).collect();
    let manifest = work
        .node
        .store
        .publish(publication, &files)
        .await
        .map_err(|error| store_failure(&error))?;
    Ok(manifest.artifacts)
}
