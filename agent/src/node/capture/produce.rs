//! The stage in which the files to publish are made of what was recorded.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flopwatch_api::artifact::{Output, PRELUDE, SAMPLES};
use flopwatch_api::capture::Stage as StatusStage;
use flopwatch_api::overhead::CaptureOverhead;
use flopwatch_api::reason::CaptureReason;
use flopwatch_artifacts::SourceFile;
use flopwatch_nvml::utc_ns;
use flopwatch_pipeline::artifact_file::source_file;
use flopwatch_pipeline::failure::{Failure, chain};
use flopwatch_pipeline::folder;
use flopwatch_pipeline::products::{self, Products, Wanted};
use flopwatch_pipeline::sandbox_dir::{self, SandboxDir};
use flopwatch_pipeline::status_summary::idle_processes;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use super::context::Context;
use super::outcome::Failed;
use super::prelude::{self, PendingPrelude};
use super::produced::{Produced, not_stored};
use super::{fleet_row, window_cost};
use crate::adoption::{Attached, Collection, ProducedArtifacts, Stage};
use crate::node::Node;

/// Makes a sandbox ready while the window is open: whoever waits for its picture does not wait for
/// that. Where it fails, it is tried again at the window's end.
pub(super) async fn make_ready(cx: &mut Context<'_>) {
    match make_sandbox(cx.node, &cx.spool).await {
        Ok(sandbox) => {
            cx.node.steps.prepare(&sandbox);
            cx.unwritten.sandbox = Some(sandbox);
        }
        Err(failure) => warn!(why = failure.message, "no sandbox is ready ahead of the window's end"),
    }
}

/// Makes and checks the files of what was recorded.
pub(super) async fn step(cx: &mut Context<'_>, collection: Collection) -> Result<Stage, Failed> {
    cx.interrupted()?;
    let (mut produced, told) = process(cx, &collection).await?;
    cx.journal.fleet = produced.fleet.take();
    cx.interrupted()?;
    window_cost::add_cost_to_summary(cx, &mut produced, told)?;
    // An agent that finds the files in the store has this to tell of them.
    let made = ProducedArtifacts {
        summary: produced.summary.clone(),
        message: message(cx, &collection.attached, &produced)?,
    };
    cx.unwritten.produced = Some(Box::new(produced));
    Ok(Stage::Publish {
        collection: Some(collection),
        made: Some(Box::new(made)),
    })
}

/// How the capture went, for people.
fn message(cx: &Context<'_>, attached: &Attached, produced: &Produced) -> Result<String, Failure> {
    let mut message = format!(
        "{} events in {:.1} s with {}",
        produced.summary.events,
        Duration::from_nanos(u64::try_from(produced.summary.window_nanoseconds).unwrap_or_default()).as_secs_f64(),
        attached.profiler.type_.as_str()
    );
    if !attached.note.is_empty() {
        message.push_str("; not deeper because ");
        message.push_str(&attached.note);
    }
    if let Some(shortened) = cx.profiler(attached)?.shortened(&attached.profiler)? {
        message.push_str("; ");
        message.push_str(&shortened.why);
    }
    if let Some(missed) = &cx.journal.missed {
        message.push_str("; of a second window, after ");
        message.push_str(&missed.reason);
    }
    if let Some(why) = &produced.without_prelude {
        message.push_str("; without what was before it: ");
        message.push_str(why);
    }
    if let Some(idle) = &produced.idle {
        message.push_str("; ");
        message.push_str(idle);
    }
    Ok(message)
}

/// Makes the files while the target's work is counted for some time after the window. The container
/// is left to others once that is over; what was recorded waits for its turn.
async fn process(cx: &mut Context<'_>, collection: &Collection) -> Result<(Produced, Option<CaptureOverhead>), Failed> {
    let counting = window_cost::counting(cx, &collection.attached).until_left(cx.lease.clone(), cx.aborted());
    let counting = AbortOnDropHandle::new(tokio::spawn(counting));
    let (lease, aborted) = (cx.lease.clone(), cx.aborted());
    let mut turn = lease.try_processing_turn();
    if turn.is_none() {
        cx.enter(
            StatusStage::Transforming,
            "recorded, and waiting for a turn to be processed on the node",
        );
        turn = tokio::select! {
            turn = lease.processing_turn() => turn,
            () = aborted => None,
        };
    }
    cx.interrupted()?;
    cx.enter(StatusStage::Transforming, "making the timeline");
    let produced = produce(cx, collection).await?;
    drop(turn);
    if !counting.is_finished() {
        cx.advance((9, 10), "counting the target's work after the window");
    }
    let told = counting.await.unwrap_or_else(|error| {
        warn!(%error, "what the window cost cannot be told");
        None
    });
    Ok((produced, told))
}

