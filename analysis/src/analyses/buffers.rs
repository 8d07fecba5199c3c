//! The lives of buffers: how long they were given out, which were never taken back, how often the
//! same sizes are asked for again, and how much of that memory could be used again.

mod page;

use std::collections::BTreeMap;

use flopwatch_measures::interval::Interval;
use flopwatch_measures::iteration::{self, Iteration, IterationOptions};
use flopwatch_measures::largest::largest;
use flopwatch_measures::pool::{Allocator, Buffer, Pool, PoolKey, Release};
use flopwatch_measures::requester::{RequesterName, Requesters};
use flopwatch_measures::reuse::Reuse;
use flopwatch_model::{Category, ColumnId, Needs, Timeline, approximate, count, gpu_work_and, index};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, TimelineLocation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::analyses::memory::{location_of, without_allocations};
use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;

/// The lives of buffers.
#[derive(Debug)]
pub struct Buffers;

/// Parameters of [`Buffers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BuffersParams {
    /// Most rows of each list.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u32,
}

impl Default for BuffersParams {
    fn default() -> Self {
        Self { limit: 20 }
    }
}

/// Bounds of the lifetimes' classes in ns, the last without one.
const LIFETIMES: [u64; 8] = [
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
];

/// The lives of buffers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct BuffersResult {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// Iterations of the program's loop over which allocations are counted; null where none are
    /// found.
    pub iterations: Option<u64>,
    /// The buffers of each allocator, process, device and kind of memory, the most bytes first.
    pub pools: Vec<BufferPool>,
}

/// The buffers of an allocator.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BufferPool {
    /// Who gives them out.
    pub allocator: Allocator,
    /// Whose memory: `GPU 0`, `host`, `GPU 1 managed`.
    pub memory: String,
    /// Ordinal of the device; null of the host's memory.
    pub device: Option<u32>,
    /// Process id; 0 where the source does not say.
    pub process: u32,
    /// Times that memory was given out.
    pub allocations: u64,
    /// Bytes that were given out, all together.
    pub allocated_bytes: u64,
    /// Times that memory was given out per second, from the first allocation or release to the
    /// last; null where these are one.
    pub allocations_per_second: Option<f64>,
    /// Bytes that were given out per second in that time.
    pub bytes_per_second: Option<f64>,
    /// Times that memory was given out per iteration; null where no iterations are found.
    pub allocations_per_iteration: Option<f64>,
    /// Bytes that were given out per iteration.
    pub bytes_per_iteration: Option<f64>,
    /// Buffers that were given out during the capture and not taken back in it; null where the
    /// source says no addresses, as the next six.
    pub kept: Option<u64>,
    /// Bytes of the buffers that are kept.
    pub kept_bytes: Option<u64>,
    /// Buffers whose memory was given out again although their release was not recorded.
    pub unrecorded_releases: Option<u64>,
    /// Releases of memory that was not given out during the capture.
    pub unmatched_releases: Option<u64>,
    /// Their bytes, as far as the source says them.
    pub unmatched_bytes: Option<u64>,
    /// Releases of another size than was given out.
    pub mismatched_releases: Option<u64>,
    /// Buffers that began where another one had been and had been taken back: what the allocator
    /// did use again.
    pub address_reuses: Option<u64>,
    /// Times what the allocator had grew, for which it asked the driver; null where the source does
    /// not say what it had.
    pub growths: Option<u64>,
    /// Allocations for which a buffer of that size had been taken back before and was not given out
    /// since.
    pub reuses: u64,
    /// Their bytes: what an allocator that keeps buffers does not ask for.
    pub saved_bytes: u64,
    /// Allocations for each buffer that is needed: 1 where nothing can be used again. Null without
    /// allocations.
    pub reuse_ratio: Option<f64>,
    /// Lifetimes by class, of those that were taken back.
    pub lifetimes: Vec<LifetimeClass>,
    /// The buffers that were given out longest, of those that were taken back.
    pub longest: Vec<BufferLife>,
    /// The largest buffers that were never taken back in the capture.
    pub largest_kept: Vec<BufferLife>,
    /// Sizes by the bytes that were given out of them.
    pub sizes: Vec<BufferSize>,
    /// Sizes that were left out behind these.
    pub sizes_left_out: u64,
    /// Who asked, by the bytes that they were given.
    pub requesters: Vec<BufferRequester>,
    /// Those who asked that were left out behind these.
    pub requesters_left_out: u64,
}

