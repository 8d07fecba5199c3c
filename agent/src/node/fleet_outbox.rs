//! Rows of the fleet on their way from captures that ended to the object store.
//!
//! A capture's row is made of its final status, once the API server has that: what ended twice, by
//! two agents, ended once. Until then the journal holds what identifies it, and an agent that comes
//! after finds it there ([`noted::recover`]). The files wait in a folder of the node and are copied
//! in the background; no capture and no status waits for them.

pub mod noted;
mod spool;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flopwatch_api::capture::{Capture, CaptureStatus};
use flopwatch_artifacts::object_store::{Bucket, ObjectStoreError};
use flopwatch_fleet::{CaptureRow, FilePath, PathError, Table, WriteError, write_captures};
use flopwatch_pipeline::disk::Floor;
use flopwatch_pipeline::failure::chain;
use flopwatch_pipeline::fleet_rows::ROWS;
use kube::ResourceExt as _;
use tokio::sync::Notify;
use tokio::task::JoinError;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::fleet_rows::{concluded, identity};
use crate::metrics::{FleetMetrics, FleetResult, Metrics};
use crate::node::pods::{self, Pods};
use crate::node::{Options, spool as captures};
use spool::{Spool, SpoolError, Waiting};

/// Most files that wait.
const MAX_FILES: usize = 10_000;
/// Longest copy of one file.
const COPY_TIMEOUT: Duration = Duration::from_mins(1);
/// Pause before the first new try; each is twice as long as the one before.
const MIN_RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// Longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// Why the row of a capture was not kept.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// The capture's row has no path in the object store.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The capture's row cannot be written as a Parquet file.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The folder of waiting files does not take it.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// The node's disk is full.
    #[error("{0}")]
    Full(String),
}

/// The way of fleet rows from this node to the object store.
#[derive(Debug)]
pub struct Fleet {
    spool: Arc<Spool>,
    floor: Floor,
    bucket: Bucket,
    /// The cluster's name.
    cluster: String,
    metrics: FleetMetrics,
    added: Notify,
}

impl Fleet {
    /// Opens the folder of waiting files, which may have `bytes`; the disk keeps `floor` free.
    pub fn open(
        folder: &Path,
        bytes: u64,
        floor: Floor,
        (bucket, cluster): (Bucket, String),
        metrics: &Metrics,
    ) -> io::Result<Self> {
        let metrics = metrics.fleet().clone();
        let (spool, removed) = Spool::open(folder.to_owned(), MAX_FILES, bytes)?;
        metrics.files(FleetResult::Dropped, removed);
        metrics.waiting(spool.list()?.len());
        Ok(Self {
            spool: Arc::new(spool),
            floor,
            bucket,
            cluster,
            metrics,
            added: Notify::new(),
        })
    }

    /// What identifies a capture of the node of that name, as far as its pod is there; `known` of
    /// it where it is not.
    pub(super) fn identity(
        &self,
        (node, pods): (&str, &Pods),
        capture: &Capture,
        known: Option<&CaptureRow>,
    ) -> CaptureRow {
        let namespace = capture.namespace().unwrap_or_default();
        let pod = pods::find(pods, &namespace, &capture.spec.pod_ref);
        let found = identity(&self.cluster, node, capture, pod.as_deref());
        match known {
            Some(known) if pod.is_none() => known.clone(),
            Some(known) => CaptureRow {
                window_start: known.window_start,
                window_ns: known.window_ns,
                ..found
            },
            None => found,
        }
    }

    /// Says that the rows of a capture are lost.
    pub(super) fn without_rows(&self, why: &str) {
        warn!(why, "the capture has no rows of the fleet");
        self.metrics.files(FleetResult::Dropped, 1);
    }

    /// Keeps the row of a capture whose last status the API server has, with the rows in its
    /// `folder` where it succeeded. Safe to repeat.
    pub(super) async fn settle(&self, row: CaptureRow, status: &CaptureStatus, folder: &Path) {
        let (spool, floor, status) = (Arc::clone(&self.spool), self.floor, status.clone());
        let rows = folder.join(ROWS);
        let kept = blocking(move || keep(&spool, floor, row, &status, &rows)).await;
        match kept {
            Ok(Ok(0)) => {}
            Ok(Ok(files)) => {
                warn!(
                    files,
                    "files of the fleet made room for newer ones, or were too large, and are lost"
                );
                self.metrics.files(FleetResult::Dropped, files);
            }
            Ok(Err(error)) => self.without_row(&chain(&error)),
            Err(error) => self.without_row(&error.to_string()),
        }
        self.count().await;
        self.added.notify_one();
    }

