//! Releases every capture before the operator, which would do it later, is uninstalled: a finalizer
//! that nobody is left to take off keeps captures, sessions and namespaces from being deleted for
//! ever.

use std::collections::BTreeSet;
use std::time::Duration;

use flopwatch_api::CAPTURE_FINALIZER;
use flopwatch_api::capture::Capture;
use flopwatch_api::phase::Phase;
use flopwatch_api::session::StopMode;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::capture::reconcile::without_finalizer;
use crate::controller::SUSPENDED_KEY;
use crate::deadline::{CallError, bounded, merge};

/// Captures in one page of a list.
const PAGE_SIZE: u32 = 250;
/// Captures that are written to at the same time.
const MAX_CONCURRENT_RELEASES: usize = 16;
/// How often one capture is tried in one round when others write to it meanwhile.
const MAX_RELEASE_ATTEMPTS: usize = 5;
/// Most rounds of listing what is held and letting it go.
const MAX_ROUNDS: usize = 5;
/// Wait between two looks at the captures that are to end.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Wait between two rounds, in which a capture that the controller was about to create while it was
/// suspended appears.
const SETTLE_INTERVAL: Duration = Duration::from_secs(2);

/// How captures are released.
#[derive(Clone, Debug)]
pub struct ReleaseOptions {
    /// Namespace of the operator.
    pub namespace: String,
    /// Name of the ConfigMap with [`SUSPENDED_KEY`].
    pub config_map: String,
    /// How long agents have to end the captures at work.
    pub grace: Duration,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// Captures that were asked to stop.
    pub asked: usize,
    /// Captures that no agent had ended when the time was over.
    pub at_work: usize,
    /// Captures whose finalizer was taken off.
    pub released: usize,
}

/// Why not every capture was released. It is safe to begin again.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// New captures could not be suspended, or captures could not be listed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The process was asked to end before it was done.
    #[error("interrupted before every capture was released; run it again")]
    Interrupted,
    /// Captures kept their finalizer in every round; the log names each with its reason.
    #[error("{count} captures still hold the finalizer {CAPTURE_FINALIZER}; run it again")]
    StillHeld {
        /// How many captures are left.
        count: usize,
    },
}

/// Suspends new captures, asks those at work to stop, waits for their agents for as long as
/// `options` say and takes the finalizer off every capture of the cluster. Nothing to do where
/// captures are not defined.
///
/// # Errors
/// When new captures cannot be suspended, captures cannot be listed, some cannot be written to, or
/// `stop` came first.
pub async fn run(client: Client, options: ReleaseOptions, stop: CancellationToken) -> Result<Released, ReleaseError> {
    let release = Release {
        captures: ApiResource::erase::<Capture>(&()),
        client,
    };
    tokio::select! {
        () = stop.cancelled() => Err(ReleaseError::Interrupted),
        result = release.all(&options) => result,
    }
}

struct Release {
    client: Client,
    captures: ApiResource,
}

impl Release {
    async fn all(&self, options: &ReleaseOptions) -> Result<Released, ReleaseError> {
        let Some(held) = self.held().await? else {
            tracing::info!("captures are not defined in this cluster: nothing to release");
            return Ok(Released::default());
        };
        tracing::info!(held = held.len(), "releasing captures");
        // While this runs the controller still does, and would make captures that nobody releases.
        self.suspend(options).await?;
        let mut done = Released::default();
        self.end(options.grace, &mut done).await?;
        let mut left = 0;
        for round in 0..=MAX_ROUNDS {
            let held = self.held().await?.unwrap_or_default();
            left = held.len();
            if round > 0 && left == 0 {
                tracing::info!(
                    asked = done.asked,
                    at_work = done.at_work,
                    released = done.released,
                    "every capture was released"
                );
                return Ok(done);
            }
            if round < MAX_ROUNDS {
                done.released += self.release_all(held).await;
                sleep(SETTLE_INTERVAL).await;
            }
        }
        Err(ReleaseError::StillHeld { count: left })
    }

