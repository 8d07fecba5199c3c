//! The agent's commands as a person runs them, the captures of a node, and the real profilers of
//! programs.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, in its helpers too, and says on its output why it skips"
)]

mod analyze;
mod captures;
mod compare;
mod convert;
mod diagnose;
mod jax;
mod kineto;
#[allow(dead_code, reason = "a bench shares it, and counts its steps")]
mod paced;
mod record;
mod script;
mod serve;
mod workload;
mod workplace;
