//! The threads that wait for the cluster.

use std::mem::forget;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Handle, Runtime};

/// They wait, and do little else.
const WORKER_THREADS: usize = 2;

static RUNTIME: Mutex<Option<(u32, Runtime)>> = Mutex::new(None);

/// The process's own runtime: a fork takes no threads along, and would wait for its parent's for
/// ever.
pub(super) fn handle() -> PyResult<Handle> {
    let process = std::process::id();
    let mut known = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((of, runtime)) = &*known
        && *of == process
    {
        return Ok(runtime.handle().clone());
    }
    // One provider for every TLS connection; the process may have chosen it.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime
        .worker_threads(WORKER_THREADS)
        .thread_name("flopwatch-client")
        .enable_all();
    let runtime = runtime.build().map_err(|error| PyOSError::new_err(error.to_string()))?;
    let handle = runtime.handle().clone();
    // The parent's is not ended: there is nobody in it to be told.
    forget(known.replace((process, runtime)));
    Ok(handle)
}
