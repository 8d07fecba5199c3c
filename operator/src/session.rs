//! Profiling sessions: choosing targets, making captures, summing up.

pub mod budget;
pub mod claims;
pub mod own_pod;
pub mod plan;
pub mod quota;
pub mod reconcile;
pub mod replica;
pub mod summary;
pub mod targets;
pub mod top_kernels;
pub mod triggered;
