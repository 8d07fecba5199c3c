//! Memory over time: what was given out and reserved, the peak, and what was alive then and who had
//! asked for it.
//!
//! Each source is a pool or a series of its own, and none is added to another: what a framework
//! gives out lies inside of what the driver gave to it, and what NVML counts holds both and the
//! contexts of all processes.

mod page;

use std::collections::BTreeMap;

use flopwatch_measures::bins::Bins;
use flopwatch_measures::interval::Interval;
use flopwatch_measures::largest::largest;
use flopwatch_measures::pool::{Allocator, Before, Buffer, Peak, Pool, PoolPoint, Release};
use flopwatch_measures::requester::{REQUESTER_CATEGORIES, RequesterName, Requesters};
use flopwatch_model::{CounterSeries, Needs, Timeline, index};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, TimelineLocation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;

/// Memory over time.
#[derive(Debug)]
pub struct Memory;

/// Parameters of [`Memory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryParams {
    /// Most rows of each list.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u32,
    /// Parts of the capture of which each has a point in the charts.
    #[schemars(range(min = 1, max = 10_000))]
    pub points: u32,
}

impl Default for MemoryParams {
    fn default() -> Self {
        Self { limit: 50, points: 400 }
    }
}

/// Memory over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct MemoryResult {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// How these figures are to be read, in sentences.
    pub notes: Vec<String>,
    /// What allocators gave out, a row per allocator, process, device and kind of memory; the
    /// highest peak first.
    pub pools: Vec<MemoryPool>,
    /// What was sampled of memory, a row per series.
    pub series: Vec<MemorySeries>,
}

/// What an allocator gave out.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MemoryPool {
    /// Who gives it out.
    pub allocator: Allocator,
    /// Whose memory: `GPU 0`, `host`, `GPU 1 managed`.
    pub memory: String,
    /// Ordinal of the device; null of the host's memory.
    pub device: Option<u32>,
    /// Process id; 0 where the source does not say.
    pub process: u32,
    /// Most bytes that were given out at a time.
    pub peak_bytes: u64,
    /// When that was first reached, in ns; 0 where it was before the capture.
    pub peak_ns: u64,
    /// The same as a share of the device's memory, from 0 to 1; null where the source does not say
    /// how much that is.
    pub peak_ratio: Option<f64>,
    /// Bytes that were given out before the capture.
    pub before_bytes: u64,
    /// How that is known.
    pub before: Before,
    /// Bytes given out when the capture ended.
    pub end_bytes: u64,
    /// Most bytes that the allocator had, given out or not; null where the source does not say it.
    pub peak_reserved_bytes: Option<u64>,
    /// When that was first reached, in ns.
    pub peak_reserved_ns: Option<u64>,
    /// What it had and had not given out at the peak: reserved less allocated. Null where the
    /// source does not say it.
    pub unused_at_peak_bytes: Option<u64>,
    /// The most that it had and had not given out.
    pub most_unused_bytes: Option<u64>,
    /// Times that memory was given out.
    pub allocations: u64,
    /// Times that memory was taken back.
    pub releases: u64,
    /// Changes whose total does not follow from the one before: something between them was not
    /// recorded.
    pub gaps: u64,
    /// Bytes of the buffers that were given out during the capture and alive at the peak; null
    /// where the source says no addresses.
    pub alive_bytes: Option<u64>,
    /// What the peak holds besides: given out before the capture. Null where the source says no
    /// addresses.
    pub from_before_bytes: Option<u64>,
    /// The largest buffers that were alive at the peak.
    pub alive: Vec<AliveBuffer>,
    /// Buffers that were left out behind these.
    pub alive_left_out: u64,
    /// What was alive at the peak by who had asked for it, the most bytes first.
    pub alive_by_requester: Vec<AliveOfRequester>,
    /// Those who asked that were left out behind these.
    pub alive_by_requester_left_out: u64,
    /// What was given out in each part of the capture.
    pub over_time: Vec<PoolPoint>,
}

