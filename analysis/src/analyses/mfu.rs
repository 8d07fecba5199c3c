//! Model FLOP utilisation (MFU): the floating-point operations of a region, of those that its
//! devices could have done in its time.

mod count;
mod page;
mod tally;

use std::collections::{BTreeMap, BTreeSet};

use flopwatch_measures::data_sheet::DataSheet;
use flopwatch_measures::interval::Interval;
use flopwatch_measures::iteration::{self, Assignment, IterateBy, IterationOptions, IterationSource, Iterations};
use flopwatch_measures::work::GpuWork;
use flopwatch_model::{
    Category, ColumnId, Needs, RowId, Timeline, approximate, count, gpu_work_and, index, ratio, whole,
};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, Unit, figure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;
use count::CountedCalls;
pub(crate) use tally::data_sheet;
use tally::{Peaks, Tally};

/// Model FLOP utilisation.
#[derive(Debug)]
pub struct Mfu;

/// Parameters of [`Mfu`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MfuParams {
    /// Floating-point operations of one iteration of one loop (of one process, where each process
    /// runs a loop) on all of its devices, forward and backward, e.g. `1.2e15`. Without iterations
    /// it is those of the whole capture. It goes before all that was recorded.
    #[schemars(range(min = 1.0, max = 1e24))]
    pub flops_per_iteration: Option<f64>,
    /// Peak of one device in TFLOP/s for the type of number that the model computes with, from its
    /// data sheet and without sparsity, e.g. `989` for BF16 on an H100 SXM. It goes before the
    /// rates that the capture states, and before those that are known by the device's name where
    /// it states none.
    #[schemars(range(min = 0.000_001, max = 1_000_000_000.0))]
    pub peak_tflops: Option<f64>,
    /// How iterations are looked for.
    pub by: IterateBy,
    /// The NVTX range or annotation that is an iteration, the region of interest; digits may be
    /// written as `#`. Empty to choose one.
    #[schemars(length(max = 1024))]
    pub range: String,
    /// The whole capture instead of iterations.
    pub whole: bool,
    /// Most iterations, and most operations, in the lists.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u32,
}

impl Default for MfuParams {
    fn default() -> Self {
        Self {
            flops_per_iteration: None,
            peak_tflops: None,
            by: IterateBy::Auto,
            range: String::new(),
            whole: false,
            limit: 50,
        }
    }
}

/// The result of the analysis `mfu`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct MfuResult {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// Reservations about the figures, as sentences.
    pub cautions: Vec<String>,
    /// Where the operations come from; null where none are known.
    pub flops_source: Option<FlopsSource>,
    /// Where the peak rate comes from; null where it is not known.
    pub peak_source: Option<PeakSource>,
    /// What the iterations were found from; null where the region is the whole capture.
    pub iteration_source: Option<IterationSource>,
    /// Name of the iterations' range or step.
    pub iteration_name: String,
    /// Iterations that used a device; 0 where the region is the whole capture.
    pub iterations: u64,
    /// Floating-point operations of the region: of all iterations, else of the whole capture.
    pub flops: Option<u64>,
    /// Time in ns of the region, times the devices that worked in it. Of profiled launches it is
    /// their own time.
    pub device_time_ns: u64,
    /// Operations per second and device.
    pub flops_per_second: Option<f64>,
    /// Model FLOP utilisation: the time that the operations take at the peak rates, of
    /// `device_time_ns`. Null where operations or peak are not known.
    pub mfu_ratio: Option<f64>,
    /// The same of the median iteration.
    pub median_mfu_ratio: Option<f64>,
    /// Time in ns of all kernels, of iterations and others.
    pub kernel_time_ns: u64,
    /// Time in ns of those kernels whose operations are known one by one.
    pub known_kernel_time_ns: u64,
    /// `known_kernel_time_ns` of `kernel_time_ns`: where it is low, operations that were not given
    /// are too few. Null without kernels.
    pub coverage_ratio: Option<f64>,
    /// Calls of operators whose operations are known.
    pub known_calls: u64,
    /// Calls that were left out because no kernel is known that they launched: they ran on the
    /// processor, or the launch was not recorded.
    pub calls_without_kernels: u64,
    /// Calls of matrix products and attention whose shapes were not recorded or do not fit.
    pub calls_without_shapes: u64,
    /// The iterations, loop by loop.
    pub by_iteration: Vec<MfuIteration>,
    /// Iterations behind the list's limit.
    pub iterations_left_out: u64,
    /// Operations by name and shapes, those that took most GPU time first.
    pub rows: Vec<MfuOperation>,
    /// Operations behind the list's limit.
    pub left_out: u64,
}

