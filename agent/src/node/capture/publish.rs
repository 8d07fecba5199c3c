//! The stage in which the files are stored on the node, and replicated where they are to be.

use flopwatch_api::capture::Stage as StatusStage;
use flopwatch_api::reason::CaptureReason;
use flopwatch_artifacts::{Manifest, Publication, SourceFile, StoreError};
use flopwatch_pipeline::failure::{Failure, chain};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use tracing::warn;

use super::context::Context;
use super::outcome::{Failed, Published, Replication};
use super::produced::Produced;
use super::store;
use crate::adoption::{Collection, ProducedArtifacts};
use crate::node::capture_id::capture_id;

/// Publishes the files that were made, or those that an earlier agent stored.
pub(super) async fn step(
    cx: &mut Context<'_>,
    collection: Option<Collection>,
    made: Option<Box<ProducedArtifacts>>,
) -> Result<Published, Failed> {
    let manifest = if let Some(produced) = cx.unwritten.produced.take() {
        cx.enter(StatusStage::Publishing, "storing the artifacts");
        let Produced { files, captured, .. } = *produced;
        publish_files(cx, &files, captured).await?
    } else {
        cx.enter(StatusStage::Publishing, "telling of the artifacts that are stored");
        stored(cx).await.ok_or_else(gone)?
    };
    let over_budget = collection.and_then(|collection| collection.over_budget);
    conclude(cx, manifest, over_budget, made).await
}

fn gone() -> Failure {
    let message = "the artifacts that an earlier agent of the node stored are gone; create the session anew";
    Failure::new(CaptureReason::StoreFailed, message)
}

/// Copies what is in the node's store to where else it is to be, and says what it is.
async fn conclude(
    cx: &mut Context<'_>,
    manifest: Manifest,
    over_budget: Option<String>,
    made: Option<Box<ProducedArtifacts>>,
) -> Result<Published, Failed> {
    let (summary, mut message) = match made {
        Some(made) => (Some(made.summary), made.message),
        None => (
            None,
            "stored by an earlier agent of the node, whose record of it is lost".to_owned(),
        ),
    };
    let storage = match store::replicate(cx, &manifest).await {
        // Whoever ended it wants no replicas either.
        Err(_) if cx.interrupted().is_err() => Replication::None,
        Err(failure) => {
            return Err(Failed {
                failure,
                summary,
                kept: manifest.artifacts,
                storage: None,
            });
        }
        Ok(storage) => storage,
    };
    if let Err(ended) = cx.interrupted() {
        // The agent that comes next finds it in the store.
        if !cx.is_handed_over() {
            withdraw(cx).await;
        }
        return Err(ended.into());
    }
    if cx.journal.adoptions > 0 {
        message.push_str("; the node's agent restarted meanwhile");
    }
    if let Some(why) = over_budget {
        return Err(Failed {
            failure: Failure::new(CaptureReason::OverBudget, format!("{why}; {message} are published")),
            summary,
            kept: manifest.artifacts,
            storage: Some(storage),
        });
    }
    Ok(Published {
        artifacts: manifest.artifacts,
        summary,
        message,
        storage,
    })
}

/// Stores files on the node, of a capture for which the categories of those names were recorded.
pub(super) async fn publish_files(
    cx: &Context<'_>,
    files: &[SourceFile],
    captured: Vec<String>,
) -> Result<Manifest, Failure> {
    let publication = Publication {
        capture: capture_id(cx.capture),
        session: cx.capture.spec.session_ref.clone(),
        created: Timestamp::now(),
        captured,
    };
    let published = cx.node.store.publish(publication, files).await;
    published.map_err(|error| store_failure(&error))
}

/// What the store holds of the capture.
pub(super) async fn stored(cx: &Context<'_>) -> Option<Manifest> {
    let id = capture_id(cx.capture);
    match cx.node.store.get(&id.namespace, &id.name).await {
        Ok(manifest) => manifest.filter(|manifest| manifest.capture == id),
        Err(error) => {
            warn!(error = %chain(&error), "what the store holds of the capture cannot be told");
            None
        }
    }
}

/// Takes back what was just stored: nobody wants it any more.
pub(super) async fn withdraw(cx: &Context<'_>) {
    let namespace = cx.capture.namespace().unwrap_or_default();
    cx.node.storage.forget(&capture_id(cx.capture)).await;
    if let Err(error) = cx.node.store.delete(&namespace, &cx.capture.name_any()).await {
        warn!(error = %chain(&error), "artifacts of a discarded capture stay until it is deleted");
    }
}

/// What a failure of the store means for a capture.
fn store_failure(error: &StoreError) -> Failure {
    let reason = match error {
        StoreError::NoSpace { .. } => CaptureReason::DiskSpace,
        _ => CaptureReason::StoreFailed,
    };
    Failure::new(reason, chain(error))
}
