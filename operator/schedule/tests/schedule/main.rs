//! Schedules on a simulated clock, against what is known of them: how many windows there must be,
//! and an oracle in Python for times of the clock.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod clock_oracle;
mod cold_start;
mod coverage;
mod decisions;
mod explanations;
mod fleet;
mod leaders;
mod retention;
mod speed;
