//! Sequences of GPU work that a program launches again and again: what could be fused, or be a CUDA graph.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::launches::not_captured;
use crate::definition::{Analysis, AnalysisError, InputCount};
use crate::input::Inputs;
use crate::measures::holder::{Question, innermost, row_on};
use crate::measures::launch::{Joined, LaunchCoverage};
use crate::measures::operation_name::normalised;
use crate::measures::work::{GpuWork, gpu_work_and};
use crate::model::{Category, ColumnId, Events, Timeline, Track, index};
use crate::needs::{Needs, Selection};
use crate::not_captured::NotCaptured;
use crate::page::{Cell, Page, Place, Table, Unit};

/// Frequent sequences of kernels, copies and memsets that one operator or range launches.
#[derive(Debug)]
pub struct LaunchPatterns;

/// Parameters of [`LaunchPatterns`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LaunchPatternsParams {
    /// Only below operators, annotations and ranges whose name contains this text, the outermost of those in each other. Empty: below the
    /// outermost operators, and where no operators were recorded, the innermost NVTX ranges.
    #[schemars(length(max = 1024))]
    pub under: String,
    /// Works that a sequence has at least.
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

/// The result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct PatternsOfLaunches {
    /// How much of the work has its call; the rest is in no sequence.
    pub coverage: LaunchCoverage,
    /// Works whose call is inside no operator or range that counts.
    pub outside: u64,
    /// Sequences, the most frequent first.
    pub patterns: Vec<LaunchPattern>,
    /// Sequences that were left out.
    pub patterns_left_out: u64,
    /// What has no figures, and why.
    pub not_captured: Vec<NotCaptured>,
}

/// A sequence of works that an operator or range launched.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LaunchPattern {
    /// Name of the operator or range, without what tells one call from the next (`op_id = 9`).
    pub name: String,
    /// Its category.
    pub category: Category,
    /// How often it launched exactly this sequence.
    pub count: u64,
    /// Works of the sequence.
    pub length: u64,
    /// Their names in the order in which they began, the first [`LaunchPattern::MOST_NAMES`] of them.
    pub works: Vec<String>,
    /// Sum of the lengths of all works of all occurrences in ns.
    pub gpu_ns: u64,
    /// Sum of the lengths of the operators or ranges in ns.
    pub host_ns: u64,
    /// Start of the first occurrence in ns since the session's start.
    pub first_start_ns: u64,
    /// End of the first occurrence in ns.
    pub first_end_ns: u64,
    /// The timeline's row of the first occurrence.
    pub first_row: u32,
}

impl LaunchPattern {
    /// Most names of a sequence that are listed.
    pub const MOST_NAMES: usize = 64;
}

/// Where sequences are looked for: a category, the track of its events, whether the outermost event counts.
struct Level {
    category: Category,
    track: Track,
    outermost: bool,
}

fn levels(timeline: &Timeline, params: &LaunchPatternsParams) -> Vec<Level> {
    let level = |category, track, outermost| Level {
        category,
        track,
        outermost,
    };
    if !params.under.is_empty() {
        return vec![
            level(Category::Step, Track::Annotation, true),
            level(Category::Annotation, Track::Annotation, true),
            level(Category::NvtxRange, Track::Nvtx, true),
            level(Category::CpuOp, Track::CpuOp, true),
        ];
    }
    let has_operators = timeline
        .capture
        .events
        .get(&Category::CpuOp)
        .is_some_and(|events| !events.is_empty());
    if has_operators {
        vec![level(Category::CpuOp, Track::CpuOp, true)]
    } else {
        vec![level(Category::NvtxRange, Track::Nvtx, false)]
    }
}

