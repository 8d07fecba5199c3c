//! The library in real programs, with stand-ins for NVIDIA's libraries (`tests/rig/fake-cupti`).
//! Nothing here says anything of a GPU.
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

mod agent;
mod continuous;
mod ends;
mod export;
mod faults;
mod kills;
mod processes;
mod real;
mod releases;
mod rules;
mod storm;
mod ticks;
mod timeline;
mod windows;

use flopwatch_fake_cupti as rig;
