//! A Python with what tests need: readers of the files that the trace engine writes, libraries that clients of the gateway use, and
//! Schemathesis, which holds the gateway against its document.

use crate::cache::Cache;
use crate::requirements;
use crate::wheel::Requirements;
use anyhow::Result;
use std::path::PathBuf;

/// What is taken from PyPI. Schemathesis and what makes its data are pinned together, so that its runs are the same everywhere.
const REQUIREMENTS: Requirements = requirements!("python");

/// The interpreter; `None` when it was not set up yet.
pub fn find(cache: &Cache) -> Option<PathBuf> {
    let python = REQUIREMENTS.place(cache).join("bin/python3");
    python.exists().then_some(python)
}

/// Sees to it that it is there.
pub fn ensure(cache: &Cache) -> Result<()> {
    REQUIREMENTS.environment(cache).map(drop)
}

/// What the package is held against, and what makes its wheel: ruff, mypy and maturin, each the one that its field uses.
const PACKAGE_TOOLS: Requirements = requirements!("package");

/// The environment that holds them, made when it is not there.
pub fn package_tools(cache: &Cache) -> Result<PathBuf> {
    PACKAGE_TOOLS.environment(cache)
}
