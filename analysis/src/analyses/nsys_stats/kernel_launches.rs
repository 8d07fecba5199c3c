//! Launches of kernels and their runs: the time of the call, the wait in the queue, and the kernel.

use std::collections::HashMap;

use flopwatch_measures::interval::Interval;
use flopwatch_model::{Category, ColumnId, Events, NameId, Needs, RowId, figures_by_key, index, listed};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, Table, TableBuilder, TimelineLocation};
use flopwatch_summary::Statistics;
use schemars::JsonSchema;
use serde::Serialize;

use super::dimensions;
use super::gpu::SHAPES;
use super::kernel_names::{KERNELS_AND_RANGES, Kernels};
use super::parameters::NsysKernelParams;
use super::rounding::tenths;
use crate::cut::cut;
use crate::definition::{Analysis, AnalysisError};
use crate::input::Inputs;

/// Launches and runs of kernels by function and kernel.
#[derive(Debug)]
pub struct CudaKernExecSum;

/// Launch and run of each kernel.
#[derive(Debug)]
pub struct CudaKernExecTrace;

/// A summary of launches, the longest mean from the start of the call to the end of the kernel
/// first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct NsysLaunchTimes {
    /// What the capture lacks.
    pub not_captured: Vec<NotCaptured>,
    /// Kernels in the capture.
    pub kernels: u64,
    /// Kernels whose launch was not recorded, which are in no row.
    pub without_launch: u64,
    /// The rows.
    pub rows: Vec<NsysLaunchTimesRow>,
    /// Rows that were left out behind these.
    pub left_out: u64,
}

/// The launches of a kernel on a device by a function and a thread.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NsysLaunchTimesRow {
    /// Process that launched.
    pub process: u32,
    /// Thread that launched; null where the source does not say it.
    pub thread: Option<u64>,
    /// Device that ran the kernels; null where the source does not say it.
    pub device: Option<u32>,
    /// Kernels.
    pub count: u64,
    /// Kernels that waited in the queue: they began after the call had ended.
    pub queued: u64,
    /// From the start of the call to its end or the kernel's, whichever is later.
    pub total: NsysSpread,
    /// Length of the call.
    pub api: NsysSpread,
    /// From the end of the call to the start of the kernel, of those that were queued; null without
    /// any.
    pub queue: Option<NsysSpread>,
    /// The kernel.
    pub kernel: NsysSpread,
    /// The function that was called.
    pub api_name: String,
    /// The kernel.
    pub kernel_name: String,
}

/// How times are spread.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct NsysSpread {
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
}

/// Launches in the order of the calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct NsysLaunches {
    /// What the capture lacks.
    pub not_captured: Vec<NotCaptured>,
    /// Kernels in the capture.
    pub kernels: u64,
    /// Kernels whose launch was not recorded, which are in no row.
    pub without_launch: u64,
    /// The rows.
    pub rows: Vec<NsysLaunchesRow>,
    /// Rows that were left out behind these.
    pub left_out: u64,
}

/// A launch and the run of its kernel.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NsysLaunchesRow {
    /// Start of the call in ns.
    pub api_start_ns: u64,
    /// Length of the call in ns.
    pub api_duration_ns: u64,
    /// Length in ns from the end of the call to the start of the kernel; null where the kernel
    /// began before the call had ended.
    pub queue_duration_ns: Option<u64>,
    /// Start of the kernel in ns.
    pub kernel_start_ns: u64,
    /// Length of the kernel in ns.
    pub kernel_duration_ns: u64,
    /// From the start of the call to its end or the kernel's, whichever is later, in ns.
    pub total_duration_ns: u64,
    /// Process that launched.
    pub process: u32,
    /// Thread that launched; null where the source does not say it.
    pub thread: Option<u64>,
    /// Device that ran the kernel; null where the source does not say it.
    pub device: Option<u32>,
    /// The function that was called.
    pub api_name: String,
    /// Thread blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads per block in x, y and z.
    pub block: [u32; 3],
    /// The kernel.
    pub kernel_name: String,
    /// The timeline's row of the kernel.
    pub row: RowId,
}

