//! Offload candidates: kernels that memory bounds, by their time, with what another accelerator
//! would need to take them.

mod evidence;
mod page;
#[cfg(test)]
mod tests;
mod transfers;

use flopwatch_model::{Category, ColumnId, Needs, Timeline, approximate, gpu_work_and, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, TimelineLocation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cut::cut;
use crate::definition::{Analysis, AnalysisError, InputCount};
use crate::group::Group;
use crate::input::Inputs;
use evidence::{Evidence, KernelEvidence};
use transfers::Transfers;

/// Kernels that memory bounds.
#[derive(Debug)]
pub struct OffloadCandidates;

/// Parameters of [`OffloadCandidates`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OffloadCandidatesParams {
    /// Operations per byte at which the device's compute and memory are balanced, from its data
    /// sheet: peak operations per second over peak bandwidth. It goes before what the capture
    /// states, and is needed for matrix products where that states none.
    #[schemars(range(min = 0.001, max = 1_000_000.0))]
    pub ridge_flop_per_byte: Option<f64>,
    /// Most kernels in the list.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u32,
}

impl Default for OffloadCandidatesParams {
    fn default() -> Self {
        Self {
            ridge_flop_per_byte: None,
            limit: 50,
        }
    }
}

/// What bounds a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OffloadBound {
    /// Traffic of memory.
    Memory,
    /// Operations.
    Compute,
    /// Neither: waiting, few blocks, dependencies.
    Latency,
    /// Not known.
    Unknown,
}

/// Where it is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BoundBasis {
    /// Counters of Nsight Compute: the busier of memory and compute, at 60 % of its peak or more.
    Counters,
    /// The compiler's count of operations and bytes (HLO), against the balance of the device.
    Compiler,
    /// Shapes and types of the operator's inputs, and of the result of a matrix product, against
    /// the balance of the device. An estimate: each value is moved once.
    Shapes,
    /// The kind of kernel by its name: element by element, reductions, copies and the like do a few
    /// operations per byte, below the balance of any GPU. An estimate.
    Kind,
    /// Nothing says it.
    None,
}

impl BoundBasis {
    /// In words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Counters => "counters",
            Self::Compiler => "compiler's count",
            Self::Shapes => "estimate by shapes",
            Self::Kind => "estimate by kind",
            Self::None => "not known",
        }
    }

    /// Whether it is an estimate.
    pub const fn is_estimate(self) -> bool {
        matches!(self, Self::Shapes | Self::Kind)
    }
}

/// The result of the analysis `offload-candidates`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct OffloadCandidatesResult {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// Operations per byte at which the device is balanced; null where neither the capture nor a
    /// parameter states it.
    pub ridge_flop_per_byte: Option<f64>,
    /// Time in ns of all kernels, without communication.
    pub kernel_ns: u64,
    /// The part of it that memory bounds, measured or estimated.
    pub memory_bound_ns: u64,
    /// The part of `memory_bound_ns` that is an estimate.
    pub estimated_ns: u64,
    /// The part of `kernel_ns` of kernels of which it is not known.
    pub unknown_ns: u64,
    /// `memory_bound_ns` of `kernel_ns`; null without kernels.
    pub memory_bound_ratio: Option<f64>,
    /// Time in ns of copies between host and device.
    pub transfer_ns: u64,
    /// Bytes of these; null where one does not say them.
    pub transfer_bytes: Option<u64>,
    /// The largest working set of a launch of these candidates in bytes: on-chip memory that holds
    /// each of them. Null where none is known.
    pub on_chip_bytes: Option<u64>,
    /// The candidates, the longest time first.
    pub candidates: Vec<OffloadCandidate>,
    /// Candidates that were left out behind these.
    pub candidates_left_out: u64,
}

