//! A file at the gateway of which those parts are here that somebody asked for.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};

use super::parts::{Parts, requests};
use super::{FetchError, Place, Remote};
use crate::gateway::Gateway;

/// Requests that are under way at once.
const AT_ONCE: usize = 4;

/// A temporary file, as long as the one at the gateway. What of it is not here yet are holes, which take no disk.
///
/// The file has no name, so that the system removes it with the last process that has it, however that ends: a thread
/// that still serves it when the program ends has no say in it.
#[derive(Debug)]
pub struct Sparse {
    remote: Remote,
    file: Arc<File>,
    /// The link to its descriptor, which a fork has too.
    path: PathBuf,
    held: Mutex<Parts>,
    moved: AtomicU64,
}

impl Sparse {
    /// Finds the file, and brings its first bytes.
    pub async fn find(gateway: &Gateway, place: Place, first: u64) -> Result<Self, FetchError> {
        let (remote, bytes) = Remote::find(gateway, place, first).await?;
        let file = tempfile::tempfile().and_then(|file| {
            file.set_len(remote.size())?;
            Ok(file)
        });
        let file = file.map_err(|source| io_error(std::env::temp_dir(), source))?;
        let sparse = Self {
            path: PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())),
            file: Arc::new(file),
            remote,
            held: Mutex::default(),
            moved: AtomicU64::new(0),
        };
        sparse.keep(0, bytes).await?;
        Ok(sparse)
    }

    /// Size of the whole file in bytes.
    pub const fn size(&self) -> u64 {
        self.remote.size()
    }

    /// How many bytes came from the gateway so far.
    pub fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    /// Which file it is.
    pub const fn place(&self) -> &Place {
        self.remote.place()
    }

    /// Where this process finds it, while this value lives.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What of these parts is not here, in the order of the file.
    pub fn missing(&self, wanted: &[Range<u64>]) -> Vec<Range<u64>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).missing(wanted)
    }

    /// Brings these parts here, as far as they are not; they are within the file.
    pub async fn bring(&self, gateway: &Gateway, wanted: &[Range<u64>]) -> Result<(), FetchError> {
        let requests = requests(&self.missing(wanted));
        let transfers = requests.into_iter().map(|range| async move {
            let bytes = self.remote.read(gateway, range.clone()).await?;
            self.keep(range.start, bytes).await
        });
        // Boxed: the compiler does not see of the streams of closures that they are `Send`.
        let all = futures::stream::iter(transfers).buffer_unordered(AT_ONCE).boxed();
        all.try_collect().await
    }

    /// Reads bytes that are here.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), FetchError> {
        let read = self.file.read_exact_at(buffer, offset);
        read.map_err(|source| io_error(PathBuf::from(self.place().name()), source))
    }

    async fn keep(&self, start: u64, bytes: Bytes) -> Result<(), FetchError> {
        let end = start.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let file = Arc::clone(&self.file);
        let written = tokio::task::spawn_blocking(move || file.write_all_at(&bytes, start)).await;
        let written = written.unwrap_or_else(|error| Err(io::Error::other(error)));
        written.map_err(|source| io_error(std::env::temp_dir(), source))?;
        self.moved.fetch_add(end.saturating_sub(start), Ordering::Relaxed);
        self.held.lock().unwrap_or_else(PoisonError::into_inner).add(start..end);
        Ok(())
    }
}

fn io_error(path: PathBuf, source: io::Error) -> FetchError {
    FetchError::Io { path, source }
}
