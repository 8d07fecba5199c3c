//! What it costs to give out and take back memory, and whether the program still does so in its
//! steady state.

use std::collections::BTreeMap;

use flopwatch_measures::host_call::{HostCall, ProcessGpus, without_version};
use flopwatch_measures::steady_state::{PhasedCost, SteadyState};
use flopwatch_model::{Category, ColumnId, Needs, Timeline, index};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, Table, TimelineLocation, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;

/// Allocations of memory by the CUDA API and by the framework.
#[derive(Debug)]
pub struct Allocations;

/// Parameters of [`Allocations`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AllocationsParams {
    /// Most calls in the list of the longest.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u32,
}

impl Default for AllocationsParams {
    fn default() -> Self {
        Self { limit: 50 }
    }
}

/// What a call of the API does with memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum AllocationCall {
    /// Gives out memory of a device: `cudaMalloc`, `cuMemAlloc`.
    DeviceAllocate,
    /// Takes it back, for which the device must have ended its work: `cudaFree`.
    DeviceFree,
    /// Gives out memory of a pool in the order of a stream: `cudaMallocAsync`.
    PoolAllocate,
    /// Takes it back: `cudaFreeAsync`.
    PoolFree,
    /// Gives out managed memory: `cudaMallocManaged`.
    ManagedAllocate,
    /// Gives out or registers page-locked memory of the host: `cudaHostAlloc`, `cudaHostRegister`.
    HostAllocate,
    /// Takes it back: `cudaFreeHost`.
    HostFree,
    /// Reserves, creates and maps addresses: `cuMemMap`, `cuMemCreate`.
    Map,
}

impl AllocationCall {
    /// Name in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What the call of that name does; `None` of one that has to do with no memory.
    pub fn of(name: &str) -> Option<Self> {
        let bare = without_version(name);
        let function = ["cuda", "cu", "hip"]
            .iter()
            .find_map(|prefix| bare.strip_prefix(prefix))?;
        match function {
            "Malloc"
            | "MallocPitch"
            | "Malloc3D"
            | "MallocArray"
            | "Malloc3DArray"
            | "MallocMipmappedArray"
            | "MemAlloc"
            | "MemAllocPitch"
            | "ArrayCreate"
            | "Array3DCreate"
            | "ExtMallocWithFlags" => Some(Self::DeviceAllocate),
            "Free" | "FreeArray" | "FreeMipmappedArray" | "MemFree" | "ArrayDestroy" => Some(Self::DeviceFree),
            "MallocAsync" | "MallocFromPoolAsync" | "MemAllocAsync" | "MemAllocFromPoolAsync" => {
                Some(Self::PoolAllocate)
            }
            "FreeAsync" | "MemFreeAsync" => Some(Self::PoolFree),
            "MallocManaged" | "MemAllocManaged" => Some(Self::ManagedAllocate),
            "HostAlloc" | "MallocHost" | "MemHostAlloc" | "MemAllocHost" | "HostMalloc" | "HostRegister"
            | "MemHostRegister" => Some(Self::HostAllocate),
            "FreeHost" | "MemFreeHost" | "HostFree" | "HostUnregister" | "MemHostUnregister" => Some(Self::HostFree),
            "MemCreate" | "MemRelease" | "MemMap" | "MemUnmap" | "MemAddressReserve" | "MemAddressFree"
            | "MemSetAccess" | "MemMapArrayAsync" => Some(Self::Map),
            _ => None,
        }
    }
}

/// What has no figures where calls of the API were not recorded.
const CALLS: &str = "calls that allocate and free";

/// What allocations cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct AllocationsResult {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// When the steady state begins in ns: with the second iteration of the program's loop. Null
    /// where no iterations are found.
    pub steady_from_ns: Option<u64>,
    /// All calls that allocate and free.
    pub calls: PhasedCost,
    /// The same by what they do, the longest total first.
    pub kinds: Vec<AllocationCallRow>,
    /// The longest calls.
    pub longest: Vec<AllocationCallSeen>,
    /// Calls that were left out behind these.
    pub longest_left_out: u64,
    /// What the framework's allocator did (`[memory]` of a PyTorch trace), per device.
    pub allocators: Vec<AllocatorRow>,
}

/// Calls of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AllocationCallRow {
    /// What they do.
    pub kind: AllocationCall,
    /// What they cost.
    pub cost: PhasedCost,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AllocationCallSeen {
    /// Name of the call.
    pub name: String,
    /// What it does.
    pub kind: AllocationCall,
    /// Length in ns.
    pub duration_ns: u64,
    /// The part of it in which no GPU worked for the process; null where none ever did.
    pub gpu_idle_ns: Option<u64>,
    /// Whether it began in the steady state; null where it is not known when that begins.
    pub in_steady_state: Option<bool>,
    /// Where it is.
    pub place: TimelineLocation,
}

