//! The summary artifact of a capture, as versioned JSON: tables per name, GPU busy time, and what
//! is missing.
//!
//! [`summarise`] computes a [`Summary`] of a timeline: one [`Table`] per definition in [`TABLES`]
//! (kernels, copies, API calls, ranges, ...), each with exact [`Statistics`] per name; [`GpuBusy`]
//! per device; [`Launches`]; and the losses. `csv` and text are rendered from it.
//!
//! Readers of a summary are the status of a session, the rows of the fleet (`flopwatch-fleet`) and
//! people. None of them runs an analysis, so the crate depends on the event model and on what lays
//! texts out (`flopwatch-report`) alone. The catalogue's entry `summary` ([`NAME`]) and its page
//! are in `flopwatch-analysis`.
//!
//! Invariants: times are integer nanoseconds, sizes are bytes; fields are added without raising
//! [`VERSION`], which changes when a field changes its meaning.

mod busy;
mod launches;
mod profiled_kernels;
mod render;
mod statistics;
mod table;
mod tables;

use flopwatch_model::{Category, Events, Loss, Source, Timeline};
use flopwatch_report::Layout;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use busy::GpuBusy;
pub use launches::Launches;
pub use profiled_kernels::{ProfiledCount, duration_ns};
pub use statistics::Statistics;
pub use table::{Measure, Table, TableRow};
pub use tables::{TABLES, TableDefinition};

/// Version of the JSON. Fields are added without changing it; it changes when one changes its
/// meaning. Since 2, the events of a category that was not captured are null.
pub const VERSION: u32 = 2;

/// Name of the summary in the catalogue.
pub const NAME: &str = "summary";

/// Why a summary could not be made into JSON.
#[derive(Debug, thiserror::Error)]
#[error("the summary cannot be written as JSON: {0}")]
pub struct SummaryError(#[from] serde_json::Error);

/// What a capture holds, in tables. Times are in ns, sizes in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// [`VERSION`].
    pub version: u32,
    /// The session's identifier.
    pub session_id: String,
    /// The profiler and its versions.
    pub source: Source,
    /// Length of the capture window in ns.
    pub window_ns: u64,
    /// Length in ns from the start of the first event to the end of the last: the part of the
    /// window in which the program was seen at work. 0 without events.
    pub events_span_ns: u64,
    /// The session's start in ns since the Unix epoch, where the source records it.
    pub session_start_utc_ns: Option<u64>,
    /// Events of all categories.
    pub total_events: u64,
    /// Every category of this version, captured or not.
    pub categories: Vec<CategoryCount>,
    /// Per GPU that had work, how long it was busy.
    pub gpus: Vec<GpuBusy>,
    /// How much of the GPU work has its launching call in the capture.
    pub launches: Launches,
    /// GPU kernels by name.
    pub kernels: Table,
    /// CUDA graphs that were recorded as a whole, by graph. Their kernels are in no table.
    #[serde(default)]
    pub cuda_graphs: Table,
    /// Copies and migrations of unified memory by kind, durations.
    pub memcpy_time: Table,
    /// Copies and migrations of unified memory by kind, sizes.
    pub memcpy_size: Table,
    /// Memsets, durations.
    pub memset: Table,
    /// Memsets, sizes.
    #[serde(default)]
    pub memset_size: Table,
    /// CUDA API calls by function.
    pub cuda_api: Table,
    /// NVTX ranges by style and name.
    pub nvtx: Table,
    /// Operators of a framework on the CPU by name. They nest: a caller's time holds that of what
    /// it calls.
    #[serde(default)]
    pub operators: Table,
    /// Ranges that a framework marked by other means than NVTX, by name. They nest.
    #[serde(default)]
    pub annotations: Table,
    /// Operations of an accelerator that has no streams (TPU), by name.
    #[serde(default)]
    pub device_ops: Table,
    /// Operating system calls by function.
    pub os_runtime: Table,
    /// Launches that a kernel profiler (Nsight Compute) replayed, by kernel: durations as it
    /// measured them.
    #[serde(default)]
    pub profiled_kernels: Table,
    /// All launches that a kernel profiler replayed.
    #[serde(default)]
    pub profiled: ProfiledCount,
    /// What was dropped, truncated, skipped or is unsupported.
    pub drops: Vec<Loss>,
    /// Secrets that were replaced in names.
    pub redactions: u64,
    /// What did the heavy steps of the transform, and why that; null where the caller did not say.
    #[serde(default)]
    pub transformed_on: Option<TransformedOn>,
    /// What the window cost the program that was profiled; null where that was not looked at.
    #[serde(default)]
    pub overhead: Option<Overhead>,
    /// Processor time that the capture took beside the program's own work; null where nobody
    /// measured it.
    #[serde(default)]
    pub processor_time: Option<ProcessorTime>,
}

/// Processor time that a capture took beside the program's own work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessorTime {
    /// Of the profiler's own processes beside the program; null where it has none that are known.
    pub profiler_ms: Option<i64>,
    /// Of what imported and transformed the recording; null where it is not known of one of these.
    pub processing_ms: Option<i64>,
}

