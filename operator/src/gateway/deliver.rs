//! How an artifact reaches its reader: from the node's agent, or from the object store when that cannot give it.

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
use crate::gateway::bring::Bringing;
use crate::gateway::directory::AgentAddress;
use crate::gateway::problem::Problem;
use crate::gateway::store::{ObjectStore, stored_sha256};
use crate::gateway::token::Token;

/// A capture that an answer is made of: the caller may read its session, and its raw captures where its timeline is as sensitive.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub(crate) session: Arc<ProfilingSession>,
    pub(crate) capture: Arc<Capture>,
    /// The artifact that is read; the raw capture where its timeline is to be made first.
    pub(crate) artifact: Artifact,
}

impl Chosen {
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

    /// By what an agent of another node knows its copy in the object store: the SHA-256 of the
    /// manifest.
    pub(crate) fn stored(&self) -> Option<&str> {
        stored_sha256(&self.capture)
    }
}

/// Where a result is, at the agent of its first capture's node and at any other.
pub(crate) struct ResultPath {
    pub(crate) at_home: String,
    pub(crate) elsewhere: String,
}

/// Reads artifacts and results for callers who may read them; clones share it.
#[derive(Clone)]
pub(crate) struct Delivery {
    pub(crate) access: SessionAccess,
    pub(crate) agents: Arc<Agents>,
    /// Where copies of artifacts are, where there is an object store.
    pub(crate) store: Option<Arc<ObjectStore>>,
    /// Timelines that are being handed over.
    pub(crate) bringing: Bringing,
}

/// The artifact of that name that the capture published.
pub(crate) fn published<'a>(capture: &'a Capture, name: &str) -> Option<&'a Artifact> {
    let artifacts = &capture.status.as_ref()?.artifacts;
    artifacts.iter().find(|artifact| artifact.name == name)
}

/// What the timeline of a capture is read from: the published one, or the raw capture that one can be made of.
pub(crate) fn source_of_timeline(capture: &Capture) -> Option<&Artifact> {
    timeline_source(&capture.status.as_ref()?.artifacts)
}

impl Delivery {
    /// An artifact of a capture, or what its timeline is made of, whose session the caller may read, if they may read the artifact too.
    pub(crate) async fn choose(
        &self,
        token: &Token,
        (session, capture): (Arc<ProfilingSession>, Arc<Capture>),
        name: &str,
    ) -> Result<Chosen, Problem> {
        let source = || source_of_timeline(&capture).filter(|_| name == TIMELINE);
        let artifact = published(&capture, name).or_else(source);
        let artifact = artifact.ok_or_else(|| nothing_of_that_name(&capture))?.clone();
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
        Ok(Chosen {
            session,
            capture,
            artifact,
        })
    }

    /// Passes on an artifact, or a file that is made of the timeline, from whoever holds it.
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
        let chosen = self.choose(token, (session, capture), source).await?;
        let path = format!(
            "{}/{name}",
            artifacts_path(&chosen.namespace(), &chosen.capture.name_any())
        );
        let answer = if is_made {
            let copy = Serializer::new(String::new())
                .append_pair("uid", &chosen.uid())
                .extend_pairs(chosen.stored().map(|stored| ("stored", stored)))
                .finish();
            let paths = ResultPath {
                elsewhere: format!("{path}?{copy}"),
                at_home: path,
            };
            self.result(&[chosen], &paths, &method, headers).await?
        } else {
            self.read(&chosen, &path, &method, headers).await?
        };
        Ok(saved_as(answer, name))
    }

    /// An artifact that was published, from the agent of its node or from the object store.
    pub(crate) async fn read(
        &self,
        chosen: &Chosen,
        path: &str,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Problem> {
        let place = agent_of(&chosen.capture);
        match (&place, self.store.as_ref().filter(|_| chosen.has_copy())) {
            (None, None) => Err(nobody_has_it()),
            (Some(place), None) => Ok(self.agents.fetch(place, method.clone(), path, headers).await?),
            (place, Some(store)) => {
                if let Some(answer) = self.ask_agent(place.as_ref(), method, path, headers).await {
                    return Ok(answer?);
                }
                let turn = self.agents.turn().await?;
                store
                    .fetch(&chosen.capture, &chosen.artifact, method, headers, turn)
                    .await
            }
        }
    }

    /// The result of an analysis, from the agent that holds the first capture, or from any that can read its copy.
    pub(crate) async fn result(
        &self,
        inputs: &[Chosen],
        paths: &ResultPath,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Problem> {
        let first = inputs.first().ok_or_else(nobody_has_it)?;
        let place = agent_of(&first.capture);
        let has_copy = self.store.is_some() && first.has_copy();
        match &place {
            None if !has_copy => return Err(nobody_has_it()),
            Some(place) if !has_copy || !self.agents.is_missed(place.address) => {
                match self
                    .ask_for_result(place, inputs, &paths.at_home, method, headers)
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
        for agent in self.agents.others(&first.uid(), place.as_ref()).await? {
            match self
                .ask_for_result(&agent, inputs, &paths.elsewhere, method, headers)
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

    /// The agent's answer; None where it has none and the object store may have.
    async fn ask_agent(
        &self,
        place: Option<&AgentAddress>,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Option<Result<Response<Body>, AgentError>> {
        let place = place.filter(|place| !self.agents.is_missed(place.address))?;
        match self.agents.fetch(place, method.clone(), path, headers).await {
            Err(error) if error.is_absence() => {
                tracing::info!(%error, "an artifact comes from the object store instead");
                None
            }
            other => Some(other),
        }
    }
}

/// Says under which name a browser saves it.
pub(crate) fn saved_as(mut answer: Response<Body>, name: &str) -> Response<Body> {
    if answer.status() != StatusCode::NOT_MODIFIED
        && let Ok(value) = HeaderValue::try_from(format!("attachment; filename=\"{name}\""))
    {
        answer.headers_mut().insert(CONTENT_DISPOSITION, value);
    }
    answer
}

fn nobody_has_it() -> Problem {
    let words = "The capture does not say which agent holds it, and there is no copy in an object store.";
    Problem::NotReady(words.to_owned())
}

fn nothing_of_that_name(capture: &Capture) -> Problem {
    if Phase::of(capture).has_ended() {
        Problem::NotFound("artifact of that name in this capture".to_owned())
    } else {
        Problem::NotReady("The capture has not published anything yet.".to_owned())
    }
}

/// The agent that serves a capture's artifacts: of the node that the controller chose, at the address that it says itself. Nothing else
/// of its URL counts: the path is known, only a holder of that node's certificate is talked to, and what is shown is good at that node alone.
pub(crate) fn agent_of(capture: &Capture) -> Option<AgentAddress> {
    let url = capture.status.as_ref()?.url.as_deref()?;
    let authority = url.strip_prefix("https://")?.split('/').next()?;
    Some(AgentAddress {
        node: capture.spec.node_name.clone(),
        address: authority.parse().ok()?,
    })
}
