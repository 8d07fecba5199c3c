//! Sequences of GPU work that a program launches again and again: what could be fused, or be a CUDA
//! graph.

use std::collections::BTreeMap;

use flopwatch_measures::launch::{LaunchCoverage, LaunchJoin};
use flopwatch_measures::operation_name::normalised;
use flopwatch_measures::work::GpuWork;
use flopwatch_model::{Category, ColumnId, EventId, Events, Needs, RowId, Timeline, gpu_work_and, index};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, Table, TimelineLocation, Unit};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::launches::not_captured;
use crate::definition::{Analysis, AnalysisError};
use crate::input::Inputs;
use regions::{Regions, Sequence};

mod regions;

/// Frequent sequences of kernels, copies and memsets that one operator or range launches, itself or
/// by those inside it.
#[derive(Debug)]
pub struct LaunchPatterns;

/// Parameters of [`LaunchPatterns`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LaunchPatternsParams {
    /// Only operators, annotations, steps and ranges whose name contains this text. Empty: all of
    /// them.
    #[schemars(length(max = 1024))]
    pub under: String,
    /// GPU operations that a sequence has at least.
    #[schemars(range(min = 1, max = 100_000))]
    pub min_length: u32,
    /// Occurrences that a sequence has at least.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub min_count: u64,
    /// Most sequences.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: u32,
}

impl Default for LaunchPatternsParams {
    fn default() -> Self {
        Self {
            under: String::new(),
            min_length: 3,
            min_count: 2,
            limit: 20,
        }
    }
}

/// The result of the analysis `launch-patterns`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct PatternsOfLaunches {
    /// How much of the work has its call; the rest is in no sequence.
    pub coverage: LaunchCoverage,
    /// GPU operations whose call is inside no operator or range that counts.
    pub outside: u64,
    /// Sequences, the most frequent first. One that each time is all that the operator or range
    /// around it launches stands there once, by the name of the outer one.
    pub patterns: Vec<LaunchPattern>,
    /// Sequences that were left out.
    pub patterns_left_out: u64,
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
}

/// A sequence of GPU operations that an operator or range launched.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LaunchPattern {
    /// Name of the operator or range, without what tells one call from the next (`op_id = 9`).
    pub name: String,
    /// Category of the pattern.
    pub category: Category,
    /// How often it launched exactly this sequence.
    pub count: u64,
    /// GPU operations of the sequence.
    pub length: u64,
    /// Their names in the order in which they began, the first [`LaunchPattern::MAX_NAMES`] of
    /// them.
    pub gpu_ops: Vec<String>,
    /// Sum of the lengths of all GPU operations of all occurrences in ns.
    pub gpu_ns: u64,
    /// Sum of the lengths of the operators or ranges in ns.
    pub host_ns: u64,
    /// Start of the first occurrence in ns since the session's start.
    pub first_start_ns: u64,
    /// End of the first occurrence in ns.
    pub first_end_ns: u64,
    /// The timeline's row of the first occurrence.
    pub first_row: RowId,
}

impl LaunchPattern {
    /// Most names of a sequence that are listed.
    pub const MAX_NAMES: usize = 64;
}

/// The number of each work's name, the same for the same name of any category.
fn numbered<'a>(timeline: &'a Timeline, joined: &LaunchJoin) -> (Vec<u32>, Vec<&'a str>) {
    let mut known: BTreeMap<&str, u32> = BTreeMap::new();
    let mut names = Vec::new();
    let mut of_category: BTreeMap<Category, Vec<u32>> = BTreeMap::new();
    for (category, events) in timeline.capture.events.iter().filter(|(of, _)| of.is_gpu_work()) {
        let numbers = events.names.iter().map(|name| {
            *known.entry(name).or_insert_with(|| {
                names.push(name.as_str());
                u32::try_from(names.len() - 1).unwrap_or(u32::MAX)
            })
        });
        of_category.insert(*category, numbers.collect());
    }
    let number = |launch: &flopwatch_measures::launch::Launch| {
        let name = launch.work.events(timeline)?.name.get(index(launch.work.at))?;
        of_category.get(&launch.work.category)?.get(name.index()).copied()
    };
    let numbers = joined.launches.iter().map(|launch| number(launch).unwrap_or(u32::MAX));
    (numbers.collect(), names)
}

