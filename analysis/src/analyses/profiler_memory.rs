//! Memory over time under the names and in the units that clients of an earlier PyTorch profiling
//! suite know: `/api/profiler/memory`.
//!
//! It says again, of all GPUs together, what `memory` tells of each.

use flopwatch_measures::bins::Bins;
use flopwatch_measures::interval::Interval;
use flopwatch_measures::pool::{Allocator, Pool, highest, merge_changes};
use flopwatch_model::{Needs, Timeline, approximate};
use flopwatch_report::page::{Lines, Page, Series, Table, Tile, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::analyses::memory::without_allocations;
use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;

/// Most points; a longer capture is sampled less often.
const MAX_POINTS: u64 = 100_000;

/// Memory over time.
#[derive(Debug)]
pub(crate) struct ProfilerMemoryAnalysis;

/// Parameters of `profiler-memory`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProfilerMemoryParams {
    /// Time from one point to the next, in ms. It is longer where there would be more than 100,000
    /// points.
    #[schemars(range(min = 0.001, max = 3_600_000))]
    pub sample_interval_ms: f64,
    /// Whether there are points; without them only the peak is told.
    pub record_history: bool,
}

impl Default for ProfilerMemoryParams {
    fn default() -> Self {
        Self {
            sample_interval_ms: 1.0,
            record_history: true,
        }
    }
}

/// Memory over time: what the framework's allocator gave out of all GPUs together; where there is
/// no such allocator what the driver did, and where there is no GPU what was given out of the
/// host's memory. All figures are null where no allocations were captured.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ProfilerMemory {
    /// The memory over time: at each point the most that was given out up to the next.
    pub points: Option<Vec<ProfilerMemoryPoint>>,
    /// Most MB (of 10^6 bytes) that were given out at a time.
    pub peak_allocated_mb: Option<f64>,
    /// When that was first reached, in ms since the capture's begin.
    pub peak_time_ms: Option<f64>,
}

/// A point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ProfilerMemoryPoint {
    /// When, in ms since the capture's begin.
    pub time_ms: f64,
    /// MB (of 10^6 bytes) that were given out.
    pub allocated_mb: f64,
}

impl Analysis for ProfilerMemoryAnalysis {
    const NAME: &'static str = "profiler-memory";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "Memory over time and its peak in MB, as /api/profiler/memory has it.";
    const TITLE: &'static str = "Memory for the earlier suite";
    const GROUP: Group = Group::EarlierSuite;
    const NEEDS: Needs = Needs::NOTHING.allocations();
    type Params = ProfilerMemoryParams;
    type Output = ProfilerMemory;

    fn run(inputs: &Inputs<'_>, params: &ProfilerMemoryParams) -> Result<ProfilerMemory, AnalysisError> {
        Ok(memory(inputs.first(), params))
    }

    fn page(output: &ProfilerMemory) -> Result<Page, AnalysisError> {
        Ok(page(Self::TITLE, Self::ABOUT, output))
    }
}

fn mb(bytes: u64) -> f64 {
    approximate(bytes.into()) / 1e6
}

fn ms(ns: u64) -> f64 {
    approximate(ns.into()) / 1e6
}

/// The pools that are told of: see [`ProfilerMemory`].
fn chosen(pools: &[Pool]) -> Vec<&Pool> {
    let of_gpu =
        |allocator: Allocator| move |pool: &&Pool| pool.key.device.is_some() && pool.key.allocator == allocator;
    let framework: Vec<&Pool> = pools.iter().filter(of_gpu(Allocator::Framework)).collect();
    if !framework.is_empty() {
        return framework;
    }
    let driver: Vec<&Pool> = pools.iter().filter(of_gpu(Allocator::Driver)).collect();
    if driver.is_empty() {
        pools.iter().collect()
    } else {
        driver
    }
}

