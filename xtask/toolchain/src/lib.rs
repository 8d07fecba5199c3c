//! What the recipes of `cargo xtask` and the local cluster build and run with: the cache of pinned
//! programs, the workspace's own builds, other programs' processes, and what a recipe tells its
//! caller.

pub mod cache;
pub mod cmake;
pub mod command;
pub mod cupti;
pub mod debian;
pub mod dependencies;
pub mod golang;
pub mod kernels;
pub mod lock;
pub mod meter;
pub mod ncu;
pub mod node;
pub mod nsys;
pub mod nvdisasm;
pub mod progress;
pub mod project;
pub mod python;
pub mod torch;
pub mod wheel;
