//! What ran in one iteration.

use std::collections::BTreeMap;

use flopwatch_measures::kernel_class::WorkClass;
use flopwatch_measures::work::Work;
use flopwatch_model::{Category, NameId, RowId, Timeline, index};
use schemars::JsonSchema;
use serde::Serialize;

use super::{IterationRow, IterationsParams};
use crate::cut::cut;

/// The kernels, copies and memsets of an iteration, the longest in all first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct IterationDetail {
    /// The timeline's row of its loop.
    pub row: RowId,
    /// Number of the iteration.
    pub number: u64,
    /// Its length as a share of the median of its loop.
    pub of_median_ratio: f64,
    /// What ran.
    pub kernels: Vec<IterationKernel>,
    /// Names behind the list's limit.
    pub left_out: u64,
}

/// GPU work of one name in an iteration.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct IterationKernel {
    /// Name of the kernel.
    pub name: String,
    /// What it is for.
    pub class: WorkClass,
    /// How often it ran.
    pub instances: u64,
    /// Sum of the lengths in ns.
    pub total_ns: u64,
    /// Longest in ns.
    pub max_ns: u64,
    /// Start in ns of the first.
    pub start_ns: u64,
    /// End in ns of the last.
    pub end_ns: u64,
}

/// The iteration of the number that `params` ask for, in each loop.
pub(super) fn of(
    timeline: &Timeline,
    rows: &[IterationRow],
    lists: &[Vec<Work>],
    params: &IterationsParams,
) -> Vec<IterationDetail> {
    let Some(number) = params.number else {
        return Vec::new();
    };
    let wanted = rows.iter().zip(lists).filter(|(row, _)| row.number == number);
    wanted
        .map(|(row, work)| {
            let of_loop = rows.iter().filter(|other| other.row == row.row);
            let usual = super::median(of_loop.map(|other| other.time_ns));
            let mut kernels = kernels(timeline, work);
            let left_out = cut(&mut kernels, params.kernel_limit);
            IterationDetail {
                row: row.row,
                number,
                of_median_ratio: flopwatch_model::ratio(row.time_ns, usual).unwrap_or(0.0),
                kernels,
                left_out,
            }
        })
        .collect()
}

fn kernels(timeline: &Timeline, work: &[Work]) -> Vec<IterationKernel> {
    let mut found: BTreeMap<(Category, NameId), IterationKernel> = BTreeMap::new();
    for work in work {
        let name = work.events(timeline).and_then(|events| events.name.get(index(work.at)));
        let Some(name) = name else { continue };
        let kernel = found.entry((work.category, *name)).or_insert_with(|| IterationKernel {
            name: work.name(timeline).to_owned(),
            class: work.class,
            instances: 0,
            total_ns: 0,
            max_ns: 0,
            start_ns: work.time.start,
            end_ns: 0,
        });
        kernel.instances += 1;
        kernel.total_ns += work.time.len();
        kernel.max_ns = kernel.max_ns.max(work.time.len());
        kernel.end_ns = kernel.end_ns.max(work.time.end);
    }
    let mut kernels: Vec<IterationKernel> = found.into_values().collect();
    kernels.sort_by(|one, other| {
        other
            .total_ns
            .cmp(&one.total_ns)
            .then_with(|| one.name.cmp(&other.name))
    });
    kernels
}
