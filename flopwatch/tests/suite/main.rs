//! The commands as a person runs them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, in its helpers too, and says on its output why it skips"
)]

mod analyze;
mod compare;
mod convert;
mod diagnose;
mod given;
mod mcp;
mod open;
mod pipe;
mod program;
mod record;
mod record_tracer;
mod serve;
mod terminal;