/// A kernel that memory bounds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OffloadCandidate {
    /// Name of the kernel.
    pub kernel: String,
    /// What bounds it.
    pub bound: OffloadBound,
    /// Where that is known from.
    pub basis: BoundBasis,
    /// Whether that is an estimate.
    pub is_estimate: bool,
    /// Launches.
    pub launches: u64,
    /// Sum of their lengths in ns.
    pub total_ns: u64,
    /// Mean length in ns.
    pub mean_ns: u64,
    /// `total_ns` of the time of all kernels.
    pub time_ratio: Option<f64>,
    /// Mean bytes that a launch moves: measured traffic of the device's memory, the compiler's
    /// count, or inputs (and the result of a product) once. Null where not known.
    pub bytes_per_launch: Option<u64>,
    /// Mean floating-point operations of a launch; null where not known.
    pub flops_per_launch: Option<u64>,
    /// Operations per byte; null where one of both is not known.
    pub intensity_flop_per_byte: Option<f64>,
    /// Bytes per second: `bytes_per_launch` over the mean length of the launches that it is known
    /// of. What an accelerator's memory needs to keep up.
    pub bandwidth_bytes_per_second: Option<f64>,
    /// That against the peak of the device's memory; null where that is not known. Above 1 values
    /// came from caches.
    pub bandwidth_ratio: Option<f64>,
    /// The most bytes that a launch works on: buffers that an accelerator would hold on chip. From
    /// shapes or the compiler's count; null where not known.
    pub working_set_bytes: Option<u64>,
    /// Bytes that were copied from the host to the device since the kernel before, over all
    /// launches; null where a copy does not say them.
    pub copied_in_bytes: Option<u64>,
    /// Bytes that were copied from the device to the host before the next kernel, over all
    /// launches; null where a copy does not say them.
    pub copied_out_bytes: Option<u64>,
    /// Time in ns of these copies.
    pub copy_ns: u64,
    /// Bytes per second that a link would need to bring the working set in and keep up with the
    /// launches, where the data does not stay on the accelerator; null where the working set is not
    /// known.
    pub link_bytes_per_second: Option<f64>,
    /// The longest launch; null of profiled launches, which have no time.
    pub longest: Option<TimelineLocation>,
}

impl Analysis for OffloadCandidates {
    const NAME: &'static str = "offload-candidates";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "Kernels that memory bounds, by their time: bytes, intensity, copies around them, and what an accelerator would need to take them.";
    const TITLE: &'static str = "Offload candidates";
    const GROUP: Group = Group::Offload;
    const INPUTS: InputCount = InputCount::Many;
    const NEEDS: Needs = Needs::of(gpu_work_and![Category::CudaApi, Category::CpuOp, Category::DeviceOp])
        .columns(&[
            ColumnId::Launch,
            ColumnId::Bytes,
            ColumnId::Flops,
            ColumnId::InputShapes,
            ColumnId::InputTypes,
        ])
        .rows()
        .names()
        .profiles();
    type Params = OffloadCandidatesParams;
    type Output = OffloadCandidatesResult;

    fn run(inputs: &Inputs<'_>, params: &OffloadCandidatesParams) -> Result<OffloadCandidatesResult, AnalysisError> {
        let timelines: Vec<&Timeline> = inputs.all().iter().map(|input| input.timeline).collect();
        Ok(OffloadCandidatesResult::of(&timelines, *params))
    }

    fn page(output: &OffloadCandidatesResult) -> Result<Page, AnalysisError> {
        Ok(page::of(Self::TITLE, Self::ABOUT, output))
    }
}

