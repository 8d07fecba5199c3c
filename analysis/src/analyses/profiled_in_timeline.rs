//! Kernels of a timeline beside what a kernel profiler measured of the same launches.

use std::collections::HashMap;

use flopwatch_measures::kernel_figures::Figures;
use flopwatch_measures::kernel_name;
use flopwatch_measures::speed_of_light::{Limiter, SpeedOfLight};
use flopwatch_model::{Category, ColumnId, Events, KernelProfile, Needs, RowId, Timeline, approximate, count, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Cell, Page, Table, Tile, TimelineLocation, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cut::cut;
use crate::definition::{Analysis, AnalysisError, InputCount};
use crate::group::Group;
use crate::input::Inputs;

/// Joins a timeline and a report of a kernel profiler.
#[derive(Debug)]
pub struct ProfiledInTimeline;

/// Parameters of [`ProfiledInTimeline`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProfiledInTimelineParams {
    /// Only kernels whose name contains this text.
    #[schemars(length(max = 1024))]
    pub name_contains: String,
    /// Most rows of each list, those that took longest in the timeline.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u32,
}

impl Default for ProfiledInTimelineParams {
    fn default() -> Self {
        Self {
            name_contains: String::new(),
            limit: 200,
        }
    }
}

/// The result. A kernel here is a name with a grid and a block.
#[derive(Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct JoinedKernels {
    /// Kernels that are in both, those that took longest in the timeline first.
    pub kernels: Vec<JoinedKernel>,
    /// Kernels in both that are not in the result.
    pub kernels_left_out: u64,
    /// Profiled launches beside the launch of the timeline that has the same kernel and order.
    pub launches: Vec<JoinedLaunch>,
    /// Such launches that are not in the result.
    pub launches_left_out: u64,
    /// How much was joined.
    pub coverage: JoinCoverage,
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
}

/// How much was joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct JoinCoverage {
    /// Launches of kernels in the timeline.
    pub timeline_launches: u64,
    /// Those of them whose kernel was profiled.
    pub timeline_launches_joined: u64,
    /// Time of all kernels in the timeline, in ns.
    pub timeline_total_ns: u64,
    /// Time of those whose kernel was profiled, in ns.
    pub timeline_joined_ns: u64,
    /// That of the whole time, 0 to 1; null without kernels.
    pub time_ratio: Option<f64>,
    /// Launches that were profiled.
    pub profiled_launches: u64,
    /// Those of them whose kernel is in the timeline.
    pub profiled_launches_joined: u64,
}

/// By what a kernel was found in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JoinedBy {
    /// Its whole name.
    Name,
    /// Its name without parameters and templates, where the whole one is in the timeline under
    /// another form.
    ShortName,
}

/// A kernel that is in both.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JoinedKernel {
    /// Its name, as the profiler has it.
    pub name: String,
    /// Thread blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads per block in x, y and z.
    pub block: [u32; 3],
    /// By what it was joined; grid and block are equal in any case.
    pub joined_by: JoinedBy,
    /// Launches in the timeline.
    pub timeline_launches: u64,
    /// Time of the launches in the timeline, in ns.
    pub timeline_total_ns: u64,
    /// Mean time in ns of a launch in the timeline.
    pub timeline_mean_ns: f64,
    /// Launches that were profiled.
    pub profiled_launches: u64,
    /// Mean time in ns of a profiled launch, alone on the GPU.
    pub profiled_mean_ns: Option<f64>,
    /// Mean time in the timeline, of that alone.
    pub slowdown_ratio: Option<f64>,
    /// What bounds the first profiled launch.
    pub limiter: Option<Limiter>,
    /// Busiest part of the multiprocessors of the first profiled launch, 0 to 1.
    pub compute_ratio: Option<f64>,
    /// Busiest part of caches and memory of the first profiled launch, 0 to 1.
    pub memory_ratio: Option<f64>,
    /// Warps of the first profiled launch, of the most that a multiprocessor holds, 0 to 1.
    pub occupancy_ratio: Option<f64>,
}

