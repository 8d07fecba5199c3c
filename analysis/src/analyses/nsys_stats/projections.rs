//! NVTX ranges as GPUs saw them: from the first start to the last end of the work that was launched
//! inside.

use std::collections::BTreeMap;

use flopwatch_measures::call_ranges;
use flopwatch_measures::range_tree::RangeTree;
use flopwatch_measures::work::GPU_WORK;
use flopwatch_model::{
    Category, ColumnId, EventId, Events, NameId, Needs, Row, RowId, Timeline, approximate, gpu_work_and,
};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, Table, TimelineLocation};
use flopwatch_summary::Statistics;
use schemars::JsonSchema;
use serde::Serialize;

use super::calls::style;
use super::parameters::NsysParams;
use super::push_pop_trace::{MAX_LEVELS, number, stack_text};
use super::rounding::tenths;
use crate::cut::cut;
use crate::definition::{Analysis, AnalysisError};
use crate::input::Inputs;

/// Projections by range.
#[derive(Debug)]
pub struct NvtxGpuProjSum;

/// The projection of each range.
#[derive(Debug)]
pub struct NvtxGpuProjTrace;

/// Projections by range, the largest total first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct NsysProjections {
    /// What the capture lacks.
    pub not_captured: Vec<NotCaptured>,
    /// The rows.
    pub rows: Vec<NsysProjectionsRow>,
    /// Rows that were left out behind these.
    pub left_out: u64,
}

/// The projections of the ranges of one name.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NsysProjectionsRow {
    /// Its domain and text.
    pub name: String,
    /// `PushPop` or `StartEnd`.
    pub style: &'static str,
    /// Total length in ns on GPUs. Ranges inside others are not subtracted.
    pub projected_ns: u64,
    /// Total length in ns of the ranges themselves.
    pub range_ns: u64,
    /// Ranges with work.
    pub instances: u64,
    /// Mean length in ns on GPUs.
    pub avg_ns: f64,
    /// The middle one in ns, or the mean of the two middle ones.
    pub med_ns: f64,
    /// The shortest in ns.
    pub min_ns: u64,
    /// The longest in ns.
    pub max_ns: u64,
    /// Sample standard deviation in ns; 0 of a single one.
    pub stddev_ns: f64,
    /// Calls that launched work; nsys's `Total GPU Ops`. A launch of a CUDA graph is one.
    pub launches: u64,
    /// Pieces of work that they launched.
    pub operations: u64,
    /// Mean number of ranges around it.
    pub avg_level: f64,
    /// Mean number of ranges with work directly inside.
    pub avg_children: f64,
}

/// Projections in the order of their starts, the longest first where they start together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct NsysProjectionTrace {
    /// What the capture lacks.
    pub not_captured: Vec<NotCaptured>,
    /// The rows.
    pub rows: Vec<NsysProjectionTraceRow>,
    /// Rows that were left out behind these.
    pub left_out: u64,
}

/// The projection of a range, or of all work that was launched outside of ranges.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NsysProjectionTraceRow {
    /// Its domain and text; null of what was launched outside of ranges.
    pub name: Option<String>,
    /// Start in ns of the first work.
    pub projected_start_ns: u64,
    /// Length in ns to the end of the last work.
    pub projected_duration_ns: u64,
    /// Start in ns of the range.
    pub start_ns: Option<u64>,
    /// Length in ns of the range.
    pub duration_ns: Option<u64>,
    /// `PushPop` or `StartEnd`.
    pub style: Option<&'static str>,
    /// Process; null where several launched outside of ranges.
    pub process: Option<u32>,
    /// Thread; null where several launched outside of ranges, or the source does not say it.
    pub thread: Option<u64>,
    /// Calls that launched work; nsys's `NumGPUOps`. A launch of a CUDA graph is one.
    pub launches: u64,
    /// Pieces of work that they launched.
    pub operations: u64,
    /// Ranges around it.
    pub level: Option<u32>,
    /// Ranges with work directly inside.
    pub children: u64,
    /// Its number: 1 for the first range of the capture.
    pub range_id: Option<u32>,
    /// The number of the range around it; null of an outermost one.
    pub parent_id: Option<u32>,
    /// The numbers of the ranges around it, the outermost first, and its own; at most the 1,000
    /// innermost.
    pub stack: Vec<u32>,
}