/// Lifetimes of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LifetimeClass {
    /// From so many ns on.
    pub from_ns: u64,
    /// Up to, and without, so many; null of the last class.
    pub to_ns: Option<u64>,
    /// Buffers.
    pub buffers: u64,
    /// Bytes of the buffers.
    pub bytes: u64,
}

/// A buffer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BufferLife {
    /// Bytes.
    pub bytes: u64,
    /// When it was given out, in ns.
    pub given_ns: u64,
    /// How long it was given out, in ns; up to the end of the capture where it was never taken
    /// back.
    pub lifetime_ns: u64,
    /// What happened with it in the end.
    pub release: Release,
    /// Who asked for it.
    pub requester: RequesterName,
    /// Where it is.
    pub place: TimelineLocation,
}

/// Allocations of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct BufferSize {
    /// The size in bytes.
    pub size_bytes: u64,
    /// Times it was given out.
    pub allocations: u64,
    /// Bytes that were given out, all together.
    pub allocated_bytes: u64,
    /// Of the allocations such that could use a buffer again.
    pub reuses: u64,
    /// Allocations for each buffer that is needed.
    pub reuse_ratio: f64,
}

/// What one place in the program asked for.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BufferRequester {
    /// Who asked; nothing known in it of allocations of which nobody is known.
    pub requester: RequesterName,
    /// Times memory was given out.
    pub allocations: u64,
    /// Bytes that were given out, all together.
    pub allocated_bytes: u64,
    /// Mean lifetime in ns.
    pub mean_lifetime_ns: f64,
}

impl Analysis for Buffers {
    const NAME: &'static str = "buffers";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "Lifetimes of buffers, those that are never taken back, how often the same sizes are asked for, and how much could be used again.";
    const TITLE: &'static str = "Buffers";
    const GROUP: Group = Group::Memory;
    const NEEDS: Needs = Needs::of(gpu_work_and![
        Category::CudaApi,
        Category::CpuOp,
        Category::PythonFunction,
        Category::NvtxRange,
        Category::Annotation,
        Category::Step,
        Category::Derived
    ])
    .columns(&[ColumnId::Launch, ColumnId::StepNumber, ColumnId::RangeStyle])
    .names()
    .rows()
    .correlations()
    .allocations();
    type Params = BuffersParams;
    type Output = BuffersResult;

    fn run(inputs: &Inputs<'_>, params: &BuffersParams) -> Result<BuffersResult, AnalysisError> {
        Ok(BuffersResult::of(inputs.first(), *params))
    }

    fn page(output: &BuffersResult) -> Result<Page, AnalysisError> {
        Ok(page::page(Self::TITLE, Self::ABOUT, output))
    }
}

impl BuffersResult {
    /// Computes the result for one timeline.
    pub fn of(timeline: &Timeline, params: BuffersParams) -> Self {
        let mut pools = Pool::all(timeline);
        let mut not_captured = Vec::new();
        if pools.is_empty() {
            not_captured.push(without_allocations());
            return Self {
                not_captured,
                ..Self::default()
            };
        }
        pools.sort_by_key(|pool| (std::cmp::Reverse(pool.allocated_bytes), pool.key));
        if !pools.iter().any(Pool::has_addresses) {
            not_captured.push(NotCaptured::new(
                "lifetimes of buffers",
                "the source says no addresses, so that no release belongs to an allocation; PyTorch 1.11 and later say them",
            ));
        }
        let found = iteration::of(timeline, &IterationOptions::default());
        not_captured.extend(found.not_found.clone());
        // Of several loops the one that goes round most often.
        let iterations = found.loops().max_by_key(|one| one.len()).filter(|one| one.len() > 1);
        let all = pools.iter().flat_map(|pool| &pool.buffers);
        let requesters = Requesters::of(timeline, all.map(|buffer| buffer.allocation));
        let of = |pool| BufferPool::of(timeline, pool, &requesters, (iterations, index(params.limit)));
        Self {
            not_captured,
            iterations: iterations.map(|iterations| count(iterations.len())),
            pools: pools.iter().map(of).collect(),
        }
    }
}

