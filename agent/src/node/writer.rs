//! Writes a capture's status to the API server: server-side apply, only when it changed, and at most as often
//! as `spec.statusIntervalSeconds` says.

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
    /// The API server refused it, or could not be reached.
    #[error("the status of capture {name} could not be written")]
    Api {
        /// Namespace and name.
        name: String,
        /// What the client says.
        source: Box<kube::Error>,
    },
    /// It did not answer in time.
    #[error("the API server did not answer within {CALL_TIMEOUT:?} when the status of capture {0} was written")]
    Timeout(String),
}

impl Error {
    /// The API server's answer, where it gave one.
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

/// What became of the last status that a writer was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The API server has it.
    Written,
    /// There is no such capture any more, or another of its name.
    Gone,
    /// The API server says that it is no status, and always will.
    Refused,
    /// The agent was asked to exit before the API server took it.
    Unwritten,
}

/// Which capture a status belongs to.
#[derive(Clone, Debug)]
pub struct Target {
    api: Api<Capture>,
    name: String,
    uid: String,
}

impl Target {
    /// The status of that capture, pinned by its UID: one that was created later under the same name is left alone.
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

    /// The capture of that name and UID.
    pub fn named(api: Api<Capture>, name: &str, uid: &str) -> Self {
        Self {
            api,
            name: name.to_owned(),
            uid: uid.to_owned(),
        }
    }

    /// The capture as the API server has it now; nothing when it is gone or another of the same name is there.
    pub async fn read(&self) -> Result<Option<Capture>, Error> {
        let found = timeout(CALL_TIMEOUT, self.api.get_opt(&self.name)).await;
        let found = found.map_err(|_elapsed| Error::Timeout(self.name.clone()))?;
        let found = found.map_err(|source| Error::Api {
            name: self.name.clone(),
            source: Box::new(source),
        })?;
        Ok(found.filter(|capture| capture.uid().as_deref() == Some(self.uid.as_str())))
    }

    /// Whether that capture is there; one of the same name and another UID is not, whatever it holds.
    pub async fn exists(&self) -> Result<bool, Error> {
        let found = timeout(CALL_TIMEOUT, self.api.get_metadata_opt(&self.name)).await;
        let found = found.map_err(|_elapsed| Error::Timeout(self.name.clone()))?;
        let found = found.map_err(|source| Error::Api {
            name: self.name.clone(),
            source: Box::new(source),
        })?;
        Ok(found.is_some_and(|capture| capture.uid().as_deref() == Some(self.uid.as_str())))
    }

    /// Applies the whole status that the agent owns.
    pub async fn apply(&self, status: &CaptureStatus) -> Result<(), Error> {
        self.apply_to(status, None).await
    }

    /// Likewise, unless the capture has changed since it was read as `seen`.
    pub async fn apply_over(&self, seen: &Capture, status: &CaptureStatus) -> Result<(), Error> {
        self.apply_to(status, seen.resource_version()).await
    }

    async fn apply_to(&self, status: &CaptureStatus, version: Option<String>) -> Result<(), Error> {
        let mut metadata = serde_json::json!({ "name": self.name, "uid": self.uid });
        if let Some(version) = version {
            // Only where there is one: the API server refuses a version that is null.
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
        match timeout(CALL_TIMEOUT, self.api.patch_status(&self.name, &params, &patch)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(source)) => Err(Error::Api {
                name: self.name.clone(),
                source: Box::new(source),
            }),
            Err(_) => Err(Error::Timeout(self.name.clone())),
        }
    }
}

/// The writer of one live capture. Values that come faster than it writes are merged; the last one is always written, and at
/// once.
#[derive(Debug)]
pub struct Writer {
    sender: watch::Sender<CaptureStatus>,
    task: JoinHandle<Delivery>,
}

impl Writer {
    /// Starts it. `written` is what the API server holds already, `interval` the shortest time between two tries to write. It
    /// gives up only when `stop` is cancelled, the capture is gone or another, or the status is none: whatever else the API
    /// server answers may pass (one that is starting knows no rights yet).
    pub fn start(target: Target, written: CaptureStatus, interval: Duration, stop: CancellationToken) -> Self {
        let (sender, receiver) = watch::channel(written.clone());
        let task = tokio::spawn(write_all(target, receiver, written, interval, stop).in_current_span());
        Self { sender, task }
    }

    /// Hands over a status to write.
    pub fn write(&self, status: CaptureStatus) {
        self.sender.send_replace(status);
    }

    /// Writes what was handed over last, and says what became of it.
    pub async fn finish(self) -> Delivery {
        drop(self.sender);
        self.task.await.unwrap_or_else(|error| {
            warn!(%error, "the writer of a capture's status failed");
            Delivery::Unwritten
        })
    }
}

async fn write_all(
    target: Target,
    mut receiver: watch::Receiver<CaptureStatus>,
    mut written: CaptureStatus,
    interval: Duration,
    stop: CancellationToken,
) -> Delivery {
    let mut backoff = DefaultBackoff::default();
    loop {
        // An error means that the sender is gone: what was sent last is still to be written.
        let closed = receiver.changed().await.is_err() || receiver.has_changed().is_err();
        let status = receiver.borrow_and_update().clone();
        let mut watched = receiver.clone();
        if status != written {
            match target.apply(&status).await {
                Ok(()) => {
                    debug!(capture = %target.name, "wrote the status");
                    written = status;
                    backoff.reset();
                }
                Err(error) => {
                    if let Some(end) = end_of(&target, &error).await {
                        warn!(capture = %target.name, error = %chain(&error), "gave up writing the status");
                        return end;
                    }
                    warn!(capture = %target.name, error = %chain(&error), "writing the status failed, trying again");
                    let pause = backoff.next().unwrap_or(interval);
                    // What the API server refuses is work for it too.
                    let pause = if closed { pause } else { pause.max(interval) };
                    tokio::select! {
                        () = sleep(pause) => {}
                        () = closing(&mut watched), if !closed => {}
                        () = stop.cancelled() => return Delivery::Unwritten,
                    }
                    receiver.mark_changed();
                    continue;
                }
            }
        }
        if closed {
            return Delivery::Written;
        }
        tokio::select! {
            () = sleep(interval) => {}
            // The last status is not held back.
            () = closing(&mut watched) => {}
        }
    }
}

/// Whether trying again cannot help, and why.
async fn end_of(target: &Target, error: &Error) -> Option<Delivery> {
    match error.code()? {
        404 => Some(Delivery::Gone),
        422 => Some(Delivery::Refused),
        // Somebody else wrote meanwhile, or the capture of that UID is gone: only a look tells.
        409 => matches!(target.exists().await, Ok(false)).then_some(Delivery::Gone),
        _ => None,
    }
}

/// Resolves when the sender is gone.
async fn closing(receiver: &mut watch::Receiver<CaptureStatus>) {
    while receiver.changed().await.is_ok() {}
}

#[cfg(test)]
mod tests;