/// A profiled launch and the launch of the timeline with the same kernel and order.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JoinedLaunch {
    /// The launch's number in the report.
    pub launch: u64,
    /// The kernel's name, as the profiler has it.
    pub name: String,
    /// Which launch of this kernel it is, counted from 0, in both.
    pub order: u64,
    /// When it started in the timeline, in ns since the session's start.
    pub start_ns: u64,
    /// How long it took in the timeline, in ns.
    pub timeline_ns: u64,
    /// Its row of the timeline.
    pub row: RowId,
    /// Which of the two captures is the timeline, counted from 0.
    pub input: u32,
    /// How long it took when it was profiled, in ns.
    pub profiled_ns: Option<f64>,
}

/// A kernel of one name, grid and block.
type Shape<'a> = (&'a str, [u32; 3], [u32; 3]);

/// Launches of the timeline by kernel, each a place among the events, by start.
type Launches<'a> = HashMap<Shape<'a>, Vec<usize>>;

const SHAPE: [ColumnId; 6] = [
    ColumnId::GridX,
    ColumnId::GridY,
    ColumnId::GridZ,
    ColumnId::BlockX,
    ColumnId::BlockY,
    ColumnId::BlockZ,
];

/// Which is the timeline and which the report, and their places among the inputs.
fn sides<'a>(first: &'a Timeline, second: &'a Timeline) -> ((&'a Timeline, u32), &'a Timeline) {
    let is_report = |timeline: &Timeline| !timeline.capture.profiles.is_empty();
    if is_report(first) && !is_report(second) {
        ((second, 1), first)
    } else {
        ((first, 0), second)
    }
}

/// Launches by whole name, then by short name.
fn launches(kernels: &Events) -> [Launches<'_>; 2] {
    let columns = SHAPE.map(|column| kernels.column(column));
    let size = |which: usize, at: usize| {
        let value = columns.get(which).copied().flatten().and_then(|column| column.get(at));
        value.and_then(|value| u32::try_from(value).ok()).unwrap_or(0)
    };
    let (mut whole, mut short) = (Launches::new(), Launches::new());
    for at in 0..kernels.len() {
        let grid = [size(0, at), size(1, at), size(2, at)];
        let block = [size(3, at), size(4, at), size(5, at)];
        let Some(name) = kernels.name.get(at) else { continue };
        whole.entry((kernels.name_of(at), grid, block)).or_default().push(at);
        short
            .entry((kernel_name::short_of(kernels, name.index()), grid, block))
            .or_default()
            .push(at);
    }
    [whole, short]
}

