//! Operations: what was called how often, how long it took, and what its time was made of.

mod bottleneck;
mod calls;
mod dashboard;
mod kind;
mod memory;
pub mod profile;
mod result;
mod split;

use flopwatch_measures::enclosing::{LaunchedWork, Threads};
use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_measures::work::GpuWork;
use flopwatch_model::{
    Category, ColumnId, Figures, Needs, RowId, RowMajor, Timeline, count, figures_by_key, gpu_work_and, index, ratio,
};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::Page;
use flopwatch_summary::Statistics;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;
use calls::{Call, Calls};
use memory::Memory;
use split::{Parts, Splitter};

pub use bottleneck::{OperationBottleneck, OperationReason, OperationRule};
pub use kind::{OperationChoice, OperationKind};
pub use result::{
    Operation, OperationCall, OperationCoverage, OperationKindCalls, OperationMemory, OperationName, Operations,
};

/// Calls, time and what it was made of, per operation.
#[derive(Debug)]
pub struct OperationsAnalysis;

/// What [`OperationsAnalysis`] and `operations-profile` read.
const NEEDS: Needs = Needs::of(gpu_work_and![
    Category::CudaApi,
    Category::NvtxRange,
    Category::CpuOp,
    Category::Annotation,
    Category::Step,
    Category::DeviceOp
])
.columns(&[
    ColumnId::Launch,
    ColumnId::Bytes,
    ColumnId::RangeStyle,
    ColumnId::HloOp,
    ColumnId::HloModule,
])
.names()
.rows()
.allocations();

/// Parameters of [`OperationsAnalysis`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OperationsParams {
    /// What operations are made of.
    pub kind: OperationChoice,
    /// Most operations in the result, those that take longest by themselves.
    #[schemars(range(min = 1, max = 100_000))]
    pub top: u32,
    /// Most bottlenecks.
    #[schemars(range(min = 0, max = 100))]
    pub bottlenecks: u32,
    /// Most calls of the operation timeline, the first ones.
    #[schemars(range(min = 0, max = 10_000))]
    pub first_calls: u32,
    /// Most names as captured per operation, those with most calls.
    #[schemars(range(min = 0, max = 1000))]
    pub names: u32,
    /// Whether names that differ in numbers, addresses and ids alone are one operation.
    pub normalise: bool,
}

impl Default for OperationsParams {
    fn default() -> Self {
        Self {
            kind: OperationChoice::Auto,
            top: 200,
            bottlenecks: 5,
            first_calls: 100,
            names: 5,
            normalise: true,
        }
    }
}

impl Analysis for OperationsAnalysis {
    const NAME: &'static str = "operations";
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "NVTX ranges, annotations, PyTorch operators or HLO operations by name: calls, time, and how it splits into GPU, CPU, transfers and overhead.";
    const TITLE: &'static str = "Operations";
    const GROUP: Group = Group::Operations;
    const NEEDS: Needs = NEEDS;
    type Params = OperationsParams;
    type Output = Operations;

    fn run(inputs: &Inputs<'_>, params: &OperationsParams) -> Result<Operations, AnalysisError> {
        Ok(of(inputs.first(), params))
    }

    fn page(output: &Operations) -> Result<Page, AnalysisError> {
        Ok(dashboard::page(output))
    }
}

/// The calls of a kind, and what their time is split by.
#[derive(Debug)]
struct OperationWork<'a> {
    timeline: &'a Timeline,
    kind: OperationKind,
    /// Pieces of GPU work.
    pieces: u64,
    splitter: Splitter,
    memory: Memory,
    calls: Calls<'a>,
    known: RecordedParts,
}

impl<'a> OperationWork<'a> {
    fn of(timeline: &'a Timeline, choice: OperationChoice, normalise: bool) -> Self {
        let kind = choice.resolve(timeline);
        let threads = Threads::of(timeline);
        let work = GpuWork::of(timeline);
        let (splitter, (memory, calls)) = rayon::join(
            || Splitter::of(timeline, &threads, &work),
            || {
                let calls = Calls::of(timeline, kind, normalise, &threads);
                (Memory::of(timeline), calls)
            },
        );
        Self {
            timeline,
            kind,
            pieces: count(work.all().len()),
            known: RecordedParts::of(kind, &splitter, &memory),
            splitter,
            memory,
            calls,
        }
    }
}

/// The operations of a capture. It must hold what `operations` needs.
pub fn of(timeline: &Timeline, params: &OperationsParams) -> Operations {
    operations(&OperationWork::of(timeline, params.kind, params.normalise), params)
}

