//! The analysis `operations-profile`: operations as JSON of an operation profiler that programs
//! use, with `entries`, one per call, and a `summary` per operation. [`read()`] reads such JSON
//! back as the result of `operations`.

mod read;

use std::collections::BTreeMap;

use flopwatch_model::{Needs, Timeline, approximate, index, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{NEEDS, OperationChoice, OperationKind, OperationWork, OperationsParams, Parts};
use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;

pub use read::{LONGEST_FILE, MAX_ENTRIES, ProfileError, is_profile, read, write};

/// Bytes in the unit of the profile's fields that end in `_mb`: 2^20.
const BYTES_PER_MB: f64 = 1_048_576.0;

/// The analysis `operations-profile`.
#[derive(Debug)]
pub struct OperationsProfileAnalysis;

/// Parameters of [`OperationsProfileAnalysis`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OperationsProfileParams {
    /// The events that count as operations.
    pub kind: OperationChoice,
    /// Maximum number of entries; the earliest calls are kept. Summaries count all calls.
    #[schemars(range(min = 0, max = 100_000))]
    pub limit: u32,
    /// Maximum number of operations in the summary; those with the longest time of their own are
    /// kept.
    #[schemars(range(min = 1, max = 100_000))]
    pub top: u32,
}

impl Default for OperationsProfileParams {
    fn default() -> Self {
        Self {
            kind: OperationChoice::Auto,
            limit: 1000,
            top: 1000,
        }
    }
}

/// The result of `operations-profile`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OperationsProfile {
    /// The earliest calls, one per entry.
    pub entries: Vec<ProfileEntry>,
    /// Number of calls that `limit` left out of `entries`.
    pub entries_left_out: u64,
    /// Figures of all calls, by the operation's name.
    pub summary: BTreeMap<String, ProfileSummary>,
}

/// One call of an operation. Fields that the capture has no data for are null.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ProfileEntry {
    /// The operation's name.
    pub operation: String,
    /// Start in seconds since the Unix epoch; since the session's start where the capture does not
    /// say when it began.
    pub start_time: f64,
    /// End in seconds, on the same scale as `start_time`.
    pub end_time: f64,
    /// Length of the call in ms.
    pub duration_ms: f64,
    /// `gpu` where it launched GPU work, otherwise `cpu`.
    pub device: String,
    /// `pytorch`, `cupy`, `jax` or `cpu`, told by the operation's name and device; `unknown` of GPU
    /// work of another framework.
    pub backend: String,
    /// Time of the GPU work that it launched, in ms.
    pub gpu_time_ms: Option<f64>,
    /// Time on the host outside of the CUDA API, in ms.
    pub cpu_time_ms: Option<f64>,
    /// Time of the copies that it launched, in ms.
    pub transfer_time_ms: Option<f64>,
    /// Time inside of the CUDA API that is no waiting, in ms.
    pub overhead_ms: Option<f64>,
    /// Device memory that was given out meanwhile, in units of 2^20 bytes.
    pub memory_allocated_mb: Option<f64>,
    /// Most device memory in use meanwhile, in units of 2^20 bytes.
    pub memory_peak_mb: Option<f64>,
    /// `gpu_time_ms` in percent of `duration_ms`. Above 100 where the GPU works on after the call
    /// has ended.
    pub gpu_utilization: Option<f64>,
    /// Bytes copied by the time of the copies, in 10^9 bytes per second; null without copies, or
    /// where one does not say its bytes.
    pub memory_bandwidth_gb_s: Option<f64>,
}

/// Statistics of all calls of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ProfileSummary {
    /// The operation's name.
    pub operation: String,
    /// Number of calls.
    pub call_count: u64,
    /// Sum of the lengths of its calls in ms.
    pub total_time_ms: f64,
    /// Mean length of a call in ms.
    pub avg_time_ms: f64,
    /// Length of the shortest call in ms.
    pub min_time_ms: f64,
    /// Length of the longest call in ms.
    pub max_time_ms: f64,
    /// Sample standard deviation (n - 1) of the lengths in ms; 0 of one call.
    pub std_dev_ms: f64,
    /// Sum of the GPU times of its calls in ms.
    pub total_gpu_time_ms: Option<f64>,
    /// Sum of the CPU times of its calls in ms.
    pub total_cpu_time_ms: Option<f64>,
    /// Mean of the device memory that was given out in a call, in units of 2^20 bytes.
    pub avg_memory_mb: Option<f64>,
    /// `total_gpu_time_ms` in percent of `total_time_ms`.
    pub avg_gpu_utilization: Option<f64>,
}

impl Analysis for OperationsProfileAnalysis {
    const NAME: &'static str = "operations-profile";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "Operations as entries and summaries of an operation profiler: operation, call_count, total_time_ms and so on.";
    const TITLE: &'static str = "Profile of operations";
    const GROUP: Group = Group::Operations;
    const NEEDS: Needs = NEEDS;
    type Params = OperationsProfileParams;
    type Output = OperationsProfile;

    fn run(inputs: &Inputs<'_>, params: &OperationsProfileParams) -> Result<OperationsProfile, AnalysisError> {
        Ok(of(inputs.first(), params))
    }

