//! Delivery of artifacts and results to callers: from the agent of the capture's node, or from the
//! object store where that agent cannot give them.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::CONTENT_DISPOSITION;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use flopwatch_analysis::catalogue;
use flopwatch_api::artifact::{Artifact, Output, TIMELINE, artifacts_path, timeline_source};
use flopwatch_api::capture::Capture;
use flopwatch_api::phase::Phase;
use flopwatch_api::session::ProfilingSession;
use flopwatch_http::Verb;
use kube::ResourceExt as _;
use url::form_urlencoded::Serializer;

use crate::gateway::access::SessionAccess;
use crate::gateway::agents::{AgentError, Agents};
use crate::gateway::directory::AgentAddress;
use crate::gateway::problem::Problem;
use crate::gateway::store::{ObjectStore, stored_sha256};
use crate::gateway::token::Token;
use crate::gateway::transfers::Transfers;

/// An artifact that the caller may read, with its capture and session: their right to get the
/// session was reviewed, and their right to raw captures where the artifact is as sensitive.
#[derive(Clone, Debug)]
pub(crate) struct AuthorizedArtifact {
    pub(crate) session: Arc<ProfilingSession>,
    pub(crate) capture: Arc<Capture>,
    /// The artifact that is read; the raw capture where its timeline is to be made first.
    pub(crate) artifact: Artifact,
}

impl AuthorizedArtifact {
    pub(crate) fn namespace(&self) -> String {
        self.session.namespace().unwrap_or_default()
    }

    pub(crate) fn uid(&self) -> String {
        self.capture.uid().unwrap_or_default()
    }

    fn has_copy(&self) -> bool {
        let status = self.capture.status.as_ref();
        status.is_some_and(|status| status.store_url.is_some())
    }

    /// SHA-256 of the manifest of the capture's copy in the object store, by which an agent of
    /// another node recognises that copy; None where there is no copy.
    pub(crate) fn stored(&self) -> Option<&str> {
        stored_sha256(&self.capture)
    }
}

/// The URL path and query of a result in the agents' API.
pub(crate) struct ResultPath {
    /// Path at the agent of the first capture's node.
    pub(crate) at_home: String,
    /// Path at an agent of any other node.
    pub(crate) elsewhere: String,
}

/// Reads artifacts and results for callers who may read them; clones share its parts.
#[derive(Clone)]
pub(crate) struct Delivery {
    pub(crate) access: SessionAccess,
    pub(crate) agents: Arc<Agents>,
    /// The object store with copies of artifacts, where there is one.
    pub(crate) store: Option<Arc<ObjectStore>>,
    /// Timelines that are being transferred to an agent.
    pub(crate) transfers: Transfers,
}

/// The artifact of that name that the capture published.
pub(crate) fn published<'a>(capture: &'a Capture, name: &str) -> Option<&'a Artifact> {
    let artifacts = &capture.status.as_ref()?.artifacts;
    artifacts.iter().find(|artifact| artifact.name == name)
}

/// The artifact that the timeline of a capture is read from: the published timeline, or the raw
/// capture that one can be made of.
pub(crate) fn source_of_timeline(capture: &Capture) -> Option<&Artifact> {
    timeline_source(&capture.status.as_ref()?.artifacts)
}

impl Delivery {
    /// The artifact `name` of a capture whose session the caller may read, or the raw capture that
    /// its timeline is made of. The problem is `RawForbidden` where the artifact needs the right to
    /// raw captures and the caller lacks it.
    pub(crate) async fn authorize(
        &self,
        token: &Token,
        (session, capture): (Arc<ProfilingSession>, Arc<Capture>),
        name: &str,
    ) -> Result<AuthorizedArtifact, Problem> {
        let source = || source_of_timeline(&capture).filter(|_| name == TIMELINE);
        let artifact = published(&capture, name).or_else(source);
        let artifact = artifact.ok_or_else(|| no_such_artifact(&capture))?.clone();
        if artifact.type_ == Output::Raw || artifact.sensitive {
            let namespace = session.namespace().unwrap_or_default();
            let allowed = self
                .access
                .allow(token, Verb::Get, &namespace, Some(&session.name_any()), true)
                .await;
            allowed.map_err(|problem| match problem {
                Problem::Forbidden => Problem::RawForbidden,
                other => other,
            })?;
        }
        Ok(AuthorizedArtifact {
            session,
            capture,
            artifact,
        })
    }

