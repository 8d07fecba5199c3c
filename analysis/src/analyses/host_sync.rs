//! What it costs that the host waits for GPUs: in which calls, and in which ranges and operators of
//! the program.

mod kinds;
mod page;
mod rules;
mod wait_holders;

use flopwatch_measures::host_call::{CallCost, HostCall, ProcessGpus, process_of};
use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_model::{Category, ColumnId, Needs, RowId, Timeline, gpu_work_and};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, TimelineLocation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;
use rules::SyncRule;

pub use kinds::SyncKind;
pub use wait_holders::SyncHolder;

/// Calls in which the host waits for GPUs.
#[derive(Debug)]
pub struct HostSync;

/// Parameters of [`HostSync`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HostSyncParams {
    /// Most rows of each list.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u32,
    /// Copies from host to device of so many bytes or fewer are left out of the rule
    /// `cuda_memcpy_sync`, as Nsight Systems does.
    #[schemars(range(min = 0, max = 1_073_741_824))]
    pub small_copy_bytes: u32,
}

impl Default for HostSyncParams {
    fn default() -> Self {
        Self {
            limit: 50,
            small_copy_bytes: 64_000,
        }
    }
}

/// What waiting for GPUs costs the host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct HostSyncResult {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// All calls in which the host waits.
    pub cost: CallCost,
    /// Time in ns from the end of each such call to the next work of its process's GPUs where these
    /// have nothing left to do, counted once: the queue that the wait drained. It is an upper bound
    /// of what the wait costs the GPU; null where no GPU ever worked.
    pub gpu_idle_after_ns: Option<u64>,
    /// The same calls by why the host waits, the longest total first.
    pub kinds: Vec<SyncKindRow>,
    /// The innermost ranges, operators, annotations and functions that hold the calls, per category
    /// the longest total first. A call may be held by one of each category.
    pub holders: Vec<SyncHolder>,
    /// Holders that were left out behind these.
    pub holders_left_out: u64,
    /// The longest calls.
    pub longest: Vec<SyncCall>,
    /// Calls that were left out behind these.
    pub longest_left_out: u64,
    /// The rules of `nsys analyze` that are about synchronisation, with their own conditions.
    pub rules: Vec<SyncRule>,
}

/// Calls that wait for one reason.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SyncKindRow {
    /// Why the host waits.
    pub kind: SyncKind,
    /// What these calls cost.
    pub cost: CallCost,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SyncCall {
    /// Name of the call.
    pub name: String,
    /// Why the host waits.
    pub kind: SyncKind,
    /// Process id.
    pub process: u32,
    /// Thread id.
    pub thread: Option<u64>,
    /// Start in ns.
    pub start_ns: u64,
    /// Length in ns.
    pub duration_ns: u64,
    /// The part of it in which no GPU worked for the process; null where none ever did.
    pub gpu_idle_ns: Option<u64>,
    /// The innermost range, operator, annotation or function around it; empty where there is none.
    pub held_by: String,
    /// Row of the timeline.
    pub row: RowId,
}

impl SyncCall {
    /// Location of the call in the timeline of the first input.
    pub fn location(&self) -> TimelineLocation {
        TimelineLocation::lasting(self.start_ns, self.duration_ns, Some(self.row))
    }
}

impl Analysis for HostSync {
    const NAME: &'static str = "host-sync";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "What it costs that the host waits for GPUs: by kind of wait, by the ranges that hold it, and how much of it the GPU was idle.";
    const TITLE: &'static str = "Waits of the host for GPUs";
    const GROUP: Group = Group::Host;
    const NEEDS: Needs = Needs::of(gpu_work_and![
        Category::CudaApi,
        Category::NvtxRange,
        Category::CpuOp,
        Category::Annotation,
        Category::PythonFunction
    ])
    .columns(&[
        ColumnId::Launch,
        ColumnId::Bytes,
        ColumnId::RangeStyle,
        ColumnId::SrcMemoryKind,
        ColumnId::DstMemoryKind,
    ])
    .names()
    .rows();
    type Params = HostSyncParams;
    type Output = HostSyncResult;

    fn run(inputs: &Inputs<'_>, params: &HostSyncParams) -> Result<HostSyncResult, AnalysisError> {
        Ok(HostSyncResult::of(inputs.first(), *params))
    }

    fn page(output: &HostSyncResult) -> Result<Page, AnalysisError> {
        Ok(page::page(Self::TITLE, Self::ABOUT, output))
    }
}

