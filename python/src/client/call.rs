//! Something that is asked of a cluster, which whoever asked waits for in a thread or in an event
//! loop.

use std::future::Future;
use std::io::{PipeReader, PipeWriter, Write as _, pipe};
use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use tokio::task::AbortHandle;

use super::failure::Failure;
use super::runtime;
use crate::errors::FlopwatchError;

/// How often signals are looked for.
const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What came of it, which is made into an object of Python where the interpreter is at hand.
type PythonResult = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// It begins at once, and ends by itself, with [`Call::cancel`], or with an exception in
/// [`Call::wait`].
#[pyclass(frozen, module = "flopwatch._native")]
pub(crate) struct Call {
    shared: Arc<Shared>,
    task: AbortHandle,
    process: u32,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    progress: String,
    made: Option<PythonResult>,
    has_ended: bool,
    /// Holds a byte once it ended, where somebody asked for it. Both ends are here: whoever writes
    /// into one that nobody can read gets a signal.
    ending: Option<(PipeReader, PipeWriter)>,
}

impl State {
    fn end(&mut self) {
        self.has_ended = true;
        if let Some((_, writer)) = &mut self.ending {
            // There is room in it.
            drop(writer.write_all(&[0]));
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it ended within [`SIGNAL_POLL_INTERVAL`].
    fn wait(&self) -> bool {
        let until = Instant::now() + SIGNAL_POLL_INTERVAL;
        let mut state = self.state();
        while !state.has_ended {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.ended.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// Who is told what is being done.
#[derive(Clone)]
pub(super) struct ProgressReporter(Arc<Shared>);

impl ProgressReporter {
    pub(super) fn report(&self, words: String) {
        self.0.state().progress = words;
    }
}

/// Tells of the end, however it comes: with a result, a panic, or because it was cancelled.
struct EndGuard(Arc<Shared>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.0.state().end();
        self.0.ended.notify_all();
    }
}

impl Call {
    /// Begins what `work` makes, which may tell what it does.
    pub(super) fn begin<T, W>(work: impl FnOnce(ProgressReporter) -> W) -> PyResult<Self>
    where
        T: for<'py> IntoPyObject<'py> + Send + 'static,
        W: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let shared = Arc::new(Shared::default());
        let work = work(ProgressReporter(Arc::clone(&shared)));
        let ending = EndGuard(Arc::clone(&shared));
        let task = runtime::handle()?.spawn(async move {
            let result = work.await;
            let made: PythonResult = Box::new(move |py| match result {
                Ok(made) => made.into_py_any(py),
                Err(failure) => Err(failure.raised(py)),
            });
            ending.0.state().made = Some(made);
            drop(ending);
        });
        Ok(Self {
            shared,
            task: task.abort_handle(),
            process: std::process::id(),
        })
    }
}

#[pymethods]
impl Call {
    /// Waits for the end and gives what came of it. `tick` is called some twenty times a second.
    /// What it raises, and a signal's exception, is raised, and ends the call.
    #[pyo3(signature = (tick = None))]
    fn wait(&self, py: Python<'_>, tick: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        if self.process != std::process::id() {
            return Err(FlopwatchError::new_err(
                "another process began this, which is waited for there",
            ));
        }
        while !py.detach(|| self.shared.wait()) {
            let looked = py.check_signals();
            let looked = looked.and_then(|()| tick.map_or(Ok(()), |tick| tick.call0().map(drop)));
            if let Err(error) = looked {
                self.task.abort();
                return Err(error);
            }
        }
        self.result(py)
    }

    /// What came of it, once it ended. It is given once.
    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let made = self.shared.state().made.take();
        made.map_or_else(
            || Err(FlopwatchError::new_err("the work ended without a result")),
            |made| made(py),
        )
    }

    /// A file descriptor that can be read once it ended, and is there as long as this is. An event
    /// loop waits for it: threads of this module never run Python, as they would be ended within it
    /// where the interpreter ends.
    fn descriptor(&self) -> PyResult<RawFd> {
        let mut state = self.shared.state();
        let (reader, mut writer) = match state.ending.take() {
            Some(ending) => ending,
            None => pipe()?,
        };
        let descriptor = reader.as_raw_fd();
        if state.has_ended {
            writer.write_all(&[0])?;
        }
        state.ending = Some((reader, writer));
        Ok(descriptor)
    }

    /// Ends it.
    fn cancel(&self) {
        self.task.abort();
    }

    /// What is being done.
    #[getter]
    fn told(&self) -> String {
        self.shared.state().progress.clone()
    }
}
