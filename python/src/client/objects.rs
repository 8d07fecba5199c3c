//! Sessions as plain values, which the package makes objects of.

use flopwatch_api::SESSION_LABEL;
use flopwatch_api::artifact::Artifact;
use flopwatch_api::capture::Capture;
use flopwatch_api::phase::Phase;
use flopwatch_api::reason::SessionCondition;
use flopwatch_api::session::ProfilingSession;
use flopwatch_cli::sessions::{phase, target};
use kube::ResourceExt as _;
use serde::Serialize;

use super::failure::Failure;

#[derive(Serialize)]
struct Session {
    name: String,
    namespace: String,
    id: Option<String>,
    target: String,
    profiler: &'static str,
    phase: &'static str,
    reason: Option<String>,
    message: Option<String>,
    requested_by: Option<String>,
    created: Option<String>,
    captures: Vec<SessionCapture>,
}

#[derive(Serialize)]
struct SessionCapture {
    name: String,
    pod: String,
    container: String,
    node: String,
    phase: &'static str,
    reason: Option<String>,
    message: Option<String>,
    artifacts: Vec<SessionArtifact>,
}

#[derive(Serialize)]
struct SessionArtifact {
    name: String,
    output: &'static str,
    bytes: i64,
    sha256: String,
    sensitive: bool,
}

/// A session and those of these captures that are its own, as JSON.
pub(super) fn one(session: &ProfilingSession, captures: &[Capture]) -> Result<String, Failure> {
    written(&of(session, captures))
}

/// Sessions, each with those of these captures that are its own, as JSON.
pub(super) fn all(sessions: &[ProfilingSession], captures: &[Capture]) -> Result<String, Failure> {
    let sessions: Vec<Session> = sessions.iter().map(|session| of(session, captures)).collect();
    written(&sessions)
}

fn written(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::Work(error.to_string()))
}

fn of(session: &ProfilingSession, captures: &[Capture]) -> Session {
    let (name, namespace) = (session.name_any(), session.namespace());
    let verdict = session.condition(SessionCondition::Succeeded);
    let status = session.status.as_ref();
    let own = captures.iter().filter(|capture| {
        capture.namespace() == namespace && capture.labels().get(SESSION_LABEL).is_some_and(|of| *of == name)
    });
    Session {
        id: status.and_then(|status| status.id.clone()),
        target: target(session),
        profiler: session.spec.profiler.type_.as_str(),
        phase: phase(session).as_str(),
        reason: verdict.map(|verdict| verdict.reason.clone()),
        message: verdict.map(|verdict| verdict.message.clone()),
        requested_by: status.and_then(|status| status.requested_by.clone()),
        created: session.creation_timestamp().map(|created| created.0.to_string()),
        captures: own.map(capture).collect(),
        name,
        namespace: namespace.unwrap_or_default(),
    }
}

fn capture(capture: &Capture) -> SessionCapture {
    let phase = Phase::of(capture);
    let (reason, message) = match &phase {
        Phase::Failed { reason, message } => (Some(reason.clone()), Some(message.clone())),
        _ => (None, None),
    };
    let artifacts = capture.status.iter().flat_map(|status| &status.artifacts);
    SessionCapture {
        name: capture.name_any(),
        pod: capture.spec.pod_ref.name.clone(),
        container: capture.spec.container_name.clone(),
        node: capture.spec.node_name.clone(),
        phase: phase.as_str(),
        reason,
        message,
        artifacts: artifacts.map(artifact).collect(),
    }
}

fn artifact(artifact: &Artifact) -> SessionArtifact {
    SessionArtifact {
        name: artifact.name.clone(),
        output: artifact.type_.as_str(),
        bytes: artifact.bytes,
        sha256: artifact.sha256.clone(),
        sensitive: artifact.sensitive,
    }
}
