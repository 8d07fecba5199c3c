//! Tests that measure what the whole machine shares, one at a time: the profilers' list in shared
//! memory, and a disassembler that a product's deadline of 10 s a kernel ends where it shares the
//! processors with eight other tests. Nothing else runs beside them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, in its helpers too, and says on its output what it measured or why it skips"
)]

mod disassembly;
#[path = "../suite/given.rs"]
mod given;
mod storm;

use tokio::sync::Mutex;

/// Held by every test of this program from its beginning to its end.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());
