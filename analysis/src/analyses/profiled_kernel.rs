//! One launch that a kernel profiler measured, from inside: what bounds it, occupancy, memory, why
//! warps waited, and what its rules say.

mod code;
mod memory;
mod occupancy;
mod page;

use flopwatch_measures::kernel_figures::Figures;
use flopwatch_measures::speed_of_light::{SpeedOfLight, StallReason, stall_reasons};
use flopwatch_model::{KernelProfile, MetricValue, Needs, OpenRange, RuleResult, Timeline};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;
use code::ByAddress;

pub(crate) use page::plain;

pub use code::{CodeText, Instruction, InstructionMix, LineCoverage, Opcode, SourceLine};
pub use memory::{Access, Cache, Link};
pub use occupancy::{Occupancy, OccupancyLimit};

/// A launch that a kernel profiler measured.
#[derive(Debug)]
pub struct ProfiledKernel;

/// Parameters of [`ProfiledKernel`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProfiledKernelParams {
    /// Number of the launch in its report; null is the one that took longest.
    pub launch: Option<u64>,
    /// Most instructions and most source lines in the result, those with most samples.
    #[schemars(range(min = 1, max = 100_000))]
    pub limit: u32,
}

impl Default for ProfiledKernelParams {
    fn default() -> Self {
        Self {
            launch: None,
            limit: 200,
        }
    }
}

/// The result. What is null or an empty list was not measured.
#[derive(Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct LaunchDetails {
    /// Its number in the report; null where the report holds no such launch.
    pub launch: Option<u64>,
    /// The kernel's name.
    pub name: String,
    /// The device, as the report names it.
    pub device: Option<String>,
    /// Thread blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads per block in x, y and z.
    pub block: [u32; 3],
    /// What most ask for, in one unit each.
    pub figures: Option<Figures>,
    /// How close it came to what the device can do.
    pub speed_of_light: SpeedOfLight,
    /// How many warps it could keep on a multiprocessor, and what limits them.
    pub occupancy: Occupancy,
    /// Caches and the device's memory.
    pub caches: Vec<Cache>,
    /// Bytes between them.
    pub links: Vec<Link>,
    /// Loads and stores.
    pub accesses: Vec<Access>,
    /// States of warps between two instructions, the longest first.
    pub stalls: Vec<StallReason>,
    /// Instructions by opcode, the most executed first.
    pub mix: InstructionMix,
    /// Source lines, those with most samples first; empty where the machine code has no table of
    /// lines.
    pub source_lines: Vec<SourceLine>,
    /// Source lines that are not in the result.
    pub source_lines_left_out: u64,
    /// How much has a source line; null where the machine code has no table of lines.
    pub line_coverage: Option<LineCoverage>,
    /// The architecture of its machine code, e.g. `sm_86`; null where the report holds none.
    pub architecture: Option<String>,
    /// Instructions by address, those with most samples; in the order of addresses.
    pub instructions: Vec<Instruction>,
    /// Instructions that are not in the result.
    pub instructions_left_out: u64,
    /// Code that it ran; null where the report holds none.
    pub code: Option<CodeText>,
    /// What NVIDIA's rules say, in NVIDIA's words.
    pub rules: Vec<RuleResult>,
    /// Annotated ranges that were open on the launching thread.
    pub ranges: Vec<OpenRange>,
    /// Sections of the report that were collected.
    pub sections: Vec<String>,
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
}

/// The launch of that number, or the one that took longest; the first of those that are equal.
fn chosen<'a>(profiles: &'a [KernelProfile], launch: Option<u64>) -> Option<&'a KernelProfile> {
    if let Some(id) = launch {
        return profiles.iter().find(|profile| profile.id == id);
    }
    let duration = |profile: &KernelProfile| Figures::of(&profile.metrics).duration_ns.unwrap_or(0.0);
    let longest = |longest: (f64, &'a KernelProfile), next: &'a KernelProfile| {
        let found = duration(next);
        if found > longest.0 { (found, next) } else { longest }
    };
    let first = profiles.first()?;
    Some(profiles.iter().fold((duration(first), first), longest).1)
}

