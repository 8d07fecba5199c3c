//! Writes a capture's status to the API server: server-side apply, only when it changed, at most every two seconds.

use std::time::Duration;

use flopwatch_api::capture::{Capture, CaptureStatus};
use flopwatch_api::{AGENT_FIELD_MANAGER, GROUP, VERSION};
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::DefaultBackoff;
use kube::{Client, ResourceExt};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, warn};

/// Shortest time between two writes of one capture's status, but for the last one.
const WRITE_INTERVAL: Duration = Duration::from_secs(2);
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
    /// Whether trying again cannot help: the object is gone or another one, or the status itself is refused.
    fn is_final(&self) -> bool {
        match self {
            Self::Api { source, .. } => {
                matches!(source.as_ref(), kube::Error::Api(status) if [400, 403, 404, 409, 422].contains(&status.code))
            }
            Self::Timeout(_) => false,
        }
    }
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

/// The writer of one live capture. Values that come faster than it writes are merged; the last one is always written.
#[derive(Debug)]
pub struct Writer {
    sender: watch::Sender<CaptureStatus>,
    task: JoinHandle<()>,
}

impl Writer {
    /// Starts it. `written` is what the API server holds already. It gives up only when `stop` is cancelled or the object
    /// is gone.
    pub fn start(target: Target, written: CaptureStatus, stop: CancellationToken) -> Self {
        let (sender, receiver) = watch::channel(written.clone());
        let task = tokio::spawn(write_all(target, receiver, written, stop).in_current_span());
        Self { sender, task }
    }

    /// Hands over a status to write.
    pub fn write(&self, status: CaptureStatus) {
        self.sender.send_replace(status);
    }

    /// Writes what was handed over last, and ends.
    pub async fn finish(self) {
        drop(self.sender);
        if let Err(error) = self.task.await {
            warn!(%error, "the writer of a capture's status failed");
        }
    }
}

async fn write_all(
    target: Target,
    mut receiver: watch::Receiver<CaptureStatus>,
    mut written: CaptureStatus,
    stop: CancellationToken,
) {
    let mut backoff = DefaultBackoff::default();
    loop {
        // An error means that the sender is gone: what was sent last is still to be written.
        let closed = receiver.changed().await.is_err();
        let status = receiver.borrow_and_update().clone();
        if status != written {
            match target.apply(&status).await {
                Ok(()) => {
                    debug!(capture = %target.name, "wrote the status");
                    written = status;
                    backoff.reset();
                }
                Err(error) if error.is_final() => {
                    warn!(capture = %target.name, error = %crate::failure::chain(&error), "gave up writing the status");
                    return;
                }
                Err(error) => {
                    warn!(capture = %target.name, error = %crate::failure::chain(&error), "writing the status failed, trying again");
                    let pause = backoff.next().unwrap_or(WRITE_INTERVAL);
                    tokio::select! {
                        () = sleep(pause) => {}
                        () = stop.cancelled() => return,
                    }
                    receiver.mark_changed();
                    continue;
                }
            }
        }
        if closed {
            return;
        }
        let mut watched = receiver.clone();
        tokio::select! {
            () = sleep(WRITE_INTERVAL) => {}
            // The last status is not held back.
            () = closing(&mut watched) => {}
        }
    }
}

/// Resolves when the sender is gone.
async fn closing(receiver: &mut watch::Receiver<CaptureStatus>) {
    while receiver.changed().await.is_ok() {}
}
