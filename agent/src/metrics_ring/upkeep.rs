//! The thread that finds the counters of containers that started, and keeps the ring within its
//! length.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::finder::Finder;
use super::span::{CGROUP, NVML};
use super::{Shared, utc_ns};

/// The ids of the containers that run on the node.
pub(super) type Running = Box<dyn Fn() -> BTreeSet<String> + Send>;

/// Time between two rounds.
const ROUND_INTERVAL: Duration = Duration::from_secs(1);

/// Keeps it until the ring ends.
pub(super) fn run(shared: &Arc<Shared>, finder: &mut Finder, running: &Running) {
    let mut next = Instant::now();
    while shared.wait_until(next) {
        next = Instant::now() + ROUND_INTERVAL;
        let missing = running();
        let missing = shared.containers().missing(&missing);
        let refused = finder.inspect(missing, Instant::now(), |found| {
            let refused = shared.containers().hold(found);
            shared.signal(|signals| signals.containers = true);
            refused
        });
        shared.gauges.no_room_for_containers(refused);
        expire(shared);
    }
}

fn expire(shared: &Shared) {
    let length = u64::try_from(shared.length.as_nanos()).unwrap_or(u64::MAX);
    let oldest = utc_ns().saturating_sub(length);
    let mut containers = shared.containers();
    containers.expire(oldest);
    shared.gauges.bytes(CGROUP, containers.bytes());
    drop(containers);
    let mut devices = shared.devices();
    devices.expire(oldest);
    shared.gauges.bytes(NVML, devices.bytes());
}
