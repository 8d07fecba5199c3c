//! Who may take which of the release's parts away: the agent of one node, or any.

use anyhow::{Context as _, Result};
use flopwatch_system_tests::cluster::TestNamespace;
use flopwatch_system_tests::trainer::{End, Trainer};
use tokio::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The release as it serves the pods of each node. Whoever needs several nodes takes them in this
/// order.
static NODES: [RwLock<()>; 2] = [RwLock::const_new(()), RwLock::const_new(())];

/// Held by the test that takes the controller away. Captures of others go on without it, and their
/// sessions when the next one is there.
static CONTROLLER: Mutex<()> = Mutex::const_new(());

/// A node of the cluster; where it has one alone, both are that.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// It carries the controller, admission and the gateway too.
    Kept,
    /// It carries an agent.
    Other,
}

impl Place {
    /// Position among the cluster's nodes, and name.
    async fn node(self, namespace: &TestNamespace) -> Result<(usize, String)> {
        let names = namespace.nodes().await?;
        let last = names.len().checked_sub(1).context("a cluster without nodes")?;
        let place = match self {
            Self::Kept => 0,
            Self::Other => last.min(1),
        };
        Ok((place, names[place].clone()))
    }
}

/// While this is held, nobody takes away what its nodes' pods need.
pub(super) struct Shared {
    _nodes: Vec<RwLockReadGuard<'static, ()>>,
}

/// While this is held, nobody else counts on what its nodes' pods need.
pub(super) struct Alone {
    nodes: Vec<RwLockWriteGuard<'static, ()>>,
}

impl Alone {
    /// Gives the right to take away up, and keeps the right that nothing is.
    pub(super) fn downgrade(self) -> Shared {
        Shared {
            _nodes: self.nodes.into_iter().map(RwLockWriteGuard::downgrade).collect(),
        }
    }
}

/// While this is held, nobody else takes the controller away, nor the agent of the node that
/// carries it.
pub(super) struct Controller {
    _node: Shared,
    _controller: MutexGuard<'static, ()>,
}

impl Shared {
    /// The right to take the controller away, beside that to the node's agent.
    pub(super) async fn with_controller(self) -> Controller {
        Controller {
            _node: self,
            _controller: CONTROLLER.lock().await,
        }
    }
}

/// The release as it serves the pods of one node, which nobody takes away meanwhile.
pub(super) async fn shared_by(namespace: &TestNamespace, place: Place) -> Result<Shared> {
    let (node, _) = place.node(namespace).await?;
    Ok(Shared {
        _nodes: vec![NODES[node].read().await],
    })
}

/// The right to take away the agent of a node, and the node's name.
pub(super) async fn agent(namespace: &TestNamespace, place: Place) -> Result<(String, Alone)> {
    let (node, name) = place.node(namespace).await?;
    let nodes = vec![NODES[node].write().await];
    Ok((name, Alone { nodes }))
}

/// A trainer recovers from a capture that ended while nobody takes its agent away any more.
pub(super) async fn recovers(namespace: TestNamespace, trainer: &Trainer, end: &End, alone: Alone) -> Result<()> {
    let shared = alone.downgrade();
    trainer.recovers(&namespace, end).await?;
    drop(shared);
    namespace.delete().await
}

/// A trainer that was started while its agent was there, and the right to take all agents away.
pub(super) async fn trainer_and_agents(namespace: &TestNamespace, name: &str) -> Result<(Trainer, Alone)> {
    let shared = shared_by(namespace, Place::Kept).await?;
    let trainer = Trainer::start(namespace, name).await?;
    drop(shared);
    let mut nodes = Vec::new();
    for node in &NODES {
        nodes.push(node.write().await);
    }
    Ok((trainer, Alone { nodes }))
}

/// A trainer on a node that was started while its agent was there, and the right to take that away.
pub(super) async fn trainer_and_agent(namespace: &TestNamespace, place: Place) -> Result<(Trainer, Alone)> {
    let (node, name) = place.node(namespace).await?;
    let shared = NODES[node].read().await;
    let trainer = Trainer::start_on(namespace, "trainer", &name).await?;
    drop(shared);
    let nodes = vec![NODES[node].write().await];
    Ok((trainer, Alone { nodes }))
}
