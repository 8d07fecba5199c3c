//! Kernels by the NVTX ranges that they were launched in.

use std::collections::{HashMap, HashSet};

use flopwatch_measures::call_ranges;
use flopwatch_model::{
    Category, ColumnId, EventId, Events, NameId, Needs, RowId, Timeline, figures_by_key, index, listed,
};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, Table};
use flopwatch_summary::Statistics;
use schemars::JsonSchema;
use serde::Serialize;

use super::calls::style;
use super::kernel_names::{KERNELS_AND_RANGES, Kernels};
use super::parameters::NsysRangeKernelParams;
use super::rounding::tenths;
use crate::cut::cut;
use crate::definition::{Analysis, AnalysisError};
use crate::input::Inputs;

/// Times of kernels by range, thread and kernel.
#[derive(Debug)]
pub struct NvtxKernSum;

/// Times of kernels by range, in the order of the ranges' names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct NsysRangeKernels {
    /// What the capture lacks.
    pub not_captured: Vec<NotCaptured>,
    /// The rows.
    pub rows: Vec<NsysRangeKernelsRow>,
    /// Rows that were left out behind these.
    pub left_out: u64,
}

/// The kernels of one name that a thread launched in the ranges of one name. A kernel counts in
/// each range around its launch; where two of them have the same name its time counts twice.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NsysRangeKernelsRow {
    /// Domain and text of the ranges; null of kernels that were launched outside of ranges, or
    /// whose launch was not recorded.
    pub range: Option<String>,
    /// `PushPop` or `StartEnd`.
    pub style: Option<&'static str>,
    /// Process; null where the launch was not recorded.
    pub process: Option<u32>,
    /// Thread; null where the launch was not recorded, or the source does not say it.
    pub thread: Option<u64>,
    /// Ranges.
    pub ranges: u64,
    /// Kernels.
    pub kernels: u64,
    /// Sum in ns.
    pub total_ns: u64,
    /// Arithmetic mean in ns.
    pub avg_ns: f64,
    /// The middle one in ns, or the mean of the two middle ones.
    pub med_ns: f64,
    /// The shortest in ns.
    pub min_ns: u64,
    /// The longest in ns.
    pub max_ns: u64,
    /// Sample standard deviation in ns; 0 of a single one.
    pub stddev_ns: f64,
    /// Name of the kernel.
    pub kernel_name: String,
}

/// What the rows differ in: name and style of the range, row of the call, name of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    range: Option<(NameId, u64)>,
    row: Option<RowId>,
    kernel: u32,
}

/// Times by group, with what was met in each.
#[derive(Default)]
struct Groups {
    known: HashMap<Key, u32>,
    keys: Vec<u32>,
    values: Vec<u64>,
    /// Groups with the ranges that are in them.
    ranges: HashSet<(u32, EventId)>,
    /// What is in each group.
    met: Vec<GroupCounts>,
}

/// What is in a group.
#[derive(Debug, Clone, Copy, Default)]
struct GroupCounts {
    ranges: u64,
    kernels: u64,
    last_kernel: Option<u32>,
}

impl Groups {
    fn add(&mut self, key: Key, range: Option<EventId>, kernel: u32, duration: u64) {
        let next = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        let group = *self.known.entry(key).or_insert(next);
        self.keys.push(group);
        self.values.push(duration);
        if index(group) >= self.met.len() {
            self.met.push(GroupCounts::default());
        }
        if let Some(met) = self.met.get_mut(index(group)) {
            met.ranges += u64::from(range.is_some_and(|range| self.ranges.insert((group, range))));
            met.kernels += u64::from(met.last_kernel.replace(kernel) != Some(kernel));
        }
    }
}

fn gather(timeline: &Timeline, ranges: &Events, kernels: &Kernels<'_>) -> Groups {
    let styles = ranges.column(ColumnId::RangeStyle);
    let calls = timeline.capture.events.get(&Category::CudaApi);
    let mut groups = Groups::default();
    let mut order: Vec<(u32, u32)> = kernels.launches().into_iter().zip(0..).collect();
    order.sort_unstable();
    let duration = |kernel: u32| kernels.events.duration_ns.get(index(kernel)).copied().unwrap_or(0);
    let (joined, alone) = order.split_at(order.partition_point(|(call, _)| *call != ColumnId::NO_LAUNCH));
    let mut of_calls = joined.chunk_by(|a, b| a.0 == b.0);
    let launching = joined.chunk_by(|a, b| a.0 == b.0).filter_map(|kernels| kernels.first());
    call_ranges::visit(
        timeline,
        launching.map(|(call, _)| EventId::new(*call)),
        |call, around| {
            let row = calls.and_then(|calls| calls.row.get(call.index()).copied());
            for (_, kernel) in of_calls.next().unwrap_or_default() {
                let Some(name) = kernels.number(index(*kernel)) else {
                    continue;
                };
                let key = |range| Key {
                    range,
                    row,
                    kernel: name,
                };
                if around.is_empty() {
                    groups.add(key(None), None, *kernel, duration(*kernel));
                }
                for range in around {
                    let at = range.index();
                    let style = styles.and_then(|styles| styles.get(at)).unwrap_or(0);
                    let name = ranges.name.get(at).map(|name| (*name, style));
                    groups.add(key(name), Some(*range), *kernel, duration(*kernel));
                }
            }
        },
    );
    for (_, kernel) in alone {
        let Some(name) = kernels.number(index(*kernel)) else {
            continue;
        };
        let key = Key {
            range: None,
            row: None,
            kernel: name,
        };
        groups.add(key, None, *kernel, duration(*kernel));
    }
    groups
}

