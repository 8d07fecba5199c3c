//! The analysis `roofline`: launches that a kernel profiler measured, against the device's peaks of
//! computation and of memory bandwidth.

mod page;

use std::collections::HashMap;

use flopwatch_measures::kernel_figures::Figures;
use flopwatch_measures::roofline::{Bound, DefinedBy, LaunchRoofline, MemoryLevel, RooflinePoint, WorkKind};
use flopwatch_model::{KernelProfile, Needs, Timeline, count};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError, InputCount};
use crate::group::Group;
use crate::input::Inputs;

/// The analysis `roofline`.
#[derive(Debug)]
pub struct Roofline;

/// Parameters of [`Roofline`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RooflineParams {
    /// Text that a kernel's name must contain for its launches to be in the result; empty for all
    /// kernels.
    #[schemars(length(max = 1024))]
    pub name_contains: String,
    /// Maximum number of launches of each capture; those that took longest are kept.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: u32,
}

impl Default for RooflineParams {
    fn default() -> Self {
        Self {
            name_contains: String::new(),
            limit: 100,
        }
    }
}

/// The result of `roofline`: points of a chart of work per second over work per byte.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct Rooflines {
    /// One point for each launch, kind of work that the launch did, and memory that it moved bytes
    /// of.
    pub points: Vec<LaunchPoint>,
    /// Changes of launches from one capture to the next. Launches are the same where name, grid,
    /// block and their order among such launches are equal.
    pub moves: Vec<LaunchMove>,
    /// Kinds of work that the profiler measured and of which no launch did any.
    pub unused: Vec<WorkKind>,
    /// Number of launches in all captures whose kernel's name contains `name_contains`.
    pub launches: u64,
    /// Number of these launches that `limit` left out.
    pub launches_left_out: u64,
    /// Number of these launches whose report lacks the metrics that a roofline needs.
    pub launches_without_roofline: u64,
    /// Parts of the result that the captures have no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
}

/// One launch against one peak of work and one peak of memory bandwidth.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LaunchPoint {
    /// Index of the launch's capture among the inputs, counted from 0.
    pub input: u32,
    /// The launch's number in its report.
    pub launch: u64,
    /// The kernel's name.
    pub name: String,
    /// The kind of work that is counted, as FP32 or tensor-core operations.
    pub work: WorkKind,
    /// The memory whose traffic and peak bandwidth are taken.
    pub memory: MemoryLevel,
    /// Arithmetic intensity: operations per byte that the launch moved.
    pub intensity: f64,
    /// Operations per second that the launch reached.
    pub work_per_second: f64,
    /// Peak of operations per second of the device, at the clock rates of this launch.
    pub peak_work_per_second: f64,
    /// Bytes per second that the launch moved.
    pub bytes_per_second: f64,
    /// Peak of bytes per second of the memory, at the clock rates of this launch.
    pub peak_bytes_per_second: f64,
    /// Operations per second that the device can reach at the launch's intensity: the lower of
    /// `peak_work_per_second` and of `intensity` times `peak_bytes_per_second`.
    pub attainable_per_second: f64,
    /// `work_per_second` as a share of `attainable_per_second`, 0 to 1.
    pub reached_ratio: f64,
    /// Whether computation or memory bandwidth limits the launch.
    pub bound: Bound,
    /// Source of the formula by which the work is counted: the profiler's report or Flopwatch.
    pub work_defined_by: DefinedBy,
    /// Source of the formula by which the bytes are counted: the profiler's report or Flopwatch.
    pub bytes_defined_by: DefinedBy,
}

/// The change of one launch's point between two consecutive captures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct LaunchMove {
    /// Index in `points` of the launch in the earlier capture.
    pub from: u32,
    /// Index in `points` of the launch in the later capture.
    pub to: u32,
    /// Work per second in the later capture, divided by that in the earlier one.
    pub work_ratio: f64,
    /// Intensity in the later capture, divided by that in the earlier one.
    pub intensity_ratio: f64,
}

/// Identity of a launch across captures: kernel name, grid, block, and the launch's number among
/// those that agree in all three.
type Identity<'a> = (&'a str, [u32; 3], [u32; 3], usize);

/// Launches of a capture whose kernel's name contains `name_contains`, with their identity.
fn launches<'a>(timeline: &'a Timeline, name_contains: &str) -> Vec<(Identity<'a>, &'a KernelProfile)> {
    let mut seen: HashMap<(&str, [u32; 3], [u32; 3]), usize> = HashMap::new();
    let profiles = timeline.capture.profiles.iter();
    let allowed = profiles.filter(|profile| profile.name.contains(name_contains));
    let launches = allowed.map(|profile| {
        let seen_count = seen.entry((&profile.name, profile.grid, profile.block)).or_default();
        let order = *seen_count;
        *seen_count += 1;
        ((profile.name.as_str(), profile.grid, profile.block, order), profile)
    });
    launches.collect()
}

