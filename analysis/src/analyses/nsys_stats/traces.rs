//! Every piece of GPU work and every call, in the order of their starts.

use flopwatch_measures::work::GPU_WORK;
use flopwatch_model::{
    Category, ColumnId, Events, MemoryKind, Needs, Row, RowId, Timeline, approximate, count, gpu_work_and, index,
};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Cell, Page, Table, TableColumn, TimelineLocation};
use schemars::JsonSchema;
use serde::Serialize;

use super::gpu::GPU_PARTS;
use super::kernel_names::Kernels;
use super::parameters::{NsysKernelParams, NsysParams};
use super::rounding::megabytes;
use crate::definition::{Analysis, AnalysisError};
use crate::input::Inputs;

/// Kernels, copies and memsets in the order of their starts.
#[derive(Debug)]
pub struct CudaGpuTrace;

/// Calls of the CUDA runtime and driver in the order of their starts.
#[derive(Debug)]
pub struct CudaApiTrace;

/// GPU work in the order of its starts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct NsysGpuTrace {
    /// What the capture lacks.
    pub not_captured: Vec<NotCaptured>,
    /// The rows.
    pub rows: Vec<NsysGpuTraceRow>,
    /// Rows that were left out behind these.
    pub left_out: u64,
}

/// A kernel, copy or memset.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct NsysGpuTraceRow {
    /// Start in ns.
    pub start_ns: u64,
    /// Length in ns.
    pub duration_ns: u64,
    /// Correlation id, which the call that launched the work has too; null for none.
    pub correlation: Option<u32>,
    /// What only kernels have.
    pub kernel: Option<NsysKernelShape>,
    /// Bytes copied or set; null of a kernel.
    pub bytes: Option<u64>,
    /// `bytes` by the length, in bytes per second; null of a kernel and of work that took no time.
    pub bytes_per_second: Option<f64>,
    /// Kind of memory that is copied from, or set.
    pub source_memory: Option<&'static str>,
    /// Kind of memory that is copied to.
    pub destination_memory: Option<&'static str>,
    /// Name and ordinal of the GPU, as in `NVIDIA H100 (0)`; null where the source does not say the
    /// ordinal.
    pub device: Option<String>,
    /// CUDA context; null where the source does not say it.
    pub context: Option<u64>,
    /// CUDA stream; null where the source does not say it.
    pub stream: Option<u64>,
    /// Name of the kernel or operation.
    pub name: String,
    /// The timeline's row.
    pub row: RowId,
}

/// Shape of a launch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NsysKernelShape {
    /// Thread blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads per block in x, y and z.
    pub block: [u32; 3],
    /// Registers per thread.
    pub registers: u64,
    /// Static shared memory per block in bytes.
    pub shared_static_bytes: u64,
    /// Dynamic shared memory per block in bytes.
    pub shared_dynamic_bytes: u64,
}

/// Calls in the order of their starts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct NsysApiTrace {
    /// What the capture lacks.
    pub not_captured: Vec<NotCaptured>,
    /// The rows.
    pub rows: Vec<NsysApiTraceRow>,
    /// Rows that were left out behind these.
    pub left_out: u64,
}

/// A call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NsysApiTraceRow {
    /// Start in ns.
    pub start_ns: u64,
    /// Length in ns.
    pub duration_ns: u64,
    /// The function.
    pub name: String,
    /// What it returned, 0 for success; null where the source does not say it.
    pub result: Option<u64>,
    /// Correlation id, which the work that it launched has too; null for none.
    pub correlation: Option<u32>,
    /// Process.
    pub process: u32,
    /// Thread; null where the source does not say it.
    pub thread: Option<u64>,
    /// Name of the thread; null where the source does not say it.
    pub thread_name: Option<String>,
    /// The timeline's row.
    pub row: RowId,
}

