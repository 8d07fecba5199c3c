//! What a change did to each stack: the flame graphs of two captures in one.

use std::io::Write;

use flopwatch_measures::flame::{Flame, FlameRow, FlameTree, FlameWeight, FrameKind, Side};
use flopwatch_model::{Needs, Timeline, index};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, Table, Tile};
use schemars::JsonSchema;
use serde::Serialize;

use crate::analyses::flame_graph::drawn::drawn;
use crate::analyses::flame_graph::page::{FrameTotals, frame_totals, unit};
use crate::analyses::flame_graph::{FlameParams, NEEDS, missing, nested};
use crate::definition::{Analysis, AnalysisError, FileAnalysis, InputCount};
use crate::group::Group;
use crate::input::Inputs;

/// The difference of two flame graphs.
#[derive(Debug)]
pub struct FlameDifferenceAnalysis;

/// The difference of two flame graphs as a profile of pprof.
#[derive(Debug)]
pub struct FlameDifferencePprof;

/// The result. Its `name`, `value`, `delta` and `children` are what d3-flame-graph draws as a
/// difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FlameDifference {
    /// `all`.
    pub name: String,
    /// Which time it is.
    pub weight: FlameWeight,
    /// Time in ns of both captures together. With `weight` `samples` all figures of time count
    /// samples.
    pub value: u64,
    /// Time in ns of the first capture.
    pub before_ns: u64,
    /// Time in ns of the second capture.
    pub after_ns: u64,
    /// `after_ns` without `before_ns`.
    pub delta: i64,
    /// Frames in the result, without the outermost.
    pub frames: u64,
    /// Frames of stacks that were summed: no time is lost by it.
    pub frames_summed: u64,
    /// Frames whose time in a stack is less than this, in ns, in both captures were summed.
    pub summed_below_ns: u64,
    /// The outermost frames, the longest first.
    pub children: Vec<FlameDifferenceFrame>,
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    #[serde(skip)]
    #[schemars(skip)]
    flame: Flame,
}

/// A frame: equal stacks of both captures are merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FlameDifferenceFrame {
    /// Name of the frame.
    pub name: String,
    /// The kind of the frame.
    pub kind: FrameKind,
    /// Time in ns of both captures together, with that of the frames inside it.
    pub value: u64,
    /// Time in ns of the first capture.
    pub before_ns: u64,
    /// Time in ns of the second capture.
    pub after_ns: u64,
    /// `after_ns` without `before_ns`.
    pub delta: i64,
    /// The change in ns without that of the frames inside it.
    pub self_delta: i64,
    /// The frames inside it, the longest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub children: Vec<Self>,
}

fn delta([before, after]: [u64; 2]) -> i64 {
    let signed = |value| i64::try_from(value).unwrap_or(i64::MAX);
    signed(after) - signed(before)
}

const fn sum([before, after]: [u64; 2]) -> u64 {
    before.saturating_add(after)
}

/// The flame graph of both.
fn flame_of(before: &Timeline, after: &Timeline, params: &FlameParams) -> Flame {
    let mut tree = FlameTree::default();
    tree.add(before, &params.options(), Side::Before);
    tree.add(after, &params.options(), Side::After);
    tree.cut(&params.cut())
}

impl FlameDifferenceAnalysis {
    /// Of `before` and `after`.
    pub fn of(before: &Timeline, after: &Timeline, params: &FlameParams) -> FlameDifference {
        let flame = flame_of(before, after, params);
        let shown = |row: &FlameRow, children: Vec<FlameDifferenceFrame>| FlameDifferenceFrame {
            name: flame.frame(row).map(|frame| frame.name.clone()).unwrap_or_default(),
            kind: flame.frame(row).map_or(FrameKind::Rest, |frame| frame.kind),
            value: sum(row.total_ns),
            before_ns: Side::Before.of(row.total_ns),
            after_ns: Side::After.of(row.total_ns),
            delta: delta(row.total_ns),
            self_delta: delta(row.own_ns),
            children,
        };
        let children = nested(&flame, shown);
        let total_ns = flame.total_ns();
        let lacks = |timeline, which: &'static str| {
            let missing = missing(timeline, params).into_iter();
            missing.map(move |missing| {
                NotCaptured::new(format!("{} of the {which} capture", missing.what), missing.reason)
            })
        };
        let first: Vec<NotCaptured> = lacks(before, "first").collect();
        FlameDifference {
            name: "all".to_owned(),
            weight: params.weight,
            value: sum(total_ns),
            before_ns: Side::Before.of(total_ns),
            after_ns: Side::After.of(total_ns),
            delta: delta(total_ns),
            frames: u64::try_from(flame.rows.len().saturating_sub(1)).unwrap_or(u64::MAX),
            frames_summed: flame.summed,
            summed_below_ns: flame.shortest_ns,
            children,
            not_captured: first.into_iter().chain(lacks(after, "second")).collect(),
            flame,
        }
    }
}

