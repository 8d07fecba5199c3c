//! Bodies of requests and answers.

mod live;
mod timeline;

use std::collections::BTreeMap;

use flopwatch_analysis::Definition;
use flopwatch_api::artifact::{Artifact, TIMELINE, TIMELINE_TYPE};
use flopwatch_api::capture::Capture;
use flopwatch_api::reason::{SessionCondition, SessionReason};
use flopwatch_api::session::{PodTemplate, ProfilingSession};
use flopwatch_api::{REQUEST_ANNOTATION_PREFIX, REQUESTED_BY_ANNOTATION};
use kube::ResourceExt as _;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::gateway::mode::Mode;
use crate::gateway::options::RunOptions;
use crate::gateway::sessions::id_of;

pub(crate) use live::Live;
pub(crate) use timeline::{TimelineEvents, TimelineQuery, TimelineState, TimelineStatus};

/// A request to profile.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({
    "mode": "nsys", "target": {"namespace": "team", "pod": "train"}, "options": {"duration_seconds": 10}, "solver": "cg"
}))]
pub(crate) struct RunRequest {
    /// What to profile with.
    pub(crate) mode: Mode,
    /// Which pods. Without pods, selector or template the namespace's own default counts: its
    /// ConfigMap `flopwatch-run`.
    #[serde(default)]
    pub(crate) target: RunTarget,
    /// How to profile them.
    #[serde(default)]
    pub(crate) options: RunOptions,
    /// Further fields of text, such as `solver`: kept with the session and given back. At most 16,
    /// of at most 1024 bytes; names of letters, digits, `-`, `_` and `.`.
    #[serde(flatten)]
    pub(crate) further: BTreeMap<String, String>,
}

/// Pods of one namespace: one by name, several by label, or one that is made of a template.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunTarget {
    /// Their namespace; default: the one that the cluster's administrator chose for requests that
    /// name none.
    #[schema(max_length = 63, pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")]
    pub(crate) namespace: Option<String>,
    /// Name of one pod.
    #[schema(max_length = 253)]
    pub(crate) pod: Option<String>,
    /// Labels of pods.
    pub(crate) selector: Option<BTreeMap<String, String>>,
    /// A pod to make, prepared, run once and deleted with the session: `metadata` (labels and
    /// annotations) and `spec` as in a Pod. The further fields of the request are among its
    /// annotations as `request.flopwatch.dev/NAME`, where its program can read them by the downward
    /// API. The caller must be allowed to create pods there.
    #[schema(value_type = Option<Object>)]
    pub(crate) template: Option<PodTemplate>,
    /// Name of a pod to copy: the copy is made prepared, run once, and deleted when its captures
    /// have ended. The caller must be allowed to create pods there.
    #[schema(max_length = 253)]
    pub(crate) replica_of: Option<String>,
    /// Most pods to take of those with the labels.
    #[schema(minimum = 1, maximum = 50)]
    pub(crate) max_pods: Option<i32>,
    /// Names of the containers; default: those that ask for a GPU.
    #[serde(default)]
    #[schema(max_items = 16)]
    pub(crate) containers: Vec<String>,
}

/// A session that was made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunAccepted {
    /// ID of the session, as paths have it.
    #[schema(pattern = "^[0-9a-f]{8}$")]
    pub(crate) session_id: String,
    /// Always `pending`.
    pub(crate) status: SessionState,
    /// Its namespace in the cluster.
    pub(crate) namespace: String,
    /// Name of the session in its namespace.
    pub(crate) name: String,
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SessionState {
    /// No capture is at work yet.
    Pending,
    /// At least one is.
    Running,
    /// It ended with results: every capture succeeded, or, with the reason `PartiallySucceeded`,
    /// some did.
    Completed,
    /// It ended without any; `reason` says how.
    Failed,
}

fn condition(session: &ProfilingSession, wanted: SessionCondition) -> Option<(&str, &str, &str)> {
    let found = session.condition(wanted)?;
    Some((&found.status, &found.reason, &found.message))
}

