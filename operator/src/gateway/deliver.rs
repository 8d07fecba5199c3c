//! How an artifact reaches its reader: from the node's agent, or from the object store when that cannot give it.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::CONTENT_DISPOSITION;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use flopwatch_api::artifact::{Output, artifacts_path};
use flopwatch_api::capture::Capture;
use flopwatch_api::form::{Form, TIMELINE};
use flopwatch_api::phase::Phase;
use flopwatch_api::session::ProfilingSession;
use flopwatch_http::Verb;
use kube::ResourceExt as _;

use crate::gateway::agents::AgentError;
use crate::gateway::directory::AgentPlace;
use crate::gateway::problem::Problem;
use crate::gateway::routes::{Gateway, published};
use crate::gateway::token::Token;

impl Gateway {
    /// Passes an artifact, or a form of the timeline, on from whoever holds it.
    pub(crate) async fn stream(
        &self,
        token: &Token,
        (session, capture): (Arc<ProfilingSession>, Arc<Capture>),
        name: &str,
        method: Method,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Problem> {
        let (artifact, is_form) = match (published(&capture, name), Form::from_name(name)) {
            (Some(artifact), _) => (artifact, false),
            (None, Some(_form)) => (
                published(&capture, TIMELINE).ok_or_else(|| nothing_of_that_name(&capture))?,
                true,
            ),
            (None, None) => return Err(nothing_of_that_name(&capture)),
        };
        let namespace = session.namespace().unwrap_or_default();
        if artifact.type_ == Output::Raw || artifact.sensitive {
            let allowed = self
                .allow(token, Verb::Get, &namespace, Some(&session.name_any()), true)
                .await;
            allowed.map_err(|problem| match problem {
                Problem::Forbidden => Problem::RawForbidden,
                other => other,
            })?;
        }
        let path = format!("{}/{name}", artifacts_path(&namespace, &capture.name_any()));
        let place = agent_of(&capture);
        let has_copy = capture.status.as_ref().is_some_and(|status| status.store_url.is_some());
        let mut answer = match (&place, self.store.as_ref().filter(|_| has_copy)) {
            (None, None) => {
                let words = "The capture does not say which agent holds it, and there is no copy in an object store.";
                return Err(Problem::NotReady(words.to_owned()));
            }
            (Some(place), None) => self.agents.fetch(place, method, &path, headers).await?,
            (place, Some(store)) => {
                match self.ask_agent(place.as_ref(), &method, &path, headers).await {
                    Some(answer) => answer?,
                    // Whichever agent there is makes a form of the copy.
                    None if is_form => {
                        let uid = capture.uid().unwrap_or_default();
                        self.agents
                            .fetch_from_any(&uid, place.as_ref(), &method, &path, headers)
                            .await?
                    }
                    None => {
                        let turn = self.agents.turn().await?;
                        store.fetch(&capture, artifact, &method, headers, turn).await?
                    }
                }
            }
        };
        if answer.status() != StatusCode::NOT_MODIFIED
            && let Ok(value) = HeaderValue::try_from(format!("attachment; filename=\"{name}\""))
        {
            answer.headers_mut().insert(CONTENT_DISPOSITION, value);
        }
        Ok(answer)
    }

    /// The agent's answer; None where it has none and the object store may have.
    async fn ask_agent(
        &self,
        place: Option<&AgentPlace>,
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

fn nothing_of_that_name(capture: &Capture) -> Problem {
    if Phase::of(capture).has_ended() {
        Problem::NotFound("artifact of that name in this capture".to_owned())
    } else {
        Problem::NotReady("The capture has not published anything yet.".to_owned())
    }
}

/// The agent that serves a capture's artifacts: of the node that the controller chose, at the address that it says itself. Nothing else
/// of its URL counts: the path is known, only a holder of that node's certificate is talked to, and what is shown is good at that node alone.
fn agent_of(capture: &Capture) -> Option<AgentPlace> {
    let url = capture.status.as_ref()?.url.as_deref()?;
    let authority = url.strip_prefix("https://")?.split('/').next()?;
    Some(AgentPlace {
        node: capture.spec.node_name.clone(),
        address: authority.parse().ok()?,
    })
}
