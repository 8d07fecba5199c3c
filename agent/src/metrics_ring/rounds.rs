//! The thread that reads the containers' counters, ten times a second, and keeps the ring within its length.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_nvml::ProcessorClock;

use super::{CGROUP, NVML, ROUND, Shared, utc_ns};

/// The ids of the containers that run on the node.
pub(super) type Running = Box<dyn Fn() -> BTreeSet<String> + Send>;

/// Rounds after which it is asked which containers run, and what is too old is dropped.
const UPKEEP: u32 = 10;

/// Reads until the ring ends.
pub(super) fn run(shared: &Arc<Shared>, running: &Running) {
    let mut next = Instant::now();
    let mut round = 0_u32;
    while shared.wait_until(next) {
        let now = Instant::now();
        let late = rounds_in(now.saturating_duration_since(next));
        let clock = ProcessorClock::start();
        if round.is_multiple_of(UPKEEP) {
            keep_up(shared, running, now);
        }
        round = round.wrapping_add(1);
        let mut containers = shared.containers();
        let taken = containers.read(utc_ns);
        let open = u64::try_from(containers.open()).unwrap_or(u64::MAX);
        drop(containers);
        let missed = u64::from(late).saturating_mul(open).saturating_add(taken.missed);
        shared.gauges.round(CGROUP, clock.elapsed(), missed);
        // On the grid of the first round, so that the rate does not drift.
        next += ROUND * late.saturating_add(1);
    }
}

/// Whole rounds that fit into a time.
fn rounds_in(time: Duration) -> u32 {
    u32::try_from(time.as_nanos() / ROUND.as_nanos().max(1)).unwrap_or(u32::MAX)
}

fn keep_up(shared: &Shared, running: &Running, now: Instant) {
    let length = u64::try_from(shared.length.as_nanos()).unwrap_or(u64::MAX);
    let oldest = utc_ns().saturating_sub(length);
    let running = running();
    let mut containers = shared.containers();
    shared.gauges.no_room_for_containers(containers.update(&running, now));
    containers.expire(oldest);
    shared.gauges.bytes(CGROUP, containers.bytes());
    drop(containers);
    let mut devices = shared.devices();
    devices.expire(oldest);
    shared.gauges.bytes(NVML, devices.bytes());
}
