//! What of the program holds a wait: the innermost range, operator, annotation and function around
//! it on its thread.

use std::collections::BTreeMap;

use flopwatch_measures::holder::{HolderQuery, innermost, row_on};
use flopwatch_measures::host_call::{CallCost, HostCall, ProcessGpus};
use flopwatch_measures::operation_name::normalised;
use flopwatch_model::{Category, ColumnId, EventLinks, NameId, Timeline, Track};
use flopwatch_report::page::TimelineLocation;
use schemars::JsonSchema;
use serde::Serialize;

use super::SyncKind;

/// A range, operator, annotation or function that holds waits.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SyncHolder {
    /// Its category: `nvtx_range`, `cpu_op`, `annotation` or `python_function`.
    pub category: Category,
    /// Its name without the numbers that tell one instance from the next.
    pub name: String,
    /// What the waits cost that it holds with no other of its category between.
    pub cost: CallCost,
    /// The longest of these waits.
    pub longest: TimelineLocation,
}

/// Which events hold each wait, per category.
pub(super) struct WaitHolders {
    categories: Vec<(Category, EventLinks)>,
}

const HOLDERS: [(Category, Track); 4] = [
    (Category::NvtxRange, Track::Nvtx),
    (Category::CpuOp, Track::CpuOp),
    (Category::Annotation, Track::Annotation),
    (Category::PythonFunction, Track::Python),
];

impl WaitHolders {
    /// Of `calls`, which are sorted by start.
    pub(super) fn of(timeline: &Timeline, calls: &[(SyncKind, HostCall)]) -> Self {
        let mut categories = Vec::new();
        for (category, track) in HOLDERS {
            let Some(events) = timeline.capture.events.get(&category) else {
                continue;
            };
            let rows = row_on(timeline, track);
            // Only of threads that have such a row.
            let query = |(at, (_, call)): (usize, &(SyncKind, HostCall))| {
                let row = (*rows.get(call.row.index())?)?;
                Some((at, HolderQuery { time: call.time, row }))
            };
            let (asked, queries): (Vec<usize>, Vec<HolderQuery>) = calls.iter().enumerate().filter_map(query).unzip();
            let style = events.column(ColumnId::RangeStyle);
            let nests = |at: usize| style.and_then(|style| style.get(at)).unwrap_or(0) == 0;
            let mut holders = EventLinks::none(calls.len());
            for (at, holder) in asked.into_iter().zip(innermost(events, nests, &queries).iter()) {
                if let Some(holder) = holder {
                    holders.set(at, holder);
                }
            }
            categories.push((category, holders));
        }
        Self { categories }
    }

    /// Name of the shortest of the events that hold the call with index `call`.
    pub(super) fn innermost<'a>(&self, timeline: &'a Timeline, call: usize) -> Option<&'a str> {
        let around = self.categories.iter().filter_map(|(category, holders)| {
            let events = timeline.capture.events.get(category)?;
            let at = holders.get(call)?.index();
            let length = events.duration_ns.get(at)?;
            Some((length, events.name_of(at)))
        });
        around.min().map(|(_, name)| name)
    }

    /// The holders of each category, and how many were left out.
    pub(super) fn holders(
        &self,
        timeline: &Timeline,
        calls: &[(SyncKind, HostCall)],
        gpus: &ProcessGpus,
        limit: usize,
    ) -> (Vec<SyncHolder>, u64) {
        let (mut all, mut left_out) = (Vec::new(), 0);
        for (category, holders) in &self.categories {
            let Some(events) = timeline.capture.events.get(category) else {
                continue;
            };
            let mut by_name: BTreeMap<NameId, Vec<&HostCall>> = BTreeMap::new();
            for (holder, (_, call)) in holders.iter().zip(calls) {
                if let Some(name) = holder.and_then(|holder| events.name.get(holder.index())) {
                    by_name.entry(*name).or_default().push(call);
                }
            }
            let mut by_operation: BTreeMap<String, Vec<&HostCall>> = BTreeMap::new();
            for (name, calls) in by_name {
                let name = events.names.get(name.index()).map_or("", String::as_str);
                by_operation
                    .entry(normalised(name).into_owned())
                    .or_default()
                    .extend(calls);
            }
            let rows = by_operation.into_iter().filter_map(|(name, calls)| {
                let longest = calls
                    .iter()
                    .max_by_key(|call| (call.time.len(), call.time.start))?
                    .location();
                Some(SyncHolder {
                    category: *category,
                    name,
                    cost: gpus.cost(timeline, calls),
                    longest,
                })
            });
            let mut rows: Vec<SyncHolder> = rows.collect();
            rows.sort_by_key(|row| std::cmp::Reverse(row.cost.total_ns));
            left_out += u64::try_from(rows.len().saturating_sub(limit)).unwrap_or(u64::MAX);
            rows.truncate(limit);
            all.append(&mut rows);
        }
        (all, left_out)
    }
}
