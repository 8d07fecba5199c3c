//! Simulated windows: whether estimates, intervals, verdicts and aborts are right as often as they
//! claim; and the test and the shift beneath them against scipy and numpy.
//!
//! Every figure that a test checks is printed too; `cargo test -p flopwatch-overhead --test suite
//! -- --nocapture` shows them.

#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::inconsistent_struct_constructor,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "simulations count in floats, and print what they measured; helpers are outside of #[test] functions"
)]

mod aborts;
mod drifts;
mod estimates;
mod scipy;
mod target;
