//! How busy GPUs were over time: from their events, beside what was sampled.

use flopwatch_measures::bins::Bins;
use flopwatch_measures::exclusive_time::BusyByClass;
use flopwatch_measures::gpu::Gpu;
use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_measures::work::{GPU_WORK, GpuWork};
use flopwatch_model::{Category, ColumnId, CounterSeries, Needs, Timeline, approximate, index, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::category::label;
use flopwatch_report::page::{Lines, Page, Series, Table, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cut::cut;
use crate::definition::{Analysis, AnalysisError};
use crate::input::Inputs;

/// Busy time, bytes copied and sampled series in equal parts of the capture.
#[derive(Debug)]
pub struct Utilization;

/// Parameters of [`Utilization`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UtilizationParams {
    /// Parts of the time.
    #[schemars(range(min = 1, max = 10_000))]
    pub bins: u32,
    /// Start in ns since the session's start; by default that of the capture.
    pub from_ns: Option<u64>,
    /// End in ns; by default that of the capture.
    pub to_ns: Option<u64>,
    /// Most sampled series.
    #[schemars(range(min = 0, max = 1000))]
    pub series: u32,
}

impl Default for UtilizationParams {
    fn default() -> Self {
        Self {
            bins: 200,
            from_ns: None,
            to_ns: None,
            series: 64,
        }
    }
}

/// The result of the analysis `utilization`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct UtilizationOverTime {
    /// Starts of the parts in ns since the session's start. Each goes up to the next, the last up
    /// to `end_ns`.
    pub bin_starts_ns: Vec<u64>,
    /// End of the last part in ns.
    pub end_ns: u64,
    /// The GPUs that have events.
    pub gpus: Vec<UtilizationOfGpu>,
    /// Copies and memsets of each GPU by kind.
    pub copies: Vec<CopiesOverTime>,
    /// What was sampled.
    pub series: Vec<SampledSeries>,
    /// Series that were left out.
    pub series_left_out: u64,
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
}

/// Busy time of a GPU in each part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UtilizationOfGpu {
    /// The GPU whose time this is.
    pub gpu: Gpu,
    /// Time in ns in which anything ran.
    pub busy_ns: Vec<u64>,
    /// Time in ns in which something computed.
    pub compute_ns: Vec<u64>,
    /// Time in ns in which communication ran and nothing computed.
    pub exposed_communication_ns: Vec<u64>,
    /// Time in ns in which copies or memsets ran and nothing else did.
    pub exposed_memory_ns: Vec<u64>,
}

/// Copies of one kind on a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CopiesOverTime {
    /// Which GPU.
    pub gpu: Gpu,
    /// Which kind.
    pub category: Category,
    /// Copies.
    pub copies: u64,
    /// Bytes that they moved or set, those whose size the source says.
    pub bytes: u64,
    /// Copies whose size it does not say.
    pub unknown_sizes: u64,
    /// Time in ns in which at least one of them ran.
    pub busy_ns: u64,
    /// `bytes` by the time in which one of known size ran, in bytes per second; null where these
    /// took no time.
    pub bytes_per_second: Option<f64>,
    /// Bytes in each part, of copies of known size; those of a copy are spread evenly over the time
    /// that it ran.
    pub bytes_by_bin: Vec<u64>,
}

/// A series that was sampled, not derived from events.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SampledSeries {
    /// Who sampled it, e.g. `nvml`.
    pub source: String,
    /// Of which device.
    pub device: String,
    /// What was sampled, as its source calls it.
    pub metric: String,
    /// Unit of the values.
    pub unit: String,
    /// Samples within the time.
    pub samples: u64,
    /// Mean of all of them; null without any.
    pub mean: Option<f64>,
    /// Largest of them.
    pub max: Option<f64>,
    /// Mean of the samples of each part; null where there is none.
    pub mean_by_bin: Vec<Option<f64>>,
}

fn time_by_bin(set: &Intervals, bins: &Bins) -> Vec<u64> {
    let mut times = vec![0; bins.count];
    for (bin, part) in set.as_slice().iter().flat_map(|time| bins.shared(*time)) {
        if let Some(time) = times.get_mut(bin) {
            *time += part.len();
        }
    }
    times
}

impl UtilizationOfGpu {
    fn of(gpu: Gpu, work: &GpuWork, bins: &Bins) -> Self {
        let busy = BusyByClass::of(work);
        let hidden_by = busy.compute.union(&busy.communication);
        Self {
            gpu,
            busy_ns: time_by_bin(&busy.any(), bins),
            compute_ns: time_by_bin(&busy.compute, bins),
            exposed_communication_ns: time_by_bin(&busy.communication.subtract(&busy.compute), bins),
            exposed_memory_ns: time_by_bin(&busy.memory.subtract(&hidden_by), bins),
        }
    }
}

