//! Iterations from the period of the sequence of kernels.

use std::collections::BTreeMap;

use flopwatch_model::{Category, RowId, Timeline, index};

use super::share::ratio;
use super::{Iteration, IterationSource, Iterations};
use crate::interval::Interval;
use crate::work::GpuWork;

/// Least confidence of a period.
const LEAST_CONFIDENCE: f64 = 0.6;
/// A shorter period is preferred to the best one when its confidence is at most this much lower:
/// multiples of a period are periods too.
const MAX_CONFIDENCE_LOSS: f64 = 0.03;
/// Periods that are tried.
const MAX_CANDIDATES: usize = 32;
/// Fewest periods of a stream.
const MIN_PERIODS: usize = 3;
/// Fewest kernels of a period.
const MIN_PERIOD_KERNELS: usize = 2;

/// One stream's kernels and whole graphs in order.
#[derive(Default)]
struct Sequence {
    row: RowId,
    /// Names of kernels, and behind them those of graphs.
    names: Vec<u32>,
    times: Vec<Interval>,
}

/// The iterations of the busiest stream of each device of each process.
pub(super) fn of(timeline: &Timeline, work: &GpuWork) -> Iterations {
    // Names of graphs are numbered behind those of kernels.
    let mut first: BTreeMap<Category, u32> = BTreeMap::new();
    let mut names = 0;
    for category in [Category::CudaKernel, Category::CudaGraph] {
        if let Some(events) = timeline.capture.events.get(&category) {
            first.insert(category, u32::try_from(names).unwrap_or(u32::MAX));
            names += events.names.len();
        }
    }
    if first.is_empty() {
        return Iterations::none("no steps, no range that repeats, and no kernels");
    }
    let mut streams: BTreeMap<RowId, Sequence> = BTreeMap::new();
    for work in work.all() {
        let Some(first) = first.get(&work.category) else {
            continue;
        };
        let name = work.events(timeline).and_then(|events| events.name.get(index(work.at)));
        let Some(name) = name else { continue };
        let sequence = streams.entry(work.row).or_default();
        sequence.row = work.row;
        sequence.names.push(first.saturating_add(name.number()));
        sequence.times.push(work.time);
    }
    let mut busiest: BTreeMap<_, Sequence> = BTreeMap::new();
    for sequence in streams.into_values() {
        let key = timeline
            .row(sequence.row)
            .map(|row| (row.capture, row.machine, row.process, row.device));
        let kept = busiest.entry(key).or_default();
        if kept.names.len() < sequence.names.len() {
            *kept = sequence;
        }
    }
    let mut iterations = Iterations {
        source: Some(IterationSource::KernelPeriod),
        confidence_ratio: 1.0,
        ..Iterations::default()
    };
    let mut weakest: f64 = 0.0;
    for sequence in busiest.values() {
        let Some((length, confidence)) = period(&sequence.names, names) else {
            continue;
        };
        if confidence < LEAST_CONFIDENCE {
            weakest = weakest.max(confidence);
            continue;
        }
        iterations.confidence_ratio = iterations.confidence_ratio.min(confidence);
        iterations.list.extend(split(sequence, length, names));
    }
    if iterations.list.is_empty() {
        return Iterations::none(format!(
            "no steps, no range that repeats, and the sequence of kernels has no clear period (confidence {weakest:.2}, at least {LEAST_CONFIDENCE} is asked for); \
             mark iterations with NVTX ranges or the profiler's step()"
        ));
    }
    iterations.cautions.push(
        "Iterations are the period of the kernels' sequence: of a capture of less than three iterations they are layers or other parts that repeat."
            .to_owned(),
    );
    iterations.sorted()
}

/// The places of each name in the sequence.
fn positions(names: &[u32], count: usize) -> Vec<Vec<usize>> {
    let mut positions = vec![Vec::new(); count];
    for (at, name) in names.iter().enumerate() {
        if let Some(list) = positions.get_mut(index(*name)) {
            list.push(at);
        }
    }
    positions
}

/// The shortest period in kernels that explains the sequence as well as any, and its confidence.
/// Names count equally, however often each runs, so that the kernels of a layer do not outvote
/// those that run once an iteration.
fn period(names: &[u32], count: usize) -> Option<(usize, f64)> {
    let longest = names.len() / MIN_PERIODS;
    // For each distance the votes of names whose kernels are so far apart; each name has one vote
    // to share.
    let mut votes = vec![0.0_f64; longest + 1];
    for list in positions(names, count) {
        for apart in 1..=4 {
            let share = ratio(1, u64::try_from(list.len()).unwrap_or(1));
            for (one, next) in list.iter().zip(list.iter().skip(apart)) {
                if let Some(vote) = votes.get_mut(next - one) {
                    *vote += share;
                }
            }
        }
    }
    let mut tried: Vec<usize> = (MIN_PERIOD_KERNELS..=longest)
        .filter(|length| votes.get(*length).is_some_and(|vote| *vote > 0.0))
        .collect();
    let vote = |length: &usize| votes.get(*length).copied().unwrap_or(0.0);
    tried.sort_by(|one, other| vote(other).total_cmp(&vote(one)).then(one.cmp(other)));
    tried.truncate(MAX_CANDIDATES);
    let mut scored: Vec<(usize, f64)> = tried
        .into_iter()
        .map(|length| (length, confidence(names, count, length)))
        .collect();
    scored.sort_by_key(|(length, _)| *length);
    let best = scored.iter().map(|(_, score)| *score).fold(0.0, f64::max);
    scored
        .into_iter()
        .find(|(_, score)| *score >= best - MAX_CONFIDENCE_LOSS)
}

