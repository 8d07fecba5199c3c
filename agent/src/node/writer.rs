//! Writes a capture's status to the API server: server-side apply, only when it changed, and at
//! most as often as `spec.statusIntervalSeconds` says.

use std::time::Duration;

use flopwatch_api::capture::{Capture, CaptureStatus};
use flopwatch_api::{AGENT_FIELD_MANAGER, GROUP, VERSION};
use flopwatch_pipeline::failure::chain;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::DefaultBackoff;
use kube::{Client, ResourceExt};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, warn};

/// Longest time that one call of the API server may take.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a status was not written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused the call, or could not be reached.
    #[error("the status of capture {name} could not be written")]
    Api {
        /// Name of the capture.
        name: String,
        /// Error of the client.
        source: Box<kube::Error>,
    },
    /// The API server did not answer within [`CALL_TIMEOUT`].
    #[error("the API server did not answer within {CALL_TIMEOUT:?} when the status of capture {0} was written")]
    Timeout(String),
}

impl Error {
    /// HTTP status code of the API server's answer; none where it gave none.
    fn code(&self) -> Option<u16> {
        match self {
            Self::Api { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            Self::Timeout(_) => None,
        }
    }
}

/// Outcome of the last status that was handed to a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The API server has it.
    Written,
    /// The capture is gone, or another one has its name.
    Gone,
    /// The API server refuses the status as malformed, which trying again does not change.
    Refused,
    /// The agent was asked to exit before the API server took the status.
    Unwritten,
}

/// A capture at the API server whose status is read and written, told by its name and its UID: one
/// that was created later under the same name is left alone.
#[derive(Clone, Debug)]
pub struct Target {
    api: Api<Capture>,
    name: String,
    uid: String,
}

impl Target {
    /// The target `capture`.
    pub fn new(client: Client, capture: &Capture) -> Self {
        let api = match capture.namespace() {
            Some(namespace) => Api::namespaced(client, &namespace),
            None => Api::default_namespaced(client),
        };
        Self {
            api,
            name: capture.name_any(),
            uid: capture.uid().unwrap_or_default(),
        }
    }

    /// The target with this name and UID in the namespace of `api`.
    pub fn named(api: Api<Capture>, name: &str, uid: &str) -> Self {
        Self {
            api,
            name: name.to_owned(),
            uid: uid.to_owned(),
        }
    }

    /// Reads the capture from the API server; none where it is gone, or another one has its name.
    pub async fn read(&self) -> Result<Option<Capture>, Error> {
        let capture = self.answered(self.api.get_opt(&self.name)).await?;
        Ok(capture.filter(|capture| capture.uid().as_deref() == Some(self.uid.as_str())))
    }

    /// Whether the capture is there. Only its metadata is read, so that a capture which this agent
    /// cannot parse is found too.
    pub async fn exists(&self) -> Result<bool, Error> {
        let metadata = self.answered(self.api.get_metadata_opt(&self.name)).await?;
        Ok(metadata.is_some_and(|capture| capture.uid().as_deref() == Some(self.uid.as_str())))
    }

    /// Writes `status` by server-side apply, as all of the status that the agent owns.
    pub async fn apply(&self, status: &CaptureStatus) -> Result<(), Error> {
        self.apply_at_version(status, None).await
    }

    /// Writes `status` as [`apply`](Self::apply) does. Fails where the capture has changed since it
    /// was read as `seen`.
    pub async fn apply_over(&self, seen: &Capture, status: &CaptureStatus) -> Result<(), Error> {
        self.apply_at_version(status, seen.resource_version()).await
    }

    /// Writes `status`; with a resource version, only where the capture still has it.
    async fn apply_at_version(&self, status: &CaptureStatus, version: Option<String>) -> Result<(), Error> {
        let mut metadata = serde_json::json!({ "name": self.name, "uid": self.uid });
        if let Some(version) = version {
            // The API server refuses a version that is null.
            metadata["resourceVersion"] = version.into();
        }
        let body = serde_json::json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": "Capture",
            "metadata": metadata,
            "status": status,
        });
        let params = PatchParams::apply(AGENT_FIELD_MANAGER).force();
        let patch = Patch::Apply(&body);
        let written = self.api.patch_status(&self.name, &params, &patch);
        self.answered(written).await.map(drop)
    }

    /// What the API server answers within [`CALL_TIMEOUT`].
    async fn answered<T>(&self, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Error> {
        let answer = timeout(CALL_TIMEOUT, call).await;
        let answer = answer.map_err(|_elapsed| Error::Timeout(self.name.clone()))?;
        answer.map_err(|source| Error::Api {
            name: self.name.clone(),
            source: Box::new(source),
        })
    }
}

