//! NVTX ranges. Without a profiler that listens, each is a jump.

use std::borrow::Cow;

use pyo3::prelude::*;

/// Begins a range of this thread.
#[pyfunction]
pub(crate) fn range_push(name: &str) {
    nvtx::range_push!("{}", without_nul(name));
}

/// Ends the range of this thread that began last.
#[pyfunction]
pub(crate) fn range_pop() {
    nvtx::range_pop!();
}

/// Begins a range of the process; gives its number.
#[pyfunction]
pub(crate) fn range_start(name: &str) -> i32 {
    nvtx::range_start!("{}", without_nul(name))
}

/// Ends the range of the process of that number.
#[pyfunction]
pub(crate) fn range_end(range: i32) {
    nvtx::range_end!(range);
}

/// A C string ends at the first NUL.
fn without_nul(name: &str) -> Cow<'_, str> {
    if name.contains('\0') {
        Cow::Owned(name.replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(name)
    }
}
