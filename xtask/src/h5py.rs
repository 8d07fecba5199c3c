//! A Python with h5py, in which tests read the files that the trace engine writes.

use crate::cache::Cache;
use crate::wheel;
use anyhow::Result;
use std::path::PathBuf;

/// What is taken from PyPI.
const WHEELS: &[&str] = &["h5py==3.16.0", "numpy==2.4.6"];
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
