//! What libraries that are loaded into other programs are made of: the flight recorder
//! (`flopwatch-recorder`) and the CUDA tracer (`flopwatch-tracer`). Such a library links no C
//! library, allocates nothing, starts nothing by itself, and has no path that panics.
//!
//! | module | what it has |
//! |---|---|
//! | [`kernel`] | calls of the kernel that touch no `errno` |
//! | [`loader`] | what the program's own C library and loader offer, by weak names |
//! | [`mod@file`] | the container's file, made by the first process and mapped by all |
//! | [`memory`] | words and lines of that file, each access within its bounds |
//! | [`cache`] | what the processor is asked for before it is used |
//! | [`clock`], [`once`] | the kernel's clocks; a value that is made once, without a lock |
//! | [`fork`] | which process this is: a child of `fork` knows that it is another one |

#![no_std]
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

pub mod cache;
pub mod clock;
pub mod file;
pub mod fork;
pub mod kernel;
pub mod loader;
pub mod memory;
pub mod once;
mod path;

pub use path::{Path, number};
