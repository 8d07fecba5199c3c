//! Long work, beside which the interpreter runs on.

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use rayon::ThreadPool;

use super::errors::FlopwatchError;

/// How often signals are looked for.
const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The threads that share the work, and the process that has them.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// The process's own threads: a fork takes none along, and its parent's pool would wait for them
/// for ever.
pub(crate) fn pool() -> Result<Arc<ThreadPool>, PyErr> {
    let process = std::process::id();
    let mut known = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((of, pool)) = &*known
        && *of == process
    {
        return Ok(Arc::clone(pool));
    }
    let pool = rayon::ThreadPoolBuilder::new().thread_name(|at| format!("flopwatch-{at}"));
    let pool = Arc::new(pool.build().map_err(|error| PyOSError::new_err(error.to_string()))?);
    // The parent's is not ended: there is nobody in it to be told.
    std::mem::forget(known.replace((process, Arc::clone(&pool))));
    Ok(pool)
}

/// Runs `work` in a thread without the interpreter's lock and gives what it made. A signal's
/// exception, Ctrl-C's above all, is raised within [`SIGNAL_POLL_INTERVAL`]: the thread then ends
/// by itself and its result is dropped. The engine's limits bound how long that takes.
///
/// `tick` is called at each look; what it raises is raised.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    tick: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let pool = pool()?;
    let (sender, mut receiver) = sync_channel(1);
    let task = thread::Builder::new().name("flopwatch".to_owned()).spawn(move || {
        // Whoever asked may have left.
        drop(sender.send(pool.install(work)));
    });
    let task = task.map_err(|error| PyOSError::new_err(error.to_string()))?;
    loop {
        let (back, made) = py.detach(move || {
            let made = receiver.recv_timeout(SIGNAL_POLL_INTERVAL);
            (receiver, made)
        });
        receiver = back;
        match made {
            Ok(made) => return Ok(made),
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals()?;
                if let Some(tick) = tick {
                    tick.call0()?;
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    match task.join() {
        // PyO3 raises a panic as its PanicException.
        Err(panic) => resume_unwind(panic),
        Ok(()) => Err(FlopwatchError::new_err("the work ended without a result")),
    }
}