/// Profiled launches of one kernel, in the order of the report.
fn profiled<'a>(report: &'a Timeline, name_contains: &str) -> Vec<(Shape<'a>, Vec<&'a KernelProfile>)> {
    let mut numbers: HashMap<Shape<'a>, usize> = HashMap::new();
    let mut all: Vec<(Shape<'a>, Vec<&KernelProfile>)> = Vec::new();
    let allowed = report
        .capture
        .profiles
        .iter()
        .filter(|profile| profile.name.contains(name_contains));
    for profile in allowed {
        let shape = (profile.name.as_str(), profile.grid, profile.block);
        let at = *numbers.entry(shape).or_insert(all.len());
        if let Some((_, list)) = all.get_mut(at) {
            list.push(profile);
        } else {
            all.push((shape, vec![profile]));
        }
    }
    all
}

fn of(first: &Timeline, second: &Timeline, params: &ProfiledInTimelineParams) -> JoinedKernels {
    let ((timeline, input), report) = sides(first, second);
    let mut result = JoinedKernels::default();
    result.not_captured.extend(NotCaptured::unless_any(
        &timeline.capture,
        &[Category::CudaKernel],
        "kernels of the timeline",
    ));
    if report.capture.profiles.is_empty() {
        let reason = "neither capture holds a launch that a kernel profiler measured; name a report of Nsight Compute (.ncu-rep) beside the timeline";
        result.not_captured.push(NotCaptured::new("profiled launches", reason));
    }
    let empty = Events::new(Category::CudaKernel);
    let kernels = timeline.capture.events.get(&Category::CudaKernel).unwrap_or(&empty);
    let [whole, short] = launches(kernels);
    let duration = |at: &usize| kernels.duration_ns.get(*at).copied();
    // Two profiled kernels may have one short name: each launch of the timeline counts once.
    let mut joined = vec![false; kernels.len()];
    for (shape, profiles) in profiled(report, &params.name_contains) {
        result.coverage.profiled_launches += count(profiles.len());
        let (name, grid, block) = shape;
        let by_name = whole.get(&shape).map(|found| (found, JoinedBy::Name));
        let by_short = || {
            short
                .get(&(kernel_name::short(name), grid, block))
                .map(|found| (found, JoinedBy::ShortName))
        };
        let Some((found, joined_by)) = by_name.or_else(by_short) else {
            continue;
        };
        result.coverage.profiled_launches_joined += count(profiles.len());
        for at in found {
            if let Some(joined) = joined.get_mut(*at) {
                *joined = true;
            }
        }
        result.kernels.push(kernel(
            shape,
            joined_by,
            &profiles,
            (count(found.len()), found.iter().filter_map(duration).sum()),
        ));
        for (order, (profile, at)) in profiles.iter().zip(found).enumerate() {
            let start_ns = kernels.start_ns.get(*at).copied();
            let (Some(start_ns), Some(timeline_ns), Some(row)) = (start_ns, duration(at), kernels.row.get(*at)) else {
                continue;
            };
            result.launches.push(JoinedLaunch {
                launch: profile.id,
                name: profile.name.clone(),
                order: count(order),
                start_ns,
                timeline_ns,
                row: *row,
                input,
                profiled_ns: Figures::of(&profile.metrics).duration_ns,
            });
        }
    }
    let coverage = &mut result.coverage;
    for (time, joined) in kernels.duration_ns.iter().copied().zip(&joined) {
        coverage.timeline_launches += 1;
        coverage.timeline_total_ns = coverage.timeline_total_ns.saturating_add(time);
        if *joined {
            coverage.timeline_launches_joined += 1;
            coverage.timeline_joined_ns = coverage.timeline_joined_ns.saturating_add(time);
        }
    }
    coverage.time_ratio = ratio(coverage.timeline_joined_ns, coverage.timeline_total_ns);
    result.kernels.sort_by(|a, b| {
        b.timeline_total_ns
            .cmp(&a.timeline_total_ns)
            .then_with(|| a.name.cmp(&b.name))
    });
    result.kernels_left_out = cut(&mut result.kernels, params.limit);
    result
        .launches
        .sort_by_key(|launch| (std::cmp::Reverse(launch.timeline_ns), launch.launch));
    result.launches_left_out = cut(&mut result.launches, params.limit);
    result
}

fn kernel(
    (name, grid, block): Shape<'_>,
    joined_by: JoinedBy,
    profiles: &[&KernelProfile],
    (launches, total_ns): (u64, u64),
) -> JoinedKernel {
    let durations: Option<Vec<f64>> = profiles
        .iter()
        .map(|profile| Figures::of(&profile.metrics).duration_ns)
        .collect();
    let profiled_mean_ns = durations.map(|all| all.iter().sum::<f64>() / approximate(count(all.len()).into()));
    let timeline_mean_ns = approximate(total_ns.into()) / approximate(launches.max(1).into());
    let first = profiles.first();
    let light = first
        .map(|profile| SpeedOfLight::of(&profile.metrics))
        .unwrap_or_default();
    JoinedKernel {
        name: name.to_owned(),
        grid,
        block,
        joined_by,
        timeline_launches: launches,
        timeline_total_ns: total_ns,
        timeline_mean_ns,
        profiled_launches: count(profiles.len()),
        profiled_mean_ns,
        slowdown_ratio: profiled_mean_ns
            .filter(|mean| *mean > 0.0)
            .map(|mean| timeline_mean_ns / mean),
        limiter: light.limiter,
        compute_ratio: light.compute_share,
        memory_ratio: light.memory_share,
        occupancy_ratio: first.and_then(|profile| Figures::of(&profile.metrics).achieved_occupancy),
    }
}

impl Analysis for ProfiledInTimeline {
    const NAME: &'static str = "profiled-in-timeline";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "Kernels of a timeline beside what Nsight Compute measured of them, joined by name, grid, block and order.";
    const TITLE: &'static str = "Profiled kernels in the timeline";
    const GROUP: Group = Group::Kernels;
    const INPUTS: InputCount = InputCount::Two;
    const NEEDS: Needs = Needs::of(&[Category::CudaKernel, Category::CudaGraph])
        .columns(&SHAPE)
        .names()
        .name_details()
        .rows()
        .profiles();
    type Params = ProfiledInTimelineParams;
    type Output = JoinedKernels;

    fn run(inputs: &Inputs<'_>, params: &ProfiledInTimelineParams) -> Result<JoinedKernels, AnalysisError> {
        Ok(of(inputs.first(), inputs.second(), params))
    }

    fn page(output: &JoinedKernels) -> Result<Page, AnalysisError> {
        let mut page = Page::of(Self::TITLE, Self::ABOUT, &output.not_captured);
        let coverage = &output.coverage;
        page.tiles([
            Tile::figure("Kernel time that was profiled", Unit::Ratio, coverage.time_ratio),
            Tile::new("Launches in the timeline", coverage.timeline_launches),
            Tile::new("of them profiled kernels", coverage.timeline_launches_joined),
            Tile::new("Profiled launches", coverage.profiled_launches),
            Tile::new("of them in the timeline", coverage.profiled_launches_joined),
        ]);
        if !output.kernels.is_empty() {
            page.table(kernels(output));
            page.table(joined(output));
        }
        Ok(page)
    }
}

fn by([x, y, z]: [u32; 3]) -> Cell {
    Cell::from(format!("{x} × {y} × {z}"))
}

fn kernels(output: &JoinedKernels) -> impl Into<Table> {
    Table::of("Kernels", &output.kernels)
        .about(
            "Alone is the mean of the profiled launches: one at a time, at fixed clocks, with caches \
             flushed before each unless the profiler was told otherwise. The rest is of the first one.",
        )
        .left_out(output.kernels_left_out)
        .column("Kernel", |kernel| kernel.name.as_str())
        .column("Grid", |kernel| by(kernel.grid))
        .column("Block", |kernel| by(kernel.block))
        .column("Launches", |kernel| kernel.timeline_launches)
        .figure("In the timeline", Unit::Ns, |kernel| kernel.timeline_total_ns)
        .figure("Avg", Unit::Ns, |kernel| kernel.timeline_mean_ns)
        .figure("Alone", Unit::Ns, |kernel| kernel.profiled_mean_ns)
        .figure("Of alone", Unit::Ratio, |kernel| kernel.slowdown_ratio)
        .column("Bound by", |kernel| kernel.limiter.map(Limiter::label))
        .figure("Compute", Unit::Ratio, |kernel| kernel.compute_ratio)
        .figure("Memory", Unit::Ratio, |kernel| kernel.memory_ratio)
        .figure("Occupancy", Unit::Ratio, |kernel| kernel.occupancy_ratio)
}

fn joined(output: &JoinedKernels) -> impl Into<Table> {
    Table::of("Launches", &output.launches)
        .about(
            "The launch of the report and that of the timeline which are the same kernel's n-th. They are \
             the same work where both captures began at the same launch.",
        )
        .left_out(output.launches_left_out)
        .column("Kernel", |launch| launch.name.as_str())
        .column("Launch", |launch| launch.launch)
        .column("Order", |launch| launch.order)
        .figure("Start", Unit::Instant, |launch| launch.start_ns)
        .figure("In the timeline", Unit::Ns, |launch| launch.timeline_ns)
        .figure("Alone", Unit::Ns, |launch| launch.profiled_ns)
        .at(|launch| {
            TimelineLocation::lasting(launch.start_ns, launch.timeline_ns, Some(launch.row)).of_input(launch.input)
        })
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::{Trace, metrics};
    use flopwatch_model::Device;

    use super::*;

    fn profile(id: u64, name: &str, blocks: u32, duration_ns: f64) -> KernelProfile {
        KernelProfile {
            id,
            name: name.to_owned(),
            grid: [blocks, 1, 1],
            block: [64, 1, 1],
            metrics: metrics(&[("gpu__time_duration.sum", duration_ns, "ns")]),
            ..KernelProfile::default()
        }
    }

    /// Kernels as `(name, blocks, start, end)`.
    fn timeline(kernels: &[(&str, u64, u64, u64)]) -> Timeline {
        let mut trace = Trace::new();
        trace.device(Device::default());
        let stream = trace.stream(1, 0, 7);
        for (name, blocks, start, end) in kernels {
            let kernel = trace.kernel(stream, name, *start, *end);
            for (column, value) in SHAPE.into_iter().zip([*blocks, 1, 1, 64, 1, 1]) {
                trace.number(kernel, column, value);
            }
        }
        trace.build()
    }

    fn report(profiles: Vec<KernelProfile>) -> Timeline {
        let mut timeline = Timeline::default();
        timeline.capture.profiles = profiles;
        timeline
    }

    #[test]
    fn launches_are_joined_by_name_grid_block_and_order() {
        let timeline = timeline(&[
            ("gemm(float*)", 8, 0, 100),
            ("gemm(float*)", 16, 100, 400),
            ("void axpy<int>(int*)", 8, 400, 450),
            ("gemm(float*)", 8, 500, 620),
            ("copy", 8, 700, 1130),
        ]);
        let report = report(vec![
            profile(0, "gemm(float*)", 8, 80.0),
            profile(1, "gemm(float*)", 8, 90.0),
            profile(2, "axpy", 8, 40.0),
            profile(3, "gemm(float*)", 99, 1.0),
        ]);
        let params = ProfiledInTimelineParams::default();
        // The order of the two captures does not matter.
        let found = of(&timeline, &report, &params);
        let turned = of(&report, &timeline, &params);
        assert_eq!((&turned.kernels, turned.coverage), (&found.kernels, found.coverage));
        assert_eq!((found.launches[0].input, turned.launches[0].input), (0, 1));
        let kernels: Vec<_> = found
            .kernels
            .iter()
            .map(|of| {
                (
                    of.name.as_str(),
                    of.joined_by,
                    of.timeline_launches,
                    of.timeline_total_ns,
                    of.profiled_mean_ns,
                )
            })
            .collect();
        let expected = [
            ("gemm(float*)", JoinedBy::Name, 2, 220, Some(85.0)),
            ("axpy", JoinedBy::ShortName, 1, 50, Some(40.0)),
        ];
        assert_eq!(kernels, expected);
        let launches: Vec<_> = found
            .launches
            .iter()
            .map(|of| (of.launch, of.order, of.start_ns, of.timeline_ns))
            .collect();
        assert_eq!(launches, [(1, 1, 500, 120), (0, 0, 0, 100), (2, 0, 400, 50)]);
        let coverage = JoinCoverage {
            timeline_launches: 5,
            timeline_launches_joined: 3,
            timeline_total_ns: 1000,
            timeline_joined_ns: 270,
            time_ratio: Some(0.27),
            profiled_launches: 4,
            profiled_launches_joined: 3,
        };
        assert_eq!(found.coverage, coverage);
        assert!(found.not_captured.is_empty());
    }

    #[test]
    fn captures_without_one_or_the_other_say_so() {
        let params = ProfiledInTimelineParams::default();
        let found = of(&Timeline::default(), &Timeline::default(), &params);
        let what: Vec<&str> = found.not_captured.iter().map(|missing| missing.what.as_str()).collect();
        assert_eq!(what, ["kernels of the timeline", "profiled launches"]);
        assert_eq!(found.coverage, JoinCoverage::default());
    }
}
