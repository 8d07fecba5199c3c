//! How many warps fit on a multiprocessor, and what limits them.

use std::collections::BTreeMap;

use flopwatch_measures::kernel_figures::Figures;
use flopwatch_measures::speed_of_light::waves;
use flopwatch_model::{Metric, MetricValue};
use schemars::JsonSchema;
use serde::Serialize;

/// How many warps a launch could keep on a multiprocessor. Shares are 0 to 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Occupancy {
    /// Warps that fit, of the most that a multiprocessor holds.
    pub theoretical: Option<f64>,
    /// Warps that were there on average, of the most that a multiprocessor holds.
    pub achieved: Option<f64>,
    /// How many blocks fit on a multiprocessor by each of its resources, the tightest first.
    pub limits: Vec<OccupancyLimit>,
    /// Registers of a thread.
    pub registers_per_thread: Option<u64>,
    /// Shared memory of a block in bytes, with what the driver takes.
    pub shared_memory_per_block_bytes: Option<u64>,
    /// How many times the grid fills the device.
    pub waves: Option<f64>,
}

/// How many blocks fit by one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OccupancyLimit {
    /// The resource: `registers`, `shared_mem`, `warps`, `blocks`, `barriers`.
    pub resource: String,
    /// Blocks per multiprocessor.
    pub blocks: u64,
    /// Whether it is what limits the launch.
    pub limits: bool,
}

impl Occupancy {
    pub(super) fn of(metrics: &BTreeMap<String, Metric>) -> Self {
        let figures = Figures::of(metrics);
        let limits = metrics.iter().filter_map(|(name, metric)| {
            let resource = match name.strip_prefix("Occupancy: Block Limit ") {
                Some("SM") => "blocks".to_owned(),
                Some(of_details) => of_details.to_lowercase().replace(' ', "_"),
                None => name.strip_prefix("launch__occupancy_limit_")?.to_owned(),
            };
            Some((resource, whole(&metric.value)?))
        });
        let mut limits: Vec<(String, u64)> = limits.collect();
        limits.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
        let least = limits.first().map_or(0, |(_, blocks)| *blocks);
        let limit = |(resource, blocks): (String, u64)| OccupancyLimit {
            resource,
            blocks,
            limits: blocks == least,
        };
        Self {
            theoretical: figures.theoretical_occupancy,
            achieved: figures.achieved_occupancy,
            limits: limits.into_iter().map(limit).collect(),
            registers_per_thread: metrics
                .get("launch__registers_per_thread")
                .and_then(|metric| whole(&metric.value)),
            shared_memory_per_block_bytes: metrics
                .get("launch__shared_mem_per_block")
                .and_then(|metric| whole(&metric.value)),
            waves: waves(metrics),
        }
    }
}

/// A count, which older reports hold as a double.
pub(super) fn whole(value: &MetricValue) -> Option<u64> {
    match value {
        MetricValue::Integer(number) => Some(*number),
        MetricValue::Number(number) if number.fract() == 0.0 && *number >= 0.0 => format!("{number}").parse().ok(),
        MetricValue::Number(_) | MetricValue::Text(_) => None,
    }
}
