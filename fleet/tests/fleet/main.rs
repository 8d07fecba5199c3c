//! The fleet's rows through the crate's own face.

#![allow(
    clippy::unwrap_used,
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "a test fails by panicking, and its numbers are small; helpers are outside of #[test] functions"
)]

mod bounded;
mod estimates;
mod files;
mod readers;
mod records;
mod timelines;
