//! Iterations from a range that repeats: an NVTX range or an annotation.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use flopwatch_model::{Category, ColumnId, Events, Figures, RowId, Timeline, index};
use rayon::prelude::*;

use super::share::ratio;
use super::{Iteration, IterationSource, Iterations};
use crate::interval::Interval;
use crate::work::GpuWork;

/// Fewest ranges that repeat.
const MIN_RANGES: usize = 3;
/// Least share of a process's launches that iterations hold.
const LEAST_COVERAGE: f64 = 0.8;
/// Least share of iterations that launch as much as the median one does.
const MIN_REGULARITY: f64 = 0.65;
/// Ranges deeper than this are no iterations.
const MAX_DEPTH: u32 = 8;
/// Words by which programs call an iteration.
pub(super) const ITERATION_WORDS: [&str; 4] = ["step", "iter", "batch", "sample"];
/// Words by which programs call a part of a model, many of which are in an iteration.
pub(super) const PART_WORDS: [&str; 4] = ["block", "layer", "module", "stage"];
/// How operators begin, which frameworks push as NVTX ranges: they repeat within an iteration too.
const OPERATORS: [&str; 4] = ["aten::", "c10d::", "autograd::", "torch::"];

/// A range's name without what differs each time: the numbers that `emit_nvtx` adds
/// (`, seq = 4, op_id = 9`) are cut off, other numbers become `#`. `step 12` and `step 13` are one
/// name, `step #`.
pub fn normalized(name: &str) -> Cow<'_, str> {
    let bare = [", seq = ", ", op_id = "]
        .iter()
        .filter_map(|added| name.find(added))
        .min()
        .and_then(|end| name.get(..end))
        .unwrap_or(name);
    if !bare.bytes().any(|byte| byte.is_ascii_digit()) {
        return Cow::Borrowed(bare);
    }
    let mut text = String::with_capacity(bare.len());
    for letter in bare.chars() {
        if !letter.is_ascii_digit() {
            text.push(letter);
        } else if !text.ends_with('#') {
            text.push('#');
        }
    }
    Cow::Owned(text)
}

/// Ranges of one name on one thread, none inside another of them.
struct Group {
    category: Category,
    row: RowId,
    depth: u32,
    at: Vec<u32>,
    times: Vec<Interval>,
}

impl Group {
    /// From the last start on: an iteration whose end is not known.
    fn tail(&self) -> Interval {
        Interval::new(self.times.last().map_or(u64::MAX, |last| last.start), u64::MAX)
    }

    fn len_ns(&self) -> u64 {
        self.times.iter().map(|time| time.len()).sum()
    }
}

/// All ranges by name and row.
type Groups<'a> = BTreeMap<(Cow<'a, str>, RowId), Group>;

fn groups(timeline: &Timeline, wanted: impl Fn(&str, &str) -> bool) -> Groups<'_> {
    let mut groups = Groups::new();
    for category in [Category::NvtxRange, Category::Annotation] {
        let Some(events) = timeline.capture.events.get(&category) else {
            continue;
        };
        let mut names: Vec<Cow<'_, str>> = Vec::new();
        let mut key_numbers: HashMap<Cow<'_, str>, u32> = HashMap::new();
        // For each of the category's names the place in `names`; `None` of one that is not wanted.
        let mut keys = Vec::with_capacity(events.names.len());
        for name in &events.names {
            let key = normalized(name);
            if !wanted(name, &key) {
                keys.push(None);
                continue;
            }
            let next = u32::try_from(key_numbers.len()).unwrap_or(u32::MAX);
            let number = *key_numbers.entry(key.clone()).or_insert(next);
            if number == next {
                names.push(key);
            }
            keys.push(Some(number));
        }
        for ((key, row), group) in by_key(events, category, &keys) {
            if let Some(name) = names.get(index(key)) {
                groups.entry((name.clone(), row)).or_insert(group);
            }
        }
    }
    groups
}

fn by_key(events: &Events, category: Category, keys: &[Option<u32>]) -> BTreeMap<(u32, RowId), Group> {
    let styles = events.column(ColumnId::RangeStyle);
    let nests = |at: usize| styles.is_none_or(|styles| styles.get(at) == Some(0));
    let parents = events.parents(nests);
    let mut depths = vec![0_u32; events.len()];
    let mut found: HashMap<(u32, RowId), Group> = HashMap::new();
    for (at, (name, row)) in (0_u32..).zip(events.name.iter().zip(&events.row)) {
        let parent = parents.get(index(at)).and_then(|parent| depths.get(parent.index()));
        let depth = parent.map_or(0, |depth| depth + 1);
        if let Some(slot) = depths.get_mut(index(at)) {
            *slot = depth;
        }
        let time = Interval::of(events, index(at));
        let key = keys.get(name.index()).copied().flatten();
        let Some(key) = key.filter(|_| depth <= MAX_DEPTH && !time.is_empty()) else {
            continue;
        };
        let group = found.entry((key, *row)).or_insert_with(|| Group {
            category,
            row: *row,
            depth,
            at: Vec::new(),
            times: Vec::new(),
        });
        if group.times.last().is_some_and(|last| time.start < last.end) {
            continue;
        }
        group.depth = group.depth.min(depth);
        group.at.push(at);
        group.times.push(time);
    }
    found.into_iter().collect()
}

