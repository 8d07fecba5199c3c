//! Figures of a launch that a kernel profiler measured, in one unit each, from its metrics.

use std::collections::BTreeMap;

use flopwatch_model::Metric;
use schemars::JsonSchema;
use serde::Serialize;

/// Figures of a launch; null is what was not measured. Shares are 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Figures {
    /// How long it took, alone on the GPU, in ns.
    pub duration_ns: Option<f64>,
    /// Traffic of the device's memory.
    pub bandwidth_bytes_per_second: Option<f64>,
    /// That against its peak.
    pub bandwidth_share: Option<f64>,
    /// Single precision, as the roofline counts: an addition or multiplication is one, a fused one
    /// two.
    pub flop_per_second: Option<f64>,
    /// That against its peak.
    pub flop_share: Option<f64>,
    /// Busiest part of the multiprocessors against its peak.
    pub compute_share: Option<f64>,
    /// Bytes that global loads asked for, of those that were moved for them.
    pub load_efficiency: Option<f64>,
    /// Likewise of global stores.
    pub store_efficiency: Option<f64>,
    /// Sectors that L1/TEX had, of those that were asked for.
    pub l1_hit_rate: Option<f64>,
    /// The same of L2.
    pub l2_hit_rate: Option<f64>,
    /// Warps that a multiprocessor can hold, of its most, by the launch's registers, shared memory
    /// and block size.
    pub theoretical_occupancy: Option<f64>,
    /// Warps that it held on average, of its most.
    pub achieved_occupancy: Option<f64>,
}

/// Names of a figure's metric: those of the raw page first, which are exact, then that of the
/// details page.
mod names {
    pub(super) const DURATION: &[&str] = &["gpu__time_duration.sum", "GPU Speed Of Light Throughput: Duration"];
    pub(super) const BANDWIDTH: &[&str] = &[
        "dram__bytes.sum.per_second",
        "Memory Workload Analysis: Memory Throughput",
    ];
    pub(super) const BANDWIDTH_SHARE: &[&str] = &[
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "GPU Speed Of Light Throughput: DRAM Throughput",
    ];
    pub(super) const COMPUTE_SHARE: &[&str] = &[
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "GPU Speed Of Light Throughput: Compute (SM) Throughput",
    ];
    pub(super) const LOAD: &[&str] = &["smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"];
    pub(super) const STORE: &[&str] = &["smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct"];
    pub(super) const L1: &[&str] = &[
        "l1tex__t_sector_hit_rate.pct",
        "Memory Workload Analysis: L1/TEX Hit Rate",
    ];
    pub(super) const L2: &[&str] = &["lts__t_sector_hit_rate.pct", "Memory Workload Analysis: L2 Hit Rate"];
    pub(super) const THEORETICAL: &[&str] = &[
        "sm__maximum_warps_per_active_cycle_pct",
        "Occupancy: Theoretical Occupancy",
    ];
    pub(super) const ACHIEVED: &[&str] = &[
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "Occupancy: Achieved Occupancy",
    ];
    pub(super) const ADDITIONS: &[&str] = &["smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed"];
    pub(super) const PRODUCTS: &[&str] = &["smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed"];
    pub(super) const FUSED: &[&str] = &["smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed"];
    pub(super) const CYCLES: &[&str] = &["smsp__cycles_elapsed.avg.per_second"];
    pub(super) const FUSED_PEAK: &[&str] = &["sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained"];
    pub(super) const CYCLES_PEAK: &[&str] = &["sm__cycles_elapsed.avg.per_second"];
}

impl Figures {
    /// Of the metrics of a launch.
    pub fn of(metrics: &BTreeMap<String, Metric>) -> Self {
        let find = |names: &[&str], scale: fn(&str) -> Option<f64>| {
            let metric = names.iter().find_map(|name| metrics.get(*name))?;
            Some(metric.value.number()? * scale(&metric.unit)?)
        };
        let each = |names| find(names, per_cycle);
        // The roofline's: instructions in a cycle, by cycles in a second.
        let done = each(names::ADDITIONS)
            .zip(each(names::PRODUCTS))
            .zip(each(names::FUSED))
            .zip(find(names::CYCLES, per_second))
            .map(|(((additions, products), fused), cycles)| (additions + products + 2.0 * fused) * cycles);
        let possible = each(names::FUSED_PEAK)
            .zip(find(names::CYCLES_PEAK, per_second))
            .map(|(fused, cycles)| 2.0 * fused * cycles);
        Self {
            duration_ns: find(names::DURATION, nanoseconds),
            bandwidth_bytes_per_second: find(names::BANDWIDTH, per_second),
            bandwidth_share: find(names::BANDWIDTH_SHARE, share),
            flop_per_second: done,
            flop_share: done
                .zip(possible)
                .filter(|(_, possible)| *possible > 0.0)
                .map(|(done, possible)| done / possible),
            compute_share: find(names::COMPUTE_SHARE, share),
            load_efficiency: find(names::LOAD, share),
            store_efficiency: find(names::STORE, share),
            l1_hit_rate: find(names::L1, share),
            l2_hit_rate: find(names::L2, share),
            theoretical_occupancy: find(names::THEORETICAL, share),
            achieved_occupancy: find(names::ACHIEVED, share),
        }
    }
}

