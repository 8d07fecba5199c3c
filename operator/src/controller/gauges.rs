//! Gauges that are computed when they are read.

use flopwatch_api::phase::Phase;
use flopwatch_api::reason::{SessionCondition, SessionReason};
use flopwatch_api::session::ProfilingSessionStatus;

use crate::controller::context::{Stores, Suspension};
use crate::metrics::Metrics;
use crate::preparation_failure::unprepared::{UnpreparedReason, unprepared};
use crate::preparation_failure::{PreparationFailureReason, preparation_failure};

/// States of sessions, for the gauge.
fn state(status: Option<&ProfilingSessionStatus>) -> &'static str {
    let Some(status) = status else { return "pending" };
    let is_true = |wanted| status.condition(wanted).is_some_and(|found| found.status == "True");
    let verdict = status.condition(SessionCondition::Succeeded);
    let reason = verdict.and_then(|condition| SessionReason::from_name(&condition.reason));
    match reason {
        Some(SessionReason::Succeeded) => "succeeded",
        Some(SessionReason::PartiallySucceeded) => "partially_succeeded",
        Some(SessionReason::Failed) => "failed",
        Some(SessionReason::Discarded) => "discarded",
        _ if is_true(SessionCondition::Capturing) => "capturing",
        _ if is_true(SessionCondition::TargetsFound) => "pending",
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
    for name in Phase::NAMES {
        metrics.captures.with_label_values(&[name]).set(0);
    }
    for capture in stores.captures.state() {
        metrics
            .captures
            .with_label_values(&[Phase::of(&capture).as_str()])
            .inc();
    }
    let held_up = stores.pods.state_filter(|pod| preparation_failure(pod).is_some());
    for reason in PreparationFailureReason::ALL {
        let pods = held_up
            .iter()
            .filter(|pod| preparation_failure(pod).is_some_and(|failure| failure.reason() == reason))
            .count();
        metrics
            .unprepared_pods
            .with_label_values(&[reason.label()])
            .set(i64::try_from(pods).unwrap_or(i64::MAX));
    }
    let missed = stores.pods.state_filter(|pod| unprepared(pod).is_some());
    for reason in UnpreparedReason::ALL {
        let pods = missed.iter().filter(|pod| unprepared(pod) == Some(reason)).count();
        metrics
            .pods_created_unprepared
            .with_label_values(&[reason.label()])
            .set(i64::try_from(pods).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::watcher::Event;
    use serde_json::json;

    use super::*;
    use crate::controller::rig;
    use crate::preparation_failure::tests::{exited, parsed, prepared, waiting};

    #[test]
    fn pods_that_the_preparation_holds_up_are_counted_by_reason() {
        let (pods, mut writer) = rig::filled(Vec::new());
        let stores = Stores { pods, ..rig::stores() };
        let metrics = Metrics::new().unwrap();
        let seen = || {
            refresh(&metrics, &stores, &Suspension::default());
            PreparationFailureReason::ALL
                .map(|reason| metrics.unprepared_pods.with_label_values(&[reason.label()]).get())
        };
        for (name, launcher, tools) in [
            ("a", waiting("ErrImagePull"), json!({})),
            ("b", exited(0), waiting("ImagePullBackOff")),
            ("c", exited(0), waiting("ErrImagePull")),
            ("d", exited(0), exited(1)),
            ("e", exited(0), exited(0)),
        ] {
            writer.apply_watcher_event(&Event::Apply(parsed(&prepared(name, &launcher, &tools))));
        }
        assert_eq!(seen(), [1, 2, 1]);
        for name in ["a", "b"] {
            writer.apply_watcher_event(&Event::Apply(parsed(&prepared(name, &exited(0), &exited(0)))));
        }
        assert_eq!(seen(), [0, 1, 1]);
    }
}
