//! Whole-system tests: the chart on a real cluster, real pods, the real Nsight Systems, real
//! clients.
//!
//! Tests of one group may run beside each other. Groups have the cluster one after the other, but
//! for the hostile and the shared ones, which have it together: see
//! `flopwatch_system_tests::cluster::Group`.

mod faults;
mod hostile;
mod scale;
mod shared;
mod soak;
mod store_and_node;
mod switch;
mod timed;
mod uninstall;
mod upgrade;
