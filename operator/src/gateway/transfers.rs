//! Transfers of captures between agents: an analysis of captures of several nodes runs at one
//! agent, and the gateway reads each input that this agent lacks from where it is and uploads it.
//!
//! The caller's right to every capture was reviewed before; an input that an agent reports as
//! missing is transferred only if it is among these. An upload uses the same kind of connection as
//! every request to an agent: to the holder of that node's certificate, with a token that no other
//! agent accepts. No agent talks to another, and none gets a credential for another's captures.
//! `artifacts/src/store/received.rs` is the agent's side.
//!
//! At most 16 transfers are under way at once, one for each agent and capture. A request waits for
//! one for 20 s; the transfer goes on afterwards, and whoever asks again waits for the same one.

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
use crate::gateway::deliver::{AuthorizedArtifact, Delivery, agent_of};
use crate::gateway::directory::AgentAddress;
use crate::gateway::problem::Problem;

/// Longest wait of a request for a transfer, which goes on afterwards.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest conversion of a raw capture into the timeline that is transferred.
const MAKE_TIMEOUT: Duration = Duration::from_mins(30);
/// Time between two requests that ask whether the conversion has ended.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Most transfers that are under way at once.
const MAX_TRANSFERS: usize = 16;

/// The result of a transfer, whose error is a sentence; None while it is under way.
type TransferOutcome = Option<Result<(), String>>;
/// The address of the agent that gets the capture, and the UID of the capture.
type TransferKey = (SocketAddr, String);

/// The transfers that are under way; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transfers(Arc<Mutex<BTreeMap<TransferKey, watch::Receiver<TransferOutcome>>>>);

impl Transfers {
    fn locked(&self) -> MutexGuard<'_, BTreeMap<TransferKey, watch::Receiver<TransferOutcome>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The entry of one transfer in [`Transfers`]; dropping it removes the entry.
struct TransferSlot {
    transfers: Transfers,
    key: TransferKey,
}

impl Drop for TransferSlot {
    fn drop(&mut self) {
        self.transfers.locked().remove(&self.key);
    }
}

impl Delivery {
    /// Asks an agent for a result, and transfers those of `inputs` to it that it reports missing.
    pub(crate) async fn ask_for_result(
        &self,
        agent: &AgentAddress,
        inputs: &[AuthorizedArtifact],
        path: &str,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, AgentError> {
        // The missing inputs are listed in the body, which an answer to HEAD does not have.
        let asked = if inputs.len() > 1 { &Method::GET } else { method };
        let mut answer = match self.agents.fetch(agent, asked.clone(), path, headers).await {
            Err(AgentError::MissingInputs(missing)) => {
                for input in inputs.iter().filter(|input| missing.contains(&input.uid())) {
                    self.transfer_input(agent, input).await?;
                }
                self.agents.fetch(agent, asked.clone(), path, headers).await?
            }
            other => other?,
        };
        if method == Method::HEAD {
            *answer.body_mut() = Body::empty();
        }
        Ok(answer)
    }

    /// Transfers a capture to an agent, or waits for the transfer of it that is under way.
    async fn transfer_input(&self, agent: &AgentAddress, input: &AuthorizedArtifact) -> Result<(), AgentError> {
        let mut outcome = self.start_transfer(agent, input)?;
        let waited = timeout(REQUEST_TIMEOUT, outcome.wait_for(Option::is_some)).await;
        match waited.map_err(|_elapsed| AgentError::Converting)?.as_deref() {
            Ok(Some(Ok(()))) => Ok(()),
            Ok(Some(Err(message))) => Err(AgentError::NotTransferred(message.clone())),
            Ok(None) | Err(_) => Err(AgentError::NotTransferred("it ended early".to_owned())),
        }
    }

    fn start_transfer(
        &self,
        agent: &AgentAddress,
        input: &AuthorizedArtifact,
    ) -> Result<watch::Receiver<TransferOutcome>, AgentError> {
        let transfers = self.transfers.clone();
        let key = (agent.address, input.uid());
        let mut under_way = transfers.locked();
        if let Some(outcome) = under_way.get(&key) {
            return Ok(outcome.clone());
        }
        if under_way.len() >= MAX_TRANSFERS {
            return Err(AgentError::Busy);
        }
        let (sender, outcome) = watch::channel(None);
        under_way.insert(key.clone(), outcome.clone());
        drop(under_way);
        let slot = TransferSlot { transfers, key };
        let (delivery, agent, input) = (self.clone(), agent.clone(), input.clone());
        tokio::spawn(async move {
            let uploaded = delivery.upload(&agent, &input).await;
            if let Err(message) = &uploaded {
                tracing::warn!(
                    capture = input.capture.name_any(),
                    node = agent.node,
                    message,
                    "a capture was not brought"
                );
            }
            drop(slot);
            drop(sender.send(Some(uploaded)));
        });
        Ok(outcome)
    }

    /// Reads the timeline from its agent or the object store, and uploads it to `to` as it comes.
    async fn upload(&self, to: &AgentAddress, input: &AuthorizedArtifact) -> Result<(), String> {
        let (namespace, capture) = (input.namespace(), input.capture.name_any());
        let mut artifact = input.artifact.clone();
        let from = format!("{}/{TIMELINE}", artifacts_path(&namespace, &capture));
        let content = if artifact.name == TIMELINE {
            let read = self.read(input, &from, &Method::GET, &HeaderMap::new()).await;
            read.map_err(|problem| problem.in_one_line())?
        } else {
            let made = self.make_timeline(input, &from).await;
            let made = made.map_err(|error| Problem::from(error).in_one_line())?;
            (artifact.bytes, artifact.sha256) =
                content_of(&made).ok_or("the agent does not say what the timeline is")?;
            made
        };
        let id = input.session.status.as_ref().and_then(|status| status.id.as_deref());
        let query = Serializer::new(String::new())
            .append_pair("session", &input.session.name_any())
            .append_pair("session_id", id.unwrap_or_default())
            .append_pair("bytes", &artifact.bytes.to_string())
            .append_pair("sha256", &artifact.sha256)
            .append_pair("sensitive", if artifact.sensitive { "true" } else { "false" })
            .finish();
        let path = format!("{INPUTS_PATH}/{namespace}/{capture}/{}?{query}", input.uid());
        let bytes = u64::try_from(artifact.bytes).unwrap_or_default();
        let uploaded = self.agents.upload_timeline(to, &path, bytes, content.into_body()).await;
        uploaded.map_err(|error| Problem::from(error).in_one_line())
    }

    /// Has the agent of the capture's own node convert the raw capture, and waits for the timeline.
    async fn make_timeline(&self, input: &AuthorizedArtifact, path: &str) -> Result<Response<Body>, AgentError> {
        let nobody = || AgentError::NotTransferred("its timeline is made on its own node, which is gone".to_owned());
        let agent = agent_of(&input.capture).ok_or_else(nobody)?;
        let begun = Instant::now();
        loop {
            match self.agents.fetch(&agent, Method::GET, path, &HeaderMap::new()).await {
                Err(AgentError::Converting | AgentError::Conversions) if begun.elapsed() < MAKE_TIMEOUT => {
                    sleep(POLL_INTERVAL).await;
                }
                other => return other,
            }
        }
    }
}

/// Bytes and SHA-256 of an artifact, from the headers of an answer with all of it.
fn content_of(answer: &Response<Body>) -> Option<(i64, String)> {
    let text = |name| answer.headers().get(name)?.to_str().ok();
    let sha256 = text(ETAG)?.trim_matches('"').to_owned();
    Some((text(CONTENT_LENGTH)?.parse().ok()?, sha256))
}