/// Where the floating-point operations come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlopsSource {
    /// They were given.
    Given,
    /// Counters of Nsight Compute:
    /// `smsp__sass_thread_inst_executed_op_{f,h,d}{add,mul,fma}_pred_on.sum`, a multiply-add as
    /// two. Tensor cores are not in them.
    Counters,
    /// The compiler's count of each operation of the program (HLO).
    Hlo,
    /// Framework operators: as the framework counted them, else by the shapes of matrix products
    /// and attention.
    Operators,
}

impl FlopsSource {
    /// For people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Counters => "counters of Nsight Compute",
            Self::Hlo => "the compiler's count (HLO)",
            Self::Operators => "shapes of matrix products and attention",
        }
    }
}

/// Where the peak rate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PeakSource {
    /// It was given.
    Given,
    /// The capture states it, by type of number.
    Device,
    /// The data sheet of the device, known by its name.
    DataSheet,
}

/// One iteration.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MfuIteration {
    /// Number of the iteration.
    pub number: u64,
    /// The timeline's row.
    pub row: RowId,
    /// Start in ns since the session's start.
    pub start_ns: u64,
    /// End in ns.
    pub end_ns: u64,
    /// Length in ns.
    pub time_ns: u64,
    /// Devices that worked for it.
    pub devices: u32,
    /// Its floating-point operations; null where none are known.
    pub flops: Option<u64>,
    /// Operations per second and device.
    pub flops_per_second: Option<f64>,
    /// Its model FLOP utilisation.
    pub mfu_ratio: Option<f64>,
}

/// Calls of one operation with the same shapes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct MfuOperation {
    /// The operator, operation or kernel.
    pub name: String,
    /// Shapes of its inputs as JSON; empty where none were recorded.
    pub shapes: String,
    /// Type of number: `bf16`, `fp16`, `fp32` and so on; null where it is not known.
    pub element_type: Option<String>,
    /// How often it was called.
    pub calls: u64,
    /// Operations of all calls.
    pub flops: u64,
    /// Time in ns in which the GPU worked for the calls.
    pub gpu_time_ns: u64,
    /// Operations per second of that time.
    pub flops_per_second: Option<f64>,
    /// Share of the device's peak rate; null where that is not known.
    pub peak_ratio: Option<f64>,
    /// Start in ns of the call that took most GPU time; null of profiled launches, which have no
    /// time.
    pub start_ns: Option<u64>,
    /// End in ns of that call.
    pub end_ns: Option<u64>,
    /// The timeline's row of that call.
    pub row: Option<RowId>,
}

const CATEGORIES: &[Category] = gpu_work_and![
    Category::CudaApi,
    Category::NvtxRange,
    Category::Annotation,
    Category::Step,
    Category::CpuOp,
    Category::DeviceOp
];

impl Analysis for Mfu {
    const NAME: &'static str = "mfu";
    const VERSION: u32 = 3;
    const ABOUT: &'static str = "Model FLOP utilisation: the floating-point operations of iterations beside the peak of their devices, and those of each matrix product and attention.";
    const TITLE: &'static str = "Model FLOP utilisation";
    const GROUP: Group = Group::Steps;
    const NEEDS: Needs = Needs::of(CATEGORIES)
        .columns(&[
            ColumnId::Launch,
            ColumnId::StepNumber,
            ColumnId::RangeStyle,
            ColumnId::Flops,
            ColumnId::InputShapes,
            ColumnId::InputTypes,
        ])
        .rows()
        .names()
        .profiles();
    type Params = MfuParams;
    type Output = MfuResult;

    fn run(inputs: &Inputs<'_>, params: &MfuParams) -> Result<MfuResult, AnalysisError> {
        Ok(MfuResult::of(inputs.first(), params))
    }

    fn page(output: &MfuResult) -> Result<Page, AnalysisError> {
        Ok(page::of(output))
    }
}

/// A device of a machine of a capture.
type DeviceKey = (u32, u32, u32);

