//! The API server in memory as its clients see it, in this process and on a socket.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod server;
mod socket;
