//! What enters containers, with the real programs: the graft of a profiler's session, and the
//! sandbox of converters.
//!
//! Every container and every sandbox has namespaces, folders and users of its own, so these tests
//! may run beside each other.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "tests say what they expect by failing"
)]

mod graft;
mod sandbox;