impl MfuResult {
    /// The utilisation of `timeline`.
    pub fn of(timeline: &Timeline, params: &MfuParams) -> Self {
        let work = GpuWork::of(timeline);
        let peaks = Peaks {
            given: params.peak_tflops.map(|tera| tera * 1e12),
            devices: &timeline.capture.devices,
        };
        let counted = CountedCalls::of(timeline, &work);
        let mut result = Self {
            flops_source: params
                .flops_per_iteration
                .map(|_| FlopsSource::Given)
                .or(counted.source),
            kernel_time_ns: counted.kernel_time_ns,
            known_kernel_time_ns: counted.known_kernel_time_ns,
            coverage_ratio: ratio(counted.known_kernel_time_ns, counted.kernel_time_ns),
            known_calls: count(counted.pieces.len()),
            calls_without_kernels: counted.without_kernels,
            calls_without_shapes: counted.without_shapes,
            ..Self::default()
        };
        result.list(&counted, &peaks, index(params.limit));
        let found = result.find(timeline, &work, params);
        let assignment = found.as_ref().map(|found| found.assign(timeline, &work));
        let mut total = Tally::NOTHING;
        if let (Some(found), Some(assignment)) = (&found, &assignment) {
            total = result.iterate(timeline, &work, (found, assignment), &counted, &peaks, params);
        }
        if result.iterations == 0 {
            total = result.whole(timeline, &work, &counted, &peaks, params);
        } else if let Some(found) = found {
            result.iteration_source = found.source;
            result.iteration_name = found.name;
            result.cautions.extend(found.cautions);
        }
        if result.flops_source.is_some() {
            result.flops = Some(total.flops);
            result.flops_per_second = total.per_second(result.device_time_ns);
            result.mfu_ratio = total.ratio(result.device_time_ns);
        }
        result.explain(timeline, &counted, &peaks);
        result
    }

    /// The iterations, where the region is not the whole capture.
    fn find(&mut self, timeline: &Timeline, work: &GpuWork, params: &MfuParams) -> Option<Iterations> {
        let on_gpu = matches!(self.flops_source, Some(FlopsSource::Given | FlopsSource::Operators));
        if params.whole || !on_gpu || work.all().is_empty() {
            return None;
        }
        let options = IterationOptions::new(params.by, &params.range);
        let found = iteration::of_work(timeline, work, &options);
        self.not_captured.extend(found.not_found.clone());
        (!found.list.is_empty()).then_some(found)
    }

    fn iterate(
        &mut self,
        timeline: &Timeline,
        work: &GpuWork,
        (found, assignment): (&Iterations, &Assignment),
        counted: &CountedCalls<'_>,
        peaks: &Peaks<'_>,
        params: &MfuParams,
    ) -> Tally {
        let mut devices: Vec<BTreeSet<DeviceKey>> = vec![BTreeSet::new(); found.list.len()];
        for (work, iteration) in work.all().iter().zip(&assignment.iteration) {
            if let (Some(devices), Some(key)) = (devices.get_mut(index(*iteration)), device_of(timeline, work.row)) {
                devices.insert(key);
            }
        }
        let mut tallies = vec![Tally::NOTHING; found.list.len()];
        for piece in &counted.pieces {
            let iteration = piece.work.and_then(|at| assignment.iteration.get(index(at)));
            if let Some(tally) = iteration.and_then(|iteration| tallies.get_mut(index(*iteration))) {
                *tally = tally.plus(Tally::of(piece.flops, peaks.of(piece.device, piece.element_type)));
            }
        }
        let mut total = Tally::NOTHING;
        let mut ratios = Vec::new();
        for ((iteration, devices), mut tally) in found.list.iter().zip(&devices).zip(tallies) {
            if devices.is_empty() || iteration.time.is_empty() {
                continue;
            }
            if let Some(given) = params.flops_per_iteration {
                tally = shared(given, devices, peaks);
            }
            let time_ns = iteration.time.len();
            let device_time_ns = time_ns.saturating_mul(count(devices.len()));
            total = total.plus(tally);
            self.iterations += 1;
            self.device_time_ns = self.device_time_ns.saturating_add(device_time_ns);
            let mfu_ratio = tally.ratio(device_time_ns);
            ratios.extend(mfu_ratio);
            self.by_iteration.push(MfuIteration {
                number: iteration.number,
                row: iteration.row,
                start_ns: iteration.time.start,
                end_ns: iteration.time.end,
                time_ns,
                devices: u32::try_from(devices.len()).unwrap_or(u32::MAX),
                flops: (tally.flops > 0).then_some(tally.flops),
                flops_per_second: tally.per_second(device_time_ns).filter(|_| tally.flops > 0),
                mfu_ratio,
            });
        }
        ratios.sort_by(f64::total_cmp);
        let last = ratios.len().saturating_sub(1);
        let middles = ratios.get(last / 2).zip(ratios.get(last.div_ceil(2)));
        self.median_mfu_ratio = middles.map(|(lower, upper)| lower.midpoint(*upper));
        let limit = index(params.limit);
        self.iterations_left_out = count(self.by_iteration.len().saturating_sub(limit));
        self.by_iteration.truncate(limit);
        total
    }