/// For each name of `events` the number of its operation, and the operations' names.
fn operations(events: &Events) -> (Vec<u32>, Vec<String>) {
    let mut known = BTreeMap::new();
    let mut operations = Vec::new();
    let numbers = events.names.iter().map(|name| {
        *known.entry(normalised(name)).or_insert_with_key(|operation| {
            operations.push(operation.clone().into_owned());
            u32::try_from(operations.len() - 1).unwrap_or(u32::MAX)
        })
    });
    (numbers.collect(), operations)
}

/// Categories whose events hold launches; each of them nests by itself.
const HOLDERS: [Category; 4] = [
    Category::Step,
    Category::Annotation,
    Category::NvtxRange,
    Category::CpuOp,
];

impl LaunchPatterns {
    /// Of `timeline`, of which GPU work, calls, operators, ranges, names, rows and the column of
    /// launches were read.
    pub fn of(timeline: &Timeline, params: &LaunchPatternsParams) -> PatternsOfLaunches {
        let joined = LaunchJoin::of(timeline, &GpuWork::of(timeline));
        let (numbers, names) = numbered(timeline, &joined);
        let by_call = joined.by_call();
        let of_category = |category: &Category| {
            let events = timeline.capture.events.get(category)?;
            let launches = (&joined, &by_call[..], &numbers[..]);
            let regions = Regions::of(timeline, (*category, events), &params.under, launches);
            let found = occurrences(events, &regions, params);
            Some((regions, found))
        };
        let categories: Vec<_> = HOLDERS.par_iter().filter_map(of_category).collect();
        let mut inside = vec![false; joined.launches.len()];
        let (mut patterns, mut count) = (Vec::new(), 0);
        for (regions, mut found) in categories {
            for (inside, region) in inside.iter_mut().zip(regions.of_launches().iter()) {
                *inside |= region.is_some();
            }
            count += found.len();
            found.sort_by_key(|(_, pattern)| std::cmp::Reverse((pattern.count, pattern.gpu_ns)));
            found.truncate(index(params.limit));
            let listed = found.iter().map(|(first, _)| *first).zip(patterns.len()..).collect();
            patterns.extend(found.into_iter().map(|(_, pattern)| pattern));
            regions.works_of(&listed, |position, launch| {
                let gpu_ops = patterns
                    .get_mut(position)
                    .map(|pattern: &mut LaunchPattern| &mut pattern.gpu_ops);
                let gpu_ops = gpu_ops.filter(|gpu_ops| gpu_ops.len() < LaunchPattern::MAX_NAMES);
                let name = numbers.get(launch).and_then(|number| names.get(index(*number)));
                if let Some((gpu_ops, name)) = gpu_ops.zip(name) {
                    gpu_ops.push((*name).to_owned());
                }
            });
        }
        patterns.sort_by(|a, b| {
            (b.count, b.gpu_ns)
                .cmp(&(a.count, a.gpu_ns))
                .then_with(|| a.name.cmp(&b.name))
        });
        patterns.truncate(index(params.limit));
        let left_out = count.saturating_sub(patterns.len());
        let mut not_captured = not_captured(timeline, "sequences of launches");
        not_captured.extend(NotCaptured::unless_any(
            &timeline.capture,
            &HOLDERS,
            "operators and ranges that launch",
        ));
        let outside = inside.iter().filter(|inside| !**inside).count();
        PatternsOfLaunches {
            coverage: joined.coverage(),
            outside: u64::try_from(outside).unwrap_or(u64::MAX),
            patterns,
            patterns_left_out: u64::try_from(left_out).unwrap_or(u64::MAX),
            not_captured,
        }
    }
}

