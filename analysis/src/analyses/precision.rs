//! Precision: which matrix products use tensor cores, which could and do not, and whether their
//! dimensions fit.

mod page;
mod products;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use flopwatch_measures::interval::Interval;
use flopwatch_measures::matrix_kernel::{MatrixKernel, MatrixUnit};
use flopwatch_model::{Category, ColumnId, KernelProfile, NameId, Needs, RowId, Timeline, gpu_work_and, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, TimelineLocation};
use flopwatch_summary::duration_ns;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cut::cut;
use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;

/// The first compute capability with tensor cores.
const MIN_TENSOR_CORE_MAJOR: u32 = 7;
/// What the contract with earlier tools asks for.
const TENSOR_CORE_ALIGNMENT: u64 = 16;

/// Tensor cores and types of numbers.
#[derive(Debug)]
pub struct Precision;

/// Parameters of [`Precision`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PrecisionParams {
    /// Most rows of each list.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u32,
}

impl Default for PrecisionParams {
    fn default() -> Self {
        Self { limit: 100 }
    }
}

/// Where it is known from whether a kernel uses tensor cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TensorCoreSource {
    /// Counters of Nsight Compute: instructions or cycles of the tensor pipe.
    Counters,
    /// Names of kernels.
    Names,
}

/// The result of the analysis `precision`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct PrecisionResult {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// Highest compute capability of the GPUs, e.g. `9.0`; null where the source does not say.
    pub compute_capability: Option<String>,
    /// Whether such a GPU has tensor cores (from 7.0 on); null where it is not known.
    pub has_tensor_cores: Option<bool>,
    /// Where the use of tensor cores is known from; null without kernels.
    pub source: Option<TensorCoreSource>,
    /// Time in ns of all kernels.
    pub kernel_ns: u64,
    /// Time in ns of kernels that multiply matrices.
    pub matrix_ns: u64,
    /// The part of it on tensor cores.
    pub tensor_core_ns: u64,
    /// The part of it on CUDA cores.
    pub cuda_core_ns: u64,
    /// The part of it of kernels whose names do not say.
    pub unknown_ns: u64,
    /// `tensor_core_ns` of `matrix_ns`, a lower bound where `unknown_ns` is not 0; null without
    /// kernels that multiply matrices.
    pub tensor_core_ratio: Option<f64>,
    /// `matrix_ns` of `kernel_ns`: what faster matrix products can win at most.
    pub matrix_ratio: Option<f64>,
    /// Kernels that multiply matrices, the longest time first.
    pub kernels: Vec<MatrixKernelRow>,
    /// Kernels that were left out behind these.
    pub kernels_left_out: u64,
    /// Matrix products by operator, shapes and type, the longest GPU time first.
    pub products: Vec<MatrixProductRow>,
    /// Products that were left out behind these.
    pub products_left_out: u64,
    /// GPU time in ns of products whose dimensions are known.
    pub product_ns: u64,
    /// The part of it of products with a dimension that is no multiple of 16.
    pub misaligned_ns: u64,
    /// The part of it of products that could use tensor cores and ran on CUDA cores.
    pub eligible_unused_ns: u64,
}

/// A kernel that multiplies matrices.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MatrixKernelRow {
    /// Name of the kernel.
    pub name: String,
    /// What it multiplies with.
    pub unit: MatrixUnit,
    /// Type of number; null where the name does not say.
    pub element_type: Option<String>,
    /// Launches.
    pub launches: u64,
    /// Sum of their lengths in ns.
    pub total_ns: u64,
    /// Share of the tensor pipe's peak in percent, the mean of its launches, from counters; null
    /// without.
    pub tensor_pipe_percent: Option<f64>,
    /// The longest launch; null of profiled launches, which have no time.
    pub longest: Option<TimelineLocation>,
}

/// Calls of an operator with the same shapes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MatrixProductRow {
    /// The operator.
    pub operator: String,
    /// Products in a call.
    pub batch: u64,
    /// Rows of the result.
    pub m: u64,
    /// Columns of the result.
    pub n: u64,
    /// What is summed over.
    pub k: u64,
    /// Type of number; null where it was not recorded.
    pub element_type: Option<String>,
    /// The largest of 128, 64, 32, 16, 8, 4, 2 and 1 of which m, n and k are multiples.
    pub alignment: u64,
    /// Calls that launched kernels.
    pub calls: u64,
    /// Time in ns of these kernels.
    pub gpu_ns: u64,
    /// The part of it of kernels that are known to use tensor cores.
    pub tensor_core_ns: u64,
    /// The part of it of kernels that are known not to.
    pub cuda_core_ns: u64,
    /// Whether tensor cores could do it: a type that they know on this GPU, and no product with a
    /// vector; null where type or GPU are not known.
    pub eligible: Option<bool>,
    /// The call with the longest GPU time.
    pub longest: TimelineLocation,
}

