//! The tables of a summary, a definition each: what `summarise` fills, what is printed, and what
//! the viewer lists.

use flopwatch_model::{Category, Timeline};

use super::table::{Measure, Table};

/// A table of the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableDefinition {
    /// Field of [`super::Summary`] that holds it.
    pub field: &'static str,
    /// Heading for people.
    pub title: &'static str,
    /// Categories whose events its rows count; none where they count no events.
    pub categories: &'static [Category],
    /// Unit of the table's figures.
    pub unit: Measure,
}

impl TableDefinition {
    const fn new(field: &'static str, title: &'static str, categories: &'static [Category], unit: Measure) -> Self {
        Self {
            field,
            title,
            categories,
            unit,
        }
    }

    /// The table of a timeline, of the events of its categories.
    pub(super) fn of(&self, timeline: &Timeline) -> Table {
        Table::of(timeline, self.categories, self.unit)
    }
}

/// GPU kernels, whatever their grid.
pub(super) const KERNELS: TableDefinition =
    TableDefinition::new("kernels", "Kernels", &[Category::CudaKernel], Measure::Duration);
/// Graphs that were recorded as a whole.
pub(super) const CUDA_GRAPHS: TableDefinition = TableDefinition::new(
    "cuda_graphs",
    "Whole CUDA graphs",
    &[Category::CudaGraph],
    Measure::Duration,
);
pub(super) const MEMCPY_TIME: TableDefinition = TableDefinition::new(
    "memcpy_time",
    "Memory copies (time)",
    &Category::COPIES,
    Measure::Duration,
);
pub(super) const MEMCPY_SIZE: TableDefinition =
    TableDefinition::new("memcpy_size", "Memory copies (size)", &Category::COPIES, Measure::Bytes);
pub(super) const MEMSET: TableDefinition = TableDefinition::new(
    "memset",
    "Memory sets (time)",
    &[Category::CudaMemset],
    Measure::Duration,
);
pub(super) const MEMSET_SIZE: TableDefinition = TableDefinition::new(
    "memset_size",
    "Memory sets (size)",
    &[Category::CudaMemset],
    Measure::Bytes,
);
pub(super) const CUDA_API: TableDefinition =
    TableDefinition::new("cuda_api", "CUDA API calls", &[Category::CudaApi], Measure::Duration);
pub(super) const NVTX: TableDefinition =
    TableDefinition::new("nvtx", "NVTX ranges", &[Category::NvtxRange], Measure::Duration);
pub(super) const OPERATORS: TableDefinition =
    TableDefinition::new("operators", "Operators", &[Category::CpuOp], Measure::Duration);
pub(super) const ANNOTATIONS: TableDefinition =
    TableDefinition::new("annotations", "Annotations", &[Category::Annotation], Measure::Duration);
pub(super) const DEVICE_OPS: TableDefinition = TableDefinition::new(
    "device_ops",
    "Device operations",
    &[Category::DeviceOp],
    Measure::Duration,
);
pub(super) const OS_RUNTIME: TableDefinition = TableDefinition::new(
    "os_runtime",
    "OS runtime calls",
    &[Category::OsRuntime],
    Measure::Duration,
);
/// Made of profiles of launches, which are no events.
pub(super) const PROFILED_KERNELS: TableDefinition =
    TableDefinition::new("profiled_kernels", "Profiled kernels", &[], Measure::Duration);

/// Every table, in published order.
pub const TABLES: [TableDefinition; 13] = [
    KERNELS,
    CUDA_GRAPHS,
    MEMCPY_TIME,
    MEMCPY_SIZE,
    MEMSET,
    MEMSET_SIZE,
    CUDA_API,
    NVTX,
    OPERATORS,
    ANNOTATIONS,
    DEVICE_OPS,
    OS_RUNTIME,
    PROFILED_KERNELS,
];
