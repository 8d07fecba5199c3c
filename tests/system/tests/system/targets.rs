//! What happens when a target's node is lost, its pod is deleted, or its own user plants something:
//! nothing that other targets share, so these tests run beside each other. They take a node away,
//! though, so they are a group of their own.

use tokio::sync::RwLock;

/// Held for reading by tests that have pods on every node, for writing while a node is away.
static EVERY_NODE: RwLock<()> = RwLock::const_new(());

mod endpoint;
mod forged;
mod frameworks_gone;
mod lost_node;
mod planted;
mod target_deleted;
