//! The leases of the node's counters over its agent's life.

use std::sync::Arc;
use std::time::Duration;

use flopwatch_launcher::run_dir::unix_ms;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::Options;
use crate::counters::dcgm::Dcgm;
use crate::counters::{Counters, Error};
use crate::profilers::Registry;
use crate::profilers::cuda::Cuda;

/// Time between two looks at the leases.
const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// The node's profilers, which lease its counters until `stop`; with the command that pauses DCGM
/// where there is one.
pub(super) fn profilers(options: &Options, stop: &CancellationToken) -> Result<Registry, Error> {
    let host = options.dcgm_host.clone();
    let dcgm = options.dcgmi.clone().map(|program| Dcgm { program, host });
    let counters = Arc::new(Counters::open(options.data_dir.join("counters"), dcgm)?);
    let tended = Arc::clone(&counters);
    tokio::spawn(stop.clone().run_until_cancelled_owned(tend(tended)));
    Ok(Registry::of_node(counters, Cuda::new(options.allow_unproven_cuda)))
}

/// Ends leases whose captures did not, at once and now and then: DCGM is resumed whatever became of
/// who paused it.
async fn tend(counters: Arc<Counters>) {
    let mut looks = interval(POLL_INTERVAL);
    loop {
        looks.tick().await;
        let counters = Arc::clone(&counters);
        let tended = tokio::task::spawn_blocking(move || counters.tend(unix_ms())).await;
        if let Err(error) = tended {
            warn!(%error, "the look at the leases of counters ended early");
        }
    }
}
