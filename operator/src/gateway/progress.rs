//! Where a session stands, told as it changes: notices of sessions, and the server-sent events of one, fed from the watches.
//!
//! What is told is the session's present state and not a history, so a client that comes back hears what is so now, and nothing
//! when that is what it heard last (`Last-Event-ID`).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::Event;
use flopwatch_api::REQUEST_ANNOTATION_PREFIX;
use flopwatch_api::capture::{Capture, Stage};
use flopwatch_api::session::ProfilingSession;
use futures::Stream;
use kube::ResourceExt as _;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use utoipa::ToSchema;

use crate::gateway::access::SessionAccess;
use crate::gateway::messages::{SessionState, is_partial, reason_of, state_of};
use crate::gateway::mode::Mode;
use crate::gateway::sessions::id_of;
use crate::gateway::slots::{Slot, Slots};

/// How long one stream lasts: a client that comes back has its rights looked at again.
pub(super) const LIFE: Duration = Duration::from_mins(5);
/// Changes that come together are told together.
pub(super) const COALESCE: Duration = Duration::from_millis(100);

/// What is told of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Notice {
    /// `profiling_started`: what was asked for.
    Started {
        session_id: String,
        solver: Option<String>,
        mesh: Option<String>,
        mode: Option<Mode>,
    },
    /// `profiling_progress`: where it stands.
    Progress {
        session_id: String,
        status: SessionState,
        /// Stage of the capture that is behind the others.
        stage: String,
        /// How far that one is, 0 to 100.
        percent: i32,
        message: String,
    },
    /// `profiling_complete`: every capture succeeded, or some did and `partial` says how many.
    Complete {
        session_id: String,
        status: SessionState,
        #[serde(flatten)]
        partial: Option<Partial>,
    },
    /// `profiling_error`: it ended without results.
    Error { session_id: String, error: String },
}

/// How a session ended of whose captures some failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Partial {
    /// Captures that succeeded.
    succeeded: i32,
    /// Captures that ended without success.
    failed: i32,
    /// What became of them, in a sentence.
    message: String,
}

/// An event of a stream, as it is on the wire.
#[derive(ToSchema)]
#[expect(dead_code, reason = "its fields are for the document")]
pub(crate) struct ServerSentEvent {
    event: ServerSentEventName,
    /// For `Last-Event-ID`; `profiling_started` has none.
    id: Option<String>,
    /// A `Notice`, as JSON.
    #[schema(content_media_type = "application/json")]
    data: String,
}

/// What an event tells.
#[derive(ToSchema)]
#[expect(dead_code, reason = "its variants are for the document")]
pub(crate) enum ServerSentEventName {
    #[schema(rename = "profiling_started")]
    Started,
    #[schema(rename = "profiling_progress")]
    Progress,
    #[schema(rename = "profiling_complete")]
    Complete,
    #[schema(rename = "profiling_error")]
    Error,
}

impl Notice {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Started { .. } => "profiling_started",
            Self::Progress { .. } => "profiling_progress",
            Self::Complete { .. } => "profiling_complete",
            Self::Error { .. } => "profiling_error",
        }
    }

    pub(super) const fn is_last(&self) -> bool {
        matches!(self, Self::Complete { .. } | Self::Error { .. })
    }
}

/// What was asked for.
fn started(session: &ProfilingSession) -> Notice {
    let field = |name: &str| {
        let annotations = session.annotations();
        annotations.get(&format!("{REQUEST_ANNOTATION_PREFIX}{name}")).cloned()
    };
    Notice::Started {
        session_id: id_of(session).unwrap_or_default().to_owned(),
        solver: field("solver"),
        mesh: field("mesh").or_else(|| field("mesh_file")),
        mode: Some(Mode::of(session)),
    }
}

