//! Every push/pop range with its place among the others.

use flopwatch_measures::range_tree::RangeTree;
use flopwatch_model::{Category, ColumnId, EventId, Needs, RowId, index};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, Table, TimelineLocation};
use schemars::JsonSchema;
use serde::Serialize;

use super::calls::is_push_pop;
use super::parameters::NsysParams;
use crate::cut::cut;
use crate::definition::{Analysis, AnalysisError};
use crate::input::Inputs;

/// Most ranges of a stack that are named: the innermost ones.
pub(super) const MAX_LEVELS: usize = 1000;

/// Push/pop ranges in the order of their starts.
#[derive(Debug)]
pub struct NvtxPushpopTrace;

/// Push/pop ranges in the order of their starts, the shortest first where they start together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct NsysPushPopTrace {
    /// What the capture lacks.
    pub not_captured: Vec<NotCaptured>,
    /// The rows.
    pub rows: Vec<NsysPushPopTraceRow>,
    /// Rows that were left out behind these.
    pub left_out: u64,
}

/// A range.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NsysPushPopTraceRow {
    /// Start in ns.
    pub start_ns: u64,
    /// Length in ns.
    pub duration_ns: u64,
    /// Total length in ns of the ranges directly inside.
    pub children_ns: u64,
    /// Its domain and text.
    pub name: String,
    /// Process.
    pub process: u32,
    /// Thread; null where the source does not say it.
    pub thread: Option<u64>,
    /// Ranges around it.
    pub level: u32,
    /// Ranges directly inside.
    pub children: u64,
    /// Its number: 1 for the first range of the capture.
    pub range_id: u32,
    /// The number of the range around it; null of an outermost one.
    pub parent_id: Option<u32>,
    /// The numbers of the ranges around it, the outermost first, and its own; at most the 1,000
    /// innermost.
    pub stack: Vec<u32>,
    /// The timeline's row.
    pub row: RowId,
}

/// A range's number, as people see it.
pub(super) const fn number(range: EventId) -> u32 {
    range.number().saturating_add(1)
}

/// A stack as nsys writes it: `:1:5`.
pub(super) fn stack_text(stack: &[u32]) -> String {
    let mut text = String::new();
    for range in stack {
        text.push(':');
        text.push_str(&range.to_string());
    }
    text
}

/// A name behind a mark for each range around it. A range without a name has none here either.
fn name_tree(level: usize, name: &str) -> String {
    if name.is_empty() {
        return String::new();
    }
    format!("{}{name}", "--".repeat(level))
}

impl Analysis for NvtxPushpopTrace {
    const NAME: &'static str = "nvtx_pushpop_trace";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "NVTX push/pop ranges in the order of their starts with the ranges around and inside them, as nsys stats has them.";
    const GROUP: crate::Group = crate::Group::NsysTables;
    const NEEDS: Needs = Needs::of(&[Category::NvtxRange])
        .columns(&[ColumnId::RangeStyle])
        .names()
        .rows();
    type Params = NsysParams;
    type Output = NsysPushPopTrace;

    fn run(inputs: &Inputs<'_>, params: &NsysParams) -> Result<NsysPushPopTrace, AnalysisError> {
        let timeline = inputs.first();
        let mut output = NsysPushPopTrace {
            not_captured: NotCaptured::of_parts(&timeline.capture, &[(&[Category::NvtxRange], "NVTX ranges")]),
            ..NsysPushPopTrace::default()
        };
        let Some(ranges) = timeline.capture.events.get(&Category::NvtxRange) else {
            return Ok(output);
        };
        let push_pop = is_push_pop(ranges);
        let tree = RangeTree::of(ranges, &push_pop);
        let mut children = vec![(0_u64, 0_u64); ranges.len()];
        let mut order = Vec::new();
        for (range, (start, duration)) in EventId::all().zip(ranges.start_ns.iter().zip(&ranges.duration_ns)) {
            if push_pop(range.index()) {
                order.push((*start, *duration, range));
            }
            let parent = tree.parent(range.index());
            if let Some((number, length)) = parent.and_then(|parent| children.get_mut(parent.index())) {
                *number += 1;
                *length = length.saturating_add(*duration);
            }
        }
        order.sort_unstable();
        output.left_out = cut(&mut order, params.limit);
        let row = |(start_ns, duration_ns, range): (u64, u64, EventId)| {
            let at = range.index();
            let row_number = *ranges.row.get(at)?;
            let row = timeline.row(row_number)?;
            let (children, children_ns) = children.get(at).copied()?;
            let stack = tree.stack(range, MAX_LEVELS);
            Some(NsysPushPopTraceRow {
                start_ns,
                duration_ns,
                children_ns,
                name: ranges.name_of(at).to_owned(),
                process: row.process,
                thread: row.thread,
                level: tree.level(at),
                children,
                range_id: number(range),
                parent_id: tree.parent(at).map(number),
                stack: stack.into_iter().map(number).collect(),
                row: row_number,
            })
        };
        output.rows = order.into_iter().filter_map(row).collect();
        Ok(output)
    }

    fn page(output: &NsysPushPopTrace) -> Result<Page, AnalysisError> {
        let end_ns = |row: &NsysPushPopTraceRow| row.start_ns.saturating_add(row.duration_ns);
        let table = Table::of("", &output.rows)
            .left_out(output.left_out)
            .column("Start (ns)", |row| row.start_ns)
            .column("End (ns)", end_ns)
            .column("Duration (ns)", |row| row.duration_ns)
            .column("DurChild (ns)", |row| row.children_ns)
            .column("DurNonChild (ns)", |row| {
                let own = i128::from(row.duration_ns) - i128::from(row.children_ns);
                i64::try_from(own).unwrap_or(i64::MIN)
            })
            .column("Name", |row| row.name.as_str())
            .column("PID", |row| row.process)
            .column("TID", |row| row.thread)
            .column("Lvl", |row| row.level)
            .column("NumChild", |row| row.children)
            .column("RangeId", |row| row.range_id)
            .column("ParentId", |row| row.parent_id)
            .column("RangeStack", |row| stack_text(&row.stack))
            .column("NameTree", |row| name_tree(index(row.level).min(MAX_LEVELS), &row.name))
            .at(|row| TimelineLocation::new(row.start_ns, end_ns(row), Some(row.row)));
        Ok(Page::of_table(Self::NAME, Self::ABOUT, &output.not_captured, table))
    }
}
