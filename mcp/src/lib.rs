//! What Flopwatch's servers of the Model Context Protocol share: `flopwatch mcp` serves files of
//! one machine, `kubectl flopwatch mcp` sessions of a cluster.
//!
//! A program implements [`Tools`] and calls [`serve`]. The way of a call:
//!
//! 1. [`serve`] reads it from standard input, waits for its turn, and takes [`View`] out of its
//!    arguments: which part of the answer is wanted, and how many bytes of it.
//! 2. The program's [`Tools::call`] reads the other arguments ([`Call`]) and gives an [`Answer`].
//! 3. The view bounds the answer ([`Bounded`]): what is cut is told beside it, with the arguments
//!    that ask for the rest.
//!
//! # Invariants and limits
//!
//! * Standard output carries the protocol alone.
//! * An answer has at most [`MAX_ANSWER_BYTES`], and [`DEFAULT_ANSWER_BYTES`] unless more are asked
//!   for. A JSON answer stays JSON however much is cut.
//! * Whatever goes wrong with a call of a known tool is an error of that tool ([`ToolError`]),
//!   whose text says what to do: clients show it to whoever asked.
//! * A request has at most [`MAX_REQUEST_BYTES`]; [`MAX_RUNNING`] calls run at once, and
//!   [`MAX_WAITING`] wait.
//! * All tools are said to be read-only; this crate writes no file.

mod answer;
mod call;
mod description;
mod error;
mod search;
mod server;
mod shorten;
mod view;

pub use answer::{Answer, AnswerFormat, Bounded};
pub use call::Call;
pub use description::Description;
pub use error::{ServeError, ToolError};
pub use search::Search;
pub use server::{MAX_REQUEST_BYTES, MAX_RUNNING, MAX_WAITING, Tools, serve};
pub use view::{DEFAULT_ANSWER_BYTES, MAX_ANSWER_BYTES, MIN_ANSWER_BYTES, View};