/// When each process launched GPU work: sorted starts of the calls, each call once.
struct Launches {
    starts: BTreeMap<(u32, u32, u32), Vec<u64>>,
    /// Threads that launched any.
    threads: BTreeSet<((u32, u32, u32), Option<u64>)>,
}

impl Launches {
    fn of(timeline: &Timeline, work: &GpuWork) -> Self {
        let mut calls: Vec<usize> = work.all().iter().filter_map(|work| work.launch(timeline)).collect();
        calls.sort_unstable();
        calls.dedup();
        let mut starts: BTreeMap<_, Vec<u64>> = BTreeMap::new();
        let mut threads = BTreeSet::new();
        if let Some(api) = timeline.capture.events.get(&Category::CudaApi) {
            // Calls are in the order of their starts, and so are the lists.
            for call in calls {
                let Some((row, start)) = api.row.get(call).zip(api.start_ns.get(call)) else {
                    continue;
                };
                if let Some(process) = process(timeline, *row) {
                    starts.entry(process).or_default().push(*start);
                    threads.insert((process, timeline.row(*row).and_then(|row| row.thread)));
                }
            }
        }
        Self { starts, threads }
    }

    /// Whether the row's thread launched any.
    fn are_by(&self, timeline: &Timeline, row: RowId) -> bool {
        let thread = timeline.row(row).and_then(|row| row.thread);
        process(timeline, row).is_some_and(|process| self.threads.contains(&(process, thread)))
    }

    /// How well `times`, which are sorted, fit as iterations of the row's thread. What is launched
    /// in `tail` counts as covered.
    fn fit(&self, timeline: &Timeline, row: RowId, times: &[Interval], tail: Interval) -> Fit {
        let launches = process(timeline, row).and_then(|process| self.starts.get(&process));
        let Some(launches) = launches else {
            return Fit::default();
        };
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        // Neither starts nor ends go back from one time to the next.
        let mut first = 0;
        let mut count_in = |time: &Interval| {
            let start = launched_before(launches, first, time.start);
            first = launched_before(launches, start, time.end);
            count(first - start)
        };
        let mut inside: Vec<u64> = times.iter().map(&mut count_in).collect();
        let covered = inside.iter().sum::<u64>() + count_in(&tail);
        let coverage = ratio(covered, count(launches.len()));
        let usual = Figures::of(&mut inside).whole_median();
        let regular = inside.iter().filter(|launched| launched.abs_diff(usual) * 10 <= usual);
        let regularity = if usual == 0 {
            0.0
        } else {
            ratio(count(regular.count()), count(inside.len()))
        };
        Fit { coverage, regularity }
    }
}

/// How many `launches`, which are sorted, are before `end`, where it is known that `from` are.
/// Quick where the answer is near.
fn launched_before(launches: &[u64], from: usize, end: u64) -> usize {
    let rest = launches.get(from..).unwrap_or_default();
    let mut reach = 1;
    while rest.get(reach).is_some_and(|start| *start < end) {
        reach *= 2;
    }
    let near = rest.get(..=reach).unwrap_or(rest);
    from + near.partition_point(|start| *start < end)
}

/// How well ranges fit as iterations.
#[derive(Debug, Clone, Copy, Default)]
struct Fit {
    /// The share of the process's launches that are inside.
    coverage: f64,
    /// The share of them with as many launches as the median one, give or take a tenth. Time is no
    /// measure: a slow iteration is one.
    regularity: f64,
}

impl Fit {
    fn is_good(self) -> bool {
        self.coverage >= LEAST_COVERAGE && self.regularity >= MIN_REGULARITY
    }

    fn confidence(self) -> f64 {
        self.coverage.min(self.regularity)
    }
}

/// Process of a row, across machines of a merged session.
pub(super) fn process(timeline: &Timeline, row: RowId) -> Option<(u32, u32, u32)> {
    let row = timeline.row(row)?;
    Some((row.capture, row.machine, row.process))
}

/// A group that may be the iterations of its thread.
struct Candidate<'a> {
    name: &'a str,
    source: IterationSource,
    confidence: f64,
    /// Which candidate is the better one: the larger rank.
    rank: (bool, bool, bool, u32, u64, u64),
}

