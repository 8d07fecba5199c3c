//! A Python with what tests need: readers of the files that the trace engine writes, libraries that
//! clients of the gateway use, and Schemathesis, which holds the gateway against its document.

use crate::cache::Cache;
use crate::wheel::Requirements;
use anyhow::Result;
use std::path::PathBuf;

/// What is taken from PyPI. Schemathesis and what makes its data are pinned together, so that its
/// runs are the same everywhere.
const REQUIREMENTS: Requirements = Requirements::Python;

/// The interpreter; `None` when it was not set up yet.
pub fn find(cache: &Cache) -> Option<PathBuf> {
    let python = REQUIREMENTS.place(cache).join("bin/python3");
    python.exists().then_some(python)
}

/// Sees to it that it is there.
pub fn ensure(cache: &Cache) -> Result<()> {
    REQUIREMENTS.environment(cache).map(drop)
}

/// The environment of what the package is held against and made with, made when it is not there.
pub fn package_tools(cache: &Cache) -> Result<PathBuf> {
    Requirements::Package.environment(cache)
}
