//! Steps of devices, as XLA's profiler derives them: the line `Steps` of a GPU or TPU.

use flopwatch_model::{Category, Row, Timeline, Track, index};

use super::{Iteration, IterationSource, Iterations};
use crate::interval::Interval;

/// The line's name.
const LINE: &str = "Steps";

/// Whether `row` is the line of a device's steps.
fn is_line(row: &Row) -> bool {
    let name = row.label.rsplit_once(' ').map_or(row.label.as_str(), |(_, name)| name);
    row.track == Track::Derived && row.device.is_some() && name == LINE
}

/// The steps of all devices, a loop each; `None` where no device has any.
pub(super) fn of(timeline: &Timeline) -> Option<Iterations> {
    let events = timeline.capture.events.get(&Category::Derived)?;
    let is_line: Vec<bool> = timeline.capture.rows.iter().map(is_line).collect();
    let mut before = vec![0; is_line.len()];
    let mut list = Vec::new();
    for (at, row) in (0_u32..).zip(&events.row) {
        let time = Interval::of(events, index(at));
        if is_line.get(row.index()) != Some(&true) || time.is_empty() {
            continue;
        }
        let Some(before) = before.get_mut(row.index()) else {
            continue;
        };
        list.push(Iteration {
            // XLA names a step by its number.
            number: events.name_of(index(at)).parse().unwrap_or(*before),
            time,
            row: *row,
            event: Some((Category::Derived, at)),
        });
        *before += 1;
    }
    if list.is_empty() {
        return None;
    }
    let iterations = Iterations {
        source: Some(IterationSource::DeviceStep),
        name: LINE.to_owned(),
        list,
        confidence_ratio: 1.0,
        ..Iterations::default()
    };
    Some(iterations.sorted())
}