impl HostSyncResult {
    /// Computes the result for one timeline.
    pub fn of(timeline: &Timeline, params: HostSyncParams) -> Self {
        let limit = usize::try_from(params.limit).unwrap_or(usize::MAX);
        let gpus = ProcessGpus::of(timeline);
        let transfers = kinds::Transfers::of(timeline);
        let calls = kinds::waits(timeline, &transfers);
        let all = || calls.iter().map(|(_, call)| call);
        let mut kinds: Vec<SyncKindRow> = SyncKind::ALL
            .iter()
            .copied()
            .map(|kind| {
                let of_kind = calls.iter().filter(|(found, _)| *found == kind);
                let cost = gpus.cost(timeline, of_kind.map(|(_, call)| call));
                SyncKindRow { kind, cost }
            })
            .collect();
        kinds.retain(|row| row.cost.calls > 0);
        kinds.sort_by_key(|row| std::cmp::Reverse(row.cost.total_ns));
        let wait_holders = wait_holders::WaitHolders::of(timeline, &calls);
        let (holders, holders_left_out) = wait_holders.holders(timeline, &calls, &gpus, limit);
        let mut by_length: Vec<(usize, &(SyncKind, HostCall))> = calls.iter().enumerate().collect();
        by_length.sort_by_key(|(_, (_, call))| (std::cmp::Reverse(call.time.len()), call.time.start, call.at));
        let longest = by_length.iter().take(limit).map(|(at, (kind, call))| {
            let row = timeline.row(call.row);
            SyncCall {
                name: call.name(timeline).to_owned(),
                kind: *kind,
                process: row.map_or(0, |row| row.process),
                thread: row.and_then(|row| row.thread),
                start_ns: call.time.start,
                duration_ns: call.time.len(),
                gpu_idle_ns: gpus.idle_ns(timeline, call),
                held_by: wait_holders.innermost(timeline, *at).unwrap_or_default().to_owned(),
                row: call.row,
            }
        });
        Self {
            not_captured: not_captured(timeline, &gpus, &transfers),
            cost: gpus.cost(timeline, all()),
            gpu_idle_after_ns: idle_after(timeline, &gpus, all()),
            kinds,
            holders,
            holders_left_out,
            longest: longest.collect(),
            longest_left_out: u64::try_from(by_length.len().saturating_sub(limit)).unwrap_or(u64::MAX),
            rules: rules::all(timeline, &transfers, params),
        }
    }
}

/// Time in ns in which GPUs have nothing to do behind waits of their processes, up to their next
/// work.
fn idle_after<'a>(timeline: &Timeline, gpus: &ProcessGpus, calls: impl Iterator<Item = &'a HostCall>) -> Option<u64> {
    let mut idle = std::collections::BTreeMap::new();
    for call in calls {
        let Some(process) = timeline.row(call.row).map(process_of) else {
            continue;
        };
        let Some(busy) = gpus.busy(process) else {
            continue;
        };
        let idle: &mut Vec<Interval> = idle.entry(process).or_default();
        let end = call.time.end;
        if let Some(next) = busy.next_start(end).filter(|_| !busy.holds(end)) {
            idle.push(Interval::new(end, next));
        }
    }
    if gpus.is_empty() {
        return None;
    }
    Some(idle.into_values().map(|idle| Intervals::union_of(idle).len_ns()).sum())
}

fn not_captured(timeline: &Timeline, gpus: &ProcessGpus, transfers: &kinds::Transfers<'_>) -> Vec<NotCaptured> {
    let capture = &timeline.capture;
    let calls = NotCaptured::unless_any(capture, &[Category::CudaApi], "waits of the host");
    let holding = [
        Category::NvtxRange,
        Category::CpuOp,
        Category::Annotation,
        Category::PythonFunction,
    ];
    let holders = NotCaptured::unless_any(capture, &holding, "what holds the waits");
    let idle = gpus.not_captured(timeline, "how much of the waits the GPU was idle");
    let memory = transfers.lack_kinds().then(|| {
        NotCaptured::new(
            "asynchronous copies of pageable memory, and memsets that wait",
            "the source does not say which kind of memory copies read and write; Nsight Systems and PyTorch 1.8 and later do",
        )
    });
    calls.into_iter().chain(holders).chain(idle).chain(memory).collect()
}

#[cfg(test)]
mod tests;
