//! How much work a launch does per byte and per second, and how much is possible: the roofline
//! model.
//!
//! Peaks and traffic are those that the profiler measured in the same replay, at the clocks it ran
//! at. The metrics are those of the sections that NVIDIA ships (`SpeedOfLight_RooflineChart`,
//! `SpeedOfLight_Hierarchical*RooflineChart`).

mod launch_metrics;

use flopwatch_model::KernelProfile;
use schemars::JsonSchema;
use serde::Serialize;

use launch_metrics::{LaunchMetrics, kind_of, level_of};
use strum::VariantArray;

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema, VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum WorkKind {
    /// Floating-point operations of double precision.
    Fp64,
    /// Those of single precision.
    Fp32,
    /// Those of half precision, without tensor cores.
    Fp16,
    /// Floating-point operations of tensor cores.
    Tensor,
    /// Operations on whole numbers.
    Integer,
    /// Instructions of warps, of whatever kind.
    Instructions,
}

impl WorkKind {
    /// Every kind.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// As people read it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Fp64 => "FP64",
            Self::Fp32 => "FP32",
            Self::Fp16 => "FP16",
            Self::Tensor => "Tensor cores",
            Self::Integer => "Integer",
            Self::Instructions => "Warp instructions",
        }
    }

    /// Whether it is counted in floating-point operations.
    pub const fn is_floating(self) -> bool {
        matches!(self, Self::Fp64 | Self::Fp32 | Self::Fp16 | Self::Tensor)
    }
}

/// A memory that work gets its data from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryLevel {
    /// The device's memory.
    Dram,
    /// The second cache.
    L2,
    /// The first cache.
    L1,
}

impl MemoryLevel {
    /// Every level.
    pub const ALL: [Self; 3] = [Self::Dram, Self::L2, Self::L1];

    /// As people read it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Dram => "DRAM",
            Self::L2 => "L2",
            Self::L1 => "L1",
        }
    }
}

/// What bounds work of an intensity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The units that do the work.
    Compute,
    /// The rate at which memory moves bytes.
    Memory,
}

/// Most work per second at an intensity: the lower of the two roofs.
pub fn attainable(peak: f64, bandwidth: f64, intensity: f64) -> f64 {
    peak.min(intensity * bandwidth)
}

/// The intensity from which on the memory no longer bounds.
pub fn ridge(peak: f64, bandwidth: f64) -> f64 {
    peak / bandwidth
}

/// Work that a launch did, and at most can do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Of which kind.
    pub kind: WorkKind,
    /// How much in a second.
    pub per_second: f64,
    /// How much is possible in a second.
    pub peak_per_second: f64,
    /// Source of the formula: the report or Flopwatch.
    pub defined_by: DefinedBy,
}

/// Whose formulas a figure is made by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DefinedBy {
    /// The report's: a chart of the sections that it was made with.
    Report,
    /// Ours, of the metrics that NVIDIA's sections of 2022 and later are made of.
    Flopwatch,
}

/// Bytes that a launch moved, and at most can move.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traffic {
    /// Of which memory.
    pub level: MemoryLevel,
    /// Bytes in a second.
    pub bytes_per_second: f64,
    /// Bytes that are possible in a second.
    pub peak_bytes_per_second: f64,
    /// Source of the formula: the report or Flopwatch.
    pub defined_by: DefinedBy,
}

/// A launch below its roofs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LaunchRoofline {
    /// Its work, by kind; kinds that were not measured are not there.
    pub work: Vec<Work>,
    /// Its traffic, by memory; likewise.
    pub traffic: Vec<Traffic>,
}

/// Where a launch stands below the roofs of one kind of work and one memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RooflinePoint {
    /// Work per byte.
    pub intensity: f64,
    /// Most work per second at that intensity.
    pub attainable_per_second: f64,
    /// The part of it that was reached.
    pub share: f64,
    /// What bounds it.
    pub bound: Bound,
}

