//! What happens when a target's node is lost or its pod is deleted: nothing that other targets
//! share, so these tests run beside each other. They take a node away, though, so they are a group
//! of their own.

use tokio::sync::RwLock;

/// Held for reading by tests that have pods on every node, for writing while a node is away.
pub(super) static EVERY_NODE: RwLock<()> = RwLock::const_new(());

mod frameworks_gone;
mod lost_node;
mod target_deleted;