/// A buffer that was alive at the peak.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AliveBuffer {
    /// Bytes.
    pub bytes: u64,
    /// Who asked for it.
    pub requester: RequesterName,
    /// When it was given out, in ns.
    pub given_ns: u64,
    /// How long it was given out, in ns; up to the end of the capture where it was never taken
    /// back.
    pub lifetime_ns: u64,
    /// What happened with it in the end.
    pub release: Release,
    /// Where it begins in memory, in hexadecimal digits.
    pub address: String,
    /// Where it is.
    pub place: TimelineLocation,
}

/// What was alive at the peak of those who asked in the same place.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AliveOfRequester {
    /// Who asked; nothing known in it of allocations of which nobody is known.
    pub requester: RequesterName,
    /// Bytes.
    pub bytes: u64,
    /// Buffers.
    pub buffers: u64,
    /// Their share of the peak, from 0 to 1.
    pub peak_ratio: f64,
}

/// What was sampled of memory.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MemorySeries {
    /// Who sampled it: `nvml`, `xplane`.
    pub source: String,
    /// Of which device.
    pub device: String,
    /// What: `memory_used`.
    pub metric: String,
    /// Unit of the figures.
    pub unit: String,
    /// Samples.
    pub samples: u64,
    /// The lowest.
    pub min: f64,
    /// The highest.
    pub max: f64,
    /// When that was first reached, in ns.
    pub max_ns: u64,
    /// The last.
    pub last: f64,
    /// The highest in each part of the capture, with its start in ns; parts without a sample have
    /// what held before.
    pub over_time: Vec<MemorySample>,
}

/// A sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct MemorySample {
    /// When, in ns.
    pub t_ns: u64,
    /// The value then, in the unit of its series.
    pub value: f64,
}

impl Analysis for Memory {
    const NAME: &'static str = "memory";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "Memory over time: the peak, what was alive then and who had asked for it, and what was reserved and not given out.";
    const TITLE: &'static str = "Memory";
    const GROUP: Group = Group::Memory;
    const NEEDS: Needs = Needs::of(REQUESTER_CATEGORIES)
        .names()
        .rows()
        .correlations()
        .counters()
        .allocations();
    type Params = MemoryParams;
    type Output = MemoryResult;

    fn run(inputs: &Inputs<'_>, params: &MemoryParams) -> Result<MemoryResult, AnalysisError> {
        Ok(MemoryResult::of(inputs.first(), *params))
    }

    fn page(output: &MemoryResult) -> Result<Page, AnalysisError> {
        Ok(page::page(Self::TITLE, Self::ABOUT, output))
    }
}

/// Why no allocator's events are there, and how the next capture has them.
pub(crate) fn without_allocations() -> NotCaptured {
    NotCaptured::new(
        "what allocators gave out",
        "the capture holds no allocations: profile PyTorch with profile_memory=True, CUDA programs with nsys --cuda-memory-usage=true; XLA's profiler \
         records them of GPUs and TPUs",
    )
}

impl MemoryResult {
    /// Computes the result for one timeline.
    pub fn of(timeline: &Timeline, params: MemoryParams) -> Self {
        let mut pools: Vec<(Peak, Pool)> = Pool::all(timeline)
            .into_iter()
            .map(|pool| (pool.peak(), pool))
            .collect();
        pools.sort_by_key(|(peak, pool)| (std::cmp::Reverse(peak.bytes), pool.key));
        let alive = pools.iter().flat_map(|(peak, pool)| pool.alive_at(*peak));
        let requesters = Requesters::of(timeline, alive.map(|buffer| buffer.allocation));
        let bins = Bins {
            window: Interval::new(0, timeline.capture.duration_ns),
            count: index(params.points),
        };
        let series = timeline.capture.counters.iter().filter(|series| is_of_memory(series));
        let series: Vec<MemorySeries> = series.filter_map(|series| MemorySeries::of(series, bins)).collect();
        let has_addresses = pools.iter().any(|(_, pool)| pool.has_addresses());
        let mut not_captured = Vec::new();
        if pools.is_empty() {
            not_captured.push(without_allocations());
        } else if !has_addresses {
            not_captured.push(NotCaptured::new(
                "what was alive at the peak",
                "the source says no addresses, so that no release belongs to an allocation; PyTorch 1.11 and later say them",
            ));
        } else if requesters.is_empty() {
            not_captured.push(NotCaptured::new(
                "who asked for memory",
                "no operator, function, range or call was recorded around the allocations; record CPU activity, with_stack=True, or NVTX ranges",
            ));
        }
        let notes = notes(timeline, &pools, &series);
        let pools = pools
            .iter()
            .map(|(peak, pool)| MemoryPool::of(timeline, (*peak, pool), &requesters, (bins, index(params.limit))));
        Self {
            not_captured,
            notes,
            pools: pools.collect(),
            series,
        }
    }
}

