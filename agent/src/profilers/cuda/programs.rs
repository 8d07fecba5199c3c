//! Which processes of a container still run, by the numbers that its tracer's file has of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_attach::process::ProcessId;
use flopwatch_pipeline::cuda_window::IsAlive;
use flopwatch_tracer_file::process::Process;

use super::probe::key;
use crate::profilers::Site;

/// Shortest time between two looks for processes that are not known yet: all of the node are gone
/// through.
const PROCESSES_INTERVAL: Duration = Duration::from_millis(500);

/// Whether the process of a slot still runs in the site's container.
pub(super) fn is_alive(site: &Site) -> IsAlive {
    let (containers, container_id) = (Arc::clone(&site.containers), site.container_id.clone());
    let procfs = containers.procfs();
    let mut known: BTreeMap<(u32, u64), ProcessId> = BTreeMap::new();
    let mut looked: Option<Instant> = None;
    Box::new(move |process: &Process| {
        let asked = (process.pid, process.started);
        let is_due = looked.is_none_or(|looked| looked.elapsed() >= PROCESSES_INTERVAL);
        if !known.contains_key(&asked) && is_due {
            looked = Some(Instant::now());
            let all = containers.processes(&container_id).into_iter();
            known = all.filter_map(|found| Some((key(&procfs, found)?, found))).collect();
        }
        known.get(&asked).is_some_and(|found| containers.is_alive(*found))
    })
}
