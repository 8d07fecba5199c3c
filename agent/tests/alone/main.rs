//! Tests that measure what the whole machine shares, one at a time: shared memory, the profilers'
//! list in it, how fast processor time is used, and a disassembler that a product's deadline of 10 s
//! a kernel ends where it shares the processors with eight other tests. Nothing else runs beside it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, in its helpers too, and says on its output what it measured or why it skips"
)]

mod disassembly;
mod metrics_ring;
#[path = "../suite/script.rs"]
mod script;
mod shared_memory;
mod storm;
#[path = "../suite/workload.rs"]
mod workload;

use tokio::sync::Mutex;

/// Held by every test of this program from its beginning to its end.
static TURN: Mutex<()> = Mutex::const_new(());
