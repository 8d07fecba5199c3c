//! What the sessions of a schedule did to their pods.

use std::collections::BTreeMap;

use flopwatch_api::capture::Capture;
use flopwatch_api::overhead::{OverheadReason, OverheadVerdict};
use flopwatch_api::phase::Phase;
use flopwatch_api::reason::CaptureReason;
use flopwatch_api::schedule::{HARDWARE_ANNOTATION, IMAGE_DIGEST_ANNOTATION, TARGET_UID_ANNOTATION};
use flopwatch_api::session::ProfilingSession;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;

use crate::gather::sessions::{Captures, opened};
use crate::ledger::Slowdown;
use crate::pod::Class;
use crate::window::{Measured, Window};

/// Reasons of captures that speak against the class of their pod: another window would end the same
/// way. A lost node, a full disk or a container that another session has does not.
const AGAINST_CLASS: [CaptureReason; 3] = [
    CaptureReason::OverBudget,
    CaptureReason::RequiredEventsMissing,
    CaptureReason::SessionGone,
];

/// The window of each session that ended and had one, or whose failure speaks against its class; by
/// the session's UID. Containers of one pod are profiled at the same time: the one that lost most
/// speaks for the pod.
pub(super) fn of<'a>(
    own: &'a BTreeMap<String, &'a ProfilingSession>,
    captures: &Captures<'_>,
) -> BTreeMap<&'a str, Window> {
    let window = |(uid, session): (&'a String, &&'a ProfilingSession)| {
        let captures = captures.get(uid.as_str())?;
        one(session, captures).map(|window| (uid.as_str(), window))
    };
    own.iter().filter_map(window).collect()
}

fn one(session: &ProfilingSession, captures: &[&Capture]) -> Option<Window> {
    let annotations = session.annotations();
    let Time(ended) = session.status.as_ref()?.completion_time.as_ref()?;
    let failed = captures.iter().any(|capture| speaks_against_class(capture));
    let seconds = captures.iter().filter_map(|capture| seconds(capture, *ended)).max();
    if seconds.is_none() && !failed {
        return None;
    }
    let opened_captures = captures.iter().filter(|capture| opened(capture).is_some());
    Some(Window {
        class: Class {
            image_digest: annotations.get(IMAGE_DIGEST_ANNOTATION)?.clone(),
            hardware: annotations.get(HARDWARE_ANNOTATION)?.clone(),
        },
        pod_uid: annotations.get(TARGET_UID_ANNOTATION)?.clone(),
        ended: *ended,
        seconds: seconds.unwrap_or_default(),
        stalled_milliseconds: captures
            .iter()
            .map(|capture| stalled(capture))
            .max()
            .unwrap_or_default(),
        failed,
        measured: opened_captures
            .map(|capture| measured(capture))
            .max_by_key(rank)
            .unwrap_or(Measured::Blind),
    })
}

fn speaks_against_class(capture: &Capture) -> bool {
    match Phase::of(capture) {
        Phase::Failed { reason, .. } => AGAINST_CLASS.iter().any(|against| against.as_str() == reason),
        _ => false,
    }
}

/// How long the window was open, in whole seconds, at least one; None where it did not open.
fn seconds(capture: &Capture, ended: Timestamp) -> Option<i64> {
    let longest = ended.duration_since(opened(capture)?).as_secs();
    let status = capture.status.as_ref()?;
    let recorded = status
        .summary
        .as_ref()
        .map(|summary| summary.window_nanoseconds / 1_000_000_000 + 1);
    let asked = i64::from(capture.spec.duration_seconds);
    Some(recorded.unwrap_or(asked).min(asked).min(longest).max(1))
}

/// How long the target stood still, in milliseconds.
fn stalled(capture: &Capture) -> i64 {
    let overhead = capture.status.as_ref().and_then(|status| status.overhead.as_ref());
    let stalled = overhead.and_then(|overhead| overhead.stall_milliseconds);
    stalled.unwrap_or_default().max(0)
}

/// What a capture says of its target's speed. A load that changed by itself says nothing of the
/// window, whatever the numbers are.
fn measured(capture: &Capture) -> Measured {
    let overhead = capture.status.as_ref().and_then(|status| status.overhead.as_ref());
    let Some(overhead) = overhead.filter(|overhead| overhead.verdict != OverheadVerdict::Blind) else {
        return Measured::Blind;
    };
    match (overhead.slowdown_basis_points, overhead.low, overhead.high) {
        (Some(basis_points), Some(low), Some(high)) if overhead.reason != OverheadReason::LoadChanged => {
            Measured::Slowdown(Slowdown {
                basis_points,
                low,
                high,
            })
        }
        _ => Measured::Inconclusive(overhead.reason),
    }
}

fn rank(measured: &Measured) -> (u8, i32) {
    match measured {
        Measured::Blind => (0, 0),
        Measured::Inconclusive(_) => (1, 0),
        Measured::Slowdown(slowdown) => (2, slowdown.basis_points),
    }
}