fn operations(measured: &OperationWork<'_>, params: &OperationsParams) -> Operations {
    let OperationWork {
        timeline,
        kind,
        pieces,
        splitter,
        memory,
        calls,
        known,
    } = measured;
    let (kind, pieces) = (*kind, *pieces);
    let first_calls = calls.list.iter().take(index(params.first_calls));
    let first_calls = first_calls.map(|call| known.call(calls, call, &splitter.parts(call)));
    let first_calls = first_calls.collect();
    let (sums, (own_lengths, inside)) = rayon::join(
        || sums(timeline, calls, splitter, memory),
        || own_gpu_time(calls, splitter, kind),
    );
    let self_ns: u64 = sums.iter().map(|sums| sums.self_ns).fold(0, u64::saturating_add);
    let figures = figures(calls);
    let mut captured = names(calls, index(params.names));
    let mut operations: Vec<Operation> = Vec::with_capacity(sums.len());
    for (at, ((name, sums), figures)) in calls.operations.iter().zip(&sums).zip(&figures).enumerate() {
        if let Some(statistics) = Statistics::from_figures(figures) {
            let on_device = || sums.parts.gpu_ns.min(sums.self_ns);
            let own_gpu = own_lengths.get(at).copied().unwrap_or_else(on_device);
            let named = captured.get_mut(at).map(std::mem::take).unwrap_or_default();
            operations.push(known.operation(name, &statistics, sums, own_gpu, self_ns, named));
        }
    }
    operations.sort_by(|a, b| b.self_ns.cmp(&a.self_ns).then_with(|| a.operation.cmp(&b.operation)));
    let total_ns = operations.iter().map(|operation| operation.total_ns);
    let total_ns = total_ns.fold(0, u64::saturating_add);
    let count = count(calls.list.len());
    let distinct = self::count(operations.len());
    let bottlenecks = bottleneck::bottlenecks(&operations, index(params.bottlenecks));
    operations.truncate(index(params.top));
    Operations {
        kind,
        kinds: kinds(timeline),
        calls: count,
        distinct,
        self_ns,
        total_ns,
        avg_ns: ratio(total_ns, count),
        gpu_work: kind.category().filter(|_| splitter.has_gpu).map(|_| {
            let launched = splitter.gpu().matched() + splitter.transfers().matched();
            OperationCoverage {
                pieces,
                inside,
                outside: launched.saturating_sub(inside),
                without_launch: pieces.saturating_sub(launched),
            }
        }),
        not_captured: not_captured(timeline, kind, splitter, memory, count),
        bottlenecks,
        operations_left_out: distinct - self::count(operations.len()),
        operations,
        first_calls,
        memory: memory::over_time(timeline),
    }
}

/// Sums over the calls of an operation.
#[derive(Debug, Clone, Default)]
struct Sums {
    self_ns: u64,
    recursive: u64,
    parts: Parts,
    allocated: u64,
    peak: u64,
    /// The longest call, the first of several, and its row.
    longest: Option<(Interval, RowId)>,
}

/// Pieces of the calls that are summed apart: each has sums of every operation.
const CALL_PIECES: usize = 8;

/// The sums of each operation. Pieces of the calls are summed apart, and put together in the order
/// of the calls.
fn sums(timeline: &Timeline, calls: &Calls<'_>, splitter: &Splitter, memory: &Memory) -> Vec<Sums> {
    let none = || vec![Sums::default(); calls.operations.len()];
    let of_piece = |piece: &[Call]| {
        let mut sums = none();
        for call in piece {
            let process = timeline.row(call.row).map_or(0, |row| row.process);
            if let Some(sums) = sums.get_mut(index(call.operation)) {
                sums.add(call, &splitter.parts(call), memory.during(process, call.time));
            }
        }
        sums
    };
    let length = calls.list.len().div_ceil(CALL_PIECES).max(1);
    let pieces: Vec<Vec<Sums>> = calls.list.par_chunks(length).map(of_piece).collect();
    let mut all = none();
    for piece in pieces {
        for (sums, part) in all.iter_mut().zip(&piece) {
            sums.join(part);
        }
    }
    all
}

impl Sums {
    /// Adds those of later calls.
    fn join(&mut self, later: &Self) {
        if let Some((time, row)) = later.longest {
            self.ran(time, row);
        }
        self.self_ns = self.self_ns.saturating_add(later.self_ns);
        self.recursive += later.recursive;
        self.parts.add(&later.parts);
        self.allocated = self.allocated.saturating_add(later.allocated);
        self.peak = self.peak.max(later.peak);
    }

    fn ran(&mut self, time: Interval, row: RowId) {
        if self.longest.is_none_or(|(longest, _)| time.len() > longest.len()) {
            self.longest = Some((time, row));
        }
    }