/// The work of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RangeProjection {
    start: u64,
    end: u64,
    launches: u64,
    operations: u64,
}

impl RangeProjection {
    const NOTHING: Self = Self {
        start: u64::MAX,
        end: 0,
        launches: 0,
        operations: 0,
    };

    fn add(&mut self, other: Self) {
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
        self.launches += other.launches;
        self.operations += other.operations;
    }

    fn length(self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// The work of each range, and of the calls outside of all.
struct Projection<'a> {
    ranges: &'a Events,
    tree: RangeTree,
    of_range: Vec<RangeProjection>,
    outside: RangeProjection,
    /// The rows of the calls outside: none, one, or the first of several.
    rows_outside: (Option<RowId>, bool),
    /// Ranges with work directly inside each range.
    children: Vec<u64>,
}

/// The work of each call, by its place.
fn by_call(timeline: &Timeline, calls: usize) -> Vec<RangeProjection> {
    let mut found = vec![RangeProjection::NOTHING; calls];
    for events in GPU_WORK
        .iter()
        .filter_map(|category| timeline.capture.events.get(category))
    {
        let Some(launches) = events.column(ColumnId::Launch) else {
            continue;
        };
        for (at, start) in events.start_ns.iter().enumerate() {
            let call = launches.get(at).and_then(|call| usize::try_from(call).ok());
            if let Some(call) = call.and_then(|call| found.get_mut(call)) {
                call.add(RangeProjection {
                    start: *start,
                    end: events.end_ns(at),
                    launches: 0,
                    operations: 1,
                });
                call.launches = 1;
            }
        }
    }
    found
}

impl<'a> Projection<'a> {
    fn of(timeline: &'a Timeline) -> Option<Self> {
        let ranges = timeline.capture.events.get(&Category::NvtxRange)?;
        let calls = timeline.capture.events.get(&Category::CudaApi)?;
        let work = by_call(timeline, calls.len());
        let mut projection = Self {
            ranges,
            tree: RangeTree::of(ranges, |_| true),
            of_range: vec![RangeProjection::NOTHING; ranges.len()],
            outside: RangeProjection::NOTHING,
            rows_outside: (None, false),
            children: vec![0; ranges.len()],
        };
        let launching = EventId::all().zip(&work).filter(|(_, work)| work.launches > 0);
        call_ranges::visit(timeline, launching.map(|(call, _)| call), |call, around| {
            let Some(work) = work.get(call.index()) else {
                return;
            };
            for range in around {
                if let Some(range) = projection.of_range.get_mut(range.index()) {
                    range.add(*work);
                }
            }
            if around.is_empty() {
                projection.outside.add(*work);
                let row = calls.row.get(call.index()).copied();
                let (known, several) = projection.rows_outside;
                projection.rows_outside = (known.or(row), several || known.is_some_and(|known| Some(known) != row));
            }
        });
        for at in 0..ranges.len() {
            let has_work = projection.of_range.get(at).is_some_and(|range| range.launches > 0);
            let parent = projection.tree.parent(at).filter(|_| has_work);
            if let Some(children) = parent.and_then(|parent| projection.children.get_mut(parent.index())) {
                *children += 1;
            }
        }
        Some(projection)
    }

    /// The ranges with work.
    fn with_work(&self) -> impl Iterator<Item = (EventId, RangeProjection)> {
        let all = EventId::all().zip(self.of_range.iter().copied());
        all.filter(|(_, range)| range.launches > 0)
    }

    fn style(&self, at: usize) -> &'static str {
        let styles = self.ranges.column(ColumnId::RangeStyle);
        style(styles.and_then(|styles| styles.get(at)).unwrap_or(0))
    }

    fn children(&self, at: usize) -> u64 {
        self.children.get(at).copied().unwrap_or(0)
    }

    fn duration(&self, at: usize) -> u64 {
        self.ranges.duration_ns.get(at).copied().unwrap_or(0)
    }