/// The part of `bytes` that moves from the start of `time` until `until`, at a constant rate.
fn moved(bytes: u64, time: Interval, until: u64) -> u64 {
    let ran = u128::from(until.saturating_sub(time.start).min(time.len()));
    let share = u128::from(bytes) * ran / u128::from(time.len().max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

impl CopiesOverTime {
    fn of(timeline: &Timeline, gpu: Gpu, category: Category, work: &GpuWork, bins: &Bins) -> Option<Self> {
        let of_category: Vec<_> = work.all().iter().filter(|work| work.category == category).collect();
        let mut bytes_by_bin = vec![0_u64; bins.count];
        let (mut copies, mut unknown_sizes, mut total) = (0, 0, 0_u64);
        let (mut times, mut times_of_known) = (Vec::new(), Vec::new());
        for work in of_category {
            if !work.time.happens_in(bins.window) {
                continue;
            }
            copies += 1;
            times.push(work.time.intersect(bins.window));
            let Some(bytes) = work.bytes(timeline) else {
                unknown_sizes += 1;
                continue;
            };
            times_of_known.push(work.time.intersect(bins.window));
            let mut add = |bin: usize, bytes: u64| {
                total = total.saturating_add(bytes);
                if let Some(slot) = bytes_by_bin.get_mut(bin) {
                    *slot = slot.saturating_add(bytes);
                }
            };
            if work.time.is_empty() {
                add(bins.of(work.time.start), bytes);
            }
            for (bin, part) in bins.shared(work.time) {
                add(
                    bin,
                    moved(bytes, work.time, part.end) - moved(bytes, work.time, part.start),
                );
            }
        }
        let busy_ns = Intervals::union_of(times).len_ns();
        let known_ns = Intervals::union_of(times_of_known).len_ns();
        (copies > 0).then(|| Self {
            gpu,
            category,
            copies,
            bytes: total,
            unknown_sizes,
            busy_ns,
            bytes_per_second: ratio(total, known_ns).map(|per_ns| per_ns * 1e9),
            bytes_by_bin,
        })
    }
}

impl SampledSeries {
    fn of(series: &CounterSeries, bins: &Bins) -> Self {
        let mut sums = vec![(0.0, 0_u32); bins.count];
        let (mut sum, mut samples, mut max) = (0.0, 0_u64, None::<f64>);
        for (time, value) in series.t_ns.iter().zip(&series.value) {
            let inside = (bins.window.start..=bins.window.end).contains(time) && value.is_finite();
            if let Some((of_bin, count)) = sums.get_mut(bins.of(*time)).filter(|_| inside) {
                *of_bin += value;
                *count += 1;
                sum += value;
                samples += 1;
                max = Some(max.map_or(*value, |max| max.max(*value)));
            }
        }
        let mean = |sum: f64, count: u64| (count > 0).then(|| sum / approximate(count.into()));
        Self {
            source: series.source.clone(),
            device: series.device.clone(),
            metric: series.metric.clone(),
            unit: series.unit.clone(),
            samples,
            mean: mean(sum, samples),
            max,
            mean_by_bin: sums.into_iter().map(|(sum, count)| mean(sum, count.into())).collect(),
        }
    }

    /// For people: `gpu0 sm_active (ratio)`.
    fn label(&self) -> String {
        format!("{} {} ({})", self.device, self.metric, self.unit)
    }
}

impl Utilization {
    /// Of `timeline`, of which everything that the analysis needs was read.
    pub fn of(timeline: &Timeline, params: &UtilizationParams) -> UtilizationOverTime {
        let capture = &timeline.capture;
        let whole = if capture.counters.is_empty() {
            Interval::of_events(timeline)
        } else {
            Interval::new(0, capture.duration_ns)
        };
        let window = Interval::new(params.from_ns.unwrap_or(whole.start), params.to_ns.unwrap_or(whole.end));
        let mut not_captured: Vec<NotCaptured> = NotCaptured::unless_any(capture, GPU_WORK, "busy time of GPUs")
            .into_iter()
            .collect();
        if capture.counters.is_empty() {
            not_captured.push(NotCaptured::new(
                "sampled series",
                "no series was sampled beside the events; capture with sampling of NVML, or with GPU metrics of Nsight Systems",
            ));
        }
        if window.is_empty() {
            return UtilizationOverTime {
                not_captured,
                ..UtilizationOverTime::default()
            };
        }
        let bins = Bins {
            window,
            count: index(params.bins),
        };
        let mut copies = Vec::new();
        let mut gpus = Vec::new();
        for (gpu, work) in GpuWork::of(timeline).by_gpu(timeline) {
            let kinds = Category::MEMCPY.into_iter().chain([Category::CudaMemset]);
            copies.extend(kinds.filter_map(|category| CopiesOverTime::of(timeline, gpu, category, &work, &bins)));
            gpus.push(UtilizationOfGpu::of(gpu, &work, &bins));
        }
        let mut series: Vec<&CounterSeries> = capture.counters.iter().collect();
        series.sort_by_key(|series| (&series.source, &series.device, &series.metric));
        let series_left_out = cut(&mut series, params.series);
        UtilizationOverTime {
            bin_starts_ns: bins.starts(),
            end_ns: window.end,
            gpus,
            copies,
            series: series.iter().map(|series| SampledSeries::of(series, &bins)).collect(),
            series_left_out,
            not_captured,
        }
    }
}

impl UtilizationOverTime {
    /// Each of `times` of the length of its part.
    fn shares(&self, times: &[u64]) -> Vec<Option<f64>> {
        let ends = self.bin_starts_ns.iter().copied().skip(1).chain([self.end_ns]);
        let lengths = self.bin_starts_ns.iter().zip(ends).map(|(start, end)| end - start);
        times
            .iter()
            .zip(lengths)
            .map(|(time, length)| ratio(*time, length))
            .collect()
    }
}

impl Analysis for Utilization {
    const NAME: &'static str = "utilization";
    const VERSION: u32 = 2;
    const ABOUT: &'static str =
        "How busy GPUs were over time and what they copied, from their events, beside the series that were sampled.";
    const TITLE: &'static str = "Utilization";
    const GROUP: crate::Group = crate::Group::GpuTime;
    const NEEDS: Needs = Needs::of(GPU_WORK)
        .columns(&[ColumnId::Bytes])
        .names()
        .rows()
        .counters();
    type Params = UtilizationParams;
    type Output = UtilizationOverTime;

    fn run(inputs: &Inputs<'_>, params: &UtilizationParams) -> Result<UtilizationOverTime, AnalysisError> {
        Ok(Self::of(inputs.first(), params))
    }

    fn page(output: &UtilizationOverTime) -> Result<Page, AnalysisError> {
        let mut page = Page::of(Self::TITLE, Self::ABOUT, &output.not_captured);
        let lines = |title: String, unit, series| Lines {
            title,
            unit,
            times_ns: output.bin_starts_ns.clone(),
            series,
        };
        for gpu in &output.gpus {
            let share = |name: &str, times: &[u64]| Series {
                name: name.to_owned(),
                values: output.shares(times),
            };
            let series = vec![
                share("busy", &gpu.busy_ns),
                share("compute", &gpu.compute_ns),
                share("exposed communication", &gpu.exposed_communication_ns),
                share("exposed copies", &gpu.exposed_memory_ns),
            ];
            page.lines(lines(gpu.gpu.label(), Unit::Ratio, series));
        }
        if !output.copies.is_empty() {
            let rate = |copies: &CopiesOverTime| Series {
                name: format!("{}: {}", copies.gpu.label(), label(copies.category)),
                values: output
                    .shares(&copies.bytes_by_bin)
                    .into_iter()
                    .map(|per_ns| per_ns.map(|per_ns| per_ns * 1e9))
                    .collect(),
            };
            let series = output.copies.iter().map(rate).collect();
            page.lines(lines("Bytes copied".to_owned(), Unit::BytesPerSecond, series));
            page.table(copy_table(output));
        }
        for sampled in &output.series {
            let series = vec![Series {
                name: sampled.metric.clone(),
                values: sampled.mean_by_bin.clone(),
            }];
            let unit = match sampled.unit.as_str() {
                "bytes" => Unit::Bytes,
                _ => Unit::None,
            };
            page.lines(lines(sampled.label(), unit, series));
        }
        page.table_unless_empty(series_table(output));
        Ok(page)
    }
}

fn copy_table(output: &UtilizationOverTime) -> impl Into<Table> {
    Table::of("Copies and memsets", &output.copies)
        .column("GPU", |copies| copies.gpu.label())
        .column("Kind", |copies| label(copies.category))
        .column("Count", |copies| copies.copies)
        .column("Of unknown size", |copies| {
            (copies.unknown_sizes > 0).then_some(copies.unknown_sizes)
        })
        .figure("Bytes", Unit::Bytes, |copies| {
            (copies.copies > copies.unknown_sizes).then_some(copies.bytes)
        })
        .figure("Time", Unit::Ns, |copies| copies.busy_ns)
        .figure("Rate while running", Unit::BytesPerSecond, |copies| {
            copies.bytes_per_second
        })
}

fn series_table(output: &UtilizationOverTime) -> impl Into<Table> {
    Table::of("Sampled series", &output.series)
        .left_out(output.series_left_out)
        .column("Source", |series| series.source.as_str())
        .column("Series", SampledSeries::label)
        .column("Samples", |series| series.samples)
        .column("Avg", |series| series.mean)
        .column("Max", |series| series.max)
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_analysis_testing::mixed::{timeline, work};
    use proptest::prelude::*;

    use super::*;

    fn params(bins: u32) -> UtilizationParams {
        UtilizationParams {
            bins,
            ..UtilizationParams::default()
        }
    }

    /// The mean of the rates, of 1 and of 100 bytes per ns, would be 50.5.
    #[test]
    fn a_rate_is_bytes_by_time_and_no_mean_of_rates() {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 7);
        for (start, end) in [(0, 1000), (2000, 2010)] {
            let copy = trace.event(Category::CudaMemcpyH2d, stream, "Memcpy HtoD", start, end);
            trace.number(copy, ColumnId::Bytes, 1000);
        }
        let found = Utilization::of(&trace.build(), &params(1));
        let copies = &found.copies[0];
        assert_eq!((copies.bytes, copies.busy_ns), (2000, 1010));
        assert!((copies.bytes_per_second.unwrap() - 2000.0 / 1010e-9).abs() < 1.0);
    }

    #[test]
    fn time_and_bytes_are_told_of_each_part() {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 7);
        trace.kernel(stream, "gemm", 10, 60);
        let copy = trace.event(Category::CudaMemcpyH2d, stream, "Memcpy HtoD", 80, 100);
        trace.number(copy, ColumnId::Bytes, 1000);
        let mut timeline = trace.build();
        timeline.capture.counters.push(CounterSeries {
            source: "nvml".to_owned(),
            device: "gpu0".to_owned(),
            metric: "power_watts".to_owned(),
            unit: "W".to_owned(),
            t_ns: vec![5, 15, 95],
            value: vec![100.0, 200.0, 60.0],
        });
        let found = Utilization::of(&timeline, &params(4));
        assert_eq!((found.bin_starts_ns, found.end_ns), (vec![0, 25, 50, 75], 100));
        assert_eq!(found.gpus[0].busy_ns, [15, 25, 10, 20]);
        assert_eq!(found.gpus[0].compute_ns, [15, 25, 10, 0]);
        assert_eq!(found.gpus[0].exposed_memory_ns, [0, 0, 0, 20]);
        let copies = &found.copies[0];
        assert_eq!((copies.bytes, copies.busy_ns), (1000, 20));
        assert_eq!(copies.bytes_per_second, Some(5e10));
        assert_eq!(copies.bytes_by_bin, [0, 0, 0, 1000]);
        let halves = Utilization::of(
            &timeline,
            &UtilizationParams {
                from_ns: Some(70),
                to_ns: Some(110),
                ..params(2)
            },
        );
        assert_eq!(halves.copies[0].bytes_by_bin, [500, 500]);
        let power = &found.series[0];
        assert_eq!(power.mean_by_bin, [Some(150.0), None, None, Some(60.0)]);
        assert_eq!((power.samples, power.mean, power.max), (3, Some(120.0), Some(200.0)));
        assert!(found.not_captured.is_empty());
    }

    #[test]
    fn a_capture_without_samples_says_how_to_have_them() {
        let found = Utilization::of(&Timeline::default(), &params(10));
        assert_eq!(found.not_captured.len(), 2);
        assert!(found.not_captured[1].reason.contains("NVML"));
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_whole(pieces in work(), bins in 1_u32..20) {
            let timeline = timeline(&pieces);
            let found = Utilization::of(&timeline, &params(bins));
            for gpu in found.gpus {
                let sum = |times: &[u64]| times.iter().sum::<u64>();
                let busy = sum(&gpu.busy_ns);
                prop_assert_eq!(busy, GpuWork::of(&timeline).busy().len_ns());
                let parts = [gpu.compute_ns, gpu.exposed_communication_ns, gpu.exposed_memory_ns];
                prop_assert_eq!(parts.iter().map(|part| sum(part)).sum::<u64>(), busy);
            }
        }
    }
}