impl RooflinePoint {
    /// Of `work` with `traffic`; `None` without work or without bytes, where there is no intensity.
    pub fn of(work: &Work, traffic: &Traffic) -> Option<Self> {
        let is_some = |value: f64| value.is_finite() && value > 0.0;
        if ![
            work.per_second,
            work.peak_per_second,
            traffic.bytes_per_second,
            traffic.peak_bytes_per_second,
        ]
        .into_iter()
        .all(is_some)
        {
            return None;
        }
        let intensity = work.per_second / traffic.bytes_per_second;
        let attainable_per_second = attainable(work.peak_per_second, traffic.peak_bytes_per_second, intensity);
        let is_memory = intensity < ridge(work.peak_per_second, traffic.peak_bytes_per_second);
        Some(Self {
            intensity,
            attainable_per_second,
            share: work.per_second / attainable_per_second,
            bound: if is_memory { Bound::Memory } else { Bound::Compute },
        })
    }
}

impl LaunchRoofline {
    /// Of a launch: by the charts that its report defines, and else by ours. Without a peak that
    /// was measured there is no roof, and what was done below it is left out.
    pub fn of(profile: &KernelProfile) -> Self {
        let measured = LaunchMetrics(&profile.metrics);
        let charts = &profile.rooflines;
        let has_roof = |(_, peak): &(f64, f64)| peak.is_finite() && *peak > 0.0;
        let by = |found: Option<(f64, f64)>, ours: Option<(f64, f64)>| {
            let reports = found.filter(has_roof);
            let reports = reports.map(|(done, peak)| (done, peak, DefinedBy::Report));
            let ours = ours.filter(has_roof);
            reports.or_else(|| ours.map(|(done, peak)| (done, peak, DefinedBy::Flopwatch)))
        };
        let work = WorkKind::ALL.iter().copied().filter_map(|kind| {
            let found = measured.defined(charts, |side| kind_of(side) == Some(kind), |side| &side.work);
            let (per_second, peak_per_second, defined_by) = by(found, measured.work(kind))?;
            Some(Work {
                kind,
                per_second,
                peak_per_second,
                defined_by,
            })
        });
        let traffic = MemoryLevel::ALL.into_iter().filter_map(|level| {
            let found = measured.defined(charts, |side| level_of(side) == Some(level), |side| &side.traffic);
            let (bytes_per_second, peak_bytes_per_second, defined_by) = by(found, measured.traffic(level))?;
            Some(Traffic {
                level,
                bytes_per_second,
                peak_bytes_per_second,
                defined_by,
            })
        });
        Self {
            work: work.collect(),
            traffic: traffic.collect(),
        }
    }

