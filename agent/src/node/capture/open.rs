//! The stages in which a collection is prepared and started.

use flopwatch_api::reason::CaptureReason;
use flopwatch_nvml::utc_ns;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::folder;
use tracing::info;

use super::context::Context;
use super::window_cost::{self, ProfilerTime};
use crate::adoption::{Attached, Collection, Stage};
use crate::node::{kernels, spool};
use crate::profilers::State;

/// Measures the target before its collection, which the profiler then prepares.
pub(super) async fn prepare(cx: &mut Context<'_>, attached: Attached) -> Result<Stage, Failure> {
    spool::check_free(&cx.node.spool, cx.node.limits.floor)?;
    folder::make(&cx.spool)?;
    window_cost::count_before(cx, &attached).await?;
    cx.overhead.profiler_time = ProfilerTime {
        before: window_cost::profiler_time(cx, &attached).await?,
        after: None,
    };
    leave_to(cx, &attached).await?;
    cx.unwritten.attach_ns = Some(utc_ns());
    let unprepared = attached.profiler.clone();
    let (profiler, again) = match prepared(cx, &attached, unprepared.clone()).await {
        Ok(profiler) => (profiler, false),
        Err(failure) => (prepared_again(cx, &attached, &unprepared, failure).await?, true),
    };
    let attached = Attached { profiler, ..attached };
    Ok(Stage::Start {
        attached,
        unprepared,
        again,
    })
}

/// Ends what is recorded of the container's kernels all the time, until the capture has left it:
/// one profiler at a time can have CUPTI. One that looks back asks for nothing.
pub(super) async fn leave_to(cx: &Context<'_>, attached: &Attached) -> Result<(), Failure> {
    let profiler = cx.profiler(attached)?;
    let is_past = profiler.looks_back(&attached.profiler, utc_ns())?.is_some();
    if profiler.records_events() && !is_past {
        let lease = cx.lease.clone();
        let holds = move || lease.holds();
        let id = &attached.container_id;
        let unheld = kernels::unheld(cx.node, id, attached.process, attached.kernels.clone());
        cx.node.kernels.give_way(id, holds, unheld).await;
    }
    Ok(())
}

/// Starts the collection; prepares it once more where the profiler says that this may help.
pub(super) async fn start(
    cx: &Context<'_>,
    attached: Attached,
    unprepared: State,
    again: bool,
) -> Result<Stage, Failure> {
    // Some profilers take their time to prepare.
    cx.interrupted()?;
    let started = cx.ask(&attached, CaptureReason::AttachFailed, |profiler, site, state| {
        profiler.start(site, state)
    });
    match started.await {
        Ok(()) => {
            let opened = cx.profiler(&attached)?.opened(&cx.site_of(&attached));
            Ok(Stage::Window(Collection {
                attached,
                unprepared,
                opened_utc_ns: opened.unwrap_or_else(utc_ns),
                activity: None,
                over_budget: None,
            }))
        }
        Err(failure) if again => Err(failure),
        Err(failure) => {
            let profiler = prepared_again(cx, &attached, &unprepared, failure).await?;
            Ok(Stage::Start {
                attached: Attached { profiler, ..attached },
                unprepared,
                again: true,
            })
        }
    }
}

/// The state that the journal has to hold before the collection is started.
async fn prepared(cx: &Context<'_>, attached: &Attached, state: State) -> Result<State, Failure> {
    cx.ask(attached, CaptureReason::AttachFailed, |profiler, site, _| {
        profiler.prepare(site, state)
    })
    .await
}

/// The same after a start that failed, where another one may help; else `failure` stands.
async fn prepared_again(
    cx: &Context<'_>,
    attached: &Attached,
    unprepared: &State,
    failure: Failure,
) -> Result<State, Failure> {
    cx.interrupted()?;
    let (profiler, site) = (cx.profiler(attached)?, cx.site_of(attached));
    if !site.containers.is_alive(site.process) || !profiler.starts_again(&site) {
        return Err(failure);
    }
    info!(why = failure.message, "the collection is started once more");
    cx.ask(attached, CaptureReason::AttachFailed, |profiler, site, _| {
        profiler.discard(site);
        Ok(())
    })
    .await?;
    prepared(cx, attached, unprepared.clone()).await
}
