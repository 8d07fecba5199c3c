//! The sessions that a schedule made.

use std::collections::BTreeMap;
use std::sync::Arc;

use flopwatch_api::capture::Capture;
use flopwatch_api::reason::SessionCondition;
use flopwatch_api::schedule::{
    ALERT_STARTED_ANNOTATION, SLOT_ANNOTATION, TARGET_UID_ANNOTATION, TRIGGER_ANNOTATION, TRIGGER_NUMBER_ANNOTATION,
};
use flopwatch_api::session::ProfilingSession;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;

use crate::history::{Session, SessionState, Triggered};
use crate::slot::seconds_later;
use crate::window::Window;

/// The captures of each session, by its UID.
pub(super) type Captures<'a> = BTreeMap<&'a str, Vec<&'a Capture>>;

/// The captures that these very sessions control.
pub(super) fn captures_of<'a>(
    own: &BTreeMap<String, &'a ProfilingSession>,
    captures: &'a [Arc<Capture>],
) -> Captures<'a> {
    let mut of: Captures<'a> = BTreeMap::new();
    for capture in captures {
        let mut owners = capture.owner_references().iter();
        if let Some(owner) = owners.find(|owner| own.contains_key(&owner.uid)) {
            of.entry(&owner.uid).or_default().push(capture);
        }
    }
    of
}

/// What a schedule did, in the order of names.
pub(super) fn read(
    own: &BTreeMap<String, &ProfilingSession>,
    captures: &Captures<'_>,
    windows: &BTreeMap<&str, Window>,
) -> Vec<Session> {
    let read = |(uid, session): (&String, &&ProfilingSession)| {
        let captures = captures.get(uid.as_str()).map_or(&[][..], Vec::as_slice);
        let class = windows.get(uid.as_str()).map(|window| window.class.clone());
        one(session, captures).map(|found| Session { class, ..found })
    };
    let mut sessions: Vec<Session> = own.iter().filter_map(read).collect();
    sessions.sort_by(|one, other| one.name.cmp(&other.name));
    sessions
}

fn one(session: &ProfilingSession, captures: &[&Capture]) -> Option<Session> {
    let annotations = session.annotations();
    let Time(created) = session.creation_timestamp()?;
    let opened = captures.iter().filter_map(|capture| opened(capture)).min();
    let ended = session
        .status
        .as_ref()
        .and_then(|status| status.completion_time.as_ref());
    let state = match ended {
        None => SessionState::Active,
        Some(Time(ended)) => {
            let closed = captures
                .iter()
                .filter_map(|capture| closed(capture, *ended))
                .max()
                .unwrap_or(*ended);
            let verdict = session.condition(SessionCondition::Succeeded);
            if verdict.is_some_and(|verdict| verdict.status == "True") {
                SessionState::Succeeded { closed }
            } else {
                SessionState::Failed { closed }
            }
        }
    };
    Some(Session {
        name: session.name_any(),
        slot: annotations.get(SLOT_ANNOTATION).and_then(|slot| slot.parse().ok()),
        trigger: triggered(session, created),
        pod_uid: annotations.get(TARGET_UID_ANNOTATION)?.clone(),
        class: None,
        // One that ended without a window had none that would count against the pod's day.
        opened: opened.unwrap_or_else(|| ended.map_or(created, |Time(ended)| *ended)),
        state,
    })
}

/// The alert that made a session.
pub(super) fn triggered(session: &ProfilingSession, made: Timestamp) -> Option<Triggered> {
    let annotations = session.annotations();
    let (_, fingerprint) = annotations.get(TRIGGER_ANNOTATION)?.rsplit_once('/')?;
    Some(Triggered {
        fingerprint: fingerprint.to_owned(),
        started: annotations.get(ALERT_STARTED_ANNOTATION)?.parse().ok()?,
        number: annotations.get(TRIGGER_NUMBER_ANNOTATION)?.parse().ok()?,
        made,
    })
}

/// When the window of a capture opened.
pub(super) fn opened(capture: &Capture) -> Option<Timestamp> {
    let status = capture.status.as_ref()?;
    status.start_time.as_ref().map(|Time(at)| *at)
}

/// When the window of a capture closed, of a session that ended then.
fn closed(capture: &Capture, ended: Timestamp) -> Option<Timestamp> {
    let full = seconds_later(opened(capture)?, i64::from(capture.spec.duration_seconds));
    Some(full.min(ended))
}
