//! `RemoteFile` of the Python package: a file at the gateway, of which only those parts are
//! downloaded that the program reads.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use flopwatch_cli::fetch::Sparse;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::call::Call;
use super::reach::Reach;

/// Fewest bytes of a download with read-ahead. It begins and ends at a multiple of this, or at the
/// end of the file.
const MIN_READ_BYTES: u64 = 64 << 10;
/// Bytes up to which the downloads of a sequence of reads grow. A single read may ask for more.
const MAX_READ_BYTES: u64 = 4 << 20;

/// A file of a capture at the gateway.
#[pyclass(frozen, module = "flopwatch._native")]
pub(crate) struct RemoteFile {
    /// The cluster, whose gateway is asked for bytes.
    reach: Arc<Reach>,
    /// The copy of the file on this machine, with holes for the bytes that are not downloaded.
    sparse: Arc<Sparse>,
    read_ahead: Mutex<ReadAhead>,
}

/// What the next download with read-ahead is decided from.
#[derive(Default)]
struct ReadAhead {
    /// Offset at which the last download ended. A read that begins there continues a sequence.
    end: u64,
    /// Bytes that the last download was to have at least.
    bytes: u64,
}

impl RemoteFile {
    pub(super) fn new(reach: Arc<Reach>, sparse: Arc<Sparse>) -> Self {
        Self {
            reach,
            sparse,
            read_ahead: Mutex::default(),
        }
    }

    /// The range to download for a read of `length` bytes from `offset`. A read that continues the
    /// one before gets a download of twice the bytes, up to [`MAX_READ_BYTES`].
    fn range_with_read_ahead(&self, offset: u64, length: u64) -> Range<u64> {
        let mut read_ahead = self.read_ahead.lock().unwrap_or_else(PoisonError::into_inner);
        read_ahead.bytes = if read_ahead.end == offset && offset > 0 {
            read_ahead.bytes.saturating_mul(2).clamp(MIN_READ_BYTES, MAX_READ_BYTES)
        } else {
            MIN_READ_BYTES
        };
        let end = offset.saturating_add(length.max(read_ahead.bytes));
        let end = end.next_multiple_of(MIN_READ_BYTES).min(self.sparse.size());
        read_ahead.end = end;
        offset / MIN_READ_BYTES * MIN_READ_BYTES..end
    }
}

#[pymethods]
impl RemoteFile {
    /// Size of the file in bytes.
    #[getter]
    fn size(&self) -> u64 {
        self.sparse.size()
    }

    /// Bytes of the file that were downloaded so far.
    #[getter]
    fn moved(&self) -> u64 {
        self.sparse.downloaded_bytes()
    }

    /// The `length` bytes from `offset` on, fewer at the end of the file; `None` where some of them
    /// are not downloaded.
    fn held<'py>(&self, py: Python<'py>, offset: u64, length: u64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let end = offset.saturating_add(length).min(self.sparse.size());
        let range = offset..end;
        if range.is_empty() {
            return Ok(Some(PyBytes::new(py, &[])));
        }
        if !self.sparse.missing(std::slice::from_ref(&range)).is_empty() {
            return Ok(None);
        }
        let length = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let read = PyBytes::new_with(py, length, |buffer| {
            self.sparse
                .read_at(buffer, offset)
                .map_err(|error| super::failure::Failure::from(error).raised(py))
        });
        read.map(Some)
    }

    /// Downloads `length` bytes from `offset` on; with `ahead` some behind them too, more of them
    /// the longer a sequence of reads is.
    #[pyo3(signature = (offset, length, *, ahead))]
    fn bring(&self, offset: u64, length: u64, ahead: bool) -> PyResult<Call> {
        let size = self.sparse.size();
        let range = if ahead {
            self.range_with_read_ahead(offset, length)
        } else {
            offset.min(size)..offset.saturating_add(length).min(size)
        };
        let (reach, sparse) = (Arc::clone(&self.reach), Arc::clone(&self.sparse));
        Call::begin(|_progress| async move { bring(&reach, &sparse, vec![range]).await })
    }
}

/// Downloads parts of a file. The gateway is not asked where all of them are downloaded already.
pub(super) async fn bring(
    reach: &Reach,
    sparse: &Arc<Sparse>,
    parts: Vec<Range<u64>>,
) -> Result<(), super::failure::Failure> {
    if sparse.missing(&parts).is_empty() {
        return Ok(());
    }
    let parts = Arc::new(parts);
    reach
        .ask(|gateway| {
            let (sparse, parts) = (Arc::clone(sparse), Arc::clone(&parts));
            async move { sparse.download(&gateway, &parts).await }
        })
        .await
}
