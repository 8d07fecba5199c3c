//! `flopwatch._native`: what the package `flopwatch` asks of the engine. It holds no logic of its own: a file is read by `flopwatch_trace`, an analysis is
//! an entry of `flopwatch_analysis`' catalogue, a session of a cluster is what `flopwatch_cli`, the kubectl plugin's library, makes of it, and the viewer
//! is that of `flopwatch_viewer`.
//!
//! A file of a stranger is read by a child ([`foreign`]). Whatever takes long runs without the
//! interpreter's lock, in a thread that the caller's Ctrl-C leaves behind ([`work`]).

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
