//! What happens when a target's node is lost, its pod is deleted, or its own user plants something: nothing that other
//! targets share, so these tests run beside each other. They take a node away, though, so they have a binary of their own.

use tokio::sync::RwLock;

/// Held for reading by tests that have pods on every node, for writing while a node is away.
static EVERY_NODE: RwLock<()> = RwLock::const_new(());

#[path = "targets/endpoint.rs"]
mod endpoint;
#[path = "targets/forged.rs"]
mod forged;
#[path = "targets/frameworks_gone.rs"]
mod frameworks_gone;
#[path = "targets/lost_node.rs"]
mod lost_node;
#[path = "targets/planted.rs"]
mod planted;
#[path = "targets/target_deleted.rs"]
mod target_deleted;