    fn row(&self, timeline: &'a Timeline, at: usize) -> Option<&'a Row> {
        timeline.row(*self.ranges.row.get(at)?)
    }

    fn outside(&self, timeline: &Timeline) -> NsysProjectionTraceRow {
        let (row, several) = self.rows_outside;
        let row = row.filter(|_| !several).and_then(|row| timeline.row(row));
        NsysProjectionTraceRow {
            projected_start_ns: self.outside.start,
            projected_duration_ns: self.outside.length(),
            process: row.map(|row| row.process),
            thread: row.and_then(|row| row.thread),
            launches: self.outside.launches,
            operations: self.outside.operations,
            ..NsysProjectionTraceRow::default()
        }
    }

    fn trace_row(&self, timeline: &Timeline, id: EventId, range: RangeProjection) -> NsysProjectionTraceRow {
        let event = id.index();
        let row = self.row(timeline, event);
        let stack = self.tree.stack(id, MAX_LEVELS);
        NsysProjectionTraceRow {
            name: Some(self.ranges.name_of(event).to_owned()),
            projected_start_ns: range.start,
            projected_duration_ns: range.length(),
            start_ns: self.ranges.start_ns.get(event).copied(),
            duration_ns: Some(self.duration(event)),
            style: Some(self.style(event)),
            process: row.map(|row| row.process),
            thread: row.and_then(|row| row.thread),
            launches: range.launches,
            operations: range.operations,
            level: Some(self.tree.level(event)),
            children: self.children(event),
            range_id: Some(number(id)),
            parent_id: self.tree.parent(event).map(number),
            stack: stack.into_iter().map(number).collect(),
        }
    }
}

/// What the ranges of one name add up to.
#[derive(Default)]
struct Sums {
    lengths: Vec<u64>,
    range_ns: u64,
    launches: u64,
    operations: u64,
    levels: u64,
    children: u64,
}

impl Sums {
    fn row(self, name: &str, style: &'static str) -> Option<NsysProjectionsRow> {
        let figures = Statistics::of(self.lengths)?;
        let mean = |sum: u64| approximate(u128::from(sum)) / approximate(u128::from(figures.calls));
        Some(NsysProjectionsRow {
            name: name.to_owned(),
            style,
            projected_ns: figures.total,
            range_ns: self.range_ns,
            instances: figures.calls,
            avg_ns: figures.avg,
            med_ns: figures.median,
            min_ns: figures.min,
            max_ns: figures.max,
            stddev_ns: figures.stddev,
            launches: self.launches,
            operations: self.operations,
            avg_level: mean(self.levels),
            avg_children: mean(self.children),
        })
    }
}

const PARTS: &[(&[Category], &str)] = &[
    (&[Category::NvtxRange], "NVTX ranges"),
    (&[Category::CudaApi], "launches of GPU work"),
    (GPU_WORK, "GPU work"),
];

const NEEDS: Needs = Needs::of(gpu_work_and![Category::CudaApi, Category::NvtxRange])
    .columns(&[ColumnId::Launch, ColumnId::RangeStyle])
    .names()
    .rows();

impl Analysis for NvtxGpuProjSum {
    const NAME: &'static str = "nvtx_gpu_proj_sum";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "NVTX ranges projected onto GPUs by name, as nsys stats has them.";
    const GROUP: crate::Group = crate::Group::NsysTables;
    const NEEDS: Needs = NEEDS;
    type Params = NsysParams;
    type Output = NsysProjections;

