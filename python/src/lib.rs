//! `flopwatch._native`: the compiled part of the Python package `flopwatch`. It converts between
//! Python objects and the engine's, and holds no logic of its own.
//!
//! | for Python | module | made by |
//! |---|---|---|
//! | files: `open`, `analyze`, `convert`, `Capture` | `capture` | `flopwatch_trace`, `flopwatch_analysis` |
//! | columns as Arrow arrays: `Table` | `events`, `table` | the timeline itself, without a copy |
//! | a cluster: `Client`, `RemoteCapture` | `client` | `flopwatch_cli`, the kubectl plugin's library |
//! | the viewer's files | `viewer` | `flopwatch_viewer` |
//! | ranges and marks in the program itself | `ranges`, `marks` | NVTX, `flopwatch_cuda` |
//!
//! Invariants and limits:
//!
//! - A file may be a stranger's: a child process reads it ([`foreign`]), in a sandbox, within 10
//!   minutes and 1,200 s of processor time; it may write no byte to any file.
//! - Whatever takes long runs without the interpreter's lock, in a thread that the caller's Ctrl-C
//!   leaves behind ([`work`]).
//! - A process that was forked gets threads and connections of its own.

mod capture;
mod client;
mod errors;
mod events;
mod foreign;
mod marks;
mod ranges;
mod result;
mod table;
mod viewer;
mod work;

use pyo3::prelude::*;

/// The engine.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::capture::{Capture, analyze, analyze_to, catalogue, convert, open};
    #[pymodule_export]
    use super::client::{Call, Client, RemoteCapture, RemoteFile};
    #[pymodule_export]
    use super::errors::{
        AnalysisError, ClientError, FlopwatchError, ForbiddenError, NotFoundError, ReadError, RequestError,
        SessionFailedError, WriteError,
    };
    #[pymodule_export]
    use super::foreign::child::read_alone;
    #[pymodule_export]
    use super::marks::{Mark, Marks};
    #[pymodule_export]
    use super::ranges::{range_end, range_pop, range_push, range_start};
    #[pymodule_export]
    use super::result::Outcome;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::viewer::viewer;

    use super::{Bound, PyModule, PyModuleMethods as _, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