impl Analysis for Precision {
    const NAME: &'static str = "precision";
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "Tensor cores: the share of matrix products that use them, those that could and do not, their types of number and whether their dimensions fit.";
    const TITLE: &'static str = "Precision and tensor cores";
    const GROUP: Group = Group::TensorCores;
    const NEEDS: Needs = Needs::of(gpu_work_and![Category::CudaApi, Category::CpuOp])
        .columns(&[ColumnId::Launch, ColumnId::InputShapes, ColumnId::InputTypes])
        .rows()
        .names()
        .profiles();
    type Params = PrecisionParams;
    type Output = PrecisionResult;

    fn run(inputs: &Inputs<'_>, params: &PrecisionParams) -> Result<PrecisionResult, AnalysisError> {
        Ok(PrecisionResult::of(inputs.first(), *params))
    }

    fn page(output: &PrecisionResult) -> Result<Page, AnalysisError> {
        Ok(page::of(Self::TITLE, Self::ABOUT, output))
    }
}

/// Metrics of the tensor pipe, those in percent of its peak first.
const TENSOR_PIPE_PERCENT: &[&str] = &[
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
    "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__inst_executed_pipe_tensor_op_hmma.avg.pct_of_peak_sustained_active",
];
/// Metrics that count what it did.
const TENSOR_PIPE_COUNT: &[&str] = &[
    "sm__inst_executed_pipe_tensor.sum",
    "smsp__inst_executed_pipe_tensor.sum",
    "sm__inst_executed_pipe_tensor_op_hmma.sum",
];

fn metric(profile: &KernelProfile, names: &[&str]) -> Option<f64> {
    names.iter().find_map(|name| profile.metrics.get(*name)?.value.number())
}

impl PrecisionResult {
    /// Of `timeline`. Needs [`Precision::NEEDS`](Analysis::NEEDS).
    pub fn of(timeline: &Timeline, params: PrecisionParams) -> Self {
        let capability = timeline
            .capture
            .devices
            .iter()
            .filter_map(|device| device.compute_capability)
            .max();
        let mut result = Self {
            compute_capability: capability.map(|(major, minor)| format!("{major}.{minor}")),
            has_tensor_cores: capability.map(|(major, _)| major >= MIN_TENSOR_CORE_MAJOR),
            ..Self::default()
        };
        if timeline.capture.profiles.is_empty() {
            result.kernels_by_name(timeline);
            result.products(timeline, capability);
        } else {
            result.profiled(&timeline.capture.profiles);
        }
        result.matrix_ns = result.kernels.iter().map(|kernel| kernel.total_ns).sum();
        let of_unit = |unit| {
            let kernels = result.kernels.iter().filter(|kernel| kernel.unit == unit);
            kernels.map(|kernel| kernel.total_ns).sum()
        };
        (result.tensor_core_ns, result.cuda_core_ns, result.unknown_ns) = (
            of_unit(MatrixUnit::TensorCore),
            of_unit(MatrixUnit::CudaCore),
            of_unit(MatrixUnit::Unknown),
        );
        result.tensor_core_ratio = ratio(result.tensor_core_ns, result.matrix_ns);
        result.matrix_ratio = ratio(result.matrix_ns, result.kernel_ns);
        result.explain(timeline);
        result.kernels_left_out = cut(&mut result.kernels, params.limit);
        result.products_left_out = cut(&mut result.products, params.limit);
        result
    }

