//! Makes the published files of what was collected.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use flopwatch_api::artifact::{Output, PRELUDE, SAMPLES};
use flopwatch_api::capture::CaptureSummary;
use flopwatch_api::overhead::{CaptureOverhead, CaptureProcessorTime};
use flopwatch_api::reason::CaptureReason;
use flopwatch_artifacts::{Manifest, Publication, SourceFile};
use flopwatch_fleet::CaptureRow;
use flopwatch_summary::{Overhead, ProcessorTime, Summary};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use tracing::warn;

use super::{Failed, Work, prelude, store_failure};
use crate::adoption::Attached;
use crate::artifact_file::source_file;
use crate::failure::{Failure, chain};
use crate::folder;
use crate::node::sweep::capture_id;
use crate::pipeline::{self, SUMMARY, Wanted};
use crate::status_summary::idle_processes;
use crate::workplace::{self, Workplace};

/// Files to publish and what they hold.
pub(super) struct Produced {
    files: Vec<SourceFile>,
    /// The tables of the summary, which is written once they say what the capture cost.
    tables: Summary,
    /// Index in the files at which the summary belongs; none where it is not published.
    summary_at: Option<usize>,
    /// Names of the categories that were recorded.
    captured: Vec<String>,
    pub(super) summary: CaptureSummary,
    /// Why there is nothing of the time before the window, where there should be something.
    pub(super) without_prelude: Option<String>,
    /// That processes were recorded and did nothing; none where there are none.
    pub(super) idle: Option<String>,
    /// Processor time of the children; none where it is not known of one of them.
    pub(super) processor_time: Option<Duration>,
    /// The capture's row of the fleet with what was measured; none where there is no fleet.
    pub(super) fleet: Option<Box<CaptureRow>>,
}

/// Imports and transforms; checks that what was asked for is there. Whoever ends the capture meanwhile ends the child
/// that is at work.
pub(super) async fn produce(work: &Work<'_>, attached: &Attached) -> Result<Produced, Failed> {
    let profiler = work.profiler(attached)?;
    let place = make_place(work).await?;
    let raw = profiler.raw_files(&work.spool).ok_or_else(|| {
        let message = "the raw files are gone from the capture's folder";
        Failure::new(CaptureReason::CollectionFailed, message)
    })?;
    let recipe = profiler.steps(&attached.profiler, &raw, &place, &work.node.toolbox)?;
    let spec = &work.capture.spec;
    let wanted = Wanted {
        samples: Some(work.spool.join(SAMPLES)),
        session_id: Some(spec.session_ref.id.clone()),
        device: spec.transform.device,
        fleet: work.row_for_child(),
    };
    let collected = recipe.collected.clone();
    let captured = recipe.captured.iter().map(|category| category.name().to_owned());
    let captured = captured.collect();
    // A child that was killed because the capture was ended is no reason of its own.
    let failed = |error: pipeline::Error| match work.interrupted() {
        Err(ended) => ended,
        Ok(()) => Failure::new(error.reason(), chain(&error)),
    };
    let products = pipeline::run(&work.node.steps, &place, recipe, wanted, work.aborted(), |_stage| {}).await;
    let products = products.map_err(failed)?;
    let mut summary = products.digest.clone();
    summary.traced = profiler.outcomes(&attached.profiler, &summary.categories)?;
    let idle = idle_processes(&products.summary);
    if profiler.records_events() {
        let verified = products.judge(
            &spec.require,
            attached.uses_cuda,
            profiler.expects(),
            &work.journal.signs.unwrap_or_default(),
        );
        verified.map_err(|mut failure| {
            if let Some(idle) = &idle {
                failure.message.push_str("; ");
                failure.message.push_str(idle);
            }
            Failed {
                failure,
                summary: Some(summary.clone()),
                kept: Vec::new(),
                storage: None,
            }
        })?;
    }
    let fleet = work.take_rows(&products).await;
    let mut files = Vec::new();
    let mut without_prelude = prelude::without(&work.spool);
    let mut processor_time = products.processor_time;
    if spec.outputs.contains(&Output::Timeline) {
        match prelude::make(work, &place).await {
            Ok(prelude) => {
                processor_time = pipeline::sum(processor_time, prelude.processor_time);
                if prelude.holds_something {
                    files.extend(source_file(PRELUDE, products.open(PRELUDE).map_err(failed)?));
                }
            }
            Err(failure) => {
                work.interrupted()?;
                processor_time = None;
                warn!(why = failure.message, "the capture has no prelude");
                without_prelude = Some(failure.message);
            }
        }
    }
    let mut summary_at = None;
    for (output, name) in products.artifacts() {
        if !spec.outputs.contains(&output) {
            continue;
        }
        if output == Output::Summary {
            summary_at = Some(files.len());
        } else {
            files.extend(source_file(name, products.open(name).map_err(failed)?));
        }
    }
    for (name, path) in collected.into_iter().filter(|_| spec.outputs.contains(&Output::Raw)) {
        let failed = Failure::because(CaptureReason::StoreFailed);
        files.extend(source_file(name, File::open(path).map_err(failed)?));
    }
    if spec.outputs.contains(&Output::Raw) && !spec.outputs.contains(&Output::Timeline) {
        // The timeline may be made later, and these are in no report.
        let failed = Failure::because(CaptureReason::StoreFailed);
        files.extend(source_file(
            SAMPLES,
            File::open(work.spool.join(SAMPLES)).map_err(failed)?,
        ));
    }
    Ok(Produced {
        files,
        tables: products.summary,
        summary_at,
        captured,
        summary,
        without_prelude,
        idle,
        processor_time,
        fleet,
    })
}

