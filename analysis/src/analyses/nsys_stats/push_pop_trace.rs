//! Every push/pop range with its place among the others.

use flopwatch_measures::range_tree::RangeTree;
use flopwatch_model::{Category, ColumnId, Needs, Selection, count, index};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, Place};
use schemars::JsonSchema;
use serde::Serialize;

use super::calls::is_push_pop;
use super::gpu::lacking;
use super::heads::{plain, table};
use super::parameters::NsysParams;
use crate::definition::{Analysis, AnalysisError, InputCount};
use crate::input::Inputs;

/// Most ranges of a stack that are named: the innermost ones.
pub(super) const MOST_LEVELS: usize = 1000;

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
    /// The numbers of the ranges around it, the outermost first, and its own; at most the 1,000 innermost.
    pub stack: Vec<u32>,
    /// The timeline's row.
    pub row: u32,
}

/// A range's number, as people see it.
pub(super) fn number(at: u32) -> u32 {
    at.saturating_add(1)
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
    const INPUTS: InputCount = InputCount::One;
    const NEEDS: Needs = Needs {
        categories: Selection::Only(&[Category::NvtxRange]),
        columns: Selection::Only(&[ColumnId::RangeStyle]),
        names: true,
        rows: true,
        ..Needs::NOTHING
    };
    type Params = NsysParams;
    type Output = NsysPushPopTrace;

    fn run(inputs: &Inputs<'_>, params: &NsysParams) -> Result<NsysPushPopTrace, AnalysisError> {
        let timeline = inputs.first();
        let mut output = NsysPushPopTrace {
            not_captured: lacking(timeline, &[Category::NvtxRange], "NVTX ranges")
                .into_iter()
                .collect(),
            ..NsysPushPopTrace::default()
        };
        let Some(ranges) = timeline.capture.events.get(&Category::NvtxRange) else {
            return Ok(output);
        };
        let push_pop = is_push_pop(ranges);
        let tree = RangeTree::of(ranges, &push_pop);
        let mut children = vec![(0_u64, 0_u64); ranges.len()];
        let mut order = Vec::new();
        for (at, (start, duration)) in (0_u32..).zip(ranges.start_ns.iter().zip(&ranges.duration_ns)) {
            if push_pop(index(at)) {
                order.push((*start, *duration, at));
            }
            let parent = tree.parent(index(at));
            if let Some((number, length)) = parent.and_then(|parent| children.get_mut(index(parent))) {
                *number += 1;
                *length = length.saturating_add(*duration);
            }
        }
        order.sort_unstable();
        let shown = order.len().min(index(params.limit));
        output.left_out = count(order.len() - shown);
        let row = |(start_ns, duration_ns, at): (u64, u64, u32)| {
            let place = *ranges.row.get(index(at))?;
            let row = timeline.row(place)?;
            let (children, children_ns) = children.get(index(at)).copied()?;
            let stack = tree.stack(at, MOST_LEVELS);
            Some(NsysPushPopTraceRow {
                start_ns,
                duration_ns,
                children_ns,
                name: ranges.name_of(index(at)).to_owned(),
                process: row.process,
                thread: row.thread,
                level: tree.level(index(at)),
                children,
                range_id: number(at),
                parent_id: tree.parent(index(at)).map(number),
                stack: stack.into_iter().map(number).collect(),
                row: place,
            })
        };
        output.rows = order.into_iter().take(shown).filter_map(row).collect();
        Ok(output)
    }

    fn page(output: &NsysPushPopTrace) -> Result<Page, AnalysisError> {
        let heads = [
            "Start (ns)",
            "End (ns)",
            "Duration (ns)",
            "DurChild (ns)",
            "DurNonChild (ns)",
            "Name",
            "PID",
            "TID",
            "Lvl",
            "NumChild",
            "RangeId",
            "ParentId",
            "RangeStack",
            "NameTree",
        ];
        let mut table = table(&heads.map(plain), output.left_out);
        for row in &output.rows {
            let end_ns = row.start_ns.saturating_add(row.duration_ns);
            let place = Place {
                input: 0,
                start_ns: row.start_ns,
                end_ns,
                row: Some(row.row),
            };
            let own = i128::from(row.duration_ns) - i128::from(row.children_ns);
            let level = index(row.level).min(MOST_LEVELS);
            let cells = [
                row.start_ns.into(),
                end_ns.into(),
                row.duration_ns.into(),
                row.children_ns.into(),
                i64::try_from(own).unwrap_or(i64::MIN).into(),
                row.name.as_str().into(),
                row.process.into(),
                row.thread.into(),
                row.level.into(),
                row.children.into(),
                row.range_id.into(),
                row.parent_id.into(),
                stack_text(&row.stack).into(),
                name_tree(level, &row.name).into(),
            ];
            table.push_at(place, cells);
        }
        let mut page = Page::new(Self::NAME, Self::ABOUT);
        page.not_captured.clone_from(&output.not_captured);
        page.table(table);
        Ok(page)
    }
}
