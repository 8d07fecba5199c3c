//! A Python with what tests need: readers of the files that the trace engine writes, libraries that clients of the gateway use, and
//! Schemathesis, which holds the gateway against its document.

use crate::cache::Cache;
use crate::wheel;
use anyhow::Result;
use std::path::PathBuf;

/// What is taken from PyPI. Schemathesis and what makes its data are pinned together, so that its runs are the same everywhere.
const WHEELS: &[&str] = &[
    "h5py==3.16.0",
    "numpy==2.4.6",
    "pandas==3.1.1",
    "pyarrow==26.0.1",
    "perfetto==0.59.1",
    "protobuf==7.36.2",
    "schemathesis==4.32.5",
    "hypothesis==6.170.15",
    "jsonschema_rs==0.60.3",
    "python-socketio==5.18.1",
    "requests==2.34.2",
    "websocket-client==1.9.2",
];
const NAME: &str = "python";

/// The interpreter; `None` when it was not set up yet.
pub(crate) fn find(cache: &Cache) -> Option<PathBuf> {
    let python = cache.place(NAME, WHEELS).join("bin/python3");
    python.exists().then_some(python)
}

/// Sees to it that it is there.
pub(crate) fn ensure(cache: &Cache) -> Result<()> {
    wheel::environment(cache, NAME, WHEELS).map(drop)
}
