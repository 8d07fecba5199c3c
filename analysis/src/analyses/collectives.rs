//! What each collective moved, how fast, and how much of its time computation hid.

mod page;

use std::collections::BTreeMap;

use flopwatch_measures::collective::{Collective, CollectiveOperation, Collectives as Found, bytes_per_second};
use flopwatch_measures::coverage::Coverage;
use flopwatch_measures::gpu::Gpu;
use flopwatch_measures::interval::Intervals;
use flopwatch_measures::kernel_class::WorkClass;
use flopwatch_measures::work::GpuWork;
use flopwatch_model::{Category, Figures, Needs, RowId, Timeline, count, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, TimelineLocation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;

/// Message sizes, bandwidth, outliers and hidden time of the collectives of one capture.
#[derive(Debug)]
pub struct Collectives;

/// Parameters of [`Collectives`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CollectivesParams {
    /// Most collectives in each list of single ones.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u32,
    /// A collective is an outlier where it took more than so many percent of the median of its
    /// like: same operation, group and message size.
    #[schemars(range(min = 101, max = 100_000))]
    pub outlier_percent: u32,
}

impl Default for CollectivesParams {
    fn default() -> Self {
        Self {
            limit: 50,
            outlier_percent: 200,
        }
    }
}

/// Fewest collectives that are alike for one of them to be an outlier.
const FEWEST_ALIKE: usize = 5;

/// The collectives of a capture. Times of kernels hold the wait for other ranks, so that bandwidths
/// are lower bounds; `stragglers` takes the wait away.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct CollectivesResult {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// Kernels of collectives.
    pub collectives: u64,
    /// Those of which the source says the message's size.
    pub sized_collectives: u64,
    /// Time in ns in which a collective ran, per device counted once, summed over devices.
    pub communication_ns: u64,
    /// The part of it in which the device also computed.
    pub hidden_ns: u64,
    /// The rest: `communication_ns` less `hidden_ns`.
    pub exposed_ns: u64,
    /// `hidden_ns` of `communication_ns`; null without collectives.
    pub hidden_ratio: Option<f64>,
    /// The same per device.
    pub devices: Vec<CollectiveDevice>,
    /// Per operation, size of the group and power of two of the message's size; the longest total
    /// first.
    pub rows: Vec<CollectiveRow>,
    /// Outliers, those that lost most time first.
    pub outliers: Vec<CollectiveOutlier>,
    /// Outliers that were left out behind these.
    pub outliers_left_out: u64,
    /// The longest collectives.
    pub longest: Vec<CollectiveCall>,
    /// Collectives that were left out behind these.
    pub longest_left_out: u64,
}

/// The collectives of a device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct CollectiveDevice {
    /// Which capture of a merged session, 0 where there is one.
    pub capture: u32,
    /// Machine as the profiler numbers it, 0 where it does not.
    pub machine: u32,
    /// Ordinal of the device.
    pub device: u32,
    /// Kernels of collectives.
    pub collectives: u64,
    /// Time in ns in which one ran, counted once.
    pub communication_ns: u64,
    /// The part of it in which the device also computed.
    pub hidden_ns: u64,
    /// The rest.
    pub exposed_ns: u64,
    /// `hidden_ns` of `communication_ns`.
    pub hidden_ratio: Option<f64>,
}