/// What a window cost the program that was profiled, by a counter of its own work. 100 basis points
/// are a percent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Overhead {
    /// Against the budget of the session: `Within`, `Exceeded`, `Inconclusive` or `Blind`.
    pub verdict: String,
    /// What the verdict rests on, as a word.
    pub reason: String,
    /// The same in a sentence.
    pub message: String,
    /// Who counted and what, such as `Recorder step`; null where nobody did.
    pub signal: Option<String>,
    /// How much longer a unit of work took in the window; negative where it took less, null where
    /// it is not known.
    pub slowdown_basis_points: Option<i32>,
    /// Lower end of the 95 % interval.
    pub low_basis_points: Option<i32>,
    /// Upper end of the 95 % interval.
    pub high_basis_points: Option<i32>,
    /// How long the program stood still while the profiler started and stopped.
    pub stall_ms: Option<i64>,
}

/// What did the heavy steps of the transform. The rest of the artifacts is the same on every
/// device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TransformedOn {
    /// Which device.
    pub device: Device,
    /// Why that one, in a sentence.
    pub reason: String,
}

/// Where the steps are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Device {
    /// A GPU.
    Gpu,
    /// The processor.
    Cpu,
}

/// Events of a category.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryCount {
    /// The category that is counted.
    pub category: Category,
    /// Whether it was recorded at all. `false` means "not captured", which is not the same as no
    /// events.
    pub captured: bool,
    /// How many; null where it was not captured.
    pub events: Option<u64>,
}

impl Summary {
    /// The text of the artifact `summary.json`.
    pub fn to_json(&self) -> Result<String, SummaryError> {
        Ok(serde_json::to_string_pretty(self)?)
    }

    /// As text for a pipe or a file, with at most `top` rows per table.
    pub fn render(&self, top: usize) -> String {
        self.render_on(top, Layout::default())
    }

    /// The same for what it is written on.
    pub fn render_on(&self, top: usize, layout: Layout) -> String {
        render::table(self, top, layout)
    }

    /// As CSV, with at most `top` rows per table: one line per row of a table, and one for a table
    /// without rows.
    pub fn to_csv(&self, top: usize) -> String {
        render::csv(self, top)
    }

    /// Every table with its field's name, in published order.
    pub fn tables(&self) -> [(&'static str, &Table); 13] {
        [
            ("kernels", &self.kernels),
            ("cuda_graphs", &self.cuda_graphs),
            ("memcpy_time", &self.memcpy_time),
            ("memcpy_size", &self.memcpy_size),
            ("memset", &self.memset),
            ("memset_size", &self.memset_size),
            ("cuda_api", &self.cuda_api),
            ("nvtx", &self.nvtx),
            ("operators", &self.operators),
            ("annotations", &self.annotations),
            ("device_ops", &self.device_ops),
            ("os_runtime", &self.os_runtime),
            ("profiled_kernels", &self.profiled_kernels),
        ]
    }
}

/// The JSON schema of the artifact (draft 2020-12), as `docs/summary.schema.json` holds it.
pub fn json_schema() -> Result<String, SummaryError> {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(Summary))?;
    text.push('\n');
    Ok(text)
}

/// Makes the summary of `timeline`.
pub fn summarise(timeline: &Timeline) -> Summary {
    let capture = &timeline.capture;
    let events_span_ns = busy::events_span(timeline);
    let categories = Category::ALL.iter().copied().map(|category| {
        let captured = capture.captured.contains(&category);
        let events = capture.events.get(&category).map_or(0, Events::count);
        CategoryCount {
            category,
            captured,
            events: captured.then_some(events),
        }
    });
    Summary {
        version: VERSION,
        session_id: timeline.session_id.clone(),
        source: capture.source.clone(),
        window_ns: capture.duration_ns,
        events_span_ns,
        session_start_utc_ns: capture.session_start_utc_ns,
        total_events: timeline.total_events(),
        categories: categories.collect(),
        gpus: busy::busy(timeline, events_span_ns),
        launches: launches::launches(timeline),
        kernels: tables::KERNELS.of(timeline),
        cuda_graphs: tables::CUDA_GRAPHS.of(timeline),
        memcpy_time: tables::MEMCPY_TIME.of(timeline),
        memcpy_size: tables::MEMCPY_SIZE.of(timeline),
        memset: tables::MEMSET.of(timeline),
        memset_size: tables::MEMSET_SIZE.of(timeline),
        cuda_api: tables::CUDA_API.of(timeline),
        nvtx: tables::NVTX.of(timeline),
        operators: tables::OPERATORS.of(timeline),
        annotations: tables::ANNOTATIONS.of(timeline),
        device_ops: tables::DEVICE_OPS.of(timeline),
        os_runtime: tables::OS_RUNTIME.of(timeline),
        profiled_kernels: profiled_kernels::table(timeline),
        profiled: ProfiledCount::of(timeline),
        drops: capture.losses.list(),
        redactions: capture.redactions,
        transformed_on: None,
        overhead: None,
        processor_time: None,
    }
}