fn lifetimes(buffers: &[Buffer]) -> Vec<LifetimeClass> {
    let mut classes: Vec<LifetimeClass> = std::iter::once(0)
        .chain(LIFETIMES)
        .enumerate()
        .map(|(at, from_ns)| LifetimeClass {
            from_ns,
            to_ns: LIFETIMES.get(at).copied(),
            buffers: 0,
            bytes: 0,
        })
        .collect();
    for buffer in buffers.iter().filter(|buffer| buffer.release == Release::Recorded) {
        let class = LIFETIMES.partition_point(|bound| *bound <= buffer.lifetime_ns());
        if let Some(class) = classes.get_mut(class) {
            class.buffers += 1;
            class.bytes = class.bytes.saturating_add(buffer.bytes);
        }
    }
    classes
}

fn life(timeline: &Timeline, requesters: &Requesters, buffer: &Buffer) -> BufferLife {
    BufferLife {
        bytes: buffer.bytes,
        given_ns: buffer.given_ns,
        lifetime_ns: buffer.lifetime_ns(),
        release: buffer.release,
        requester: requesters.get(buffer.allocation).name(timeline),
        place: location_of(timeline, requesters, buffer),
    }
}

/// Allocations and their bytes in a time.
fn given_in(timeline: &Timeline, key: PoolKey, time: Interval) -> (u64, u64) {
    let all = &timeline.capture.allocations;
    let first = all.partition_point(|one| one.t_ns < time.start);
    let last = all.partition_point(|one| one.t_ns < time.end);
    let inside = all.get(first..last).unwrap_or_default().iter();
    let given = inside.filter(|one| one.bytes > 0 && PoolKey::of(one) == key);
    given.fold((0, 0), |(times, bytes), one| {
        (times + 1, bytes + one.bytes.unsigned_abs())
    })
}