fn number_of(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn of(timelines: &[&Timeline], params: &RooflineParams) -> Rooflines {
    let limit = usize::try_from(params.limit).unwrap_or(usize::MAX);
    let mut result = Rooflines {
        points: Vec::new(),
        moves: Vec::new(),
        unused: Vec::new(),
        launches: 0,
        launches_left_out: 0,
        launches_without_roofline: 0,
        not_captured: Vec::new(),
    };
    let (mut measured, mut done): (Vec<WorkKind>, Vec<WorkKind>) = (Vec::new(), Vec::new());
    let mut before: HashMap<(Identity<'_>, WorkKind, MemoryLevel), usize> = HashMap::new();
    for (input, timeline) in timelines.iter().enumerate() {
        let all = launches(timeline, &params.name_contains);
        result.launches += count(all.len());
        let mut drawn = Vec::new();
        for (identity, profile) in all {
            let roofline = LaunchRoofline::of(profile);
            if roofline.is_whole() {
                let duration = Figures::of(&profile.metrics).duration_ns.unwrap_or(0.0);
                drawn.push((duration, identity, profile, roofline));
            } else {
                result.launches_without_roofline += 1;
            }
        }
        drawn.sort_by(|a, b| b.0.total_cmp(&a.0));
        result.launches_left_out += count(drawn.len().saturating_sub(limit));
        drawn.truncate(limit);
        let mut here = HashMap::new();
        for (_, identity, profile, roofline) in &drawn {
            measured.extend(roofline.work.iter().map(|work| work.kind));
            let with_work = roofline.work.iter().filter(|work| work.per_second > 0.0);
            done.extend(with_work.map(|work| work.kind));
            for point in points(number_of(input), profile, roofline) {
                let key = (*identity, point.work, point.memory);
                let to = result.points.len();
                let from = before
                    .get(&key)
                    .and_then(|from| Some((*from, result.points.get(*from)?)));
                if let Some((from, was)) = from {
                    result.moves.push(LaunchMove {
                        from: number_of(from),
                        to: number_of(to),
                        work_ratio: point.work_per_second / was.work_per_second,
                        intensity_ratio: point.intensity / was.intensity,
                    });
                }
                here.insert(key, to);
                result.points.push(point);
            }
        }
        before = here;
    }
    measured.sort_unstable();
    measured.dedup();
    measured.retain(|kind| !done.contains(kind));
    result.unused = measured;
    result.not_captured = missing(&result);
    result
}

fn points(input: u32, profile: &KernelProfile, roofline: &LaunchRoofline) -> Vec<LaunchPoint> {
    let pairs = roofline
        .work
        .iter()
        .flat_map(|work| roofline.traffic.iter().map(move |traffic| (work, traffic)));
    let points = pairs.filter_map(|(work, traffic)| {
        let standing = RooflinePoint::of(work, traffic)?;
        Some(LaunchPoint {
            input,
            launch: profile.id,
            name: profile.name.clone(),
            work: work.kind,
            memory: traffic.level,
            intensity: standing.intensity,
            work_per_second: work.per_second,
            peak_work_per_second: work.peak_per_second,
            bytes_per_second: traffic.bytes_per_second,
            peak_bytes_per_second: traffic.peak_bytes_per_second,
            attainable_per_second: standing.attainable_per_second,
            reached_ratio: standing.share,
            bound: standing.bound,
            work_defined_by: work.defined_by,
            bytes_defined_by: traffic.defined_by,
        })
    });
    points.collect()
}

fn missing(result: &Rooflines) -> Vec<NotCaptured> {
    let mut missing = Vec::new();
    if result.launches == 0 {
        let reason =
            "the captures hold no launch that a kernel profiler measured; open a report of Nsight Compute (.ncu-rep)";
        missing.push(NotCaptured::new("rooflines", reason));
    } else if result.launches_without_roofline > 0 {
        let reason = format!(
            "{} of {} launches have no metrics of rooflines; profile with `ncu --set roofline`, or add `--section SpeedOfLight_RooflineChart`",
            result.launches_without_roofline, result.launches
        );
        missing.push(NotCaptured::new("rooflines", reason));
    }
    missing
}

impl Analysis for Roofline {
    const NAME: &'static str = "roofline";
    const VERSION: u32 = 2;
    const ABOUT: &'static str =
        "Work per second over work per byte of launches that Nsight Compute measured, below the roofs of their device.";
    const TITLE: &'static str = "Roofline";
    const GROUP: Group = Group::Kernels;
    const INPUTS: InputCount = InputCount::Many;
    const NEEDS: Needs = Needs::NOTHING.profiles();
    type Params = RooflineParams;
    type Output = Rooflines;

    fn run(inputs: &Inputs<'_>, params: &RooflineParams) -> Result<Rooflines, AnalysisError> {
        let timelines: Vec<&Timeline> = inputs.all().iter().map(|input| input.timeline).collect();
        Ok(of(&timelines, params))
    }

    fn page(output: &Rooflines) -> Result<Page, AnalysisError> {
        Ok(page::of(output, Self::TITLE, Self::ABOUT))
    }
}

#[cfg(test)]
mod tests;