/// What a framework's allocator did on a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AllocatorRow {
    /// Ordinal of the device; null of the host's memory.
    pub device: Option<u32>,
    /// Times it gave memory out.
    pub allocations: u64,
    /// Times it took memory back.
    pub frees: u64,
    /// Bytes that it gave out, all together.
    pub allocated_bytes: u64,
    /// Most bytes that were given out at a time; null where the source does not say it.
    pub peak_allocated_bytes: Option<u64>,
    /// Most bytes that it had reserved; null where the source does not say it.
    pub peak_reserved_bytes: Option<u64>,
    /// Times what it has reserved grew, for which it asks the driver for memory.
    pub growths: u64,
    /// Times what it has reserved shrank, for which it gives memory back to the driver.
    pub shrinks: u64,
    /// Times it gave memory out in the steady state; null where it is not known when that begins.
    pub steady_allocations: Option<u64>,
}

impl Analysis for Allocations {
    const NAME: &'static str = "allocations";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "What it costs to give out and take back memory: time, GPU idle meanwhile, and what is left of it in the steady state.";
    const TITLE: &'static str = "Allocations of memory";
    const GROUP: Group = Group::Host;
    const NEEDS: Needs = Needs::of(flopwatch_measures::iteration::ITERATION_CATEGORIES)
        .columns(&[ColumnId::Launch, ColumnId::StepNumber, ColumnId::RangeStyle])
        .names()
        .rows()
        .allocations();
    type Params = AllocationsParams;
    type Output = AllocationsResult;

    fn run(inputs: &Inputs<'_>, params: &AllocationsParams) -> Result<AllocationsResult, AnalysisError> {
        Ok(AllocationsResult::of(inputs.first(), *params))
    }

    fn page(output: &AllocationsResult) -> Result<Page, AnalysisError> {
        Ok(page(Self::TITLE, Self::ABOUT, output))
    }
}

impl AllocationsResult {
    /// Computes the result for one timeline.
    pub fn of(timeline: &Timeline, params: AllocationsParams) -> Self {
        let capture = &timeline.capture;
        let kinds: Vec<Option<AllocationCall>> =
            capture.events.get(&Category::CudaApi).map_or_else(Vec::new, |calls| {
                calls.names.iter().map(|name| AllocationCall::of(name)).collect()
            });
        let of_name = |name: usize| kinds.get(name).copied().flatten();
        let all = HostCall::list(timeline, Category::CudaApi, |name| of_name(name).is_some());
        let mut by_kind: BTreeMap<AllocationCall, Vec<HostCall>> = BTreeMap::new();
        let events = capture.events.get(&Category::CudaApi);
        let kind_of = |call: &HostCall| of_name(events?.name.get(index(call.at))?.index());
        for call in &all {
            if let Some(kind) = kind_of(call) {
                by_kind.entry(kind).or_default().push(*call);
            }
        }
        let (gpus, steady) = (ProcessGpus::of(timeline), SteadyState::of(timeline));
        let rows = by_kind.into_iter().map(|(kind, calls)| AllocationCallRow {
            kind,
            cost: PhasedCost::of(timeline, &gpus, &steady, &calls),
        });
        let mut rows: Vec<AllocationCallRow> = rows.collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.cost.cost.total_ns));
        let mut by_length = all.clone();
        by_length.sort_by_key(|call| (std::cmp::Reverse(call.time.len()), call.time.start, call.at));
        let limit = usize::try_from(params.limit).unwrap_or(usize::MAX);
        let longest = by_length.iter().take(limit).filter_map(|call| {
            Some(AllocationCallSeen {
                name: call.name(timeline).to_owned(),
                kind: kind_of(call)?,
                duration_ns: call.time.len(),
                gpu_idle_ns: gpus.idle_ns(timeline, call),
                in_steady_state: steady.from_ns.map(|from| call.time.start >= from),
                place: call.location(),
            })
        });
        let allocator = capture.allocations.is_empty().then(|| {
            NotCaptured::new(
                "what the framework's allocator did",
                "the capture holds no allocator's events; PyTorch records them with profile_memory=True",
            )
        });
        let calls = NotCaptured::unless_any(capture, &[Category::CudaApi], CALLS);
        let idle = gpus.not_captured(timeline, "how much of the calls the GPU was idle");
        let not_captured = calls
            .into_iter()
            .chain(idle)
            .chain(steady.not_found.clone())
            .chain(allocator);
        Self {
            not_captured: not_captured.collect(),
            steady_from_ns: steady.from_ns,
            calls: PhasedCost::of(timeline, &gpus, &steady, &all),
            kinds: rows,
            longest: longest.collect(),
            longest_left_out: u64::try_from(all.len().saturating_sub(limit)).unwrap_or(u64::MAX),
            allocators: allocators(timeline, &steady),
        }
    }
}