    fn run(inputs: &Inputs<'_>, params: &NsysParams) -> Result<NsysProjections, AnalysisError> {
        let timeline = inputs.first();
        let mut output = NsysProjections {
            not_captured: NotCaptured::of_parts(&timeline.capture, PARTS),
            ..NsysProjections::default()
        };
        let Some(projection) = Projection::of(timeline) else {
            return Ok(output);
        };
        let mut sums: BTreeMap<(NameId, &'static str), Sums> = BTreeMap::new();
        for (event, range) in projection.with_work() {
            let event = event.index();
            let Some(name) = projection.ranges.name.get(event).copied() else {
                continue;
            };
            let sums = sums.entry((name, projection.style(event))).or_default();
            sums.lengths.push(range.length());
            sums.range_ns = sums.range_ns.saturating_add(projection.duration(event));
            sums.launches += range.launches;
            sums.operations += range.operations;
            sums.levels += u64::from(projection.tree.level(event));
            sums.children += projection.children(event);
        }
        let name = |id: NameId| projection.ranges.names.get(id.index()).map_or("", String::as_str);
        let rows = sums.into_iter();
        let rows = rows.filter_map(|((id, style), sums)| sums.row(name(id), style));
        let mut rows: Vec<NsysProjectionsRow> = rows.collect();
        rows.sort_by(|a, b| {
            let names = || (&a.name, a.style).cmp(&(&b.name, b.style));
            b.projected_ns.cmp(&a.projected_ns).then_with(names)
        });
        output.left_out = cut(&mut rows, params.limit);
        output.rows = rows;
        Ok(output)
    }

    fn page(output: &NsysProjections) -> Result<Page, AnalysisError> {
        let launches = |row: &NsysProjectionsRow| {
            approximate(u128::from(row.launches)) / approximate(u128::from(row.instances.max(1)))
        };
        let table = Table::of("", &output.rows)
            .left_out(output.left_out)
            .column("Range", |row| row.name.as_str())
            .column("Style", |row| row.style)
            .column("Total Proj Time (ns)", |row| row.projected_ns)
            .column("Total Range Time (ns)", |row| row.range_ns)
            .column("Range Instances", |row| row.instances)
            .number("Proj Avg (ns)", 1, |row| tenths(row.avg_ns))
            .number("Proj Med (ns)", 1, |row| tenths(row.med_ns))
            .column("Proj Min (ns)", |row| row.min_ns)
            .column("Proj Max (ns)", |row| row.max_ns)
            .number("Proj StdDev (ns)", 1, |row| tenths(row.stddev_ns))
            .column("Total GPU Ops", |row| row.launches)
            .number("Avg GPU Ops", 1, |row| tenths(launches(row)))
            .number("Avg Range Lvl", 1, |row| tenths(row.avg_level))
            .number("Avg Num Child", 1, |row| tenths(row.avg_children));
        Ok(Page::of_table(Self::NAME, Self::ABOUT, &output.not_captured, table))
    }
}

impl Analysis for NvtxGpuProjTrace {
    const NAME: &'static str = "nvtx_gpu_proj_trace";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "Each NVTX range projected onto GPUs, as nsys stats has them.";
    const GROUP: crate::Group = crate::Group::NsysTables;
    const NEEDS: Needs = NEEDS;
    type Params = NsysParams;
    type Output = NsysProjectionTrace;

    fn run(inputs: &Inputs<'_>, params: &NsysParams) -> Result<NsysProjectionTrace, AnalysisError> {
        let timeline = inputs.first();
        let mut output = NsysProjectionTrace {
            not_captured: NotCaptured::of_parts(&timeline.capture, PARTS),
            ..NsysProjectionTrace::default()
        };
        let Some(projection) = Projection::of(timeline) else {
            return Ok(output);
        };
        let outside = (projection.outside.launches > 0).then_some((None, projection.outside));
        let ranges = projection.with_work().map(|(at, range)| (Some(at), range));
        let mut order: Vec<(Option<EventId>, RangeProjection)> = outside.into_iter().chain(ranges).collect();
        order.sort_by_key(|(at, range)| (range.start, std::cmp::Reverse(range.length()), *at));
        output.left_out = cut(&mut order, params.limit);
        let row = |(at, range): (Option<EventId>, RangeProjection)| match at {
            Some(at) => projection.trace_row(timeline, at, range),
            None => projection.outside(timeline),
        };
        output.rows = order.into_iter().map(row).collect();
        Ok(output)
    }

    fn page(output: &NsysProjectionTrace) -> Result<Page, AnalysisError> {
        let table = Table::of("", &output.rows)
            .left_out(output.left_out)
            .column("Name", |row| row.name.as_deref())
            .column("Projected Start (ns)", |row| row.projected_start_ns)
            .column("Projected Duration (ns)", |row| row.projected_duration_ns)
            .column("Orig Start (ns)", |row| row.start_ns)
            .column("Orig Duration (ns)", |row| row.duration_ns)
            .column("Style", |row| row.style)
            .column("PID", |row| row.process)
            .column("TID", |row| row.thread)
            .column("NumGPUOps", |row| row.launches)
            .column("Lvl", |row| row.level)
            .column("NumChild", |row| row.children)
            .column("RangeId", |row| row.range_id)
            .column("ParentId", |row| row.parent_id)
            .column("RangeStack", |row| {
                (!row.stack.is_empty()).then(|| stack_text(&row.stack))
            })
            .at(|row| TimelineLocation::lasting(row.projected_start_ns, row.projected_duration_ns, None));
        Ok(Page::of_table(Self::NAME, Self::ABOUT, &output.not_captured, table))
    }
}