    /// Throws the switch that stops new captures.
    async fn suspend(&self, options: &ReleaseOptions) -> Result<(), CallError> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &options.namespace);
        let patch = json!({"data": {SUSPENDED_KEY: "true"}});
        match bounded(
            "suspending new captures",
            api.patch(&options.config_map, &merge(), &Patch::Merge(&patch)),
        )
        .await
        {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => {
                tracing::warn!(
                    config_map = options.config_map,
                    "no ConfigMap to suspend new captures with: a controller that still runs may make some"
                );
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Every capture with the finalizer; None when the API server knows no captures.
    async fn held(&self) -> Result<Option<Vec<DynamicObject>>, CallError> {
        // Untyped: a capture that another version wrote and this one cannot read is released all
        // the same.
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &self.captures);
        let mut held = Vec::new();
        let mut parameters = ListParams::default().limit(PAGE_SIZE);
        loop {
            let page = match bounded("listing captures", api.list(&parameters)).await {
                Ok(page) => page,
                Err(error) if error.is_not_found() => return Ok(None),
                Err(error) => return Err(error),
            };
            held.extend(page.items.into_iter().filter(is_held));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => parameters.continue_token = Some(token),
                None => return Ok(Some(held)),
            }
        }
    }

    /// Asks the captures at work to stop, and waits until their agents have ended them or the time
    /// is over.
    async fn end(&self, grace: Duration, done: &mut Released) -> Result<(), CallError> {
        let deadline = Instant::now() + grace;
        let mut asked = BTreeSet::new();
        loop {
            let held = self.held().await?.unwrap_or_default();
            let at_work: Vec<Capture> = held.into_iter().filter_map(at_work).collect();
            let to_ask: Vec<&Capture> = at_work
                .iter()
                .filter(|capture| capture.spec.stop.is_none() && capture.metadata.deletion_timestamp.is_none())
                .filter(|capture| asked.insert(capture.metadata.uid.clone()))
                .collect();
            let answers = stream::iter(to_ask).map(|capture| self.ask(capture));
            done.asked += answers
                .buffer_unordered(MAX_CONCURRENT_RELEASES)
                .filter(|was_asked| std::future::ready(*was_asked))
                .count()
                .await;
            done.at_work = at_work.len();
            if at_work.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                tracing::warn!(
                    at_work = at_work.len(),
                    grace_seconds = grace.as_secs(),
                    "captures did not end in time; releasing them as they are"
                );
                return Ok(());
            }
            sleep(POLL_INTERVAL.min(deadline.saturating_duration_since(Instant::now()))).await;
        }
    }

    /// Asks one capture to stop. One that cannot be asked is released as it is.
    async fn ask(&self, capture: &Capture) -> bool {
        let (namespace, name) = (capture.namespace().unwrap_or_default(), capture.name_any());
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &namespace, &self.captures);
        let patch = json!({"spec": {"stop": StopMode::Discard}});
        match bounded("stopping a capture", api.patch(&name, &merge(), &Patch::Merge(&patch))).await {
            Ok(_) => true,
            Err(error) if error.is_not_found() => false,
            Err(error) => {
                tracing::warn!(namespace, name, %error, "cannot ask a capture to stop");
                false
            }
        }
    }

    /// Takes the finalizer off each, and answers how many that were.
    async fn release_all(&self, held: Vec<DynamicObject>) -> usize {
        stream::iter(held)
            .map(|capture| async move {
                let (namespace, name) = (capture.namespace().unwrap_or_default(), capture.name_any());
                match self.release_one(&namespace, &name, capture).await {
                    Ok(released) => released,
                    Err(error) => {
                        tracing::warn!(namespace, name, %error, "cannot release a capture");
                        false
                    }
                }
            })
            .buffer_unordered(MAX_CONCURRENT_RELEASES)
            .filter(|released| std::future::ready(*released))
            .count()
            .await
    }

    /// Takes the finalizer off the version that was read, and reads again when that is not the
    /// newest: finalizers of others are never lost.
    async fn release_one(&self, namespace: &str, name: &str, mut capture: DynamicObject) -> Result<bool, CallError> {
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &self.captures);
        let mut tries = 1;
        while is_held(&capture) {
            let (patch, params) = (Patch::Merge(without_finalizer(&capture)), merge());
            let taken = api.patch(name, &params, &patch);
            match bounded("taking a capture's finalizer off", taken).await {
                Ok(_) => return Ok(true),
                Err(error) if error.is_not_found() => return Ok(false),
                Err(error) if error.is_conflict() && tries < MAX_RELEASE_ATTEMPTS => tries += 1,
                Err(error) => return Err(error),
            }
            match bounded("reading a capture", api.get_opt(name)).await? {
                Some(newest) => capture = newest,
                None => return Ok(false),
            }
        }
        Ok(false)
    }
}

fn is_held(capture: &DynamicObject) -> bool {
    capture
        .finalizers()
        .iter()
        .any(|finalizer| finalizer == CAPTURE_FINALIZER)
}

/// The capture, if an agent could still be at work on it.
fn at_work(capture: DynamicObject) -> Option<Capture> {
    let (namespace, name) = (capture.namespace().unwrap_or_default(), capture.name_any());
    match capture.try_parse::<Capture>() {
        Ok(capture) => (!Phase::of(&capture).has_ended()).then_some(capture),
        Err(error) => {
            tracing::warn!(namespace, name, %error, "cannot read a capture; it is released without waiting for it");
            None
        }
    }
}

#[cfg(test)]
mod tests;