/// A kernel and its launch.
#[derive(Debug, Clone, Copy)]
struct Pair {
    call: Interval,
    kernel: Interval,
}

impl Pair {
    fn of(calls: &Events, call: usize, kernels: &Events, kernel: usize) -> Self {
        Self {
            call: Interval::of(calls, call),
            kernel: Interval::of(kernels, kernel),
        }
    }

    fn queue_ns(self) -> Option<u64> {
        self.kernel.start.checked_sub(self.call.end)
    }

    fn total_ns(self) -> u64 {
        self.call.end.max(self.kernel.end).saturating_sub(self.call.start)
    }
}

impl From<Statistics> for NsysSpread {
    fn from(figures: Statistics) -> Self {
        Self {
            avg_ns: figures.avg,
            med_ns: figures.median,
            min_ns: figures.min,
            max_ns: figures.max,
            stddev_ns: figures.stddev,
        }
    }
}

impl NsysSpread {
    /// Adds the columns of each row's spread, whose heads begin with a letter.
    fn columns<T: Copy>(table: TableBuilder<T>, letter: char, spread: impl Fn(T) -> Option<Self>) -> TableBuilder<T> {
        let head = |figure: &str| format!("{letter}{figure} (ns)");
        table
            .number(&head("Avg"), 1, |row| spread(row).map(|spread| tenths(spread.avg_ns)))
            .number(&head("Med"), 1, |row| spread(row).map(|spread| tenths(spread.med_ns)))
            .column(&head("Min"), |row| spread(row).map(|spread| spread.min_ns))
            .column(&head("Max"), |row| spread(row).map(|spread| spread.max_ns))
            .number(&head("StdDev"), 1, |row| {
                spread(row).map(|spread| tenths(spread.stddev_ns))
            })
    }
}

const NEEDS: Needs = Needs::of(KERNELS_AND_RANGES)
    .columns(SHAPES)
    .names()
    .name_details()
    .rows();

const PARTS: &[(&[Category], &str)] = &[
    (&[Category::CudaKernel], "kernels"),
    (&[Category::CudaApi], "launches of kernels"),
];

/// Says how many kernels are in no row.
fn say_coverage(page: &mut Page, kernels: u64, without_launch: u64) {
    if without_launch > 0 {
        let text = format!("{without_launch} of {kernels} kernels have no recorded launch and are in no row.");
        page.text("", text);
    }
}

/// What the rows of the summary differ in: row and name of the call, device and name of the kernel.
type Key = (RowId, NameId, Option<u32>, u32);

/// Times by group.
#[derive(Default)]
struct Times {
    keys: Vec<u32>,
    total: Vec<u64>,
    api: Vec<u64>,
    kernel: Vec<u64>,
    queued: Vec<u32>,
    queue: Vec<u64>,
}

impl Times {
    fn add(&mut self, key: u32, pair: Pair) {
        self.keys.push(key);
        self.total.push(pair.total_ns());
        self.api.push(pair.call.len());
        self.kernel.push(pair.kernel.len());
        if let Some(queue) = pair.queue_ns() {
            self.queued.push(key);
            self.queue.push(queue);
        }
    }

    /// The figures of each of `groups` groups.
    fn figures(groups: usize, keys: &[u32], values: &[u64]) -> Vec<Option<Statistics>> {
        let groups = u32::try_from(groups).unwrap_or(u32::MAX);
        let figures = figures_by_key(groups, keys, listed(values));
        figures.iter().map(Statistics::from_figures).collect()
    }
}

impl Analysis for CudaKernExecSum {
    const NAME: &'static str = "cuda_kern_exec_sum";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "Times of kernels from launch to end by thread, device, function and kernel, as nsys stats has them.";
    const GROUP: crate::Group = crate::Group::NsysTables;
    const NEEDS: Needs = NEEDS;
    type Params = NsysKernelParams;
    type Output = NsysLaunchTimes;

