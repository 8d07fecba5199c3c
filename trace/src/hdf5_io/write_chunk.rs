//! The one place that calls HDF5's C API: stores a chunk that is deflated already.
#![allow(unsafe_code, reason = "H5Dwrite_chunk has no safe form; the block has its proof")]

use hdf5::Dataset;

/// Stores `bytes`, which have gone through all of the dataset's filters, as the chunk of a list
/// that begins at `first`.
pub(super) fn write_chunk(dataset: &Dataset, first: usize, bytes: &[u8]) -> hdf5::Result<()> {
    if dataset.ndim() != 1 {
        return Err("only lists are written in chunks".into());
    }
    let offset = [u64::try_from(first).unwrap_or(u64::MAX)];
    // SAFETY: the dataset's id is alive as long as `dataset`; `offset` has one element for the one
    // dimension that was checked above; the library reads `bytes.len()` bytes from `bytes`, which
    // are initialised, and keeps neither pointer. The library's lock is held by `sync`.
    let status = hdf5::sync::sync(|| unsafe {
        hdf5_sys::h5d::H5Dwrite_chunk(
            dataset.id(),
            hdf5_sys::h5p::H5P_DEFAULT,
            0,
            offset.as_ptr(),
            bytes.len(),
            bytes.as_ptr().cast(),
        )
    });
    if status < 0 {
        return Err(match hdf5::Error::query() {
            Ok(error) | Err(error) => error,
        });
    }
    Ok(())
}
