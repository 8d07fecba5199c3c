//! Launches that a kernel profiler measured, below the roofs of what the device can do.

mod page;

use std::collections::HashMap;

use flopwatch_measures::kernel_figures::Figures;
use flopwatch_measures::roofline::{Bound, DefinedBy, LaunchRoofline, MemoryLevel, Standing, WorkKind};
use flopwatch_model::{KernelProfile, Needs, Timeline, count};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError, InputCount};
use crate::group::Group;
use crate::input::Inputs;

/// Work per second over work per byte of profiled launches.
#[derive(Debug)]
pub struct Roofline;

/// Parameters of [`Roofline`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RooflineParams {
    /// Only kernels whose name contains this text.
    #[schemars(length(max = 1024))]
    pub name_contains: String,
    /// Most launches of each capture, those that took longest.
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

/// The result.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct Rooflines {
    /// Each launch with each kind of work that it did and each memory that it moved bytes of.
    pub points: Vec<LaunchPoint>,
    /// How launches of a capture moved in the next one: those of equal name, grid, block and order.
    pub moves: Vec<LaunchMove>,
    /// Kinds of work that were measured and of which no launch did any.
    pub unused: Vec<WorkKind>,
    /// Launches of all captures that the name allows.
    pub launches: u64,
    /// Those of them that are not in the result, as they took less long.
    pub launches_left_out: u64,
    /// Those of them whose report has not what a roofline is made of.
    pub launches_without_roofline: u64,
    /// What has no figures, and why.
    pub not_captured: Vec<NotCaptured>,
}

/// A launch below one roof of work and one of memory.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LaunchPoint {
    /// Which capture, counted from 0.
    pub input: u32,
    /// The launch's number in its report.
    pub launch: u64,
    /// The kernel's name.
    pub name: String,
    /// The kind of work.
    pub work: WorkKind,
    /// The memory whose traffic and roof are taken.
    pub memory: MemoryLevel,
    /// Work per byte.
    pub intensity: f64,
    /// Work per second.
    pub work_per_second: f64,
    /// Most work per second, at the clocks of this launch.
    pub peak_work_per_second: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Most bytes per second, at the clocks of this launch.
    pub peak_bytes_per_second: f64,
    /// Most work per second at its intensity.
    pub attainable_per_second: f64,
    /// The part of it that was reached, 0 to 1.
    pub reached_ratio: f64,
    /// What bounds it.
    pub bound: Bound,
    /// Whose formula the work is counted by.
    pub work_defined_by: DefinedBy,
    /// Whose formula the bytes are counted by.
    pub bytes_defined_by: DefinedBy,
}

/// How a launch moved from a capture to the next.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct LaunchMove {
    /// Place in `points` where it was.
    pub from: u32,
    /// Place in `points` where it is.
    pub to: u32,
    /// Work per second after, over before.
    pub work_ratio: f64,
    /// Intensity after, over before.
    pub intensity_ratio: f64,
}

/// What makes launches of two captures the same: name, grid, block, and which of those it is.
type Identity<'a> = (&'a str, [u32; 3], [u32; 3], usize);

/// Launches of a capture that the name allows, with their identity.
fn launches<'a>(timeline: &'a Timeline, name_contains: &str) -> Vec<(Identity<'a>, &'a KernelProfile)> {
    let mut seen: HashMap<(&str, [u32; 3], [u32; 3]), usize> = HashMap::new();
    let profiles = timeline.capture.profiles.iter();
    let allowed = profiles.filter(|profile| profile.name.contains(name_contains));
    let launches = allowed.map(|profile| {
        let place = seen.entry((&profile.name, profile.grid, profile.block)).or_default();
        let order = *place;
        *place += 1;
        ((profile.name.as_str(), profile.grid, profile.block, order), profile)
    });
    launches.collect()
}

fn place(number: usize) -> u32 {
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
    let mut measured: Vec<WorkKind> = Vec::new();
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
            for point in points(place(input), profile, roofline) {
                let key = (*identity, point.work, point.memory);
                let to = result.points.len();
                let from = before
                    .get(&key)
                    .and_then(|from| Some((*from, result.points.get(*from)?)));
                if let Some((from, was)) = from {
                    result.moves.push(LaunchMove {
                        from: place(from),
                        to: place(to),
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
    measured.retain(|kind| result.points.iter().all(|point| point.work != *kind));
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
        let standing = Standing::of(work, traffic)?;
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
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "Work per second over work per byte of launches that Nsight Compute measured, below the roofs of their device.";
    const GROUP: Group = Group::Kernels;
    const INPUTS: InputCount = InputCount::Many;
    const NEEDS: Needs = Needs {
        profiles: true,
        ..Needs::NOTHING
    };
    type Params = RooflineParams;
    type Output = Rooflines;

    fn run(inputs: &Inputs<'_>, params: &RooflineParams) -> Result<Rooflines, AnalysisError> {
        let timelines: Vec<&Timeline> = inputs.all().iter().map(|input| input.timeline).collect();
        Ok(of(&timelines, params))
    }

    fn page(output: &Rooflines) -> Result<Page, AnalysisError> {
        Ok(page::of(output, Self::ABOUT))
    }
}

#[cfg(test)]
mod tests;
