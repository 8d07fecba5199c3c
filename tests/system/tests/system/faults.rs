//! What happens when a part of the cluster dies, stands still or runs out of space. These tests
//! take the release's parts away from everybody, so they are a group of their own.

mod agent;
mod api_server;
mod disk;
mod operator;
mod recorder;
mod release;
mod rights;

use tokio::sync::RwLock;

/// Shared by all tests from their first to their last call; held by the one that stops it.
static API_SERVER: RwLock<()> = RwLock::const_new(());
