//! The captures of a node, the sandbox of its children, and the real profilers of programs.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, in its helpers too, and says on its output why it skips"
)]

mod captures;
mod cuda;
mod jax;
mod kineto;
#[allow(dead_code, reason = "a bench shares it, and counts its steps")]
mod paced;
mod processes;
mod sandbox_dir;