    fn kernels_by_name(&mut self, timeline: &Timeline) {
        let Some(kernels) = timeline
            .capture
            .events
            .get(&Category::CudaKernel)
            .filter(|kernels| !kernels.is_empty())
        else {
            return;
        };
        self.source = Some(TensorCoreSource::Names);
        let known: Vec<Option<MatrixKernel>> = kernels.names.iter().map(|name| MatrixKernel::of(name)).collect();
        let mut rows: BTreeMap<NameId, (MatrixKernelRow, u64)> = BTreeMap::new();
        for (at, (name, length)) in kernels.name.iter().zip(&kernels.duration_ns).enumerate() {
            self.kernel_ns = self.kernel_ns.saturating_add(*length);
            let Some(kernel) = known.get(name.index()).copied().flatten() else {
                continue;
            };
            let (row, longest) = rows.entry(*name).or_insert_with(|| {
                let row = MatrixKernelRow {
                    name: kernels.name_of(at).to_owned(),
                    unit: kernel.unit,
                    element_type: kernel.element_type.map(str::to_owned),
                    launches: 0,
                    total_ns: 0,
                    tensor_pipe_percent: None,
                    longest: None,
                };
                (row, 0)
            });
            row.launches += 1;
            row.total_ns = row.total_ns.saturating_add(*length);
            if row.longest.is_none() || *length > *longest {
                *longest = *length;
                row.longest = Some(location(Interval::of(kernels, at), kernels.row.get(at).copied()));
            }
        }
        self.kernels = rows.into_values().map(|(row, _)| row).collect();
        self.kernels.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
    }

    /// From counters: a kernel multiplies matrices where its tensor pipe worked, or where its name
    /// says so.
    fn profiled(&mut self, profiles: &[KernelProfile]) {
        let mut rows: BTreeMap<&str, (MatrixKernelRow, Vec<f64>)> = BTreeMap::new();
        for profile in profiles {
            let Some(length) = duration_ns(profile) else { continue };
            self.kernel_ns = self.kernel_ns.saturating_add(length);
            let percent = metric(profile, TENSOR_PIPE_PERCENT);
            let worked = percent
                .or_else(|| metric(profile, TENSOR_PIPE_COUNT))
                .map(|value| value > 0.0);
            if worked.is_some() {
                self.source = Some(TensorCoreSource::Counters);
            } else {
                self.source = self.source.or(Some(TensorCoreSource::Names));
            }
            let named = MatrixKernel::of(&profile.name);
            let unit = match worked {
                Some(true) => MatrixUnit::TensorCore,
                Some(false) if named.is_some() => MatrixUnit::CudaCore,
                Some(false) => continue,
                None => match named {
                    Some(named) => named.unit,
                    None => continue,
                },
            };
            let (row, percents) = rows.entry(&profile.name).or_insert_with(|| {
                let row = MatrixKernelRow {
                    name: profile.name.clone(),
                    unit,
                    element_type: named.and_then(|named| named.element_type).map(str::to_owned),
                    launches: 0,
                    total_ns: 0,
                    tensor_pipe_percent: None,
                    longest: None,
                };
                (row, Vec::new())
            });
            row.launches += 1;
            row.total_ns = row.total_ns.saturating_add(length);
            percents.extend(percent);
        }
        let rows = rows.into_values().map(|(row, percents)| {
            let count = u32::try_from(percents.len()).unwrap_or(u32::MAX);
            MatrixKernelRow {
                tensor_pipe_percent: (count > 0).then(|| percents.iter().sum::<f64>() / f64::from(count)),
                ..row
            }
        });
        self.kernels = rows.collect();
        self.kernels.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
    }

    fn explain(&mut self, timeline: &Timeline) {
        let mut missing = Vec::new();
        if self.source.is_none() {
            let no_kernels = || NotCaptured::new("tensor cores", "the capture holds no kernel; capture the GPU's work");
            let lacking = NotCaptured::unless_any(&timeline.capture, &[Category::CudaKernel], "tensor cores");
            self.not_captured = vec![lacking.unwrap_or_else(no_kernels)];
            return;
        }
        if self.source == Some(TensorCoreSource::Names) && !timeline.capture.profiles.is_empty() {
            missing.push(NotCaptured::new(
                "counters of tensor cores",
                "the report has no metric of the tensor pipe; run ncu with --set full or --section ComputeWorkloadAnalysis",
            ));
        }
        if self.compute_capability.is_none() {
            missing.push(NotCaptured::new(
                "which products could use tensor cores",
                "the source does not say the GPU's compute capability",
            ));
        }
        if self.products.is_empty() && timeline.capture.profiles.is_empty() {
            missing.push(NotCaptured::new(
                "dimensions of matrix products",
                "no operator with shapes launched a kernel; record shapes (torch.profiler with record_shapes=True)",
            ));
        }
        self.not_captured = missing;
    }
}

fn location(time: Interval, row: Option<RowId>) -> TimelineLocation {
    TimelineLocation::new(time.start, time.end, row)
}