fn notes(timeline: &Timeline, pools: &[(Peak, Pool)], series: &[MemorySeries]) -> Vec<String> {
    let mut notes = Vec::new();
    let any = |found: &dyn Fn(&Pool) -> bool| pools.iter().any(|(_, pool)| found(pool));
    if any(&|pool| pool.key.allocator == Allocator::Framework) && any(&|pool| pool.key.allocator == Allocator::Driver) {
        notes.push(
            "What a framework gives out lies inside of what the driver gave to it: the pools are not added to each other.".to_owned(),
        );
    }
    if any(&|pool| pool.before == Before::AtLeast) {
        notes.push(
            "Of some memory the source does not say how much was given out before the capture: levels and peaks count from what was seen to be taken \
             back, and may have been higher by the same amount throughout."
                .to_owned(),
        );
    }
    let gaps: u64 = pools.iter().map(|(_, pool)| pool.gaps).sum();
    if gaps > 0 {
        notes.push(format!(
            "{gaps} totals do not follow from the ones before: allocations in between were not recorded, so that what is alive may be incomplete."
        ));
    }
    if series.iter().any(|series| series.source == "nvml") {
        notes.push(
            "NVML counts what the driver gave to every process of a device, with their contexts and all that frameworks keep for later. JAX takes most of a \
             device when it starts (XLA_PYTHON_CLIENT_PREALLOCATE), so that NVML shows 75 to 90 % of it whatever the program needs."
                .to_owned(),
        );
    }
    if timeline.capture.source.tool == "XLA profiler" && !pools.is_empty() {
        notes.push(
            "XLA's allocator reserves most of a device ahead: what it has and has not given out is free for the program, not fragmented. How scattered it \
             lies is the series memory_fragmentation."
                .to_owned(),
        );
    }
    notes
}

/// Samples of memory; those that Kineto's reader made of the allocations are left to these.
fn is_of_memory(series: &CounterSeries) -> bool {
    let is_derived =
        series.source == "kineto" && matches!(series.metric.as_str(), "memory_allocated" | "memory_reserved");
    let metric = series.metric.to_ascii_lowercase();
    let is_amount = series.unit == "bytes" && metric.contains("memory");
    !is_derived && (is_amount || metric == "memory_fragmentation")
}

impl MemorySeries {
    fn of(series: &CounterSeries, bins: Bins) -> Option<Self> {
        let samples = || series.t_ns.iter().copied().zip(series.value.iter().copied());
        let (max_ns, max) = samples().reduce(|max, next| if next.1 > max.1 { next } else { max })?;
        let mut highest: Vec<Option<f64>> = vec![None; bins.count];
        for (t_ns, value) in samples() {
            if let Some(slot) = highest.get_mut(bins.of(t_ns)) {
                *slot = Some(slot.map_or(value, |max| max.max(value)));
            }
        }
        // A part without a sample has what held before it: not the highest, but the last.
        let mut over_time = Vec::new();
        let mut all = samples().peekable();
        let mut last = None;
        for (bin, highest) in highest.iter().enumerate() {
            let time = bins.time(bin);
            if let Some(value) = highest.or(last) {
                over_time.push(MemorySample {
                    t_ns: time.start,
                    value,
                });
            }
            while let Some((_, value)) = all.next_if(|(t_ns, _)| bins.of(*t_ns) <= bin) {
                last = Some(value);
            }
        }
        Some(Self {
            source: series.source.clone(),
            device: series.device.clone(),
            metric: series.metric.clone(),
            unit: series.unit.clone(),
            samples: u64::try_from(series.value.len()).unwrap_or(u64::MAX),
            min: samples().map(|(_, value)| value).reduce(f64::min)?,
            max,
            max_ns,
            last: last?,
            over_time,
        })
    }
}

