//! Captures: when one is lost with its node, and when its finalizer may be removed.

pub mod deletions;
pub mod node;
pub mod plan;
pub mod reconcile;