/// What one of `unit` is as a share from 0 to 1; `None` where it is no unit of shares.
pub fn share(unit: &str) -> Option<f64> {
    (unit == "%").then_some(0.01)
}

/// Instructions, those of threads, operations or bytes in a cycle. The profiler writes such counts
/// with the unit or without.
pub(crate) fn per_cycle(unit: &str) -> Option<f64> {
    let counted = unit.strip_suffix("/cycle").unwrap_or(unit);
    if matches!(counted, "" | "1" | "inst" | "thread" | "cycle") {
        return Some(1.0);
    }
    thousands(counted.strip_suffix("byte")?)
}

pub(crate) fn nanoseconds(unit: &str) -> Option<f64> {
    match unit {
        "ns" | "nsecond" => Some(1.0),
        "us" | "usecond" => Some(1e3),
        "ms" | "msecond" => Some(1e6),
        "s" | "second" => Some(1e9),
        _ => None,
    }
}

/// Cycles in a second.
pub(crate) fn cycles_per_second(unit: &str) -> Option<f64> {
    if unit.contains("byte") {
        return None;
    }
    per_second(unit)
}

/// Bytes or cycles in a second.
pub fn per_second(unit: &str) -> Option<f64> {
    if let Some(prefix) = unit.strip_suffix("hz") {
        return thousands(prefix);
    }
    let (what, time) = unit.split_once('/')?;
    let prefix = what.strip_suffix("byte").or_else(|| what.strip_suffix("cycle"))?;
    Some(thousands(prefix)? * 1e9 / nanoseconds(time)?)
}

fn thousands(prefix: &str) -> Option<f64> {
    match prefix {
        "" => Some(1.0),
        "K" | "k" => Some(1e3),
        "M" => Some(1e6),
        "G" => Some(1e9),
        "T" => Some(1e12),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::metrics;

    use super::*;

    fn figures(list: &[(&str, f64, &str)]) -> Figures {
        Figures::of(&metrics(list))
    }

    fn is(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found / expected - 1.0).abs() < 1e-12)
    }

    #[test]
    fn pages_of_details_and_of_metrics_give_the_same_figures() {
        let details = figures(&[
            ("GPU Speed Of Light Throughput: Duration", 6.75, "us"),
            ("Memory Workload Analysis: Memory Throughput", 345.14, "Gbyte/s"),
            ("Memory Workload Analysis: L2 Hit Rate", 27.66, "%"),
        ]);
        let raw = figures(&[
            ("gpu__time_duration.sum", 6750.0, "nsecond"),
            ("dram__bytes.sum.per_second", 345.14e9, "byte/second"),
            ("lts__t_sector_hit_rate.pct", 27.66, "%"),
        ]);
        for found in [details, raw] {
            assert!(is(found.duration_ns, 6750.0), "{found:?}");
            assert!(is(found.bandwidth_bytes_per_second, 345.14e9), "{found:?}");
            assert!(is(found.l2_hit_rate, 0.2766), "{found:?}");
            assert_eq!((found.l1_hit_rate, found.flop_per_second), (None, None));
        }
    }

    #[test]
    fn operations_are_counted_as_the_roofline_does() {
        let measured = [
            (names::ADDITIONS[0], 10.0, "inst/cycle"),
            (names::PRODUCTS[0], 20.0, ""),
            (names::FUSED[0], 30.0, "inst/cycle"),
            (names::CYCLES[0], 1.5, "cycle/nsecond"),
            (names::FUSED_PEAK[0], 100.0, "inst/cycle"),
            (names::CYCLES_PEAK[0], 1.5, "Ghz"),
        ];
        let found = figures(&measured);
        assert!(is(found.flop_per_second, 90.0 * 1.5e9), "{found:?}");
        assert!(is(found.flop_share, 0.45), "{found:?}");
        // All of its parts are needed.
        assert_eq!(figures(&measured[1..]).flop_per_second, None);
    }

    #[test]
    fn a_unit_that_is_not_known_gives_no_figure() {
        let found = figures(&[
            ("gpu__time_duration.sum", 1.0, "fortnight"),
            ("lts__t_sector_hit_rate.pct", 1.0, "byte"),
            ("dram__bytes.sum.per_second", 1.0, "byte"),
        ]);
        assert_eq!(found, Figures::default());
    }
}