impl Analysis for FlameDifferenceAnalysis {
    const NAME: &'static str = "flame-difference";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "What a change did to the time of each stack: the flame graphs of two captures in one.";
    const TITLE: &'static str = "Difference of flame graphs";
    const GROUP: Group = Group::Stacks;
    const INPUTS: InputCount = InputCount::Two;
    const NEEDS: Needs = NEEDS;
    type Params = FlameParams;
    type Output = FlameDifference;

    fn run(inputs: &Inputs<'_>, params: &FlameParams) -> Result<FlameDifference, AnalysisError> {
        Ok(Self::of(inputs.first(), inputs.second(), params))
    }

    fn page(output: &FlameDifference) -> Result<Page, AnalysisError> {
        let mut page = Page::of(Self::TITLE, Self::ABOUT, &output.not_captured);
        let unit = unit(output.weight);
        page.tiles([
            Tile::figure("Before", unit, output.before_ns),
            Tile::figure("After", unit, output.after_ns),
            Tile::figure("Change", unit, output.delta),
            Tile::new("Frames", output.frames),
        ]);
        if output.value > 0 {
            page.flame(drawn("Before and after", &output.flame, unit, true));
            page.table(changed(output));
        }
        Ok(page)
    }
}

/// Frames in the table.
const MAX_ROWS: usize = 50;

/// The frames whose own time changed most.
fn changed(output: &FlameDifference) -> impl Into<Table> {
    let unit = unit(output.weight);
    let title = match output.weight {
        FlameWeight::Gpu | FlameWeight::Cpu => "Frames whose own time changed most",
        FlameWeight::Samples => "Frames whose own samples changed most",
    };
    let mut frames: Vec<(u32, FrameTotals)> = frame_totals(&output.flame)
        .into_iter()
        .filter(|(_, frame)| delta(frame.own_ns) != 0)
        .collect();
    frames.sort_by_key(|(_, frame)| std::cmp::Reverse(delta(frame.own_ns).unsigned_abs()));
    let left_out = u64::try_from(frames.len().saturating_sub(MAX_ROWS)).unwrap_or(u64::MAX);
    let frame_at = |number: u32| output.flame.frames.get(index(number));
    let frames = frames.into_iter().take(MAX_ROWS);
    Table::of(title, frames.map(|(number, totals)| (frame_at(number), totals)))
        .left_out(left_out)
        .column("Frame", |(frame, _)| frame.map_or("", |frame| frame.name.as_str()))
        .column("Kind", |(frame, _)| {
            frame.map_or(FrameKind::Rest, |frame| frame.kind).label()
        })
        .figure("Before", unit, |(_, totals)| Side::Before.of(totals.own_ns))
        .figure("After", unit, |(_, totals)| Side::After.of(totals.own_ns))
        .figure("Change", unit, |(_, totals)| delta(totals.own_ns))
        .figure("Change with frames inside", unit, |(_, totals)| delta(totals.total_ns))
}

impl FileAnalysis for FlameDifferencePprof {
    const NAME: &'static str = "flame-difference-pprof";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "What a change did to the time of each stack, as a profile of pprof.";
    const TITLE: &'static str = "Difference of flame graphs for pprof";
    const INPUTS: InputCount = InputCount::Two;
    const NEEDS: Needs = NEEDS;
    const MEDIA_TYPE: &'static str = "application/vnd.google.protobuf+gzip";
    const FILE_NAME: &'static str = "flame-difference.pb.gz";
    type Params = FlameParams;

    #[cfg(feature = "export")]
    fn write(inputs: &Inputs<'_>, params: &FlameParams, out: &mut dyn Write) -> Result<(), AnalysisError> {
        use crate::analyses::flame_graph::pprof;
        let flame = flame_of(inputs.first(), inputs.second(), params);
        Ok(pprof::write(&flame, params.weight, pprof::difference, out)?)
    }

    #[cfg(not(feature = "export"))]
    fn write(_inputs: &Inputs<'_>, _params: &FlameParams, _out: &mut dyn Write) -> Result<(), AnalysisError> {
        Err(AnalysisError::NotBuilt)
    }
}
