//! What happens when a part of the cluster dies, stands still or runs out of space. These tests
//! take the release's parts away from everybody, so they are a group of their own.

mod agent;
mod api_server;
mod disk;
mod operator;
mod profilers;
mod recorder;

use anyhow::Result;
use flopwatch_system_tests::cluster::TestNamespace;
use flopwatch_system_tests::trainer::Trainer;
use tokio::sync::{RwLock, RwLockWriteGuard};

/// Shared by tests that need all of the release's parts; held by one alone while it takes something
/// away.
static RELEASE: RwLock<()> = RwLock::const_new(());

/// Shared by all tests from their first to their last call; held by the one that stops it.
static API_SERVER: RwLock<()> = RwLock::const_new(());

/// A trainer that was started while all parts were there, and the right to take them away.
async fn trainer_and_release(
    namespace: &TestNamespace,
    name: &str,
) -> Result<(Trainer, RwLockWriteGuard<'static, ()>)> {
    let shared = RELEASE.read().await;
    let trainer = Trainer::start(namespace, name).await?;
    drop(shared);
    Ok((trainer, RELEASE.write().await))
}
