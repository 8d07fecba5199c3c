//! What is generated of the catalogue of analyses and of the table of profilers and committed: the
//! viewer's types and endings, and the Python package's types.
//!
//! It depends on the whole catalogue. So it is no part of what ships and none of `xtask`, which
//! runs it as a program of its own and stays quick to compile.

mod endings;
mod python;
mod types;
mod typescript;

pub use endings::endings;
pub use python::python;
pub use types::TypesError;
pub use typescript::{TypescriptError, typescript};
