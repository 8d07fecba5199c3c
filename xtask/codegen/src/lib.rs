//! What is generated of the catalogue of analyses and committed: the viewer's types and the Python
//! package's.
//!
//! It depends on the whole catalogue. So it is no part of what ships and none of `xtask`, which
//! runs it as a program of its own and stays quick to compile.

mod python;
mod types;
mod typescript;

pub use python::python;
pub use types::TypesError;
pub use typescript::{TypescriptError, typescript};