/// The task that writes the status of one live capture. Of statuses that are handed over between
/// two writes the latest is written, and the last status of all is written at once.
#[derive(Debug)]
pub struct Writer {
    sender: watch::Sender<CaptureStatus>,
    task: JoinHandle<Delivery>,
}

impl Writer {
    /// Starts the task. `written` is the status that the API server holds already, `interval` the
    /// shortest time between two attempts to write.
    ///
    /// The task gives up only where `stop` is cancelled, the capture is gone or replaced by
    /// another, or the API server refuses the status as malformed. Any other error may pass, even a
    /// refusal for lack of rights, which an API server gives while it starts.
    pub fn start(target: Target, written: CaptureStatus, interval: Duration, stop: CancellationToken) -> Self {
        let (sender, receiver) = watch::channel(written.clone());
        let task = tokio::spawn(write_statuses(target, receiver, written, interval, stop).in_current_span());
        Self { sender, task }
    }

    /// Hands over a status to write.
    pub fn write(&self, status: CaptureStatus) {
        self.sender.send_replace(status);
    }

    /// Writes the status that was handed over last, and returns its outcome.
    pub async fn finish(self) -> Delivery {
        drop(self.sender);
        self.task.await.unwrap_or_else(|error| {
            warn!(%error, "the writer of a capture's status failed");
            Delivery::Unwritten
        })
    }
}

/// Writes the statuses that come from `receiver` until its sender is dropped, and returns the
/// outcome of the last one.
async fn write_statuses(
    target: Target,
    mut receiver: watch::Receiver<CaptureStatus>,
    mut written: CaptureStatus,
    interval: Duration,
    stop: CancellationToken,
) -> Delivery {
    let mut backoff = DefaultBackoff::default();
    loop {
        // An error means that the sender was dropped: the status that was sent last may still have
        // to be written.
        let is_last = receiver.changed().await.is_err() || receiver.has_changed().is_err();
        let status = receiver.borrow_and_update().clone();
        let mut sender_watch = receiver.clone();
        if status != written {
            match target.apply(&status).await {
                Ok(()) => {
                    debug!(capture = %target.name, "wrote the status");
                    written = status;
                    backoff.reset();
                }
                Err(error) => {
                    if let Some(delivery) = final_delivery(&target, &error).await {
                        warn!(capture = %target.name, error = %chain(&error), "gave up writing the status");
                        return delivery;
                    }
                    warn!(capture = %target.name, error = %chain(&error), "writing the status failed, trying again");
                    let pause = backoff.next().unwrap_or(interval);
                    // An attempt that the API server refuses is work for it too.
                    let pause = if is_last { pause } else { pause.max(interval) };
                    tokio::select! {
                        () = sleep(pause) => {}
                        () = sender_dropped(&mut sender_watch), if !is_last => {}
                        () = stop.cancelled() => return Delivery::Unwritten,
                    }
                    receiver.mark_changed();
                    continue;
                }
            }
        }
        if is_last {
            return Delivery::Written;
        }
        tokio::select! {
            () = sleep(interval) => {}
            // The last status does not wait for the interval.
            () = sender_dropped(&mut sender_watch) => {}
        }
    }
}

/// The outcome of a status after an error that another attempt does not change; none where another
/// attempt may succeed.
async fn final_delivery(target: &Target, error: &Error) -> Option<Delivery> {
    match error.code()? {
        404 => Some(Delivery::Gone),
        422 => Some(Delivery::Refused),
        // Somebody else wrote meanwhile, or another capture has the name: the API server is asked
        // which.
        409 => matches!(target.exists().await, Ok(false)).then_some(Delivery::Gone),
        _ => None,
    }
}

/// Resolves once the sender is dropped.
async fn sender_dropped(receiver: &mut watch::Receiver<CaptureStatus>) {
    while receiver.changed().await.is_ok() {}
}

#[cfg(test)]
mod tests;