    fn add(&mut self, call: &Call, parts: &Parts, (allocated, peak): (u64, u64)) {
        self.ran(call.time, call.row);
        self.self_ns = self.self_ns.saturating_add(call.self_ns);
        self.recursive += u64::from(call.is_recursive);
        self.parts.add(parts);
        self.allocated = self.allocated.saturating_add(allocated);
        self.peak = self.peak.max(peak);
    }
}

/// Which parts a capture tells.
#[derive(Debug, Clone, Copy)]
struct RecordedParts {
    gpu: bool,
    api: bool,
    memory: bool,
}

impl RecordedParts {
    fn of(kind: OperationKind, splitter: &Splitter, memory: &Memory) -> Self {
        let on_host = kind.category().is_some();
        Self {
            gpu: splitter.has_gpu || !on_host,
            api: splitter.has_api && on_host,
            memory: memory.is_captured() && on_host,
        }
    }

    fn call(self, calls: &Calls<'_>, call: &Call, parts: &Parts) -> OperationCall {
        let operation = calls.operations.get(index(call.operation));
        let name = calls.names.get(index(call.name));
        OperationCall {
            operation: operation.cloned().unwrap_or_default(),
            name: name.map(ToString::to_string).unwrap_or_default(),
            start_ns: call.time.start,
            end_ns: call.time.end,
            row: Some(call.row),
            gpu_ns: self.gpu.then_some(parts.gpu_ns),
            transfer_ns: self.gpu.then_some(parts.transfer_ns),
            cpu_ns: self.api.then_some(parts.cpu_ns),
            overhead_ns: self.api.then_some(parts.overhead_ns),
        }
    }

    fn operation(
        self,
        name: &str,
        statistics: &Statistics,
        sums: &Sums,
        own_gpu: u64,
        all_ns: u64,
        (names, names_left_out): (Vec<OperationName>, u64),
    ) -> Operation {
        let parts = &sums.parts;
        let longest = sums.longest.map(|(time, _)| time).unwrap_or_default();
        Operation {
            operation: name.to_owned(),
            calls: statistics.calls,
            recursive_calls: sums.recursive,
            total_ns: statistics.total,
            self_ns: sums.self_ns,
            self_ratio: ratio(sums.self_ns, all_ns).unwrap_or(0.0),
            avg_ns: statistics.avg,
            median_ns: Some(statistics.median),
            min_ns: statistics.min,
            max_ns: statistics.max,
            std_dev_ns: statistics.stddev,
            gpu_ns: self.gpu.then_some(parts.gpu_ns),
            self_gpu_ns: self.gpu.then_some(own_gpu),
            transfer_ns: self.gpu.then_some(parts.transfer_ns),
            cpu_ns: self.api.then_some(parts.cpu_ns),
            overhead_ns: self.api.then_some(parts.overhead_ns),
            wait_ns: self.api.then_some(parts.wait_ns),
            gpu_pieces: self.gpu.then_some(parts.pieces),
            transfers: self.gpu.then_some(parts.transfers),
            transferred_bytes: parts.transferred_bytes.known().filter(|_| self.gpu && self.api),
            allocated_bytes: self.memory.then_some(sums.allocated),
            peak_bytes: self.memory.then_some(sums.peak),
            longest_start_ns: longest.start,
            longest_end_ns: longest.end,
            longest_row: sums.longest.map(|(_, row)| row),
            names,
            names_left_out,
        }
    }
}

/// Figures of the lengths of the calls of each operation.
fn figures(calls: &Calls<'_>) -> Vec<Figures> {
    let operations: Vec<u32> = calls.list.iter().map(|call| call.operation).collect();
    let length = |at: usize| calls.list.get(at).map_or(0, |call| call.time.len());
    figures_by_key(
        u32::try_from(calls.operations.len()).unwrap_or(u32::MAX),
        &operations,
        length,
    )
}

/// Of each operation the names with most calls, and how many others there are.
fn names(calls: &Calls<'_>, max: usize) -> Vec<(Vec<OperationName>, u64)> {
    let mut counts = vec![0_u64; calls.names.len()];
    for call in &calls.list {
        if let Some(count) = counts.get_mut(index(call.name)) {
            *count += 1;
        }
    }
    let mut by_operation: Vec<Vec<(u64, usize)>> = vec![Vec::new(); calls.operations.len()];
    for ((at, count), operation) in counts.into_iter().enumerate().zip(&calls.operation_of) {
        if let Some(names) = by_operation.get_mut(index(*operation)).filter(|_| count > 0) {
            names.push((count, at));
        }
    }
    let name = |(calls_of, at): (u64, usize)| OperationName {
        name: calls.names.get(at).map(ToString::to_string).unwrap_or_default(),
        calls: calls_of,
    };
    let listed = by_operation.into_iter().map(|mut names| {
        names.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let left_out = count(names.len().saturating_sub(max));
        (names.into_iter().take(max).map(name).collect(), left_out)
    });
    listed.collect()
}

