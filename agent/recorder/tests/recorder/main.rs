//! Real programs with NVTX, recorded by the library and read by our reader.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]
#![allow(clippy::disallowed_methods, reason = "there is no runtime whose threads would sleep")]
#![allow(
    clippy::print_stdout,
    reason = "a skip is told on standard output, where the recipe counts it"
)]

mod calls;
mod chain;
mod ends;
mod nsys;
mod processes;
mod python;
mod rig;
mod threads;