    fn without_row(&self, why: &str) {
        warn!(why, "the row of a capture is missing from the fleet");
        self.metrics.files(FleetResult::Dropped, 1);
    }

    /// What waits now; tells the gauge.
    async fn count(&self) -> Vec<Waiting> {
        let spool = Arc::clone(&self.spool);
        let listed = blocking(move || spool.list()).await;
        match listed.map_err(io::Error::other).flatten() {
            Ok(waiting) => {
                self.metrics.waiting(waiting.len());
                waiting
            }
            Err(error) => {
                warn!(%error, "the waiting files of the fleet cannot be listed");
                Vec::new()
            }
        }
    }

    /// Copies what waits, one file after the other; ends with the first that the store does not
    /// take.
    async fn copy(&self) -> Result<(), ObjectStoreError> {
        let waiting = self.count().await;
        let mut left = waiting.len();
        for one in waiting {
            let wanted = one.clone();
            let content = blocking(move || wanted.read()).await;
            match content.map_err(io::Error::other).flatten() {
                Ok(Some(content)) => {
                    self.put(&one, content).await?;
                    self.metrics.files(FleetResult::Stored, 1);
                }
                // It made room for another.
                Ok(None) => {}
                Err(error) => {
                    warn!(path = %one.path, %error, "a waiting file of the fleet cannot be read and is lost");
                    self.metrics.files(FleetResult::Dropped, 1);
                }
            }
            if let Err(error) = one.remove() {
                warn!(path = %one.path, %error, "a file of the fleet stays on the node and is copied again");
            }
            left = left.saturating_sub(1);
            self.metrics.waiting(left);
        }
        self.count().await;
        Ok(())
    }

    /// Copies waiting files until `stop` is told.
    pub async fn keep_copying(&self, stop: &CancellationToken) {
        let copying = async {
            let mut pause = MIN_RETRY_INTERVAL;
            loop {
                match self.copy().await {
                    Ok(()) => {
                        pause = MIN_RETRY_INTERVAL;
                        self.added.notified().await;
                    }
                    Err(error) => {
                        self.metrics.files(FleetResult::Failed, 1);
                        warn!(error = %chain(&error), ?pause, "the object store did not take a file of the fleet, trying again");
                        sleep(pause).await;
                        pause = LONGEST_PAUSE.min(pause * 2);
                    }
                }
            }
        };
        stop.run_until_cancelled(copying).await;
    }

    async fn put(&self, one: &Waiting, content: Vec<u8>) -> Result<(), ObjectStoreError> {
        let path = one.path.to_string();
        let put = timeout(COPY_TIMEOUT, self.bucket.put_fleet_file(&path, content.into())).await;
        put.map_err(|_elapsed| ObjectStoreError::Slow {
            what: "writing",
            limit: COPY_TIMEOUT,
        })?
    }
}

/// The way of fleet rows to the object store, where there is one and they are not switched off.
pub(super) fn open(options: &Options, store: Option<(Bucket, String)>, metrics: &Metrics) -> io::Result<Option<Fleet>> {
    let Some(store) = store.filter(|_| options.fleet_bytes > 0) else {
        return Ok(None);
    };
    let folder = options.data_dir.join("fleet");
    Fleet::open(&folder, options.fleet_bytes, options.floor(), store, metrics).map(Some)
}

/// Runs what waits for the disk.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    tokio::task::spawn_blocking(work).await
}

/// Writes the files of a capture; gives how many others, or of its own, were lost over it.
fn keep(spool: &Spool, floor: Floor, row: CaptureRow, status: &CaptureStatus, rows: &Path) -> Result<usize, Error> {
    // Rows are of a window, which an agent that lost the journal does not know.
    let has_rows = status.has_succeeded() && row.window_start != 0;
    let content = has_rows.then(|| std::fs::read(rows).ok()).flatten();
    let row = concluded(row, status, content.is_some());
    captures::check_free(spool.folder(), floor).map_err(|failure| Error::Full(failure.message))?;
    let path = |table| FilePath::new(table, row.window_start, &row.namespace, &row.capture_uid);
    let mut files = Vec::new();
    if let Some(content) = content {
        files.push((path(Table::Rows)?, content));
    }
    files.push((path(Table::Captures)?, write_captures(std::slice::from_ref(&row))?));
    match spool.add(&files) {
        // The capture itself is small.
        Err(SpoolError::TooLarge { bytes, most }) if files.len() > 1 => {
            warn!(bytes, most, "the rows of a capture are too large to wait and are lost");
            let row = concluded(row, status, false);
            let path = FilePath::new(Table::Captures, row.window_start, &row.namespace, &row.capture_uid)?;
            Ok(spool.add(&[(path, write_captures(&[row])?)])? + 1)
        }
        other => Ok(other?),
    }
}
