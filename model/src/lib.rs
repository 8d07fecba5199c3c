//! The columnar event model that every reader fills and every analysis and writer reads.
//!
//! A [`Capture`] is what a reader makes of a file. The transform of `flopwatch-trace` turns it into
//! a [`Timeline`]: events in canonical order, with lanes, levels of detail and figures. The parts:
//!
//! - [`Events`], one per [`Category`]: columns of start, length, row, name and correlation id, and
//!   optional columns by [`ColumnId`]. Names are stored once and referred to by [`NameId`].
//! - [`Row`]: a thread or a stream, to which events refer by [`RowId`].
//! - [`CounterSeries`], [`Allocation`], [`KernelProfile`], [`StackProfile`], [`CallStacks`],
//!   [`Program`]: data beside the events.
//! - [`Losses`]: what of the source is missing or was changed, by reason. A reader leaves nothing
//!   out without counting it there.
//! - [`Needs`]: the parts that an analysis reads, so that a caller need not load the others.
//! - [`hlo`] parses XLA's modules, [`wire`] reads protocol buffers.
//!
//! Invariants:
//!
//! - Times are integer nanoseconds since the session's start, sizes are bytes.
//! - All columns of a category have the same length; an index refers to an element of its list.
//!   [`Capture::check`] holds what a reader made against that.
//! - Kinds of losses that are counted apart are bounded (256), a parsed HLO module takes at most
//!   512 MiB.
//! - The same events in any input order give an equal timeline.
//! - The crate does no I/O.
//!
//! ```
//! use flopwatch_model::{Capture, LossReason};
//!
//! let mut capture = Capture::default();
//! capture.losses.add(LossReason::Dropped, "buffers", 2);
//! assert_eq!(capture.losses.list()[0].count, 2);
//! ```

mod about;
mod allocation;
mod call_stacks;
mod category;
mod check;
mod counter;
mod event_id;
mod events;
mod figures;
mod groups;
pub mod hlo;
mod id;
mod kernel_profile;
mod lod;
mod losses;
mod memory_kind;
mod merge;
mod mig;
mod name_id;
mod needs;
mod parents;
mod program;
mod row;
mod row_id;
mod row_major;
pub mod spreadsheet;
mod stack_profile;
mod totals;
pub mod wire;

pub use about::TraceAbout;
pub use allocation::Allocation;
pub use call_stacks::{CallFrame, CallStack, CallStacks};
pub use category::{Category, ColumnId, Width};
pub use check::CheckError;
pub use counter::CounterSeries;
pub use event_id::{EventId, EventLinks};
pub use events::{Column, Event, Events, NameDetail, Values, count, index};
pub use figures::{Figures, approximate, figures_by_key, listed, middles, ratio, whole};
pub use groups::Groups;
pub use kernel_profile::{
    FocusMetric, Instances, InstructionText, KernelCode, KernelFunction, KernelProfile, LineStart, Metric, MetricValue,
    OpenRange, PtxStart, RooflineChart, RooflineSide, RooflineValue, RuleKind, RuleResult, Scope, SourceFile,
    SourceLocation, Speedup, ValueList,
};
pub use lod::{Lod, LodLevel};
pub use losses::{Loss, LossReason, Losses};
pub use memory_kind::MemoryKind;
pub use merge::MergeError;
pub use mig::MigInstance;
pub use name_id::NameId;
pub use needs::{Needs, Selection};
pub use program::Program;
pub use row::{Row, Track};
pub use row_id::RowId;
pub use row_major::RowMajor;
pub use stack_profile::{SampleKind, StackFrame, StackLabel, StackProfile, StackSample};
pub use totals::Totals;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Where a capture came from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Source {
    /// Name of the profiler, e.g. `NVIDIA Nsight Systems`.
    pub tool: String,
    /// Version of the tool that wrote the file that was read, e.g. `2022.4.2.1`.
    pub tool_version: String,
    /// Version of that file's schema, e.g. `3.0.0`.
    pub schema_version: String,
    /// What the profiler was asked to record, in the profiler's own closed set of words (`Cuda`,
    /// `NvtxEvents`, ...); empty where the file does not record it.
    pub capture_options: Vec<String>,
}

