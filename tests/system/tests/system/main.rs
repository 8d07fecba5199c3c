//! Whole-system tests: the chart on a real cluster, real pods, the real Nsight Systems, real
//! clients.
//!
//! Each module is a group of tests that may run beside each other. Groups have the cluster one
//! after the other: see `flopwatch_system_tests::cluster::Group`.

mod faults;
mod hostile;
mod scale;
mod shared;
mod soak;
mod store;
mod switch;
mod targets;
mod timed;
mod uninstall;
mod upgrade;
