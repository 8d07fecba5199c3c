//! Pipeline bubbles: time in which a device waits inside an iteration while another one works for
//! it.

use std::collections::BTreeMap;

use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_measures::work::GpuWork;
use flopwatch_model::{Timeline, ratio};
use schemars::JsonSchema;
use serde::Serialize;

use super::{IterationRow, devices};

/// How long one device waited for others, over all iterations without warm-up.
///
/// Iterations of the same number are one iteration of all loops; its window reaches from the first
/// start to the last end of their GPU work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct PipelineBubbles {
    /// Which capture of a merged session.
    pub capture: u32,
    /// Machine as the profiler numbers it.
    pub machine: u32,
    /// Device ordinal.
    pub device: u32,
    /// Length in ns of the iterations' windows.
    pub window_ns: u64,
    /// Time in ns of them in which the device worked.
    pub busy_ns: u64,
    /// Time in ns in which it did not and another device did.
    pub bubble_ns: u64,
    /// Time in ns in which no device worked.
    pub all_idle_ns: u64,
    /// `bubble_ns` of `window_ns`.
    pub bubble_ratio: f64,
}

/// The bubbles of each device; none of fewer than two devices.
pub(super) fn of(timeline: &Timeline, work: &GpuWork, rows: &[IterationRow]) -> Vec<PipelineBubbles> {
    let busy: BTreeMap<_, Intervals> = devices(timeline, work.all())
        .into_iter()
        .map(|(device, work)| (device, work.iter().map(|work| work.time).collect()))
        .collect();
    if busy.len() < 2 {
        return Vec::new();
    }
    let mut windows: BTreeMap<u64, Interval> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.warm_up) {
        if let (Some(start), Some(end)) = (row.gpu_start_ns, row.gpu_end_ns) {
            let window = windows.entry(row.number).or_insert(Interval::new(start, end));
            *window = Interval::new(window.start.min(start), window.end.max(end));
        }
    }
    // Windows of iterations may overlap; each nanosecond counts once.
    let windows = Intervals::union_of(windows.into_values());
    let any = busy.values().fold(Intervals::default(), |sum, one| sum.union(one));
    let any_ns = any.intersect(&windows).len_ns();
    let window_ns = windows.len_ns();
    busy.into_iter()
        .map(|((capture, machine, device), busy)| {
            let busy_ns = busy.intersect(&windows).len_ns();
            PipelineBubbles {
                capture,
                machine,
                device,
                window_ns,
                busy_ns,
                bubble_ns: any_ns - busy_ns,
                all_idle_ns: window_ns - any_ns,
                bubble_ratio: ratio(any_ns - busy_ns, window_ns).unwrap_or(0.0),
            }
        })
        .collect()
}