/// Collectives of one operation, group size and power of two of the message's size.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CollectiveRow {
    /// What the ranks do.
    pub operation: CollectiveOperation,
    /// Ranks of the group; null where the source does not say it.
    pub ranks: Option<u32>,
    /// Smallest message of the bin in bytes, a power of two; null where the source does not say
    /// sizes.
    pub from_bytes: Option<u64>,
    /// Collectives.
    pub collectives: u64,
    /// Sum of their messages in bytes; null where the source does not say sizes.
    pub total_bytes: Option<u64>,
    /// Sum of their lengths in ns.
    pub total_ns: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The middle one; of an even number the mean of the two.
    pub median_ns: f64,
    /// The longest.
    pub max_ns: u64,
    /// Algorithm bandwidth: `total_bytes` by `total_ns`.
    pub algorithm_bytes_per_second: Option<f64>,
    /// Bus bandwidth: the algorithm bandwidth times the operation's factor. Null where the group's
    /// size is not known.
    pub bus_bytes_per_second: Option<f64>,
    /// The largest bus bandwidth of one of them.
    pub best_bus_bytes_per_second: Option<f64>,
    /// Sum of the parts of their lengths in which their device also computed.
    pub hidden_ns: u64,
    /// `hidden_ns` of `total_ns`.
    pub hidden_ratio: Option<f64>,
}

/// One collective.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CollectiveCall {
    /// What the ranks do.
    pub operation: CollectiveOperation,
    /// Kernel of the call.
    pub kernel: String,
    /// Name of its process group; empty where the source does not say it.
    pub group: String,
    /// Ordinal of the device.
    pub device: Option<u32>,
    /// Start in ns.
    pub start_ns: u64,
    /// Length in ns.
    pub duration_ns: u64,
    /// The message in bytes.
    pub message_bytes: Option<u64>,
    /// Message by length.
    pub algorithm_bytes_per_second: Option<f64>,
    /// The same times the operation's factor.
    pub bus_bytes_per_second: Option<f64>,
    /// The part of its length in which its device also computed.
    pub hidden_ns: u64,
    /// Row of the timeline.
    pub row: RowId,
}

/// A collective that took much longer than its like.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CollectiveOutlier {
    /// The collective.
    pub call: CollectiveCall,
    /// Median length in ns of its like.
    pub median_ns: f64,
    /// Its length less the median.
    pub lost_ns: u64,
}

impl Analysis for Collectives {
    const NAME: &'static str = "collectives";
    const VERSION: u32 = 2;
    const ABOUT: &'static str =
        "Message sizes, algorithm and bus bandwidth, outliers and hidden time of NCCL's and other collectives.";
    const TITLE: &'static str = "Collectives";
    const GROUP: Group = Group::Ranks;
    const NEEDS: Needs = Found::NEEDS;
    type Params = CollectivesParams;
    type Output = CollectivesResult;

    fn run(inputs: &Inputs<'_>, params: &CollectivesParams) -> Result<CollectivesResult, AnalysisError> {
        Ok(CollectivesResult::of(inputs.first(), *params))
    }

    fn page(output: &CollectivesResult) -> Result<Page, AnalysisError> {
        Ok(page::page(Self::TITLE, Self::ABOUT, output))
    }
}

/// A collective and how much of its time computation hid.
struct HiddenTime<'a> {
    of: &'a Collective,
    gpu: Option<Gpu>,
    hidden_ns: u64,
}