    /// Answers with an artifact, or with a file that is made of the timeline, under a file name.
    pub(crate) async fn stream(
        &self,
        token: &Token,
        (session, capture): (Arc<ProfilingSession>, Arc<Capture>),
        name: &str,
        method: Method,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Problem> {
        let is_known = name == TIMELINE || catalogue::artifact(name).is_some();
        let is_made = is_known && published(&capture, name).is_none();
        let source = if is_made { TIMELINE } else { name };
        let authorized = self.authorize(token, (session, capture), source).await?;
        let path = format!(
            "{}/{name}",
            artifacts_path(&authorized.namespace(), &authorized.capture.name_any())
        );
        let answer = if is_made {
            let copy = Serializer::new(String::new())
                .append_pair("uid", &authorized.uid())
                .extend_pairs(authorized.stored().map(|stored| ("stored", stored)))
                .finish();
            let paths = ResultPath {
                elsewhere: format!("{path}?{copy}"),
                at_home: path,
            };
            self.result(&[authorized], &paths, &method, headers).await?
        } else {
            self.read(&authorized, &path, &method, headers).await?
        };
        Ok(with_file_name(answer, name))
    }

    /// Answers with a published artifact, from the agent of its node or from the object store.
    pub(crate) async fn read(
        &self,
        authorized: &AuthorizedArtifact,
        path: &str,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Problem> {
        let agent = agent_of(&authorized.capture);
        match (&agent, self.store.as_ref().filter(|_| authorized.has_copy())) {
            (None, None) => Err(no_source()),
            (Some(agent), None) => Ok(self.agents.fetch(agent, method.clone(), path, headers).await?),
            (agent, Some(store)) => {
                if let Some(answer) = self.ask_agent(agent.as_ref(), method, path, headers).await {
                    return Ok(answer?);
                }
                let permit = self.agents.permit().await?;
                store
                    .fetch(&authorized.capture, &authorized.artifact, method, headers, permit)
                    .await
            }
        }
    }

    /// Answers with the result of an analysis, from the agent of the first capture's node, or from
    /// another agent that can read the capture's copy in the object store.
    pub(crate) async fn result(
        &self,
        inputs: &[AuthorizedArtifact],
        paths: &ResultPath,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Problem> {
        let first = inputs.first().ok_or_else(no_source)?;
        let agent = agent_of(&first.capture);
        let has_copy = self.store.is_some() && first.has_copy();
        match &agent {
            None if !has_copy => return Err(no_source()),
            Some(agent) if !has_copy || !self.agents.is_unreachable(agent.address) => {
                match self
                    .ask_for_result(agent, inputs, &paths.at_home, method, headers)
                    .await
                {
                    Err(error) if has_copy && error.is_absence() => {
                        tracing::info!(%error, "a result is made of the copy in the object store instead");
                    }
                    other => return Ok(other?),
                }
            }
            _ => {}
        }
        if let Some(store) = &self.store {
            store.manifest_of(&first.capture)?;
        }
        let mut last = AgentError::Nobody("there is no other".to_owned());
        for other in self.agents.other_agents(&first.uid(), agent.as_ref()).await? {
            match self
                .ask_for_result(&other, inputs, &paths.elsewhere, method, headers)
                .await
            {
                Err(error @ (AgentError::Unreachable { .. } | AgentError::Slow(_))) => {
                    last = AgentError::Nobody(error.to_string());
                }
                other => return Ok(other?),
            }
        }
        Err(last.into())
    }

    /// The agent's answer; None where the agent lacks the artifact and the object store may have
    /// it.
    async fn ask_agent(
        &self,
        agent: Option<&AgentAddress>,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Option<Result<Response<Body>, AgentError>> {
        let agent = agent.filter(|agent| !self.agents.is_unreachable(agent.address))?;
        match self.agents.fetch(agent, method.clone(), path, headers).await {
            Err(error) if error.is_absence() => {
                tracing::info!(%error, "an artifact comes from the object store instead");
                None
            }
            other => Some(other),
        }
    }
}

/// Sets the file name under which a browser saves the answer.
pub(crate) fn with_file_name(mut answer: Response<Body>, name: &str) -> Response<Body> {
    if answer.status() != StatusCode::NOT_MODIFIED
        && let Ok(value) = HeaderValue::try_from(format!("attachment; filename=\"{name}\""))
    {
        answer.headers_mut().insert(CONTENT_DISPOSITION, value);
    }
    answer
}

fn no_source() -> Problem {
    let words = "The capture does not say which agent holds it, and there is no copy in an object store.";
    Problem::NotReady(words.to_owned())
}

fn no_such_artifact(capture: &Capture) -> Problem {
    if Phase::of(capture).has_ended() {
        Problem::NotFound("artifact of that name in this capture".to_owned())
    } else {
        Problem::NotReady("The capture has not published anything yet.".to_owned())
    }
}

/// The agent that serves a capture's artifacts: on the node that the controller chose, at the
/// address in the capture's status, which the agent wrote. Nothing else of that URL is used: the
/// path is fixed, the agent must hold that node's certificate, and the token is valid at that node
/// alone.
pub(crate) fn agent_of(capture: &Capture) -> Option<AgentAddress> {
    let url = capture.status.as_ref()?.url.as_deref()?;
    let authority = url.strip_prefix("https://")?.split('/').next()?;
    Some(AgentAddress {
        node: capture.spec.node_name.clone(),
        address: authority.parse().ok()?,
    })
}
