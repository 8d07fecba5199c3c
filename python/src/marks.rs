//! Marks in the streams of PyTorch and CuPy.
#![allow(unsafe_code, reason = "the streams' handles come from Python")]

use flopwatch_cuda as cuda;
use pyo3::prelude::*;

use crate::errors::FlopwatchError;

/// Marks of a device.
#[pyclass(frozen, module = "flopwatch._native")]
pub(crate) struct Marks(cuda::Marks);

/// A place in a stream.
#[pyclass(frozen, module = "flopwatch._native")]
pub(crate) struct Mark(cuda::Mark);

#[pymethods]
impl Marks {
    #[new]
    fn new(device: u32) -> PyResult<Self> {
        let marks = cuda::Marks::of(device).map_err(|error| FlopwatchError::new_err(error.to_string()))?;
        Ok(Self(marks))
    }

    /// A mark in the stream of that handle; none where none can be made there and then.
    fn mark(&self, stream: usize) -> Option<Mark> {
        // SAFETY: the package gives handles that the framework has just named as those of its
        // current stream.
        unsafe { self.0.mark(stream) }.map(Mark)
    }
}

#[pymethods]
impl Mark {
    /// Time in ms to a later mark; none while the GPU has not come there.
    fn elapsed_ms(&self, later: &Self) -> Option<f64> {
        self.0.elapsed_ms(&later.0)
    }
}
