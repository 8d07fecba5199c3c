//! Pods, files and tokens that turn against their node, its agent or other tenants: a test for each
//! finding of a review that a cluster can show. `cargo xtask test --only hostile` runs these alone.

mod claims;
mod cuda;
mod endpoint;
mod events;
mod forged;
mod jax;
mod kineto;
mod planted;
mod recorder;
mod sweeps;
mod triggered;