impl BufferPool {
    fn of(
        timeline: &Timeline,
        pool: &Pool,
        requesters: &Requesters,
        (iterations, limit): (Option<&[Iteration]>, usize),
    ) -> Self {
        let key = pool.key;
        let mut reuse = Reuse::in_window(Interval::new(0, u64::MAX));
        let mut open: BTreeMap<u64, i64> = BTreeMap::new();
        for one in timeline
            .capture
            .allocations
            .iter()
            .filter(|one| PoolKey::of(one) == key)
        {
            // A release without a size has that of its buffer.
            let bytes = if one.bytes == 0 {
                open.remove(&one.address).map_or(0, |given| -given)
            } else {
                one.bytes
            };
            if one.bytes > 0 && one.address != 0 {
                open.insert(one.address, one.bytes);
            }
            if bytes != 0 {
                reuse.add((), bytes, one.t_ns);
            }
        }
        let span = pool.changes.first().zip(pool.changes.last());
        let span = span
            .map(|(first, last)| last.t_ns.saturating_sub(first.t_ns))
            .filter(|span| *span > 0);
        let per_second = |amount: u64| span.map(|span| approximate(amount.into()) * 1e9 / approximate(span.into()));
        let in_loop = iterations.and_then(|all| {
            let time = Interval::new(all.first()?.time.start, all.last()?.time.end);
            let (times, bytes) = given_in(timeline, key, time);
            let per = |amount: u64| approximate(amount.into()) / approximate(count(all.len()).into());
            Some((per(times), per(bytes)))
        });
        let kept = || pool.buffers.iter().filter(|buffer| buffer.release == Release::Never);
        let known = |figure: u64| pool.has_addresses().then_some(figure);
        let unrecorded = pool
            .buffers
            .iter()
            .filter(|buffer| buffer.release == Release::Unrecorded);
        let taken_back = pool.buffers.iter().filter(|buffer| buffer.release == Release::Recorded);
        let lives = |buffers: Vec<&Buffer>| {
            buffers
                .into_iter()
                .map(|buffer| life(timeline, requesters, buffer))
                .collect()
        };
        let (sizes, sizes_left_out) = by_size(&reuse, limit);
        let (requesters_of, requesters_left_out) = by_requester(timeline, pool, requesters, limit);
        Self {
            allocator: key.allocator,
            memory: key.memory(timeline),
            device: key.device,
            process: key.process,
            allocations: pool.allocations,
            allocated_bytes: pool.allocated_bytes,
            allocations_per_second: per_second(pool.allocations),
            bytes_per_second: per_second(pool.allocated_bytes),
            allocations_per_iteration: in_loop.map(|(times, _)| times),
            bytes_per_iteration: in_loop.map(|(_, bytes)| bytes),
            kept: known(count(kept().count())),
            kept_bytes: known(kept().map(|buffer| buffer.bytes).fold(0, u64::saturating_add)),
            unrecorded_releases: known(count(unrecorded.count())),
            unmatched_releases: known(pool.unmatched_releases),
            unmatched_bytes: known(pool.unmatched_bytes),
            mismatched_releases: known(pool.mismatched_releases),
            address_reuses: known(count(
                pool.buffers.iter().filter(|buffer| buffer.is_address_reused).count(),
            )),
            growths: growths(pool),
            reuses: reuse.reuses,
            saved_bytes: reuse.saved_bytes,
            reuse_ratio: reuse.ratio(),
            lifetimes: if pool.has_addresses() {
                lifetimes(&pool.buffers)
            } else {
                Vec::new()
            },
            longest: lives(largest(taken_back, limit, |buffer| buffer.lifetime_ns())),
            largest_kept: lives(largest(kept(), limit, |buffer| buffer.bytes)),
            sizes,
            sizes_left_out,
            requesters: requesters_of,
            requesters_left_out,
        }
    }
}

/// Times what the allocator had grew.
fn growths(pool: &Pool) -> Option<u64> {
    let mut reserved = pool.changes.iter().filter_map(|change| change.reserved_bytes);
    let mut before = reserved.next()?;
    let grew = reserved.filter(|now| {
        let grew = *now > before;
        before = *now;
        grew
    });
    Some(count(grew.count()))
}

fn by_size(reuse: &Reuse<()>, limit: usize) -> (Vec<BufferSize>, u64) {
    let given = reuse.sizes.iter().filter(|(_, of)| of.allocations > 0);
    let all = given.clone().count();
    let bytes = |size: u64, times: u64| size.saturating_mul(times);
    let shown = largest(given, limit, |(((), size), of)| bytes(*size, of.allocations));
    let shown = shown.into_iter().map(|(((), size), of)| {
        let needed = of.allocations.saturating_sub(of.reuses).max(1);
        BufferSize {
            size_bytes: *size,
            allocations: of.allocations,
            allocated_bytes: bytes(*size, of.allocations),
            reuses: of.reuses,
            reuse_ratio: approximate(of.allocations.into()) / approximate(needed.into()),
        }
    });
    (shown.collect(), count(all.saturating_sub(limit)))
}

