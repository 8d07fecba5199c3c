//! The catalogue of analyses: what can be made of one or more captures, under which name, with which parameters and result.
//!
//! An analysis is a type that implements [`Analysis`] in a file of `analyses/`, and a line in [`catalogue::CATALOGUE`]. From its
//! [`Definition`] come the command line, the paths and documents of the REST services, the types of the viewer, and the keys of kept
//! results. A [`Request`] is a definition with parameters that were checked.
//!
//! The crate reads [`flopwatch_model::Timeline`]s and writes to [`std::io::Write`]; it opens no file and starts no process. The feature
//! `export` adds the writers of formats for other programs; without it such requests can be named and are refused when run.
//!
//! What analyses are made of is in the crates below it: `flopwatch-measures`, `flopwatch-report`,
//! `flopwatch-summary` and `flopwatch-export`. None of these knows an analysis.

pub mod advice;
pub mod analyses;
pub mod catalogue;
mod definition;
pub mod export;
mod group;
mod input;
mod listing;
mod outcome;
mod parameters;
#[cfg(test)]
mod properties;
mod request;

pub use definition::{Analysis, AnalysisError, Definition, FileAnalysis, InputCount, NoParameters, Report, ResultType};
pub use group::Group;
pub use input::{Input, Inputs};
pub use listing::Listing;
pub use request::{Request, RequestError};