/// The outermost range that repeats around most launches, as many each time; without one, the range
/// at the outermost level that does so from its start to its next start.
pub(super) fn chosen(timeline: &Timeline, work: &GpuWork) -> Option<Iterations> {
    let groups = groups(timeline, |_, _| true);
    if groups.is_empty() {
        return None;
    }
    let launches = Launches::of(timeline, work);
    let candidates = groups
        .par_iter()
        .filter_map(|((name, _), group)| candidate(timeline, &launches, name, group));
    let candidates: Vec<Candidate<'_>> = candidates.collect();
    // Of equal ones the first.
    let best = candidates
        .into_iter()
        .reduce(|best, found| if best.rank < found.rank { found } else { best })?;
    Some(collect(timeline, &groups, best.name, best.source, best.confidence))
}

fn candidate<'a>(timeline: &Timeline, launches: &Launches, name: &'a str, group: &Group) -> Option<Candidate<'a>> {
    if group.times.len() < MIN_RANGES {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let mut source = IterationSource::Range;
    let mut fit = launches.fit(timeline, group.row, &group.times, Interval::default());
    if !fit.is_good() && group.depth == 0 {
        source = IterationSource::RangeToNext;
        fit = launches.fit(timeline, group.row, &to_next(&group.times), group.tail());
    }
    if !fit.is_good() {
        return None;
    }
    let operator = OPERATORS.iter().any(|begin| name.starts_with(begin));
    let percent = (0..=100_u64).rev().find(|percent| ratio(*percent, 100) <= fit.coverage);
    Some(Candidate {
        name,
        source,
        confidence: fit.confidence(),
        rank: (
            launches.are_by(timeline, group.row),
            source == IterationSource::Range,
            has(&ITERATION_WORDS),
            if operator {
                0
            } else {
                MAX_DEPTH + 1 - group.depth.min(MAX_DEPTH)
            },
            percent.unwrap_or(0),
            group.len_ns(),
        ),
    })
}

/// From each start to the next; the last range has no next, and no iteration.
fn to_next(times: &[Interval]) -> Vec<Interval> {
    let pairs = times.iter().zip(times.iter().skip(1));
    pairs.map(|(one, next)| Interval::new(one.start, next.start)).collect()
}

/// The iterations of all threads that have ranges of `name`.
fn collect(
    timeline: &Timeline,
    groups: &Groups<'_>,
    name: &str,
    source: IterationSource,
    confidence: f64,
) -> Iterations {
    let mut list = Vec::new();
    for ((of, _), group) in groups {
        if of != name {
            continue;
        }
        let times = match source {
            IterationSource::RangeToNext => to_next(&group.times),
            _ => group.times.clone(),
        };
        for (number, (time, at)) in (0_u64..).zip(times.into_iter().zip(&group.at)) {
            list.push(Iteration {
                number,
                time,
                row: group.row,
                event: Some((group.category, *at)),
            });
        }
    }
    let iterations = Iterations {
        source: Some(source),
        name: name.to_owned(),
        list,
        confidence_ratio: confidence,
        cautions: Vec::new(),
        not_found: None,
    };
    let mut iterations = iterations.sorted();
    iterations.cautions = cautions(timeline, &iterations);
    iterations
}

/// Whether programs call a part of a model so.
pub(super) fn names_a_part(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    PART_WORDS.iter().any(|word| lower.contains(word))
}

fn cautions(timeline: &Timeline, iterations: &Iterations) -> Vec<String> {
    let name = &iterations.name;
    let mut cautions = Vec::new();
    if iterations.source == Some(IterationSource::RangeToNext) {
        cautions.push(format!(
            "No range holds an iteration: each is taken from the start of `{name}` to its next start, and what follows the last start is left out."
        ));
    }
    let first = iterations.list.first().map_or("", |first| first.name(timeline));
    let second = iterations.list.get(1).map_or("", |second| second.name(timeline));
    if names_a_part(name) {
        cautions.push(format!(
            "`{name}` names a part of a model (`{first}`, `{second}`, ...): the repetitions may be layers of one iteration."
        ));
    }
    cautions
}

/// The ranges that are called `name`, as they are or normalized.
pub(super) fn named(timeline: &Timeline, work: &GpuWork, name: &str) -> Iterations {
    let key = normalized(name);
    // A name with numbers of its own means that one range, unless it is written as normalized names
    // are.
    let groups = groups(timeline, |raw, of| raw == name || of == name || of == key);
    if groups.is_empty() {
        return Iterations::none(format!("no NVTX range or annotation is called `{name}`"));
    }
    let launches = Launches::of(timeline, work);
    let found = groups.iter().map(|((name, _), group)| {
        (
            name.clone(),
            launches
                .fit(timeline, group.row, &group.times, Interval::default())
                .confidence(),
        )
    });
    let best = found.max_by(|one, other| one.1.total_cmp(&other.1));
    let (name, confidence) = best.unwrap_or_default();
    collect(timeline, &groups, &name, IterationSource::Range, confidence)
}