impl Produced {
    /// Writes the summary, with what the capture cost, to the capture's folder, where it is to be
    /// published.
    pub(super) fn tell_cost(
        &mut self,
        overhead: Option<&CaptureOverhead>,
        time: CaptureProcessorTime,
        spool: &Path,
    ) -> Result<(), Failure> {
        let Some(at) = self.summary_at.take() else {
            return Ok(());
        };
        self.tables.overhead = overhead.map(of_summary);
        self.tables.processor_time = Some(time).filter(|time| !time.is_unknown()).map(|time| ProcessorTime {
            profiler_ms: time.profiler_milliseconds,
            processing_ms: time.processing_milliseconds,
        });
        let text = self.tables.to_json().map_err(not_stored())?;
        let path = spool.join(SUMMARY);
        std::fs::write(&path, text).map_err(not_stored())?;
        let written = File::open(path).map_err(not_stored())?;
        if let Some(file) = source_file(SUMMARY, written) {
            self.files.insert(at, file);
        }
        Ok(())
    }
}

fn not_stored<E: std::error::Error>() -> impl FnOnce(E) -> Failure {
    Failure::because(CaptureReason::StoreFailed)
}

fn of_summary(told: &CaptureOverhead) -> Overhead {
    let signal = told.signal.as_ref();
    Overhead {
        verdict: told.verdict.as_str().to_owned(),
        reason: told.reason.as_str().to_owned(),
        message: told.message.clone(),
        signal: signal.map(|signal| format!("{} {}", signal.source.as_str(), signal.name)),
        slowdown_basis_points: told.slowdown_basis_points,
        low_basis_points: told.low,
        high_basis_points: told.high,
        stall_ms: told.stall_milliseconds,
    }
}

/// The children's folder in the capture's own, without what the children of an earlier agent left.
pub(super) async fn make_place(work: &Work<'_>) -> Result<Workplace, Failure> {
    let folder = work.spool.join(workplace::NAME);
    folder::remove(&folder, &work.node.steps).await;
    Workplace::make(folder, &work.node.steps.limits().users).map_err(Failure::because(CaptureReason::StoreFailed))
}

/// Stores what was made on the node.
pub(super) async fn publish(work: &Work<'_>, produced: &Produced) -> Result<Manifest, Failure> {
    publish_files(work, &produced.files, produced.captured.clone()).await
}

/// Stores files on the node, of a capture for which the categories of those names were recorded.
pub(super) async fn publish_files(
    work: &Work<'_>,
    files: &[SourceFile],
    captured: Vec<String>,
) -> Result<Manifest, Failure> {
    let publication = Publication {
        capture: capture_id(work.capture),
        session: work.capture.spec.session_ref.clone(),
        created: Timestamp::now(),
        captured,
    };
    let published = work.node.store.publish(publication, files).await;
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
