//! The way to a cluster and its gateway, which each process finds for itself.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flopwatch_cli::arguments::ReachArguments;
use flopwatch_cli::cluster::Cluster;
use flopwatch_cli::gateway::Gateway;

use super::failure::Failure;

/// For so long the gateway is shown the token that it was found with: programs give some that end
/// soon.
const TOKEN_TTL: Duration = Duration::from_mins(5);

/// A cluster, and who asks.
pub(super) struct Reach {
    arguments: ReachArguments,
    known: Mutex<ProcessState>,
}

/// What is known in the process of that number; what it holds belongs to threads that a fork does
/// not have.
#[derive(Default)]
struct ProcessState {
    process: u32,
    cluster: Option<Cluster>,
    gateway: Option<(Instant, Arc<Gateway>)>,
}

impl Reach {
    pub(super) fn new(arguments: ReachArguments) -> Self {
        Self {
            arguments,
            known: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, ProcessState> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        if known.process != process {
            // The parent's connections are not ended: there is nobody here to end them.
            std::mem::forget(std::mem::take(&mut *known));
            known.process = process;
        }
        known
    }

    /// The cluster of the kubeconfig.
    pub(super) async fn cluster(&self) -> Result<Cluster, Failure> {
        if let Some(cluster) = &self.known().cluster {
            return Ok(cluster.clone());
        }
        let cluster = Cluster::connect(&self.arguments.connection).await?;
        self.known().cluster = Some(cluster.clone());
        Ok(cluster)
    }

    async fn gateway(&self) -> Result<Arc<Gateway>, Failure> {
        if let Some((found, gateway)) = &self.known().gateway
            && found.elapsed() < TOKEN_TTL
        {
            return Ok(Arc::clone(gateway));
        }
        let cluster = self.cluster().await?;
        let gateway = Arc::new(Gateway::find(&cluster, &self.arguments.gateway).await?);
        self.known().gateway = Some((Instant::now(), Arc::clone(&gateway)));
        Ok(gateway)
    }

    /// Asks the gateway; once more with a token of now where it does not take the one of before.
    pub(super) async fn ask<T, E, W>(&self, work: impl Fn(Arc<Gateway>) -> W) -> Result<T, Failure>
    where
        E: Into<Failure>,
        W: Future<Output = Result<T, E>>,
    {
        match work(self.gateway().await?).await.map_err(Into::into) {
            Err(failure) if failure.is_of_token() => {
                self.known().gateway = None;
                work(self.gateway().await?).await.map_err(Into::into)
            }
            result => result,
        }
    }
}