fn memory(timeline: &Timeline, params: &ProfilerMemoryParams) -> ProfilerMemory {
    let pools = Pool::all(timeline);
    if pools.is_empty() {
        return ProfilerMemory {
            points: None,
            peak_allocated_mb: None,
            peak_time_ms: None,
        };
    }
    let (before, changes) = merge_changes(&chosen(&pools));
    let (mut peak, mut peak_ns) = (before, 0);
    for change in &changes {
        if change.level_bytes > peak {
            (peak, peak_ns) = (change.level_bytes, change.t_ns);
        }
    }
    let points = || {
        let asked = std::time::Duration::try_from_secs_f64(params.sample_interval_ms / 1e3).unwrap_or_default();
        let last = changes.last().map_or(0, |change| change.t_ns);
        let end = timeline.capture.duration_ns.max(last.saturating_add(1));
        let step = u64::try_from(asked.as_nanos()).unwrap_or(u64::MAX);
        let step = step.max(end.div_ceil(MAX_POINTS)).max(1);
        let count = end.div_ceil(step);
        let bins = Bins {
            window: Interval::new(0, count.saturating_mul(step)),
            count: usize::try_from(count).unwrap_or(0),
        };
        let points = highest(before, &changes, bins)
            .into_iter()
            .map(|point| ProfilerMemoryPoint {
                time_ms: ms(point.t_ns),
                allocated_mb: mb(point.allocated_bytes),
            });
        points.collect()
    };
    ProfilerMemory {
        points: Some(if params.record_history { points() } else { Vec::new() }),
        peak_allocated_mb: Some(mb(peak)),
        peak_time_ms: Some(ms(peak_ns)),
    }
}

fn page(title: &str, about: &str, result: &ProfilerMemory) -> Page {
    let mut page = Page::new(title, about);
    let Some(points) = &result.points else {
        page.not_captured.push(without_allocations());
        return page;
    };
    page.tiles([
        Tile::figure("Peak", Unit::Bytes, result.peak_allocated_mb.map(|mb| mb * 1e6)),
        Tile::figure("Reached at", Unit::Instant, result.peak_time_ms.map(|ms| ms * 1e6)),
        Tile::new("Points", points.len()),
    ]);
    let times = points
        .iter()
        .map(|point| format!("{:.0}", point.time_ms * 1e6).parse().unwrap_or(0));
    page.lines(Lines {
        title: "Memory that was given out".to_owned(),
        unit: Unit::Bytes,
        times_ns: times.collect(),
        series: vec![Series {
            name: "given out".to_owned(),
            values: points.iter().map(|point| Some(point.allocated_mb * 1e6)).collect(),
        }],
    });
    page.table(
        Table::of("Points", points.iter().take(MAX_ROWS))
            .left_out(u64::try_from(points.len().saturating_sub(MAX_ROWS)).unwrap_or(u64::MAX))
            .column("time_ms", |point| point.time_ms)
            .column("allocated_mb", |point| point.allocated_mb),
    );
    page
}

/// Points that the page lists; all are in its chart and in JSON.
const MAX_ROWS: usize = 100;

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::{Allocation, MemoryKind};

    use super::*;

    /// Two GPUs of a framework, and what the driver gave to it.
    fn trace() -> Timeline {
        let mut trace = Trace::new();
        trace.allocation(1, 0, 1_000_000, 3_000_000, Some(5_000_000));
        trace.allocation(1, 1, 2_500_000, 1_000_000, None);
        trace.allocation(1, 0, 2_700_000, -4_000_000, Some(1_000_000));
        let mut timeline = trace.build();
        timeline.capture.duration_ns = 4_000_000;
        timeline.capture.allocations.push(Allocation {
            t_ns: 3_000_000,
            process: 1,
            device: Some(0),
            kind: Some(MemoryKind::Device),
            bytes: 90_000_000,
            ..Allocation::default()
        });
        timeline
    }

    #[test]
    fn points_and_peak_are_of_all_gpus_together() {
        let found = serde_json::to_value(memory(&trace(), &ProfilerMemoryParams::default())).unwrap();
        let expected = serde_json::json!({
            "points": [
                {"time_ms": 0.0, "allocated_mb": 2.0}, {"time_ms": 1.0, "allocated_mb": 5.0},
                {"time_ms": 2.0, "allocated_mb": 6.0}, {"time_ms": 3.0, "allocated_mb": 2.0},
            ],
            "peak_allocated_mb": 6.0, "peak_time_ms": 2.5,
        });
        assert_eq!(found, expected);
        let params = ProfilerMemoryParams {
            record_history: false,
            ..ProfilerMemoryParams::default()
        };
        assert_eq!(memory(&trace(), &params).points, Some(Vec::new()));
        let nothing = memory(&Timeline::default(), &ProfilerMemoryParams::default());
        assert_eq!((nothing.points, nothing.peak_allocated_mb), (None, None));
    }
}
