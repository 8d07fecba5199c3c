//! Tests that measure what the whole machine shares, one at a time: shared memory, and how fast
//! processor time is used. Nothing else runs beside them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, in its helpers too, and says on its output what it measured or why it skips"
)]

mod metrics_ring;
mod shared_memory;

use tokio::sync::Mutex;

/// Held by every test of this program from its beginning to its end.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());
