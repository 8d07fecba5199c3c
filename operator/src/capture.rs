//! Captures: how they stand, when one is lost with its node, and when its finalizer may go.

pub mod deletions;
pub mod node;
pub mod plan;
pub mod reconcile;