/// For each question the event that counts, or [`Events::NO_PARENT`].
fn regions(events: &Events, level: &Level, under: &str, questions: &[Question]) -> Vec<u32> {
    let fits: Vec<bool> = events.names.iter().map(|name| name.contains(under)).collect();
    let style = events.column(ColumnId::RangeStyle);
    let counts = |at: usize| {
        let name = events.name.get(at).and_then(|name| fits.get(index(*name)));
        // Ranges of start/end style need not nest.
        name == Some(&true) && style.and_then(|style| style.get(at)).unwrap_or(0) == 0
    };
    let mut found = innermost(events, counts, questions);
    if level.outermost {
        // A parent comes before its children: one pass finds the roots.
        let mut roots = events.parents(counts);
        for at in 0..roots.len() {
            let parent = roots.get(at).copied().unwrap_or(Events::NO_PARENT);
            let root = roots.get(index(parent)).copied();
            let own = u32::try_from(at).unwrap_or(Events::NO_PARENT);
            if let Some(slot) = roots.get_mut(at) {
                *slot = root.unwrap_or(own);
            }
        }
        for at in &mut found {
            *at = roots.get(index(*at)).copied().unwrap_or(Events::NO_PARENT);
        }
    }
    found
}

/// The number of each work's name, the same for the same name of any category.
fn numbered<'a>(timeline: &'a Timeline, joined: &Joined) -> (Vec<u32>, Vec<&'a str>) {
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
    let number = |launch: &crate::measures::launch::Launch| {
        let name = launch.work.events(timeline)?.name.get(index(launch.work.at))?;
        of_category.get(&launch.work.category)?.get(index(*name)).copied()
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

#[derive(Default)]
struct Occurrences {
    count: u64,
    gpu_ns: u64,
    host_ns: u64,
    first: u32,
}

impl LaunchPatterns {
    /// Of `timeline`, of which GPU work, calls, operators, ranges, names, rows and the column of launches were read.
    pub fn of(timeline: &Timeline, params: &LaunchPatternsParams) -> PatternsOfLaunches {
        let joined = Joined::of(timeline, &GpuWork::of(timeline));
        let (numbers, names) = numbered(timeline, &joined);
        // The works, in the order of their calls, that no level has claimed yet; an outer level claims first.
        let mut open: Vec<u32> = (0..u32::try_from(joined.launches.len()).unwrap_or(u32::MAX)).collect();
        open.sort_by_key(|at| joined.launches.get(index(*at)).map_or(0, |launch| launch.call.start));
        let mut patterns = Vec::new();
        for level in levels(timeline, params) {
            let Some(events) = timeline.capture.events.get(&level.category) else {
                continue;
            };
            let rows = row_on(timeline, level.track);
            let calls = timeline.capture.events.get(&Category::CudaApi);
            let question = |at: &u32| {
                let launch = joined.launches.get(index(*at))?;
                let row = rows.get(index(*calls?.row.get(launch.at)?))?;
                Some((
                    *at,
                    Question {
                        time: launch.call,
                        row: (*row)?,
                    },
                ))
            };
            let (asked, questions): (Vec<u32>, Vec<Question>) = open.iter().filter_map(question).unzip();
            let answers = regions(events, &level, &params.under, &questions);
            let mut inside: Vec<(u32, u32)> = answers.into_iter().zip(asked).collect();
            inside.retain(|(region, _)| *region != Events::NO_PARENT);
            // Work is numbered in the order in which it began.
            inside.sort_unstable();
            let mut claimed = vec![false; joined.launches.len()];
            for (_, at) in &inside {
                if let Some(claimed) = claimed.get_mut(index(*at)) {
                    *claimed = true;
                }
            }
            open.retain(|at| claimed.get(index(*at)) == Some(&false));
            collect(
                &level,
                events,
                &joined,
                &numbers,
                &names,
                &inside,
                params,
                &mut patterns,
            );
        }
        patterns.sort_by(|a: &LaunchPattern, b| {
            (b.count, b.gpu_ns)
                .cmp(&(a.count, a.gpu_ns))
                .then_with(|| a.name.cmp(&b.name))
        });
        let left_out = patterns.len().saturating_sub(index(params.limit));
        patterns.truncate(index(params.limit));
        let mut not_captured = not_captured(timeline, "sequences of launches");
        let holders = [
            Category::CpuOp,
            Category::NvtxRange,
            Category::Annotation,
            Category::Step,
        ];
        not_captured.extend(NotCaptured::unless_any(
            &timeline.capture,
            &holders,
            "operators and ranges that launch",
        ));
        PatternsOfLaunches {
            coverage: joined.coverage(),
            outside: u64::try_from(open.len()).unwrap_or(u64::MAX),
            patterns,
            patterns_left_out: u64::try_from(left_out).unwrap_or(u64::MAX),
            not_captured,
        }
    }
}

/// Adds the patterns of a level; `inside` are its regions with the works that each launched, sorted.
#[allow(clippy::too_many_arguments, reason = "the parts of one loop, read once")]
fn collect(
    level: &Level,
    events: &Events,
    joined: &Joined,
    numbers: &[u32],
    names: &[&str],
    inside: &[(u32, u32)],
    params: &LaunchPatternsParams,
    patterns: &mut Vec<LaunchPattern>,
) {
    let sequence: Vec<u32> = inside
        .iter()
        .map(|(_, at)| numbers.get(index(*at)).copied().unwrap_or(u32::MAX))
        .collect();
    let (of_name, operations) = operations(events);
    let mut found: BTreeMap<(u32, &[u32]), Occurrences> = BTreeMap::new();
    let mut rest = sequence.as_slice();
    for works in inside.chunk_by(|a, b| a.0 == b.0) {
        let (sequence, behind) = rest.split_at(works.len());
        rest = behind;
        let Some((region, _)) = works.first().filter(|_| works.len() >= index(params.min_length)) else {
            continue;
        };
        let name = events
            .name
            .get(index(*region))
            .and_then(|name| of_name.get(index(*name)));
        let name = name.copied().unwrap_or(u32::MAX);
        let occurrences = found.entry((name, sequence)).or_default();
        if occurrences.count == 0 {
            occurrences.first = *region;
        }
        occurrences.count += 1;
        let lengths = works.iter().filter_map(|(_, at)| joined.launches.get(index(*at)));
        occurrences.gpu_ns += lengths.map(|launch| launch.work.time.len()).sum::<u64>();
        occurrences.host_ns += events.duration_ns.get(index(*region)).copied().unwrap_or(0);
    }
    for ((name, sequence), occurrences) in found {
        if occurrences.count < params.min_count {
            continue;
        }
        let first = index(occurrences.first);
        let works = sequence.iter().take(LaunchPattern::MOST_NAMES);
        patterns.push(LaunchPattern {
            name: operations.get(index(name)).cloned().unwrap_or_default(),
            category: level.category,
            count: occurrences.count,
            length: u64::try_from(sequence.len()).unwrap_or(u64::MAX),
            works: works
                .filter_map(|number| names.get(index(*number)))
                .map(|name| (*name).to_owned())
                .collect(),
            gpu_ns: occurrences.gpu_ns,
            host_ns: occurrences.host_ns,
            first_start_ns: events.start_ns.get(first).copied().unwrap_or(0),
            first_end_ns: events.end_ns(first),
            first_row: events.row.get(first).copied().unwrap_or(0),
        });
    }
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
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "Sequences of kernels, copies and memsets that operators or ranges launch again and again: what could be fused or be a CUDA graph.";
    const GROUP: crate::Group = crate::Group::GpuTime;
    const INPUTS: InputCount = InputCount::One;
    const NEEDS: Needs = Needs {
        categories: Selection::Only(NEEDED),
        columns: Selection::Only(&[ColumnId::Launch, ColumnId::RangeStyle]),
        names: true,
        rows: true,
        ..Needs::NOTHING
    };
    type Params = LaunchPatternsParams;
    type Output = PatternsOfLaunches;

    fn run(inputs: &Inputs<'_>, params: &LaunchPatternsParams) -> Result<PatternsOfLaunches, AnalysisError> {
        Ok(Self::of(inputs.first(), params))
    }

    fn page(output: &PatternsOfLaunches) -> Result<Page, AnalysisError> {
        let mut page = Page::new("Launch patterns", Self::ABOUT);
        page.not_captured.clone_from(&output.not_captured);
        let mut table = Table::new(
            "Sequences",
            &[
                ("Launched by", Unit::None),
                ("Times", Unit::None),
                ("Works", Unit::None),
                ("GPU time", Unit::Ns),
                ("Host time", Unit::Ns),
                ("Sequence", Unit::None),
            ],
        );
        table.about = format!(
            "{} works were launched outside of any operator or range that counts.",
            output.outside
        );
        table.left_out = output.patterns_left_out;
        for pattern in &output.patterns {
            let place = Place {
                input: 0,
                start_ns: pattern.first_start_ns,
                end_ns: pattern.first_end_ns,
                row: Some(pattern.first_row),
            };
            let cells: [Cell; 6] = [
                pattern.name.as_str().into(),
                pattern.count.into(),
                pattern.length.into(),
                pattern.gpu_ns.into(),
                pattern.host_ns.into(),
                pattern.works.join(" | ").into(),
            ];
            table.push_at(place, cells);
        }
        page.table(table);
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Trace;

    /// `attention` three times, each with an inner operator; the last one launches something else.
    fn trace() -> Timeline {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 7);
        let (ops, api) = (trace.thread(1, 1, Track::CpuOp), trace.thread(1, 1, Track::CudaApi));
        for (start, last) in [(0, "scale"), (1000, "scale"), (2000, "mask")] {
            trace.event(Category::CpuOp, ops, "attention", start, start + 100);
            trace.event(Category::CpuOp, ops, "mm", start + 10, start + 30);
            for (at, name) in [(12, "gemm"), (40, "softmax"), (60, last)] {
                let call = (api, start + at, start + at + 5);
                trace.launch(
                    call,
                    Category::CudaKernel,
                    (stream, name, start + at + 200, start + at + 210),
                );
            }
        }
        trace.launch((api, 5000, 5001), Category::CudaKernel, (stream, "gemm", 5002, 5003));
        trace.build()
    }

    #[test]
    fn equal_sequences_of_the_outermost_operator_are_counted() {
        let found = LaunchPatterns::of(&trace(), &LaunchPatternsParams::default());
        assert_eq!((found.patterns.len(), found.outside), (1, 1));
        let pattern = &found.patterns[0];
        assert_eq!(
            (pattern.name.as_str(), pattern.count, pattern.length),
            ("attention", 2, 3)
        );
        assert_eq!(pattern.works, ["gemm", "softmax", "scale"]);
        assert_eq!((pattern.gpu_ns, pattern.host_ns, pattern.first_start_ns), (60, 200, 0));
    }

    #[test]
    fn calls_of_one_operator_that_are_numbered_are_its_occurrences() {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 7);
        let (ranges, api) = (trace.thread(1, 1, Track::Nvtx), trace.thread(1, 1, Track::CudaApi));
        for (start, name) in [(0, "aten::sort, op_id = 9"), (1000, "aten::sort, op_id = 10")] {
            trace.event(Category::NvtxRange, ranges, name, start, start + 100);
            for (at, kernel) in [(12, "count"), (40, "scan"), (60, "scatter")] {
                let call = (api, start + at, start + at + 5);
                let work = (stream, kernel, start + at + 200, start + at + 210);
                trace.launch(call, Category::CudaKernel, work);
            }
        }
        let found = LaunchPatterns::of(&trace.build(), &LaunchPatternsParams::default());
        let names = found
            .patterns
            .iter()
            .map(|pattern| (pattern.name.as_str(), pattern.count));
        assert_eq!(names.collect::<Vec<_>>(), [("aten::sort", 2)]);
    }

    #[test]
    fn sequences_below_a_named_operator_are_its_own() {
        let params = LaunchPatternsParams {
            under: "mm".to_owned(),
            min_length: 1,
            ..LaunchPatternsParams::default()
        };
        let found = LaunchPatterns::of(&trace(), &params);
        let names: Vec<(&str, u64)> = found
            .patterns
            .iter()
            .map(|pattern| (pattern.name.as_str(), pattern.count))
            .collect();
        assert_eq!(names, [("mm", 3)]);
        assert_eq!(found.outside, 7);
    }
}