fn of(timeline: &Timeline, params: &ProfiledKernelParams) -> LaunchDetails {
    let profiles = &timeline.capture.profiles;
    let Some(profile) = chosen(profiles, params.launch) else {
        let reason = match (profiles.is_empty(), params.launch) {
            (false, Some(id)) => format!("the report holds no launch {id}; profiled-kernels lists those that it holds"),
            _ => "the capture holds no launch that a kernel profiler measured; open a report of Nsight Compute (.ncu-rep)".to_owned(),
        };
        return LaunchDetails {
            not_captured: vec![NotCaptured::new("the launch", reason)],
            ..LaunchDetails::default()
        };
    };
    let metrics = &profile.metrics;
    let device = match metrics
        .get("device__attribute_display_name")
        .map(|metric| &metric.value)
    {
        Some(MetricValue::Text(name)) => Some(name.clone()),
        _ => None,
    };
    let by_address = ByAddress::of(profile);
    let (instructions, instructions_left_out) = by_address.instructions(params.limit);
    let (source_lines, source_lines_left_out) = by_address.source_lines(params.limit);
    let function = profile.function.as_deref();
    let mut details = LaunchDetails {
        launch: Some(profile.id),
        name: profile.name.clone(),
        device,
        grid: profile.grid,
        block: profile.block,
        figures: Some(Figures::of(metrics)),
        speed_of_light: SpeedOfLight::of(metrics),
        occupancy: Occupancy::of(metrics),
        caches: memory::caches(metrics),
        links: memory::links(metrics),
        accesses: memory::accesses(metrics),
        stalls: stall_reasons(metrics),
        mix: InstructionMix::of(profile),
        source_lines,
        source_lines_left_out,
        line_coverage: by_address.coverage(),
        architecture: function
            .map(|function| function.architecture.clone())
            .filter(|name| !name.is_empty()),
        instructions,
        instructions_left_out,
        code: profile.code.as_deref().map(CodeText::of),
        rules: profile.rules.clone(),
        ranges: profile.ranges.clone(),
        sections: profile.sections.clone(),
        not_captured: Vec::new(),
    };
    details.not_captured = missing(&details, &by_address);
    details
}

/// What the report lacks, each with the section of Nsight Compute that has it.
fn missing(details: &LaunchDetails, by_address: &ByAddress<'_>) -> Vec<NotCaptured> {
    let parts = [
        (
            "speed of light",
            details.speed_of_light.limiter.is_none(),
            "SpeedOfLight",
        ),
        ("occupancy", details.occupancy.limits.is_empty(), "Occupancy"),
        (
            "caches and memory",
            details.links.is_empty(),
            "MemoryWorkloadAnalysis_Chart",
        ),
        (
            "loads and stores",
            details.accesses.is_empty(),
            "MemoryWorkloadAnalysis_Tables",
        ),
        ("why warps waited", details.stalls.is_empty(), "WarpStateStats"),
        (
            "instructions by opcode",
            details.mix.opcodes.is_empty(),
            "InstructionStats",
        ),
        (
            "figures of instructions",
            details
                .instructions
                .iter()
                .all(|of| of.samples.is_none() && of.executed.is_none()),
            "SourceCounters",
        ),
    ];
    let lacking = parts.into_iter().filter(|(_, is_missing, _)| *is_missing);
    let mut missing: Vec<NotCaptured> = lacking
        .map(|(what, _, section)| {
            let reason = format!(
                "the report has no metrics of the section; profile with `ncu --set full`, or add `--section {section}`"
            );
            NotCaptured::new(what, reason)
        })
        .collect();
    let (text, lines) = ("text of instructions (SASS)", "source lines");
    if !by_address.has_machine_code() {
        let reason = "the report holds no machine code of it";
        missing.extend([text, lines].map(|what| NotCaptured::new(what, reason)));
        return missing;
    }
    if let Some(reason) = by_address.not_disassembled() {
        missing.push(NotCaptured::new(text, reason));
    }
    if details.line_coverage.is_none() {
        let reason =
            "its machine code has no table of lines; compile with `nvcc -lineinfo`, or what your compiler calls that";
        missing.push(NotCaptured::new(lines, reason));
    }
    missing
}

impl Analysis for ProfiledKernel {
    const NAME: &'static str = "profiled-kernel";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "A launch that Nsight Compute measured, from inside: its limiter, occupancy, memory, stalls, instructions, and NVIDIA's rules.";
    const TITLE: &'static str = "Profiled kernel";
    const GROUP: Group = Group::Kernels;
    const NEEDS: Needs = Needs::NOTHING.profiles();
    type Params = ProfiledKernelParams;
    type Output = LaunchDetails;

    fn run(inputs: &Inputs<'_>, params: &ProfiledKernelParams) -> Result<LaunchDetails, AnalysisError> {
        Ok(of(inputs.first(), params))
    }

    fn page(output: &LaunchDetails) -> Result<Page, AnalysisError> {
        Ok(page::of(output))
    }
}

#[cfg(test)]
mod tests;