impl CollectivesResult {
    /// Computes the result for one timeline.
    pub fn of(timeline: &Timeline, params: CollectivesParams) -> Self {
        let found = Found::of(timeline);
        let limit = usize::try_from(params.limit).unwrap_or(usize::MAX);
        let work = GpuWork::of(timeline).by_gpu(timeline);
        let computing: BTreeMap<Gpu, Intervals> = work
            .iter()
            .map(|(gpu, work)| (*gpu, work.busy_with(WorkClass::Compute)))
            .collect();
        let hiding: BTreeMap<Gpu, Coverage> = computing
            .iter()
            .map(|(gpu, computing)| (*gpu, Coverage::of(computing)))
            .collect();
        let seen: Vec<HiddenTime<'_>> = found
            .all
            .iter()
            .map(|of| {
                let gpu = Gpu::of_row(timeline, of.row);
                let hiding = gpu.and_then(|gpu| hiding.get(&gpu));
                let hidden_ns = hiding.map_or(0, |hiding| hiding.within(of.time));
                HiddenTime { of, gpu, hidden_ns }
            })
            .collect();
        let devices = devices(&seen, &computing);
        let sum = |of: fn(&CollectiveDevice) -> u64| devices.iter().map(of).sum();
        let (communication_ns, hidden_ns) = (sum(|device| device.communication_ns), sum(|device| device.hidden_ns));
        let sized = seen.iter().filter(|seen| seen.of.message_bytes.is_some()).count();
        let mut by_length: Vec<&HiddenTime<'_>> = seen.iter().collect();
        by_length.sort_by_key(|seen| (std::cmp::Reverse(seen.of.time.len()), seen.of.time.start, seen.of.at));
        let call = |seen: &HiddenTime<'_>| CollectiveCall::of(timeline, &found, seen);
        let (outliers, outliers_left_out) = outliers(&seen, params.outlier_percent, limit, &call);
        Self {
            not_captured: not_captured(timeline, seen.len(), sized),
            collectives: count(seen.len()),
            sized_collectives: count(sized),
            communication_ns,
            hidden_ns,
            exposed_ns: communication_ns - hidden_ns,
            hidden_ratio: ratio(hidden_ns, communication_ns),
            devices,
            rows: rows(&seen),
            outliers,
            outliers_left_out,
            longest: by_length.iter().take(limit).map(|seen| call(seen)).collect(),
            longest_left_out: count(by_length.len().saturating_sub(limit)),
        }
    }
}

impl CollectiveCall {
    fn of(timeline: &Timeline, found: &Found, seen: &HiddenTime<'_>) -> Self {
        let HiddenTime { of, gpu, hidden_ns } = *seen;
        let kernels = timeline.capture.events.get(&Category::CudaKernel);
        let kernel = kernels.map_or("", |kernels| kernels.name_of(flopwatch_model::index(of.at)));
        Self {
            operation: of.operation,
            kernel: kernel.to_owned(),
            group: found
                .groups
                .get(of.group)
                .map_or_else(String::new, |group| group.name.clone()),
            device: gpu.map(|gpu| gpu.device),
            start_ns: of.time.start,
            duration_ns: of.time.len(),
            message_bytes: of.message_bytes,
            algorithm_bytes_per_second: of
                .message_bytes
                .and_then(|bytes| bytes_per_second(bytes, of.time.len())),
            bus_bytes_per_second: bus(of),
            hidden_ns,
            row: of.row,
        }
    }

    /// Location of the collective in the timeline of the first input.
    pub fn location(&self) -> TimelineLocation {
        TimelineLocation::lasting(self.start_ns, self.duration_ns, Some(self.row))
    }
}

fn bus(of: &Collective) -> Option<f64> {
    let speed = bytes_per_second(of.message_bytes?, of.time.len())?;
    Some(speed * of.operation.bus_factor(of.ranks?))
}

