//! Analyses of real captures: figures held against those of the tools that the captures come from.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and says on its output why it skips; helpers are outside of #[test] functions"
)]

mod advice;
mod captures;
#[path = "../suite/cases.rs"]
mod cases;
mod compare;
mod compile;
mod flame;
mod fresh_torch;
mod hlo;
mod hlo_text;
mod host;
mod impossible;
mod jax;
mod memory;
mod names;
#[allow(dead_code, reason = "the suite of the readers uses all of it")]
#[path = "../suite/nsys.rs"]
mod nsys;
mod nsys_cases;
mod nsys_stats;
mod operations;
mod peers;
mod profiled;
#[path = "../suite/program.rs"]
mod program;
mod result;
mod rooflines;
mod same;
mod source_lines;
mod steps;
mod time;
mod xprof;
