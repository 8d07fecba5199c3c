//! Gauges that are computed when they are read.

use flopwatch_api::reason::SessionReason;
use flopwatch_api::session::ProfilingSessionStatus;
use k8s_controller::conditions;

use crate::capture::standing::Standing;
use crate::controller::context::{Stores, Suspension};
use crate::metrics::Metrics;

/// States of sessions, for the gauge.
fn state(status: Option<&ProfilingSessionStatus>) -> &'static str {
    let Some(status) = status else { return "pending" };
    let find = |type_: &str| conditions::find(&status.conditions, type_);
    let reason = find("Succeeded").and_then(|condition| SessionReason::from_name(&condition.reason));
    match reason {
        Some(SessionReason::Succeeded) => "succeeded",
        Some(SessionReason::PartiallySucceeded) => "partially_succeeded",
        Some(SessionReason::Failed) => "failed",
        Some(SessionReason::Discarded) => "discarded",
        _ if find("Capturing").is_some_and(|condition| condition.status == "True") => "capturing",
        _ if find("TargetsFound").is_some_and(|condition| condition.status == "True") => "pending",
        _ => "waiting_for_targets",
    }
}

/// Brings the gauges up to date with what the watches hold.
pub(super) fn refresh(metrics: &Metrics, stores: &Stores, suspension: &Suspension) {
    const STATES: [&str; 7] = [
        "pending",
        "waiting_for_targets",
        "capturing",
        "succeeded",
        "partially_succeeded",
        "failed",
        "discarded",
    ];
    metrics.suspended.set(i64::from(suspension.get()));
    for name in STATES {
        metrics.sessions.with_label_values(&[name]).set(0);
    }
    for session in stores.sessions.state() {
        metrics
            .sessions
            .with_label_values(&[state(session.status.as_ref())])
            .inc();
    }
    for name in Standing::NAMES {
        metrics.captures.with_label_values(&[name]).set(0);
    }
    for capture in stores.captures.state() {
        metrics
            .captures
            .with_label_values(&[Standing::of(&capture).as_str()])
            .inc();
    }
}
