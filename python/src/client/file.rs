//! A file at the gateway, read where somebody looks.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use flopwatch_cli::fetch::Sparse;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::call::Call;
use super::reach::Reach;

/// What is read at the least, and the unit of it.
const PAGE: u64 = 64 << 10;
/// What is read at the most where one part after the other is.
const MOST: u64 = 4 << 20;

/// A file of a capture.
#[pyclass(frozen, module = "flopwatch._native")]
pub(crate) struct RemoteFile {
    reach: Arc<Reach>,
    sparse: Arc<Sparse>,
    ahead: Mutex<Ahead>,
}

/// Where the last part ended, and how much is read if the next one begins there.
#[derive(Default)]
struct Ahead {
    end: u64,
    bytes: u64,
}

impl RemoteFile {
    pub(super) fn new(reach: Arc<Reach>, sparse: Arc<Sparse>) -> Self {
        Self {
            reach,
            sparse,
            ahead: Mutex::default(),
        }
    }

    /// These bytes and those behind them that are read with them, the more the longer one part after the other is.
    fn with_ahead(&self, offset: u64, length: u64) -> Range<u64> {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        ahead.bytes = if ahead.end == offset && offset > 0 {
            ahead.bytes.saturating_mul(2).clamp(PAGE, MOST)
        } else {
            PAGE
        };
        let end = offset.saturating_add(length.max(ahead.bytes));
        let end = end.next_multiple_of(PAGE).min(self.sparse.size());
        ahead.end = end;
        offset / PAGE * PAGE..end
    }
}

#[pymethods]
impl RemoteFile {
    /// Size of the file in bytes.
    #[getter]
    fn size(&self) -> u64 {
        self.sparse.size()
    }

    /// How many bytes came so far.
    #[getter]
    fn moved(&self) -> u64 {
        self.sparse.moved()
    }

    /// The bytes from `offset` on, fewer at the end of the file; `None` where some of them are not here yet.
    fn held<'py>(&self, py: Python<'py>, offset: u64, length: u64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let end = offset.saturating_add(length).min(self.sparse.size());
        let part = offset..end;
        if part.is_empty() {
            return Ok(Some(PyBytes::new(py, &[])));
        }
        if !self.sparse.missing(std::slice::from_ref(&part)).is_empty() {
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

    /// Brings these bytes; with `ahead` some behind them, too.
    #[pyo3(signature = (offset, length, *, ahead))]
    fn bring(&self, offset: u64, length: u64, ahead: bool) -> PyResult<Call> {
        let size = self.sparse.size();
        let part = if ahead {
            self.with_ahead(offset, length)
        } else {
            offset.min(size)..offset.saturating_add(length).min(size)
        };
        let (reach, sparse) = (Arc::clone(&self.reach), Arc::clone(&self.sparse));
        Call::begin(|_teller| async move { bring(&reach, &sparse, vec![part]).await })
    }
}

/// Brings parts of a file. Where all of them are here nobody is asked.
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
            async move { sparse.bring(&gateway, &parts).await }
        })
        .await
}