    fn run(inputs: &Inputs<'_>, params: &NsysKernelParams) -> Result<NsysLaunchTimes, AnalysisError> {
        let timeline = inputs.first();
        let mut output = NsysLaunchTimes {
            not_captured: NotCaptured::of_parts(&timeline.capture, PARTS),
            ..NsysLaunchTimes::default()
        };
        let Some(kernels) = Kernels::of(timeline, params) else {
            return Ok(output);
        };
        output.not_captured.extend_from_slice(&kernels.not_captured);
        let launches = kernels.launches();
        [output.kernels, output.without_launch] = kernels.coverage(&launches);
        let Some(calls) = timeline.capture.events.get(&Category::CudaApi) else {
            return Ok(output);
        };
        let mut groups: HashMap<Key, u32> = HashMap::new();
        let mut times = Times::default();
        for (kernel, call) in launches.iter().enumerate() {
            let call = index(*call);
            let (Some(row), Some(name)) = (calls.row.get(call), calls.name.get(call)) else {
                continue;
            };
            let Some(number) = kernels.number(kernel) else {
                continue;
            };
            let device = kernels.row(timeline, kernel).and_then(|row| row.device);
            let next = u32::try_from(groups.len()).unwrap_or(u32::MAX);
            let key = groups.entry((*row, *name, device, number)).or_insert(next);
            times.add(*key, Pair::of(calls, call, kernels.events, kernel));
        }
        let figures = |keys: &[u32], values: &[u64]| Times::figures(groups.len(), keys, values);
        let (total, api) = (figures(&times.keys, &times.total), figures(&times.keys, &times.api));
        let kernel = figures(&times.keys, &times.kernel);
        let queue = figures(&times.queued, &times.queue);
        let row = |((row, name, device, kernel_name), key): (&Key, &u32)| {
            let of = |figures: &[Option<Statistics>]| figures.get(index(*key)).copied().flatten();
            let (row, total) = (timeline.row(*row)?, of(&total)?);
            Some(NsysLaunchTimesRow {
                process: row.process,
                thread: row.thread,
                device: *device,
                count: total.calls,
                queued: of(&queue).map_or(0, |queue| queue.calls),
                total: total.into(),
                api: of(&api)?.into(),
                queue: of(&queue).map(NsysSpread::from),
                kernel: of(&kernel)?.into(),
                api_name: calls.names.get(name.index()).cloned().unwrap_or_default(),
                kernel_name: kernels.name_of_number(*kernel_name).to_owned(),
            })
        };
        let mut rows: Vec<NsysLaunchTimesRow> = groups.iter().filter_map(row).collect();
        rows.sort_by(|a, b| {
            let key = |row: &NsysLaunchTimesRow| (row.process, row.thread, row.device);
            let names = (&a.api_name, &a.kernel_name).cmp(&(&b.api_name, &b.kernel_name));
            let mean = |row: &NsysLaunchTimesRow| tenths(row.total.avg_ns);
            mean(b)
                .total_cmp(&mean(a))
                .then_with(|| key(a).cmp(&key(b)).then(names))
        });
        output.left_out = cut(&mut rows, params.limit);
        output.rows = rows;
        Ok(output)
    }

    fn page(output: &NsysLaunchTimes) -> Result<Page, AnalysisError> {
        let table = Table::of("", &output.rows)
            .left_out(output.left_out)
            .column("PID", |row| row.process)
            .column("TID", |row| row.thread)
            .column("DevId", |row| row.device)
            .column("Count", |row| row.count)
            .column("QCount", |row| row.queued);
        let table = NsysSpread::columns(table, 'T', |row| Some(row.total));
        let table = NsysSpread::columns(table, 'A', |row| Some(row.api));
        let table = NsysSpread::columns(table, 'Q', |row| row.queue);
        let table = NsysSpread::columns(table, 'K', |row| Some(row.kernel))
            .column("API Name", |row| row.api_name.as_str())
            .column("Kernel Name", |row| row.kernel_name.as_str());
        let mut page = Page::of(Self::NAME, Self::ABOUT, &output.not_captured);
        say_coverage(&mut page, output.kernels, output.without_launch);
        page.table(table);
        Ok(page)
    }
}