fn by_requester(
    timeline: &Timeline,
    pool: &Pool,
    requesters: &Requesters,
    limit: usize,
) -> (Vec<BufferRequester>, u64) {
    let mut by: BTreeMap<_, (u64, u64, u128, u32)> = BTreeMap::new();
    for buffer in &pool.buffers {
        let key = requesters.get(buffer.allocation).key(timeline);
        let of = by.entry(key).or_insert((0, 0, 0, buffer.allocation));
        of.0 += 1;
        of.1 = of.1.saturating_add(buffer.bytes);
        of.2 += u128::from(buffer.lifetime_ns());
    }
    let all = by.len();
    let shown = largest(by.into_values(), limit, |of| of.1);
    let shown = shown
        .into_iter()
        .map(|(allocations, bytes, lifetimes, allocation)| BufferRequester {
            requester: requesters.get(allocation).name(timeline),
            allocations,
            allocated_bytes: bytes,
            mean_lifetime_ns: approximate(lifetimes) / approximate(allocations.into()),
        });
    (shown.collect(), count(all.saturating_sub(limit)))
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::{Allocation, MemoryKind, Track};

    use super::*;

    fn change(t_ns: u64, address: u64, bytes: i64) -> Allocation {
        Allocation {
            t_ns,
            process: 1,
            device: Some(0),
            kind: Some(MemoryKind::Device),
            address,
            bytes,
            ..Allocation::default()
        }
    }

    /// Three steps of a buffer of 100 bytes for 5 µs, one of 40 that stays, and 7 that are taken
    /// back and were given out before.
    fn trace() -> Timeline {
        let mut trace = Trace::new();
        let steps = trace.thread(1, 1, Track::Annotation);
        for step in 0..3 {
            let start = step * 10_000;
            let step = trace.event(Category::Step, steps, "ProfilerStep", start, start + 10_000);
            trace.number(step, ColumnId::StepNumber, start);
        }
        let mut timeline = trace.build();
        let mut all = vec![change(500, 0x90, 40), change(600, 0x70, -7)];
        for step in 0..3 {
            all.push(change(step * 10_000 + 1_000, 0x10, 100));
            all.push(change(step * 10_000 + 6_000, 0x10, -100));
        }
        all.sort_by_key(|one| one.t_ns);
        timeline.capture.allocations = all;
        timeline
    }

    #[test]
    fn lives_sizes_and_reuse_are_counted_by_hand() {
        let result = BuffersResult::of(&trace(), BuffersParams::default());
        assert_eq!(result.iterations, Some(3));
        let pool = &result.pools[0];
        assert_eq!(
            (pool.allocations, pool.allocated_bytes, pool.kept, pool.kept_bytes),
            (4, 340, Some(1), Some(40))
        );
        assert_eq!(
            (pool.unmatched_releases, pool.unmatched_bytes, pool.address_reuses),
            (Some(1), Some(7), Some(2))
        );
        // Four allocations need two buffers.
        assert_eq!((pool.reuses, pool.saved_bytes, pool.reuse_ratio), (2, 200, Some(2.0)));
        let class = pool.lifetimes.iter().find(|class| class.buffers > 0).unwrap();
        assert_eq!(
            (class.from_ns, class.to_ns, class.buffers, class.bytes),
            (1_000, Some(10_000), 3, 300)
        );
        assert_eq!(pool.largest_kept.len(), 1);
        assert_eq!((pool.longest.len(), pool.longest[0].lifetime_ns), (3, 5_000));
        let near = |value: Option<f64>, expected: f64| (value.unwrap() - expected).abs() < 1e-9;
        assert!(near(pool.allocations_per_iteration, 4.0 / 3.0), "{pool:?}");
        // From 0.5 µs to 26 µs.
        assert!(near(pool.bytes_per_second, 340.0 / 25.5e-6), "{pool:?}");
        let sizes: Vec<_> = pool
            .sizes
            .iter()
            .map(|size| (size.size_bytes, size.allocations, size.reuses))
            .collect();
        assert_eq!(sizes, [(100, 3, 2), (40, 1, 0)]);
        assert_eq!((pool.requesters.len(), pool.requesters[0].allocations), (1, 4));
    }

    #[test]
    fn a_source_without_addresses_has_rates_and_reuse_and_no_lives() {
        let mut timeline = trace();
        for one in &mut timeline.capture.allocations {
            one.address = 0;
        }
        let result = BuffersResult::of(&timeline, BuffersParams::default());
        let pool = &result.pools[0];
        assert_eq!((pool.kept, pool.unmatched_releases, pool.reuses), (None, None, 2));
        assert!(pool.lifetimes.is_empty() && pool.longest.is_empty());
        assert_eq!(result.not_captured[0].what, "lifetimes of buffers");
    }
}
