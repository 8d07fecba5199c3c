//! Brings the captures of an analysis together: what the agent that runs it lacks, the gateway reads where it is and hands over.
//!
//! The caller's right to every capture was reviewed before; what an agent says that it lacks counts only where it is among these. The
//! connection is the one by which the gateway asks an agent for everything: to the holder of that node's certificate, with a token that no
//! other agent takes. No agent talks to another, and none is given a credential for another's captures. `artifacts/src/store/received.rs`
//! says what the agent's side holds to.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, ETAG};
use axum::http::{HeaderMap, Method, Response};
use flopwatch_api::artifact::{INPUTS_PATH, TIMELINE, artifacts_path};
use kube::ResourceExt as _;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use url::form_urlencoded::Serializer;

use crate::gateway::agents::AgentError;
use crate::gateway::deliver::{Chosen, Delivery, agent_of};
use crate::gateway::directory::AgentAddress;
use crate::gateway::problem::Problem;

/// How long a request waits for a capture that is on its way; whoever asks again waits on.
const PATIENCE: Duration = Duration::from_secs(20);
/// Longest making of a timeline that is to be handed over, and time between two questions for it.
const MAKING: Duration = Duration::from_mins(30);
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// Captures that may be on their way at once.
const MOST: usize = 16;

/// What came of it; nothing yet while it is under way.
type Outcome = Option<Result<(), String>>;
/// The agent, and the UID of the capture.
type Key = (SocketAddr, String);

/// Captures on their way to an agent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bringing(Arc<Mutex<BTreeMap<Key, watch::Receiver<Outcome>>>>);

impl Bringing {
    fn locked(&self) -> MutexGuard<'_, BTreeMap<Key, watch::Receiver<Outcome>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A capture's place among those on their way, given free however that ends.
struct Place {
    bringing: Bringing,
    key: Key,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.bringing.locked().remove(&self.key);
    }
}

impl Delivery {
    /// Asks an agent for a result, and brings it the captures of `inputs` that it lacks.
    pub(crate) async fn ask_for_result(
        &self,
        place: &AgentAddress,
        inputs: &[Chosen],
        path: &str,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, AgentError> {
        // What is missing is said in a body, which an answer to HEAD has not.
        let asked = if inputs.len() > 1 { &Method::GET } else { method };
        let mut answer = match self.agents.fetch(place, asked.clone(), path, headers).await {
            Err(AgentError::MissingInputs(missing)) => {
                for chosen in inputs.iter().filter(|chosen| missing.contains(&chosen.uid())) {
                    self.bring(place, chosen).await?;
                }
                self.agents.fetch(place, asked.clone(), path, headers).await?
            }
            other => other?,
        };
        if method == Method::HEAD {
            *answer.body_mut() = Body::empty();
        }
        Ok(answer)
    }

    /// Brings a capture to an agent, or waits for whoever does.
    async fn bring(&self, place: &AgentAddress, chosen: &Chosen) -> Result<(), AgentError> {
        let mut outcome = self.begin(place, chosen)?;
        let waited = timeout(PATIENCE, outcome.wait_for(Option::is_some)).await;
        match waited.map_err(|_elapsed| AgentError::Converting)?.as_deref() {
            Ok(Some(Ok(()))) => Ok(()),
            Ok(Some(Err(message))) => Err(AgentError::NotBrought(message.clone())),
            Ok(None) | Err(_) => Err(AgentError::NotBrought("it ended early".to_owned())),
        }
    }

    fn begin(&self, place: &AgentAddress, chosen: &Chosen) -> Result<watch::Receiver<Outcome>, AgentError> {
        let bringing = self.bringing.clone();
        let key = (place.address, chosen.uid());
        let mut under_way = bringing.locked();
        if let Some(outcome) = under_way.get(&key) {
            return Ok(outcome.clone());
        }
        if under_way.len() >= MOST {
            return Err(AgentError::Busy);
        }
        let (tell, outcome) = watch::channel(None);
        under_way.insert(key.clone(), outcome.clone());
        drop(under_way);
        let held = Place { bringing, key };
        let (delivery, place, chosen) = (self.clone(), place.clone(), chosen.clone());
        tokio::spawn(async move {
            let brought = delivery.carry(&place, &chosen).await;
            if let Err(message) = &brought {
                tracing::warn!(
                    capture = chosen.capture.name_any(),
                    node = place.node,
                    message,
                    "a capture was not brought"
                );
            }
            drop(held);
            drop(tell.send(Some(brought)));
        });
        Ok(outcome)
    }

    /// Reads the timeline where it is, and hands it over as it comes.
    async fn carry(&self, to: &AgentAddress, chosen: &Chosen) -> Result<(), String> {
        let (namespace, capture) = (chosen.namespace(), chosen.capture.name_any());
        let mut artifact = chosen.artifact.clone();
        let from = format!("{}/{TIMELINE}", artifacts_path(&namespace, &capture));
        let content = if artifact.name == TIMELINE {
            let read = self.read(chosen, &from, &Method::GET, &HeaderMap::new()).await;
            read.map_err(|problem| problem.in_one_line())?
        } else {
            let made = self.make_timeline(chosen, &from).await;
            let made = made.map_err(|error| Problem::from(error).in_one_line())?;
            (artifact.bytes, artifact.sha256) =
                content_of(&made).ok_or("the agent does not say what the timeline is")?;
            made
        };
        let id = chosen.session.status.as_ref().and_then(|status| status.id.as_deref());
        let named = Serializer::new(String::new())
            .append_pair("session", &chosen.session.name_any())
            .append_pair("session_id", id.unwrap_or_default())
            .append_pair("bytes", &artifact.bytes.to_string())
            .append_pair("sha256", &artifact.sha256)
            .append_pair("sensitive", if artifact.sensitive { "true" } else { "false" })
            .finish();
        let path = format!("{INPUTS_PATH}/{namespace}/{capture}/{}?{named}", chosen.uid());
        let bytes = u64::try_from(artifact.bytes).unwrap_or_default();
        let given = self.agents.give(to, &path, bytes, content.into_body()).await;
        given.map_err(|error| Problem::from(error).in_one_line())
    }

    /// Has the agent of its node make the timeline of a raw capture, and waits for it.
    async fn make_timeline(&self, chosen: &Chosen, path: &str) -> Result<Response<Body>, AgentError> {
        let nobody = || AgentError::NotBrought("its timeline is made on its own node, which is gone".to_owned());
        let place = agent_of(&chosen.capture).ok_or_else(nobody)?;
        let begun = Instant::now();
        loop {
            match self.agents.fetch(&place, Method::GET, path, &HeaderMap::new()).await {
                Err(AgentError::Converting | AgentError::Conversions) if begun.elapsed() < MAKING => {
                    sleep(ASK_AGAIN).await;
                }
                other => return other,
            }
        }
    }
}

/// Bytes and SHA-256 of an artifact, as an answer with the whole of it says.
fn content_of(answer: &Response<Body>) -> Option<(i64, String)> {
    let text = |name| answer.headers().get(name)?.to_str().ok();
    let sha256 = text(ETAG)?.trim_matches('"').to_owned();
    Some((text(CONTENT_LENGTH)?.parse().ok()?, sha256))
}