fn devices(seen: &[HiddenTime<'_>], computing: &BTreeMap<Gpu, Intervals>) -> Vec<CollectiveDevice> {
    let mut by_gpu: BTreeMap<Gpu, Vec<&HiddenTime<'_>>> = BTreeMap::new();
    for one in seen {
        by_gpu.entry(one.gpu.unwrap_or_default()).or_default().push(one);
    }
    let devices = by_gpu.into_iter().map(|(gpu, seen)| {
        let communicating: Intervals = seen.iter().map(|one| one.of.time).collect();
        let communication_ns = communicating.len_ns();
        let computing = computing.get(&gpu);
        let hidden_ns = computing.map_or(0, |computing| communicating.intersect(computing).len_ns());
        CollectiveDevice {
            capture: gpu.capture,
            machine: gpu.machine,
            device: gpu.device,
            collectives: count(seen.len()),
            communication_ns,
            hidden_ns,
            exposed_ns: communication_ns - hidden_ns,
            hidden_ratio: ratio(hidden_ns, communication_ns),
        }
    });
    devices.collect()
}

fn rows(seen: &[HiddenTime<'_>]) -> Vec<CollectiveRow> {
    let mut bins: BTreeMap<_, Vec<&HiddenTime<'_>>> = BTreeMap::new();
    for one in seen {
        let from_bytes = one.of.message_bytes.map(power_of_two);
        bins.entry((one.of.operation, one.of.ranks, from_bytes))
            .or_default()
            .push(one);
    }
    let rows = bins.into_iter().map(|((operation, ranks, from_bytes), seen)| {
        let mut lengths: Vec<u64> = seen.iter().map(|one| one.of.time.len()).collect();
        let figures = Figures::of(&mut lengths);
        let total_ns = narrow(figures.total);
        let total_bytes: Option<u64> = seen.iter().map(|one| one.of.message_bytes).sum();
        let speed = total_bytes.and_then(|bytes| bytes_per_second(bytes, total_ns));
        let factor = ranks.map(|ranks| operation.bus_factor(ranks));
        let hidden_ns = seen.iter().map(|one| one.hidden_ns).sum();
        CollectiveRow {
            operation,
            ranks,
            from_bytes,
            collectives: figures.count,
            total_bytes,
            total_ns,
            min_ns: figures.min,
            median_ns: figures.median().unwrap_or(0.0),
            max_ns: figures.max,
            algorithm_bytes_per_second: speed,
            bus_bytes_per_second: speed.zip(factor).map(|(speed, factor)| speed * factor),
            best_bus_bytes_per_second: seen.iter().filter_map(|one| bus(one.of)).max_by(f64::total_cmp),
            hidden_ns,
            hidden_ratio: ratio(hidden_ns, total_ns),
        }
    });
    let mut rows: Vec<CollectiveRow> = rows.collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
    rows
}

fn outliers(
    seen: &[HiddenTime<'_>],
    percent: u32,
    limit: usize,
    call: &dyn Fn(&HiddenTime<'_>) -> CollectiveCall,
) -> (Vec<CollectiveOutlier>, u64) {
    let mut alike: BTreeMap<_, Vec<&HiddenTime<'_>>> = BTreeMap::new();
    for one in seen {
        let key = (
            one.gpu,
            one.of.operation,
            one.of.group,
            one.of.ranks,
            one.of.message_bytes,
        );
        alike.entry(key).or_default().push(one);
    }
    let mut found: Vec<(u64, f64, &HiddenTime<'_>)> = Vec::new();
    for group in alike.into_values().filter(|group| group.len() >= FEWEST_ALIKE) {
        let mut lengths: Vec<u64> = group.iter().map(|one| one.of.time.len()).collect();
        let figures = Figures::of(&mut lengths);
        let median_ns = figures.median().unwrap_or(0.0);
        // Twice the median is an integer.
        let twice = u128::from(figures.lower_median) + u128::from(figures.upper_median);
        let is_outlier = |one: &&HiddenTime<'_>| u128::from(one.of.time.len()) * 200 > twice * u128::from(percent);
        for one in group.into_iter().filter(is_outlier) {
            let lost = one.of.time.len().saturating_sub(narrow(twice.div_ceil(2)));
            found.push((lost, median_ns, one));
        }
    }
    found.sort_by_key(|(lost, _, one)| (std::cmp::Reverse(*lost), one.of.time.start, one.of.at));
    let left_out = count(found.len().saturating_sub(limit));
    let listed = found.into_iter().take(limit);
    let outliers = listed.map(|(lost_ns, median_ns, one)| CollectiveOutlier {
        call: call(one),
        median_ns,
        lost_ns,
    });
    (outliers.collect(), left_out)
}

fn not_captured(timeline: &Timeline, collectives: usize, sized: usize) -> Vec<NotCaptured> {
    let kernels = NotCaptured::unless_any(&timeline.capture, &[Category::CudaKernel], "collectives");
    let without = (sized < collectives).then(|| {
        NotCaptured::new(
            format!("message sizes and bandwidth of {} of {collectives} collectives", collectives - sized),
            "the kernels carry no message size; PyTorch 2.2 and later writes it into its own traces (torch.profiler), Nsight Systems does not",
        )
    });
    kernels.into_iter().chain(without).collect()
}

/// The largest power of two that is not above `bytes`.
fn power_of_two(bytes: u64) -> u64 {
    bytes.checked_ilog2().map_or(0, |power| 1 << power)
}

fn narrow(total: u128) -> u64 {
    u64::try_from(total).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::{EventHandle, Trace};
    use flopwatch_model::ColumnId;

    use super::*;

    fn all_reduce(trace: &mut Trace, stream: RowId, start: u64, end: u64, elements: u64) -> EventHandle {
        let kernel = trace.kernel(stream, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", start, end);
        trace.text(kernel, ColumnId::ElementType, "Float");
        trace.number(kernel, ColumnId::InElements, elements);
        trace.number(kernel, ColumnId::GroupSize, 4);
        kernel
    }

    #[test]
    fn bandwidth_is_bytes_by_time_times_the_factor_of_the_bus() {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 20);
        // 4,000 bytes in 100 ns are 40 GB/s; of four ranks the links carry 2 * 3 / 4 of that, 60
        // GB/s.
        all_reduce(&mut trace, stream, 0, 100, 1000);
        let result = CollectivesResult::of(&trace.build(), CollectivesParams::default());
        let [row] = &result.rows[..] else {
            panic!("{result:?}");
        };
        assert_eq!((row.from_bytes, row.total_bytes), (Some(2048), Some(4000)));
        assert!((row.algorithm_bytes_per_second.unwrap() - 40e9).abs() < 1.0);
        assert!((row.bus_bytes_per_second.unwrap() - 60e9).abs() < 1.0);
        assert!(result.not_captured.is_empty());
    }

    #[test]
    fn only_computation_of_the_same_device_hides_a_collective() {
        let mut trace = Trace::new();
        let (network, compute) = (trace.stream(1, 0, 20), trace.stream(1, 0, 7));
        let other = trace.stream(1, 1, 7);
        all_reduce(&mut trace, network, 100, 200, 1000);
        trace.kernel(compute, "gemm", 150, 180);
        trace.kernel(compute, "gemm", 170, 210);
        trace.kernel(other, "gemm", 100, 150);
        let result = CollectivesResult::of(&trace.build(), CollectivesParams::default());
        assert_eq!(
            (result.communication_ns, result.hidden_ns, result.exposed_ns),
            (100, 50, 50)
        );
        assert_eq!(result.hidden_ratio, Some(0.5));
    }

    #[test]
    fn a_collective_much_longer_than_its_like_is_an_outlier() {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 20);
        for at in 0..5 {
            all_reduce(&mut trace, stream, at * 1000, at * 1000 + 100, 1000);
        }
        all_reduce(&mut trace, stream, 6000, 6201, 1000);
        all_reduce(&mut trace, stream, 7000, 7900, 1_000_000);
        let result = CollectivesResult::of(&trace.build(), CollectivesParams::default());
        let found: Vec<_> = result
            .outliers
            .iter()
            .map(|one| (one.call.start_ns, one.lost_ns))
            .collect();
        assert_eq!(found, [(6000, 101)]);
    }

    #[test]
    fn a_source_that_says_no_sizes_has_no_bandwidth_and_says_so() {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 20);
        trace.kernel(stream, "ncclDevKernel_SendRecv(x)", 0, 100);
        let result = CollectivesResult::of(&trace.build(), CollectivesParams::default());
        assert_eq!(result.rows[0].bus_bytes_per_second, None);
        assert_eq!(result.sized_collectives, 0);
        assert!(result.not_captured[0].what.contains("1 of 1"));
    }
}