/// Where a session stands.
pub(crate) fn state_of(session: &ProfilingSession) -> SessionState {
    match condition(session, SessionCondition::Succeeded).map(|(status, ..)| status) {
        Some("True") => SessionState::Completed,
        Some("False") if is_partial(session) => SessionState::Completed,
        Some("False") => SessionState::Failed,
        _ => match condition(session, SessionCondition::Capturing).map(|(status, ..)| status) {
            Some("True") => SessionState::Running,
            _ => SessionState::Pending,
        },
    }
}

/// Whether some of its captures succeeded and some did not.
pub(crate) fn is_partial(session: &ProfilingSession) -> bool {
    let verdict = condition(session, SessionCondition::Succeeded);
    verdict.is_some_and(|(_, reason, _)| reason == SessionReason::PartiallySucceeded.as_str())
}

/// Why a session stands so: a reason of the closed set, and a sentence.
pub(crate) fn reason_of(session: &ProfilingSession) -> Option<(&str, &str)> {
    condition(session, SessionCondition::Succeeded).map(|(_, reason, message)| (reason, message))
}

/// A session.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionItem {
    /// ID of the session, as paths have it.
    pub(crate) session_id: String,
    /// Its namespace in the cluster.
    namespace: String,
    /// Name of the session in its namespace.
    name: String,
    /// What it profiles with.
    mode: String,
    /// Where it stands.
    status: SessionState,
    /// Why, of the closed set of reasons of a ProfilingSession.
    reason: Option<String>,
    /// Why, in a sentence.
    message: Option<String>,
    /// When it was made (RFC 3339).
    created: Option<String>,
    /// Who asked for it.
    requested_by: Option<String>,
    /// The further fields of the request.
    request: BTreeMap<String, String>,
}

impl SessionItem {
    pub(crate) fn of(session: &ProfilingSession) -> Self {
        let verdict = reason_of(session);
        let request = session.annotations().iter().filter_map(|(key, value)| {
            let name = key.strip_prefix(REQUEST_ANNOTATION_PREFIX)?;
            Some((name.to_owned(), value.clone()))
        });
        Self {
            session_id: id_of(session).unwrap_or_default().to_owned(),
            namespace: session.namespace().unwrap_or_default(),
            name: session.name_any(),
            mode: session.spec.profiler.type_.as_str().to_ascii_lowercase(),
            status: state_of(session),
            reason: verdict.map(|(reason, _)| reason.to_owned()),
            message: verdict.map(|(_, message)| message.to_owned()),
            created: session.creation_timestamp().map(|time| time.0.to_string()),
            requested_by: session.annotations().get(REQUESTED_BY_ANNOTATION).cloned(),
            request: request.collect(),
        }
    }
}

/// A page of sessions, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionList {
    pub(crate) sessions: Vec<SessionItem>,
    /// How many there are on all pages.
    pub(crate) total: usize,
    /// Give it as `after` for the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// Which sessions to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Sessions of this namespace alone; without it the right to list every namespace is needed.
    #[param(max_length = 63, pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", example = "team")]
    pub(crate) namespace: Option<String>,
    /// Sessions that stand so.
    pub(crate) status: Option<SessionState>,
    /// Sessions of this mode.
    pub(crate) mode: Option<Mode>,
    /// Most sessions on the page, 1 to 1000. Without it a list has all sessions, up to 1000; where
    /// there are more it has `next`.
    #[param(minimum = 1, maximum = 1000, default = 1000)]
    pub(crate) limit: Option<u16>,
    /// What the page before gave as `next`.
    #[param(pattern = "^[0-9]{1,18}-[0-9a-f]{8}$")]
    pub(crate) after: Option<String>,
}

/// Pods of which namespace.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TargetQuery {
    /// Namespace of the pods.
    #[param(max_length = 63, pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", example = "team")]
    pub(crate) namespace: String,
}

/// A session in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "its field is for the document")]
pub(crate) struct SessionPath {
    /// The session's `session_id`.
    #[param(pattern = "^[0-9a-f]{8}$", example = "0badcafe")]
    id: String,
}

