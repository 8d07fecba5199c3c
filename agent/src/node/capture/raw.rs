//! What was recorded is kept where nothing could be made of it.

use std::fs::File;

use flopwatch_api::artifact::{Output, SAMPLES, raw_captures};
use flopwatch_api::reason::CaptureReason;
use flopwatch_artifacts::{Manifest, SourceFile};
use flopwatch_pipeline::artifact_file::source_file;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::sandbox_dir::{self, SandboxDir};
use tracing::{info, warn};

use super::context::Context;
use super::outcome::Failed;
use super::{produce, publish, store};
use crate::adoption::{Attached, FailureRecord};
use crate::profilers::{AnyProfiler, RawFiles};

/// Whether the profiler's own tools had made their reports, whole, before a capture failed of that.
const fn had_reports(reason: CaptureReason) -> bool {
    matches!(
        reason,
        CaptureReason::TransformFailed
            | CaptureReason::RequiredEventsMissing
            | CaptureReason::EventsMissed
            | CaptureReason::CaptureTruncated
    )
}

/// Files to publish, and the names of the categories that were recorded.
struct Recorded {
    files: Vec<SourceFile>,
    captured: Vec<String>,
}

/// Publishes what was recorded of a capture that failed, where its session asked for that too.
/// The failure says what came of it, and stands beside the files in the status.
pub(super) async fn keep(cx: &mut Context<'_>, failed: &mut Failed) {
    let asked = cx.capture.spec.outputs.contains(&Output::Raw);
    if !asked || !failed.kept.is_empty() || !cx.journal.stage.has_recorded() || cx.interrupted().is_err() {
        return;
    }
    let told = match publish_raw(cx, failed.failure.reason).await {
        Ok(None) => return,
        Ok(Some(manifest)) => keep_raw(cx, manifest, failed).await,
        Err(failure) => {
            warn!(why = failure.message, "what was recorded is not kept");
            format!("; what was recorded could not be published: {}", failure.message)
        }
    };
    failed.failure.message.push_str(&told);
    cx.journal.failed = Some(FailureRecord::from(&failed.failure));
    if let Err(error) = cx.note().await {
        warn!(%error, "a restart now would leave out what became of what was recorded");
    }
}

/// Notes what was published beside the failure; what there is to tell of it.
async fn keep_raw(cx: &mut Context<'_>, manifest: Manifest, failed: &mut Failed) -> String {
    let stored = store::replicate(cx, &manifest).await;
    if cx.interrupted().is_err() && !cx.is_handed_over() {
        publish::withdraw(cx).await;
        return String::new();
    }
    let names: Vec<_> = manifest
        .artifacts
        .iter()
        .map(|artifact| artifact.name.as_str())
        .collect();
    info!(files = names.join(", "), "what was recorded is kept");
    let mut told = format!("; what was recorded is published ({})", names.join(", "));
    match stored {
        Ok(storage) => failed.storage = Some(storage),
        Err(failure) => {
            told.push_str(", and not in the object store: ");
            told.push_str(&failure.message);
        }
    }
    failed.kept = manifest.artifacts;
    told
}

/// Stores what was recorded; none where it does not lie in the capture's folder.
async fn publish_raw(cx: &Context<'_>, reason: CaptureReason) -> Result<Option<Manifest>, Failure> {
    let Some(attached) = cx.journal.stage.attached() else {
        return Ok(None);
    };
    let profiler = cx.profiler(attached)?;
    let Some(raw) = profiler.raw_files(&cx.spool) else {
        return Ok(None);
    };
    let recorded = recorded(cx, profiler.as_ref(), attached, &raw, reason).await?;
    if recorded.files.is_empty() {
        return Ok(None);
    }
    let published = publish::publish_files(cx, &recorded.files, recorded.captured).await;
    published.map(Some)
}

/// The files of a collection: its own, the reports that the profiler's tools made of them, else
/// what those were to read.
async fn recorded(
    cx: &Context<'_>,
    profiler: &AnyProfiler,
    attached: &Attached,
    raw: &RawFiles,
    reason: CaptureReason,
) -> Result<Recorded, Failure> {
    // Reports lie where the children made them.
    let left = SandboxDir::left(&cx.spool.join(sandbox_dir::NAME), &cx.node.steps.limits().users);
    let sandbox = match left {
        Some(sandbox) => sandbox,
        None => produce::make_sandbox(cx.node, &cx.spool).await?,
    };
    let (mut files, mut captured) = (Vec::new(), Vec::new());
    // Where the tools that it needs are gone, there is what they were to read.
    if let Ok(recipe) = profiler.steps(&attached.profiler, raw, &sandbox, &cx.node.nsys_versions) {
        for (name, path) in recipe.collected {
            files.extend(source_file(name, File::open(path).map_err(not_opened())?));
        }
        for name in recipe.reports.iter().filter(|_| had_reports(reason)) {
            if let Ok(report) = sandbox.open(name) {
                files.extend(source_file(name, report));
            }
        }
        captured.extend(recipe.captured.iter().map(|category| category.name().to_owned()));
    }
    if files.is_empty() {
        for (name, path) in profiler.unread(raw) {
            files.extend(source_file(&name, File::open(path).map_err(not_opened())?));
        }
    }
    // Beside what only the profiler's tools read, the samples alone would pass for the capture.
    let is_read = |file: &SourceFile| raw_captures().any(|name| name == file.name);
    if files.is_empty() || files.iter().any(is_read) {
        let samples = File::open(cx.spool.join(SAMPLES)).map_err(not_opened())?;
        files.extend(source_file(SAMPLES, samples));
    }
    Ok(Recorded { files, captured })
}

fn not_opened() -> impl FnOnce(std::io::Error) -> Failure {
    Failure::because(CaptureReason::StoreFailed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_whole_where_the_capture_failed_after_the_tools_had_made_them() {
        for reason in [CaptureReason::TransformFailed, CaptureReason::EventsMissed] {
            assert!(had_reports(reason), "{reason}");
        }
        for reason in [
            CaptureReason::ImportFailed,
            CaptureReason::VersionUnsupported,
            CaptureReason::DiskSpace,
        ] {
            assert!(!had_reports(reason), "{reason}");
        }
    }
}