    /// Whether the launch can be drawn: work of some kind and traffic of some memory were measured.
    pub fn is_whole(&self) -> bool {
        !self.work.is_empty() && !self.traffic.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use flopwatch_analysis_testing::metrics;
    use flopwatch_model::{Metric, RooflineChart, RooflineSide, RooflineValue};
    use proptest::prelude::*;

    use super::*;

    /// Of metrics of a report that defines no charts.
    fn roofline_of(metrics: &BTreeMap<String, Metric>) -> LaunchRoofline {
        LaunchRoofline::of(&KernelProfile {
            metrics: metrics.clone(),
            ..KernelProfile::default()
        })
    }

    #[test]
    fn formulas_of_the_report_come_before_ours() {
        let per_cycle = |metrics: &[&str], clock: &str| RooflineValue::PerCycle {
            metrics: metrics.iter().map(|name| (*name).to_owned()).collect(),
            clock: clock.to_owned(),
        };
        let side = |work, traffic| RooflineSide {
            label: String::new(),
            work,
            traffic,
        };
        let profile = KernelProfile {
            metrics: metrics(&[
                ("sm__cycles_elapsed.avg.per_second", 1e9, "hz"),
                ("derived__sm__op_ffma_pred_on_x2", 200.0, "inst"),
                ("derived__smsp__op_ffma_pred_on_x2", 30.0, "inst"),
                ("smsp__op_fadd_pred_on.sum.per_cycle_elapsed", 20.0, "inst/cycle"),
                ("dram__bytes.sum.per_second", 5.0, "Gbyte/second"),
                ("dram__bytes.sum.peak_sustained", 100.0, "byte/cycle"),
                ("dram__cycles_elapsed.avg.per_second", 2e9, "hz"),
            ]),
            rooflines: vec![RooflineChart {
                section: "SpeedOfLight_RooflineChart".to_owned(),
                roofs: vec![side(
                    per_cycle(
                        &["derived__sm__op_ffma_pred_on_x2"],
                        "sm__cycles_elapsed.avg.per_second",
                    ),
                    per_cycle(
                        &["dram__bytes.sum.peak_sustained"],
                        "dram__cycles_elapsed.avg.per_second",
                    ),
                )],
                points: vec![side(
                    per_cycle(
                        &[
                            "smsp__op_fadd_pred_on.sum.per_cycle_elapsed",
                            "derived__smsp__op_ffma_pred_on_x2",
                        ],
                        "sm__cycles_elapsed.avg.per_second",
                    ),
                    RooflineValue::Metric("dram__bytes.sum.per_second".to_owned()),
                )],
            }],
            ..KernelProfile::default()
        };
        let found = LaunchRoofline::of(&profile);
        let work = Work {
            kind: WorkKind::Fp32,
            per_second: 50e9,
            peak_per_second: 200e9,
            defined_by: DefinedBy::Report,
        };
        let traffic = Traffic {
            level: MemoryLevel::Dram,
            bytes_per_second: 5e9,
            peak_bytes_per_second: 200e9,
            defined_by: DefinedBy::Report,
        };
        assert_eq!((found.work, found.traffic), (vec![work], vec![traffic]));
    }

    #[test]
    fn a_launch_is_counted_as_nvidias_section_counts() {
        let launch = metrics(&[
            (
                "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed",
                10.0,
                "inst/cycle",
            ),
            (
                "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed",
                20.0,
                "inst/cycle",
            ),
            (
                "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed",
                30.0,
                "inst/cycle",
            ),
            (
                "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained",
                1000.0,
                "inst/cycle",
            ),
            ("smsp__cycles_elapsed.avg.per_second", 1e9, "hz"),
            ("sm__cycles_elapsed.avg.per_second", 1e9, "hz"),
            ("dram__bytes.sum.per_second", 90.0, "Gbyte/second"),
            ("dram__bytes.sum.peak_sustained", 100.0, "byte/cycle"),
            ("dram__cycles_elapsed.avg.per_second", 2e9, "hz"),
        ]);
        let roofline = roofline_of(&launch);
        let [work] = roofline.work.as_slice() else {
            panic!("{roofline:?}")
        };
        let [traffic] = roofline.traffic.as_slice() else {
            panic!("{roofline:?}")
        };
        assert_eq!(
            (work.kind, work.per_second, work.peak_per_second),
            (WorkKind::Fp32, 90e9, 2e12)
        );
        assert_eq!((traffic.bytes_per_second, traffic.peak_bytes_per_second), (90e9, 200e9));
        // One operation per byte; the ridge is at ten, so that the memory bounds: 200 GFLOP/s at
        // most, of which 45 %.
        let standing = RooflinePoint::of(work, traffic).unwrap();
        assert_eq!(
            (standing.intensity, standing.attainable_per_second, standing.bound),
            (1.0, 200e9, Bound::Memory)
        );
        assert!((standing.share - 0.45).abs() < 1e-12);
        let mut incomplete = launch.clone();
        incomplete.remove("dram__cycles_elapsed.avg.per_second");
        assert!(roofline_of(&incomplete).traffic.is_empty(), "not measured is not zero");
    }

    #[test]
    fn tensor_cores_are_counted_by_type_where_the_report_does() {
        let launch = metrics(&[
            ("sm__cycles_elapsed.avg.per_second", 1e9, "hz"),
            ("sm__ops_path_tensor_src_fp16_dst_fp32.sum.per_cycle_elapsed", 500.0, ""),
            ("sm__ops_path_tensor_src_fp16_dst_fp32.sum.peak_sustained", 4096.0, ""),
            ("sm__ops_path_tensor_src_bf16_dst_fp32.sum.per_cycle_elapsed", 0.0, ""),
            ("sm__ops_path_tensor_src_bf16_dst_fp32.sum.peak_sustained", 4096.0, ""),
            ("sm__ops_path_tensor_src_int8.sum.per_cycle_elapsed", 9000.0, ""),
            ("sm__ops_path_tensor_src_int8.sum.peak_sustained", 16384.0, ""),
        ]);
        let expected = Work {
            kind: WorkKind::Tensor,
            per_second: 500e9,
            peak_per_second: 4096e9,
            defined_by: DefinedBy::Flopwatch,
        };
        assert_eq!(roofline_of(&launch).work, [expected]);
    }

    #[test]
    fn a_peak_that_was_not_measured_is_no_roof() {
        let mut launch = metrics(&[
            ("sm__cycles_elapsed.avg.per_second", 1e9, "hz"),
            ("sm__ops_path_tensor_src_fp16_dst_fp32.sum.per_cycle_elapsed", 500.0, ""),
            ("sm__ops_path_tensor_src_fp16_dst_fp32.sum.peak_sustained", 4096.0, ""),
        ]);
        assert_eq!(roofline_of(&launch).work.len(), 1);
        for peak in [0.0, f64::NAN, f64::INFINITY] {
            let name = "sm__ops_path_tensor_src_fp16_dst_fp32.sum.peak_sustained";
            launch.extend(metrics(&[(name, peak, "")]));
            assert_eq!(roofline_of(&launch).work, [], "{peak}");
        }
    }

    #[test]
    fn without_work_or_bytes_there_is_no_intensity() {
        let work = |per_second| Work {
            kind: WorkKind::Fp32,
            per_second,
            peak_per_second: 1e12,
            defined_by: DefinedBy::Flopwatch,
        };
        let traffic = |bytes_per_second| Traffic {
            level: MemoryLevel::Dram,
            bytes_per_second,
            peak_bytes_per_second: 1e11,
            defined_by: DefinedBy::Flopwatch,
        };
        assert_eq!(RooflinePoint::of(&work(0.0), &traffic(1e9)), None);
        assert_eq!(RooflinePoint::of(&work(1e9), &traffic(0.0)), None);
        assert_eq!(RooflinePoint::of(&work(f64::NAN), &traffic(1e9)), None);
    }

    proptest! {
        #[test]
        fn roofs_meet_at_the_ridge_and_nothing_is_above_them(peak in 1e9..1e15, bandwidth in 1e9..1e14, intensity in 1e-6..1e6_f64) {
            let at_ridge = attainable(peak, bandwidth, ridge(peak, bandwidth));
            prop_assert!((at_ridge / peak - 1.0).abs() < 1e-12);
            let max = attainable(peak, bandwidth, intensity);
            prop_assert!(max <= peak && max <= intensity * bandwidth);
            let moved = Traffic { level: MemoryLevel::Dram, bytes_per_second: max / intensity, peak_bytes_per_second: bandwidth, defined_by: DefinedBy::Flopwatch };
            let work = Work { kind: WorkKind::Fp32, per_second: max, peak_per_second: peak, defined_by: DefinedBy::Flopwatch };
            let standing = RooflinePoint::of(&work, &moved).unwrap();
            prop_assert!((standing.share - 1.0).abs() < 1e-9, "{standing:?}");
        }
    }
}