/// The patterns of a category that count, each with its first occurrence, without the names of the
/// GPU operations.
fn occurrences(events: &Events, regions: &Regions, params: &LaunchPatternsParams) -> Vec<(EventId, LaunchPattern)> {
    let (of_name, operations) = operations(events);
    let mut known: BTreeMap<(u32, Sequence), usize> = BTreeMap::new();
    // Beside each pattern its first occurrence, and the pattern that launched no more around every
    // one of its occurrences.
    let mut found: Vec<(EventId, Option<usize>, LaunchPattern)> = Vec::new();
    let mut pattern_of = vec![None; events.len()];
    // A parent comes before its children.
    let columns = events
        .name
        .iter()
        .zip(&events.row)
        .zip(events.start_ns.iter().zip(&events.duration_ns));
    for (event, ((name, row), (start_ns, duration_ns))) in EventId::all().zip(columns) {
        let position = event.index();
        let region = regions.sequence(position);
        if region.gpu_ops == 0 || region.gpu_ops < params.min_length.into() {
            continue;
        }
        let Some(operation) = of_name.get(name.index()).copied() else {
            continue;
        };
        let next = found.len();
        let number = *known.entry((operation, region)).or_insert(next);
        let parent = regions.parent(position).map(EventId::index);
        let parent = parent.filter(|parent| regions.sequence(*parent) == region);
        let whole_of = parent.and_then(|parent| pattern_of.get(parent).copied().flatten());
        if let Some(slot) = pattern_of.get_mut(position) {
            *slot = Some(number);
        }
        // An operator that calls itself, and launches nothing besides, is one occurrence.
        if whole_of == Some(number) {
            continue;
        }
        if number == next {
            let pattern = LaunchPattern {
                name: operations.get(index(operation)).cloned().unwrap_or_default(),
                category: regions.category(),
                count: 0,
                length: region.gpu_ops,
                gpu_ops: Vec::new(),
                gpu_ns: 0,
                host_ns: 0,
                first_start_ns: *start_ns,
                first_end_ns: events.end_ns(position),
                first_row: *row,
            };
            found.push((event, whole_of, pattern));
        }
        if let Some((_, around, pattern)) = found.get_mut(number) {
            pattern.count += 1;
            pattern.gpu_ns += regions.gpu_ns(position);
            pattern.host_ns += *duration_ns;
            *around = around.filter(|around| Some(*around) == whole_of);
        }
    }
    found.retain(|(_, around, pattern)| around.is_none() && pattern.count >= params.min_count);
    found.into_iter().map(|(first, _, pattern)| (first, pattern)).collect()
}

const NEEDED: &[Category] = gpu_work_and![
    Category::CudaApi,
    Category::CpuOp,
    Category::NvtxRange,
    Category::Annotation,
    Category::Step
];

impl Analysis for LaunchPatterns {
    const NAME: &'static str = "launch-patterns";
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "Sequences of kernels, copies and memsets that operators or ranges launch again and again: what could be fused or be a CUDA graph.";
    const TITLE: &'static str = "Launch patterns";
    const GROUP: crate::Group = crate::Group::Launches;
    const NEEDS: Needs = Needs::of(NEEDED)
        .columns(&[ColumnId::Launch, ColumnId::RangeStyle])
        .names()
        .rows();
    type Params = LaunchPatternsParams;
    type Output = PatternsOfLaunches;

    fn run(inputs: &Inputs<'_>, params: &LaunchPatternsParams) -> Result<PatternsOfLaunches, AnalysisError> {
        Ok(Self::of(inputs.first(), params))
    }

    fn page(output: &PatternsOfLaunches) -> Result<Page, AnalysisError> {
        let outside = match output.outside {
            0 => String::new(),
            outside => {
                format!("{outside} GPU operations were launched outside of any operator or range that counts.")
            }
        };
        let table = Table::of("Sequences", &output.patterns)
            .about(outside)
            .left_out(output.patterns_left_out)
            .column("Launched by", |pattern| pattern.name.as_str())
            .column("Times", |pattern| pattern.count)
            .column("GPU ops", |pattern| pattern.length)
            .figure("GPU time", Unit::Ns, |pattern| pattern.gpu_ns)
            .figure("Host time", Unit::Ns, |pattern| pattern.host_ns)
            .column("Sequence", |pattern| pattern.gpu_ops.join(" | "))
            .at(|of| TimelineLocation::new(of.first_start_ns, of.first_end_ns, Some(of.first_row)));
        Ok(Page::of_table(Self::TITLE, Self::ABOUT, &output.not_captured, table))
    }
}

#[cfg(test)]
mod tests;
