//! How long each GPU had work: the union of its intervals, so that overlap counts once.

use std::collections::BTreeMap;

use flopwatch_model::{Events, Row, Timeline, approximate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long a GPU was busy. Captures that were merged, and machines, may have one of the same
/// ordinal each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuBusy {
    /// Ordinal of the device.
    pub device: u32,
    /// Its product name, and of a MIG instance which one it is; empty where the source does not
    /// tell it.
    pub name: String,
    /// Length in ns of the union of its kernels, whole graphs, copies and memsets.
    pub busy_ns: u64,
    /// `busy_ns` as a share of the window, 0 to 1.
    pub busy_ratio_of_window: f64,
    /// `busy_ns` as a share of [`super::Summary::events_span_ns`], 0 to 1.
    pub busy_ratio_of_events_span: f64,
}

/// Length in ns from the start of the first event of any category to the end of the last; 0 without
/// events.
pub(super) fn events_span(timeline: &Timeline) -> u64 {
    let events = || timeline.capture.events.values();
    // Sorted by start.
    let begin = events().filter_map(|events| events.start_ns.first()).min();
    let end = events().filter_map(Events::last_end_ns).max();
    end.unwrap_or(0).saturating_sub(begin.copied().unwrap_or(0))
}

/// Capture, machine and ordinal: captures that were merged, and machines, have GPUs of the same
/// ordinals.
type Gpu = (u32, u32, u32);

fn gpu(row: &Row) -> Option<Gpu> {
    Some((row.capture, row.machine, row.device?))
}

pub(super) fn busy(timeline: &Timeline, events_span_ns: u64) -> Vec<GpuBusy> {
    let capture = &timeline.capture;
    let mut covers: BTreeMap<Gpu, Coverage> = BTreeMap::new();
    for gpu in capture.rows.iter().filter_map(gpu) {
        covers.entry(gpu).or_default();
    }
    let mut of_devices: Vec<(Gpu, Coverage)> = covers.into_iter().collect();
    // Which of these each row is of.
    let position = |gpu| of_devices.iter().position(|(known, _)| *known == gpu);
    let of_rows: Vec<Option<usize>> = capture.rows.iter().map(|row| position(gpu(row)?)).collect();
    let works = capture.events.iter().filter(|(category, _)| category.is_gpu_work());
    let mut works: Vec<_> = works
        .map(|(_, events)| {
            let times = events.start_ns.iter().zip(&events.duration_ns);
            times.zip(&events.row).peekable()
        })
        .collect();
    // Each category is in the order of starts, and so is what is taken from where the next one is,
    // up to where another has its next one.
    loop {
        let starts = works.iter_mut().enumerate();
        let mut next = starts.filter_map(|(at, work)| work.peek().map(|((start, _), _)| (**start, at)));
        let Some(mut first) = next.next() else { break };
        let mut second = u64::MAX;
        for other in next {
            second = second.min(other.0.max(first.0));
            first = first.min(other);
        }
        let Some(work) = works.get_mut(first.1) else { break };
        while let Some(((start, duration), row)) = work.next_if(|((start, _), _)| **start <= second) {
            let cover = of_rows.get(row.index()).copied().flatten();
            if let Some((_, cover)) = cover.and_then(|position| of_devices.get_mut(position)) {
                cover.add(*start, start.saturating_add(*duration));
            }
        }
    }
    of_devices.retain(|(_, cover)| cover.works);
    let of_device = |((.., device), cover): (Gpu, Coverage)| {
        let busy_ns = cover.covered;
        let known = capture.devices.iter().find(|known| known.id == device);
        let ratio = |of: u64| approximate(u128::from(busy_ns)) / approximate(u128::from(of.max(1)));
        let name = known.map_or(String::new(), |known| known.full_name().into_owned());
        GpuBusy {
            device,
            name,
            busy_ns,
            busy_ratio_of_window: ratio(capture.duration_ns),
            busy_ratio_of_events_span: ratio(events_span_ns),
        }
    };
    of_devices.into_iter().map(of_device).collect()
}

/// What half-open intervals cover together, in the order of their starts.
#[derive(Debug, Clone, Copy, Default)]
struct Coverage {
    covered: u64,
    until: u64,
    /// Whether there was any.
    works: bool,
}

impl Coverage {
    fn add(&mut self, start: u64, end: u64) {
        self.covered += end.saturating_sub(start.max(self.until));
        self.until = self.until.max(end);
        self.works = true;
    }
}

#[cfg(test)]
mod tests {
    use super::Coverage;

    #[test]
    fn the_union_counts_overlap_once() {
        let cases: [(&[(u64, u64)], u64); 6] = [
            (&[], 0),
            (&[(5, 5)], 0),
            (&[(0, 10), (10, 20)], 20),
            (&[(0, 10), (5, 15)], 15),
            (&[(0, 100), (10, 20), (30, 40)], 100),
            (&[(0, 10), (50, 60)], 20),
        ];
        for (intervals, expected) in cases {
            let mut cover = Coverage::default();
            for (start, end) in intervals {
                cover.add(*start, *end);
            }
            assert_eq!(cover.covered, expected, "{intervals:?}");
        }
    }
}
