//! Timelines of other nodes' captures, which the gateway hands over for an analysis of several.
//!
//! An analysis runs on one node. What that node lacks the gateway brings: it reviewed the caller's
//! right to every capture, reads the timeline from the agent of its node or from the object store,
//! and puts it here over the connection by which it asks for everything. So an agent never holds a
//! credential for another node's captures, and there is nothing to steal or to replay.
//!
//! - A compromised agent sees the timelines that somebody with the right to both captures had
//!   compared on it, and no others.
//! - Only who has `put` on the nonResourceURL `/v1/inputs` hands anything over: the gateway.
//!   Readers cannot fill the disk or claim that a file is somebody's capture.
//! - A content is taken whole or not at all: its size is known before, its SHA-256 is computed
//!   while it comes, and the floor of free space and the bound of derived artifacts hold.
//! - Whoever asks for an analysis of a capture that was handed over needs the right to its session,
//!   as for any other.
//! - The file has no name: it goes with the last conversion that reads it, ten minutes after it
//!   came, or with the process. What the capture is called stays known for a time, so that a kept
//!   result needs no content.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use flopwatch_api::artifact::{Artifact, TIMELINE};
use futures::{Stream, StreamExt as _};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use super::{Store, StoreError, io_error};
use crate::manifest::{CaptureId, Manifest, ManifestError};

/// How long the content of a timeline is kept for conversions that begin.
const CONTENT_TTL: Duration = Duration::from_mins(10);
/// Longest transfer of a timeline.
const TRANSFER_TIMEOUT: Duration = Duration::from_mins(10);
/// Longest pause within a transfer.
const STALL_TIMEOUT: Duration = Duration::from_mins(1);
/// Most captures whose manifests are remembered.
const MAX_RECEIVED_CAPTURES: usize = 256;

/// The timelines that the gateway uploaded.
#[derive(Debug, Default)]
pub(super) struct Received(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    captures: BTreeMap<CaptureId, Entry>,
    /// Bytes of transfers that are under way.
    incoming_bytes: u64,
}

#[derive(Debug)]
struct Entry {
    manifest: Manifest,
    since: Instant,
    content: Option<Arc<File>>,
}

impl Entry {
    fn timeline(&self) -> Option<&Artifact> {
        self.manifest.artifact(TIMELINE)
    }
}

impl State {
    /// Releases contents that are older than [`CONTENT_TTL`].
    fn expire(&mut self, now: Instant) {
        for entry in self.captures.values_mut() {
            if now.saturating_duration_since(entry.since) >= CONTENT_TTL {
                entry.content = None;
            }
        }
    }

    /// Bytes of contents that are kept and of transfers that are under way.
    fn bytes(&self) -> u64 {
        let here = self.captures.values().filter(|entry| entry.content.is_some());
        here.filter_map(Entry::timeline)
            .map(bytes_of)
            .fold(self.incoming_bytes, u64::saturating_add)
    }

    fn keep(&mut self, manifest: Manifest, file: File, now: Instant) {
        if self.captures.len() >= MAX_RECEIVED_CAPTURES {
            let oldest = self.captures.iter().min_by_key(|(_, entry)| entry.since);
            if let Some(oldest) = oldest.map(|(capture, _)| capture.clone()) {
                self.captures.remove(&oldest);
            }
        }
        let entry = Entry {
            since: now,
            content: Some(Arc::new(file)),
            manifest,
        };
        self.captures.insert(entry.manifest.capture.clone(), entry);
    }
}

impl Received {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes that a transfer reserves; dropping it releases them.
struct Reservation<'a> {
    received: &'a Received,
    bytes: u64,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut state = self.received.locked();
        state.incoming_bytes = state.incoming_bytes.saturating_sub(self.bytes);
    }
}

impl Store {
    /// The manifest of a capture that was received, and its timeline while that is kept.
    pub(crate) fn received(&self, capture: &CaptureId) -> Option<(Manifest, Option<Arc<File>>)> {
        let mut state = self.received.locked();
        state.expire(Instant::now());
        let entry = state.captures.get(capture)?;
        Some((entry.manifest.clone(), entry.content.clone()))
    }

    /// Receives the timeline that `manifest` names. Nothing is kept of a content whose size or
    /// digest is another.
    pub(crate) async fn receive<E: std::fmt::Display>(
        &self,
        manifest: Manifest,
        content: impl Stream<Item = Result<Bytes, E>> + Send + Unpin,
    ) -> Result<(), StoreError> {
        manifest.validate()?;
        let no_timeline = || ManifestError::Artifact(TIMELINE.to_owned());
        let timeline = manifest.artifact(TIMELINE).ok_or_else(no_timeline)?.clone();
        let _reservation = self.reserve(bytes_of(&timeline))?;
        let file = self.unnamed_file().await?;
        let received = timeout(TRANSFER_TIMEOUT, write_checked(&timeline, file, content)).await;
        let slow = |_elapsed| StoreError::InputBroken(format!("it took longer than {TRANSFER_TIMEOUT:?}"));
        let file = received.map_err(slow)??;
        let state = Arc::clone(&self.received.0);
        self.received.locked().keep(manifest, file, Instant::now());
        tokio::spawn(async move {
            tokio::time::sleep(CONTENT_TTL).await;
            state
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .expire(Instant::now());
        });
        Ok(())
    }