impl OffloadCandidatesResult {
    /// Of the first of `timelines`, with what reports of Nsight Compute among them measured of the
    /// same kernels. Needs [`OffloadCandidates::NEEDS`](Analysis::NEEDS).
    pub fn of(timelines: &[&Timeline], params: OffloadCandidatesParams) -> Self {
        let Some(timeline) = timelines.first() else {
            return Self::default();
        };
        let device = timeline.capture.devices.first();
        let peak_bandwidth = device.and_then(|device| device.peak_bandwidth).filter(|peak| *peak > 0);
        let peak_flops = device.and_then(|device| {
            let rates = &device.peak_flops;
            rates.get("any").or_else(|| rates.get("fp32")).copied()
        });
        let stated = peak_flops
            .zip(peak_bandwidth)
            .map(|(flops, bandwidth)| approximate(flops.into()) / approximate(bandwidth.into()));
        let ridge = params.ridge_flop_per_byte.or(stated);
        let evidence = Evidence::of(timelines, ridge);
        let transfers = Transfers::of(timeline);
        let mut result = Self {
            ridge_flop_per_byte: ridge,
            transfer_ns: transfers.total_ns,
            transfer_bytes: transfers.total_bytes.known(),
            ..Self::default()
        };
        let mut lacks_ridge = false;
        for found in evidence.kernels() {
            result.kernel_ns = result.kernel_ns.saturating_add(found.total_ns);
            match found.bound {
                OffloadBound::Memory => {
                    result.memory_bound_ns += found.total_ns;
                    if found.basis.is_estimate() {
                        result.estimated_ns += found.total_ns;
                    }
                    result.candidates.push(candidate(found, &transfers, peak_bandwidth));
                }
                OffloadBound::Unknown => {
                    result.unknown_ns += found.total_ns;
                    lacks_ridge |= found.flops.is_some() && ridge.is_none();
                }
                OffloadBound::Compute | OffloadBound::Latency => {}
            }
        }
        for candidate in &mut result.candidates {
            candidate.time_ratio = ratio(candidate.total_ns, result.kernel_ns);
        }
        result.memory_bound_ratio = ratio(result.memory_bound_ns, result.kernel_ns);
        result
            .candidates
            .sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then(a.kernel.cmp(&b.kernel)));
        result.candidates_left_out = cut(&mut result.candidates, params.limit);
        let sets = result
            .candidates
            .iter()
            .filter_map(|candidate| candidate.working_set_bytes);
        result.on_chip_bytes = sets.max();
        result.explain(timeline, &evidence, lacks_ridge);
        result
    }

    fn explain(&mut self, timeline: &Timeline, evidence: &Evidence, lacks_ridge: bool) {
        let what = "kernels and their bounds";
        if self.kernel_ns == 0 {
            let nothing = || NotCaptured::new(what, "the capture holds no kernel; capture the GPU's work");
            let lacking = NotCaptured::unless_any(&timeline.capture, &[Category::CudaKernel, Category::DeviceOp], what);
            self.not_captured = vec![lacking.unwrap_or_else(nothing)];
            return;
        }
        if !evidence.has_counters {
            self.not_captured.push(NotCaptured::new(
                "measured bounds of kernels",
                "no counters stand beside: what bounds a kernel is estimated; add a report of Nsight Compute of the same program as a further capture (ncu --set full)",
            ));
        }
        if !evidence.has_bytes {
            self.not_captured.push(NotCaptured::new(
                "bytes and working sets",
                "the capture has neither shapes and types of operators, nor the compiler's count, nor counters; record shapes (torch.profiler with record_shapes=True)",
            ));
        }
        if lacks_ridge {
            self.not_captured.push(NotCaptured::new(
                "bounds of matrix products",
                "the capture does not state the device's peak rates: give ridge_flop_per_byte, from its data sheet",
            ));
        }
    }
}

fn candidate(found: &KernelEvidence, transfers: &Transfers, peak_bandwidth: Option<u64>) -> OffloadCandidate {
    let per_launch = |total: Option<u64>| total.and_then(|total| total.checked_div(found.known_launches));
    let bytes_per_launch = per_launch(found.bytes);
    let flops_per_launch = per_launch(found.flops);
    let per_second = |bytes: u64, ns: u64| ratio(bytes, ns).map(|per_ns| per_ns * 1e9);
    let bandwidth = found.bytes.and_then(|bytes| per_second(bytes, found.known_ns));
    let copies = transfers.of_kernel(&found.kernel);
    let mean_ns = found.total_ns.checked_div(found.launches).unwrap_or(0);
    OffloadCandidate {
        kernel: found.kernel.clone(),
        bound: found.bound,
        basis: found.basis,
        is_estimate: found.basis.is_estimate(),
        launches: found.launches,
        total_ns: found.total_ns,
        mean_ns,
        time_ratio: None,
        bytes_per_launch,
        flops_per_launch,
        intensity_flop_per_byte: found
            .flops
            .zip(found.bytes)
            .and_then(|(flops, bytes)| ratio(flops, bytes)),
        bandwidth_bytes_per_second: bandwidth,
        bandwidth_ratio: found.bandwidth_ratio.or_else(|| {
            let peak = approximate(peak_bandwidth?.into());
            Some(bandwidth? / peak)
        }),
        working_set_bytes: found.working_set,
        copied_in_bytes: copies.in_bytes.known(),
        copied_out_bytes: copies.out_bytes.known(),
        copy_ns: copies.ns,
        link_bytes_per_second: found.working_set.and_then(|bytes| per_second(bytes, mean_ns)),
        longest: found.longest,
    }
}