// Not of `measures::pool`: a row is of a device, whichever processes and allocators gave its memory
// out, and has what the source says alone.
fn allocators(timeline: &Timeline, steady: &SteadyState) -> Vec<AllocatorRow> {
    let mut rows: BTreeMap<Option<u32>, (AllocatorRow, Option<u64>)> = BTreeMap::new();
    for one in &timeline.capture.allocations {
        let (row, reserved) = rows.entry(one.device).or_default();
        row.device = one.device;
        if one.bytes > 0 {
            row.allocations += 1;
            row.allocated_bytes += one.bytes.unsigned_abs();
            if let Some(from) = steady.from_ns {
                *row.steady_allocations.get_or_insert(0) += u64::from(one.t_ns >= from);
            }
        } else {
            row.frees += 1;
        }
        row.peak_allocated_bytes = row.peak_allocated_bytes.max(one.allocated);
        row.peak_reserved_bytes = row.peak_reserved_bytes.max(one.reserved);
        if let (Some(before), Some(now)) = (*reserved, one.reserved) {
            row.growths += u64::from(now > before);
            row.shrinks += u64::from(now < before);
        }
        *reserved = one.reserved.or(*reserved);
    }
    rows.into_values().map(|(row, _)| row).collect()
}

fn page(title: &str, about: &str, result: &AllocationsResult) -> Page {
    let mut page = Page::of(title, about, &result.not_captured);
    let recorded = !result.not_captured.iter().any(|missing| missing.what == CALLS);
    page.tiles(result.calls.tiles(["Calls", "Calls in steady state"], recorded));
    page.table(PhasedCost::by_kind(
        result.kinds.iter().map(|row| (row.kind.name(), &row.cost)),
    ));
    page.table(
        Table::of("Longest calls", &result.longest)
            .left_out(result.longest_left_out)
            .column("Call", |call| call.name.as_str())
            .column("Kind", |call| call.kind.name().replace('_', " "))
            .figure("Start", Unit::Instant, |call| call.place.start_ns)
            .figure("Duration", Unit::Ns, |call| call.duration_ns)
            .figure("GPU idle meanwhile", Unit::Ns, |call| call.gpu_idle_ns)
            .column("In steady state", |call| call.in_steady_state)
            .at(|call| call.place),
    );
    page.table_unless_empty(
        Table::of("The framework's allocator", &result.allocators)
            .column("GPU", |row| {
                row.device
                    .map_or_else(|| "host".into(), flopwatch_report::page::Cell::from)
            })
            .column("Allocations", |row| row.allocations)
            .column("Frees", |row| row.frees)
            .figure("Given out", Unit::Bytes, |row| row.allocated_bytes)
            .figure("Peak given out", Unit::Bytes, |row| row.peak_allocated_bytes)
            .figure("Peak reserved", Unit::Bytes, |row| row.peak_reserved_bytes)
            .column("Growths", |row| row.growths)
            .column("Shrinks", |row| row.shrinks)
            .column("Allocations in steady state", |row| row.steady_allocations),
    );
    page
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::{Allocation, Track};

    use super::*;

    #[test]
    fn a_free_that_the_gpu_idles_in_is_counted_with_its_stall() {
        let mut trace = Trace::new();
        let (calls, stream) = (trace.thread(1, 1, Track::CudaApi), trace.stream(1, 0, 7));
        trace.kernel(stream, "gemm", 0, 60);
        trace.call(calls, "cudaMalloc_v3020", 10, 20);
        trace.call(calls, "cudaFree_v3020", 50, 100);
        trace.call(calls, "cudaMemGetInfo_v3020", 100, 110);
        trace.call(calls, "cudaMemcpy_v3020", 110, 120);
        let result = AllocationsResult::of(&trace.build(), AllocationsParams::default());
        let found: Vec<_> = result
            .kinds
            .iter()
            .map(|row| (row.kind, row.cost.cost.total_ns, row.cost.cost.gpu_idle_ns))
            .collect();
        assert_eq!(
            found,
            [
                (AllocationCall::DeviceFree, 50, Some(40)),
                (AllocationCall::DeviceAllocate, 10, Some(0))
            ]
        );
        assert_eq!(result.calls.cost.calls, 2);
        assert_eq!(result.calls.steady, None);
        assert!(result.not_captured.iter().any(|one| one.what.contains("steady state")));
    }

    #[test]
    fn an_allocators_growths_are_counted_per_device() {
        let mut timeline = Trace::new().build();
        let one = |t_ns, bytes, allocated, reserved| Allocation {
            t_ns,
            device: Some(0),
            bytes,
            allocated: Some(allocated),
            reserved: Some(reserved),
            ..Allocation::default()
        };
        timeline.capture.allocations = vec![
            one(1, 100, 100, 200),
            one(2, 150, 250, 400),
            one(3, -100, 150, 400),
            one(4, -150, 0, 0),
        ];
        let result = AllocationsResult::of(&timeline, AllocationsParams::default());
        let expected = AllocatorRow {
            device: Some(0),
            allocations: 2,
            frees: 2,
            allocated_bytes: 250,
            peak_allocated_bytes: Some(250),
            peak_reserved_bytes: Some(400),
            growths: 1,
            shrinks: 1,
            steady_allocations: None,
        };
        assert_eq!(result.allocators, [expected]);
    }
}
