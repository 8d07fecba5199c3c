//! What the whole-system tests stand on: a real cluster, the installed chart, real pods, real
//! clients.
//!
//! The tests run against the cluster of `KUBECONFIG` when `FLOPWATCH_SYSTEM_TESTS=1` is set;
//! `cargo xtask test` sets both after it has brought the local cluster up. Without it each test
//! prints `skipped: ...` and passes.
//!
//! Nothing here sleeps for a fixed time: every wait is for a state, with a deadline that the
//! failure message names.

pub mod alertmanager;
pub mod chart;
pub mod cluster;
pub mod events;
pub mod fetch;
pub mod frameworks;
pub mod gate;
pub mod mounts;
pub mod node;
pub mod nodes;
pub mod parts;
pub mod pod_state;
pub mod pods;
pub mod prometheus;
pub mod recordings;
pub mod remains;
mod server;
pub mod sessions;
pub mod simulated_gpu;
pub mod soak;
pub mod trainer;
pub mod transcript;
mod turns;
pub mod user;
pub mod workload;
