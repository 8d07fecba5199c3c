//! The catalogue of analyses: what can be made of one or more captures, under which name, with which parameters and result.
//!
//! An analysis is a type that implements [`Analysis`] in a file of `analyses/`, and a line in [`catalogue::CATALOGUE`]. From its
//! [`Definition`] come the command line, the paths and documents of the REST services, the types of the viewer, and the keys of kept
//! results. A [`Request`] is a definition with parameters that were checked.
//!
//! The crate reads [`flopwatch_model::Timeline`]s and writes to [`std::io::Write`]; it opens no file and starts no process. The feature
//! `export` adds the writers of formats for other programs; without it such requests can be named and are refused when run.

pub mod advice;
pub mod analyses;
pub mod catalogue;
mod definition;
pub mod export;
mod format;
mod group;
mod input;
mod listing;
pub mod measures;
mod not_captured;
pub mod page;
mod parameters;
#[cfg(test)]
mod properties;
#[cfg(feature = "export")]
mod protobuf;
pub mod python;
mod request;
pub mod summary;
mod tabular;
#[cfg(test)]
#[allow(dead_code, reason = "analyses come one by one, and each uses what it needs")]
mod testing;
mod types;
pub mod typescript;

pub use definition::{Analysis, AnalysisError, Definition, FileAnalysis, InputCount, NoParameters, Report, ResultType};
pub use format::Format;
pub use group::Group;
pub use input::{Input, Inputs};
pub use listing::Listing;
pub use not_captured::NotCaptured;
pub use page::Page;
pub use request::{Request, RequestError};
pub use tabular::{CellType, Column, Tabular};
pub use types::TypesError;
