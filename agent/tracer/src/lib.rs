//! The CUDA tracer: a library that CUDA loads into a program, which records what the program does
//! on the GPU while somebody asks for it, and nothing otherwise.
//!
//! `build.rs` compiles the same modules once more, with `library.rs` as their root, into
//! [`LIBRARY`]: without the standard library and without a C library of a version, because it is
//! loaded into programs of any image. The file that it writes is `flopwatch-tracer-file`'s, what it
//! shares with other such libraries `flopwatch-injected`'s. `README.md` tells the model, the rules
//! and how to read the code.
//!
//! [`layouts`] and [`proven`] are tables for who carries the library: where CUPTI's records have
//! the fields that are read, and with which drivers a GPU has shown that it works.

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

mod buffers;
mod call_names;
mod callbacks;
mod convert;
mod cupti;
mod driver;
mod file;
mod injection;
mod kinds;
pub mod layouts;
mod libraries;
mod names;
mod orders;
pub mod proven;
mod rules;
mod segments;
mod service;
mod session;
mod slot;
mod tracer;

/// The library, an ELF file for `CUDA_INJECTION64_PATH`.
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libflopwatch_cuda.so"));

pub use injection::initialize;