impl Analysis for CudaKernExecTrace {
    const NAME: &'static str = "cuda_kern_exec_trace";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "Call, wait in the queue and run of each kernel in the order of the calls, as nsys stats has them.";
    const GROUP: crate::Group = crate::Group::NsysTables;
    const NEEDS: Needs = NEEDS;
    type Params = NsysKernelParams;
    type Output = NsysLaunches;

    fn run(inputs: &Inputs<'_>, params: &NsysKernelParams) -> Result<NsysLaunches, AnalysisError> {
        let timeline = inputs.first();
        let mut output = NsysLaunches {
            not_captured: NotCaptured::of_parts(&timeline.capture, PARTS),
            ..NsysLaunches::default()
        };
        let Some(kernels) = Kernels::of(timeline, params) else {
            return Ok(output);
        };
        output.not_captured.extend_from_slice(&kernels.not_captured);
        let launches = kernels.launches();
        [output.kernels, output.without_launch] = kernels.coverage(&launches);
        let Some(calls) = timeline.capture.events.get(&Category::CudaApi) else {
            return Ok(output);
        };
        // Calls are in the order of their starts.
        let mut order: Vec<(u32, u32)> = launches.into_iter().zip(0..).collect();
        order.retain(|(call, _)| *call != ColumnId::NO_LAUNCH);
        order.sort_unstable();
        output.left_out = cut(&mut order, params.limit);
        let shape_of = kernels.shape();
        let row = |(call, kernel): &(u32, u32)| {
            let (call, kernel) = (index(*call), index(*kernel));
            let pair = Pair::of(calls, call, kernels.events, kernel);
            let caller = timeline.row(*calls.row.get(call)?)?;
            let [grid, block] = shape_of(kernel);
            Some(NsysLaunchesRow {
                api_start_ns: pair.call.start,
                api_duration_ns: pair.call.len(),
                queue_duration_ns: pair.queue_ns(),
                kernel_start_ns: pair.kernel.start,
                kernel_duration_ns: pair.kernel.len(),
                total_duration_ns: pair.total_ns(),
                process: caller.process,
                thread: caller.thread,
                device: kernels.row(timeline, kernel).and_then(|row| row.device),
                api_name: calls.name_of(call).to_owned(),
                grid,
                block,
                kernel_name: kernels.name(kernel).to_owned(),
                row: kernels.events.row.get(kernel).copied()?,
            })
        };
        output.rows = order.iter().filter_map(row).collect();
        Ok(output)
    }

    fn page(output: &NsysLaunches) -> Result<Page, AnalysisError> {
        let mut page = Page::of(Self::NAME, Self::ABOUT, &output.not_captured);
        say_coverage(&mut page, output.kernels, output.without_launch);
        page.table(
            Table::of("", &output.rows)
                .left_out(output.left_out)
                .column("API Start (ns)", |row| row.api_start_ns)
                .column("API Dur (ns)", |row| row.api_duration_ns)
                .column("Queue Start (ns)", |row| {
                    let called = row.api_start_ns.saturating_add(row.api_duration_ns);
                    row.queue_duration_ns.map(|_| called)
                })
                .column("Queue Dur (ns)", |row| row.queue_duration_ns)
                .column("Kernel Start (ns)", |row| row.kernel_start_ns)
                .column("Kernel Dur (ns)", |row| row.kernel_duration_ns)
                .column("Total Dur (ns)", |row| row.total_duration_ns)
                .column("PID", |row| row.process)
                .column("TID", |row| row.thread)
                .column("DevId", |row| row.device)
                .column("API Function", |row| row.api_name.as_str())
                .column("GridXYZ", |row| dimensions(row.grid))
                .column("BlockXYZ", |row| dimensions(row.block))
                .column("Kernel Name", |row| row.kernel_name.as_str())
                .at(|row| TimelineLocation::lasting(row.api_start_ns, row.total_duration_ns, Some(row.row))),
        );
        Ok(page)
    }
}