    /// The page of `operations` for this profile, the same as for a profile that a program wrote.
    fn page(output: &OperationsProfile) -> Result<Page, AnalysisError> {
        let json = serde_json::to_vec(output).map_err(AnalysisError::Json)?;
        Ok(read(&json).unwrap_or_else(|error| {
            let mut page = Page::new(Self::TITLE, Self::ABOUT);
            page.not_captured
                .push(NotCaptured::new("operations", error.to_string()));
            page
        }))
    }
}

fn ms(ns: u64) -> f64 {
    approximate(ns.into()) / 1e6
}

fn mb(bytes: u64) -> f64 {
    approximate(bytes.into()) / BYTES_PER_MB
}

fn of(timeline: &Timeline, params: &OperationsProfileParams) -> OperationsProfile {
    let asked = OperationsParams {
        kind: params.kind,
        top: params.top,
        bottlenecks: 0,
        first_calls: 0,
        names: 0,
        normalise: true,
    };
    let measured = OperationWork::of(timeline, asked.kind, asked.normalise);
    let operations = super::operations(&measured, &asked);
    let summary = operations.operations.into_iter().map(|operation| {
        let per_call = |bytes: u64| mb(bytes) / approximate(operation.calls.into());
        let summary = ProfileSummary {
            call_count: operation.calls,
            total_time_ms: ms(operation.total_ns),
            avg_time_ms: operation.avg_ns / 1e6,
            min_time_ms: ms(operation.min_ns),
            max_time_ms: ms(operation.max_ns),
            std_dev_ms: operation.std_dev_ns / 1e6,
            total_gpu_time_ms: operation.gpu_ns.map(ms),
            total_cpu_time_ms: operation.cpu_ns.map(ms),
            avg_memory_mb: operation.allocated_bytes.map(per_call),
            avg_gpu_utilization: operation.gpu_ns.and_then(|gpu| percent(gpu, operation.total_ns)),
            operation: operation.operation.clone(),
        };
        (operation.operation, summary)
    });
    let entries = entries(&measured, index(params.limit));
    let listed = u64::try_from(entries.len()).unwrap_or(u64::MAX);
    OperationsProfile {
        entries,
        entries_left_out: operations.calls.saturating_sub(listed),
        summary: summary.collect(),
    }
}

fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| approximate(part.into()) / approximate(whole.into()) * 100.0)
}

fn entries(measured: &OperationWork<'_>, max: usize) -> Vec<ProfileEntry> {
    let OperationWork {
        timeline,
        kind,
        splitter,
        memory,
        calls,
        known,
        ..
    } = measured;
    let epoch = timeline.capture.session_start_utc_ns.unwrap_or(0);
    let seconds = |ns: u64| approximate(u128::from(epoch) + u128::from(ns)) / 1e9;
    let entry = |call: &super::Call| {
        let parts: Parts = splitter.parts(call);
        let process = timeline.row(call.row).map_or(0, |row| row.process);
        let (allocated, peak) = memory.during(process, call.time);
        let operation = calls.operations.get(index(call.operation)).cloned().unwrap_or_default();
        let on_gpu = parts.pieces > 0 || parts.transfers > 0;
        let transferred = parts.transferred_bytes.known().filter(|bytes| *bytes > 0);
        let bandwidth = transferred.and_then(|bytes| ratio(bytes, parts.transfer_ns));
        ProfileEntry {
            start_time: seconds(call.time.start),
            end_time: seconds(call.time.end),
            duration_ms: ms(call.time.len()),
            device: if on_gpu { "gpu" } else { "cpu" }.to_owned(),
            backend: backend(&operation, *kind, on_gpu).to_owned(),
            gpu_time_ms: known.gpu.then(|| ms(parts.gpu_ns)),
            cpu_time_ms: known.api.then(|| ms(parts.cpu_ns)),
            transfer_time_ms: known.gpu.then(|| ms(parts.transfer_ns)),
            overhead_ms: known.api.then(|| ms(parts.overhead_ns)),
            memory_allocated_mb: known.memory.then(|| mb(allocated)),
            memory_peak_mb: known.memory.then(|| mb(peak)),
            gpu_utilization: percent(parts.gpu_ns, call.time.len()).filter(|_| known.gpu),
            memory_bandwidth_gb_s: bandwidth.filter(|_| known.api),
            operation,
        }
    };
    calls.list.iter().take(max).map(entry).collect()
}

/// The framework that an operation belongs to, as [`ProfileEntry::backend`] names it.
fn backend(operation: &str, kind: OperationKind, on_gpu: bool) -> &'static str {
    const PYTORCH: [&str; 6] = ["aten::", "autograd::", "torch", "c10d::", "nccl:", "ProfilerStep"];
    if kind == OperationKind::CpuOp || PYTORCH.iter().any(|prefix| operation.starts_with(prefix)) {
        "pytorch"
    } else if kind == OperationKind::Hlo {
        "jax"
    } else if operation.starts_with("cupy") {
        "cupy"
    } else if on_gpu {
        "unknown"
    } else {
        "cpu"
    }
}

#[cfg(test)]
mod tests;