/// What is so now.
fn present(session: &ProfilingSession, captures: &[Arc<Capture>]) -> Notice {
    let session_id = id_of(session).unwrap_or_default().to_owned();
    let status = state_of(session);
    let (reason, reply) = reason_of(session).unwrap_or_default();
    match status {
        SessionState::Completed => {
            let counts = session.status.as_ref().map(|status| status.counts);
            let partial = is_partial(session).then(|| Partial {
                succeeded: counts.as_ref().map_or(0, |counts| counts.succeeded),
                failed: counts.as_ref().map_or(0, |counts| counts.failed),
                message: reply.to_owned(),
            });
            Notice::Complete {
                session_id,
                status,
                partial,
            }
        }
        SessionState::Failed => Notice::Error {
            session_id,
            error: format!("{reason}: {reply}"),
        },
        SessionState::Pending | SessionState::Running => {
            let progress = captures
                .iter()
                .filter_map(|capture| capture.status.as_ref()?.progress.as_ref());
            let behind = progress.min_by_key(|progress| (progress.stage, progress.percent));
            Notice::Progress {
                session_id,
                status,
                stage: behind
                    .map_or(Stage::Queued, |progress| progress.stage)
                    .as_str()
                    .to_owned(),
                percent: behind.map_or(0, |progress| progress.percent),
                message: behind.map_or(reply, |progress| progress.message.as_str()).to_owned(),
            }
        }
    }
}

/// The end of a session that was deleted.
fn gone(id: &str) -> Notice {
    Notice::Error {
        session_id: id.to_owned(),
        error: "Deleted: the session is gone".to_owned(),
    }
}

/// What is to be told of a session: made with each change, once, and shared by all who listen.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// The session's id.
    pub(crate) id: String,
    /// Namespace of the session.
    pub(crate) namespace: String,
    /// What was asked for.
    pub(crate) started: Notice,
    /// Where it stands.
    pub(crate) now: Notice,
    /// Tells states apart.
    pub(crate) digest: String,
    /// Whether it was deleted.
    pub(crate) is_gone: bool,
}

impl Snapshot {
    /// As session and captures say.
    pub(crate) fn of(session: &ProfilingSession, captures: &[Arc<Capture>]) -> Self {
        let now = present(session, captures);
        Self {
            id: id_of(session).unwrap_or_default().to_owned(),
            namespace: session.namespace().unwrap_or_default(),
            started: started(session),
            digest: digest(&now),
            now,
            is_gone: false,
        }
    }

    /// Once it was deleted.
    pub(crate) fn gone(before: &Self) -> Self {
        Self {
            namespace: before.namespace.clone(),
            started: before.started.clone(),
            ..Self::lost(&before.id)
        }
    }

    /// Of a session that was there and is no more, whatever it was.
    pub(crate) fn lost(id: &str) -> Self {
        let now = gone(id);
        Self {
            id: id.to_owned(),
            namespace: String::new(),
            // Whoever hears of the end heard of the beginning.
            started: now.clone(),
            digest: digest(&now),
            now,
            is_gone: true,
        }
    }
}

/// What clients that listen to sessions are served with; clones share it.
#[derive(Clone)]
pub(crate) struct Subscriptions {
    pub(crate) access: SessionAccess,
    /// Places for clients that listen, by their users' names.
    pub(crate) listeners: Slots,
}

/// One client that listens.
pub(crate) struct Listener {
    /// Where its session stands.
    pub(crate) snapshot: watch::Receiver<Arc<Snapshot>>,
    /// What it heard last, if it was here before.
    pub(crate) heard: Option<String>,
    /// Its place among those who may listen at once.
    pub(crate) slot: Slot,
}

struct Listening {
    snapshot: watch::Receiver<Arc<Snapshot>>,
    heard: Option<String>,
    greets: bool,
    until: Instant,
    over: bool,
}

impl Listener {
    /// What it is told, until the session ended or its time is over.
    pub(crate) fn listen(self) -> impl Stream<Item = Result<Event, Infallible>> + Send {
        let Self { snapshot, heard, slot } = self;
        let listening = Listening {
            snapshot,
            greets: heard.is_none(),
            heard,
            until: Instant::now() + LIFE,
            over: false,
        };
        futures::stream::unfold((listening, slot), async |(mut listening, slot)| {
            let event = listening.next().await?;
            Some((Ok(event), (listening, slot)))
        })
    }
}