/// Imports and transforms; checks that what was asked for is there. Whoever ends the capture
/// meanwhile ends the child that is at work.
async fn produce(cx: &mut Context<'_>, collection: &Collection) -> Result<Produced, Failed> {
    let attached = &collection.attached;
    let profiler = cx.profiler(attached)?;
    let sandbox = match cx.unwritten.sandbox.take() {
        Some(sandbox) => sandbox,
        None => make_sandbox(cx.node, &cx.spool).await?,
    };
    let raw = profiler.raw_files(&cx.spool).ok_or_else(|| {
        let message = "the raw files are gone from the capture's folder";
        Failure::new(CaptureReason::CollectionFailed, message)
    })?;
    let recipe = profiler.steps(&attached.profiler, &raw, &sandbox, &cx.node.nsys_versions)?;
    // Most of it is made by now, but for that of a window which an earlier agent opened.
    let pending = cx.unwritten.prelude.take();
    let cx: &Context<'_> = cx;
    let pending = pending.unwrap_or_else(|| PendingPrelude::begin(cx));
    let spec = &cx.capture.spec;
    let wanted = Wanted {
        samples: Some(cx.spool.join(SAMPLES)),
        session_id: Some(spec.session_ref.id.clone()),
        device: spec.transform.device,
        fleet: fleet_row::row_for_child(cx),
    };
    let collected = recipe.collected.clone();
    let captured = recipe.captured.iter().map(|category| category.name().to_owned());
    let captured = captured.collect();
    // A child that was killed because the capture was ended is no reason of its own.
    let failed = |error: products::Error| match cx.interrupted() {
        Err(ended) => ended,
        Ok(()) => Failure::new(error.reason(), chain(&error)),
    };
    // Nobody looks at what was before a capture of which nothing could be made.
    let in_vain = pending.in_vain();
    let made = async {
        let made = products::run(&cx.node.steps, &sandbox, recipe, wanted, cx.aborted(), |_stage| {}).await;
        if made.is_err() {
            in_vain.cancel();
        }
        made
    };
    let (products, prelude) = tokio::join!(made, pending.finish());
    let products = products.map_err(failed)?;
    let mut summary = products.digest.clone();
    summary.traced = profiler.outcomes(&attached.profiler, &summary.categories)?;
    let idle = idle_processes(&products.summary);
    // Of a time that is past nobody knows whether CUDA was recorded.
    let is_past = profiler.looks_back(&attached.profiler, utc_ns())?.is_some();
    if profiler.records_events() {
        let verified = products.judge(
            &spec.require,
            attached.uses_cuda && !is_past,
            profiler.expects(),
            &collection.activity.unwrap_or_default(),
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
    let fleet = fleet_row::take_rows(cx, &products).await;
    let mut files = Vec::new();
    let mut without_prelude = prelude::without(&cx.spool);
    let mut processor_time = products.processor_time;
    match prelude {
        Ok(prelude) => {
            processor_time = products::sum(processor_time, prelude.processor_time);
            files.extend(prelude.content.and_then(|content| source_file(PRELUDE, content)));
        }
        Err(failure) => {
            cx.interrupted()?;
            processor_time = None;
            warn!(why = failure.message, "the capture has no prelude");
            without_prelude = Some(failure.message);
        }
    }
    let summary_at = append_wanted(&mut files, &products, &spec.outputs).map_err(failed)?;
    files.extend(recorded(cx, collected)?);
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

/// Appends what was made and is wanted, but for the summary, whose place among the files it gives.
fn append_wanted(
    files: &mut Vec<SourceFile>,
    products: &Products<'_>,
    outputs: &[Output],
) -> Result<Option<usize>, products::Error> {
    let mut summary_at = None;
    for (output, name) in products.artifacts() {
        if !outputs.contains(&output) {
            continue;
        }
        if output == Output::Summary {
            summary_at = Some(files.len());
        } else {
            files.extend(source_file(name, products.open(name)?));
        }
    }
    Ok(summary_at)
}

/// Files of the collection itself, where they are published.
fn recorded(cx: &Context<'_>, collected: Vec<(&'static str, PathBuf)>) -> Result<Vec<SourceFile>, Failure> {
    let outputs = &cx.capture.spec.outputs;
    let mut files = Vec::new();
    if !outputs.contains(&Output::Raw) {
        return Ok(files);
    }
    for (name, path) in collected {
        files.extend(source_file(name, File::open(path).map_err(not_stored())?));
    }
    if !outputs.contains(&Output::Timeline) {
        // The timeline may be made later, and these are in no report.
        let samples = File::open(cx.spool.join(SAMPLES)).map_err(not_stored())?;
        files.extend(source_file(SAMPLES, samples));
    }
    Ok(files)
}

/// The children's folder in `parent`, without what the children of an earlier agent left there.
pub(super) async fn make_sandbox(node: &Node, parent: &Path) -> Result<SandboxDir, Failure> {
    let folder = parent.join(sandbox_dir::NAME);
    folder::remove(&folder, &node.steps).await;
    SandboxDir::make(folder, &node.steps.limits().users).map_err(Failure::because(CaptureReason::StoreFailed))
}
