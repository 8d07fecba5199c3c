//! A sparse local copy of a file at the gateway, which holds the ranges that were downloaded.

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

use super::byte_ranges::{ByteRanges, requests};
use super::{FetchError, FileAddress, Remote};
use crate::gateway::Gateway;

/// Most requests that are under way at once.
const MAX_CONCURRENT_REQUESTS: usize = 4;

/// A temporary file, as long as the one at the gateway. Ranges that were not downloaded are holes,
/// which take no disk space.
///
/// The file has no name, so that the system removes it with the last process that has it open,
/// however that process ends.
#[derive(Debug)]
pub struct Sparse {
    remote: Remote,
    file: Arc<File>,
    /// The link to the file's descriptor in `/proc`, which a forked process has too.
    path: PathBuf,
    present: Mutex<ByteRanges>,
    downloaded_bytes: AtomicU64,
}

impl Sparse {
    /// Looks the file up at the gateway, and downloads its first bytes, at most `first`.
    pub async fn find(gateway: &Gateway, address: FileAddress, first: u64) -> Result<Self, FetchError> {
        let (remote, bytes) = Remote::find(gateway, address, first).await?;
        let file = tempfile::tempfile().and_then(|file| {
            file.set_len(remote.size())?;
            Ok(file)
        });
        let file = file.map_err(|source| io_error(std::env::temp_dir(), source))?;
        let sparse = Self {
            path: PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())),
            file: Arc::new(file),
            remote,
            present: Mutex::default(),
            downloaded_bytes: AtomicU64::new(0),
        };
        sparse.store(0, bytes).await?;
        Ok(sparse)
    }

    /// Size of the whole file in bytes.
    pub const fn size(&self) -> u64 {
        self.remote.size()
    }

    /// Number of bytes that were downloaded so far.
    pub fn downloaded_bytes(&self) -> u64 {
        self.downloaded_bytes.load(Ordering::Relaxed)
    }

    /// The address of the file at the gateway.
    pub const fn address(&self) -> &FileAddress {
        self.remote.address()
    }

    /// Path of the local file, which is valid while this value lives.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The parts of these ranges that were not downloaded, in the order of the file.
    pub fn missing(&self, wanted: &[Range<u64>]) -> Vec<Range<u64>> {
        self.present
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .missing(wanted)
    }

    /// Downloads the parts of these ranges that are missing; the ranges are within the file.
    pub async fn download(&self, gateway: &Gateway, wanted: &[Range<u64>]) -> Result<(), FetchError> {
        let requests = requests(&self.missing(wanted));
        let transfers = requests.into_iter().map(|range| async move {
            let bytes = self.remote.read(gateway, range.clone()).await?;
            self.store(range.start, bytes).await
        });
        // Boxed: the compiler does not see of the streams of closures that they are `Send`.
        let all = futures::stream::iter(transfers)
            .buffer_unordered(MAX_CONCURRENT_REQUESTS)
            .boxed();
        all.try_collect().await
    }

    /// Fills `buffer` with the bytes from `offset` on, which must have been downloaded.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), FetchError> {
        let read = self.file.read_exact_at(buffer, offset);
        read.map_err(|source| io_error(PathBuf::from(self.address().name()), source))
    }

    async fn store(&self, start: u64, bytes: Bytes) -> Result<(), FetchError> {
        let end = start.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let file = Arc::clone(&self.file);
        let written = tokio::task::spawn_blocking(move || file.write_all_at(&bytes, start)).await;
        let written = written.unwrap_or_else(|error| Err(io::Error::other(error)));
        written.map_err(|source| io_error(std::env::temp_dir(), source))?;
        self.downloaded_bytes
            .fetch_add(end.saturating_sub(start), Ordering::Relaxed);
        self.present
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .add(start..end);
        Ok(())
    }
}

fn io_error(path: PathBuf, source: io::Error) -> FetchError {
    FetchError::Io { path, source }
}