impl Listening {
    async fn next(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.greets) {
            let snapshot = Arc::clone(&self.snapshot.borrow());
            return event(&snapshot.started, None);
        }
        while !self.over {
            let snapshot = Arc::clone(&self.snapshot.borrow_and_update());
            self.over = snapshot.now.is_last();
            if self.heard.as_ref() != Some(&snapshot.digest) {
                self.heard = Some(snapshot.digest.clone());
                return event(&snapshot.now, Some(&snapshot.digest));
            }
            if self.over {
                break;
            }
            timeout_at(self.until, self.snapshot.changed()).await.ok()?.ok()?;
            sleep(COALESCE).await;
        }
        None
    }
}

/// Tells states apart.
fn digest(notice: &Notice) -> String {
    // A notice is JSON: there is none that is not.
    let text = serde_json::to_vec(notice).unwrap_or_default();
    let mut digits = hex::encode(Sha256::digest(&text));
    digits.truncate(16);
    digits
}

fn event(notice: &Notice, id: Option<&str>) -> Option<Event> {
    let event = Event::default().event(notice.name());
    let event = id.map_or(event.clone(), |id| event.id(id));
    event.json_data(notice).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn session(succeeded: &str) -> ProfilingSession {
        let session = json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession",
            "metadata": {"name": "s", "annotations": {"request.flopwatch.dev/mesh_file": "wing.msh"}},
            "spec": {"target": {"podName": "p"}},
            "status": {"id": "0badcafe", "conditions": [{
                "type": "Succeeded", "status": succeeded, "reason": "Why", "message": "because",
                "lastTransitionTime": "2026-01-01T00:00:00Z"
            }]}
        });
        serde_json::from_value(session).unwrap()
    }

    fn capture(stage: &str, percent: i32) -> Arc<Capture> {
        let capture = json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "Capture", "metadata": {"name": "c"},
            "spec": {
                "sessionRef": {"name": "s", "id": "0badcafe"}, "nodeName": "n", "podRef": {"name": "p", "uid": "u"},
                "containerName": "c", "profiler": {"type": "Nsys"}, "durationSeconds": 1, "startDeadlineSeconds": 1,
                "outputs": ["Timeline"]
            },
            "status": {"progress": {"stage": stage, "percent": percent, "message": stage}}
        });
        Arc::new(serde_json::from_value(capture).unwrap())
    }

    #[test]
    fn names_and_keys_are_those_of_the_design() {
        let cases = [
            (
                started(&session("Unknown")),
                "profiling_started",
                json!({"session_id": "0badcafe", "solver": null, "mesh": "wing.msh", "mode": "auto"}),
            ),
            (
                present(&session("True"), &[]),
                "profiling_complete",
                json!({"session_id": "0badcafe", "status": "completed"}),
            ),
            (
                present(&session("False"), &[]),
                "profiling_error",
                json!({"session_id": "0badcafe", "error": "Why: because"}),
            ),
            (
                present(&session("Unknown"), &[]),
                "profiling_progress",
                json!({"session_id": "0badcafe", "status": "pending", "stage": "Queued", "percent": 0, "message": "because"}),
            ),
        ];
        for (notice, name, expected) in cases {
            assert_eq!(notice.name(), name);
            assert_eq!(serde_json::to_value(&notice).unwrap(), expected);
        }
    }

    #[test]
    fn a_session_that_succeeded_in_part_is_complete_with_its_counts() {
        let mut part = serde_json::to_value(session("False")).unwrap();
        part["status"]["conditions"][0]["reason"] = json!("PartiallySucceeded");
        part["status"]["counts"] = json!({"captures": 3, "active": 0, "succeeded": 2, "failed": 1});
        let notice = present(&serde_json::from_value(part).unwrap(), &[]);
        assert_eq!(notice.name(), "profiling_complete");
        assert_eq!(
            serde_json::to_value(&notice).unwrap(),
            json!({"session_id": "0badcafe", "status": "completed", "succeeded": 2, "failed": 1, "message": "because"})
        );
    }

    #[test]
    fn a_session_is_as_far_as_the_capture_that_is_behind() {
        let captures = [
            capture("Transforming", 80),
            capture("Collecting", 30),
            capture("Done", 100),
        ];
        match present(&session("Unknown"), &captures) {
            Notice::Progress {
                stage,
                percent,
                message,
                ..
            } => assert_eq!(
                (stage.as_str(), percent, message.as_str()),
                ("Collecting", 30, "Collecting")
            ),
            other => panic!("{other:?}"),
        }
    }
}
