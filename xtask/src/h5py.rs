//! A Python with h5py, pyarrow and Perfetto's own schema, in which tests read the files that the trace engine writes.

use crate::cache::Cache;
use crate::wheel;
use anyhow::Result;
use std::path::PathBuf;

/// What is taken from PyPI.
const WHEELS: &[&str] = &[
    "h5py==3.16.0",
    "numpy==2.4.6",
    "pyarrow==26.0.1",
    "perfetto==0.59.1",
    "protobuf==7.36.2",
];
const NAME: &str = "h5py";

/// The interpreter; `None` when it was not set up yet.
pub(crate) fn find(cache: &Cache) -> Option<PathBuf> {
    let python = cache.place(NAME, WHEELS).join("bin/python3");
    python.exists().then_some(python)
}

/// Sees to it that it is there.
pub(crate) fn ensure(cache: &Cache) -> Result<()> {
    wheel::environment(cache, NAME, WHEELS).map(drop)
}
