//! What happens when a target's node is lost, its pod is deleted, or its own user plants something: nothing that other
//! targets share, so these tests run beside each other. They take a node away, though, so they have a binary of their own.

#[path = "targets/forged.rs"]
mod forged;
#[path = "targets/lost_node.rs"]
mod lost_node;
#[path = "targets/planted.rs"]
mod planted;
#[path = "targets/target_deleted.rs"]
mod target_deleted;