    /// The whole capture, from the first to the last work of its devices.
    fn whole(
        &mut self,
        timeline: &Timeline,
        work: &GpuWork,
        counted: &CountedCalls<'_>,
        peaks: &Peaks<'_>,
        params: &MfuParams,
    ) -> Tally {
        let mut devices: BTreeSet<DeviceKey> = work
            .all()
            .iter()
            .filter_map(|work| device_of(timeline, work.row))
            .collect();
        let mut span = work.span();
        if let Some(operations) = timeline.capture.events.get(&Category::DeviceOp) {
            devices.extend(operations.row.iter().filter_map(|row| device_of(timeline, *row)));
            if let Some((start, end)) = operations.start_ns.first().copied().zip(operations.last_end_ns()) {
                span = Some(span.map_or(Interval::new(start, end), |span| {
                    Interval::new(span.start.min(start), span.end.max(end))
                }));
            }
        }
        let time_ns = span.map_or(0, Interval::len);
        self.device_time_ns = if counted.source == Some(FlopsSource::Counters) && time_ns == 0 {
            counted.known_kernel_time_ns
        } else {
            time_ns.saturating_mul(count(devices.len().max(1)))
        };
        if let Some(given) = params.flops_per_iteration {
            self.cautions.push(
                "The operations that were given count for the whole capture: there are no iterations.".to_owned(),
            );
            return shared(given, &devices, peaks);
        }
        counted.pieces.iter().fold(Tally::NOTHING, |total, piece| {
            total.plus(Tally::of(piece.flops, peaks.of(piece.device, piece.element_type)))
        })
    }

    /// Fills the list of operations.
    fn list(&mut self, counted: &CountedCalls<'_>, peaks: &Peaks<'_>, limit: usize) {
        let mut groups: BTreeMap<_, (MfuOperation, Tally, u64)> = BTreeMap::new();
        for piece in &counted.pieces {
            let key = (piece.name, piece.shapes, piece.element_type);
            let (row, tally, longest_ns) = groups
                .entry(key)
                .or_insert_with(|| (MfuOperation::default(), Tally::NOTHING, 0));
            *tally = tally.plus(Tally::of(piece.flops, peaks.of(piece.device, piece.element_type)));
            row.calls += 1;
            row.gpu_time_ns = row.gpu_time_ns.saturating_add(piece.gpu_time_ns);
            if row.calls == 1 || piece.gpu_time_ns > *longest_ns {
                *longest_ns = piece.gpu_time_ns;
                row.start_ns = piece.place.map(|(time, _)| time.start);
                row.end_ns = piece.place.map(|(time, _)| time.end);
                row.row = piece.place.map(|(_, row)| row);
            }
        }
        self.left_out = count(groups.len().saturating_sub(limit));
        let mut sorted: Vec<_> = groups.into_iter().collect();
        sorted.sort_by_key(|(_, (row, ..))| std::cmp::Reverse(row.gpu_time_ns));
        sorted.truncate(limit);
        let rows = sorted
            .into_iter()
            .map(|((name, shapes, element_type), (row, tally, _))| MfuOperation {
                name: name.to_owned(),
                shapes: shapes.to_owned(),
                element_type: element_type.map(str::to_owned),
                flops: tally.flops,
                flops_per_second: tally.per_second(row.gpu_time_ns),
                peak_ratio: tally.ratio(row.gpu_time_ns),
                ..row
            });
        self.rows = rows.collect();
    }

