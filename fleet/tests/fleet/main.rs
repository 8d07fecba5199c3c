//! The fleet's rows through the crate's own face.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "a test fails by panicking, says on its output what it found, and its numbers are small; helpers are outside of #[test] functions"
)]

mod bounded;
mod estimates;
mod files;
mod readers;
mod records;
mod timelines;
