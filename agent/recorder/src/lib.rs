//! The flight recorder: a library that NVTX loads, which keeps a program's last ranges in a file,
//! chained before the profiler's own.
//!
//! `build.rs` compiles the same modules once more, with `library.rs` as their root, into
//! [`LIBRARY`]: without the standard library and without a C library of a version, because it is
//! loaded into programs of any image. What it shares with other such libraries is in
//! `flopwatch-injected`. On the path of a call there is no allocation, lock, thread or panic.
//! `docs/recorder.md` says what programs see of it, and describes the file.

#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]
#![cfg_attr(
    test,
    allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::unwrap_used,
        reason = "a test that fails panics"
    )
)]

mod attributes;
mod calls;
mod claim;
mod clock;
mod event;
mod file;
mod handles;
mod injection;
mod labels;
mod memory;
mod names;
mod recorder;
mod segment;
mod text;
mod thread;

/// The library, an ELF file for `NVTX_INJECTION64_PATH`.
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libflopwatch-recorder.so"));

pub use injection::{GetExportTable, Version, initialize};
