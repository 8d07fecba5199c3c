//! The captures of a node in this process: a real store and real children, an API server in memory, and doubles for containers
//! and GPUs.
#![allow(clippy::print_stdout, reason = "a skipped test says why")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod children;
mod deadline;
mod doubles;
mod ends;
mod fleet;
mod ncu;
mod overhead;
#[allow(dead_code, reason = "a bench shares it, and counts its steps")]
#[path = "../paced/mod.rs"]
mod paced;
mod ranges;
mod restart;
mod rig;
mod sample;
mod sample_profiler;
mod side_by_side;
mod space;
mod status;
mod verified;
#[path = "../workload/mod.rs"]
mod workload;