/// What is understood of an artifact's request beside its path.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "its fields are for the document")]
pub(crate) struct TransferHeaders {
    /// A single range of bytes; another is answered with the whole.
    #[param(rename = "Range", example = "bytes=0-1023")]
    range: Option<String>,
    /// The entity tag of which a range is asked for.
    #[param(rename = "If-Range")]
    if_range: Option<String>,
    /// Entity tags that the caller has.
    #[param(rename = "If-None-Match")]
    if_none_match: Option<String>,
}

/// The bytes of a file.
#[derive(ToSchema)]
#[schema(value_type = String, content_media_type = "application/octet-stream")]
#[expect(dead_code, reason = "it is for the document")]
pub(crate) struct Content(Vec<u8>);

/// Which capture of a session.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct CaptureQuery {
    /// Name of the capture; needed where the session has several.
    #[param(max_length = 253)]
    pub(crate) capture: Option<String>,
}

/// A session with its captures.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionDetail {
    #[serde(flatten)]
    pub(crate) session: SessionItem,
    pub(crate) captures: Vec<CaptureItem>,
}

/// A capture.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CaptureItem {
    /// Its name, for `?capture=`.
    name: String,
    /// Pod that it profiles.
    pod: String,
    /// Container that it profiles.
    container: String,
    /// Where it stands.
    stage: Option<String>,
    /// How far it is, 0 to 100.
    percent: Option<i32>,
    /// What is being done, for people.
    message: Option<String>,
    /// What its window has recorded so far; absent unless that is open, and where its profiler does
    /// not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<Live>,
    /// What it published.
    artifacts: Vec<ArtifactItem>,
}

impl CaptureItem {
    pub(crate) fn of(capture: &Capture) -> Self {
        let status = capture.status.clone().unwrap_or_default();
        let progress = status.progress;
        Self {
            name: capture.name_any(),
            pod: capture.spec.pod_ref.name.clone(),
            container: capture.spec.container_name.clone(),
            stage: progress.as_ref().map(|progress| progress.stage.as_str().to_owned()),
            percent: progress.as_ref().map(|progress| progress.percent),
            live: progress
                .as_ref()
                .and_then(|progress| progress.live.as_ref())
                .map(Live::of),
            message: progress.map(|progress| progress.message),
            artifacts: status.artifacts.iter().map(ArtifactItem::of).collect(),
        }
    }
}

/// An artifact of a capture.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ArtifactItem {
    /// Name of the artifact, as paths have it.
    name: String,
    /// Which output it is: Timeline, Summary, Raw.
    r#type: &'static str,
    /// Size in bytes.
    bytes: i64,
    /// SHA-256 of the content, its entity tag.
    sha256: String,
    /// Media type.
    media_type: String,
    /// Whether it holds unredacted data of the node.
    sensitive: bool,
}

impl ArtifactItem {
    pub(crate) fn of(artifact: &Artifact) -> Self {
        Self {
            name: artifact.name.clone(),
            r#type: artifact.type_.as_str(),
            bytes: artifact.bytes,
            sha256: artifact.sha256.clone(),
            media_type: artifact.media_type.clone(),
            sensitive: artifact.sensitive,
        }
    }
}

/// What is published of a capture.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ArtifactList {
    pub(crate) session_id: String,
    pub(crate) capture: String,
    pub(crate) artifacts: Vec<ArtifactItem>,
    /// What is made of the timeline on demand.
    pub(crate) derived: Vec<DerivedItem>,
}

/// A derived artifact of a timeline.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct DerivedItem {
    /// Name of the artifact, as paths have it.
    name: &'static str,
    /// Media type.
    media_type: &'static str,
    /// What the artifact holds.
    about: &'static str,
}

impl DerivedItem {
    pub(crate) fn of(name: &'static str, definition: &Definition) -> Self {
        Self {
            name,
            media_type: definition.media_type(),
            about: definition.about,
        }
    }

    /// The timeline of a raw capture.
    pub(crate) const fn timeline() -> Self {
        Self {
            name: TIMELINE,
            media_type: TIMELINE_TYPE,
            about: "The timeline file (HDF5), made of the raw capture.",
        }
    }
}

/// A session that is being deleted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Deleted {
    pub(crate) session_id: String,
    /// Always `deleted`.
    pub(crate) status: &'static str,
}
