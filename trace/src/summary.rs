//! The summary artifact: tables per name, GPU busy time, and what is missing, as versioned JSON.

mod busy;
mod statistics;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use statistics::Statistics;
pub(crate) use statistics::approximate;

use crate::model::{Category, ColumnId, Drop, Events, Source, Timeline};

/// Version of the JSON. Fields are added without changing it; it changes when one changes its meaning.
pub const VERSION: u32 = 1;

/// Why a summary could not be made into JSON.
#[derive(Debug, thiserror::Error)]
#[error("the summary cannot be written as JSON: {0}")]
pub struct SummaryError(#[from] serde_json::Error);

/// What a capture holds, in tables.
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
    /// The session's start in ns since the Unix epoch, where the source records it.
    pub session_start_utc_ns: Option<u64>,
    /// Events of all categories.
    pub total_events: u64,
    /// Every category of this version, captured or not.
    pub categories: Vec<CategoryCount>,
    /// Per GPU, how long it was busy.
    pub gpus: Vec<GpuBusy>,
    /// How much of the GPU work has its launching call in the capture.
    pub launches: Launches,
    /// GPU kernels by name.
    pub kernels: Table,
    /// Copies by kind, durations in ns.
    pub memcpy_time: Table,
    /// Copies by kind, sizes in bytes.
    pub memcpy_size: Table,
    /// Memsets, durations in ns.
    pub memset: Table,
    /// CUDA API calls by function.
    pub cuda_api: Table,
    /// NVTX ranges by style and name.
    pub nvtx: Table,
    /// Operating system calls by function.
    pub os_runtime: Table,
    /// What was dropped, truncated, skipped or is unsupported.
    pub drops: Vec<Drop>,
    /// Secrets that were replaced in names.
    pub redactions: u64,
}

/// Events of a category.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryCount {
    /// Which.
    pub category: Category,
    /// Whether it was recorded at all. `false` means "not captured", which is not the same as no events.
    pub captured: bool,
    /// How many; 0 where it was not captured.
    pub events: u64,
}

/// How long a GPU was busy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuBusy {
    /// Ordinal of the device.
    pub device: u32,
    /// Its product name, where known.
    pub name: String,
    /// Length in ns of the union of its kernels, copies and memsets.
    pub busy_ns: u64,
    /// `busy_ns` as a share of the window, 0 to 1.
    pub busy_ratio_of_window: f64,
}

/// Coverage of the join of GPU work to launches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Launches {
    /// Kernels, copies and memsets whose call is in the capture.
    pub matched: u64,
    /// Those whose call is not.
    pub unmatched: u64,
}

/// A table, the largest total first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    /// Whether the source recorded this at all.
    pub captured: bool,
    /// Unit of the figures: `ns` or `bytes`.
    pub unit: String,
    /// One row per name.
    pub rows: Vec<TableRow>,
}

/// Figures of one name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TableRow {
    /// The name.
    pub name: String,
    /// How an NVTX range was made, `PushPop` or `StartEnd`; elsewhere absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<String>,
    /// `total` as a share of the table's sum, 0 to 1; not of the window.
    pub share_of_table: f64,
    /// The figures.
    #[serde(flatten)]
    pub statistics: Statistics,
}

impl Summary {
    /// The artifact.
    pub fn to_json(&self) -> Result<String, SummaryError> {
        Ok(serde_json::to_string_pretty(self)?)
    }

    /// As text for a terminal, with at most `top` rows per table.
    pub fn render(&self, top: usize) -> String {
        crate::render::table(self, top)
    }
}

/// Makes the summary of `timeline`.
pub fn summarise(timeline: &Timeline) -> Summary {
    let capture = &timeline.capture;
    let categories = Category::ALL.into_iter().map(|category| CategoryCount {
        category,
        captured: capture.captured.contains(&category),
        events: capture.events.get(&category).map_or(0, Events::count),
    });
    Summary {
        version: VERSION,
        session_id: timeline.session_id.clone(),
        source: capture.source.clone(),
        window_ns: capture.duration_ns,
        session_start_utc_ns: capture.session_start_utc_ns,
        total_events: timeline.total_events(),
        categories: categories.collect(),
        gpus: busy::busy(timeline),
        launches: launches(timeline),
        kernels: table(timeline, &[Category::CudaKernel], Measure::Duration),
        memcpy_time: table(timeline, &Category::MEMCPY, Measure::Duration),
        memcpy_size: table(timeline, &Category::MEMCPY, Measure::Bytes),
        memset: table(timeline, &[Category::CudaMemset], Measure::Duration),
        cuda_api: table(timeline, &[Category::CudaApi], Measure::Duration),
        nvtx: table(timeline, &[Category::NvtxRange], Measure::Duration),
        os_runtime: table(timeline, &[Category::OsRuntime], Measure::Duration),
        drops: capture.drops.list(),
        redactions: capture.redactions,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Measure {
    Duration,
    Bytes,
}

/// Groups by style (where there is one) and name.
fn table(timeline: &Timeline, categories: &[Category], measure: Measure) -> Table {
    let mut groups: BTreeMap<(Option<&str>, &str), Vec<u64>> = BTreeMap::new();
    for events in categories
        .iter()
        .filter_map(|category| timeline.capture.events.get(category))
    {
        let styles = events.column(ColumnId::RangeStyle);
        let bytes = events.column(ColumnId::Bytes);
        for (at, duration) in events.duration_ns.iter().enumerate() {
            let style = styles
                .and_then(|styles| styles.get(at))
                .map(|style| if style == 0 { "PushPop" } else { "StartEnd" });
            let value = match measure {
                Measure::Duration => *duration,
                Measure::Bytes => bytes.and_then(|bytes| bytes.get(at)).unwrap_or(0),
            };
            groups.entry((style, events.name_of(at))).or_default().push(value);
        }
    }
    let mut rows: Vec<TableRow> = Vec::with_capacity(groups.len());
    for ((style, name), values) in groups {
        let Some(statistics) = Statistics::of(values) else {
            continue;
        };
        let style = style.map(str::to_owned);
        rows.push(TableRow {
            name: name.to_owned(),
            style,
            share_of_table: 0.0,
            statistics,
        });
    }
    let sum: u128 = rows.iter().map(|row| u128::from(row.statistics.total)).sum();
    for row in &mut rows {
        let total = u128::from(row.statistics.total);
        row.share_of_table = if sum == 0 {
            0.0
        } else {
            approximate(total) / approximate(sum)
        };
    }
    // As nsys orders: the largest total, then the smallest count, then the name.
    rows.sort_by(|a, b| {
        let (x, y) = (&a.statistics, &b.statistics);
        y.total
            .cmp(&x.total)
            .then(x.calls.cmp(&y.calls))
            .then_with(|| (&a.name, &a.style).cmp(&(&b.name, &b.style)))
    });
    let captured = categories
        .iter()
        .any(|category| timeline.capture.captured.contains(category));
    let unit = if measure == Measure::Bytes { "bytes" } else { "ns" };
    Table {
        captured,
        unit: unit.to_owned(),
        rows,
    }
}

fn launches(timeline: &Timeline) -> Launches {
    let mut launches = Launches::default();
    for events in timeline.capture.events.values() {
        let Some(column) = events.column(ColumnId::Launch) else {
            continue;
        };
        for at in 0..column.len() {
            if column.get(at) == Some(u64::from(ColumnId::NO_LAUNCH)) {
                launches.unmatched += 1;
            } else {
                launches.matched += 1;
            }
        }
    }
    launches
}