/// Kinds of memory as nsys writes them.
fn memory_kind(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Pageable => "Pageable",
        MemoryKind::Pinned => "Pinned",
        MemoryKind::Device => "Device",
        MemoryKind::Array => "Array",
        MemoryKind::Managed => "Managed",
        MemoryKind::DeviceStatic => "Device Static",
        MemoryKind::ManagedStatic => "Managed Static",
        MemoryKind::Unknown => "Unknown",
    }
}

fn known(id: u32) -> Option<u32> {
    (id != 0).then_some(id)
}

/// The earliest `limit` pieces of GPU work and migrations of unified memory: category and place,
/// and how many others there are.
fn earliest(timeline: &Timeline, limit: usize) -> (Vec<(Category, usize)>, u64) {
    let lists = GPU_WORK
        .iter()
        .chain(&[Category::CudaMigration])
        .filter_map(|category| Some((*category, timeline.capture.events.get(category)?)));
    let (mut found, mut all) = (Vec::new(), 0);
    for (category, events) in lists {
        all += events.len();
        // Each category is in the order of starts, so that its first ones are enough.
        let starts = events.start_ns.iter().take(limit).enumerate();
        found.extend(starts.map(|(at, start)| (*start, category, at)));
    }
    found.sort_unstable();
    found.truncate(limit);
    let left_out = count(all - found.len());
    (
        found.into_iter().map(|(_, category, at)| (category, at)).collect(),
        left_out,
    )
}

fn gpu_row(
    timeline: &Timeline,
    kernels: Option<&Kernels<'_>>,
    (category, at): (Category, usize),
) -> Option<NsysGpuTraceRow> {
    let events = timeline.capture.events.get(&category)?;
    let row_number = *events.row.get(at)?;
    let row = timeline.row(row_number);
    let number = |id: ColumnId| events.number(id, at);
    let kernels = kernels.filter(|_| category == Category::CudaKernel);
    let shape = |kernels: &Kernels<'_>| {
        let [grid, block] = kernels.shape()(at);
        NsysKernelShape {
            grid,
            block,
            registers: number(ColumnId::Registers).unwrap_or(0),
            shared_static_bytes: number(ColumnId::SharedStatic).unwrap_or(0),
            shared_dynamic_bytes: number(ColumnId::SharedDynamic).unwrap_or(0),
        }
    };
    let duration_ns = *events.duration_ns.get(at)?;
    let bytes = number(ColumnId::Bytes);
    let kind = |id: ColumnId| number(id).and_then(MemoryKind::from_number).map(memory_kind);
    let (source, destination) = (kind(ColumnId::SrcMemoryKind), kind(ColumnId::DstMemoryKind));
    // What is set has one kind, which nsys shows as that of the source.
    let (source_memory, destination_memory) = if category == Category::CudaMemset {
        (destination, None)
    } else {
        (source, destination)
    };
    let device = |id: u32| {
        let device = timeline.capture.devices.iter().find(|device| device.id == id);
        format!("{} ({id})", device.map_or("", |device| &device.name))
    };
    Some(NsysGpuTraceRow {
        start_ns: *events.start_ns.get(at)?,
        duration_ns,
        correlation: events.correlation.get(at).copied().and_then(known),
        kernel: kernels.map(shape),
        bytes,
        bytes_per_second: bytes.filter(|_| duration_ns > 0).map(|bytes| {
            let per_ns = approximate(u128::from(bytes)) / approximate(u128::from(duration_ns));
            per_ns * 1e9
        }),
        source_memory,
        destination_memory,
        device: row.and_then(|row| row.device).map(device),
        context: row.and_then(|row| row.context),
        stream: row.and_then(|row| row.stream),
        name: kernels
            .map_or_else(|| events.name_of(at), |kernels| kernels.name(at))
            .to_owned(),
        row: row_number,
    })
}

