//! The progress of a session: notices of its state, made as the watches report changes, and the
//! stream of server-sent events of one session.
//!
//! A notice is the session's present state and not a history: a client that comes back is sent the
//! state of now, and nothing when that is the one it was sent last (`Last-Event-ID`).

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
use crate::gateway::messages::{Live, SessionState, is_partial, reason_of, state_of};
use crate::gateway::mode::Mode;
use crate::gateway::sessions::id_of;
use crate::gateway::slots::{Slot, Slots};

/// How long one stream lasts: a client that comes back has its rights reviewed again.
pub(super) const STREAM_LIFETIME: Duration = Duration::from_mins(5);
/// How long changes are collected before the state of then is sent.
pub(super) const COALESCE_INTERVAL: Duration = Duration::from_millis(100);

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
        /// What the window of that one has recorded so far; absent unless it is open, and where its
        /// profiler does not know.
        #[serde(skip_serializing_if = "Option::is_none")]
        live: Option<Live>,
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
fn started_notice(session: &ProfilingSession) -> Notice {
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
fn current_notice(session: &ProfilingSession, captures: &[Arc<Capture>]) -> Notice {
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
                live: behind.and_then(|progress| progress.live.as_ref()).map(Live::of),
            }
        }
    }
}

/// The end of a session that was deleted.
fn deleted_notice(id: &str) -> Notice {
    Notice::Error {
        session_id: id.to_owned(),
        error: "Deleted: the session is gone".to_owned(),
    }
}

/// The state of a session as its listeners are notified of it: made once with each change, and
/// shared by all listeners.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// The session's id.
    pub(crate) id: String,
    /// Namespace of the session.
    pub(crate) namespace: String,
    /// The notice `profiling_started`.
    pub(crate) started: Notice,
    /// The notice of the present state.
    pub(crate) now: Notice,
    /// Hash of `now`, in 16 hexadecimal digits: two states with the same digest are the same.
    pub(crate) digest: String,
    /// Whether the session was deleted.
    pub(crate) is_gone: bool,
}

impl Snapshot {
    /// The snapshot of a session with its captures.
    pub(crate) fn of(session: &ProfilingSession, captures: &[Arc<Capture>]) -> Self {
        let now = current_notice(session, captures);
        Self {
            id: id_of(session).unwrap_or_default().to_owned(),
            namespace: session.namespace().unwrap_or_default(),
            started: started_notice(session),
            digest: digest(&now),
            now,
            is_gone: false,
        }
    }

    /// The snapshot of a session that was deleted, after `before`.
    pub(crate) fn deleted(before: &Self) -> Self {
        Self {
            namespace: before.namespace.clone(),
            started: before.started.clone(),
            ..Self::lost(&before.id)
        }
    }

    /// The snapshot of a session that is gone and of which only the id is known.
    pub(crate) fn lost(id: &str) -> Self {
        let now = deleted_notice(id);
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

/// The parts that a client which listens to sessions is served with; clones share them.
#[derive(Clone)]
pub(crate) struct Subscriptions {
    pub(crate) access: SessionAccess,
    /// Slots for clients that listen, by their users' names.
    pub(crate) listeners: Slots,
}

/// One client that listens.
pub(crate) struct Listener {
    /// The present state of the session.
    pub(crate) snapshot: watch::Receiver<Arc<Snapshot>>,
    /// `Last-Event-ID` of a client that comes back: the digest of the state that it was sent last.
    pub(crate) last_event_id: Option<String>,
    /// The slot that the client holds while it listens.
    pub(crate) slot: Slot,
}

struct EventStreamState {
    snapshot: watch::Receiver<Arc<Snapshot>>,
    last_event_id: Option<String>,
    send_started: bool,
    until: Instant,
    ended: bool,
}

impl Listener {
    /// The events for the client, until the session has ended or [`STREAM_LIFETIME`] is over.
    pub(crate) fn listen(self) -> impl Stream<Item = Result<Event, Infallible>> + Send {
        let Self {
            snapshot,
            last_event_id,
            slot,
        } = self;
        let stream_state = EventStreamState {
            snapshot,
            send_started: last_event_id.is_none(),
            last_event_id,
            until: Instant::now() + STREAM_LIFETIME,
            ended: false,
        };
        futures::stream::unfold((stream_state, slot), async |(mut stream_state, slot)| {
            let event = stream_state.next().await?;
            Some((Ok(event), (stream_state, slot)))
        })
    }
}

impl EventStreamState {
    async fn next(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.send_started) {
            let snapshot = Arc::clone(&self.snapshot.borrow());
            return event(&snapshot.started, None);
        }
        while !self.ended {
            let snapshot = Arc::clone(&self.snapshot.borrow_and_update());
            self.ended = snapshot.now.is_last();
            if self.last_event_id.as_ref() != Some(&snapshot.digest) {
                self.last_event_id = Some(snapshot.digest.clone());
                return event(&snapshot.now, Some(&snapshot.digest));
            }
            if self.ended {
                break;
            }
            timeout_at(self.until, self.snapshot.changed()).await.ok()?.ok()?;
            sleep(COALESCE_INTERVAL).await;
        }
        None
    }
}

/// The first 16 hexadecimal digits of the SHA-256 of a notice.
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
                started_notice(&session("Unknown")),
                "profiling_started",
                json!({"session_id": "0badcafe", "solver": null, "mesh": "wing.msh", "mode": "auto"}),
            ),
            (
                current_notice(&session("True"), &[]),
                "profiling_complete",
                json!({"session_id": "0badcafe", "status": "completed"}),
            ),
            (
                current_notice(&session("False"), &[]),
                "profiling_error",
                json!({"session_id": "0badcafe", "error": "Why: because"}),
            ),
            (
                current_notice(&session("Unknown"), &[]),
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
        let notice = current_notice(&serde_json::from_value(part).unwrap(), &[]);
        assert_eq!(notice.name(), "profiling_complete");
        assert_eq!(
            serde_json::to_value(&notice).unwrap(),
            json!({"session_id": "0badcafe", "status": "completed", "succeeded": 2, "failed": 1, "message": "because"})
        );
    }

    #[test]
    fn what_an_open_window_records_is_told_with_its_progress_until_it_is_over() {
        let collecting = |kernels: i64| -> Arc<Capture> {
            let mut capture = serde_json::to_value(&*capture("Collecting", 30)).unwrap();
            capture["status"]["progress"]["live"] = json!({
                "categories": [{"category": "cuda_kernel", "events": kernels}],
                "latestKernels": [{"name": "gemm", "totalNanoseconds": 700, "calls": 2}]
            });
            Arc::new(serde_json::from_value(capture).unwrap())
        };
        let session = session("Unknown");
        let [first, second] = [7, 8].map(|kernels| Snapshot::of(&session, &[collecting(kernels)]));
        let told = serde_json::to_value(&first.now).unwrap();
        assert_eq!(
            told["live"],
            json!({"events": {"cuda_kernel": 7}, "latest_kernels": [{"name": "gemm", "calls": 2, "total_ns": 700}]})
        );
        assert_ne!(first.digest, second.digest, "figures that grew are news");
        let over = current_notice(&session, &[capture("Fetching", 70)]);
        assert_eq!(serde_json::to_value(&over).unwrap().get("live"), None);
    }

    #[test]
    fn a_session_is_as_far_as_the_capture_that_is_behind() {
        let captures = [
            capture("Transforming", 80),
            capture("Collecting", 30),
            capture("Done", 100),
        ];
        match current_notice(&session("Unknown"), &captures) {
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
