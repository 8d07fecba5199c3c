//! Where a capture goes on that an earlier agent process began.

use flopwatch_api::reason::CaptureReason;
use flopwatch_artifacts::Manifest;
use flopwatch_nvml::utc_ns;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::folder;
use tracing::info;

use super::context::{Context, blocking};
use super::finish::clean_container;
use super::outcome::Failed;
use super::{memory, open, publish, task};
use crate::adoption::{Adoption, Attached, Collection, Journal, Stage, World, adopt};
use crate::profilers::Observed;

/// Looks at what is there; gives the stage in which the capture goes on.
pub(super) async fn resume(cx: &mut Context<'_>, journal: Option<&Journal>) -> Result<Stage, Failed> {
    if let Some(Stage::Window(collection) | Stage::Fetch(collection)) = journal.map(|journal| &journal.stage) {
        memory::watch(cx, &collection.attached).await;
    }
    let manifest = publish::stored(cx).await;
    let world = observe(cx, journal, manifest.is_some()).await?;
    let adoption = adopt(&cx.capture.spec, cx.draft.stage(), journal, &world);
    info!(
        stage = cx.draft.stage().as_str(),
        ?adoption,
        "found a capture that an earlier agent began"
    );
    if let Adoption::Fail(failure) = adoption {
        return Err(fail_again(cx, failure, manifest).await);
    }
    cx.journal.adoptions = cx.journal.adoptions.saturating_add(1);
    enter(cx, adoption).await.map_err(Failed::from)
}

/// Does what comes before the stage in which the capture goes on.
async fn enter(cx: &mut Context<'_>, adoption: Adoption) -> Result<Stage, Failure> {
    let collection = cx.journal.stage.collection().cloned();
    if adoption == Adoption::Publish {
        let made = cx.journal.stage.made().cloned().map(Box::new);
        return Ok(Stage::Publish { collection, made });
    }
    let Some(collection) = collection.filter(|_| adoption != Adoption::Begin) else {
        folder::remove(&cx.spool, &cx.node.steps).await;
        return task::begin(cx);
    };
    if matches!(adoption, Adoption::Window { .. } | Adoption::Fetch) {
        cx.lease.acquire()?;
        open::leave_to(cx, &collection.attached).await?;
    }
    // How often it was adopted is known before anything is done that may take the agent down.
    cx.note().await?;
    folder::make(&cx.spool)?;
    Ok(match adoption {
        Adoption::Window { left } => {
            cx.unwritten.done = cx.length().saturating_sub(left);
            Stage::Window(collection)
        }
        Adoption::Fetch => Stage::Fetch(collection),
        _ => {
            leave(cx).await;
            Stage::Produce(collection)
        }
    })
}

/// Removes what an earlier agent left in the container, where it ended between the last copy and
/// its note of it.
async fn leave(cx: &Context<'_>) {
    if !cx.journal.stage.has_recorded() {
        cx.lease.begin_draining();
        clean_container(cx).await;
    }
}

/// Fails with what is on the node, where that was part of how it was to end; else nothing stays of
/// it.
async fn fail_again(cx: &Context<'_>, failure: Failure, stored: Option<Manifest>) -> Failed {
    match stored {
        Some(manifest) if cx.journal.failed.is_some() && cx.interrupted().is_ok() => Failed {
            failure,
            summary: cx.journal.stage.made().map(|made| made.summary.clone()),
            kept: manifest.artifacts,
            storage: None,
        },
        Some(_) if !cx.is_handed_over() => {
            publish::withdraw(cx).await;
            failure.into()
        }
        _ => failure.into(),
    }
}

/// What is found of the capture in its folder, and of its collection by its profiler.
async fn observe(cx: &Context<'_>, journal: Option<&Journal>, stored: bool) -> Result<World, Failure> {
    // The profiler is asked only where its answer matters.
    let collection = journal
        .filter(|journal| journal.failed.is_none() && !stored)
        .and_then(|journal| journal.stage.collection())
        .filter(|_| cx.interrupted().is_ok());
    let (raw, collection) = match collection {
        Some(Collection { attached, .. }) => observe_collection(cx, attached).await?,
        None => (false, Observed::Gone(None)),
    };
    Ok(World {
        now_utc_ns: utc_ns(),
        raw,
        stored,
        collection,
        interrupt: *cx.interrupts.borrow(),
    })
}

/// Whether the raw files are here, else where the collection stands.
async fn observe_collection(cx: &Context<'_>, attached: &Attached) -> Result<(bool, Observed), Failure> {
    let profiler = cx.profiler(attached)?;
    if profiler.raw_files(&cx.spool).is_some() {
        return Ok((true, Observed::Done));
    }
    let site = cx.is_pinned(attached).then(|| cx.site_of(attached));
    let state = attached.profiler.clone();
    let observed = blocking(CaptureReason::AttachFailed, move || {
        profiler.observe(site.as_ref(), &state)
    });
    Ok((false, observed.await?))
}
