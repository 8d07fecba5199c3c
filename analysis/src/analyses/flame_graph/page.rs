//! What people read of a flame graph.

use std::collections::BTreeMap;

use flopwatch_measures::flame::{Flame, FrameKind, Side};
use flopwatch_measures::interval::Interval;
use flopwatch_model::ratio;
use flopwatch_report::page::{Cell, Page, Place, Table, Unit};

use super::drawn::drawn;
use super::{FlameGraph, FlameWeight};

/// Frames in the table.
const MOST_ROWS: usize = 50;

/// A frame over all its stacks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Everywhere {
    /// Time in ns with the frames inside it, per side; inside itself it counts once.
    pub(crate) total_ns: [u64; 2],
    /// Time in ns of its own, per side.
    pub(crate) own_ns: [u64; 2],
    /// How often it ran, per side.
    pub(crate) count: [u64; 2],
    /// Where it first ran in the stack that is first in the graph.
    pub(crate) first: Option<(Side, Interval)>,
}

fn add(to: &mut [u64; 2], more: [u64; 2]) {
    for (to, more) in to.iter_mut().zip(more) {
        *to = to.saturating_add(more);
    }
}

/// Every frame of `flame` over all its stacks, by its number.
pub(crate) fn everywhere(flame: &Flame) -> BTreeMap<u32, Everywhere> {
    let mut frames: BTreeMap<u32, Everywhere> = BTreeMap::new();
    let mut around: Vec<u32> = Vec::new();
    for row in flame.rows.iter().skip(1) {
        around.truncate(flopwatch_model::index(row.depth).saturating_sub(1));
        let sums = frames.entry(row.frame).or_default();
        add(&mut sums.own_ns, row.own_ns);
        add(&mut sums.count, row.total_count);
        if !around.contains(&row.frame) {
            add(&mut sums.total_ns, row.total_ns);
        }
        sums.first = sums.first.or(row.first);
        around.push(row.frame);
    }
    frames
}

pub(super) fn of_graph(output: &FlameGraph, about: &str) -> Page {
    let mut page = Page::new("Flame graph", about);
    page.not_captured.clone_from(&output.not_captured);
    let what = match output.weight {
        FlameWeight::Gpu => "GPU time",
        FlameWeight::Cpu => "CPU time",
        FlameWeight::Samples => "Samples of the CPU",
    };
    let unit = unit(output.weight);
    let mut tiles = vec![(what, Cell::from(output.value), unit)];
    if output.weight == FlameWeight::Gpu {
        tiles.push(("GPU operations", output.gpu_ops.into(), Unit::None));
        tiles.push(("Without their launch", output.gpu_ops_without_launch.into(), Unit::None));
    }
    tiles.push(("Frames", output.frames.into(), Unit::None));
    tiles.push(("Frames summed", output.frames_summed.into(), Unit::None));
    tiles.push(("Summed below", output.summed_below_ns.into(), unit));
    page.tiles(tiles);
    if output.value == 0 {
        return page;
    }
    page.flame(drawn(what, &output.flame, unit, false));
    page.table(heaviest(output));
    page
}

/// The unit of values with that weight.
pub(crate) const fn unit(weight: FlameWeight) -> Unit {
    match weight {
        FlameWeight::Gpu | FlameWeight::Cpu => Unit::Ns,
        FlameWeight::Samples => Unit::None,
    }
}

/// The frames with most time, or samples, of their own.
fn heaviest(output: &FlameGraph) -> Table {
    let unit = unit(output.weight);
    let title = match output.weight {
        FlameWeight::Gpu | FlameWeight::Cpu => "Frames with most time of their own",
        FlameWeight::Samples => "Frames with most samples of their own",
    };
    let columns = [
        ("Frame", Unit::None),
        ("Kind", Unit::None),
        ("Of its own", unit),
        ("Share", Unit::Ratio),
        ("With frames inside", unit),
    ];
    let mut table = Table::new(title, &columns);
    "Over all stacks. What a frame takes inside itself, as a function that calls itself, counts once."
        .clone_into(&mut table.about);
    let mut frames: Vec<(u32, Everywhere)> = everywhere(&output.flame)
        .into_iter()
        .filter(|(_, frame)| Side::Before.of(frame.own_ns) > 0)
        .collect();
    frames.sort_by_key(|(_, frame)| std::cmp::Reverse(Side::Before.of(frame.own_ns)));
    table.left_out = u64::try_from(frames.len().saturating_sub(MOST_ROWS)).unwrap_or(u64::MAX);
    for (number, frame) in frames.into_iter().take(MOST_ROWS) {
        let known = output.flame.frames.get(flopwatch_model::index(number));
        let own_ns = Side::Before.of(frame.own_ns);
        let cells = [
            known.map_or("", |frame| frame.name.as_str()).into(),
            known.map_or(FrameKind::Rest, |frame| frame.kind).label().into(),
            own_ns.into(),
            ratio(own_ns, output.value).into(),
            Side::Before.of(frame.total_ns).into(),
        ];
        match frame.first {
            Some((_, time)) => table.push_at(place(time), cells),
            None => table.push(cells),
        }
    }
    table
}

const fn place(time: Interval) -> Place {
    Place {
        input: 0,
        start_ns: time.start,
        end_ns: time.end,
        row: None,
    }
}
