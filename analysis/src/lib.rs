//! The catalogue of analyses: what can be made of one or more captures, under which name, with
//! which parameters and result.
//!
//! The way of a request:
//!
//! 1. [`Request::parse`] looks a name up in [`catalogue::CATALOGUE`] and checks the parameters
//!    against the schema of the analysis. The entry is a [`Definition`].
//! 2. The caller reads the captures, no more of each than [`flopwatch_model::Needs`] of the
//!    definition lists, and gives them as [`Input`]s (at most 64, [`InputCount::MAX_INPUTS`]).
//! 3. [`Request::run`] computes the result and writes it in the chosen format: as JSON, as a page
//!    of `flopwatch-report`, or as a file of another program's format.
//!
//! An analysis is a type that implements [`Analysis`] in a file of `analyses/`, and a line in the
//! catalogue. From its [`Definition`] come the command line, the paths and documents of the REST
//! services, the types of the viewer and of the Python package, and the keys of kept results.
//! [`advice`] holds the rules of the analysis `advice`.
//!
//! Invariants:
//!
//! - A result depends on the inputs and the parameters alone. Whoever changes a result raises the
//!   analysis' version, so that a kept result of another version is never served.
//! - The crate reads [`flopwatch_model::Timeline`]s and writes to [`std::io::Write`]; it opens no
//!   file and starts no process.
//! - What analyses are made of is in the crates below: `flopwatch-measures`, `flopwatch-report`,
//!   `flopwatch-summary` and `flopwatch-export`. None of these knows an analysis.
//!
//! The feature `export` adds the writers of formats for other programs; without it such requests
//! can be named and fail when run.

pub mod advice;
pub mod analyses;
pub mod catalogue;
mod cut;
mod definition;
pub mod export;
mod group;
mod input;
mod listing;
mod near;
mod outcome;
mod parameters;
#[cfg(test)]
mod properties;
mod request;
mod subject;

pub use definition::{Analysis, AnalysisError, Definition, FileAnalysis, InputCount, NoParameters, Report, ResultType};
pub use group::Group;
pub use input::{Input, Inputs};
pub use listing::Listing;
pub use request::{Request, RequestError};
pub use subject::{Part, Subject};