/// A GPU that events refer to. A figure that the source does not give is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// The ordinal that events carry.
    pub id: u32,
    /// Product name.
    pub name: String,
    /// Compute capability, major and minor.
    pub compute_capability: Option<(u32, u32)>,
    /// Streaming multiprocessors.
    pub multiprocessors: Option<u32>,
    /// Total memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Theoretical memory bandwidth in bytes per second.
    pub peak_bandwidth: Option<u64>,
    /// Peak floating-point operations per second by type of number (`fp32`, `fp64`, ...; `any`
    /// where the source names no type).
    pub peak_flops: BTreeMap<String, u64>,
    /// Where these figures come from, e.g. `TARGET_INFO_GPU`.
    pub figures_from: String,
    /// Which part of a GPU the device is, where it is a MIG instance; `None` where it is none, or
    /// the source does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mig: Option<MigInstance>,
}

/// What a reader found: events as the source holds them, in any order, and what is known beside
/// them.
///
/// The caller may add to it before the transform turns it into a [`Timeline`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Capture {
    /// Profiler that made the capture, and versions of the tool and of its file.
    pub source: Source,
    /// The session's start in ns since the Unix epoch, where the source records it. Every
    /// `start_ns` and `t_ns` of this capture counts from here, so a caller aligns its own samples
    /// by subtracting this.
    pub session_start_utc_ns: Option<u64>,
    /// Length of the capture window in ns; at least up to the end of the last event.
    pub duration_ns: u64,
    /// Events of each category that holds any.
    pub events: BTreeMap<Category, Events>,
    /// Categories that were recorded, with or without events. One that is missing here was not
    /// captured.
    pub captured: BTreeSet<Category>,
    /// What each row is; events refer to it by its [`RowId`].
    pub rows: Vec<Row>,
    /// GPUs that events refer to.
    pub devices: Vec<Device>,
    /// Sampled series beside the events: GPU metrics, NVML, memory in use.
    pub counters: Vec<CounterSeries>,
    /// What allocators of memory did, in the order of time after the transform.
    pub allocations: Vec<Allocation>,
    /// Compiled programs that events belong to, sorted after the transform.
    pub programs: Vec<Program>,
    /// Counters per profiled kernel launch, of a source that has no timeline.
    pub profiles: Vec<KernelProfile>,
    /// Samples by stack without a time, of a source that has no timeline, such as memory by who
    /// asked for it.
    pub stacks: Option<StackProfile>,
    /// Stacks of calls that samples of the CPU refer to, in an order of their own after the
    /// transform.
    pub call_stacks: CallStacks,
    /// Everything of the source that did not make it into `events` unchanged.
    pub losses: Losses,
    /// Secrets that were replaced in strings.
    pub redactions: u64,
}

impl Capture {
    /// Adds series that the caller sampled, e.g. from NVML. Their times count from
    /// [`Capture::session_start_utc_ns`].
    pub fn add_counters(&mut self, series: Vec<CounterSeries>) {
        self.counters.extend(series);
    }

    /// Says that `categories` were recorded, for a caller that knows what it asked the profiler
    /// for. A lazy export leaves out tables without rows, so that a file alone cannot always tell
    /// "nothing happened" from "not captured". Where graphs were recorded as a whole, nothing of
    /// other GPU work may be in them: what is not there is then not known to be none.
    pub fn declare_captured(&mut self, categories: impl IntoIterator<Item = Category>) {
        let hidden = self.events.contains_key(&Category::CudaGraph);
        let known = categories.into_iter();
        self.captured
            .extend(known.filter(|category| !hidden || !category.is_gpu_work()));
    }
}

/// A capture in its published form: events sorted by start, names sorted and unique, rows in order,
/// lanes assigned.
///
/// The same events in any input order give an equal timeline, where those of one category, row,
/// start and length keep theirs: of operators of one time the source has the outer one first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timeline {
    /// The session's identifier, as the caller named it.
    pub session_id: String,
    /// The capture, in canonical order.
    pub capture: Capture,
    /// Levels of detail of each category that holds events.
    pub lod: BTreeMap<Category, Lod>,
    /// Figures of the lengths in ns per name, of each category that holds events: one per element
    /// of [`Events::names`].
    pub figures: BTreeMap<Category, Vec<Figures>>,
}

impl Timeline {
    /// Events of all categories together.
    pub fn total_events(&self) -> u64 {
        self.capture.events.values().map(Events::count).sum()
    }

    /// The row of that id.
    pub fn row(&self, row: RowId) -> Option<&Row> {
        self.capture.rows.get(row.index())
    }
}