    fn reserve(&self, bytes: u64) -> Result<Reservation<'_>, StoreError> {
        let mut state = self.received.locked();
        state.expire(Instant::now());
        let limit = self.options.derived_bytes;
        if state.bytes().saturating_add(bytes) > limit {
            return Err(StoreError::InputTooLarge { bytes, limit });
        }
        self.refuse_below_floor(bytes.saturating_add(state.incoming_bytes))?;
        state.incoming_bytes = state.incoming_bytes.saturating_add(bytes);
        drop(state);
        Ok(Reservation {
            received: &self.received,
            bytes,
        })
    }

    /// A file that no path leads to.
    async fn unnamed_file(&self) -> Result<File, StoreError> {
        let number = self.next_upload.fetch_add(1, Ordering::Relaxed);
        let folder = self.disk.incoming();
        let made = tokio::task::spawn_blocking(move || {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&folder)
                .map_err(io_error(&folder))?;
            let path = folder.join(format!("input-{number}"));
            unnamed(&path).map_err(io_error(&path))
        });
        made.await?
    }
}

fn unnamed(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

/// Writes the content to `file` if it is the artifact.
async fn write_checked<E: std::fmt::Display>(
    artifact: &Artifact,
    file: File,
    mut content: impl Stream<Item = Result<Bytes, E>> + Unpin,
) -> Result<File, StoreError> {
    let differs = |reason: String| StoreError::InputDiffers {
        sha256: artifact.sha256.clone(),
        reason,
    };
    let failed = io_error(Path::new(TIMELINE));
    let expected = bytes_of(artifact);
    let mut file = tokio::fs::File::from_std(file);
    let (mut sha256, mut found) = (Sha256::new(), 0_u64);
    let write = async {
        loop {
            let stalled = |_elapsed| StoreError::InputBroken(format!("nothing came for {STALL_TIMEOUT:?}"));
            let Some(piece) = timeout(STALL_TIMEOUT, content.next()).await.map_err(stalled)? else {
                break;
            };
            let piece = piece.map_err(|error| StoreError::InputBroken(error.to_string()))?;
            found = found.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
            if found > expected {
                return Err(differs(format!("it is longer than {expected} bytes")));
            }
            sha256.update(&piece);
            file.write_all(&piece).await.map_err(io_error(Path::new(TIMELINE)))?;
        }
        Ok(())
    };
    write.await?;
    if found != expected {
        return Err(differs(format!("{found} bytes came instead of {expected}")));
    }
    let digest = hex::encode(sha256.finalize());
    if digest != artifact.sha256 {
        return Err(differs(format!("its content has the SHA-256 {digest}")));
    }
    file.flush().await.map_err(failed)?;
    Ok(file.into_std().await)
}

fn bytes_of(artifact: &Artifact) -> u64 {
    u64::try_from(artifact.bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use flopwatch_api::artifact::Output;
    use flopwatch_api::capture::SessionReference;
    use jiff::Timestamp;

    use super::*;
    use crate::manifest::MANIFEST_VERSION;

    fn manifest(name: &str) -> Manifest {
        Manifest {
            version: MANIFEST_VERSION,
            capture: CaptureId {
                namespace: "team".to_owned(),
                name: name.to_owned(),
                uid: "uid".to_owned(),
            },
            session: SessionReference::default(),
            created: Timestamp::UNIX_EPOCH,
            captured: Vec::new(),
            artifacts: vec![Artifact {
                name: TIMELINE.to_owned(),
                type_: Output::Timeline,
                bytes: 3,
                sha256: "0".repeat(64),
                media_type: String::new(),
                sensitive: false,
            }],
        }
    }

    #[test]
    fn a_content_ends_with_its_lifetime_and_its_name_stays() {
        let (mut state, now) = (State::default(), Instant::now());
        state.keep(manifest("a"), tempfile::tempfile().unwrap(), now);
        state.expire(now + CONTENT_TTL.saturating_sub(Duration::from_secs(1)));
        assert_eq!(state.bytes(), 3);
        state.expire(now + CONTENT_TTL);
        assert_eq!((state.bytes(), state.captures.len()), (0, 1));
        assert!(state.captures.values().all(|entry| entry.content.is_none()));
    }

    #[test]
    fn the_oldest_name_is_forgotten_first() {
        let (mut state, now) = (State::default(), Instant::now());
        for at in 0..=MAX_RECEIVED_CAPTURES {
            let since = now + Duration::from_secs(u64::try_from(at).unwrap());
            state.keep(manifest(&format!("c{at}")), tempfile::tempfile().unwrap(), since);
        }
        assert_eq!(state.captures.len(), MAX_RECEIVED_CAPTURES);
        assert!(!state.captures.contains_key(&manifest("c0").capture));
    }
}