/// The share of kernels that are the same `length` later, averaged over the names that run at least
/// twice.
fn confidence(names: &[u32], count: usize, length: usize) -> f64 {
    let mut figures = vec![(0_u64, 0_u64); count];
    let mut runs = vec![0_u32; count];
    for name in names {
        if let Some(runs) = runs.get_mut(index(*name)) {
            *runs += 1;
        }
    }
    for (one, later) in names.iter().zip(names.iter().skip(length)) {
        if let Some((same, all)) = figures.get_mut(index(*one)) {
            *all += 1;
            *same += u64::from(one == later);
        }
    }
    let judged = figures
        .iter()
        .zip(&runs)
        .filter(|((_, all), runs)| *all > 0 && **runs > 1);
    let (mut sum, mut distinct) = (0.0, 0);
    for ((same, all), _) in judged {
        sum += ratio(*same, *all);
        distinct += 1;
    }
    if distinct == 0 { 0.0 } else { sum / f64::from(distinct) }
}

/// Splits the sequence before the kernel that runs once a period and follows the most idle time;
/// without one, at the phase that does so. Parts of periods at both ends are left out.
fn split(sequence: &Sequence, length: usize, count: usize) -> Vec<Iteration> {
    let mut idle = Vec::with_capacity(sequence.times.len());
    let mut end = sequence.times.first().map_or(0, |time| time.start);
    for time in &sequence.times {
        idle.push(time.start.saturating_sub(end));
        end = end.max(time.end);
    }
    let sum = |positions: &[usize]| -> u64 { positions.iter().filter_map(|position| idle.get(*position)).sum() };
    let near = |n: usize, wanted: usize| n.abs_diff(wanted) * 10 <= wanted;
    let anchors = positions(&sequence.names, count).into_iter().filter(|list| {
        let spaces: Vec<u64> = list
            .windows(2)
            .filter_map(|two| u64::try_from(two.last()? - two.first()?).ok())
            .collect();
        list.len() >= MIN_PERIODS
            && spaces
                .iter()
                .all(|space| near(usize::try_from(*space).unwrap_or(usize::MAX), length))
    });
    let phases = || (0..length).map(|phase| (phase..sequence.names.len()).step_by(length).collect::<Vec<usize>>());
    let best = |one: &Vec<usize>, other: &Vec<usize>| sum(one).cmp(&sum(other)).then(other.first().cmp(&one.first()));
    let borders = anchors
        .max_by(best)
        .or_else(|| phases().max_by(best))
        .unwrap_or_default();
    let start = |position: usize| sequence.times.get(position).map(|time| time.start);
    let mut times: Vec<Interval> = borders
        .windows(2)
        .filter_map(|two| Some(Interval::new(start(*two.first()?)?, start(*two.last()?)?)))
        .collect();
    if let Some(last) = borders.last()
        && near(sequence.names.len() - last, length)
        && let Some(start) = start(*last)
    {
        times.push(Interval::new(start, end));
    }
    let numbered = (0_u64..).zip(times);
    numbered
        .map(|(number, time)| Iteration {
            number,
            time,
            row: sequence.row,
            event: None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a` twelve times within what runs once: 1, then twelve layers of 2 3 4, then 5.
    fn model(iterations: usize) -> Vec<u32> {
        let layers = [2, 3, 4].repeat(12);
        let one: Vec<u32> = [1].into_iter().chain(layers).chain([5]).collect();
        one.repeat(iterations)
    }

    #[test]
    fn the_period_is_the_iteration_and_not_the_layer_or_a_multiple() {
        let (length, confidence) = period(&model(6), 6).unwrap();
        assert_eq!(length, 38);
        assert!(confidence > 0.99);
    }

    #[test]
    fn a_kernel_more_in_one_iteration_is_tolerated() {
        let mut names = model(8);
        names.insert(100, 3);
        let (length, confidence) = period(&names, 6).unwrap();
        assert_eq!(length, 38);
        assert!(confidence > 0.7, "{confidence}");
    }

    #[test]
    fn a_sequence_without_a_period_has_little_confidence() {
        let mut state = 12345_u32;
        let names: Vec<u32> = (0..400)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 16) % 12
            })
            .collect();
        let confidence = period(&names, 12).map_or(0.0, |(_, confidence)| confidence);
        assert!(confidence < 0.4, "{confidence}");
    }

    #[test]
    fn iterations_begin_behind_the_longest_idle_time() {
        // Three kernels an iteration; the device waits before `1`. The capture begins and ends
        // inside iterations.
        let names = [2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2];
        let mut times = Vec::new();
        let mut now = 0;
        for name in names {
            now += if name == 1 { 50 } else { 1 };
            times.push(Interval::new(now, now + 10));
            now += 10;
        }
        let row = RowId::new(3);
        let names = names.to_vec();
        let found = split(&Sequence { row, names, times }, 3, 4);
        let times: Vec<(u64, u64)> = found
            .iter()
            .map(|iteration| (iteration.time.start, iteration.time.end))
            .collect();
        assert_eq!(times, [(72, 154), (154, 236), (236, 318)]);
    }
}
