//! The thread that reads the containers' counters, ten times a second.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_nvml::ProcessorClock;

use super::span::CGROUP;
use super::track::ROUND_INTERVAL;
use super::{Shared, utc_ns};

/// Reads until the ring ends; waits while there is nothing to read.
pub(super) fn run(shared: &Arc<Shared>) {
    let mut next = Instant::now();
    while shared.wait_until(next) {
        let now = Instant::now();
        let late = rounds_in(now.saturating_duration_since(next));
        let clock = ProcessorClock::start();
        let mut containers = shared.containers();
        let taken = containers.read(utc_ns);
        let open = u64::try_from(containers.open()).unwrap_or(u64::MAX);
        drop(containers);
        let missed = u64::from(late).saturating_mul(open).saturating_add(taken.missed);
        shared.gauges.round(CGROUP, clock.elapsed(), missed);
        if open == 0 {
            if !shared.wait_for_containers() {
                return;
            }
            next = Instant::now();
            continue;
        }
        // On the grid of the first round, so that the rate does not drift.
        next += ROUND_INTERVAL * late.saturating_add(1);
    }
}

/// Whole rounds that fit into a time.
fn rounds_in(time: Duration) -> u32 {
    u32::try_from(time.as_nanos() / ROUND_INTERVAL.as_nanos().max(1)).unwrap_or(u32::MAX)
}