impl Analysis for NvtxKernSum {
    const NAME: &'static str = "nvtx_kern_sum";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "Times of kernels by the NVTX ranges that they were launched in, as nsys stats has them.";
    const GROUP: crate::Group = crate::Group::NsysTables;
    const NEEDS: Needs = Needs::of(KERNELS_AND_RANGES)
        .columns(&[ColumnId::Launch, ColumnId::RangeStyle])
        .names()
        .name_details()
        .rows();
    type Params = NsysRangeKernelParams;
    type Output = NsysRangeKernels;

    fn run(inputs: &Inputs<'_>, params: &NsysRangeKernelParams) -> Result<NsysRangeKernels, AnalysisError> {
        let timeline = inputs.first();
        let parts: [(&[Category], &str); 3] = [
            (&[Category::NvtxRange], "NVTX ranges"),
            (&[Category::CudaApi], "launches of kernels"),
            (&[Category::CudaKernel], "kernels"),
        ];
        let mut output = NsysRangeKernels {
            not_captured: NotCaptured::of_parts(&timeline.capture, &parts),
            ..NsysRangeKernels::default()
        };
        let kernels = Kernels::named(timeline, params.name);
        let (Some(ranges), Some(kernels)) = (timeline.capture.events.get(&Category::NvtxRange), kernels) else {
            return Ok(output);
        };
        output.not_captured.extend_from_slice(&kernels.not_captured);
        let groups = gather(timeline, ranges, &kernels);
        let count_of_groups = u32::try_from(groups.known.len()).unwrap_or(u32::MAX);
        let figures = figures_by_key(count_of_groups, &groups.keys, listed(&groups.values));
        let range_name = |name: NameId| ranges.names.get(name.index()).cloned();
        let row = |(key, group): (&Key, &u32)| {
            let figures = Statistics::from_figures(figures.get(index(*group))?)?;
            let met = groups.met.get(index(*group)).copied().unwrap_or_default();
            let row = key.row.and_then(|row| timeline.row(row));
            Some(NsysRangeKernelsRow {
                range: key.range.and_then(|(name, _)| range_name(name)),
                style: key.range.map(|(_, number)| style(number)),
                process: row.map(|row| row.process),
                thread: row.and_then(|row| row.thread),
                ranges: met.ranges,
                kernels: met.kernels,
                total_ns: figures.total,
                avg_ns: figures.avg,
                med_ns: figures.median,
                min_ns: figures.min,
                max_ns: figures.max,
                stddev_ns: figures.stddev,
                kernel_name: kernels.name_of_number(key.kernel).to_owned(),
            })
        };
        let mut rows: Vec<NsysRangeKernelsRow> = groups.known.iter().filter_map(row).collect();
        rows.sort_by(|a, b| {
            let thread = |row: &NsysRangeKernelsRow| (row.process, row.thread);
            let order = a.range.cmp(&b.range).then_with(|| thread(a).cmp(&thread(b)));
            let names = || (a.style, &a.kernel_name).cmp(&(b.style, &b.kernel_name));
            order.then_with(|| b.total_ns.cmp(&a.total_ns)).then_with(names)
        });
        output.left_out = cut(&mut rows, params.limit);
        output.rows = rows;
        Ok(output)
    }

    fn page(output: &NsysRangeKernels) -> Result<Page, AnalysisError> {
        let table = Table::of("", &output.rows)
            .left_out(output.left_out)
            .column("NVTX Range", |row| row.range.as_deref())
            .column("Style", |row| row.style)
            .column("PID", |row| row.process)
            .column("TID", |row| row.thread)
            .column("NVTX Inst", |row| row.ranges)
            .column("Kern Inst", |row| row.kernels)
            .column("Total Time (ns)", |row| row.total_ns)
            .number("Avg (ns)", 1, |row| tenths(row.avg_ns))
            .number("Med (ns)", 1, |row| tenths(row.med_ns))
            .column("Min (ns)", |row| row.min_ns)
            .column("Max (ns)", |row| row.max_ns)
            .number("StdDev (ns)", 1, |row| tenths(row.stddev_ns))
            .column("Kernel Name", |row| row.kernel_name.as_str());
        Ok(Page::of_table(Self::NAME, Self::ABOUT, &output.not_captured, table))
    }
}