    /// Says what is missing and what may be wrong.
    fn explain(&mut self, timeline: &Timeline, counted: &CountedCalls<'_>, peaks: &Peaks<'_>) {
        if self.flops_source.is_none() {
            self.not_captured.push(NotCaptured::new(
                "floating-point operations",
                "the capture has neither shapes of operators, nor operations counted by the compiler, nor counters of Nsight Compute that count them: give flops_per_iteration, \
                 or record shapes (torch.profiler with record_shapes=True)",
            ));
        } else if self.mfu_ratio.is_none() && self.flops.is_some_and(|flops| flops > 0) {
            let types: BTreeSet<&str> = counted
                .pieces
                .iter()
                .filter(|piece| peaks.of(piece.device, piece.element_type).is_none())
                .map(|piece| piece.element_type.unwrap_or("a type that is not known"))
                .collect();
            let types: Vec<&str> = types.into_iter().collect();
            let of = if types.is_empty() || self.flops_source == Some(FlopsSource::Given) {
                "the model's type of number".to_owned()
            } else {
                types.join(", ")
            };
            let names: BTreeSet<&str> = timeline
                .capture
                .devices
                .iter()
                .map(|device| device.name.as_str())
                .collect();
            let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
            let device = if names.is_empty() {
                "the device".to_owned()
            } else {
                names.join(", ")
            };
            self.not_captured.push(NotCaptured::new(
                "model FLOP utilisation",
                format!(
                    "the capture does not state the peak rate of {device} for {of}, and no data sheet is known by that name: give \
                     peak_tflops, the rate of one device from its data sheet without sparsity"
                ),
            ));
        }
        if self.mfu_ratio.is_some() {
            let sheets = peaks.data_sheets();
            self.peak_source = Some(if peaks.given.is_some() {
                PeakSource::Given
            } else if sheets.is_empty() {
                PeakSource::Device
            } else {
                PeakSource::DataSheet
            });
            // Of operations that are given the type is not known.
            let types = match self.flops_source {
                Some(FlopsSource::Given) => BTreeSet::new(),
                _ => counted.types(),
            };
            self.cautions
                .extend(sheets.values().map(|sheet| taken_of(sheet, &types)));
        }
        let above = |ratio: Option<f64>| ratio.is_some_and(|ratio| ratio > 1.0);
        if above(self.mfu_ratio) || self.rows.iter().any(|row| above(row.peak_ratio)) {
            self.cautions.push(
                "More than the peak is reached: the peak rate is of another type of number or of other units (tensor cores compute fp32 as TF32), or the operations are fewer."
                    .to_owned(),
            );
        }
        match self.flops_source {
            Some(FlopsSource::Counters) => self.cautions.push(
                "The counters leave out what tensor cores do, and launches were replayed alone, often at a fixed clock: the share is of kernel time."
                    .to_owned(),
            ),
            Some(FlopsSource::Operators) => self.cautions.push(
                "Matrix products and attention alone are counted, attention without regard to a causal mask; convolutions and all others count as nothing."
                    .to_owned(),
            ),
            Some(FlopsSource::Given | FlopsSource::Hlo) | None => {}
        }
    }
}

/// Which rates were taken of a data sheet, for operations on numbers of `types`.
fn taken_of(sheet: &DataSheet, types: &BTreeSet<Option<&str>>) -> String {
    let unknown = BTreeSet::from([None]);
    let types = if types.is_empty() { &unknown } else { types };
    let rates = types.iter().filter_map(|element_type| {
        let rate = figure::number(sheet.peak(*element_type)?, Unit::FlopPerSecond);
        Some(match element_type {
            Some(name) => format!("{rate} for {name}"),
            None => format!("{rate}, which is that of 16 bits, for numbers whose type was not recorded"),
        })
    });
    let rates: Vec<String> = rates.collect();
    format!(
        "The capture states no peak: it is taken of the data sheet of {}, without sparsity ({}). Give peak_tflops to use another.",
        sheet.title,
        rates.join("; ")
    )
}

/// Operations that `devices` share equally.
fn shared(given: f64, devices: &BTreeSet<DeviceKey>, peaks: &Peaks<'_>) -> Tally {
    let rates = devices.iter().map(|(_, _, device)| peaks.of(*device, None));
    let rates: Option<Vec<f64>> = rates.collect();
    let part = given / approximate(u128::from(count(devices.len().max(1))));
    let none = peaks.given.filter(|_| devices.is_empty());
    let ideal_ns = rates.map(|rates| {
        let times = rates.iter().chain(&none).map(|rate| part * 1e9 / rate);
        times.sum()
    });
    Tally {
        flops: whole(given),
        ideal_ns,
    }
}

fn device_of(timeline: &Timeline, row: RowId) -> Option<DeviceKey> {
    let row = timeline.row(row)?;
    Some((row.capture, row.machine, row.device?))
}

#[cfg(test)]
mod tests;