/// The name of a row's thread: labels of threads are `program (process) name (thread)`.
fn thread_name(row: &Row) -> Option<String> {
    let process = format!("({}) ", row.process);
    let thread = format!(" ({})", row.thread?);
    let (_, behind) = row.label.split_once(&process)?;
    let name = behind.strip_suffix(&thread)?;
    // What a label has where the source knows no name.
    (name != "thread" && !name.is_empty()).then(|| name.to_owned())
}

/// Whether a call's result is known: a column in which every call succeeded is not kept, but Nsight
/// Systems always says it.
fn says_results(timeline: &Timeline, calls: &Events) -> bool {
    calls.column(ColumnId::ReturnValue).is_some() || timeline.capture.source.tool.contains("Nsight Systems")
}

impl Analysis for CudaGpuTrace {
    const NAME: &'static str = "cuda_gpu_trace";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "Kernels, copies and memsets in the order of their starts, as nsys stats has them.";
    const GROUP: crate::Group = crate::Group::NsysTables;
    const NEEDS: Needs = Needs::of(gpu_work_and![
        Category::CudaMigration,
        Category::CudaApi,
        Category::NvtxRange
    ])
    .columns(&[
        ColumnId::GridX,
        ColumnId::GridY,
        ColumnId::GridZ,
        ColumnId::BlockX,
        ColumnId::BlockY,
        ColumnId::BlockZ,
        ColumnId::Registers,
        ColumnId::SharedStatic,
        ColumnId::SharedDynamic,
        ColumnId::Bytes,
        ColumnId::Launch,
        ColumnId::SrcMemoryKind,
        ColumnId::DstMemoryKind,
    ])
    .names()
    .name_details()
    .rows()
    .correlations();
    type Params = NsysKernelParams;
    type Output = NsysGpuTrace;

    fn run(inputs: &Inputs<'_>, params: &NsysKernelParams) -> Result<NsysGpuTrace, AnalysisError> {
        let timeline = inputs.first();
        let kernels = Kernels::of(timeline, params);
        let mut not_captured = NotCaptured::of_parts(&timeline.capture, GPU_PARTS);
        not_captured.extend(kernels.iter().flat_map(|kernels| kernels.not_captured.clone()));
        let (order, left_out) = earliest(timeline, index(params.limit));
        let rows = order.into_iter();
        Ok(NsysGpuTrace {
            not_captured,
            rows: rows
                .filter_map(|launch| gpu_row(timeline, kernels.as_ref(), launch))
                .collect(),
            left_out,
        })
    }

    fn page(output: &NsysGpuTrace) -> Result<Page, AnalysisError> {
        let sized = |bytes: u64| megabytes(approximate(u128::from(bytes)));
        let table = Table::of("", &output.rows)
            .left_out(output.left_out)
            .column("Start (ns)", |row| row.start_ns)
            .column("Duration (ns)", |row| row.duration_ns)
            .column("CorrId", |row| row.correlation)
            .column("GrdX", |row| row.kernel.map(|shape| shape.grid[0]))
            .column("GrdY", |row| row.kernel.map(|shape| shape.grid[1]))
            .column("GrdZ", |row| row.kernel.map(|shape| shape.grid[2]))
            .column("BlkX", |row| row.kernel.map(|shape| shape.block[0]))
            .column("BlkY", |row| row.kernel.map(|shape| shape.block[1]))
            .column("BlkZ", |row| row.kernel.map(|shape| shape.block[2]))
            .column("Reg/Trd", |row| row.kernel.map(|shape| shape.registers))
            .number("StcSMem (MB)", 3, |row| {
                row.kernel.map(|shape| sized(shape.shared_static_bytes))
            })
            .number("DymSMem (MB)", 3, |row| {
                row.kernel.map(|shape| sized(shape.shared_dynamic_bytes))
            })
            .number("Bytes (MB)", 3, |row| row.bytes.map(sized))
            .number("Throughput (MB/s)", 3, |row| row.bytes_per_second.map(megabytes))
            .column("SrcMemKd", |row| row.source_memory)
            .column("DstMemKd", |row| row.destination_memory)
            .column("Device", |row| row.device.as_deref())
            .column("Ctx", |row| row.context)
            .with(
                not_kept("GreenCtx", "Green contexts are not kept; always empty."),
                |_| Cell::Nothing,
            )
            .column("Strm", |row| row.stream)
            .column("Name", |row| row.name.as_str())
            .at(|row| TimelineLocation::lasting(row.start_ns, row.duration_ns, Some(row.row)));
        Ok(Page::of_table(Self::NAME, Self::ABOUT, &output.not_captured, table))
    }
}

