//! What people read of a flame graph.

use std::collections::BTreeMap;

use flopwatch_measures::flame::{Flame, FrameKind, Side};
use flopwatch_measures::interval::Interval;
use flopwatch_model::ratio;
use flopwatch_report::page::{Page, Table, Tile, TimelineLocation, Unit};

use super::drawn::drawn;
use super::{FlameGraph, FlameWeight};

/// Frames in the table.
const MAX_ROWS: usize = 50;

/// A frame over all its stacks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FrameTotals {
    /// Time in ns with the frames inside it, per side; inside itself it counts once.
    pub(crate) total_ns: [u64; 2],
    /// Time in ns of its own, per side.
    pub(crate) own_ns: [u64; 2],
    /// How often it ran, per side.
    pub(crate) count: [u64; 2],
    /// Side and time of the first run in the stack that is first in the graph.
    pub(crate) first: Option<(Side, Interval)>,
}

fn add(to: &mut [u64; 2], more: [u64; 2]) {
    for (to, more) in to.iter_mut().zip(more) {
        *to = to.saturating_add(more);
    }
}

/// Every frame of `flame` over all its stacks, by its number.
pub(crate) fn frame_totals(flame: &Flame) -> BTreeMap<u32, FrameTotals> {
    let mut frames: BTreeMap<u32, FrameTotals> = BTreeMap::new();
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

pub(super) fn of_graph(output: &FlameGraph, title: &str, about: &str) -> Page {
    let mut page = Page::of(title, about, &output.not_captured);
    let what = match output.weight {
        FlameWeight::Gpu => "GPU time",
        FlameWeight::Cpu => "CPU time",
        FlameWeight::Samples => "Samples of the CPU",
    };
    let unit = unit(output.weight);
    let mut tiles = vec![Tile::figure(what, unit, output.value)];
    if output.weight == FlameWeight::Gpu {
        tiles.push(Tile::new("GPU operations", output.gpu_ops));
        tiles.push(Tile::new("Without their launch", output.gpu_ops_without_launch));
    }
    tiles.push(Tile::new("Frames", output.frames));
    tiles.push(Tile::new("Frames summed", output.frames_summed));
    tiles.push(Tile::figure("Summed below", unit, output.summed_below_ns));
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
fn heaviest(output: &FlameGraph) -> impl Into<Table> {
    let unit = unit(output.weight);
    let title = match output.weight {
        FlameWeight::Gpu | FlameWeight::Cpu => "Frames with most time of their own",
        FlameWeight::Samples => "Frames with most samples of their own",
    };
    let mut frames: Vec<(u32, FrameTotals)> = frame_totals(&output.flame)
        .into_iter()
        .filter(|(_, frame)| Side::Before.of(frame.own_ns) > 0)
        .collect();
    frames.sort_by_key(|(_, frame)| std::cmp::Reverse(Side::Before.of(frame.own_ns)));
    let left_out = u64::try_from(frames.len().saturating_sub(MAX_ROWS)).unwrap_or(u64::MAX);
    let frame_at = |number: u32| output.flame.frames.get(flopwatch_model::index(number));
    let frames = frames.into_iter().take(MAX_ROWS);
    Table::of(title, frames.map(|(number, totals)| (frame_at(number), totals)))
        .about(
            "Over all stacks. What a frame takes inside itself, as a function that calls itself, counts \
             once.",
        )
        .left_out(left_out)
        .column("Frame", |(frame, _)| frame.map_or("", |frame| frame.name.as_str()))
        .column("Kind", |(frame, _)| {
            frame.map_or(FrameKind::Rest, |frame| frame.kind).label()
        })
        .figure("Of its own", unit, |(_, totals)| Side::Before.of(totals.own_ns))
        .figure("Share", Unit::Ratio, |(_, totals)| {
            ratio(Side::Before.of(totals.own_ns), output.value)
        })
        .figure("With frames inside", unit, |(_, totals)| {
            Side::Before.of(totals.total_ns)
        })
        .at(|(_, totals)| {
            totals
                .first
                .map(|(_, time)| TimelineLocation::new(time.start, time.end, None))
        })
}