/// A share; 0 of nothing.
pub(crate) fn share(part: u64, of: u64) -> f64 {
    flopwatch_model::ratio(part, of).unwrap_or(0.0)
}

/// Where a buffer is in the timeline: on the row of who asked for it.
pub(crate) fn location_of(timeline: &Timeline, requesters: &Requesters, buffer: &Buffer) -> TimelineLocation {
    TimelineLocation::new(
        buffer.given_ns,
        buffer.taken_ns.max(buffer.given_ns.saturating_add(1)),
        requesters.get(buffer.allocation).row(timeline),
    )
}

impl MemoryPool {
    fn of(
        timeline: &Timeline,
        (peak, pool): (Peak, &Pool),
        requesters: &Requesters,
        (bins, limit): (Bins, usize),
    ) -> Self {
        let device = pool.key.device;
        let known = timeline.capture.devices.iter().find(|known| Some(known.id) == device);
        let size = known.and_then(|device| device.memory_bytes).filter(|bytes| *bytes > 0);
        let alive: Vec<&Buffer> = pool.alive_at(peak).collect();
        let alive_bytes = alive.iter().map(|buffer| buffer.bytes).fold(0, u64::saturating_add);
        let shown = largest(alive.iter().copied(), limit, |buffer| buffer.bytes);
        let shown = shown.into_iter().map(|buffer| AliveBuffer {
            bytes: buffer.bytes,
            requester: requesters.get(buffer.allocation).name(timeline),
            given_ns: buffer.given_ns,
            lifetime_ns: buffer.lifetime_ns(),
            release: buffer.release,
            address: flopwatch_measures::pool::allocation(timeline, buffer)
                .map_or_else(String::new, |allocation| format!("{:#x}", allocation.address)),
            place: location_of(timeline, requesters, buffer),
        });
        let mut by: BTreeMap<_, (u64, u64, u32)> = BTreeMap::new();
        for buffer in &alive {
            let key = requesters.get(buffer.allocation).key(timeline);
            let of = by.entry(key).or_insert((0, 0, buffer.allocation));
            of.0 = of.0.saturating_add(buffer.bytes);
            of.1 += 1;
        }
        let groups = by.len();
        let by = largest(by.into_values(), limit, |of| of.0);
        let by = by.into_iter().map(|(bytes, buffers, allocation)| AliveOfRequester {
            requester: requesters.get(allocation).name(timeline),
            bytes,
            buffers,
            peak_ratio: share(bytes, peak.bytes),
        });
        let left_out = |all: usize| u64::try_from(all.saturating_sub(limit)).unwrap_or(u64::MAX);
        let reserved = pool.most_reserved();
        let has_addresses = pool.has_addresses();
        Self {
            allocator: pool.key.allocator,
            memory: pool.key.memory(timeline),
            device,
            process: pool.key.process,
            peak_bytes: peak.bytes,
            peak_ns: peak.t_ns,
            peak_ratio: size.map(|size| share(peak.bytes, size)),
            before_bytes: pool.before_bytes,
            before: pool.before,
            end_bytes: pool.end_bytes(),
            peak_reserved_bytes: reserved.map(|(bytes, _)| bytes),
            peak_reserved_ns: reserved.map(|(_, t_ns)| t_ns),
            unused_at_peak_bytes: pool.unused_at(peak),
            most_unused_bytes: pool.most_unused().map(|(bytes, _)| bytes),
            allocations: pool.allocations,
            releases: pool.releases,
            gaps: pool.gaps,
            alive_bytes: has_addresses.then_some(alive_bytes),
            from_before_bytes: has_addresses.then(|| peak.bytes.saturating_sub(alive_bytes)),
            alive: shown.collect(),
            alive_left_out: left_out(alive.len()),
            alive_by_requester: by.collect(),
            alive_by_requester_left_out: left_out(groups),
            over_time: pool.over(bins),
        }
    }
}

#[cfg(test)]
mod tests;