/// Of each operation the length of the union of the GPU work whose innermost operation it is, and
/// how many pieces of work, transfers included, were launched inside of any. Nothing of operations
/// that are on the device themselves.
fn own_gpu_time(calls: &Calls<'_>, splitter: &Splitter, kind: OperationKind) -> (Vec<u64>, u64) {
    if kind.category().is_none() {
        return (Vec::new(), 0);
    }
    let mut own: Vec<Vec<Interval>> = vec![Vec::new(); calls.operations.len()];
    let rows: Vec<RowId> = calls.list.iter().map(|call| call.row).collect();
    let count = rows.iter().max().map_or(0, |last| last.index().saturating_add(1));
    let rows = RowMajor::new(&rows, count);
    let mut inside = 0;
    for (_, range) in rows.rows() {
        let of_row: Vec<&Call> = rows
            .positions(range.clone())
            .filter_map(|at| calls.list.get(at))
            .collect();
        let Some(thread) = of_row.first().and_then(|call| call.thread) else {
            continue;
        };
        for (launched, call) in innermost(&of_row, splitter.gpu(), thread) {
            inside += 1;
            if let Some(own) = own.get_mut(index(call.operation)) {
                own.push(launched);
            }
        }
        inside += count_of(innermost(&of_row, splitter.transfers(), thread));
    }
    let lengths = own.into_iter().map(|own| Intervals::union_of(own).len_ns());
    (lengths.collect(), inside)
}

fn count_of(all: impl Iterator) -> u64 {
    count(all.count())
}

/// The work that a thread launched inside of `calls`, which are those of one row by start, each
/// with the innermost call around its launch.
fn innermost<'c>(
    calls: &'c [&'c Call],
    launched: &'c LaunchedWork,
    thread: u32,
) -> impl Iterator<Item = (Interval, &'c Call)> {
    let mut next = calls.iter().peekable();
    let mut running: Vec<&Call> = Vec::new();
    let found = launched.by_thread(thread).iter().map(move |launched| {
        let at = launched.call.start;
        while let Some(call) = next.next_if(|call| call.time.start <= at) {
            while running.pop_if(|last| last.time.end <= call.time.start).is_some() {}
            running.push(call);
        }
        while running.pop_if(|last| last.time.end <= at).is_some() {}
        // Calls that cross each other may have ended below one that has not.
        let around = running.iter().rev().find(|call| call.time.end > at);
        around.map(|call| (launched.time, *call))
    });
    found.flatten()
}

fn kinds(timeline: &Timeline) -> Vec<OperationKindCalls> {
    let kinds = OperationKind::OF_CAPTURES.into_iter();
    let counted = kinds.map(|kind| OperationKindCalls {
        kind,
        calls: kind.count(timeline),
    });
    counted.filter(|counted| counted.calls > 0).collect()
}

fn not_captured(
    timeline: &Timeline,
    kind: OperationKind,
    splitter: &Splitter,
    memory: &Memory,
    calls: u64,
) -> Vec<NotCaptured> {
    let mut missing = Vec::new();
    if calls == 0 {
        let categories = kind.category().unwrap_or(Category::DeviceOp);
        let unrecorded = NotCaptured::unless_any(&timeline.capture, &[categories], kind.title());
        missing.push(unrecorded.unwrap_or_else(|| {
            NotCaptured::new(
                kind.title(),
                "the capture holds none; mark the program's phases with NVTX ranges, or choose another kind",
            )
        }));
        return missing;
    }
    if kind.category().is_none() {
        let reason = "operations of a compiled program are known on the device alone; choose the kind annotation or nvtx for the host's side";
        missing.push(NotCaptured::new("CPU time and overhead", reason));
        return missing;
    }
    if !splitter.has_api {
        let reason = "calls of the CUDA API were not recorded; without them nothing ties GPU work to the operation that launched it";
        missing.push(NotCaptured::new("CPU time, overhead and GPU time", reason));
    } else if !splitter.has_gpu {
        let reason = "no GPU work with the call that launched it was recorded; capture kernels, and with CUDA graphs their nodes";
        missing.push(NotCaptured::new("GPU and transfer time", reason));
    }
    if !memory.is_captured() {
        let reason =
            "what the allocators of device memory did was not recorded; with PyTorch capture with profile_memory=True";
        missing.push(NotCaptured::new("memory", reason));
    }
    missing
}

#[cfg(test)]
mod tests;
