//! How long each GPU had work: the union of its intervals, so that overlap counts once.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::statistics::approximate;
use crate::model::{Timeline, index};

/// How long a GPU was busy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuBusy {
    /// Ordinal of the device.
    pub device: u32,
    /// Its product name; empty where the source does not tell it.
    pub name: String,
    /// Length in ns of the union of its kernels, copies and memsets.
    pub busy_ns: u64,
    /// `busy_ns` as a share of the window, 0 to 1.
    pub busy_ratio_of_window: f64,
}

pub(super) fn busy(timeline: &Timeline) -> Vec<GpuBusy> {
    let capture = &timeline.capture;
    let mut intervals: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    for (category, events) in &capture.events {
        if !category.is_gpu_work() {
            continue;
        }
        // Intervals that touch become one at once, as those of a category follow each other.
        let devices: Vec<Option<u32>> = capture.rows.iter().map(|row| row.device).collect();
        let mut of_category: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
        let times = events.start_ns.iter().zip(&events.duration_ns);
        for ((start, duration), row) in times.zip(&events.row) {
            let Some(device) = devices.get(index(*row)).copied().flatten() else {
                continue;
            };
            let end = start.saturating_add(*duration);
            let intervals = of_category.entry(device).or_default();
            match intervals.last_mut() {
                Some((from, until)) if (*from..=*until).contains(start) => *until = end.max(*until),
                _ => intervals.push((*start, end)),
            }
        }
        for (device, mut of_category) in of_category {
            intervals.entry(device).or_default().append(&mut of_category);
        }
    }
    let of_device = |(device, intervals)| {
        let busy_ns = union(intervals);
        let known = capture.devices.iter().find(|known| known.id == device);
        let window = capture.duration_ns;
        let ratio = approximate(u128::from(busy_ns)) / approximate(u128::from(window.max(1)));
        let name = known.map_or(String::new(), |known| known.name.clone());
        GpuBusy {
            device,
            name,
            busy_ns,
            busy_ratio_of_window: ratio,
        }
    };
    intervals.into_iter().map(of_device).collect()
}

/// Length of the union of half-open intervals.
fn union(mut intervals: Vec<(u64, u64)>) -> u64 {
    // Those of each category are in order: the stable sort finds such runs and merges them.
    intervals.sort();
    let mut covered = 0_u64;
    let mut until = 0;
    for (start, end) in intervals {
        covered += end.saturating_sub(start.max(until));
        until = until.max(end);
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::union;

    #[test]
    fn the_union_counts_overlap_once() {
        let cases: [(&[(u64, u64)], u64); 6] = [
            (&[], 0),
            (&[(5, 5)], 0),
            (&[(0, 10), (10, 20)], 20),
            (&[(0, 10), (5, 15)], 15),
            (&[(0, 100), (10, 20), (30, 40)], 100),
            (&[(50, 60), (0, 10)], 20),
        ];
        for (intervals, expected) in cases {
            assert_eq!(union(intervals.to_vec()), expected, "{intervals:?}");
        }
    }
}