/// The head of a column that nsys has and a timeline does not keep.
fn not_kept(title: &str, about: &str) -> TableColumn {
    TableColumn {
        title: title.to_owned(),
        about: about.to_owned(),
        ..TableColumn::default()
    }
}

impl Analysis for CudaApiTrace {
    const NAME: &'static str = "cuda_api_trace";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "Calls of the CUDA runtime and driver in the order of their starts, as nsys stats has them.";
    const GROUP: crate::Group = crate::Group::NsysTables;
    const NEEDS: Needs = Needs::of(&[Category::CudaApi])
        .columns(&[ColumnId::ReturnValue])
        .names()
        .rows()
        .correlations();
    type Params = NsysParams;
    type Output = NsysApiTrace;

    fn run(inputs: &Inputs<'_>, params: &NsysParams) -> Result<NsysApiTrace, AnalysisError> {
        let timeline = inputs.first();
        let mut output = NsysApiTrace {
            not_captured: NotCaptured::of_parts(&timeline.capture, &[(&[Category::CudaApi], "CUDA calls")]),
            ..NsysApiTrace::default()
        };
        let Some(calls) = timeline.capture.events.get(&Category::CudaApi) else {
            return Ok(output);
        };
        let results = says_results(timeline, calls);
        if !results {
            let reason = "the source does not say what calls returned";
            output.not_captured.push(NotCaptured::new("results of calls", reason));
        }
        let returned = calls.column(ColumnId::ReturnValue);
        let names: Vec<Option<String>> = timeline.capture.rows.iter().map(thread_name).collect();
        let row = |at: usize| {
            let row_number = *calls.row.get(at)?;
            let row = timeline.row(row_number)?;
            Some(NsysApiTraceRow {
                start_ns: *calls.start_ns.get(at)?,
                duration_ns: *calls.duration_ns.get(at)?,
                name: calls.name_of(at).to_owned(),
                result: results.then(|| returned.and_then(|values| values.get(at)).unwrap_or(0)),
                correlation: calls.correlation.get(at).copied().and_then(known),
                process: row.process,
                thread: row.thread,
                thread_name: names.get(row_number.index()).cloned().flatten(),
                row: row_number,
            })
        };
        let shown = calls.len().min(index(params.limit));
        output.rows = (0..shown).filter_map(row).collect();
        output.left_out = count(calls.len() - shown);
        Ok(output)
    }

    fn page(output: &NsysApiTrace) -> Result<Page, AnalysisError> {
        let priority = not_kept("T-Pri", "Priorities of threads are not kept; always empty.");
        let table = Table::of("", &output.rows)
            .left_out(output.left_out)
            .column("Start (ns)", |row| row.start_ns)
            .column("Duration (ns)", |row| row.duration_ns)
            .column("Name", |row| row.name.as_str())
            .column("Result", |row| row.result)
            .column("CorrID", |row| row.correlation)
            .column("Pid", |row| row.process)
            .column("Tid", |row| row.thread)
            .with(priority, |_| Cell::Nothing)
            .column("Thread Name", |row| row.thread_name.as_deref())
            .at(|row| TimelineLocation::lasting(row.start_ns, row.duration_ns, Some(row.row)));
        Ok(Page::of_table(Self::NAME, Self::ABOUT, &output.not_captured, table))
    }
}
