//! The metrics of a launch as work and traffic: by the formulas of its report, and by ours.

use std::collections::BTreeMap;

use flopwatch_model::{Metric, RooflineChart, RooflineSide, RooflineValue};

use super::super::kernel_figures::{cycles_per_second, nanoseconds, per_cycle, per_second};
use super::{MemoryLevel, WorkKind};

/// Metrics of a launch by name, each in the unit that is asked for.
pub(super) struct LaunchMetrics<'a>(pub(super) &'a BTreeMap<String, Metric>);

impl LaunchMetrics<'_> {
    fn find(&self, name: &str, scale: fn(&str) -> Option<f64>) -> Option<f64> {
        let metric = self.0.get(name)?;
        Some(metric.value.number()? * scale(&metric.unit)?)
    }

    /// What a formula of the report gives; `scale` is of a metric that needs no clock.
    fn value(&self, value: &RooflineValue, scale: fn(&str) -> Option<f64>) -> Option<f64> {
        match value {
            RooflineValue::Constant(number) => Some(*number),
            RooflineValue::Metric(name) => self.find(name, scale),
            RooflineValue::PerCycle { metrics, clock } => {
                let each: Option<Vec<f64>> = metrics.iter().map(|name| self.find(name, per_cycle)).collect();
                Some(each?.into_iter().sum::<f64>() * self.find(clock, cycles_per_second)?)
            }
        }
    }

    /// Done and possible by the report's own charts, of the sides that `is_meant` takes.
    pub(super) fn defined(
        &self,
        charts: &[RooflineChart],
        is_meant: impl Fn(&RooflineSide) -> bool,
        of: fn(&RooflineSide) -> &RooflineValue,
    ) -> Option<(f64, f64)> {
        charts.iter().find_map(|chart| {
            let value = |sides: &[RooflineSide]| {
                let mut meant = sides.iter().filter(|side| is_meant(side));
                meant.find_map(|side| self.value(of(side), per_second))
            };
            Some((value(&chart.points)?, value(&chart.roofs)?))
        })
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.value.number()
    }

    fn clock(&self, names: &[&str]) -> Option<f64> {
        names.iter().find_map(|name| self.find(name, cycles_per_second))
    }

    /// Work of pipes whose instructions are counted per thread: `(letter, what each is worth)`.
    fn threads(&self, letter: &str) -> Option<(f64, f64)> {
        let each = |operation: &str| {
            let name = format!("smsp__sass_thread_inst_executed_op_{letter}{operation}_pred_on.sum.per_cycle_elapsed");
            self.find(&name, per_cycle)
        };
        let peak = format!("sm__sass_thread_inst_executed_op_{letter}fma_pred_on.sum.peak_sustained");
        let done = each("add")? + each("mul")? + 2.0 * each("fma")?;
        Some((
            done * self.clock(&["smsp__cycles_elapsed.avg.per_second"])?,
            2.0 * self.find(&peak, per_cycle)? * self.clock(&["sm__cycles_elapsed.avg.per_second"])?,
        ))
    }

    /// One instruction of the tensor pipe does 512 operations, as NVIDIA's section of 2022 has it.
    /// Newer sections count operations by type.
    fn tensor(&self) -> Option<(f64, f64)> {
        let done = "smsp__inst_executed_pipe_tensor.sum.per_cycle_elapsed";
        let peak = "sm__inst_executed_pipe_tensor.sum.peak_sustained";
        let by_pipe = || {
            Some((
                512.0 * self.find(done, per_cycle)? * self.clock(&["smsp__cycles_elapsed.avg.per_second"])?,
                512.0 * self.find(peak, per_cycle)? * self.clock(&["sm__cycles_elapsed.avg.per_second"])?,
            ))
        };
        by_pipe().or_else(|| self.tensor_by_type())
    }

    /// The type of which most was done; of its own peak, since types differ in theirs.
    fn tensor_by_type(&self) -> Option<(f64, f64)> {
        let clock = self.clock(&["sm__cycles_elapsed.avg.per_second"])?;
        let types = self.0.keys().filter_map(|name| {
            let of_type = name.strip_suffix(".sum.peak_sustained")?;
            if !of_type.starts_with("sm__ops_path_tensor_") || of_type.contains("_src_int") {
                return None;
            }
            let done = self.find(&format!("{of_type}.sum.per_cycle_elapsed"), per_cycle)?;
            Some((done * clock, self.find(name, per_cycle)? * clock))
        });
        types.max_by(|a, b| a.0.total_cmp(&b.0))
    }

    fn integer(&self) -> Option<(f64, f64)> {
        let done = "smsp__sass_thread_inst_executed_op_integer_pred_on.sum.per_cycle_elapsed";
        let peak = "sm__sass_thread_inst_executed_op_integer_pred_on.sum.peak_sustained";
        Some((
            self.find(done, per_cycle)? * self.clock(&["smsp__cycles_elapsed.avg.per_second"])?,
            self.find(peak, per_cycle)? * self.clock(&["sm__cycles_elapsed.avg.per_second"])?,
        ))
    }

    fn instructions(&self) -> Option<(f64, f64)> {
        let seconds = self
            .find("gpu__time_duration.sum", nanoseconds)
            .filter(|ns| *ns > 0.0)?
            / 1e9;
        let each = self.number("device__attribute_max_ipc_per_multiprocessor")?;
        let multiprocessors = self.number("device__attribute_multiprocessor_count")?;
        let clocks = [
            "sm__cycles_elapsed.avg.per_second",
            "smsp__cycles_elapsed.avg.per_second",
        ];
        Some((
            self.number("smsp__inst_executed.sum")? / seconds,
            each * multiprocessors * self.clock(&clocks)?,
        ))
    }

    pub(super) fn work(&self, kind: WorkKind) -> Option<(f64, f64)> {
        match kind {
            WorkKind::Fp64 => self.threads("d"),
            WorkKind::Fp32 => self.threads("f"),
            WorkKind::Fp16 => self.threads("h"),
            WorkKind::Tensor => self.tensor(),
            WorkKind::Integer => self.integer(),
            WorkKind::Instructions => self.instructions(),
        }
    }

    /// Bytes per second: counted, and at most.
    pub(super) fn traffic(&self, level: MemoryLevel) -> Option<(f64, f64)> {
        // The counter, its clock, and bytes of one count. Newer versions count what the L1 writes
        // back, 128 bytes at a time.
        let counters: &[(&str, &str, f64)] = match level {
            MemoryLevel::Dram => &[("dram__bytes", "dram__cycles_elapsed.avg.per_second", 1.0)],
            MemoryLevel::L2 => &[
                ("lts__t_bytes", "lts__cycles_elapsed.avg.per_second", 1.0),
                (
                    "l1tex__m_xbar2l1tex_read_bytes",
                    "lts__cycles_elapsed.avg.per_second",
                    1.0,
                ),
            ],
            MemoryLevel::L1 => &[
                ("l1tex__t_bytes", "l1tex__cycles_elapsed.avg.per_second", 1.0),
                (
                    "l1tex__lsu_writeback_active_mem_lg",
                    "l1tex__cycles_elapsed.avg.per_second",
                    128.0,
                ),
            ],
        };
        counters.iter().find_map(|(counter, clock, bytes)| {
            let done = self.find(&format!("{counter}.sum.per_second"), per_second)?;
            let peak = self.find(&format!("{counter}.sum.peak_sustained"), per_cycle)?;
            Some((bytes * done, bytes * peak * self.clock(&[clock])?))
        })
    }
}

/// The kind of work that a roof or a point is of, which its metrics tell.
pub(super) fn kind_of(side: &RooflineSide) -> Option<WorkKind> {
    let metrics = side.work.metrics();
    let has = |part: &str| metrics.iter().any(|name| name.contains(part));
    match () {
        () if has("pipe_tensor") || has("path_tensor") => Some(WorkKind::Tensor),
        () if has("_op_dfma") => Some(WorkKind::Fp64),
        () if has("_op_ffma") => Some(WorkKind::Fp32),
        () if has("_op_hfma") => Some(WorkKind::Fp16),
        () => None,
    }
}

/// The memory whose bytes it counts.
pub(super) fn level_of(side: &RooflineSide) -> Option<MemoryLevel> {
    let metrics = side.traffic.metrics();
    let of = |unit: &str| {
        metrics
            .iter()
            .any(|name| name.trim_start_matches("derived__").starts_with(unit))
    };
    match () {
        () if of("dram__") => Some(MemoryLevel::Dram),
        () if of("lts__") => Some(MemoryLevel::L2),
        () if of("l1tex__") => Some(MemoryLevel::L1),
        () => None,
    }
}
